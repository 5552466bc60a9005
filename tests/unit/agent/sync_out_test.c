/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sync_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sync_world.h"

/* ---- the happy path */

static void test_a_hub_that_holds_nothing_gets_all(void **state)
{
    struct world *x = set_up();
    const struct held *o;

    (void)state;
    synced(x);
    assert_int_equal(x->k.upserts, 2);
    assert_int_equal(x->k.ends, 1);
    assert_int_equal(x->k.columns, 1);
    assert_int_equal(x->hub.n, 2);
    assert_string_equal(x->hub.version, "200");
    o = hub_object(&x->hub, "d", "a");
    assert_string_equal(o->version, "101");
    assert_string_equal(o->plain,
                        "[\"a\",\"Running\",\"101s\"]\n"
                        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"u1\"},"
                        "\"spec\":{\"image\":\"i1\",\"nodeName\":\"n1\"},"
                        "\"status\":{\"phase\":\"Running\"}}");
    tear_down(x);
}

static void test_changes_are_sent_as_they_come(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    say(x, t, event_of(&x->t, "MODIFIED", &a2));
    assert_int_equal(x->k.upserts, 3);
    assert_string_equal(hub_object(&x->hub, "d", "a")->version, "210");
    assert_string_equal(x->hub.version, "210");
    say(x, t, event_of(&x->t, "DELETED", &a2));
    assert_int_equal(x->k.deletes, 1);
    assert_null(hub_object(&x->hub, "d", "a"));
    say(x, t, event_of(&x->t, "DELETED", &c1)); /* the hub never held it */
    assert_int_equal(x->k.deletes, 1);
    tear_down(x);
}

static void test_what_only_tells_the_time_is_not_sent(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    say(x, t, event_of(&x->t, "MODIFIED", &a_beat)); /* another version, another Age */
    assert_int_equal(x->k.upserts, 2);
    assert_int_equal(api_world_counter(&x->w, AGENT_SYNC_UNCHANGED, "pods"), 1);
    tear_down(x);
}

static void test_an_object_that_was_created_anew_is_sent(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    say(x, t, event_of(&x->t, "MODIFIED", &a_other));
    assert_int_equal(x->k.upserts, 3);
    tear_down(x);
}

static void test_many_changes_of_one_object_are_sent_as_one(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);
    char version[16];
    char image[16];

    (void)state;
    for (int i = 0; i < 100; i++) { /* within one turn of the loop */
        struct pod p = {"d", "a", "u1", version, image};

        snprintf(version, sizeof version, "%d", 300 + i);
        snprintf(image, sizeof image, "j%d", i);
        turn_say(t, event_of(&x->t, "MODIFIED", &p));
    }
    run(x, 0);
    assert_int_equal(x->k.upserts, 3);
    assert_string_equal(hub_object(&x->hub, "d", "a")->version, "399");
    tear_down(x);
}

static void test_progress_without_changes_is_told_now_and_then(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    say(x, t, event_of(&x->t, "MODIFIED", &a_beat));
    assert_string_equal(x->hub.version, "200");
    say(x, t, bookmark_of(&x->t, "260", false));
    assert_string_equal(x->hub.version, "260");
    tear_down(x);
}

/* ---- lists that differ */

static void test_a_new_list_sends_only_what_differs(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);
    const struct pod now[] = {a2, c1};

    (void)state;
    say(x, t, error_of(&x->t, 410, "Expired"));
    run(x, 31000);
    answer_list(x, now, 2, "300");
    assert_int_equal(x->k.upserts, 4); /* a changed, c came */
    assert_int_equal(x->k.deletes, 1); /* b went */
    assert_int_equal(x->hub.n, 2);
    assert_int_equal(x->k.ends, 2);
    assert_string_equal(x->hub.version, "300");
    tear_down(x);
}

static void test_a_list_that_is_cut_deletes_nothing(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    say(x, t, error_of(&x->t, 410, "Expired"));
    t = later(x);
    table_of(&x->t, &a1, 1, "300", "");
    turn_head(t, 200, NULL, NULL);
    turn_bytes(t, x->t.s, x->t.n - 3);
    turn_done(t, KR_ECONNLOST);
    run(x, 0);
    assert_int_equal(x->k.deletes, 0);
    t = later(x);
    turn_answer(t, 200,
                "{\"kind\":\"Status\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
    run(x, 0);
    assert_int_equal(x->k.deletes, 0);
    assert_int_equal(x->k.ends, 1);
    run(x, 31000);
    answer_list(x, &a1, 1, "300");
    assert_int_equal(x->k.deletes, 1); /* now it is true */
    assert_int_equal(x->hub.n, 1);
    tear_down(x);
}

/* ---- what a hub may not have */

static void test_what_the_agent_denies_is_never_asked_for(void **state)
{
    struct world *x = set_up();
    struct kr_subscription s = x->pods;

    (void)state;
    s.resource = KR_LIT("secrets");
    call(x, &s);
    assert_int_equal(x->k.problem, KR_SYNC_DENIED);
    assert_false(x->k.ended); /* so that the hub does not ask again and again */
    assert_int_equal(x->w.api.n, 0);
    tear_down(x);
}

static void test_a_bad_profile_is_told(void **state)
{
    const struct kr_bytes bad_path[] = {KR_LIT("spec..x")};
    const struct kr_subscription bad[] = {
        {.version = KR_LIT("v1"), .resource = KR_LIT("pods"), .keep = bad_path, .keep_count = 1},
        {.version = KR_LIT("v1"), .resource = KR_LIT("pods"), .label_selector = KR_LIT("a in (")},
        {.version = KR_LIT("v1"), .resource = KR_LIT("pods/x?y=")},
        {.version = KR_LIT("v1/../"), .resource = KR_LIT("pods")},
        {.version = KR_LIT("v1"), .resource = KR_LIT("pods"), .group = KR_LIT("a/b")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct world *x = set_up();
        struct kr_subscription s = bad[i];

        s.id = 1;
        call(x, &s);
        if (!x->k.ended) /* some are no messages at all */
            assert_int_equal(x->k.problem, KR_SYNC_BAD_PROFILE);
        assert_int_equal(x->w.api.n, 0);
        tear_down(x);
    }
}

static void test_namespaces_are_those_of_both(void **state)
{
    static const char *ours[] = {"d", "f", NULL};
    const struct kr_bytes theirs[] = {KR_LIT("d"), KR_LIT("e")};
    const struct kr_bytes others[] = {KR_LIT("e")};
    const struct pod all[] = {a1, b1, c1};
    struct world *x = set_up();
    struct kr_subscription s = x->pods;

    (void)state;
    x->w.options.sync_namespaces = (struct kr_strings){ours, 2};
    s.namespaces = theirs;
    s.namespace_count = 2;
    call(x, &s);
    answer_list(x, all, 3, "200");
    assert_int_equal(x->k.upserts, 2);
    cut(x);
    x->hub.n = 0;
    s.namespaces = others;
    s.namespace_count = 1;
    call(x, &s);
    assert_int_equal(x->k.problem, KR_SYNC_DENIED);
    tear_down(x);
}

static void test_403_and_its_end_are_told(void **state)
{
    struct world *x = set_up();

    (void)state;
    call(x, &x->pods);
    turn_answer(next(x), 403, status_of(&x->t, 403, "Forbidden"));
    run(x, 0);
    assert_int_equal(x->k.problem, KR_SYNC_FORBIDDEN);
    assert_int_equal(x->k.ends, 0);
    run(x, 360000);
    answer_list(x, &a1, 1, "200");
    assert_int_equal(x->k.problem, KR_SYNC_OK);
    assert_int_equal(x->k.problems, 2);
    assert_int_equal(x->k.ends, 1);
    tear_down(x);
}

static const char *const no_types =
    "{\"kind\":\"APIGroupDiscoveryList\",\"metadata\":{},\"items\":[]}";
static const char *const only_pods =
    "{\"kind\":\"APIGroupDiscoveryList\",\"metadata\":{},\"items\":[{\"metadata\":{},\"versions\":["
    "{\"version\":\"v1\",\"resources\":[{\"resource\":\"pods\",\"responseKind\":{\"kind\":\"Pod\"},"
    "\"scope\":\"Namespaced\",\"verbs\":[\"list\",\"watch\"]}]}]}]}";

static void discover(struct world *x, const char *core)
{
    const char *const docs[] = {core, no_types};

    for (size_t i = 0; i < 2; i++) {
        struct turn *t = next(x);

        turn_head(t, 200, "content-type",
                  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
        turn_say(t, docs[i]);
        turn_done(t, 0);
    }
    run(x, 0);
}

static void test_a_type_that_was_away_is_sent_anew(void **state)
{
    struct world *x = set_up();
    const struct pod both[] = {a1, b1};
    struct turn *t = synced(x);

    (void)state;
    agent_catalog_start(x->w.c.catalog);
    run(x, 0);
    discover(x, only_pods);
    turn_done(t, KR_ECONNLOST);
    run(x, 800);
    t = next(x);
    turn_answer(t, 404, status_of(&x->t, 404, "NotFound"));
    run(x, 1000);
    discover(x, no_types);
    assert_int_equal(x->k.problem, KR_SYNC_NOT_SERVED);
    x->hub.n = 0; /* that is what it means to a hub */
    run(x, 30000);
    discover(x, only_pods);
    answer_list(x, both, 2, "300"); /* the very same objects */
    assert_int_equal(x->k.problem, KR_SYNC_OK);
    assert_int_equal(x->hub.n, 2);
    assert_int_equal(x->k.ends, 2);
    agent_catalog_stop(x->w.c.catalog);
    tear_down(x);
}

/* ---- profiles */

static void test_a_profile_keeps_its_paths_and_those_of_field_selectors(void **state)
{
    const struct kr_bytes keep[] = {KR_LIT("spec.image")};
    struct world *x = set_up();
    struct kr_subscription s = x->pods;

    (void)state;
    s.keep = keep;
    s.keep_count = 1;
    call(x, &s);
    answer_list(x, &a1, 1, "200");
    assert_non_null(strstr(hub_object(&x->hub, "d", "a")->plain, "\"image\":\"i1\""));
    assert_non_null(strstr(hub_object(&x->hub, "d", "a")->plain, "\"nodeName\":\"n1\""));
    tear_down(x);
}

static void test_metadata_only_asks_for_metadata_only(void **state)
{
    struct world *x = set_up();
    struct kr_subscription s = x->pods;

    (void)state;
    s.metadata_only = true;
    call(x, &s);
    assert_true(turn_asks(x->w.api.turns[0], "includeObject=Metadata"));
    answer_list(x, &a1, 1, "200");
    assert_null(strstr(hub_object(&x->hub, "d", "a")->plain, "spec"));
    tear_down(x);
}

/* ---- hubs that do not behave */

static void test_a_hub_that_does_not_read_stops_the_reading(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);
    char name[32];
    int i;

    (void)state;
    x->calling = false; /* nothing is taken from the agent any more */
    for (i = 0; i < 20000 && t->owed == 0; i++) {
        struct pod p = {"d", name, "u", "500", "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii"};

        snprintf(name, sizeof name, "n%d", i);
        turn_say(t, event_of(&x->t, "ADDED", &p));
        api_world_run(&x->w, 0);
    }
    assert_in_range(i, 100, 19999);
    assert_int_not_equal(t->owed, 0);
    x->calling = true;
    run(x, 0); /* it reads again */
    assert_int_equal(t->owed, 0);
    assert_int_equal(x->hub.n, (size_t)i + 2);
    tear_down(x);
}

static void test_a_hub_that_never_opens_or_answers_is_left(void **state)
{
    struct world *x = set_up();

    (void)state;
    hub_call_init(&x->k, &x->hub, &x->w.c, "hub-1");
    x->calling = true;
    run(x, 30001);
    assert_true(x->k.ended);
    cut(x);
    synced(x);
    cut(x);
    x->hub.held[0].hash ^= 1;
    hub_call_init(&x->k, &x->hub, &x->w.c, "hub-1");
    x->k.silent = true;
    x->calling = true;
    hub_open(&x->k, &x->pods);
    run(x, 0);
    assert_int_equal(x->k.wants, 1);
    run(x, 60001);
    assert_true(x->k.ended);
    tear_down(x);
}

static void test_nonsense_ends_the_call(void **state)
{
    struct kr_pair pair = {.key = 1, .object = 2};
    struct kr_bucket_pairs b = {.bucket = 9, .pairs = &pair, .n = 1};
    const struct kr_sync_control unasked = {.buckets = &b, .bucket_count = 1};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct world *x = set_up();

        if (i == 0) { /* no SyncOpen first */
            hub_call_init(&x->k, &x->hub, &x->w.c, "hub-1");
            x->calling = true;
        } else {
            synced(x);
        }
        if (i == 2)
            hub_open(&x->k, &x->pods); /* a second one */
        else if (i == 3)
            assert_int_equal(kr_grpc_send(&x->k.stream, KR_LIT("\xff\xff\xff")), 0);
        else
            hub_send(&x->k, &unasked);
        run(x, 0);
        fake_pump(&x->k.wire, 4096);
        assert_true(x->k.ended);
        assert_int_not_equal(x->k.status, KR_GRPC_OK);
        tear_down(x);
    }
}

static void test_a_hub_that_has_enough_ends_the_call(void **state)
{
    struct world *x = set_up();
    struct turn *t = synced(x);

    (void)state;
    assert_int_equal(kr_grpc_finish(&x->k.stream, 0, KR_LIT("")), 0);
    run(x, 0);
    assert_true(x->k.ended);
    assert_int_equal(x->k.status, KR_GRPC_OK);
    assert_true(t->aborted);
    tear_down(x);
}

static void test_an_odd_object_is_skipped_and_counted(void **state)
{
    struct world *x = set_up();

    (void)state;
    call(x, &x->pods);
    turn_answer(
        next(x), 200,
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":["
        "{\"metadata\":{\"uid\":\"u\"}},{},{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}]}");
    run(x, 0);
    assert_int_equal(x->hub.n, 1);
    assert_int_equal(x->k.ends, 1);
    assert_int_equal(api_world_counter(&x->w, AGENT_SYNC_SKIPPED, "pods"), 2);
    next(x);
    tear_down(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hub_that_holds_nothing_gets_all),
        cmocka_unit_test(test_changes_are_sent_as_they_come),
        cmocka_unit_test(test_what_only_tells_the_time_is_not_sent),
        cmocka_unit_test(test_an_object_that_was_created_anew_is_sent),
        cmocka_unit_test(test_many_changes_of_one_object_are_sent_as_one),
        cmocka_unit_test(test_progress_without_changes_is_told_now_and_then),
        cmocka_unit_test(test_a_new_list_sends_only_what_differs),
        cmocka_unit_test(test_a_list_that_is_cut_deletes_nothing),
        cmocka_unit_test(test_what_the_agent_denies_is_never_asked_for),
        cmocka_unit_test(test_a_bad_profile_is_told),
        cmocka_unit_test(test_namespaces_are_those_of_both),
        cmocka_unit_test(test_403_and_its_end_are_told),
        cmocka_unit_test(test_a_type_that_was_away_is_sent_anew),
        cmocka_unit_test(test_a_profile_keeps_its_paths_and_those_of_field_selectors),
        cmocka_unit_test(test_metadata_only_asks_for_metadata_only),
        cmocka_unit_test(test_a_hub_that_does_not_read_stops_the_reading),
        cmocka_unit_test(test_a_hub_that_never_opens_or_answers_is_left),
        cmocka_unit_test(test_nonsense_ends_the_call),
        cmocka_unit_test(test_a_hub_that_has_enough_ends_the_call),
        cmocka_unit_test(test_an_odd_object_is_skipped_and_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
