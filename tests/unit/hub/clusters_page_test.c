/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/clusters_page.h"

#include "base/json.h"
#include "sync_world.h"

static const char *const types[] = {"pods", NULL};

static struct kr_json *page(struct world *w)
{
    struct kr_buf body = {.max = 1u << 20};
    struct kr_json *doc;
    struct kr_note why = {""};

    assert_int_equal(hub_clusters_page(&w->w, &body), 0);
    assert_int_equal(kr_json_parse(kr_buf_bytes(&body), &doc, &why), 0);
    kr_buf_deinit(&body);
    return doc;
}

static int64_t number(const struct kr_json *object, const char *key)
{
    int64_t n = -1;

    assert_true(kr_json_int(kr_json_get(object, key), &n));
    return n;
}

static void test_page_when_clusters_come_and_go_then_sorted_and_counted(void **state)
{
    struct kr_sync_batch raw = {.raw_bytes = 9000, .skipped = 2};
    struct world w;
    struct agent b;
    struct agent a;
    struct kr_json *doc;
    const struct kr_json *first;
    const struct kr_json *pods;

    (void)state;
    world_init(&w, "profiles: [{name: p, resources: [pods], always: true}]\n", 64u << 20);
    agent_join(&b, &w, "edge-2", false);
    agent_join(&a, &w, "edge-1", true);
    agent_catalog(&a, types);
    agent_put(open_call(&a, "pods"), "a", "p1", "1");
    agent_send(open_call(&a, "pods"), &raw);
    agent_end_snapshot(open_call(&a, "pods"), "1");
    agent_lose(&b);
    run(&w, 5000);
    doc = page(&w);
    assert_int_equal(kr_json_len(kr_json_get(doc, "clusters")), 2);
    first = kr_json_at(kr_json_get(doc, "clusters"), 0);
    assert_string_equal(kr_json_text(first, "name"), "edge-1");
    assert_string_equal(kr_json_text(first, "state"), "connected");
    assert_int_equal(number(first, "nowMs") - number(first, "sinceMs"), 5000);
    assert_int_equal(number(first, "objects"), 1);
    assert_int_equal(number(first, "rawBytes"), 9000);
    assert_true(number(first, "receivedBytes") > 100);
    pods = kr_json_at(kr_json_get(first, "types"), 0);
    assert_string_equal(kr_json_text(pods, "resource"), "pods");
    assert_int_equal(number(pods, "upserts"), 1);
    assert_string_equal(kr_json_text(pods, "problem"), "");
    assert_string_equal(kr_json_text(kr_json_at(kr_json_get(doc, "clusters"), 1), "state"), "away");
    kr_json_destroy(doc);
    agent_problem(open_call(&a, "pods"), KR_SYNC_FORBIDDEN, "no \"right\"\n");
    doc = page(&w);
    pods = kr_json_at(kr_json_get(kr_json_at(kr_json_get(doc, "clusters"), 0), "types"), 0);
    assert_string_equal(kr_json_text(pods, "problem"), "forbidden");
    assert_string_equal(kr_json_text(pods, "problemText"), "no \"right\"\n");
    kr_json_destroy(doc);
    agent_lose(&a);
    world_deinit(&w);
}

static void test_page_when_there_is_no_fleet_view_then_clusters_only(void **state)
{
    struct world w;
    struct agent a;
    struct kr_json *doc;
    struct hub_subscriptions *subscriptions;

    (void)state;
    world_init(&w, "", 64u << 20);
    agent_join(&a, &w, "edge-1", true);
    subscriptions = w.w.subscriptions;
    w.w.subscriptions = NULL;
    doc = page(&w);
    assert_int_equal(kr_json_len(kr_json_get(doc, "clusters")), 1);
    kr_json_destroy(doc);
    w.w.subscriptions = subscriptions;
    agent_lose(&a);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_when_clusters_come_and_go_then_sorted_and_counted),
        cmocka_unit_test(test_page_when_there_is_no_fleet_view_then_clusters_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
