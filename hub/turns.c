/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/turns.h"

#include "base/assert.h"

static void on_task(struct kr_task *task)
{
    struct hub_turns *t = KR_CONTAINER_OF(task, struct hub_turns, task);
    size_t spent = 0;

    t->running = true;
    while (spent < HUB_TURN_COST && !kr_list_empty(&t->jobs)) {
        struct hub_job *job = KR_CONTAINER_OF(kr_list_pop(&t->jobs), struct hub_job, link);
        size_t cost = 0;

        if (job->step(job, &cost))
            hub_job_post(t, job);
        spent += cost + 1; /* what costs nothing must not run for ever either */
    }
    t->running = false;
    if (!kr_list_empty(&t->jobs))
        kr_timer_start(t->sched, &t->next, 0);
}

/* A timer that starts itself anew would fire in the same turn: the task comes between. */
static void on_next(struct kr_timer *timer)
{
    struct hub_turns *t = KR_CONTAINER_OF(timer, struct hub_turns, next);

    kr_task_post_last(t->sched, &t->task);
}

void hub_turns_init(struct hub_turns *t, struct kr_sched *sched)
{
    *t = (struct hub_turns){.sched = sched};
    kr_list_init(&t->jobs);
    kr_task_init(&t->task, on_task);
    kr_timer_init(&t->next, on_next);
}

void hub_turns_deinit(struct hub_turns *t)
{
    if (t->sched == NULL)
        return;
    while (kr_list_pop(&t->jobs) != NULL)
        ;
    kr_task_cancel(&t->task);
    kr_timer_stop(t->sched, &t->next);
}

void hub_job_init(struct hub_job *job, bool (*step)(struct hub_job *job, size_t *cost))
{
    *job = (struct hub_job){.step = step};
}

void hub_job_post(struct hub_turns *t, struct hub_job *job)
{
    if (kr_list_linked(&job->link))
        return;
    kr_list_append(&t->jobs, &job->link);
    /* What is posted while a turn's share is spent waits for the next turn. */
    if (!t->running && !kr_timer_running(&t->next))
        kr_task_post_last(t->sched, &t->task);
}

void hub_job_cancel(struct hub_job *job)
{
    kr_list_remove(&job->link);
}
