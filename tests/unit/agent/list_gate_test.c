/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/list_gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/assert.h"

enum { PLACES = 8 };

struct world {
    struct kr_sched sched;
    struct agent_list_gate gate;
    struct agent_list_place places[PLACES];
};

static struct agent_list_place *granted[2 * PLACES];
static size_t granted_count;

static void on_granted(struct agent_list_place *p)
{
    granted[granted_count++] = p;
}

static void set_up(struct world *w)
{
    *w = (struct world){0};
    kr_sched_init(&w->sched, 0, 0);
    agent_list_gate_init(&w->gate, &w->sched);
    granted_count = 0;
    for (size_t i = 0; i < PLACES; i++)
        w->places[i].on_granted = on_granted;
}

static void run(struct world *w)
{
    kr_sched_run(&w->sched, 0, 0);
}

static void tear_down(struct world *w)
{
    for (size_t i = 0; i < PLACES; i++)
        agent_list_place_leave(&w->places[i]);
    run(w);
    agent_list_gate_deinit(&w->gate);
    kr_sched_deinit(&w->sched);
}

static void test_four_are_let_in_and_the_rest_as_places_come_free(void **state)
{
    struct world w;

    (void)state;
    set_up(&w);
    for (size_t i = 0; i < PLACES; i++)
        agent_list_place_ask(&w.gate, &w.places[i]);
    assert_int_equal(granted_count, 0); /* never from inside the call */
    run(&w);
    assert_int_equal(granted_count, 4);
    agent_list_place_leave(&w.places[1]);
    run(&w);
    assert_int_equal(granted_count, 5);
    assert_ptr_equal(granted[4], &w.places[4]);
    agent_list_place_leave(&w.places[1]); /* once more is nothing */
    run(&w);
    assert_int_equal(granted_count, 5);
    tear_down(&w);
}

static void test_the_lowest_priority_number_goes_first(void **state)
{
    struct world w;

    (void)state;
    set_up(&w);
    for (uint32_t i = 0; i < PLACES; i++) {
        w.places[i].priority = i == 6 ? 1 : 10;
        agent_list_place_ask(&w.gate, &w.places[i]);
    }
    run(&w);
    assert_ptr_equal(granted[0], &w.places[6]);
    assert_ptr_equal(granted[1], &w.places[0]);
    tear_down(&w);
}

static void test_who_leaves_the_queue_is_not_called(void **state)
{
    struct world w;

    (void)state;
    set_up(&w);
    agent_list_place_ask(&w.gate, &w.places[0]);
    agent_list_place_leave(&w.places[0]);
    run(&w);
    assert_int_equal(granted_count, 0);
    assert_int_equal(w.gate.used, 0);
    tear_down(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_four_are_let_in_and_the_rest_as_places_come_free),
        cmocka_unit_test(test_the_lowest_priority_number_goes_first),
        cmocka_unit_test(test_who_leaves_the_queue_is_not_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
