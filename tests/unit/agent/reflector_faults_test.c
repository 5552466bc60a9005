/* SPDX-License-Identifier: Apache-2.0 */
/* What can go wrong between a reflector and its API server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reflector_world.h"

static void test_410_of_a_watch_in_either_form_is_followed_by_a_list(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct world *x = set_up("v1.20.0");
        struct turn *t = listed(x);

        if (form == 0) {
            turn_answer(t, 410, status_of(&x->t, 410, "Expired"));
        } else {
            turn_head(t, 200, NULL, NULL);
            turn_say(t, error_of(&x->t, 410, "Expired"));
            assert_true(t->aborted);
        }
        t = later(x);
        assert_true(turn_asks(t, "limit=500"));
        assert_false(turn_asks(t, "resourceVersion"));
        assert_int_equal(x->objects, 2); /* the Status was no object */
        turn_answer(t, 200, table_of(&x->t, &a1, 1, "400", ""));
        assert_int_equal(x->list_ends, 2);
        assert_int_equal(x->problems, 0);
        next(x);
        tear_down(x);
    }
}

static void test_410_of_a_page_begins_the_list_anew(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(turn_asks(t, "limit=500"));
        turn_answer(t, 200, table_of(&x->t, &a1, 1, "200", "abc"));
        turn_answer(next(x), 410, status_of(&x->t, 410, "Expired"));
        t = later(x);
        assert_false(turn_asks(t, "continue"));
    }
    assert_false(turn_asks(t, "limit=")); /* at last in one piece */
    turn_answer(t, 200, table_of(&x->t, &a1, 1, "200", ""));
    assert_int_equal(x->lists, 4);
    assert_int_equal(x->list_ends, 1);
    next(x);
    tear_down(x);
}

static void test_a_list_that_breaks_is_never_told_as_ended(void **state)
{
    static const char *const bodies[] = {
        "",
        "{",
        "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"5\"},\"rows\":[",
        "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"5\"},\"rows\":[]",
        "{\"kind\":\"Status\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}",
        "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}",
        "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[]}",
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"}}",
        "[]",
        "null",
    };
    static const int codes[] = {400, 401, 403, 405, 410, 418, 429, 500, 503, 504};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct world *x = set_up("v1.20.0");

        turn_answer(next(x), 200, bodies[i]);
        assert_int_equal(x->list_ends, 0);
        assert_int_equal(x->problem, KR_SYNC_FAILING);
        assert_true(turn_asks(later(x), "limit=500"));
        tear_down(x);
    }
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct world *x = set_up("v1.20.0");

        turn_answer(next(x), 200, table_of(&x->t, &a1, 1, "200", "abc"));
        turn_answer(next(x), codes[i], status_of(&x->t, codes[i], "X"));
        assert_int_equal(x->list_ends, 0);
        tear_down(x);
    }
}

static void test_a_list_that_is_cut_behind_its_last_object_is_not_ended(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    table_of(&x->t, &a1, 1, "200", "");
    turn_head(t, 200, NULL, NULL);
    turn_bytes(t, x->t.s, x->t.n - 3);
    turn_done(t, KR_ECONNLOST);
    assert_int_equal(x->objects, 1);
    assert_int_equal(x->list_ends, 0);
    t = later(x);
    turn_answer(t, 200, table_of(&x->t, &a1, 1, "200", ""));
    assert_int_equal(x->lists, 2);
    assert_int_equal(x->list_ends, 1);
    assert_int_equal(x->problem, KR_SYNC_OK);
    assert_int_equal(x->problems, 2);
    next(x);
    tear_down(x);
}

static void test_a_watch_that_breaks_keeps_its_version(void **state)
{
    static const int codes[] = {500, 503, 429};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct world *x = set_up("v1.20.0");
        struct turn *t = listed(x);

        if (i < 3) {
            turn_answer(t, codes[i], status_of(&x->t, codes[i], "X"));
        } else {
            turn_head(t, 200, NULL, NULL);
            turn_say(t, "{\"type\":\"MODI"); /* a partial event is thrown away */
            turn_done(t, KR_ERESET);
        }
        t = later(x);
        assert_true(turn_asks(t, "limit=1&"));
        turn_answer(t, 200, glance_of(&x->t, "200"));
        assert_true(turn_asks(next(x), "resourceVersion=200&"));
        assert_int_equal(x->objects, 2);
        assert_int_equal(x->problems, 0); /* once is nothing to tell */
        tear_down(x);
    }
}

static void test_429_waits_as_long_as_the_server_says(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    turn_head(t, 429, "retry-after", "17");
    turn_done(t, 0);
    api_world_run(&x->w, 16999);
    assert_int_equal(x->w.api.n, x->w.api.looked);
    api_world_run(&x->w, 1);
    assert_true(turn_asks(next(x), "limit=1&"));
    tear_down(x);
}

static void test_an_error_event_is_followed_by_one_more_watch_and_then_a_list(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, error_of(&x->t, 500, "InternalError"));
    turn_answer(later(x), 200, glance_of(&x->t, "200"));
    t = next(x);
    assert_true(turn_asks(t, "resourceVersion=200&"));
    turn_head(t, 200, NULL, NULL);
    turn_say(t, error_of(&x->t, 500, "InternalError"));
    assert_true(turn_asks(later(x), "limit=500"));
    tear_down(x);
}

static void test_a_version_that_runs_backwards_in_a_watch_is_followed_by_a_list(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);
    struct pod old = {"d", "c", "u9", "99", "i"};

    (void)state;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, event_of(&x->t, "ADDED", &old));
    assert_true(t->aborted);
    assert_int_equal(x->objects, 2);
    assert_true(turn_asks(later(x), "limit=500"));
    assert_int_equal(api_world_counter(&x->w, AGENT_RELISTS, "rewound"), 1);
    tear_down(x);
}

static void test_a_server_behind_our_version_is_listed_anew(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    turn_done(t, KR_ECONNLOST); /* etcd was restored from a backup */
    t = later(x);
    turn_answer(t, 200, glance_of(&x->t, "150"));
    t = later(x);
    assert_true(turn_asks(t, "limit=500"));
    turn_answer(t, 200, table_of(&x->t, &a1, 1, "151", ""));
    assert_true(version_is(x, "151"));
    assert_true(turn_asks(next(x), "resourceVersion=151&"));
    tear_down(x);
}

static void test_a_version_that_is_too_large_is_followed_by_a_list(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    turn_answer(t, 504,
                "{\"kind\":\"Status\",\"code\":504,\"details\":{\"causes\":[{\"reason\":"
                "\"ResourceVersionTooLarge\"}]}}");
    assert_true(turn_asks(later(x), "limit=500"));
    tear_down(x);
}

static void test_versions_that_are_no_numbers_are_not_compared(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct pod odd = {"d", "a", "u1", "aa", "i"};
    struct turn *t;

    (void)state;
    turn_answer(next(x), 200, table_of(&x->t, &a1, 1, "zz-9", ""));
    t = next(x);
    assert_true(turn_asks(t, "resourceVersion=zz-9&"));
    turn_head(t, 200, NULL, NULL);
    turn_say(t, event_of(&x->t, "MODIFIED", &odd));
    assert_true(version_is(x, "aa"));
    turn_done(t, 0);
    assert_true(turn_asks(next(x), "resourceVersion=aa&"));
    tear_down(x);
}

static void test_403_is_told_and_tried_every_five_minutes(void **state)
{
    struct world *x = set_up("v1.20.0");

    (void)state;
    turn_answer(next(x), 403, status_of(&x->t, 403, "Forbidden"));
    assert_int_equal(x->problem, KR_SYNC_FORBIDDEN);
    api_world_run(&x->w, 240000);
    assert_int_equal(x->w.api.n, x->w.api.looked);
    api_world_run(&x->w, 120000);
    turn_answer(next(x), 200, table_of(&x->t, &a1, 1, "200", ""));
    assert_int_equal(x->problem, KR_SYNC_OK);
    assert_int_equal(x->problems, 2);
    next(x);
    tear_down(x);
}

static const char no_types[] =
    "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\","
    "\"metadata\":{},\"items\":[]}";
static const char only_pods[] =
    "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\","
    "\"metadata\":{},\"items\":[{\"metadata\":{},\"versions\":[{\"version\":\"v1\","
    "\"resources\":[{\"resource\":\"pods\",\"responseKind\":{\"kind\":\"Pod\"},\"scope\":"
    "\"Namespaced\",\"verbs\":[\"get\",\"list\",\"watch\"]}]}]}]}";

static void discover(struct world *x, const char *core)
{
    struct turn *t = next(x);

    assert_string_equal(t->path, "/api");
    turn_head(t, 200, "content-type",
              "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    turn_say(t, core);
    turn_done(t, 0);
    t = next(x);
    assert_string_equal(t->path, "/apis");
    turn_head(t, 200, "content-type",
              "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    turn_say(t, no_types);
    turn_done(t, 0);
}

static void test_404_that_discovery_confirms_is_told_until_the_type_is_served(void **state)
{
    struct world *x = set_up("v1.20.0");

    (void)state;
    agent_catalog_start(x->w.c.catalog);
    turn_answer(next(x), 404, status_of(&x->t, 404, "NotFound"));
    assert_int_equal(x->problems, 0); /* one 404 is no proof */
    api_world_run(&x->w, 0);
    discover(x, no_types);
    assert_int_equal(x->problem, KR_SYNC_NOT_SERVED);
    api_world_run(&x->w, 30000);
    discover(x, only_pods);
    api_world_run(&x->w, 0);
    turn_answer(next(x), 200, table_of(&x->t, &a1, 1, "200", ""));
    assert_int_equal(x->problem, KR_SYNC_OK);
    next(x);
    tear_down(x);
}

static void test_404_that_discovery_denies_is_a_failure_like_others(void **state)
{
    struct world *x = set_up("v1.20.0");

    (void)state;
    agent_catalog_start(x->w.c.catalog);
    turn_answer(next(x), 404, status_of(&x->t, 404, "NotFound"));
    api_world_run(&x->w, 0);
    discover(x, only_pods);
    assert_int_equal(x->problem, KR_SYNC_FAILING);
    api_world_run(&x->w, 1000);
    assert_true(turn_asks(next(x), "limit=500"));
    tear_down(x);
}

static void test_401_is_tried_once_with_a_newer_token(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    assert_string_equal(t->authorization, "Bearer old");
    x->w.api.has_newer_token = true;
    turn_head(t, 401, NULL, NULL);
    assert_true(t->aborted);
    t = next(x);
    assert_string_equal(t->authorization, "Bearer new");
    turn_answer(t, 401, status_of(&x->t, 401, "Unauthorized"));
    assert_int_equal(x->problem, KR_SYNC_FAILING);
    assert_true(turn_asks(later(x), "limit=500"));
    tear_down(x);
}

static void test_a_silent_watch_is_given_up_after_its_time(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    turn_head(t, 200, NULL, NULL);
    api_world_run(&x->w, 300000);
    assert_false(t->aborted); /* not before its own timeoutSeconds */
    api_world_run(&x->w, 331000);
    assert_true(t->aborted);
    assert_true(turn_asks(later(x), "limit=1&"));
    tear_down(x);
}

static void test_a_watch_that_ends_at_once_backs_off(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = listed(x);

    (void)state;
    turn_head(t, 200, NULL, NULL);
    turn_done(t, 0);
    assert_int_equal(x->w.api.n, x->w.api.looked);
    later(x);
    tear_down(x);
}

static void test_no_connection_is_told_and_tried_again(void **state)
{
    struct world *x = set_up("v1.20.0");

    (void)state;
    turn_done(next(x), KR_ERESET);
    x->w.api.refuses = true;
    api_world_run(&x->w, 31000);
    api_fail_waiters(&x->w.api);
    assert_int_equal(x->problem, KR_SYNC_FAILING);
    x->w.api.refuses = false;
    later(x);
    tear_down(x);
}

static void test_an_object_that_nobody_can_take_lists_anew(void **state)
{
    struct world *x = set_up("v1.20.0");
    struct turn *t = next(x);

    (void)state;
    x->object_rc = KR_ENOMEM;
    turn_head(t, 200, NULL, NULL);
    turn_say(t, table_of(&x->t, &a1, 1, "200", ""));
    assert_true(t->aborted);
    assert_int_equal(x->list_ends, 0);
    assert_true(turn_asks(later(x), "limit=500"));
    tear_down(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_410_of_a_watch_in_either_form_is_followed_by_a_list),
        cmocka_unit_test(test_410_of_a_page_begins_the_list_anew),
        cmocka_unit_test(test_a_list_that_breaks_is_never_told_as_ended),
        cmocka_unit_test(test_a_list_that_is_cut_behind_its_last_object_is_not_ended),
        cmocka_unit_test(test_a_watch_that_breaks_keeps_its_version),
        cmocka_unit_test(test_429_waits_as_long_as_the_server_says),
        cmocka_unit_test(test_an_error_event_is_followed_by_one_more_watch_and_then_a_list),
        cmocka_unit_test(test_a_version_that_runs_backwards_in_a_watch_is_followed_by_a_list),
        cmocka_unit_test(test_a_server_behind_our_version_is_listed_anew),
        cmocka_unit_test(test_a_version_that_is_too_large_is_followed_by_a_list),
        cmocka_unit_test(test_versions_that_are_no_numbers_are_not_compared),
        cmocka_unit_test(test_403_is_told_and_tried_every_five_minutes),
        cmocka_unit_test(test_404_that_discovery_confirms_is_told_until_the_type_is_served),
        cmocka_unit_test(test_404_that_discovery_denies_is_a_failure_like_others),
        cmocka_unit_test(test_401_is_tried_once_with_a_newer_token),
        cmocka_unit_test(test_a_silent_watch_is_given_up_after_its_time),
        cmocka_unit_test(test_a_watch_that_ends_at_once_backs_off),
        cmocka_unit_test(test_no_connection_is_told_and_tried_again),
        cmocka_unit_test(test_an_object_that_nobody_can_take_lists_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
