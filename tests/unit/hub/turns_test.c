/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/assert.h"

struct worker {
    struct hub_job job;
    size_t left; /* steps */
    size_t cost;
    size_t done;
};

static bool step(struct hub_job *job, size_t *cost)
{
    struct worker *w = KR_CONTAINER_OF(job, struct worker, job);

    *cost = w->cost;
    w->done++;
    return --w->left != 0;
}

static struct worker worker(size_t steps, size_t cost)
{
    struct worker w = {.left = steps, .cost = cost};

    hub_job_init(&w.job, step);
    return w;
}

static void test_turn_when_one_floods_then_the_others_get_their_steps(void **state)
{
    struct kr_sched s;
    struct hub_turns t;
    struct worker flood = worker(1000, HUB_STEP_COST);
    struct worker small = worker(2, 100);

    (void)state;
    kr_sched_init(&s, 0, 0);
    hub_turns_init(&t, &s);
    hub_job_post(&t, &flood.job);
    hub_job_post(&t, &flood.job);
    hub_job_post(&t, &small.job);
    assert_int_equal(flood.done, 0); /* never from inside the call */
    assert_int_equal(kr_sched_run(&s, 1, 1), 0);
    assert_int_equal(small.left, 0);
    assert_in_range(flood.done, HUB_TURN_COST / HUB_STEP_COST - 1, HUB_TURN_COST / HUB_STEP_COST);
    for (int i = 0; i < 200; i++)
        kr_sched_run(&s, 1, 1); /* time need not pass */
    assert_int_equal(flood.left, 0);
    assert_int_equal(kr_sched_run(&s, 1, 1), -1);
    hub_turns_deinit(&t);
    kr_sched_deinit(&s);
}

static void test_turn_when_work_comes_meanwhile_then_it_waits_its_turn(void **state)
{
    struct kr_sched s;
    struct hub_turns t;
    struct worker a = worker(4, 2 * HUB_TURN_COST);
    struct worker b = worker(1, 1);

    (void)state;
    kr_sched_init(&s, 0, 0);
    hub_turns_init(&t, &s);
    hub_job_post(&t, &a.job);
    kr_sched_run(&s, 1, 1);
    assert_int_equal(a.done, 1);
    hub_job_post(&t, &b.job);
    kr_sched_run(&s, 1, 1);
    assert_int_equal(a.done, 2);
    assert_int_equal(b.done, 0);
    kr_sched_run(&s, 1, 1);
    assert_int_equal(b.done, 1);
    hub_job_cancel(&a.job);
    kr_sched_run(&s, 1, 1);
    assert_int_equal(a.done, 3);
    hub_job_post(&t, &a.job);
    hub_turns_deinit(&t);
    kr_sched_run(&s, 1, 1);
    assert_int_equal(a.done, 3);
    kr_sched_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turn_when_one_floods_then_the_others_get_their_steps),
        cmocka_unit_test(test_turn_when_work_comes_meanwhile_then_it_waits_its_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
