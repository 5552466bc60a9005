/* SPDX-License-Identifier: Apache-2.0 */
/* loop: one thread's event loop: what is ready (libev), then what is due and posted (sched).
 * A turn: wait for events, run the callbacks of what is ready, then kr_sched_run. The clock of the
 * sched is refreshed before the callbacks and before the tasks.
 * Memory:  kr_fd and kr_wake are embedded in their owner, who stops them before it goes; a signal
 *          watcher belongs to the loop.
 * Units:   milliseconds.
 * Threads: one loop is one thread's; only kr_wake_send may be called from others. */
#ifndef KR_NET_LOOP_H
#define KR_NET_LOOP_H

#include <stdint.h>

#include "base/note.h"
#include "base/sched.h"

struct kr_loop;

enum { KR_FD_READ = 1, KR_FD_WRITE = 2 };

/* What is ready with a descriptor. Level-triggered. */
struct kr_fd { /* read fd and interest; the rest belongs to loop.c */
    void (*on_ready)(struct kr_fd *f, unsigned events);
    struct kr_loop *loop;
    int fd;
    unsigned interest;
    uint64_t watcher[7]; /* libev's */
};

/* A call from another thread. */
struct kr_wake { /* the fields belong to loop.c */
    void (*on_wake)(struct kr_wake *w);
    struct kr_loop *loop;
    uint64_t watcher[7]; /* libev's */
};

struct kr_loop *kr_loop_create(struct kr_note *why);
/* Not from inside a callback. Everything that was started on it must have been stopped. */
void kr_loop_destroy(struct kr_loop *loop);
struct kr_sched *kr_loop_sched(struct kr_loop *loop);

/* Turns until kr_loop_stop. */
void kr_loop_run(struct kr_loop *loop);
/* One turn that waits at most max_wait_ms for something to happen (tests). */
void kr_loop_turn(struct kr_loop *loop, int64_t max_wait_ms);
/* kr_loop_run returns after this turn. */
void kr_loop_stop(struct kr_loop *loop);

/* The callback does not run for an event that was stopped meanwhile. The descriptor stays the
 * owner's; stop before closing it. */
void kr_fd_init(struct kr_fd *f, struct kr_loop *loop, int fd,
                void (*on_ready)(struct kr_fd *f, unsigned events));
void kr_fd_set(struct kr_fd *f, unsigned interest); /* 0 stops it */
static inline void kr_fd_stop(struct kr_fd *f)
{
    kr_fd_set(f, 0);
}

/* Runs in the next turn, after its events and its ordinary tasks: for work that goes on for so
 * long that others must get their turn in between. kr_task_cancel undoes it. */
void kr_loop_post_next(struct kr_loop *loop, struct kr_task *t);

/* At most 8 signals a loop; a signal belongs to one loop of the process. KR_ENOMEM, KR_EFULL. */
int kr_loop_on_signal(struct kr_loop *loop, int signum, void (*on_signal)(void *owner, int signum),
                      void *owner);

void kr_wake_start(struct kr_wake *w, struct kr_loop *loop, void (*on_wake)(struct kr_wake *w));
void kr_wake_stop(struct kr_wake *w);
/* Any thread, also a signal handler. Several sends may become one call. */
void kr_wake_send(struct kr_wake *w);

/* How many turns there were. */
/* A monotonic clock, to measure work by. */
int64_t kr_loop_clock_us(void);
uint64_t kr_loop_turns(const struct kr_loop *loop);
/* The longest turn (without the waiting) since the last time this was asked. */
int64_t kr_loop_take_lag_ms(struct kr_loop *loop);

#endif
