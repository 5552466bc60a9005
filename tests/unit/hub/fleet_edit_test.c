/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_edit.h"

#include "fleet_world.h"
#include "kube/proto_body.h"
#include "wire/digest.h"

#define UID "0a1b2c3d-0001-4000-8000-00000000000a"

struct edit {
    struct fleet f;
    struct hub_cluster *cluster;
    struct hub_request r;
    struct hub_write w;
    struct kr_buf out;
    struct kr_note why;
};

static int setup(void **state)
{
    static struct edit e;

    memset(&e, 0, sizeof e);
    fleet_setup(&e.f);
    know_cluster(&e.f, "c1");
    e.f.subs.number = 7;
    e.r.w = &e.f.w;
    e.r.cluster = hub_clusters_find(&e.f.w.clusters, KR_LIT("c1"));
    e.r.cluster_path.name = KR_LIT("c1");
    kr_arena_init(&e.r.arena, 1024, 65536);
    e.w = (struct hub_write){.type = e.f.pods};
    e.r.write = &e.w;
    kr_buf_init(&e.out, HUB_EDIT_MAX);
    *state = &e;
    return 0;
}

static int teardown(void **state)
{
    struct edit *e = *state;

    kr_arena_deinit(&e->r.arena);
    kr_buf_deinit(&e->out);
    fleet_teardown(&e->f);
    return 0;
}

static struct hub_object *object(struct edit *e, bool lossy)
{
    put_slim_pod(&e->f, "c1", "a", "web", "web", "Running", lossy);
    return (struct hub_object *)hub_shelf_get(shelf_of(&e->f, "c1"), KR_LIT("a"), KR_LIT("web"));
}

/* Plans the write of `body`, in which %llu stands for the object's version, and edits it. */
static int edit(struct edit *e, struct hub_object *o, const char *verb, const char *type,
                const char *format)
{
    static char body[1024];
    struct hub_plan plan;
    struct hub_plan_ask ask = {
        .verb = kr_bytes_str(verb),
        .subresource = KR_LIT(""),
        .content_type = kr_bytes_str(type),
        .revision = o != NULL ? o->revision : 0,
        .origin = KR_LIT("77"),
        .lossy = o != NULL && o->lossy,
        .given_out = &e->f.revision,
    };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(body, sizeof body, format, (unsigned long long)ask.revision);
#pragma GCC diagnostic pop
    ask.body = kr_bytes_str(body);
    hub_plan_write(&ask, &plan);
    assert_true(plan.step == HUB_PLAN_EDIT || plan.step == HUB_PLAN_PATCH);
    e->out.n = 0;
    return hub_edit_body(&e->r, o, &plan, ask.body, &e->out, &e->why);
}

static void assert_out(const struct edit *e, const char *want)
{
    if (!kr_bytes_is(kr_buf_bytes(&e->out), want))
        fail_msg("%.*s", (int)e->out.n, (const char *)e->out.p);
}

static void test_edit_when_the_version_is_there_then_the_agent_is_told_what_was_served(void **state)
{
    static const char slim[] =
        "{\"metadata\":{\"name\":\"web\",\"namespace\":\"a\",\"uid\":\"" UID
        "\",\"labels\":{\"app\":\"web\"},\"creationTimestamp\":\"2023-11-14T22:12:50Z\"},"
        "\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}";
    struct edit *e = *state;
    struct hub_object *o = object(e, false);

    assert_int_equal(edit(e, o, "update", "application/json",
                          "{\"metadata\":{\"resourceVersion\":\"%llu\",\"labels\":{"
                          "\"kuberelay.io/cluster\":\"c1\"}},\"spec\":{}}"),
                     0);
    assert_out(e, "{\"metadata\":{\"resourceVersion\":\"\"},\"spec\":{}}");
    assert_false(e->w.as_patch);
    assert_int_equal(e->w.rebase.subscription, 7);
    assert_true(kr_bytes_is(e->w.rebase.uid, UID));
    assert_int_equal(e->w.rebase.hash,
                     kr_object_hash(KR_LIT(UID), kr_bytes_str(slim), kr_bytes_of(NULL, 0)));
    assert_int_equal(e->w.rebase.offset_count, 1);
    assert_int_equal(e->w.rebase.offsets[0], strlen("{\"metadata\":{\"resourceVersion\":\""));
}

static void test_edit_when_there_is_no_version_then_nobody_is_asked(void **state)
{
    struct edit *e = *state;

    e->f.subs.number = 0;
    assert_int_equal(edit(e, NULL, "create", "application/json",
                          "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"kcp.io/cluster\":"
                          "\"c1\",\"kuberelay.io/resource-version\":\"7\"}}}"),
                     0);
    assert_out(e, "{\"metadata\":{\"name\":\"x\"}}");
    assert_int_equal(e->w.rebase.subscription, 0);
}

static void test_edit_when_the_object_is_lossy_then_a_patch_of_what_was_changed(void **state)
{
    struct edit *e = *state;
    struct hub_object *o = object(e, true);

    assert_int_equal(
        edit(e, o, "update", "application/json",
             "{\"metadata\":{\"name\":\"web\",\"namespace\":\"a\",\"uid\":\"" UID
             "\",\"resourceVersion\":\"%llu\",\"labels\":{\"app\":\"web\",\"n\":\"1\"},"
             "\"creationTimestamp\":\"2023-11-14T22:12:50Z\"},\"spec\":{\"nodeName\":\"n1\"},"
             "\"status\":{\"phase\":\"Running\"}}"),
        0);
    assert_true(e->w.as_patch);
    assert_out(e, "[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"\"},"
                  "{\"op\":\"add\",\"path\":\"/metadata/labels/n\",\"value\":\"1\"}]");
    assert_int_equal(e->w.rebase.offset_count, 1);
}

static void test_edit_when_a_change_could_lose_something_then_its_place(void **state)
{
    struct edit *e = *state;
    struct hub_object *o = object(e, true);

    configure(&e->f, "profiles:\n- name: p\n  resources: [pods]\n  keep: [spec.nodeName]\n");
    assert_int_equal(edit(e, o, "update", "application/json",
                          "{\"metadata\":{\"name\":\"web\",\"namespace\":\"a\",\"uid\":\"" UID
                          "\",\"resourceVersion\":\"%llu\",\"labels\":{\"app\":\"web\"},"
                          "\"creationTimestamp\":\"2023-11-14T22:12:50Z\"},"
                          "\"spec\":{\"nodeName\":\"n1\",\"tolerations\":[{\"key\":\"k\"}]}}"),
                     KR_EDENIED);
    assert_non_null(strstr(e->why.text, "/spec/tolerations"));
}

static void test_edit_when_no_sync_is_open_then_unavailable(void **state)
{
    struct edit *e = *state;
    struct hub_object *o = object(e, false);

    e->f.subs.number = 0;
    assert_int_equal(edit(e, o, "patch", "application/merge-patch+json",
                          "{\"metadata\":{\"resourceVersion\":\"%llu\"}}"),
                     KR_EUNAVAILABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_edit_when_the_version_is_there_then_the_agent_is_told_what_was_served),
        TEST(test_edit_when_there_is_no_version_then_nobody_is_asked),
        TEST(test_edit_when_the_object_is_lossy_then_a_patch_of_what_was_changed),
        TEST(test_edit_when_a_change_could_lose_something_then_its_place),
        TEST(test_edit_when_no_sync_is_open_then_unavailable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
