/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include <ev.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"

enum { SIGNALS_MAX = 8 };

struct signal_watch {
    struct ev_signal watcher;
    void (*on_signal)(void *owner, int signum);
    void *owner;
};

struct kr_loop {
    struct ev_loop *ev;
    struct kr_sched sched;
    struct ev_timer due;    /* ends the wait for the next timer */
    int64_t due_ms;         /* when it fires, if it is active */
    struct ev_check polled; /* runs first after each wait */
    int64_t polled_us;
    int64_t lag_us;
    uint64_t turns;
    struct kr_list next; /* kr_task.link: to be posted in the next turn */
    struct signal_watch *signals[SIGNALS_MAX];
    size_t signal_count;
    int stopped;
};

_Static_assert(sizeof(struct ev_io) <= sizeof(((struct kr_fd *)0)->watcher), "room for ev_io");
_Static_assert(sizeof(struct ev_async) <= sizeof(((struct kr_wake *)0)->watcher),
               "room for ev_async");

static int64_t now_us(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void on_due(struct ev_loop *ev, struct ev_timer *w, int events)
{
    (void)ev, (void)w, (void)events; /* it only ends the wait; kr_sched_run does the rest */
}

/* Callbacks start timers: their clock must not be the one from before the wait. */
static void on_polled(struct ev_loop *ev, struct ev_check *w, int events)
{
    struct kr_loop *loop = w->data;

    (void)ev, (void)events;
    loop->turns++;
    loop->polled_us = now_us(CLOCK_MONOTONIC);
    loop->sched.now_ms = loop->polled_us / 1000;
}

struct kr_loop *kr_loop_create(struct kr_note *why)
{
    struct kr_loop *loop = calloc(1, sizeof *loop);

    if (loop == NULL)
        goto fail;
    loop->ev = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    if (loop->ev == NULL)
        goto fail;
    loop->polled_us = now_us(CLOCK_MONOTONIC);
    kr_sched_init(&loop->sched, loop->polled_us / 1000, now_us(CLOCK_REALTIME) / 1000);
    kr_list_init(&loop->next);
    ev_timer_init(&loop->due, on_due, 0., 0.);
    ev_check_init(&loop->polled, on_polled);
    ev_set_priority(&loop->polled, EV_MAXPRI);
    loop->polled.data = loop;
    ev_check_start(loop->ev, &loop->polled);
    return loop;
fail:
    kr_note_set(why, KR_ENOMEM, "cannot create an event loop");
    free(loop);
    return NULL;
}

void kr_loop_destroy(struct kr_loop *loop)
{
    if (loop == NULL)
        return;
    for (size_t i = 0; i < loop->signal_count; i++) {
        ev_signal_stop(loop->ev, &loop->signals[i]->watcher);
        free(loop->signals[i]);
    }
    while (kr_list_pop(&loop->next) != NULL)
        ;
    ev_timer_stop(loop->ev, &loop->due);
    ev_check_stop(loop->ev, &loop->polled);
    ev_loop_destroy(loop->ev);
    kr_sched_deinit(&loop->sched);
    free(loop);
}

struct kr_sched *kr_loop_sched(struct kr_loop *loop)
{
    return &loop->sched;
}

/* Re-armed only when it would be too late: one that fires early costs an empty turn at most. */
static void arm(struct kr_loop *loop, int64_t wait_ms)
{
    int64_t due_ms = loop->sched.now_ms + wait_ms;

    if (ev_is_active(&loop->due)) {
        if (loop->due_ms <= due_ms)
            return;
        ev_timer_stop(loop->ev, &loop->due);
    }
    ev_now_update(loop->ev);
    ev_timer_set(&loop->due, (double)wait_ms / 1000., 0.);
    ev_timer_start(loop->ev, &loop->due);
    loop->due_ms = due_ms;
}

/* What was put off in the last turn is due in this one. Returns the wait; -1: for ever. */
static int64_t run_tasks(struct kr_loop *loop)
{
    int64_t start_us = now_us(CLOCK_MONOTONIC);
    struct kr_list *node;
    int64_t lag_us;
    int64_t wait;

    while ((node = kr_list_pop(&loop->next)) != NULL)
        kr_task_post_last(&loop->sched, KR_CONTAINER_OF(node, struct kr_task, link));
    wait = kr_sched_run(&loop->sched, start_us / 1000, now_us(CLOCK_REALTIME_COARSE) / 1000);
    lag_us = now_us(CLOCK_MONOTONIC) - loop->polled_us;
    if (lag_us > loop->lag_us)
        loop->lag_us = lag_us;
    return kr_list_empty(&loop->next) ? wait : 0;
}

static void wait_for_events(struct kr_loop *loop, int64_t wait)
{
    if (wait > 0)
        arm(loop, wait);
    ev_run(loop->ev, wait == 0 ? EVRUN_NOWAIT : EVRUN_ONCE);
}

void kr_loop_run(struct kr_loop *loop)
{
    while (!loop->stopped) {
        int64_t wait = run_tasks(loop);

        if (!loop->stopped)
            wait_for_events(loop, wait);
    }
    loop->stopped = 0;
}

void kr_loop_turn(struct kr_loop *loop, int64_t max_wait_ms)
{
    const struct kr_sched *s = &loop->sched;
    int busy = !kr_list_empty(&s->tasks) || !kr_list_empty(&s->idle) || !kr_list_empty(&loop->next);
    int64_t wait = run_tasks(loop);

    if (busy)
        wait = 0; /* the caller may have waited for what has just been done */
    else if (wait < 0 || wait > max_wait_ms)
        wait = max_wait_ms;
    wait_for_events(loop, wait);
    run_tasks(loop);
}

void kr_loop_stop(struct kr_loop *loop)
{
    loop->stopped = 1;
}

void kr_loop_post_next(struct kr_loop *loop, struct kr_task *t)
{
    if (!kr_list_linked(&t->link))
        kr_list_append(&loop->next, &t->link);
}

int64_t kr_loop_clock_us(void)
{
    return now_us(CLOCK_MONOTONIC);
}

uint64_t kr_loop_turns(const struct kr_loop *loop)
{
    return loop->turns;
}

int64_t kr_loop_take_lag_ms(struct kr_loop *loop)
{
    int64_t lag_us = loop->lag_us;

    loop->lag_us = 0;
    return lag_us / 1000;
}

static struct ev_io *io_of(struct kr_fd *f)
{
    return (struct ev_io *)(void *)f->watcher;
}

static void on_io(struct ev_loop *ev, struct ev_io *w, int events)
{
    struct kr_fd *f = w->data;
    unsigned ready = 0;

    (void)ev;
    if (events & EV_READ)
        ready |= KR_FD_READ;
    if (events & EV_WRITE)
        ready |= KR_FD_WRITE;
    f->on_ready(f, ready & f->interest);
}

void kr_fd_init(struct kr_fd *f, struct kr_loop *loop, int fd,
                void (*on_ready)(struct kr_fd *f, unsigned events))
{
    *f = (struct kr_fd){.on_ready = on_ready, .loop = loop, .fd = fd};
    ev_io_init(io_of(f), on_io, fd, 0);
    io_of(f)->data = f;
}

void kr_fd_set(struct kr_fd *f, unsigned interest)
{
    int events = 0;

    if (interest == f->interest)
        return;
    if (f->interest != 0)
        ev_io_stop(f->loop->ev, io_of(f));
    f->interest = interest;
    if (interest == 0)
        return;
    if (interest & KR_FD_READ)
        events |= EV_READ;
    if (interest & KR_FD_WRITE)
        events |= EV_WRITE;
    ev_io_modify(io_of(f), events);
    ev_io_start(f->loop->ev, io_of(f));
}

static void on_ev_signal(struct ev_loop *ev, struct ev_signal *w, int events)
{
    struct signal_watch *s = w->data;

    (void)ev, (void)events;
    s->on_signal(s->owner, w->signum);
}

int kr_loop_on_signal(struct kr_loop *loop, int signum, void (*on_signal)(void *owner, int signum),
                      void *owner)
{
    struct signal_watch *s;

    if (loop->signal_count == SIGNALS_MAX)
        return KR_EFULL;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return KR_ENOMEM;
    s->on_signal = on_signal;
    s->owner = owner;
    ev_signal_init(&s->watcher, on_ev_signal, signum);
    s->watcher.data = s;
    ev_signal_start(loop->ev, &s->watcher);
    loop->signals[loop->signal_count++] = s;
    return 0;
}

static struct ev_async *async_of(struct kr_wake *w)
{
    return (struct ev_async *)(void *)w->watcher;
}

static void on_async(struct ev_loop *ev, struct ev_async *a, int events)
{
    struct kr_wake *w = a->data;

    (void)ev, (void)events;
    w->on_wake(w);
}

void kr_wake_start(struct kr_wake *w, struct kr_loop *loop, void (*on_wake)(struct kr_wake *w))
{
    *w = (struct kr_wake){.on_wake = on_wake, .loop = loop};
    ev_async_init(async_of(w), on_async);
    async_of(w)->data = w;
    ev_async_start(loop->ev, async_of(w));
}

void kr_wake_stop(struct kr_wake *w)
{
    if (w->loop != NULL)
        ev_async_stop(w->loop->ev, async_of(w));
}

void kr_wake_send(struct kr_wake *w)
{
    ev_async_send(w->loop->ev, async_of(w));
}
