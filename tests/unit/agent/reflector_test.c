/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/reflector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reflector_world.h"

/* ---- the happy path */

static void test_a_server_with_watch_list_is_asked_for_all_in_a_watch(void **state)
{
    struct world *x = set_up("v1.34.1");
    struct turn *t = next(x);

    (void)state;
    assert_true(strncmp(t->path, "/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29&", 48) == 0);
    assert_true(turn_asks(t, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"));
    assert_true(turn_asks(t, "allowWatchBookmarks=true"));
    assert_true(turn_asks(t, "includeObject=Object"));
    assert_string_equal(t->accept, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    turn_head(t, 200, NULL, NULL);
    turn_say(t, event_of(&x->t, "ADDED", &a1));
    assert_int_equal(x->lists, 1);
    assert_int_equal(x->objects, 1);
    assert_int_equal(x->cells, 1);
    assert_true(version_is(x, "")); /* nothing is known of order yet */
    turn_say(t, bookmark_of(&x->t, "200", true));
    assert_int_equal(x->list_ends, 1);
    assert_true(version_is(x, "200"));
    turn_say(t, event_of(&x->t, "MODIFIED", &a2));
    assert_true(version_is(x, "210"));
    assert_int_equal(x->objects, 2);
    assert_int_equal(t->owed, 0);
    tear_down(x);
}

static void test_a_watch_list_that_is_refused_is_followed_by_pages_at_once(void **state)
{
    const int codes[] = {422, 400};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world *x = set_up("v1.33.0");

        turn_answer(next(x), codes[i], status_of(&x->t, codes[i], "Invalid"));
        listed(x);
        assert_int_equal(x->list_ends, 1);
        assert_int_equal(x->problems, 0);
        tear_down(x);
    }
}

static void test_an_old_server_is_not_asked_for_a_watch_list(void **state)
{
    struct world *x = set_up("v1.27.4");

    (void)state;
    listed(x);
    tear_down(x);
}

static void test_a_watch_list_without_its_mark_is_followed_by_pages(void **state)
{
    struct world *x = set_up("v1.33.0");
    struct turn *t = next(x);

    (void)state;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, event_of(&x->t, "ADDED", &a1));
    turn_say(t, bookmark_of(&x->t, "200", false));
    assert_true(t->aborted);
    assert_int_equal(x->list_ends, 0);
    t = later(x);
    assert_true(turn_asks(t, "limit=500"));
    tear_down(x);
}

static void test_a_watch_list_that_falls_silent_is_given_up(void **state)
{
    struct world *x = set_up("v1.33.0");
    struct turn *t = next(x);

    (void)state;
    for (int i = 0; i < 2; i++) {
        turn_head(t, 200, NULL, NULL);
        turn_say(t, event_of(&x->t, "ADDED", &a1));
        api_world_run(&x->w, 30001);
        assert_true(t->aborted);
        t = later(x);
    }
    assert_true(turn_asks(t, "limit=500")); /* twice was enough */
    tear_down(x);
}

static void test_pages_are_read_to_the_end(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    turn_answer(t, 200, table_of(&x->t, &a1, 1, "200", "abc+/="));
    t = next(x);
    assert_true(turn_asks(t, "limit=500&continue=abc%2B%2F%3D&"));
    assert_int_equal(x->list_ends, 0);
    turn_answer(t, 200, table_of(&x->t, &b1, 1, "200", ""));
    assert_int_equal(x->lists, 1);
    assert_int_equal(x->list_ends, 1);
    assert_int_equal(x->objects, 2);
    assert_true(turn_asks(next(x), "watch=true"));
    tear_down(x);
}

static void test_a_watch_that_ends_goes_on_from_its_last_bookmark(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, bookmark_of(&x->t, "300", false));
    assert_int_equal(x->bookmarks, 1);
    turn_done(t, 0);
    t = next(x); /* first whether the server is where it was */
    assert_true(turn_asks(t, "limit=1&includeObject=None"));
    turn_answer(t, 200, glance_of(&x->t, "301"));
    t = next(x);
    assert_true(turn_asks(t, "resourceVersion=300&"));
    assert_int_equal(x->lists, 1);
    tear_down(x);
}

static void test_deleted_events_are_told_with_their_object(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, event_of(&x->t, "DELETED", &a2));
    assert_int_equal(x->gone, 1);
    assert_non_null(strstr(x->last, "\"name\":\"a\""));
    assert_true(version_is(x, "210"));
    tear_down(x);
}

static void test_bytes_may_come_one_by_one(void **state)
{
    struct world *x = set_up("v1.33.0");
    struct turn *t = next(x);

    (void)state;
    turn_head(t, 200, NULL, NULL);
    event_of(&x->t, "ADDED", &a1);
    for (size_t i = 0; i < x->t.n; i++)
        turn_bytes(t, x->t.s + i, 1);
    bookmark_of(&x->t, "200", true);
    for (size_t i = 0; i < x->t.n; i++)
        turn_bytes(t, x->t.s + i, 1);
    assert_int_equal(x->objects, 1);
    assert_int_equal(x->list_ends, 1);
    tear_down(x);
}

/* ---- forms */

static void test_406_is_followed_by_plain_json(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    turn_answer(t, 406, status_of(&x->t, 406, "NotAcceptable"));
    t = next(x);
    assert_string_equal(t->accept, "application/json");
    assert_false(turn_asks(t, "includeObject"));
    turn_answer(t, 200, list_of(&x->t, &a1, 1, "200"));
    assert_int_equal(x->list_ends, 1);
    assert_int_equal(x->objects, 1);
    assert_int_equal(x->cells, 0);
    assert_int_equal(x->columns, 0);
    tear_down(x);
}

static void test_rows_without_whole_objects_are_followed_by_plain_json(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"5\"},"
                "\"columnDefinitions\":" POD_COLUMNS
                ",\"rows\":[{\"cells\":[\"a\"],\"object\":{\"kind\":"
                "\"PartialObjectMetadata\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}}]}");
    assert_true(t->aborted);
    assert_int_equal(x->objects, 0);
    t = later(x);
    assert_string_equal(t->accept, "application/json");
    tear_down(x);
}

/* ---- back-pressure, places, stopping */

static void test_nothing_is_consumed_while_the_owner_is_full(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    x->full = true;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, table_of(&x->t, &a1, 1, "200", "abc"));
    assert_int_equal(t->owed, t->given);
    api_world_run(&x->w, 600000); /* it is not the server that is silent */
    assert_false(t->aborted);
    turn_done(t, 0);
    assert_int_equal(x->w.api.n, x->w.api.looked); /* the next page waits, too */
    x->full = false;
    agent_reflector_read_on(&x->r);
    assert_true(turn_asks(next(x), "continue=abc"));
    tear_down(x);
}

static void test_credit_returns_when_the_owner_has_room(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    x->full = true;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, event_of(&x->t, "MODIFIED", &a2));
    assert_int_not_equal(t->owed, 0);
    agent_reflector_read_on(&x->r);
    assert_int_equal(t->owed, 0);
    tear_down(x);
}

static void test_a_list_that_is_held_up_gives_its_place_to_others(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    assert_int_equal(x->gate.used, 1);
    x->full = true;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, table_of(&x->t, &a1, 1, "200", "abc"));
    api_world_run(&x->w, 10000);
    assert_int_equal(x->gate.used, 0);
    turn_done(t, 0);
    x->full = false;
    agent_reflector_read_on(&x->r);
    turn_answer(next(x), 200, table_of(&x->t, &b1, 1, "200", ""));
    assert_int_equal(x->list_ends, 1);
    next(x);
    tear_down(x);
}

static void test_an_owner_may_stop_from_within_the_end_of_a_list(void **state)
{
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        struct world *x = set_up(stream ? "v1.33.0" : "v1.20.0");
        struct turn *t = next(x);

        x->stop_at_end = true;
        turn_head(t, 200, NULL, NULL);
        if (stream) {
            bookmark_of(&x->t, "200", true);
            strcat(x->t.s, "{\"type\":\"ADDED\"");
            turn_say(t, x->t.s);
            assert_true(t->aborted);
        } else {
            turn_say(t, table_of(&x->t, &a1, 1, "200", ""));
            turn_done(t, 0);
        }
        assert_int_equal(x->list_ends, 1);
        assert_int_equal(x->r.state, AGENT_REFLECTOR_IDLE);
        agent_reflector_start(&x->r, KR_LIT("")); /* and begin again */
        api_world_run(&x->w, 0);
        next(x);
        tear_down(x);
    }
}

static void test_a_start_from_a_version_only_looks_and_watches(void **state)
{
    struct world *x = set_up("v1.20.0");

    (void)state;
    next(x);
    agent_reflector_start(&x->r, KR_LIT("180"));
    api_world_run(&x->w, 0);
    turn_answer(next(x), 200, glance_of(&x->t, "200"));
    assert_true(turn_asks(next(x), "resourceVersion=180&"));
    assert_int_equal(x->lists, 0);
    tear_down(x);
}

static void test_after_hours_of_watching_it_lists_once(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    for (int i = 0; i < 80; i++) {
        turn_head(t, 200, NULL, NULL);
        api_world_run(&x->w, 280000);
        turn_say(t, bookmark_of(&x->t, "200", false));
        turn_done(t, 0);
        api_world_run(&x->w, 0);
        t = next(x);
        if (turn_asks(t, "limit=500"))
            break;
        turn_answer(t, 200, glance_of(&x->t, "200"));
        t = next(x);
    }
    assert_true(turn_asks(t, "limit=500"));
    assert_int_equal(api_world_counter(&x->w, AGENT_RELISTS, "resync"), 1);
    tear_down(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_server_with_watch_list_is_asked_for_all_in_a_watch),
        cmocka_unit_test(test_a_watch_list_that_is_refused_is_followed_by_pages_at_once),
        cmocka_unit_test(test_an_old_server_is_not_asked_for_a_watch_list),
        cmocka_unit_test(test_a_watch_list_without_its_mark_is_followed_by_pages),
        cmocka_unit_test(test_a_watch_list_that_falls_silent_is_given_up),
        cmocka_unit_test(test_pages_are_read_to_the_end),
        cmocka_unit_test(test_a_watch_that_ends_goes_on_from_its_last_bookmark),
        cmocka_unit_test(test_deleted_events_are_told_with_their_object),
        cmocka_unit_test(test_bytes_may_come_one_by_one),
        cmocka_unit_test(test_406_is_followed_by_plain_json),
        cmocka_unit_test(test_rows_without_whole_objects_are_followed_by_plain_json),
        cmocka_unit_test(test_nothing_is_consumed_while_the_owner_is_full),
        cmocka_unit_test(test_credit_returns_when_the_owner_has_room),
        cmocka_unit_test(test_a_list_that_is_held_up_gives_its_place_to_others),
        cmocka_unit_test(test_an_owner_may_stop_from_within_the_end_of_a_list),
        cmocka_unit_test(test_a_start_from_a_version_only_looks_and_watches),
        cmocka_unit_test(test_after_hours_of_watching_it_lists_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
