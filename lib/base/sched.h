/* SPDX-License-Identifier: Apache-2.0 */
/* sched: time and deferred work of one thread, as everything above the event loop sees it.
 * The loop (or a test with virtual time) calls kr_sched_run once per turn; timers that are due
 * fire, then posted tasks run until none is left.
 * Units: milliseconds of a monotonic clock, named _ms; milliseconds since 1970, named _wall_ms.
 * Memory: timers and tasks are embedded in their owner; the owner stops them before it goes.
 * Threads: one thread only. */
#ifndef KR_BASE_SCHED_H
#define KR_BASE_SCHED_H

#include <stdint.h>

#include "base/list.h"

struct kr_timer { /* the fields belong to sched.c */
    void (*fire)(struct kr_timer *t);
    int64_t due_ms;
    size_t slot; /* place in the heap, from 1; 0: not running */
};

struct kr_task { /* the fields belong to sched.c */
    void (*run)(struct kr_task *t);
    struct kr_list link;
};

struct kr_sched { /* read now_ms (the loop sets it after each wait) and now_wall_ms; the rest
                     belongs to sched.c */
    int64_t now_ms;
    int64_t now_wall_ms;
    struct kr_timer **heap; /* heap[1..count] */
    size_t count;
    size_t cap;
    struct kr_list tasks; /* kr_task.link */
    struct kr_list idle;  /* kr_task.link: run once all of `tasks` is done (writes are gathered) */
};

void kr_sched_init(struct kr_sched *s, int64_t now_ms, int64_t now_wall_ms);
void kr_sched_deinit(struct kr_sched *s);

void kr_timer_init(struct kr_timer *t, void (*fire)(struct kr_timer *t));
/* Starts it, or moves a running one. KR_ENOMEM only when it was not running. */
int kr_timer_start(struct kr_sched *s, struct kr_timer *t, int64_t after_ms);
void kr_timer_stop(struct kr_sched *s, struct kr_timer *t);
static inline int kr_timer_running(const struct kr_timer *t)
{
    return t->slot != 0;
}

void kr_task_init(struct kr_task *t, void (*run)(struct kr_task *t));
/* Runs once later in this turn, never from inside the call; posting twice is posting once. */
void kr_task_post(struct kr_sched *s, struct kr_task *t);
/* The same, but after all ordinary tasks: for work that gathers what a turn produced. */
void kr_task_post_last(struct kr_sched *s, struct kr_task *t);
void kr_task_cancel(struct kr_task *t);

/* One turn at the given time. Returns the wait until the next timer, or -1 if there is none. */
int64_t kr_sched_run(struct kr_sched *s, int64_t now_ms, int64_t now_wall_ms);

#endif
