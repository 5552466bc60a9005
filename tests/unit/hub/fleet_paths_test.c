/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_paths.h"

#include "fleet_world.h"

#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define BETA "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

static int setup(void **state)
{
    static struct fleet f;

    fleet_setup(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fleet_teardown(*state);
    return 0;
}

/* c2 serves a type of its own, in two versions. */
static void fill(struct fleet *f)
{
    const struct kr_resource_type types[] = {
        {.group = KR_LIT("x.io"),
         .version = KR_LIT("v2"),
         .resource = KR_LIT("things"),
         .kind = KR_LIT("Thi\"ng"),
         .singular = KR_LIT("thing")},
        {.group = KR_LIT("x.io"),
         .version = KR_LIT("v1"),
         .resource = KR_LIT("things"),
         .kind = KR_LIT("Thing"),
         .singular = KR_LIT("thing"),
         .preferred = true},
    };
    struct kr_catalog_update update = {.types = types, .n = 2};

    know_cluster(f, "c1");
    assert_non_null(hub_clusters_add(&f->w.clusters, "c2"));
    assert_int_equal(hub_catalogs_update(f->w.catalogs, "c2", &update), 0);
}

static void test_discovery_in_the_old_form_then_as_kubernetes_has_it(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    get(&a, f, "/clusters/*/api", NULL);
    assert_at(&a, "kind", "\"APIVersions\"");
    assert_at(&a, "versions", "[\"v1\"]");
    leave(&a);
    get(&a, f, "/clusters/%2A/apis", NULL);
    assert_at(&a, "kind", "\"APIGroupList\"");
    assert_at(&a, "groups 0 name", "\"apps\"");
    assert_at(&a, "groups 1 name", "\"x.io\"");
    assert_at(&a, "groups 1 versions 0 groupVersion", "\"x.io/v1\""); /* what is preferred */
    assert_at(&a, "groups 1 versions 1 version", "\"v2\"");
    assert_at(&a, "groups 1 preferredVersion version", "\"v1\"");
    assert_int_equal(count_at(&a, "groups"), 2);
    leave(&a);
    get(&a, f, "/clusters/*/apis/x.io", NULL);
    assert_at(&a, "kind", "\"APIGroup\"");
    assert_at(&a, "preferredVersion groupVersion", "\"x.io/v1\"");
    leave(&a);
    get(&a, f, "/clusters/*/api/v1", NULL);
    assert_at(&a, "groupVersion", "\"v1\"");
    assert_at(&a, "resources 0 name", "\"nodes\"");
    assert_at(&a, "resources 0 namespaced", "false");
    assert_at(&a, "resources 1 verbs", "[\"list\",\"watch\"]");
    assert_at(&a, "resources 1 shortNames", "[\"po\"]");
    leave(&a);
    get(&a, f, "/clusters/*/apis/x.io/v2/", NULL);
    assert_at(&a, "resources 0 kind", "\"Thi\\\"ng\"");
    leave(&a);
}

static void test_discovery_aggregated_then_all_current(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    get(&a, f, "/clusters/*/apis", AGGREGATED "," BETA ",application/json");
    assert_true(kr_bytes_is(kr_head_get(&a.answer, KR_LIT("content-type")), AGGREGATED));
    assert_at(&a, "apiVersion", "\"apidiscovery.k8s.io/v2\"");
    assert_at(&a, "items 1 metadata name", "\"x.io\"");
    assert_at(&a, "items 1 versions 0 version", "\"v1\"");
    assert_at(&a, "items 1 versions 1 freshness", "\"Current\"");
    assert_at(&a, "items 1 versions 0 resources 0 scope", "\"Cluster\"");
    assert_at(&a, "items 1 versions 0 resources 0 verbs", "[\"list\",\"watch\"]");
    assert_int_equal(count_at(&a, "items"), 2);
    leave(&a);
    get(&a, f, "/clusters/*/api", BETA);
    assert_true(kr_bytes_is(kr_head_get(&a.answer, KR_LIT("content-type")), BETA));
    assert_at(&a, "items 0 metadata name", "");
    assert_at(&a, "items 0 versions 0 resources 1 responseKind kind", "\"Pod\"");
    leave(&a);
    get(&a, f, "/clusters/*/api", "application/yaml");
    assert_int_equal(a.answer.status, 406);
    leave(&a);
}

static void test_discovery_when_unchanged_then_304(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char etag[128];
    struct kr_bytes value;

    fill(f);
    get(&a, f, "/clusters/*/apis", NULL);
    value = kr_head_get(&a.answer, KR_LIT("etag"));
    snprintf(etag, sizeof etag, "%.*s", (int)value.n, (const char *)value.p);
    assert_true(kr_bytes_is(kr_head_get(&a.answer, KR_LIT("vary")), "Accept"));
    leave(&a);
    for (int changed = 0; changed < 2; changed++) {
        a = (struct asker){.f = f, .body = {.max = SIZE_MAX}};
        a.ex.ops = &asker_ops;
        a.ex.conn = &f->conn;
        kr_head_init(&a.answer, KR_HEAD_MAX);
        kr_head_init(&a.ex.head, KR_HEAD_MAX);
        a.ex.head.method = KR_LIT("GET");
        a.ex.head.path = KR_LIT("/clusters/*/apis");
        assert_int_equal(kr_head_add_str(&a.ex.head, "if-none-match", etag), 0);
        hub_request_start(&f->w, &f->peer, &a.ex);
        pump(&a, 1000);
        assert_int_equal(a.answer.status, changed ? 200 : 304);
        assert_int_equal(a.body.n != 0, changed);
        leave(&a);
        hub_catalogs_remove(f->w.catalogs, "c2");
    }
}

static void test_discovery_when_a_cluster_may_not_be_seen_then_neither_its_types(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    snprintf(f->peer.id.name, sizeof f->peer.id.name, "bob"); /* c1 only */
    get(&a, f, "/clusters/*/apis", NULL);
    assert_int_equal(count_at(&a, "groups"), 1);
    leave(&a);
    get(&a, f, "/clusters/*/apis/x.io", NULL);
    assert_int_equal(a.answer.status, 404);
    leave(&a);
    snprintf(f->peer.id.name, sizeof f->peer.id.name, "mallory");
    get(&a, f, "/clusters/*/apis", NULL);
    assert_int_equal(count_at(&a, "groups"), 0);
    leave(&a);
}

static void test_discovery_when_a_cluster_has_not_told_then_it_says_so(void **state)
{
    static const char *const paths[] = {"/api", "/apis", "/apis/apps/v1"};
    struct fleet *f = *state;
    char target[64];
    struct asker a;

    fill(f);
    f->subs.untold =
        (struct hub_completeness){.clusters = 3, .missing = 1, .names = "c9", .named = 1};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(target, sizeof target, "/clusters/*%s", paths[i]);
        get(&a, f, target, NULL);
        assert_int_equal(a.answer.status, 200);
        assert_true(kr_bytes_is(kr_head_get(&a.answer, KR_LIT("warning")),
                                "299 kuberelay \"fleet view: of 3 clusters 1 missing: c9 "
                                "[hub-agent]\""));
        leave(&a);
    }
    get(&a, f, "/clusters/*/apis/nobody.io/v1", NULL); /* but c9, perhaps */
    assert_int_equal(a.answer.status, 503);
    leave(&a);
    f->subs.untold = (struct hub_completeness){.clusters = 3};
    get(&a, f, "/clusters/*/apis", NULL);
    assert_null(kr_head_find(&a.answer, KR_LIT("warning")));
    leave(&a);
    get(&a, f, "/clusters/*/apis/nobody.io/v1", NULL);
    assert_int_equal(a.answer.status, 404);
    leave(&a);
}

static void test_paths_when_they_are_no_resource_then_as_the_fleet_has_them(void **state)
{
    static const struct {
        const char *path;
        int status;
        const char *part;
    } cases[] = {
        {"/version", 200, "\"gitVersion\":\"v1."},
        {"/readyz", 200, "ok"},
        {"/livez", 200, "ok"},
        {"/openapi/v3", 200, "{\"paths\":{}}"},
        {"/openapi/v3/api/v1", 404, "NotFound"},
        {"/openapi/v2", 404, "NotFound"},
        {"/metrics", 405, "MethodNotAllowed"},
        {"/", 405, "MethodNotAllowed"},
        {"/api/v2", 404, "NotFound"},
        {"/apis/a/b/c/d/e/f", 405, "MethodNotAllowed"},
    };
    struct fleet *f = *state;
    struct asker a;
    char target[64];

    fill(f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(target, sizeof target, "/clusters/*%s", cases[i].path);
        get(&a, f, target, NULL);
        if (a.answer.status != cases[i].status || strstr(body_of(&a), cases[i].part) == NULL)
            fail_msg("%s: %d %s", cases[i].path, a.answer.status, body_of(&a));
        leave(&a);
    }
}

static void test_fleet_when_the_hub_is_young_then_503_and_429(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    f->options.start_grace_ms = 30000;
    f->w.started_ms = f->sched.now_ms;
    get(&a, f, "/clusters/*/api/v1/pods", NULL);
    assert_int_equal(a.answer.status, 503);
    leave(&a);
    get(&a, f, "/clusters/*/api/v1/pods?watch=1", NULL);
    assert_int_equal(a.answer.status, 429);
    leave(&a);
    get(&a, f, "/clusters/*/apis", NULL);
    assert_int_equal(a.answer.status, 503);
    assert_null(kr_head_find(&a.answer, KR_LIT("retry-after"))); /* never on discovery */
    leave(&a);
    fleet_turn(f, 30000);
    get(&a, f, "/clusters/*/api/v1/pods", NULL);
    assert_int_equal(a.answer.status, 200);
    leave(&a);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_discovery_in_the_old_form_then_as_kubernetes_has_it),
        T(test_discovery_aggregated_then_all_current),
        T(test_discovery_when_unchanged_then_304),
        T(test_discovery_when_a_cluster_may_not_be_seen_then_neither_its_types),
        T(test_discovery_when_a_cluster_has_not_told_then_it_says_so),
        T(test_paths_when_they_are_no_resource_then_as_the_fleet_has_them),
        T(test_fleet_when_the_hub_is_young_then_503_and_429),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
