/* SPDX-License-Identifier: Apache-2.0 */
/* How Sync goes on after a tunnel, an agent or a hub was gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sync_world.h"

static void test_a_tunnel_that_comes_back_unchanged_costs_next_to_nothing(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    say(x, t, bookmark_of(&x->t, "250", false));
    cut(x);
    call(x, &x->pods);
    assert_int_equal(x->k.ends, 1); /* at once */
    answer_look(x, "251");
    assert_true(turn_asks(x->w.api.turns[x->w.api.n - 1], "resourceVersion=250&"));
    run(x, 0);
    assert_int_equal(x->k.upserts, 0);
    assert_int_equal(x->k.wants, 0);
    assert_in_range(x->k.bytes, 1, 100);
    tear_down(x);
}

static void test_an_agent_that_starts_anew_sends_only_what_differs(void **state)
{
    struct world *x = set_up();
    const struct pod now[] = {a2, b1, c1};

    (void)state;
    synced(x);
    cut(x);
    agent_sync_destroy(&x->w.c); /* it forgets everything */
    assert_int_equal(agent_sync_create(&x->w.c), 0);
    call(x, &x->pods);
    answer_list(x, now, 3, "300"); /* counts */
    assert_int_equal(x->k.upserts, 0);
    assert_int_equal(x->k.ends, 0);
    assert_int_equal(x->k.wants, 2); /* the buckets of a and c */
    answer_list(x, now, 3, "301");
    assert_int_equal(x->k.upserts, 2);
    assert_int_equal(x->k.deletes, 0);
    assert_int_equal(x->k.ends, 1);
    assert_int_equal(x->hub.n, 3);
    tear_down(x);
}

static void test_an_agent_that_starts_anew_deletes_what_went_meanwhile(void **state)
{
    struct world *x = set_up();

    (void)state;
    synced(x);
    cut(x);
    agent_sync_destroy(&x->w.c);
    assert_int_equal(agent_sync_create(&x->w.c), 0);
    call(x, &x->pods);
    answer_list(x, &b1, 1, "300");
    answer_list(x, &b1, 1, "301");
    assert_int_equal(x->k.upserts, 0);
    assert_int_equal(x->k.deletes, 1);
    assert_int_equal(x->hub.n, 1);
    tear_down(x);
}

static void test_an_agent_that_starts_anew_sends_nothing_if_nothing_differs(void **state)
{
    struct world *x = set_up();
    const struct pod both[] = {a_beat, b1};

    (void)state;
    synced(x);
    cut(x);
    agent_sync_destroy(&x->w.c);
    assert_int_equal(agent_sync_create(&x->w.c), 0);
    call(x, &x->pods);
    answer_list(x, both, 2, "300");
    assert_int_equal(x->k.upserts, 0);
    assert_int_equal(x->k.wants, 0);
    assert_int_equal(x->k.ends, 1);
    assert_string_equal(x->hub.version, "300");
    tear_down(x);
}

static void test_changes_that_were_lost_with_the_tunnel_are_caught_up_with(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    turn_say(t, event_of(&x->t, "MODIFIED", &a2)); /* never reaches the hub */
    turn_say(t, event_of(&x->t, "DELETED", &b_end));
    x->calling = false;
    hub_call_cut(&x->k);
    run(x, 0);
    assert_string_equal(x->hub.version, "200");
    call(x, &x->pods);
    assert_int_equal(x->k.wants, 2);
    assert_int_equal(x->k.ends, 0); /* not yet what the API server has */
    t = answer_look(x, "251");
    assert_true(turn_asks(t, "resourceVersion=200&"));
    say(x, t, event_of(&x->t, "MODIFIED", &a2));
    say(x, t, event_of(&x->t, "DELETED", &b_end));
    assert_int_equal(x->k.upserts, 1);
    assert_int_equal(x->k.deletes, 1);
    assert_int_equal(x->k.ends, 1);
    assert_int_equal(x->hub.n, 1);
    tear_down(x);
}

/* The hub has more than it was told to have reached: watchers must not see it twice, nor backwards.
 */
static void test_what_the_hub_has_seen_is_not_shown_again_while_catching_up(void **state)
{
    static const struct pod a3 = {"d", "a", "u1", "215", "i3"};
    static const struct pod b_last = {"d", "b", "u2", "220", "i1"};
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    say(x, t, event_of(&x->t, "MODIFIED", &a2));
    say(x, t, event_of(&x->t, "MODIFIED", &a3));
    turn_say(t, event_of(&x->t, "DELETED", &b_last)); /* never reaches the hub */
    x->calling = false;
    hub_call_cut(&x->k);
    run(x, 0);
    snprintf(x->hub.version, sizeof x->hub.version, "200"); /* nor did any progress */
    call(x, &x->pods);
    assert_int_equal(x->k.wants, 1);
    t = answer_look(x, "221");
    assert_true(turn_asks(t, "resourceVersion=200&"));
    say(x, t, event_of(&x->t, "MODIFIED", &a2));
    assert_non_null(strstr(hub_object(&x->hub, "d", "a")->plain, "i3"));
    say(x, t, event_of(&x->t, "MODIFIED", &a3));
    say(x, t, event_of(&x->t, "DELETED", &b_last));
    assert_non_null(strstr(hub_object(&x->hub, "d", "a")->plain, "i3"));
    assert_int_equal(x->hub.backwards, 0);
    assert_int_equal(x->k.deletes, 1);
    assert_int_equal(x->k.ends, 1);
    assert_int_equal(x->hub.n, 1);
    tear_down(x);
}

/* What is held back must not hide that the API server refuses. */
static void test_a_problem_is_told_while_catching_up(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    turn_say(t, event_of(&x->t, "MODIFIED", &a2)); /* never reaches the hub */
    x->calling = false;
    hub_call_cut(&x->k);
    run(x, 0);
    call(x, &x->pods);
    turn_answer(next(x), 403, "{}");
    run(x, 0);
    assert_int_equal(x->k.problems, 1);
    assert_int_equal(x->k.problem, KR_SYNC_FORBIDDEN);
    tear_down(x);
}

static void test_a_hub_that_lost_everything_gets_all(void **state)
{
    struct world *x = set_up();
    const struct pod both[] = {a1, b1};

    (void)state;
    synced(x);
    cut(x);
    x->hub.n = 0;
    call(x, &x->pods);
    answer_list(x, both, 2, "300");
    assert_int_equal(x->k.upserts, 2);
    assert_int_equal(x->k.ends, 1);
    tear_down(x);
}

static void test_a_hub_that_holds_something_else_is_put_right(void **state)
{
    struct world *x = set_up();
    const struct pod both[] = {a1, b1};

    (void)state;
    synced(x);
    cut(x);
    x->hub.held[0].hash ^= 1; /* a bit flipped */
    snprintf(x->hub.held[x->hub.n].name, 64, "ghost");
    x->hub.held[x->hub.n++].key = 42;
    call(x, &x->pods);
    answer_list(x, both, 2, "300");
    assert_int_equal(x->k.upserts, 1);
    assert_int_equal(x->k.deletes, 1);
    assert_int_equal(x->hub.n, 2);
    tear_down(x);
}

static void test_what_is_kept_goes_ten_minutes_after_its_last_use(void **state)
{
    struct world *x = set_up();
    const struct pod both[] = {a1, b1};

    (void)state;
    synced(x);
    cut(x);
    run(x, 700000);
    call(x, &x->pods);
    answer_list(x, both, 2, "300"); /* so it has to count */
    assert_int_equal(x->k.upserts, 0);
    assert_int_equal(x->k.ends, 1);
    tear_down(x);
}

static void test_two_hubs_are_served_for_themselves(void **state)
{
    struct world *x = set_up();
    static struct hub other;
    static struct hub_call k;
    const struct pod both[] = {a1, b1};
    struct agent_sync_view view;

    (void)state;
    synced(x);
    hub_init(&other);
    hub_call_init(&k, &other, &x->w.c, "hub-2");
    hub_open(&k, &x->pods);
    run(x, 0);
    answer_list(x, both, 2, "200");
    fake_pump(&k.wire, 4096);
    assert_int_equal(k.upserts, 2);
    assert_int_equal(x->k.upserts, 2);
    assert_false(agent_sync_find(&x->w.c, 7, &view)); /* both chose the same number */
    hub_call_cut(&k);
    run(x, 0);
    assert_true(agent_sync_find(&x->w.c, 7, &view));
    assert_false(agent_sync_find(&x->w.c, 8, &view));
    hub_deinit(&other);
    tear_down(x);
}

static void test_a_second_call_for_the_same_ends_the_first(void **state)
{
    struct world *x = set_up();
    static struct hub_call k;

    (void)state;
    synced(x);
    hub_call_init(&k, &x->hub, &x->w.c, "hub-1");
    hub_open(&k, &x->pods);
    run(x, 0);
    assert_true(x->k.ended);
    fake_pump(&k.wire, 4096);
    assert_int_equal(k.ends, 1);
    answer_look(x, "201");
    hub_call_cut(&k);
    tear_down(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tunnel_that_comes_back_unchanged_costs_next_to_nothing),
        cmocka_unit_test(test_an_agent_that_starts_anew_sends_only_what_differs),
        cmocka_unit_test(test_an_agent_that_starts_anew_deletes_what_went_meanwhile),
        cmocka_unit_test(test_an_agent_that_starts_anew_sends_nothing_if_nothing_differs),
        cmocka_unit_test(test_changes_that_were_lost_with_the_tunnel_are_caught_up_with),
        cmocka_unit_test(test_what_the_hub_has_seen_is_not_shown_again_while_catching_up),
        cmocka_unit_test(test_a_problem_is_told_while_catching_up),
        cmocka_unit_test(test_a_hub_that_lost_everything_gets_all),
        cmocka_unit_test(test_a_hub_that_holds_something_else_is_put_right),
        cmocka_unit_test(test_what_is_kept_goes_ten_minutes_after_its_last_use),
        cmocka_unit_test(test_two_hubs_are_served_for_themselves),
        cmocka_unit_test(test_a_second_call_for_the_same_ends_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
