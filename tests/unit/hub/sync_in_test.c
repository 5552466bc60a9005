/* SPDX-License-Identifier: Apache-2.0 */
/* One Sync call and what it leaves on the shelf, driven by an agent over a real HTTP/2 connection
 * in memory. Hostile content is in upsert_check_test.c. */
#include "sync_world.h"

#define ALWAYS_PODS "profiles: [{name: pods, resources: [pods], always: true}]\n"

static const char *const pods_only[] = {"pods", NULL};

struct one { /* one agent, subscribed to pods */
    struct world w;
    struct agent a;
    struct call *c;
};

static void start_with(struct one *o, uint64_t quota)
{
    world_init(&o->w, ALWAYS_PODS, quota);
    agent_join(&o->a, &o->w, "edge-1", true);
    agent_catalog(&o->a, pods_only);
    o->c = open_call(&o->a, "pods");
    assert_non_null(o->c);
}

static void start(struct one *o)
{
    start_with(o, 64u << 20);
}

static void stop(struct one *o)
{
    agent_lose(&o->a);
    world_deinit(&o->w);
}

static struct hub_shelf *pods(struct one *o)
{
    return shelf_of(&o->w, "edge-1", "pods");
}

/* The tunnel breaks and another one comes. */
static void reconnect(struct one *o)
{
    agent_lose(&o->a);
    agent_join(&o->a, &o->w, "edge-1", true);
    run(&o->w, 2000);
    o->c = open_call(&o->a, "pods");
    assert_non_null(o->c);
}

static void test_sync_when_first_then_content_and_marks(void **state)
{
    struct kr_sync_batch b = {
        .columns = KR_LIT("[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\"}]"),
        .skipped = 2,
        .raw_bytes = 5000,
    };
    struct hub_subscription_view view;
    struct one o;

    (void)state;
    start(&o);
    assert_false(o.c->holds);
    assert_string_equal(o.c->version, "");
    assert_int_equal(o.c->metadata_only, false);
    agent_send(o.c, &b);
    agent_put(o.c, "a", "p1", "1");
    agent_put(o.c, "a", "p2", "1");
    assert_false(pods(&o)->synced);
    agent_end_snapshot(o.c, "100");
    assert_true(pods(&o)->synced);
    assert_int_equal(pods(&o)->stale_since_wall_ms, 0);
    assert_string_equal(pods(&o)->origin_version, "100");
    assert_int_equal(pods(&o)->columns_changed, 1);
    assert_content(&o.w, "edge-1", "pods", "p1 p2 ");
    assert_true(hub_subscriptions_view(o.w.w.subscriptions, "edge-1", 0, &view));
    assert_true(view.open);
    assert_int_equal(view.stats->upserts, 2);
    assert_int_equal(view.stats->raw, 5000);
    assert_int_equal(hub_subscriptions_number(o.w.w.subscriptions, "edge-1", type_of(&o.w, "pods")),
                     o.c->id);
    stop(&o);
}

static void test_sync_when_objects_change_then_revisions_grow_and_deletes_delete(void **state)
{
    uint64_t key = kr_key_hash(KR_LIT("a"), KR_LIT("p1"));
    struct kr_sync_batch gone = {.deletes = &key, .delete_count = 1};
    struct one o;
    uint64_t before;

    (void)state;
    start(&o);
    agent_put(o.c, "a", "p1", "1");
    agent_put(o.c, "a", "p2", "1");
    agent_end_snapshot(o.c, "100");
    before = type_of(&o.w, "pods")->revision;
    agent_put(o.c, "a", "p1", "2");
    assert_true(type_of(&o.w, "pods")->revision > before);
    before = type_of(&o.w, "pods")->revision;
    agent_put(o.c, "a", "p1", "2"); /* the same once more */
    assert_int_equal(type_of(&o.w, "pods")->revision, before);
    agent_send(o.c, &gone);
    assert_content(&o.w, "edge-1", "pods", "p2 ");
    stop(&o);
}

static void test_sync_when_tunnel_breaks_then_stale_and_resumed_by_digest(void **state)
{
    struct kr_digest held = {.objects = 0};
    char text[1024];
    struct one o;

    (void)state;
    start(&o);
    agent_put(o.c, "a", "p1", "1");
    agent_put(o.c, "a", "p2", "1");
    agent_end_snapshot(o.c, "100");
    agent_lose(&o.a);
    assert_int_equal(pods(&o)->stale_since_wall_ms, o.w.sched.now_wall_ms);
    assert_content(&o.w, "edge-1", "pods", "p1 p2 ");
    run(&o.w, 3600000); /* nothing is tried without a tunnel */
    assert_content(&o.w, "edge-1", "pods", "p1 p2 ");
    agent_join(&o.a, &o.w, "edge-1", true);
    o.c = open_call(&o.a, "pods");
    assert_non_null(o.c); /* a new tunnel is no reason to wait */
    assert_true(o.c->holds);
    assert_string_equal(o.c->version, "100");
    assert_int_equal(o.c->objects, 2);
    kr_digest_add(&held, kr_key_hash(KR_LIT("a"), KR_LIT("p1")),
                  hash_of(object_text("a", "p1", "1", text, sizeof text)));
    kr_digest_add(&held, kr_key_hash(KR_LIT("a"), KR_LIT("p2")),
                  hash_of(object_text("a", "p2", "1", text, sizeof text)));
    assert_memory_equal(held.sums, o.c->digest.sums, sizeof held.sums);
    assert_int_not_equal(pods(&o)->stale_since_wall_ms, 0);
    agent_end_snapshot(o.c, "101");
    assert_int_equal(pods(&o)->stale_since_wall_ms, 0);
    stop(&o);
}

static void test_sync_when_agent_wants_buckets_then_their_pairs(void **state)
{
    uint64_t key = kr_key_hash(KR_LIT("a"), KR_LIT("p1"));
    uint32_t wanted[2] = {kr_bucket_of(key), (kr_bucket_of(key) + 1) % KR_BUCKETS};
    struct kr_sync_batch b = {.want_buckets = wanted, .want_count = 2};
    struct one o;

    (void)state;
    start(&o);
    agent_put(o.c, "a", "p1", "1");
    agent_end_snapshot(o.c, "100");
    reconnect(&o);
    agent_send(o.c, &b);
    assert_int_equal(o.c->buckets, 2); /* the empty one is answered, too */
    assert_int_equal(o.c->pair_count, 1);
    assert_int_equal(o.c->pairs[0].key, key);
    agent_send(o.c, &b); /* twice: that is a fault */
    assert_false(o.c->open);
    assert_content(&o.w, "edge-1", "pods", "p1 ");
    assert_int_equal(pods(&o)->problem, KR_SYNC_FAILING);
    stop(&o);
}

/* Field case F024: what was not repeated by a stream that broke is not gone. */
static void test_sync_when_stream_ends_within_a_snapshot_then_nothing_is_lost(void **state)
{
    struct one o;

    (void)state;
    start(&o);
    agent_put(o.c, "a", "p1", "1");
    agent_put(o.c, "a", "p2", "1");
    agent_end_snapshot(o.c, "100");
    reconnect(&o);
    agent_put(o.c, "a", "p3", "1");
    assert_int_equal(kr_grpc_finish(&o.c->s, KR_GRPC_OK, KR_LIT("")), 0);
    run(&o.w, 0);
    assert_content(&o.w, "edge-1", "pods", "p1 p2 p3 ");
    assert_int_not_equal(pods(&o)->stale_since_wall_ms, 0);
    run(&o.w, 3000);
    o.c = open_call(&o.a, "pods");
    assert_non_null(o.c); /* tried again on the same tunnel */
    assert_int_equal(o.c->objects, 3);
    agent_problem(o.c, KR_SYNC_FAILING, "503");
    agent_problem(o.c, KR_SYNC_FORBIDDEN, "403");
    assert_content(&o.w, "edge-1", "pods", "p1 p2 p3 ");
    stop(&o);
}

static void test_sync_when_problem_comes_and_goes_then_told_and_stale_meanwhile(void **state)
{
    struct one o;

    (void)state;
    start(&o);
    agent_put(o.c, "a", "p1", "1");
    agent_end_snapshot(o.c, "100");
    agent_problem(o.c, KR_SYNC_FORBIDDEN, "pods is forbidden");
    assert_int_equal(pods(&o)->problem, KR_SYNC_FORBIDDEN);
    assert_string_equal(pods(&o)->problem_text, "pods is forbidden");
    assert_int_equal(pods(&o)->stale_since_wall_ms, o.w.sched.now_wall_ms);
    agent_problem(o.c, KR_SYNC_OK, "");
    assert_int_equal(pods(&o)->problem, KR_SYNC_OK);
    assert_int_equal(pods(&o)->stale_since_wall_ms, 0);
    stop(&o);
}

static void test_sync_when_type_is_gone_and_confirmed_then_so_are_its_objects(void **state)
{
    static const char *const nothing[] = {NULL};
    struct one o;

    (void)state;
    start(&o);
    agent_put(o.c, "a", "p1", "1");
    agent_end_snapshot(o.c, "100");
    run(&o.w, 2000);
    agent_catalog(&o.a, nothing); /* not enough alone: discovery may be half broken */
    run(&o.w, 2000);
    assert_content(&o.w, "edge-1", "pods", "p1 ");
    assert_true(o.c->open);
    agent_problem(o.c, KR_SYNC_NOT_SERVED, "404");
    run(&o.w, 0);
    assert_null(pods(&o));
    assert_false(o.c->open);
    stop(&o);
}

static void test_sync_when_objects_are_bad_then_left_out_and_too_many_end_the_call(void **state)
{
    struct one o;

    (void)state;
    start(&o);
    agent_put(o.c, "a", "p1", "1");
    agent_text(o.c, "a", "p2", "[]\n{\"metadata\":{\"name\":\"other\"}}");
    agent_put(o.c, "a", "p3", "1");
    assert_true(o.c->open);
    assert_content(&o.w, "edge-1", "pods", "p1 p3 ");
    for (int i = 0; i < HUB_SYNC_BAD_MAX; i++)
        agent_text(o.c, "a", "p2", "no newline");
    assert_false(o.c->open);
    assert_content(&o.w, "edge-1", "pods", "p1 p3 ");
    assert_int_equal(pods(&o)->problem, KR_SYNC_FAILING);
    run(&o.w, 120000);
    o.c = open_call(&o.a, "pods");
    assert_non_null(o.c);
    agent_end_snapshot(o.c, "1");
    assert_int_equal(pods(&o)->problem, KR_SYNC_OK);
    stop(&o);
}

static void test_sync_when_agent_misbehaves_then_new_tunnels_do_not_shorten_the_wait(void **state)
{
    struct one o;
    size_t calls = 0;

    (void)state;
    start(&o);
    agent_put(o.c, "a", "p1", "1");
    for (int i = 0; i < 20; i++) {
        run(&o.w, 500);
        o.c = open_call(&o.a, "pods");
        if (o.c == NULL)
            continue;
        calls++;
        assert_int_equal(kr_grpc_send(&o.c->s, KR_LIT("\xff\xff garbage")), 0);
        run(&o.w, 0);
        assert_null(open_call(&o.a, "pods"));
        agent_lose(&o.a);
        agent_join(&o.a, &o.w, "edge-1", true);
    }
    assert_in_range(calls, 1, 10);
    assert_content(&o.w, "edge-1", "pods", "p1 ");
    stop(&o);
}

static void test_sync_when_over_quota_then_metadata_only_then_a_problem(void **state)
{
    struct one o;
    char name[16];
    int i = 0;

    (void)state;
    start_with(&o, 20000);
    for (; i < 1000 && o.c->open; i++) {
        snprintf(name, sizeof name, "p%03d", i);
        agent_put(o.c, "a", name, "some text that takes a little room in the cache");
    }
    assert_in_range(i, 10, 999);
    run(&o.w, 100);
    o.c = open_call(&o.a, "pods");
    assert_non_null(o.c);
    assert_true(o.c->metadata_only);
    assert_true(o.c->holds); /* what was there stayed */
    assert_true(pods(&o)->metadata_only);
    for (; i < 1000; i++) {
        snprintf(name, sizeof name, "p%03d", i);
        agent_put(o.c, "a", name, "");
    }
    assert_true(o.c->open);
    agent_end_snapshot(o.c, "100");
    assert_int_equal(pods(&o)->problem, KR_SYNC_FAILING);
    assert_non_null(strstr(pods(&o)->problem_text, "quota"));
    agent_problem(o.c, KR_SYNC_OK, ""); /* the agent's word does not make room */
    assert_int_equal(pods(&o)->problem, KR_SYNC_FAILING);
    assert_true(hub_cache_cluster_bytes(o.w.w.cache, KR_LIT("edge-1")) <= 20000);
    stop(&o);
}

static void test_sync_when_room_comes_back_then_it_starts_again(void **state)
{
    struct one o;
    char name[16];
    uint64_t id;

    (void)state;
    start_with(&o, 20000);
    for (int i = 0; i < 1000 && o.c->open; i++) {
        snprintf(name, sizeof name, "p%03d", i);
        agent_put(o.c, "a", name, "some text that takes a little room in the cache");
    }
    run(&o.w, 100);
    o.c = open_call(&o.a, "pods");
    agent_put(o.c, "b", "late", "");
    agent_end_snapshot(o.c, "100");
    id = o.c->id;
    run(&o.w, 200000);
    assert_int_equal(open_call(&o.a, "pods")->id, id); /* still no room */
    for (int i = 0; i < 1000; i++) {
        uint64_t key;
        struct kr_sync_batch gone = {.deletes = &key, .delete_count = 1};

        snprintf(name, sizeof name, "p%03d", i);
        key = kr_key_hash(KR_LIT("a"), kr_bytes_str(name));
        agent_send(o.c, &gone);
    }
    run(&o.w, 120000);
    assert_int_not_equal(open_call(&o.a, "pods")->id, id);
    stop(&o);
}

static void test_sync_when_agent_does_not_know_it_then_a_problem_and_patience(void **state)
{
    struct one o;

    (void)state;
    start(&o);
    o.a.refuse = KR_GRPC_UNIMPLEMENTED;
    assert_int_equal(kr_grpc_finish(&o.c->s, KR_GRPC_UNIMPLEMENTED, KR_LIT("what?")), 0);
    run(&o.w, 0);
    assert_int_equal(pods(&o)->problem, KR_SYNC_FAILING);
    run(&o.w, 60000);
    o.a.refuse = 0;
    run(&o.w, 120000);
    assert_non_null(open_call(&o.a, "pods"));
    stop(&o);
}

static void test_sync_when_one_floods_then_the_window_holds_it_back(void **state)
{
    struct one o;
    struct kr_buf room;
    char *text = calloc(1, 64 * 1024);
    struct kr_upsert u;
    struct kr_sync_batch b = {.upserts = &u, .upsert_count = 1};
    struct kr_buf out = {.max = 1u << 20};
    size_t rounds = 0;

    (void)state;
    start(&o);
    kr_mem_pair_capacity(o.a.pair, 0, 1u << 20, 65536);
    object_text("a", "p1", "", text, 1024);
    memset(text + strlen(text) - 3, 'x', 60000);
    memcpy(text + strlen(text), "\"}}", 4);
    u = upsert(&o.w, "a", "p1", text, &room);
    u.dictionary = 0; /* as it is */
    u.packed = kr_bytes_str(text);
    assert_int_equal(kr_sync_batch_encode(&b, &out), 0);
    for (int i = 0; i < 400; i++)
        assert_int_equal(kr_grpc_send(&o.c->s, kr_buf_bytes(&out)), 0);
    while (kr_grpc_waiting(&o.c->s) != 0 && rounds++ < 10000)
        kr_sched_run(&o.w.sched, o.w.sched.now_ms, o.w.sched.now_wall_ms);
    assert_in_range(rounds, 10, 9999); /* many turns, each of a bounded piece */
    run(&o.w, 0);
    assert_content(&o.w, "edge-1", "pods", "p1 ");
    kr_buf_deinit(&out);
    kr_buf_deinit(&room);
    free(text);
    stop(&o);
}

static void test_sync_when_two_clusters_then_each_touches_its_own(void **state)
{
    uint64_t key = kr_key_hash(KR_LIT("a"), KR_LIT("p1"));
    struct kr_sync_batch gone = {.deletes = &key, .delete_count = 1};
    struct one o;
    struct agent b;

    (void)state;
    start(&o);
    agent_join(&b, &o.w, "edge-2", true);
    agent_catalog(&b, pods_only);
    agent_put(o.c, "a", "p1", "mine");
    agent_put(open_call(&b, "pods"), "a", "p1", "yours");
    agent_put(open_call(&b, "pods"), "a", "p2", "yours");
    agent_send(open_call(&b, "pods"), &gone);
    agent_problem(open_call(&b, "pods"), KR_SYNC_NOT_SERVED, "");
    assert_content(&o.w, "edge-1", "pods", "p1 ");
    assert_content(&o.w, "edge-2", "pods", "");
    assert_int_equal(pods(&o)->problem, KR_SYNC_OK);
    agent_lose(&b);
    stop(&o);
}

static void test_sync_when_columns_are_none_then_the_call_ends(void **state)
{
    struct kr_sync_batch b = {.columns = KR_LIT("{\"name\":")};
    struct one o;

    (void)state;
    start(&o);
    agent_send(o.c, &b);
    assert_false(o.c->open);
    assert_int_equal(pods(&o)->columns.n, 0);
    stop(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sync_when_first_then_content_and_marks),
        cmocka_unit_test(test_sync_when_objects_change_then_revisions_grow_and_deletes_delete),
        cmocka_unit_test(test_sync_when_tunnel_breaks_then_stale_and_resumed_by_digest),
        cmocka_unit_test(test_sync_when_agent_wants_buckets_then_their_pairs),
        cmocka_unit_test(test_sync_when_stream_ends_within_a_snapshot_then_nothing_is_lost),
        cmocka_unit_test(test_sync_when_problem_comes_and_goes_then_told_and_stale_meanwhile),
        cmocka_unit_test(test_sync_when_type_is_gone_and_confirmed_then_so_are_its_objects),
        cmocka_unit_test(test_sync_when_objects_are_bad_then_left_out_and_too_many_end_the_call),
        cmocka_unit_test(test_sync_when_agent_misbehaves_then_new_tunnels_do_not_shorten_the_wait),
        cmocka_unit_test(test_sync_when_over_quota_then_metadata_only_then_a_problem),
        cmocka_unit_test(test_sync_when_room_comes_back_then_it_starts_again),
        cmocka_unit_test(test_sync_when_agent_does_not_know_it_then_a_problem_and_patience),
        cmocka_unit_test(test_sync_when_one_floods_then_the_window_holds_it_back),
        cmocka_unit_test(test_sync_when_two_clusters_then_each_touches_its_own),
        cmocka_unit_test(test_sync_when_columns_are_none_then_the_call_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
