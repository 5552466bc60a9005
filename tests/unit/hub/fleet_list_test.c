/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_list.h"

#include "fleet_world.h"

#define PODS "/clusters/*/api/v1/pods"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
#define PARTIAL "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

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

/* Two clusters with a pod of the same name, and one pod more. */
static void fill(struct fleet *f)
{
    know_cluster(f, "c1");
    know_cluster(f, "c2");
    put_pod(f, "c2", "a", "web", "web", "Running");
    put_pod(f, "c1", "a", "web", "web", "Pending");
    put_pod(f, "c1", "b", "db", NULL, "Running");
}

static uint64_t version_of(struct asker *a)
{
    struct kr_bytes v = at_path(kr_buf_bytes(&a->body), "metadata resourceVersion");
    uint64_t n = 0;

    assert_true(v.n > 2 && kr_bytes_to_u64(kr_bytes_of(v.p + 1, v.n - 2), UINT64_MAX, &n));
    return n;
}

static struct kr_bytes token_of(struct asker *a, char *out, size_t n)
{
    struct kr_bytes v = at_path(kr_buf_bytes(&a->body), "metadata continue");

    assert_true(v.n > 2);
    snprintf(out, n, "%.*s", (int)v.n - 2, (const char *)v.p + 1);
    return v;
}

static void test_list_when_two_clusters_have_the_name_then_both_with_where_they_are(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    get(&a, f, PODS, NULL);
    assert_int_equal(a.answer.status, 200);
    assert_int_equal(count_at(&a, "items"), 3);
    assert_at(&a, "kind", "\"PodList\"");
    assert_at(&a, "apiVersion", "\"v1\"");
    assert_at(&a, "items 0 kind", "\"Pod\"");
    assert_at(&a, "items 0 apiVersion", "\"v1\"");
    assert_at(&a, "items 0 metadata name", "\"web\"");
    assert_at(&a, "items 0 metadata labels kuberelay.io/cluster", "\"c1\"");
    assert_at(&a, "items 0 metadata labels app", "\"web\"");
    assert_at(&a, "items 1 metadata labels kuberelay.io/cluster", "\"c2\"");
    assert_at(&a, "items 1 metadata annotations kcp.io/cluster", "\"c2\"");
    assert_at(&a, "items 1 metadata annotations multicluster.x-k8s.io/cluster-name", "\"c2\"");
    assert_at(&a, "items 1 metadata annotations kuberelay.io/resource-version", "\"77\"");
    assert_at(&a, "items 1 metadata annotations kuberelay.io/stale-since", "");
    assert_at(&a, "items 2 metadata labels kuberelay.io/cluster", "\"c1\"");
    assert_at(&a, "items 2 status phase", "\"Running\"");
    assert_int_equal(version_of(&a), f->pods->revision);
    assert_null(kr_head_find(&a.answer, KR_LIT("warning")));
    leave(&a);
}

static void test_list_when_nothing_is_there_then_an_empty_array_and_a_version(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    know_cluster(f, "c1");
    get(&a, f, PODS, NULL);
    assert_at(&a, "items", "[]");
    assert_true(version_of(&a) != 0);
    leave(&a);
    get(&a, f, PODS, TABLE);
    assert_at(&a, "rows", "[]");
    assert_at(&a, "kind", "\"Table\"");
    leave(&a);
    get(&a, f, PODS "?labelSelector=nobody", PARTIAL);
    assert_at(&a, "items", "[]");
    assert_at(&a, "kind", "\"PartialObjectMetadataList\"");
    leave(&a);
}

static void expect_items(struct fleet *f, const char *query, size_t n)
{
    char target[512];
    struct asker a;

    snprintf(target, sizeof target, "%s%s", PODS, query);
    get(&a, f, target, NULL);
    if (a.answer.status != 200)
        fail_msg("%s: %s", query, body_of(&a));
    assert_int_equal(count_at(&a, "items"), n);
    leave(&a);
}

static void test_list_when_selected_then_only_those(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    expect_items(f, "?labelSelector=kuberelay.io%2Fcluster%3Dc2", 1);
    expect_items(f, "?labelSelector=kuberelay.io%2Fcluster%21%3Dc2", 2);
    expect_items(f, "?clusters=c1", 2);
    expect_items(f, "?clusters=c1,c2", 3);
    expect_items(f, "?clusters=c1&labelSelector=app", 1);
    expect_items(f, "?labelSelector=app%3Dweb", 2);
    expect_items(f, "?labelSelector=%21app", 1);
    expect_items(f, "?fieldSelector=metadata.name%3Dweb", 2);
    expect_items(f, "?fieldSelector=metadata.namespace%3Db", 1);
    expect_items(f, "?fieldSelector=status.phase%3DRunning", 2);
    expect_items(f, "?fieldSelector=status.phase%21%3DRunning,metadata.name%3Dweb", 1);
    get(&a, f, "/clusters/*/api/v1/namespaces/b/pods", NULL);
    assert_int_equal(count_at(&a, "items"), 1);
    leave(&a);
}

static void test_list_when_paged_then_each_once_at_one_version(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char token[1024];
    char target[2048];
    uint64_t version;
    char name[32];

    know_cluster(f, "c1");
    for (int i = 0; i < 25; i++) {
        snprintf(name, sizeof name, "p%02d", i);
        put_pod(f, i % 2 == 0 ? "c1" : "c2", "a", name, NULL, "Running");
    }
    get(&a, f, PODS "?limit=10", NULL);
    assert_int_equal(count_at(&a, "items"), 10);
    assert_at(&a, "metadata remainingItemCount", "15");
    version = version_of(&a);
    token_of(&a, token, sizeof token);
    leave(&a);
    put_pod(f, "c1", "a", "p00", NULL, "Failed"); /* what comes after does not count */
    drop_pod(f, "c2", "a", "p11");
    put_pod(f, "c1", "a", "p99", NULL, "Running");
    snprintf(target, sizeof target, PODS "?limit=10&continue=%s", token);
    get(&a, f, target, NULL);
    assert_int_equal(count_at(&a, "items"), 10);
    assert_at(&a, "items 0 metadata name", "\"p10\"");
    assert_at(&a, "items 1 metadata name", "\"p11\"");
    assert_at(&a, "metadata remainingItemCount", "5");
    assert_int_equal(version_of(&a), version);
    token_of(&a, token, sizeof token);
    leave(&a);
    snprintf(target, sizeof target, PODS "?limit=10&continue=%s", token);
    get(&a, f, target, NULL);
    assert_int_equal(count_at(&a, "items"), 5);
    assert_at(&a, "items 4 metadata name", "\"p24\"");
    assert_at(&a, "metadata continue", "");
    assert_int_equal(version_of(&a), version);
    leave(&a);
}

static void test_list_when_limit_is_the_whole_then_no_token(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    get(&a, f, PODS "?limit=3", NULL);
    assert_int_equal(count_at(&a, "items"), 3);
    assert_at(&a, "metadata continue", "");
    assert_at(&a, "metadata remainingItemCount", "");
    leave(&a);
    get(&a, f, PODS "?limit=2&resourceVersion=0", NULL);
    assert_int_equal(count_at(&a, "items"), 3);
    leave(&a);
}

static void expect_expired(struct fleet *f, const char *target)
{
    struct asker a;

    get(&a, f, target, NULL);
    assert_int_equal(a.answer.status, 410);
    assert_at(&a, "reason", "\"Expired\"");
    leave(&a);
}

static void test_list_when_the_token_is_not_its_own_then_410(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char token[1024];
    char target[2048];

    fill(f);
    get(&a, f, PODS "?limit=1", NULL);
    token_of(&a, token, sizeof token);
    leave(&a);
    snprintf(target, sizeof target, PODS "?limit=1&labelSelector=app&continue=%s", token);
    expect_expired(f, target);
    snprintf(target, sizeof target, "/clusters/*/api/v1/namespaces/a/pods?continue=%s", token);
    expect_expired(f, target);
    snprintf(f->peer.id.name, sizeof f->peer.id.name, "bob");
    snprintf(target, sizeof target, PODS "?limit=1&continue=%s", token);
    expect_expired(f, target);
    snprintf(f->peer.id.name, sizeof f->peer.id.name, READER);
    token[20] = token[20] == 'A' ? 'B' : 'A';
    snprintf(target, sizeof target, PODS "?limit=1&continue=%s", token);
    expect_expired(f, target);
    expect_expired(f, PODS "?continue=x");
}

static void test_list_when_the_pin_is_gone_then_410(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char token[1024];
    char target[2048];

    fill(f);
    get(&a, f, PODS "?limit=1", NULL);
    token_of(&a, token, sizeof token);
    leave(&a);
    fleet_turn(f, 301000);
    snprintf(target, sizeof target, PODS "?limit=1&continue=%s", token);
    expect_expired(f, target);
}

static void test_list_when_a_version_is_asked_for_then_as_kubernetes_answers(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char target[256];
    uint64_t old;
    uint64_t now;

    fill(f);
    get(&a, f, PODS, NULL);
    old = version_of(&a);
    leave(&a);
    put_pod(f, "c1", "b", "db", NULL, "Failed");
    now = f->pods->revision;
    snprintf(target, sizeof target, PODS "?resourceVersion=%llu", (unsigned long long)old);
    get(&a, f, target, NULL);
    assert_int_equal(version_of(&a), now);
    leave(&a);
    snprintf(target, sizeof target, PODS "?resourceVersion=%llu&resourceVersionMatch=Exact",
             (unsigned long long)old);
    expect_expired(f, target);
    snprintf(target, sizeof target, PODS "?resourceVersion=%llu&resourceVersionMatch=Exact",
             (unsigned long long)now);
    get(&a, f, target, NULL);
    assert_int_equal(a.answer.status, 200);
    leave(&a);
    get(&a, f, PODS "?resourceVersion=x", NULL);
    assert_int_equal(a.answer.status, 400);
    leave(&a);
    get(&a, f, PODS "?resourceVersionMatch=Exact", NULL);
    assert_int_equal(a.answer.status, 422);
    leave(&a);
}

static void test_list_when_the_version_is_of_the_future_then_504_after_3_s(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    ask_as(&a, f, "GET", PODS "?resourceVersion=9000000000000000000", NULL);
    for (int i = 0; i < 29; i++)
        fleet_turn(f, 100);
    assert_false(a.has_head);
    for (int i = 0; i < 3; i++)
        fleet_turn(f, 100);
    pump(&a, 1000);
    assert_int_equal(a.answer.status, 504);
    assert_at(&a, "details causes 0 reason", "\"ResourceVersionTooLarge\"");
    leave(&a);
}

static void test_list_as_table_then_cluster_first_and_age_of_now(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    struct hub_shelf *s;

    fill(f);
    s = shelf_of(f, "c1");
    assert_int_equal(
        kr_buf_append_str(
            (s->columns.max = 1 << 20, &s->columns),
            "[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"priority\":0},"
            "{\"name\":\"Ready\",\"type\":\"string\"},{\"name\":\"Status\",\"type\":\"string\"},"
            "{\"name\":\"Age\",\"type\":\"string\"}]"),
        0);
    s->columns_changed = 1;
    get(&a, f, PODS, TABLE);
    assert_at(&a, "kind", "\"Table\"");
    assert_at(&a, "apiVersion", "\"meta.k8s.io/v1\"");
    assert_at(&a, "columnDefinitions 0 name", "\"Cluster\"");
    assert_at(&a, "columnDefinitions 1 format", "\"name\"");
    assert_at(&a, "rows 0 cells", "[\"c1\",\"web\",\"1/1\",\"Pending\",\"30s\"]");
    assert_at(&a, "rows 0 object kind", "\"PartialObjectMetadata\"");
    assert_at(&a, "rows 0 object metadata namespace", "\"a\"");
    assert_at(&a, "rows 0 object metadata labels kuberelay.io/cluster", "\"c1\"");
    assert_at(&a, "rows 0 object status", "");
    /* c2 told no columns: its cells mean nothing */
    assert_at(&a, "rows 1 cells", "[\"c2\",\"web\",null,null,\"30s\"]");
    leave(&a);
    get(&a, f, PODS "?includeObject=Object", TABLE);
    assert_at(&a, "rows 0 object status phase", "\"Pending\"");
    assert_at(&a, "rows 0 object kind", "\"Pod\"");
    leave(&a);
    get(&a, f, PODS "?includeObject=None", TABLE);
    assert_at(&a, "rows 0 object", "null");
    leave(&a);
}

static void test_list_as_table_when_columns_differ_then_by_name(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    struct hub_shelf *s;

    fill(f);
    put_pod(f, "c3", "a", "web", NULL, "Running");
    for (int i = 1; i <= 3; i++) {
        char name[4];

        snprintf(name, sizeof name, "c%d", i);
        s = shelf_of(f, name);
        s->columns.max = 1 << 20;
        assert_int_equal(
            kr_buf_append_str(&s->columns,
                              i == 2 ? "[{\"name\":\"Status\",\"type\":\"string\"},{\"name\":"
                                       "\"Other\",\"type\":\"string\"},{\"name\":\"Name\","
                                       "\"type\":\"string\"}]"
                                     : "[{\"name\":\"Name\",\"type\":\"string\"},{\"name\":"
                                       "\"Ready\",\"type\":\"string\"},{\"name\":\"Status\","
                                       "\"type\":\"string\"}]"),
            0);
    }
    get(&a, f, PODS "?fieldSelector=metadata.name%3Dweb", TABLE);
    assert_at(&a, "rows 0 cells", "[\"c1\",\"web\",\"1/1\",\"Pending\"]");
    assert_at(&a, "rows 1 cells", "[\"c2\",\"Running\",null,\"web\"]");
    assert_at(&a, "rows 2 cells", "[\"c3\",\"web\",\"1/1\",\"Running\"]");
    leave(&a);
}

static void test_list_when_a_cluster_is_away_then_its_objects_say_since_when(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    shelf_of(f, "c2")->stale_since_wall_ms = 1699999999000;
    f->subs.completeness =
        (struct hub_completeness){.clusters = 2, .stale = 1, .names = "c2", .named = 1};
    get(&a, f, PODS, NULL);
    assert_at(&a, "items 0 metadata annotations kuberelay.io/stale-since", "");
    assert_at(&a, "items 1 metadata annotations kuberelay.io/stale-since",
              "\"2023-11-14T22:13:19Z\"");
    assert_true(kr_bytes_is(kr_head_get(&a.answer, KR_LIT("warning")),
                            "299 kuberelay \"fleet view of pods: of 2 clusters 1 stale: c2 "
                            "[hub-agent]\""));
    leave(&a);
}

static void test_list_when_the_reader_sees_a_part_then_only_that_is_counted(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    put_pod(f, "c1", "a", "web2", NULL, "Running");
    snprintf(f->peer.id.name, sizeof f->peer.id.name, "bob"); /* pods of c1, namespace a */
    get(&a, f, PODS, NULL);
    assert_int_equal(count_at(&a, "items"), 2);
    leave(&a);
    get(&a, f, PODS "?limit=1", NULL);
    assert_int_equal(count_at(&a, "items"), 1);
    assert_at(&a, "metadata remainingItemCount", "");
    leave(&a);
    get(&a, f, "/clusters/*/api/v1/nodes", NULL);
    assert_int_equal(a.answer.status, 403);
    assert_at(&a, "message",
              "\"nodes is forbidden: User \\\"bob\\\" cannot list resource \\\"nodes\\\" in API "
              "group \\\"\\\" at the cluster scope (fleet view)\"");
    leave(&a);
    get(&a, f, "/clusters/*/api/v1/namespaces/a/pods", NULL);
    assert_int_equal(count_at(&a, "items"), 2);
    leave(&a);
    get(&a, f, "/clusters/*/api/v1/namespaces/b/pods", NULL);
    assert_int_equal(a.answer.status, 403);
    assert_at(
        &a, "message",
        "\"pods is forbidden: User \\\"bob\\\" cannot list resource \\\"pods\\\" in API group "
        "\\\"\\\" in the namespace \\\"b\\\" (fleet view)\"");
    leave(&a);
    get(&a, f, "/clusters/*/api/v1/namespaces/b/pods?watch=1", NULL);
    assert_int_equal(a.answer.status, 403);
    leave(&a);
    get(&a, f, "/clusters/*/apis/apps/v1/namespaces/x/deployments", NULL);
    assert_at(&a, "message",
              "\"deployments.apps is forbidden: User \\\"bob\\\" cannot list resource "
              "\\\"deployments\\\" in API group \\\"apps\\\" in the namespace \\\"x\\\" (fleet "
              "view)\"");
    leave(&a);
}

static void test_list_when_a_type_is_unknown_then_404_only_if_all_have_told(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    get(&a, f, "/clusters/*/apis/x.io/v1/things", NULL);
    assert_int_equal(a.answer.status, 404);
    assert_at(&a, "message", "\"the server could not find the requested resource\"");
    leave(&a);
    get(&a, f, "/clusters/*/api/v1/namespaces/a/nodes", NULL);
    assert_int_equal(a.answer.status, 404);
    leave(&a);
    f->subs.untold = (struct hub_completeness){.clusters = 3, .missing = 1};
    get(&a, f, "/clusters/*/apis/x.io/v1/things", NULL);
    assert_int_equal(a.answer.status, 503); /* a registered one may have it */
    leave(&a);
    f->subs.untold = (struct hub_completeness){.clusters = 2};
    assert_non_null(hub_clusters_add(&f->w.clusters, "c9"));
    get(&a, f, "/clusters/*/apis/x.io/v1/things", NULL);
    assert_int_equal(a.answer.status, 503);
    leave(&a);
}

static void test_list_when_it_cannot_be_served_then_says_why(void **state)
{
    static const struct {
        const char *method, *target, *accept;
        int status;
    } cases[] = {
        {"GET", "/clusters/*/api/v1/namespaces/a/pods/web", NULL, 405},
        {"POST", PODS, NULL, 405},
        {"DELETE", PODS, NULL, 405},
        {"GET", PODS "/web/log", NULL, 405},
        {"GET", "/clusters/*/metrics", NULL, 405},
        {"GET", PODS, "application/vnd.kubernetes.protobuf", 406},
        {"GET", PODS "?fieldSelector=spec.foo%3Dx", NULL, 400},
        {"GET", PODS "?labelSelector=a%3D%3D%3D", NULL, 400},
        {"GET", PODS "?limit=x", NULL, 400},
        {"GET", PODS "?sendInitialEvents=true", NULL, 422},
    };
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask_as(&a, f, cases[i].method, cases[i].target, cases[i].accept);
        pump(&a, 1000);
        if (a.answer.status != cases[i].status)
            fail_msg("%s: %d %s", cases[i].target, a.answer.status, body_of(&a));
        assert_at(&a, "kind", "\"Status\"");
        leave(&a);
    }
    f->subs.deny = true;
    get(&a, f, PODS, NULL);
    assert_int_equal(a.answer.status, 403);
    leave(&a);
}

static void test_list_when_the_type_is_not_ready_then_waits(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    f->subs.hold = true;
    get(&a, f, PODS, NULL);
    assert_false(a.has_head);
    wants_are_ready(&f->subs);
    pump(&a, 1000);
    assert_int_equal(count_at(&a, "items"), 3);
    leave(&a);
    get(&a, f, PODS, NULL);
    leave(&a); /* before there is an answer */
    get(&a, f, PODS, NULL);
    configure(f, "readers: []\n");
    hub_fleet_reload(f->w.fleet);
    pump(&a, 1000);
    assert_int_equal(a.answer.status, 403);
    leave(&a);
}

static void test_list_when_long_then_in_chunks_and_as_it_was(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char name[32];
    bool end;

    know_cluster(f, "c1");
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "p%04d", i);
        put_pod(f, "c1", "a", name, NULL, "Running");
    }
    ask_as(&a, f, "GET", PODS, NULL);
    fleet_turn(f, 0);
    assert_true(a.has_head);
    assert_in_range(a.ex.user_ops->available(a.ex.user, &end), 100000, 200000);
    assert_false(end);
    for (int i = 1000; i < 2000; i++) {
        snprintf(name, sizeof name, "p%04d", i);
        drop_pod(f, "c1", "a", name);
    }
    pump(&a, 4096);
    assert_int_equal(count_at(&a, "items"), 2000);
    leave(&a);
    get(&a, f, PODS, NULL);
    assert_int_equal(count_at(&a, "items"), 1000);
    leave(&a);
}

static void test_list_when_its_reader_stops_then_it_is_cut(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    ask_as(&a, f, "GET", PODS, NULL);
    fleet_turn(f, 0);
    assert_true(a.has_head);
    fleet_turn(f, 65000);
    assert_true(a.cut);
    leave(&a);
}

static void test_list_by_head_then_no_body(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    fill(f);
    ask_as(&a, f, "HEAD", PODS, NULL);
    fleet_turn(f, 0);
    assert_int_equal(a.answer.status, 200);
    leave(&a);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_list_when_two_clusters_have_the_name_then_both_with_where_they_are),
        T(test_list_when_nothing_is_there_then_an_empty_array_and_a_version),
        T(test_list_when_selected_then_only_those),
        T(test_list_when_paged_then_each_once_at_one_version),
        T(test_list_when_limit_is_the_whole_then_no_token),
        T(test_list_when_the_token_is_not_its_own_then_410),
        T(test_list_when_the_pin_is_gone_then_410),
        T(test_list_when_a_version_is_asked_for_then_as_kubernetes_answers),
        T(test_list_when_the_version_is_of_the_future_then_504_after_3_s),
        T(test_list_as_table_then_cluster_first_and_age_of_now),
        T(test_list_as_table_when_columns_differ_then_by_name),
        T(test_list_when_a_cluster_is_away_then_its_objects_say_since_when),
        T(test_list_when_the_reader_sees_a_part_then_only_that_is_counted),
        T(test_list_when_a_type_is_unknown_then_404_only_if_all_have_told),
        T(test_list_when_it_cannot_be_served_then_says_why),
        T(test_list_when_the_type_is_not_ready_then_waits),
        T(test_list_when_long_then_in_chunks_and_as_it_was),
        T(test_list_when_its_reader_stops_then_it_is_cut),
        T(test_list_by_head_then_no_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
