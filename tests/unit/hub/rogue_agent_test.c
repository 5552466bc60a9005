/* SPDX-License-Identifier: Apache-2.0 */
/* T33: an agent that was taken over sends what it likes through its own tunnel. Whatever it is, the
 * part of another cluster stays as it was, byte for byte, and its own stays within its bounds. */
#include "sync_world.h"

#define FILE_TEXT "profiles: [{name: pods, resources: [pods], always: true}]\n"
#define QUOTA 200000

static const char *const pods_only[] = {"pods", NULL};

struct two {
    struct world w;
    struct agent good;
    struct agent rogue;
    struct kr_buf before;
};

/* All that is held of edge-1: every byte of every object, and what is said of the shelf. */
static void picture(struct two *t, struct kr_buf *out)
{
    struct hub_walk_query q = {.type = type_of(&t->w, "pods")};
    const struct hub_shelf *s = shelf_of(&t->w, "edge-1", "pods");
    struct hub_walk *walk = hub_walk_create(&q);
    const struct hub_object *o;
    const char *from;

    kr_buf_init(out, 1u << 22);
    while ((o = hub_walk_next(walk, &from)) != NULL) {
        size_t n = (size_t)o->ns_n + 1 + o->name_n + o->uid_n + o->packed_n + o->version_n;

        if (strcmp(from, "edge-1") != 0)
            continue;
        assert_int_equal(kr_buf_append(out, kr_bytes_of(o->data, n)), 0);
        assert_int_equal(kr_buf_append(out, kr_bytes_of(&o->hash, sizeof o->hash)), 0);
        assert_int_equal(kr_buf_append(out, kr_bytes_of(&o->revision, sizeof o->revision)), 0);
    }
    hub_walk_destroy(walk);
    assert_int_equal(kr_buf_printf(out, "%zu %llu %d %d %lld %s %.*s", s->objects,
                                   (unsigned long long)s->bytes, s->synced, s->problem,
                                   (long long)s->stale_since_wall_ms, s->origin_version,
                                   (int)s->columns.n, (const char *)s->columns.p),
                     0);
}

static void start(struct two *t)
{
    char name[16];

    world_init(&t->w, FILE_TEXT, QUOTA);
    agent_join(&t->good, &t->w, "edge-1", true);
    agent_catalog(&t->good, pods_only);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "p%02d", i);
        agent_put(open_call(&t->good, "pods"), "a", name, "mine");
    }
    agent_end_snapshot(open_call(&t->good, "pods"), "20");
    agent_join(&t->rogue, &t->w, "edge-2", true);
    agent_catalog(&t->rogue, pods_only);
    picture(t, &t->before);
}

/* The call that is open, after as many tunnels and waits as it takes. */
static struct call *rogue_call(struct two *t)
{
    for (int i = 0; i < 50 && open_call(&t->rogue, "pods") == NULL; i++)
        run(&t->w, 30000);
    assert_non_null(open_call(&t->rogue, "pods"));
    return open_call(&t->rogue, "pods");
}

static void stop(struct two *t)
{
    struct kr_buf after;
    uint64_t bytes = hub_cache_cluster_bytes(t->w.w.cache, KR_LIT("edge-2"));

    picture(t, &after);
    assert_int_equal(after.n, t->before.n);
    assert_memory_equal(after.p, t->before.p, after.n);
    assert_non_null(open_call(&t->good, "pods"));
    assert_true(bytes <= QUOTA);
    agent_put(open_call(&t->good, "pods"), "a", "later", "still served");
    assert_int_equal(shelf_of(&t->w, "edge-1", "pods")->objects, 21);
    kr_buf_deinit(&after);
    kr_buf_deinit(&t->before);
    agent_lose(&t->rogue);
    agent_lose(&t->good);
    world_deinit(&t->w);
}

/* Objects that say that they are of edge-1, and deletions of what only edge-1 has. */
static void test_t33_when_objects_name_another_cluster_then_they_stay_with_the_sender(void **state)
{
    static const char claims[] =
        "[\"p01\"]\n{\"metadata\":{\"name\":\"p01\",\"namespace\":\"a\",\"uid\":\"" UID
        "\",\"clusterName\":\"edge-1\",\"labels\":{\"kuberelay.io/cluster\":\"edge-1\"},"
        "\"annotations\":{\"kuberelay.io/cluster\":\"edge-1\"}},\"cluster\":\"edge-1\"}";
    uint64_t keys[20];
    struct kr_sync_batch gone = {.deletes = keys, .delete_count = 20};
    struct two t;
    char name[16];

    (void)state;
    start(&t);
    agent_text(rogue_call(&t), "a", "p01", claims);
    agent_text(rogue_call(&t), "edge-1", "p01", claims);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "p%02d", i);
        keys[i] = kr_key_hash(KR_LIT("a"), kr_bytes_str(name));
    }
    agent_send(rogue_call(&t), &gone);
    agent_end_snapshot(rogue_call(&t), "1");
    agent_problem(rogue_call(&t), KR_SYNC_NOT_SERVED, "");
    stop(&t);
}

/* A length-delimited field of protobuf: our own encoder would not write such names. */
static void field(struct kr_buf *out, unsigned number, struct kr_bytes v)
{
    size_t n = v.n;

    kr_buf_printf(out, "%c", (int)(number << 3 | 2));
    for (; n > 0x7F; n >>= 7)
        kr_buf_printf(out, "%c", (int)(n & 0x7F) | 0x80);
    kr_buf_printf(out, "%c", (int)n);
    kr_buf_append(out, v);
}

static void send_named(struct call *c, struct kr_bytes ns, struct kr_bytes name)
{
    struct kr_buf inner = {.max = 8u << 20};
    struct kr_buf out = {.max = 8u << 20};

    field(&inner, 1, ns);
    field(&inner, 2, name);
    field(&inner, 3, KR_LIT(UID));
    field(&inner, 4, KR_LIT("7"));
    kr_buf_append(&inner, KR_LIT("\x29"
                                 "12345678"
                                 "\x40\x05")); /* hash, size */
    field(&inner, 9, KR_LIT("[]\n{}"));
    field(&out, 3, kr_buf_bytes(&inner));
    assert_int_equal(kr_grpc_send(&c->s, kr_buf_bytes(&out)), 0);
    run(c->agent->w, 0);
    kr_buf_deinit(&inner);
    kr_buf_deinit(&out);
}

static void test_t33_when_names_are_huge_or_strange_then_only_the_sender_suffers(void **state)
{
    static const char *const names[] = {
        "../../edge-1/a/p01", "edge-1\\a", "%2e%2e", "p01\n", "*", "", "\xff\xfe", "P01"};
    static char big[500000];
    struct two t;

    (void)state;
    start(&t);
    memset(big, 'n', sizeof big);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        send_named(rogue_call(&t), KR_LIT("a"), kr_bytes_str(names[i]));
        send_named(rogue_call(&t), kr_bytes_str(names[i]), KR_LIT("p01"));
    }
    for (size_t n = 254; n < sizeof big; n *= 3) {
        send_named(rogue_call(&t), KR_LIT("a"), kr_bytes_of(big, n));
        send_named(rogue_call(&t), kr_bytes_of(big, n), kr_bytes_of(big, n));
    }
    assert_content(&t.w, "edge-2", "pods", "");
    stop(&t);
}

static void test_t33_when_ten_times_the_quota_comes_then_the_sender_is_cut_short(void **state)
{
    static char more[900];
    struct two t;
    char name[32];

    (void)state;
    start(&t);
    for (size_t i = 0; i + 1 < sizeof more; i++)
        more[i] = (char)('a' + kr_rand_u64(&t.w.w.rand) % 26); /* does not pack well */
    for (int i = 0; i < 2500; i++) {
        struct call *c = open_call(&t.rogue, "pods");

        snprintf(name, sizeof name, "flood-%04d", i);
        if (c != NULL)
            agent_put(c, "b", name, more + i % 300);
        else
            run(&t.w, 1000);
    }
    assert_true(shelf_of(&t.w, "edge-2", "pods")->metadata_only);
    stop(&t);
}

/* Bytes of its own earlier calls again, twice the same, cut and turned. */
static void test_t33_when_messages_are_replayed_or_broken_then_only_its_call_ends(void **state)
{
    struct kr_sync_batch b = {.snapshot_end = true, .progress = KR_LIT("9")};
    struct kr_buf room;
    struct kr_buf out = {.max = 1u << 20};
    char text[1024];
    struct two t;
    struct kr_upsert u;

    (void)state;
    start(&t);
    u = upsert(&t.w, "a", "p01", object_text("a", "p01", "theirs", text, sizeof text), &room);
    b.upserts = &u;
    b.upsert_count = 1;
    assert_int_equal(kr_sync_batch_encode(&b, &out), 0);
    for (size_t i = 0; i < 300; i++) {
        struct call *c = rogue_call(&t);
        size_t at = i % out.n;

        if (i % 3 != 0)
            out.p[at] ^= (uint8_t)(1u << (i % 8));
        assert_int_equal(kr_grpc_send(&c->s, kr_buf_bytes(&out)), 0);
        run(&t.w, 0);
        if (i % 3 != 0)
            out.p[at] ^= (uint8_t)(1u << (i % 8));
    }
    kr_buf_deinit(&out);
    kr_buf_deinit(&room);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_t33_when_objects_name_another_cluster_then_they_stay_with_the_sender),
        cmocka_unit_test(test_t33_when_names_are_huge_or_strange_then_only_the_sender_suffers),
        cmocka_unit_test(test_t33_when_ten_times_the_quota_comes_then_the_sender_is_cut_short),
        cmocka_unit_test(test_t33_when_messages_are_replayed_or_broken_then_only_its_call_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
