/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rebase.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/sync_out.h"
#include "api_double.h"
#include "wire/digest.h"

#define SLIM                                                                                       \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u-1\"},\"spec\":{\"a\":1}}"
#define LIVE                                                                                       \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\",\"namespace\":"        \
    "\"shop\",\"uid\":\"u-1\",\"resourceVersion\":\"77\",\"managedFields\":[{}]},\"spec\":{\"a\":" \
    "1}}"
#define BODY "{\"metadata\":{\"resourceVersion\":\"\"},\"x\":1}"

struct world {
    struct api_world w;
    struct kr_profile *profile;
    struct kr_arena arena;
    struct kr_request_info info;
    struct kr_rebase rebase;
    struct agent_rebase *rb;
    int identity_rc;
    /* what came */
    int ready;
    int refused; /* enum kr_case, or -1 */
    int answered;
    struct kr_buf text; /* body, or detail */
};

/* A double: one call is open, or none. */
static struct agent_sync_view open_call;

bool agent_sync_find(struct agent_core *c, uint64_t number, struct agent_sync_view *out)
{
    (void)c;
    *out = open_call;
    return number == 5 && open_call.profile != NULL;
}

static int add_identity(void *user, struct kr_head *to)
{
    struct world *x = user;

    return x->identity_rc != 0 ? x->identity_rc : kr_head_add_str(to, "impersonate-user", "jane");
}

static void on_ready(void *user, struct kr_bytes body)
{
    struct world *x = user;

    x->ready++;
    kr_buf_append(&x->text, body);
}

static void on_refused(void *user, enum kr_case which, struct kr_bytes detail)
{
    struct world *x = user;

    x->refused = (int)which;
    kr_buf_append(&x->text, detail);
    agent_rebase_destroy(x->rb);
    x->rb = NULL;
}

static void on_answer(void *user, const struct kr_head *head, struct kr_bytes body)
{
    struct world *x = user;

    x->answered = head->status;
    kr_buf_append(&x->text, kr_head_get(head, KR_LIT("content-type")));
    kr_buf_append(&x->text, body);
    agent_rebase_destroy(x->rb);
    x->rb = NULL;
}

static const struct agent_rebase_ops ops = {add_identity, on_ready, on_refused, on_answer};

static void set_up(struct world *x)
{
    struct kr_profile_paths none = {0};

    *x = (struct world){.refused = -1, .text = {.max = 65536}};
    api_world_init(&x->w);
    x->profile = kr_profile_create(&none, NULL);
    open_call = (struct agent_sync_view){x->profile, false};
    x->rebase = (struct kr_rebase){.subscription = 5,
                                   .uid = KR_LIT("u-1"),
                                   .hash = kr_object_hash(KR_LIT("u-1"), KR_LIT(SLIM), KR_LIT("")),
                                   .offsets = {32},
                                   .offset_count = 1};
    kr_arena_init(&x->arena, 512, 65536);
}

static void start(struct world *x, const char *target)
{
    struct kr_buf body = {.max = 65536};

    assert_int_equal(
        kr_request_info_parse(&x->info, KR_LIT("PUT"), kr_bytes_str(target), &x->arena, NULL), 0);
    kr_buf_append_str(&body, BODY);
    assert_int_equal(agent_rebase_start(&x->rb, &x->w.c, &x->rebase, &x->info, &body, &ops, x), 0);
    kr_buf_deinit(&body);
    assert_true(x->refused < 0 && x->ready == 0 && x->w.api.n == 0); /* not from inside */
    api_world_run(&x->w, 0);
}

#define POD "/api/v1/namespaces/shop/pods/web"

static void tear_down(struct world *x)
{
    agent_rebase_destroy(x->rb);
    kr_arena_deinit(&x->arena);
    kr_buf_deinit(&x->text);
    kr_profile_destroy(x->profile);
    api_world_deinit(&x->w);
}

static bool text_is(const struct world *x, const char *want)
{
    return kr_bytes_is(kr_buf_bytes(&x->text), want);
}

static void test_rebase_when_it_is_what_was_served_then_the_live_version_is_put_in(void **state)
{
    struct world x;
    struct turn *t;

    (void)state;
    set_up(&x);
    start(&x, POD "/status?fieldManager=k");
    t = api_next(&x.w.api);
    assert_string_equal(t->path, POD);
    assert_string_equal(t->accept, "application/json");
    turn_answer(t, 200, LIVE);
    assert_int_equal(x.ready, 1);
    assert_true(text_is(&x, "{\"metadata\":{\"resourceVersion\":\"77\"},\"x\":1}"));
    tear_down(&x);
}

static const struct {
    const char *target;
    const char *path;
} paths[] = {
    {"/api/v1/nodes/n%3A1/status", "/api/v1/nodes/n:1"},
    {"/api/v1/namespaces/shop", "/api/v1/namespaces/shop"},
    {"/api/v1/namespaces/shop/finalize", "/api/v1/namespaces/shop"},
    {"/apis/apps/v1/namespaces/shop/deployments/d", "/apis/apps/v1/namespaces/shop/deployments/d"},
    {"/apis/rbac.authorization.k8s.io/v1/clusterroles/a%20b?x=/",
     "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%20b"},
};

static void test_rebase_when_started_then_the_object_itself_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct world x;

        set_up(&x);
        start(&x, paths[i].target);
        assert_string_equal(api_next(&x.w.api)->path, paths[i].path);
        tear_down(&x); /* and the read is given up */
        assert_int_equal(x.ready, 0);
    }
}

static void test_rebase_when_metadata_was_served_then_metadata_is_read(void **state)
{
    struct kr_profile_paths only = {.metadata_only = true};
    struct world x;
    struct turn *t;

    (void)state;
    set_up(&x);
    kr_profile_destroy(x.profile);
    x.profile = kr_profile_create(&only, NULL);
    open_call = (struct agent_sync_view){x.profile, true};
    x.rebase.hash = kr_object_hash(
        KR_LIT("u-1"),
        KR_LIT("{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u-1\"}}"),
        KR_LIT(""));
    start(&x, POD);
    t = api_next(&x.w.api);
    assert_string_equal(
        t->accept, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json");
    turn_answer(t, 200, LIVE);
    assert_int_equal(x.ready, 1);
    tear_down(&x);
}

static const char *const others[] = {
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u-2\",\"resourceVersion\":"
    "\"77\"},\"spec\":{\"a\":1}}",
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u-1\",\"resourceVersion\":"
    "\"77\"},\"spec\":{\"a\":2}}",
};

static void test_rebase_when_it_is_another_then_conflict(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world x;

        set_up(&x);
        start(&x, "/apis/apps/v1/namespaces/shop/deployments/web");
        turn_answer(api_next(&x.w.api), 200, others[i]);
        assert_int_equal(x.refused, KR_CASE_CONFLICT);
        assert_true(text_is(&x, "deployments.apps \"web\""));
        tear_down(&x);
    }
}

static void
test_rebase_when_keys_of_the_fleet_view_are_at_the_edge_then_they_do_not_count(void **state)
{
    struct world x;

    (void)state;
    set_up(&x);
    x.rebase.hash = kr_object_hash(
        KR_LIT("u-1"),
        KR_LIT("{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u-1\",\"labels\":{"
               "\"a\":\"b\"},\"annotations\":{}}}"),
        KR_LIT(""));
    start(&x, POD);
    turn_answer(api_next(&x.w.api), 200,
                "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u-1\","
                "\"resourceVersion\":\"77\",\"labels\":{\"kuberelay.io/cluster\":\"c\",\"a\":"
                "\"b\"},\"annotations\":{\"kcp.io/cluster\":\"c\"}}}");
    assert_int_equal(x.ready, 1);
    tear_down(&x);
}

static void test_rebase_when_the_sync_is_not_open_then_nothing_is_read_or_sent(void **state)
{
    struct world x;

    (void)state;
    set_up(&x);
    open_call.profile = NULL;
    start(&x, POD);
    assert_int_equal(x.refused, KR_CASE_NOT_IN_STEP);
    assert_int_equal(x.w.api.n, 0);
    tear_down(&x);

    set_up(&x);
    start(&x, POD);
    open_call.profile = NULL; /* it ends meanwhile */
    turn_answer(api_next(&x.w.api), 200, LIVE);
    assert_int_equal(x.refused, KR_CASE_NOT_IN_STEP);
    tear_down(&x);
}

static void test_rebase_when_the_object_is_not_given_then_that_is_the_answer(void **state)
{
    static const int codes[] = {403, 404, 429, 500};

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct world x;

        set_up(&x);
        start(&x, POD);
        turn_answer(api_next(&x.w.api), codes[i], "{\"kind\":\"Status\"}");
        assert_int_equal(x.answered, codes[i]);
        assert_true(text_is(&x, "application/json{\"kind\":\"Status\"}"));
        tear_down(&x);
    }
}

static void test_rebase_when_the_api_server_fails_then_said_that_nothing_was_done(void **state)
{
    struct world x;

    (void)state;
    set_up(&x);
    start(&x, POD);
    turn_head(api_next(&x.w.api), 200, NULL, NULL);
    turn_done(x.w.api.turns[0], KR_ERESET);
    assert_int_equal(x.refused, KR_CASE_API_UNREACHABLE);
    tear_down(&x);

    set_up(&x);
    start(&x, POD);
    turn_answer(api_next(&x.w.api), 200, "{\"metadata\":{\"name\":\"web\"");
    assert_int_equal(x.refused, KR_CASE_API_PROTOCOL);
    tear_down(&x);

    set_up(&x);
    start(&x, POD);
    turn_answer(api_next(&x.w.api), 401, "");
    assert_int_equal(x.refused, KR_CASE_API_TOKEN);
    tear_down(&x);

    set_up(&x);
    x.w.api.refuses = true;
    start(&x, POD);
    api_fail_waiters(&x.w.api);
    assert_int_equal(x.refused, KR_CASE_API_UNREACHABLE);
    tear_down(&x);
}

static void test_rebase_when_the_user_may_not_be_then_refused_before_reading(void **state)
{
    struct world x;

    (void)state;
    set_up(&x);
    x.identity_rc = KR_EDENIED;
    start(&x, POD);
    assert_int_equal(x.refused, KR_CASE_AGENT_DENIED);
    assert_int_equal(x.w.api.n, 0);
    tear_down(&x);
}

static void test_rebase_when_an_offset_is_wrong_then_nothing_is_sent(void **state)
{
    struct world x;

    (void)state;
    set_up(&x);
    x.rebase.offsets[0] = 3;
    start(&x, POD);
    turn_answer(api_next(&x.w.api), 200, LIVE);
    assert_int_equal(x.refused, KR_CASE_BAD_REQUEST);
    tear_down(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rebase_when_it_is_what_was_served_then_the_live_version_is_put_in),
        cmocka_unit_test(test_rebase_when_started_then_the_object_itself_is_read),
        cmocka_unit_test(test_rebase_when_metadata_was_served_then_metadata_is_read),
        cmocka_unit_test(test_rebase_when_it_is_another_then_conflict),
        cmocka_unit_test(
            test_rebase_when_keys_of_the_fleet_view_are_at_the_edge_then_they_do_not_count),
        cmocka_unit_test(test_rebase_when_the_sync_is_not_open_then_nothing_is_read_or_sent),
        cmocka_unit_test(test_rebase_when_the_object_is_not_given_then_that_is_the_answer),
        cmocka_unit_test(test_rebase_when_the_api_server_fails_then_said_that_nothing_was_done),
        cmocka_unit_test(test_rebase_when_the_user_may_not_be_then_refused_before_reading),
        cmocka_unit_test(test_rebase_when_an_offset_is_wrong_then_nothing_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
