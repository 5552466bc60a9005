/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache counts, and the quota of a cluster. */
#include "cache_world.h"

static void fill(struct hub_shelf *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof name, "pod-%u", i);
        assert_int_equal(put(s, "ns", name, i), 0);
    }
}

static void test_bytes_when_objects_come_and_go_then_they_return_to_what_they_were(void **state)
{
    struct hub_shelf *s;
    struct world w;
    uint64_t empty;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    empty = hub_cache_bytes(w.cache);
    for (int round = 0; round < 3; round++) {
        fill(s, 1000);
        assert_int_equal(put_labelled(s, "ns", "labelled", 1, "web"), 0);
        assert_true(s->bytes > 1000 * sizeof(struct hub_object));
        assert_true(hub_cache_cluster_bytes(w.cache, KR_LIT("a")) > s->bytes); /* and its labels */
        assert_true(hub_cache_bytes(w.cache) > s->bytes);
        hub_shelf_clear(s, true);
        turn(&w, 1);
        assert_int_equal(s->bytes, 0);
        assert_int_equal(hub_cache_cluster_bytes(w.cache, KR_LIT("a")), 0);
        assert_int_equal(hub_cache_bytes(w.cache), empty);
    }
    assert_int_equal(hub_cache_cluster_bytes(w.cache, KR_LIT("unknown")), 0);
    world_deinit(&w);
}

static void test_quota_when_it_is_reached_then_only_what_gets_smaller_is_taken(void **state)
{
    static uint8_t bulk[2000];
    struct hub_cache_limits limits = roomy();
    struct hub_incoming in = pod("ns", "big", 1);
    struct hub_shelf *s;
    struct world w;
    uint64_t bytes;

    (void)state;
    limits.cluster_bytes = 20000;
    world_init(&w, limits);
    s = shelf(&w, "a");
    in.packed = kr_bytes_of(bulk, sizeof bulk);
    assert_int_equal(hub_shelf_put(s, &in), 0);
    for (unsigned i = 0;; i++) {
        char name[16];
        int rc;

        snprintf(name, sizeof name, "p%u", i);
        in.name = kr_bytes_str(name);
        rc = hub_shelf_put(s, &in);
        if (rc == KR_EFULL)
            break;
        assert_int_equal(rc, 0);
        assert_true(i < 20);
    }
    bytes = hub_cache_cluster_bytes(w.cache, KR_LIT("a"));
    assert_in_range(bytes, 17000, 20000 + 500); /* the tree counts, but nobody is refused for it */
    in = pod("ns", "big", 2);
    in.packed = kr_bytes_of(bulk, 1000);
    assert_int_equal(hub_shelf_put(s, &in), 0);
    assert_true(hub_cache_cluster_bytes(w.cache, KR_LIT("a")) < bytes);
    in.hash = 3;
    in.packed = kr_bytes_of(bulk, sizeof bulk);
    bulk[0] = 1;
    (void)hub_shelf_put(s, &in);
    /* Other clusters have their own. */
    assert_int_equal(hub_shelf_put(shelf(&w, "b"), &in), 0);
    world_deinit(&w);
}

/* Labels can bring a cluster over its quota: what is smaller must still be taken. */
static void test_quota_when_it_is_overdrawn_then_smaller_content_is_taken(void **state)
{
    static uint8_t huge[30000];
    struct kr_label label = {.key = KR_LIT("x"), .value = kr_bytes_of(huge, sizeof huge)};
    struct hub_cache_limits limits = roomy();
    struct hub_incoming in = pod("ns", "big", 1);
    struct hub_shelf *s;
    struct world w;

    (void)state;
    limits.cluster_bytes = 20000;
    world_init(&w, limits);
    s = shelf(&w, "a");
    in.labels = &label;
    in.label_count = 1;
    assert_int_equal(hub_shelf_put(s, &in), 0);
    assert_true(hub_cache_cluster_bytes(w.cache, KR_LIT("a")) > 20000);
    assert_int_equal(put(s, "ns", "other", 1), KR_EFULL);
    in.hash = 2;
    in.packed = KR_LIT("a metadata-only object that is larger than it was");
    assert_int_equal(hub_shelf_put(s, &in), KR_EFULL);
    in.packed = KR_LIT("tiny");
    assert_int_equal(hub_shelf_put(s, &in), 0);
    world_deinit(&w);
}

/* A megabyte of labels packs to nothing, but is kept as it is. */
static void test_quota_when_labels_are_huge_then_they_count(void **state)
{
    static uint8_t huge[100000];
    struct hub_cache_limits limits = roomy();
    struct kr_label label = {.key = KR_LIT("x"), .value = kr_bytes_of(huge, sizeof huge)};
    struct hub_shelf *s;
    struct world w;
    int rc = 0;

    (void)state;
    limits.cluster_bytes = 1000000;
    world_init(&w, limits);
    s = shelf(&w, "a");
    for (unsigned i = 0; rc == 0; i++) {
        char name[16];
        struct hub_incoming in;

        snprintf(name, sizeof name, "p%u", i);
        huge[0] = (uint8_t)i;
        in = pod("ns", name, 1);
        in.labels = &label;
        in.label_count = 1;
        rc = hub_shelf_put(s, &in);
        assert_true(i < 20);
    }
    assert_int_equal(rc, KR_EFULL);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_when_objects_come_and_go_then_they_return_to_what_they_were),
        cmocka_unit_test(test_quota_when_it_is_reached_then_only_what_gets_smaller_is_taken),
        cmocka_unit_test(test_quota_when_it_is_overdrawn_then_smaller_content_is_taken),
        cmocka_unit_test(test_quota_when_labels_are_huge_then_they_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
