/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog with its rounds of discovery. */
#include "agent/catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../wire/fake_exchange.h"
#include "api_double.h"
#include "wire/grpc_call.h"

#define V2 "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define LIST(items)                                                                                \
    "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/"                    \
    "v2\",\"metadata\":{},"                                                                        \
    "\"items\":[" items "]}"
#define TYPE(resource, kind, scope)                                                                \
    "{\"resource\":\"" resource                                                                    \
    "\",\"responseKind\":{\"group\":\"\",\"version\":\"\",\"kind\":\"" kind                        \
    "\"},\"scope\":\"" scope "\",\"singularResource\":\"s\",\"verbs\":[\"get\",\"list\","          \
    "\"watch\"],\"shortNames\":[\"po\"],\"categories\":[\"all\"]}"

static const char core_doc[] =
    LIST("{\"metadata\":{\"creationTimestamp\":null},\"versions\":[{\"version\":\"v1\","
         "\"resources\":[" TYPE("pods", "Pod", "Namespaced") "," TYPE(
             "nodes", "Node", "Cluster") ",{\"resource\":\"bindings\",\"responseKind\":{\"kind\":"
                                         "\"Binding\"},\"scope\":\"Namespaced\","
                                         "\"verbs\":[\"create\"]}],\"freshness\":\"Current\"}]}");
static const char apps_doc[] =
    LIST("{\"metadata\":{\"name\":\"apps\"},\"versions\":[{\"version\":\"v1\",\"resources\":[" TYPE(
        "deployments", "Deployment",
        "Namespaced") "]},{\"version\":\"v1beta1\",\"resources\":[" TYPE("deployments",
                                                                         "Deployment",
                                                                         "Namespaced") "]}]}");
static const char stale_doc[] = LIST("{\"metadata\":{\"name\":\"apps\"},\"versions\":[{\"version\":"
                                     "\"v1\",\"freshness\":\"Stale\"}]}");

struct hub { /* one Catalog call */
    struct fake_wire wire;
    struct kr_grpc_stream stream;
    int updates;
    size_t types;
    char first[64];
    bool ended;
};

struct world {
    struct api_world w;
    struct agent_catalog *cat;
    struct hub hub;
};

static struct world *set_up(void)
{
    struct world *x = calloc(1, sizeof *x);

    assert_non_null(x);
    api_world_init(&x->w);
    x->cat = agent_catalog_create(&x->w.c);
    assert_non_null(x->cat);
    agent_catalog_start(x->cat);
    api_world_run(&x->w, 0);
    return x;
}

static void tear_down(struct world *x)
{
    agent_catalog_stop(x->cat);
    agent_catalog_destroy(x->cat);
    api_world_deinit(&x->w);
    free(x);
}

static struct turn *next(struct world *x, const char *path)
{
    struct turn *t = api_next(&x->w.api);

    assert_string_equal(t->path, path);
    return t;
}

static void answer(struct turn *t, const char *type, const char *etag, const char *body)
{
    assert_int_equal(kr_head_add_str(&t->ex.head, "content-type", type), 0);
    turn_head(t, 200, "etag", etag);
    turn_say(t, body);
    turn_done(t, 0);
}

static void discovered(struct world *x)
{
    answer(next(x, "/api"), V2, "\"E1\"", core_doc);
    answer(next(x, "/apis"), V2, "\"E2\"", apps_doc);
}

static const struct kr_resource_type *find(struct world *x, const char *group, const char *version,
                                           const char *resource)
{
    return agent_catalog_find(x->cat, kr_bytes_str(group), kr_bytes_str(version),
                              kr_bytes_str(resource));
}

/* ---- a hub */

static int on_message(void *user, struct kr_bytes message)
{
    struct hub *h = user;
    struct kr_catalog_update m;
    struct kr_arena arena;

    kr_arena_init(&arena, 1024, 16u << 20);
    assert_int_equal(kr_catalog_update_decode(&m, message, &arena, NULL), 0);
    h->updates++;
    h->types = m.n;
    assert_false(m.more);
    if (m.n != 0)
        snprintf(h->first, sizeof h->first, "%.*s", (int)m.types[0].resource.n,
                 (const char *)m.types[0].resource.p);
    kr_arena_deinit(&arena);
    return 0;
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    (void)status, (void)message;
    ((struct hub *)user)->ended = true;
}

static const struct kr_grpc_user hub_user = {.on_message = on_message, .on_end = on_end};

static void on_request(struct fake_wire *w)
{
    struct world *x = w->owner;

    agent_catalog_accept(x->cat, &w->server.ex);
}

static void hub_call(struct world *x)
{
    struct kr_grpc_limits limits = {.message = KR_SYNC_MESSAGE_MAX, .queue = 4096};

    fake_wire_init(&x->hub.wire, on_request, x);
    assert_int_equal(kr_grpc_open(&x->hub.stream, &x->hub.wire.conn, KR_LIT("a"),
                                  KR_LIT(KR_GRPC_CATALOG), limits, &hub_user, &x->hub),
                     0);
    assert_int_equal(kr_grpc_send(&x->hub.stream, KR_LIT("")), 0);
    assert_int_equal(kr_grpc_finish(&x->hub.stream, 0, KR_LIT("")),
                     0); /* as a unary request does */
    fake_pump(&x->hub.wire, 4096);
}

static void hub_gone(struct world *x)
{
    fake_finish(&x->hub.wire.server, KR_ECONNLOST, 0);
    fake_finish(&x->hub.wire.client, KR_ECONNLOST, 0);
    kr_grpc_deinit(&x->hub.stream);
    fake_wire_deinit(&x->hub.wire);
}

/* ---- tests */

static void test_types_that_can_be_followed_are_found(void **state)
{
    struct world *x = set_up();
    const struct kr_resource_type *pods, *old;

    (void)state;
    assert_false(agent_catalog_known(x->cat));
    discovered(x);
    assert_true(agent_catalog_known(x->cat));
    pods = find(x, "", "v1", "pods");
    assert_non_null(pods);
    assert_true(pods->namespaced && pods->preferred);
    assert_true(kr_bytes_is(pods->kind, "Pod") && kr_bytes_is(pods->singular, "s"));
    assert_true(pods->short_name_count == 1 && kr_bytes_is(pods->short_names[0], "po"));
    assert_true(pods->category_count == 1 && kr_bytes_is(pods->categories[0], "all"));
    assert_false(find(x, "", "v1", "nodes")->namespaced);
    assert_null(find(x, "", "v1", "bindings"));
    old = find(x, "apps", "v1beta1", "deployments");
    assert_non_null(old);
    assert_false(old->preferred);
    tear_down(x);
}

static void test_the_next_round_asks_by_etag(void **state)
{
    struct world *x = set_up();
    struct turn *t;

    (void)state;
    discovered(x);
    api_world_run(&x->w, 30000);
    t = next(x, "/api");
    assert_string_equal(t->etag, "\"E1\"");
    turn_answer(t, 304, "");
    t = next(x, "/apis");
    assert_string_equal(t->etag, "\"E2\"");
    turn_answer(t, 304, "");
    assert_non_null(find(x, "", "v1", "pods"));
    assert_int_equal(api_world_counter(&x->w, AGENT_DISCOVERIES, "unchanged"), 1);
    tear_down(x);
}

static void test_a_hub_is_told_at_once_and_when_it_changes(void **state)
{
    struct world *x = set_up();

    (void)state;
    hub_call(x);
    assert_int_equal(x->hub.updates, 0); /* nothing is known */
    discovered(x);
    fake_pump(&x->hub.wire, 4096);
    assert_int_equal(x->hub.updates, 1);
    assert_int_equal(x->hub.types, 4);
    assert_string_equal(x->hub.first, "pods");
    api_world_run(&x->w, 30000);
    answer(next(x, "/api"), V2, "\"E3\"", core_doc); /* another ETag, the same types */
    turn_answer(next(x, "/apis"), 304, "");
    fake_pump(&x->hub.wire, 4096);
    assert_int_equal(x->hub.updates, 1);
    api_world_run(&x->w, 30000);
    turn_answer(next(x, "/api"), 304, "");
    answer(next(x, "/apis"), V2, "\"E4\"", LIST(""));
    fake_pump(&x->hub.wire, 4096);
    assert_int_equal(x->hub.updates, 2);
    assert_int_equal(x->hub.types, 2);
    hub_gone(x);
    assert_true(x->hub.ended);
    tear_down(x);
}

static void test_a_change_is_told_although_the_round_after_it_failed(void **state)
{
    struct world *x = set_up();

    (void)state;
    discovered(x);
    hub_call(x);
    assert_int_equal(x->hub.updates, 1);
    api_world_run(&x->w, 30000);
    answer(next(x, "/api"), V2, "\"E3\"", LIST(""));
    turn_answer(next(x, "/apis"), 503, "");
    api_world_run(&x->w, 30000);
    turn_answer(next(x, "/api"), 304, "");
    turn_answer(next(x, "/apis"), 304, "");
    fake_pump(&x->hub.wire, 4096);
    assert_int_equal(x->hub.updates, 2);
    assert_int_equal(x->hub.types, 2);
    hub_gone(x);
    tear_down(x);
}

static void test_a_failing_round_empties_nothing(void **state)
{
    static const char *const bodies[] = {"", "{", "[]", "{\"kind\":\"Status\",\"code\":500}",
                                         "{\"items\":[{\"versions\":3}]}"};
    struct world *x = set_up();

    (void)state;
    discovered(x);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct turn *t;

        api_world_run(&x->w, 30000);
        t = next(x, "/api");
        assert_int_equal(kr_head_add_str(&t->ex.head, "content-type", V2), 0);
        turn_head(t, 200, NULL, NULL);
        turn_say(t, bodies[i]);
        turn_done(t, 0);
        assert_int_equal(x->w.api.n, x->w.api.looked); /* the round is over */
        assert_non_null(find(x, "", "v1", "pods"));
    }
    api_world_run(&x->w, 30000);
    turn_done(next(x, "/api"), KR_ECONNLOST);
    assert_non_null(find(x, "", "v1", "pods"));
    tear_down(x);
}

static void test_types_of_a_source_that_is_away_stay(void **state)
{
    struct world *x = set_up();

    (void)state;
    discovered(x);
    api_world_run(&x->w, 30000);
    turn_answer(next(x, "/api"), 304, "");
    answer(next(x, "/apis"), V2, "\"E9\"", stale_doc);
    assert_non_null(find(x, "apps", "v1", "deployments"));
    assert_null(find(x, "apps", "v1beta1", "deployments"));
    tear_down(x);
}

static void test_old_servers_are_asked_document_by_document(void **state)
{
    static const char pods[] =
        "{\"kind\":\"APIResourceList\",\"groupVersion\":\"v1\",\"resources\":[{\"name\":\"pods\","
        "\"singularName\":\"pod\",\"namespaced\":true,\"kind\":\"Pod\",\"verbs\":[\"list\","
        "\"watch\"]},{\"name\":\"pods/log\",\"singularName\":\"\",\"namespaced\":true,\"kind\":"
        "\"Pod\",\"verbs\":[\"list\",\"watch\"]}]}";
    static const char groups[] =
        "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"apps\",\"versions\":[{\"version\":"
        "\"v1\"},{\"version\":\"v2\"}],\"preferredVersion\":{\"version\":\"v2\"}}]}";
    static const char things[] =
        "{\"kind\":\"APIResourceList\",\"resources\":[{\"name\":\"things\",\"singularName\":\"\","
        "\"namespaced\":false,\"kind\":\"Thing\",\"verbs\":[\"list\",\"watch\"]}]}";
    struct world *x = set_up();

    (void)state;
    answer(next(x, "/api"), "application/json", "",
           "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}");
    turn_answer(next(x, "/api/v1"), 200, pods);
    answer(next(x, "/apis"), "application/json", "", groups);
    turn_answer(next(x, "/apis/apps/v1"), 200, things);
    turn_answer(next(x, "/apis/apps/v2"), 200, things);
    assert_non_null(find(x, "", "v1", "pods"));
    assert_null(find(x, "", "v1", "pods/log"));
    assert_false(find(x, "apps", "v1", "things")->preferred);
    assert_true(find(x, "apps", "v2", "things")->preferred);
    api_world_run(&x->w, 599999); /* so many documents are not for every half a minute */
    assert_int_equal(x->w.api.n, x->w.api.looked);
    api_world_run(&x->w, 1);
    answer(next(x, "/api"), "application/json", "",
           "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}");
    turn_answer(next(x, "/api/v1"), 200, pods);
    answer(next(x, "/apis"), "application/json", "", groups);
    turn_answer(next(x, "/apis/apps/v1"), 503, ""); /* its server is away */
    turn_answer(next(x, "/apis/apps/v2"), 200, things);
    assert_non_null(find(x, "apps", "v1", "things"));
    tear_down(x);
}

/* One that starts while a part of its API server is away must not say that there is nothing of it.
 */
static void test_a_first_catalog_with_a_hole_is_looked_at_again_before_it_is_told(void **state)
{
    struct world *x = set_up();

    (void)state;
    answer(next(x, "/api"), V2, "\"E1\"", core_doc);
    answer(next(x, "/apis"), V2, "\"E9\"", stale_doc);
    assert_false(agent_catalog_known(x->cat));
    api_world_run(&x->w, 2000);
    turn_answer(next(x, "/api"), 304, "");
    answer(next(x, "/apis"), V2, "\"E2\"", apps_doc);
    assert_true(agent_catalog_known(x->cat));
    assert_non_null(find(x, "apps", "v1", "deployments"));
    tear_down(x);
}

static void test_a_part_that_stays_away_keeps_back_the_rest_for_a_few_rounds_only(void **state)
{
    static const char groups[] = "{\"kind\":\"APIGroupList\",\"groups\":[{\"name\":\"apps\","
                                 "\"versions\":[{\"version\":\"v1\"}]}]}";
    struct world *x = set_up();

    (void)state;
    for (int i = 0; i < 4; i++) {
        answer(next(x, "/api"), "application/json", "",
               "{\"kind\":\"APIVersions\",\"versions\":[]}");
        answer(next(x, "/apis"), "application/json", "", groups);
        turn_answer(next(x, "/apis/apps/v1"), 503, "");
        assert_int_equal(agent_catalog_known(x->cat), i >= 2);
        api_world_run(&x->w, i < 2 ? 2000 : 30000); /* not after ten minutes, as when it is whole */
    }
    next(x, "/api");
    tear_down(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_that_can_be_followed_are_found),
        cmocka_unit_test(test_the_next_round_asks_by_etag),
        cmocka_unit_test(test_a_hub_is_told_at_once_and_when_it_changes),
        cmocka_unit_test(test_a_change_is_told_although_the_round_after_it_failed),
        cmocka_unit_test(test_a_failing_round_empties_nothing),
        cmocka_unit_test(test_types_of_a_source_that_is_away_stay),
        cmocka_unit_test(test_old_servers_are_asked_document_by_document),
        cmocka_unit_test(test_a_first_catalog_with_a_hole_is_looked_at_again_before_it_is_told),
        cmocka_unit_test(test_a_part_that_stays_away_keeps_back_the_rest_for_a_few_rounds_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
