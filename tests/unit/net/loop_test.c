/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"

struct seen {
    struct kr_loop *loop;
    struct kr_fd fd;
    struct kr_task task;
    struct kr_task last;
    struct kr_timer timer;
    struct kr_wake wake;
    char order[64];
    int count;
    int64_t at_ms;
};

static void mark(struct seen *s, const char *what)
{
    strcat(s->order, what);
}

static void on_ready(struct kr_fd *f, unsigned events)
{
    struct seen *s = KR_CONTAINER_OF(f, struct seen, fd);
    char in[10];

    assert_int_equal(events, KR_FD_READ);
    assert_true(read(f->fd, in, sizeof in) > 0);
    mark(s, "e");
    kr_task_post_last(kr_loop_sched(s->loop), &s->last);
    kr_task_post(kr_loop_sched(s->loop), &s->task);
}

static void on_task(struct kr_task *t)
{
    mark(KR_CONTAINER_OF(t, struct seen, task), "t");
}

static void on_last(struct kr_task *t)
{
    struct seen *s = KR_CONTAINER_OF(t, struct seen, last);

    mark(s, "l");
    kr_loop_stop(s->loop);
}

static void seen_init(struct seen *s)
{
    *s = (struct seen){.loop = kr_loop_create(NULL)};
    assert_non_null(s->loop);
    kr_task_init(&s->task, on_task);
    kr_task_init(&s->last, on_last);
}

static void test_turn_then_events_come_before_tasks_and_last_tasks_last(void **state)
{
    struct seen s;
    int fds[2];

    (void)state;
    seen_init(&s);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    kr_fd_init(&s.fd, s.loop, fds[0], on_ready);
    kr_fd_set(&s.fd, KR_FD_READ);
    assert_int_equal(write(fds[1], "x", 1), 1);
    kr_loop_run(s.loop);
    assert_string_equal(s.order, "etl");
    kr_fd_stop(&s.fd);
    assert_int_equal(write(fds[1], "x", 1), 1);
    kr_loop_turn(s.loop, 1);
    assert_string_equal(s.order, "etl");
    close(fds[0]);
    close(fds[1]);
    kr_loop_destroy(s.loop);
}

static void on_timer(struct kr_timer *t)
{
    struct seen *s = KR_CONTAINER_OF(t, struct seen, timer);

    s->at_ms = kr_loop_sched(s->loop)->now_ms;
    kr_loop_stop(s->loop);
}

static void test_timer_then_never_early_and_loop_sleeps_until_then(void **state)
{
    struct seen s;
    int64_t start;

    (void)state;
    seen_init(&s);
    kr_timer_init(&s.timer, on_timer);
    for (int after = 0; after <= 20; after += 10) {
        start = kr_loop_sched(s.loop)->now_ms;
        assert_int_equal(kr_timer_start(kr_loop_sched(s.loop), &s.timer, after), 0);
        kr_loop_run(s.loop);
        assert_true(s.at_ms >= start + after);
    }
    kr_loop_destroy(s.loop);
}

static void on_late_event(struct kr_fd *f, unsigned events)
{
    struct seen *s = KR_CONTAINER_OF(f, struct seen, fd);

    (void)events;
    kr_fd_stop(f);
    assert_int_equal(kr_timer_start(kr_loop_sched(s->loop), &s->timer, 30), 0);
    s->count = (int)kr_loop_sched(s->loop)->now_ms;
}

static void on_far_timer(struct kr_timer *t)
{
    (void)t;
}

static void *write_later(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 60 * 1000000}, NULL);
    assert_int_equal(write(*(int *)arg, "x", 1), 1);
    return NULL;
}

/* A clock from before the wait would let the timer fire at once. */
static void test_timer_started_from_an_event_after_a_long_wait_then_counted_from_now(void **state)
{
    struct kr_timer far;
    pthread_t thread;
    struct seen s;
    int64_t start;
    int fds[2];

    (void)state;
    seen_init(&s);
    kr_timer_init(&s.timer, on_timer);
    kr_timer_init(&far, on_far_timer);
    assert_int_equal(kr_timer_start(kr_loop_sched(s.loop), &far, 5000), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    kr_fd_init(&s.fd, s.loop, fds[0], on_late_event);
    kr_fd_set(&s.fd, KR_FD_READ);
    start = kr_loop_sched(s.loop)->now_ms;
    assert_int_equal(pthread_create(&thread, NULL, write_later, &fds[1]), 0);
    kr_loop_run(s.loop);
    pthread_join(thread, NULL);
    assert_true(s.at_ms >= start + 60 + 30 - 1);
    assert_true(s.at_ms < start + 4000);
    kr_timer_stop(kr_loop_sched(s.loop), &far);
    close(fds[0]);
    close(fds[1]);
    kr_loop_destroy(s.loop);
}

static void on_again(struct kr_task *t)
{
    struct seen *s = KR_CONTAINER_OF(t, struct seen, task);

    if (++s->count < 5)
        kr_loop_post_next(s->loop, t);
    else
        kr_loop_stop(s->loop);
}

static void test_post_next_then_one_run_a_turn_without_waiting(void **state)
{
    struct seen s;

    (void)state;
    seen_init(&s);
    kr_task_init(&s.task, on_again);
    kr_loop_post_next(s.loop, &s.task);
    kr_loop_turn(s.loop, 1000);
    assert_in_range(s.count, 1, 2);
    kr_loop_run(s.loop);
    assert_int_equal(s.count, 5);
    kr_loop_post_next(s.loop, &s.task);
    kr_task_cancel(&s.task);
    kr_loop_turn(s.loop, 0);
    assert_int_equal(s.count, 5);
    kr_loop_destroy(s.loop);
}

static void on_wake(struct kr_wake *w)
{
    struct seen *s = KR_CONTAINER_OF(w, struct seen, wake);

    if (__atomic_add_fetch(&s->count, 1, __ATOMIC_RELAXED) == 3)
        kr_loop_stop(s->loop);
}

static void *send_wakes(void *arg)
{
    struct seen *s = arg;

    for (int i = 0; i < 1000 && __atomic_load_n(&s->count, __ATOMIC_RELAXED) < 3; i++) {
        kr_wake_send(&s->wake);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

static void test_wake_from_another_thread_then_called_on_the_loop(void **state)
{
    pthread_t thread;
    struct seen s;

    (void)state;
    seen_init(&s);
    kr_wake_start(&s.wake, s.loop, on_wake);
    assert_int_equal(pthread_create(&thread, NULL, send_wakes, &s), 0);
    kr_loop_run(s.loop);
    pthread_join(thread, NULL);
    assert_int_equal(s.count, 3);
    kr_wake_stop(&s.wake);
    kr_loop_destroy(s.loop);
}

static void on_signal(void *owner, int signum)
{
    struct seen *s = owner;

    s->count = signum;
    kr_loop_stop(s->loop);
}

static void test_signal_then_called_on_the_loop(void **state)
{
    struct seen s;

    (void)state;
    seen_init(&s);
    assert_int_equal(kr_loop_on_signal(s.loop, SIGHUP, on_signal, &s), 0);
    raise(SIGHUP);
    kr_loop_run(s.loop);
    assert_int_equal(s.count, SIGHUP);
    kr_loop_destroy(s.loop);
}

static void on_slow(struct kr_task *t)
{
    (void)t;
    nanosleep(&(struct timespec){.tv_nsec = 30 * 1000000}, NULL);
}

static void test_lag_then_longest_turn_since_last_asked(void **state)
{
    struct seen s;

    (void)state;
    seen_init(&s);
    kr_loop_turn(s.loop, 0);
    kr_loop_take_lag_ms(s.loop);
    kr_task_init(&s.task, on_slow);
    kr_task_post(kr_loop_sched(s.loop), &s.task);
    kr_loop_turn(s.loop, 0);
    assert_true(kr_loop_take_lag_ms(s.loop) >= 29);
    assert_int_equal(kr_loop_take_lag_ms(s.loop), 0);
    kr_loop_destroy(s.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turn_then_events_come_before_tasks_and_last_tasks_last),
        cmocka_unit_test(test_timer_then_never_early_and_loop_sleeps_until_then),
        cmocka_unit_test(test_timer_started_from_an_event_after_a_long_wait_then_counted_from_now),
        cmocka_unit_test(test_post_next_then_one_run_a_turn_without_waiting),
        cmocka_unit_test(test_wake_from_another_thread_then_called_on_the_loop),
        cmocka_unit_test(test_signal_then_called_on_the_loop),
        cmocka_unit_test(test_lag_then_longest_turn_since_last_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
