/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/reflector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "api_double.h"
#include "kube_text.h"

struct world {
    struct api_world w;
    struct agent_target target;
    struct agent_list_gate gate;
    struct agent_reflector r;
    struct text t;
    /* what was told */
    int lists;
    int list_ends;
    int objects;
    int gone;
    int columns;
    int skipped;
    int bookmarks;
    int problems;
    enum kr_sync_problem problem;
    char last[2048]; /* object */
    size_t cells;
    bool full;        /* may_read says no */
    int object_rc;    /* on_object returns it once */
    bool stop_at_end; /* on_list_end stops the reflector */
};

static const struct pod a1 = {"d", "a", "u1", "101", "i1"};
static const struct pod b1 = {"d", "b", "u2", "102", "i1"};
static const struct pod a2 = {"d", "a", "u1", "210", "i2"};

static void on_list(void *user)
{
    ((struct world *)user)->lists++;
}

static int on_object(void *user, const struct agent_seen *seen)
{
    struct world *x = user;
    int rc = x->object_rc;

    x->object_rc = 0;
    x->objects++;
    x->cells += seen->cells.n != 0;
    snprintf(x->last, sizeof x->last, "%.*s", (int)seen->object.n, (const char *)seen->object.p);
    return rc;
}

static void on_gone(void *user, const struct agent_seen *seen)
{
    struct world *x = user;

    x->gone++;
    snprintf(x->last, sizeof x->last, "%.*s", (int)seen->object.n, (const char *)seen->object.p);
}

static void on_list_end(void *user)
{
    struct world *x = user;

    x->list_ends++;
    if (x->stop_at_end)
        agent_reflector_stop(&x->r);
}

static void on_columns(void *user, struct kr_bytes columns)
{
    struct world *x = user;

    assert_true(kr_bytes_is(columns, POD_COLUMNS));
    x->columns++;
}

static bool may_read(void *user, bool bookmark)
{
    struct world *x = user;

    x->bookmarks += bookmark;
    return !x->full;
}

static void on_problem(void *user, enum kr_sync_problem problem, const char *text)
{
    struct world *x = user;

    (void)text;
    x->problems++;
    x->problem = problem;
}

static void on_skipped(void *user)
{
    ((struct world *)user)->skipped++;
}

static const struct agent_reflector_ops ops = {on_list,    on_object, on_gone,    on_list_end,
                                               on_columns, may_read,  on_problem, on_skipped};

static struct world *set_up(const char *server_version)
{
    struct world *x = calloc(1, sizeof *x);
    struct agent_target_spec spec = {.version = KR_LIT("v1"),
                                     .resource = KR_LIT("pods"),
                                     .label_selector = KR_LIT("a in (b,c)")};
    struct agent_reflector_config cfg = {
        .gate = &x->gate, .target = &x->target, .ops = &ops, .user = x};

    assert_non_null(x);
    api_world_init(&x->w);
    snprintf(x->w.c.health.version, sizeof x->w.c.health.version, "%s", server_version);
    x->w.c.catalog = agent_catalog_create(&x->w.c);
    assert_non_null(x->w.c.catalog);
    agent_list_gate_init(&x->gate, &x->w.sched);
    assert_int_equal(agent_target_init(&x->target, &spec, NULL), 0);
    cfg.c = &x->w.c;
    agent_reflector_init(&x->r, &cfg);
    agent_reflector_start(&x->r, KR_LIT(""));
    api_world_run(&x->w, 0);
    return x;
}

static void tear_down(struct world *x)
{
    agent_reflector_deinit(&x->r);
    agent_catalog_stop(x->w.c.catalog);
    agent_catalog_destroy(x->w.c.catalog);
    api_world_run(&x->w, 0);
    agent_list_gate_deinit(&x->gate);
    agent_target_deinit(&x->target);
    api_world_deinit(&x->w);
    free(x);
}

static struct turn *next(struct world *x)
{
    return api_next(&x->w.api);
}

/* The longest back-off later. */
static struct turn *later(struct world *x)
{
    api_world_run(&x->w, 31000);
    return next(x);
}

/* Listed in pages, a1 and b1 at version 200; the watch is asked for. */
static struct turn *listed(struct world *x)
{
    const struct pod both[] = {a1, b1};
    struct turn *t = next(x);

    assert_true(turn_asks(t, "limit=500"));
    turn_answer(t, 200, table_of(&x->t, both, 2, "200", ""));
    t = next(x);
    assert_true(turn_asks(t, "watch=true"));
    assert_true(turn_asks(t, "resourceVersion=200&"));
    return t;
}

static bool version_is(const struct world *x, const char *v)
{
    return kr_bytes_is(agent_reflector_version(&x->r), v);
}

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

/* ---- what can go wrong */

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
        cmocka_unit_test(test_nothing_is_consumed_while_the_owner_is_full),
        cmocka_unit_test(test_credit_returns_when_the_owner_has_room),
        cmocka_unit_test(test_a_list_that_is_held_up_gives_its_place_to_others),
        cmocka_unit_test(test_an_owner_may_stop_from_within_the_end_of_a_list),
        cmocka_unit_test(test_a_start_from_a_version_only_looks_and_watches),
        cmocka_unit_test(test_after_hours_of_watching_it_lists_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
