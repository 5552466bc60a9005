/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sched.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/rand.h"

struct probe {
    struct kr_timer timer;
    struct kr_task task;
    struct kr_sched *sched;
    struct kr_task *post;
    int64_t fired_ms;
    int runs;
    char *trace;
    char mark;
};

static void on_timer(struct kr_timer *t)
{
    struct probe *p = KR_CONTAINER_OF(t, struct probe, timer);

    p->runs++;
    p->fired_ms = p->sched->now_ms;
    assert_true(p->fired_ms >= t->due_ms);
}

static void on_task(struct kr_task *t)
{
    struct probe *p = KR_CONTAINER_OF(t, struct probe, task);

    p->runs++;
    if (p->trace != NULL)
        strncat(p->trace, &p->mark, 1);
    if (p->post != NULL)
        kr_task_post(p->sched, p->post);
    p->post = NULL;
}

static void test_timers_fire_when_due_and_once(void **state)
{
    struct kr_sched s;
    struct probe p = {.sched = &s};

    (void)state;
    kr_sched_init(&s, 1000, 5000);
    kr_timer_init(&p.timer, on_timer);
    assert_int_equal(kr_timer_start(&s, &p.timer, 100), 0);
    assert_int_equal(kr_sched_run(&s, 1099, 5099), 1);
    assert_int_equal(p.runs, 0);
    assert_int_equal(kr_sched_run(&s, 1100, 5100), -1);
    assert_int_equal(p.runs, 1);
    assert_false(kr_timer_running(&p.timer));
    assert_int_equal(s.now_wall_ms, 5100);
    kr_sched_deinit(&s);
}

static void test_restart_moves_a_running_timer(void **state)
{
    struct kr_sched s;
    struct probe p = {.sched = &s};

    (void)state;
    kr_sched_init(&s, 0, 0);
    kr_timer_init(&p.timer, on_timer);
    assert_int_equal(kr_timer_start(&s, &p.timer, 10), 0);
    assert_int_equal(kr_timer_start(&s, &p.timer, 50), 0);
    assert_int_equal(kr_sched_run(&s, 20, 0), 30);
    assert_int_equal(kr_timer_start(&s, &p.timer, 5), 0);
    kr_sched_run(&s, 25, 0);
    assert_int_equal(p.runs, 1);
    kr_timer_stop(&s, &p.timer);
    kr_timer_stop(&s, &p.timer);
    kr_sched_deinit(&s);
}

static void test_many_timers_fire_in_time_whatever_the_order(void **state)
{
    enum { N = 500 };
    struct probe *p = calloc(N, sizeof *p);
    struct kr_sched s;
    struct kr_rand r;

    (void)state;
    assert_non_null(p);
    kr_rand_seed(&r, 7);
    kr_sched_init(&s, 0, 0);
    for (int i = 0; i < N; i++) {
        p[i].sched = &s;
        kr_timer_init(&p[i].timer, on_timer);
        assert_int_equal(kr_timer_start(&s, &p[i].timer, kr_rand_ms(&r, 1, 1000)), 0);
    }
    for (int i = 0; i < N; i += 3)
        kr_timer_stop(&s, &p[i].timer);
    for (int i = 1; i < N; i += 3)
        assert_int_equal(kr_timer_start(&s, &p[i].timer, kr_rand_ms(&r, 1, 1000)), 0);
    for (int64_t now = 0; now <= 1000; now++)
        kr_sched_run(&s, now, now);
    for (int i = 0; i < N; i++) {
        assert_int_equal(p[i].runs, i % 3 != 0);
        if (p[i].runs != 0)
            assert_int_equal(p[i].fired_ms, p[i].timer.due_ms);
    }
    kr_sched_deinit(&s);
    free(p);
}

static void test_post_last_runs_after_tasks_posted_meanwhile(void **state)
{
    char trace[8] = "";
    struct kr_sched s;
    struct probe a = {.sched = &s, .trace = trace, .mark = 'a'};
    struct probe b = {.sched = &s, .trace = trace, .mark = 'b'};
    struct probe last = {.sched = &s, .trace = trace, .mark = 'z'};

    (void)state;
    kr_sched_init(&s, 0, 0);
    kr_task_init(&a.task, on_task);
    kr_task_init(&b.task, on_task);
    kr_task_init(&last.task, on_task);
    a.post = &b.task;
    kr_task_post_last(&s, &last.task);
    kr_task_post(&s, &a.task);
    kr_task_post(&s, &a.task);
    kr_sched_run(&s, 0, 0);
    assert_string_equal(trace, "abz");
    kr_sched_deinit(&s);
}

static void test_cancel_takes_a_posted_task_back(void **state)
{
    struct kr_sched s;
    struct probe p = {.sched = &s};

    (void)state;
    kr_sched_init(&s, 0, 0);
    kr_task_init(&p.task, on_task);
    kr_task_post(&s, &p.task);
    kr_task_cancel(&p.task);
    kr_sched_run(&s, 0, 0);
    assert_int_equal(p.runs, 0);
    kr_sched_deinit(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_fire_when_due_and_once),
        cmocka_unit_test(test_restart_moves_a_running_timer),
        cmocka_unit_test(test_many_timers_fire_in_time_whatever_the_order),
        cmocka_unit_test(test_post_last_runs_after_tasks_posted_meanwhile),
        cmocka_unit_test(test_cancel_takes_a_posted_task_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
