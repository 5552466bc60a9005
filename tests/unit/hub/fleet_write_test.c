/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that were built on the fleet view, as far as a hub goes without an agent: what is refused,
 * and with which words; what would go on finds nobody to go to (AWAY). What it would be is in
 * fleet_edit_test.c. */
#include "hub/fleet_write.h"

#include "fleet_world.h"

#define POD "/clusters/c1/api/v1/namespaces/a/pods/web"
#define JSON "application/json"
#define PROTO "application/vnd.kubernetes.protobuf"

static int setup(void **state)
{
    static struct fleet f;

    fleet_setup(&f);
    know_cluster(&f, "c1");
    f.subs.number = 7;
    put_pod(&f, "c1", "a", "web", "web", "Running");
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fleet_teardown(*state);
    return 0;
}

static uint64_t revision_of(struct fleet *f)
{
    return hub_shelf_get(shelf_of(f, "c1"), KR_LIT("a"), KR_LIT("web"))->revision;
}

static const char *pod_at(uint64_t revision, const char *note)
{
    static char text[512];

    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"web\",\"namespace\":\"a\",\"resourceVersion\":\"%llu\","
             "\"annotations\":{\"%s\":\"x\"}}}",
             (unsigned long long)revision, note);
    return text;
}

static void write_as(struct asker *a, struct fleet *f, const char *method, const char *target,
                     const char *type, const char *body)
{
    ask_with(a, f, method, target, type, kr_bytes_str(body), strlen(body));
    pump(a, 1000);
}

static void assert_answer(struct asker *a, int code, const char *reason, const char *words)
{
    if (a->answer.status != code || strstr(body_of(a), reason) == NULL ||
        strstr(body_of(a), words) == NULL)
        fail_msg("%d: %s", a->answer.status, body_of(a));
    leave(a);
}

static void test_write_when_the_version_is_an_old_one_then_409(void **state)
{
    struct fleet *f = *state;
    uint64_t old = revision_of(f);
    struct asker a;

    put_pod(f, "c1", "a", "web", "web", "Failed");
    assert_true(revision_of(f) > old);
    write_as(&a, f, "PUT", POD, JSON, pod_at(old, "kuberelay.io/resource-version"));
    assert_answer(
        &a, 409, "Conflict",
        "Operation cannot be fulfilled on pods \\\"web\\\": the object has been modified");
}

static void test_write_when_it_could_lose_parts_then_refused_with_what_to_do(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char body[512];
    int n;

    put_slim_pod(f, "c1", "a", "web", "web", "Failed", true);
    write_as(&a, f, "PUT", POD, JSON,
             "{\"metadata\":{\"annotations\":{\"kuberelay.io/slimmed\":"
             "\"true\"}}}");
    assert_answer(&a, 422, "Invalid", "carries no resourceVersion");
    n = snprintf(body, sizeof body, "k8s%c\x12\x16\x0a\x14\x32\x12%llu", 0,
                 (unsigned long long)revision_of(f));
    body[5] = (char)(n - 6);
    body[7] = (char)(n - 8);
    body[9] = (char)(n - 10);
    ask_with(&a, f, "PUT", POD, PROTO, kr_bytes_of(body, (size_t)n), (size_t)n);
    pump(&a, 1000);
    assert_answer(&a, 415, "UnsupportedMediaType", "ContentType \\\"application/json\\\"");
}

static void test_write_when_the_form_is_not_read_then_415_or_400(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    write_as(&a, f, "PUT", POD, "application/cbor", pod_at(revision_of(f), "x"));
    assert_answer(&a, 415, "UnsupportedMediaType", "JSON or protobuf");
    write_as(&a, f, "PUT", POD, PROTO, pod_at(revision_of(f), "x"));
    assert_answer(&a, 400, "BadRequest", "no protobuf of Kubernetes");
}

static void test_write_when_no_sync_is_open_then_503_and_again(void **state)
{
    struct fleet *f = *state;
    struct hub_cluster *c = hub_clusters_find(&f->w.clusters, KR_LIT("c1"));
    struct asker a;

    f->subs.number = 0;
    c->tunnel_count = 1; /* there, but not in step */
    write_as(&a, f, "PUT", POD, JSON, pod_at(revision_of(f), "kuberelay.io/resource-version"));
    assert_non_null(kr_head_find(&a.answer, KR_LIT("retry-after")));
    assert_answer(&a, 503, "ServiceUnavailable", "not in step");
    c->tunnel_count = 0;
    write_as(&a, f, "PUT", POD, JSON, pod_at(revision_of(f), "kuberelay.io/resource-version"));
    assert_null(kr_head_find(&a.answer, KR_LIT("retry-after")));
    assert_answer(&a, 503, "ServiceUnavailable", "c1");
}

static void test_write_when_too_many_are_collected_then_429_and_room_comes_back(void **state)
{
    struct fleet *f = *state;
    struct asker held[22];
    struct asker a;
    struct kr_bytes nothing = {NULL, 0};
    size_t most = HUB_WRITES_MAX / 22;

    f->options.max_requests = 1000;
    for (size_t i = 0; i < 22; i++)
        ask_with(&held[i], f, i % 2 == 0 ? "PUT" : "PATCH", POD, JSON, nothing, most);
    assert_true(f->w.write_bytes <= HUB_WRITES_MAX);
    write_as(&a, f, "PUT", POD, JSON, pod_at(revision_of(f), "kuberelay.io/resource-version"));
    assert_answer(&a, 429, "TooManyRequests", "too many writes");
    for (size_t i = 0; i < 22; i++)
        leave(&held[i]);
    assert_int_equal(f->w.write_bytes, 0);
}

static void test_write_when_it_is_none_of_ours_then_not_collected(void **state)
{
    static const struct {
        const char *method;
        const char *target;
    } others[] = {
        {"POST", "/clusters/c1/api/v1/namespaces/a/pods/web/eviction"},
        {"DELETE", "/clusters/c1/api/v1/namespaces/a/pods/other"},
        {"DELETE", "/clusters/c1/api/v1/namespaces/a/pods"},
        {"PUT", "/clusters/c1/apis/apps/v1/namespaces/a/deployments/web"}, /* nobody read any */
        {"POST", "/clusters/c1/api/v1/namespaces/a/pods/web/exec"},
    };
    struct fleet *f = *state;
    struct kr_bytes nothing = {NULL, 0};
    struct asker a;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ask_with(&a, f, others[i].method, others[i].target, JSON, nothing, 100);
        assert_int_equal(f->w.write_bytes, 0);
        leave(&a);
    }
    ask_with(&a, f, "POST", "/clusters/c1/api/v1/namespaces/a/pods", JSON, nothing, 100);
    assert_int_equal(f->w.write_bytes, 100);
    leave(&a);
    assert_int_equal(f->w.write_bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_write_when_the_version_is_an_old_one_then_409),
        TEST(test_write_when_it_could_lose_parts_then_refused_with_what_to_do),
        TEST(test_write_when_the_form_is_not_read_then_415_or_400),
        TEST(test_write_when_no_sync_is_open_then_503_and_again),
        TEST(test_write_when_too_many_are_collected_then_429_and_room_comes_back),
        TEST(test_write_when_it_is_none_of_ours_then_not_collected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
