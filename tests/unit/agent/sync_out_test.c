/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sync_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/catalog.h"
#include "api_double.h"
#include "hub_double.h"
#include "kube_text.h"

static const char *allow_all[] = {"*", NULL};
static const char *deny_secrets[] = {"secrets", NULL};

struct world {
    struct api_world w;
    struct hub hub;
    struct hub_call k;
    struct text t;
    struct kr_subscription pods;
    bool calling;
};

static const struct pod a1 = {"d", "a", "u1", "101", "i1"};
static const struct pod b1 = {"d", "b", "u2", "102", "i1"};
static const struct pod c1 = {"e", "c", "u3", "103", "i1"};
static const struct pod a2 = {"d", "a", "u1", "210", "i2"};
static const struct pod a_beat = {"d", "a", "u1", "205",
                                  "i1"}; /* nothing but its version differs */
static const struct pod b_end = {"d", "b", "u2", "211", "i1"};
static const struct pod a_other = {"d", "a", "u9", "220", "i1"}; /* created anew */

static struct world *set_up(void)
{
    struct world *x = calloc(1, sizeof *x);

    assert_non_null(x);
    api_world_init(&x->w);
    x->w.options.sync_allow = (struct kr_strings){allow_all, 1};
    x->w.options.sync_deny = (struct kr_strings){deny_secrets, 1};
    snprintf(x->w.c.health.version, sizeof x->w.c.health.version, "v1.20.0");
    x->w.c.catalog = agent_catalog_create(&x->w.c);
    assert_non_null(x->w.c.catalog);
    assert_int_equal(agent_sync_create(&x->w.c), 0);
    hub_init(&x->hub);
    x->pods = (struct kr_subscription){
        .id = 7, .group = KR_LIT(""), .version = KR_LIT("v1"), .resource = KR_LIT("pods")};
    return x;
}

static void run(struct world *x, int64_t ms)
{
    for (int i = 0; i < 20; i++) {
        api_world_run(&x->w, i == 0 ? ms : 0);
        if (x->calling)
            fake_pump(&x->k.wire, 4096);
    }
}

static void call(struct world *x, const struct kr_subscription *s)
{
    hub_call_init(&x->k, &x->hub, &x->w.c, "hub-1");
    x->calling = true;
    hub_open(&x->k, s);
    run(x, 0);
}

static void cut(struct world *x)
{
    x->calling = false;
    hub_call_cut(&x->k);
    run(x, 0);
}

static void tear_down(struct world *x)
{
    if (x->calling)
        cut(x);
    agent_sync_destroy(&x->w.c);
    agent_catalog_destroy(x->w.c.catalog);
    hub_deinit(&x->hub);
    api_world_deinit(&x->w);
    free(x);
}

static struct turn *next(struct world *x)
{
    return api_next(&x->w.api);
}

static struct turn *later(struct world *x)
{
    run(x, 31000);
    return next(x);
}

/* The whole answer to a list; the watch that follows it. */
static struct turn *answer_list(struct world *x, const struct pod *pods, size_t n,
                                const char *version)
{
    struct turn *t = next(x);

    assert_true(turn_asks(t, "limit=500"));
    turn_answer(t, 200, table_of(&x->t, pods, n, version, ""));
    run(x, 0);
    if (x->w.api.n == x->w.api.looked || !turn_asks(x->w.api.turns[x->w.api.looked], "watch=true"))
        return NULL; /* another list follows */
    t = next(x);
    turn_head(t, 200, NULL, NULL);
    return t;
}

/* What stands between a version that is gone on from and the watch. */
static struct turn *answer_look(struct world *x, const char *version)
{
    struct turn *t = next(x);

    assert_true(turn_asks(t, "limit=1&"));
    turn_answer(t, 200, glance_of(&x->t, version));
    t = next(x);
    assert_true(turn_asks(t, "watch=true"));
    turn_head(t, 200, NULL, NULL);
    return t;
}

static void say(struct world *x, struct turn *t, const char *text)
{
    turn_say(t, text);
    run(x, 0);
}

/* Synced: a1, b1 at version 200. */
static struct turn *synced(struct world *x)
{
    const struct pod both[] = {a1, b1};

    call(x, &x->pods);
    return answer_list(x, both, 2, "200");
}

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

/* ---- going on */

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
        cmocka_unit_test(test_a_tunnel_that_comes_back_unchanged_costs_next_to_nothing),
        cmocka_unit_test(test_an_agent_that_starts_anew_sends_only_what_differs),
        cmocka_unit_test(test_an_agent_that_starts_anew_deletes_what_went_meanwhile),
        cmocka_unit_test(test_an_agent_that_starts_anew_sends_nothing_if_nothing_differs),
        cmocka_unit_test(test_changes_that_were_lost_with_the_tunnel_are_caught_up_with),
        cmocka_unit_test(test_a_hub_that_lost_everything_gets_all),
        cmocka_unit_test(test_a_hub_that_holds_something_else_is_put_right),
        cmocka_unit_test(test_what_is_kept_goes_ten_minutes_after_its_last_use),
        cmocka_unit_test(test_two_hubs_are_served_for_themselves),
        cmocka_unit_test(test_a_second_call_for_the_same_ends_the_first),
        cmocka_unit_test(test_what_the_agent_denies_is_never_asked_for),
        cmocka_unit_test(test_a_bad_profile_is_told),
        cmocka_unit_test(test_namespaces_are_those_of_both),
        cmocka_unit_test(test_403_and_its_end_are_told),
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
