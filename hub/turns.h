/* SPDX-License-Identifier: Apache-2.0 */
/* turns: work that comes in floods, done in turns: each job gets a little of every turn of the
 * loop, in the order in which they asked, so that one flood starves neither the others nor the
 * loop. Units: a job says what a step has cost, in bytes that were looked at; a turn ends when
 * HUB_TURN_COST is spent (about 2 ms). Threads: the loop's. */
#ifndef HUB_TURNS_H
#define HUB_TURNS_H

#include "base/sched.h"

#define HUB_TURN_COST (1u << 20)
#define HUB_STEP_COST (128u << 10) /* a step should stop behind so much */

struct hub_job { /* embed it; the fields belong to turns.c */
    struct kr_list link;
    /* Does a part of the work; *cost of it. True: there is more. It may post and cancel jobs, its
     * own too, but not free its own. */
    bool (*step)(struct hub_job *job, size_t *cost);
};

struct hub_turns { /* embed it; the fields belong to turns.c */
    struct kr_sched *sched;
    struct kr_list jobs; /* hub_job.link */
    struct kr_task task;
    struct kr_timer next; /* the next turn of the loop */
    bool running;
};

void hub_turns_init(struct hub_turns *t, struct kr_sched *sched);
void hub_turns_deinit(struct hub_turns *t); /* its jobs are canceled */
void hub_job_init(struct hub_job *job, bool (*step)(struct hub_job *job, size_t *cost));
/* Posting twice is posting once. */
void hub_job_post(struct hub_turns *t, struct hub_job *job);
void hub_job_cancel(struct hub_job *job);

#endif
