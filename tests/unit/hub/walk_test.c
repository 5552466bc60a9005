/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_world.h"

static struct hub_walk *walk(struct world *w, struct hub_walk_query q)
{
    q.type = w->pods;
    return hub_walk_create(&q);
}

static void some_pods(struct world *w)
{
    assert_int_equal(put_labelled(shelf(w, "c"), "blue", "x", 1, "web"), 0);
    assert_int_equal(put_labelled(shelf(w, "a"), "blue", "x", 1, "db"), 0);
    assert_int_equal(put_labelled(shelf(w, "a"), "blue", "w", 1, "web"), 0);
    assert_int_equal(put_labelled(shelf(w, "b"), "blue-2", "x", 1, "web"), 0);
    assert_int_equal(put_labelled(shelf(w, "b"), "blu", "x", 1, "db"), 0);
    assert_int_equal(put_labelled(shelf(w, "b"), "red", "a-name-that-is-long", 1, "web"), 0);
    assert_int_equal(put_labelled(shelf(w, "c"), "red", "a-name-that-is-longer", 1, "db"), 0);
    (void)shelf(w, "d"); /* empty */
}

static void test_walk_when_shelves_are_merged_then_order_is_namespace_name_cluster(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, roomy());
    expect_walk(walk(&w, (struct hub_walk_query){.ns = KR_LIT("")}), "");
    some_pods(&w);
    expect_walk(walk(&w, (struct hub_walk_query){.ns = KR_LIT("")}),
                "blu/x@b blue/w@a blue/x@a blue/x@c blue-2/x@b red/a-name-that-is-long@b "
                "red/a-name-that-is-longer@c");
    world_deinit(&w);
}

static void test_walk_when_a_namespace_is_asked_for_then_only_that_comes(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, roomy());
    some_pods(&w);
    expect_walk(walk(&w, (struct hub_walk_query){.ns = KR_LIT("blue")}),
                "blue/w@a blue/x@a blue/x@c");
    expect_walk(walk(&w, (struct hub_walk_query){.ns = KR_LIT("bl")}), "");
    expect_walk(walk(&w, (struct hub_walk_query){.ns = KR_LIT("zzz")}), "");
    world_deinit(&w);
}

static void test_walk_when_it_goes_on_then_it_starts_behind_the_key(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, roomy());
    some_pods(&w);
    expect_walk(walk(&w, (struct hub_walk_query){.after_ns = KR_LIT("blue"),
                                                 .after_name = KR_LIT("x"),
                                                 .after_cluster = KR_LIT("a")}),
                "blue/x@c blue-2/x@b red/a-name-that-is-long@b red/a-name-that-is-longer@c");
    /* A cluster that is not there any more: between a and c. */
    expect_walk(walk(&w, (struct hub_walk_query){.ns = KR_LIT("blue"),
                                                 .after_ns = KR_LIT("blue"),
                                                 .after_name = KR_LIT("x"),
                                                 .after_cluster = KR_LIT("b")}),
                "blue/x@c");
    expect_walk(walk(&w, (struct hub_walk_query){.ns = KR_LIT("blue"),
                                                 .after_ns = KR_LIT("blue"),
                                                 .after_name = KR_LIT("x"),
                                                 .after_cluster = KR_LIT("c")}),
                "");
    expect_walk(walk(&w, (struct hub_walk_query){.ns = KR_LIT("blue-2"),
                                                 .after_ns = KR_LIT("blue"),
                                                 .after_name = KR_LIT("x"),
                                                 .after_cluster = KR_LIT("c")}),
                "blue-2/x@b");
    world_deinit(&w);
}

/* ---- labels ---- */

static struct hub_walk *select_walk(struct world *w, const struct kr_requirement *all, size_t n)
{
    struct kr_label_selector selector = {.all = all, .n = n};

    return walk(w, (struct hub_walk_query){.labels = &selector});
}

static void test_walk_when_labels_are_asked_for_then_only_their_pods_come(void **state)
{
    struct kr_bytes web = KR_LIT("web");
    struct kr_bytes clusters[] = {KR_LIT("a"), KR_LIT("b")};
    struct kr_requirement reqs[] = {
        {.key = KR_LIT("app"), .op = KR_OP_IN, .values = &web, .value_count = 1},
        {.key = KR_LIT("kuberelay.io/cluster"),
         .op = KR_OP_IN,
         .values = clusters,
         .value_count = 2},
        {.key = KR_LIT("kuberelay.io/cluster"), .op = KR_OP_EXISTS},
        {.key = KR_LIT("kuberelay.io/cluster"), .op = KR_OP_NOT_EXISTS},
    };
    struct world w;

    (void)state;
    world_init(&w, roomy());
    some_pods(&w);
    expect_walk(select_walk(&w, reqs, 0),
                "blu/x@b blue/w@a blue/x@a blue/x@c blue-2/x@b red/a-name-that-is-long@b "
                "red/a-name-that-is-longer@c");
    expect_walk(select_walk(&w, reqs, 1), "blue/w@a blue/x@c blue-2/x@b red/a-name-that-is-long@b");
    expect_walk(select_walk(&w, reqs + 1, 1),
                "blu/x@b blue/w@a blue/x@a blue-2/x@b red/a-name-that-is-long@b");
    expect_walk(select_walk(&w, reqs, 3), "blue/w@a blue-2/x@b red/a-name-that-is-long@b");
    expect_walk(select_walk(&w, reqs, 4), "");
    world_deinit(&w);
}

static void expect_selected(struct world *w, const char *text, const char *expected)
{
    struct kr_label_selector selector;
    struct kr_arena arena;
    struct kr_note why;

    kr_arena_init(&arena, 1000, 100000);
    assert_int_equal(kr_label_selector_parse(kr_bytes_str(text), &arena, &selector, &why), 0);
    expect_walk(walk(w, (struct hub_walk_query){.labels = &selector}), expected);
    kr_arena_deinit(&arena);
}

/* Each operator: what rules a set out early must not rule out too much. */
static void test_walk_when_each_operator_is_used_then_it_selects_as_it_says(void **state)
{
    struct kr_label labels[] = {{KR_LIT("app"), KR_LIT("")}, {KR_LIT("tier"), KR_LIT("7")}};
    struct hub_incoming in = pod("ns", "tiered", 1);
    struct world w;

    (void)state;
    world_init(&w, roomy());
    in.labels = labels;
    in.label_count = 2;
    assert_int_equal(hub_shelf_put(shelf(&w, "a"), &in), 0);
    assert_int_equal(put_labelled(shelf(&w, "a"), "ns", "web", 1, "web"), 0);
    assert_int_equal(put(shelf(&w, "a"), "ns", "none", 1), 0);
    expect_selected(&w, "app", "ns/tiered@a ns/web@a");
    expect_selected(&w, "!app", "ns/none@a");
    expect_selected(&w, "app=", "ns/tiered@a");
    expect_selected(&w, "app=web", "ns/web@a");
    expect_selected(&w, "app!=web", "ns/none@a ns/tiered@a");
    expect_selected(&w, "app in (db,web,cache)", "ns/web@a");
    expect_selected(&w, "app notin (db,web)", "ns/none@a ns/tiered@a");
    expect_selected(&w, "tier>6", "ns/tiered@a");
    expect_selected(&w, "tier<7", "");
    expect_selected(&w, "app,tier in (7),!other", "ns/tiered@a");
    expect_selected(&w, "kuberelay.io/cluster!=b,app", "ns/tiered@a ns/web@a");
    world_deinit(&w);
}

static void test_walk_when_the_selector_is_freed_then_the_walk_has_its_own(void **state)
{
    char key[] = "app";
    char value[] = "web";
    struct kr_bytes values = kr_bytes_str(value);
    struct kr_requirement req = {
        .key = kr_bytes_str(key), .op = KR_OP_IN, .values = &values, .value_count = 1};
    struct hub_walk *walking;
    char ns[] = "blue";
    struct world w;

    (void)state;
    world_init(&w, roomy());
    some_pods(&w);
    {
        struct kr_label_selector selector = {.all = &req, .n = 1};

        walking = walk(&w, (struct hub_walk_query){.labels = &selector, .ns = kr_bytes_str(ns)});
        memset(&selector, 0, sizeof selector);
    }
    memset(key, 'z', 3);
    memset(value, 'z', 3);
    memset(ns, 'z', 4);
    memset(&req, 0, sizeof req);
    values = KR_LIT("none");
    expect_walk(walking, "blue/w@a blue/x@c");
    world_deinit(&w);
}

/* ---- sight ---- */

struct sight {
    struct hub_sight ops;
    unsigned cluster_calls;
    unsigned ns_calls;
};

/* Nothing of a, all of b, of the others only what is not "blue". */
static int sees_cluster(const void *sight, const struct hub_shelf *s)
{
    ((struct sight *)(uintptr_t)sight)->cluster_calls++;
    return s->cluster[0] == 'a' ? 0 : s->cluster[0] == 'b' ? 1 : 2;
}

static bool sees_ns(const void *sight, const struct hub_shelf *s, struct kr_bytes ns)
{
    ((struct sight *)(uintptr_t)sight)->ns_calls++;
    assert_true(s->cluster[0] > 'b');
    return !kr_bytes_is(ns, "blue");
}

static void test_walk_when_not_all_may_be_seen_then_the_rest_does_not_come(void **state)
{
    struct sight sight = {.ops = {sees_cluster, sees_ns}};
    struct world w;

    (void)state;
    world_init(&w, roomy());
    some_pods(&w);
    expect_walk(walk(&w, (struct hub_walk_query){.sight = &sight.ops}),
                "blu/x@b blue-2/x@b red/a-name-that-is-long@b red/a-name-that-is-longer@c");
    assert_int_equal(sight.cluster_calls, 4);
    assert_int_equal(sight.ns_calls, 2);
    expect_walk(walk(&w, (struct hub_walk_query){.sight = &sight.ops, .ns = KR_LIT("blue")}), "");
    world_deinit(&w);
}

static void test_walk_when_there_are_many_pods_then_sight_is_asked_once_a_namespace(void **state)
{
    struct sight sight = {.ops = {sees_cluster, sees_ns}};
    const char *cluster;
    struct hub_walk *walking;
    unsigned n = 0;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    for (unsigned i = 0; i < 600; i++) {
        static const char *const spaces[] = {"blue", "green", "yellow"};
        char name[16];

        snprintf(name, sizeof name, "pod-%u", i);
        assert_int_equal(put(shelf(&w, "c"), spaces[i % 3], name, 1), 0);
        assert_int_equal(put(shelf(&w, "d"), "", name, 1), 0);
    }
    walking = walk(&w, (struct hub_walk_query){.sight = &sight.ops});
    while (hub_walk_next(walking, &cluster) != NULL)
        n++;
    hub_walk_destroy(walking);
    assert_int_equal(n, 1000);
    assert_int_equal(sight.ns_calls, 4);
    world_deinit(&w);
}

/* ---- many shelves ---- */

static int compare_texts(struct kr_bytes a, struct kr_bytes b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int d = n != 0 ? memcmp(a.p, b.p, n) : 0;

    return d != 0 ? d : (a.n > b.n) - (a.n < b.n);
}

static void expect_sorted(struct hub_walk *walking, unsigned count)
{
    const struct hub_object *last = NULL;
    const char *last_cluster = "";
    const struct hub_object *o;
    const char *cluster;

    while ((o = hub_walk_next(walking, &cluster)) != NULL) {
        int d = last == NULL ? -1 : compare_texts(hub_object_ns(last), hub_object_ns(o));

        if (d == 0)
            d = compare_texts(hub_object_name(last), hub_object_name(o));
        if (d == 0)
            d = strcmp(last_cluster, cluster);
        assert_true(d < 0);
        last = o;
        last_cluster = cluster;
        count--;
    }
    assert_int_equal(count, 0);
    hub_walk_destroy(walking);
}

/* Keys that are alike for a long way, of many clusters: what the codes of the merge are about. */
static void test_walk_when_keys_are_alike_in_many_clusters_then_the_order_holds(void **state)
{
    static const char *const names[] = {"kube-root-ca.crt",
                                        "kube-root-ca.crt2",
                                        "kube-root-ca",
                                        "kube-root-ca.crtaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                        "kube-root-ca.crtaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
                                        "k",
                                        "kube-r",
                                        "kube-ro",
                                        "kube-roo"};
    unsigned count = 0;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    for (unsigned c = 0; c < 77; c++) {
        char name[16];

        snprintf(name, sizeof name, "edge-%u", c);
        for (unsigned i = 0; i < 18; i++) {
            if ((c + i) % 5 == 0)
                continue;
            assert_int_equal(
                put(shelf(&w, name), i % 2 != 0 ? "default" : "default-2", names[i / 2], 1), 0);
            count++;
        }
    }
    expect_sorted(walk(&w, (struct hub_walk_query){.ns = KR_LIT("")}), count);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_when_shelves_are_merged_then_order_is_namespace_name_cluster),
        cmocka_unit_test(test_walk_when_a_namespace_is_asked_for_then_only_that_comes),
        cmocka_unit_test(test_walk_when_it_goes_on_then_it_starts_behind_the_key),
        cmocka_unit_test(test_walk_when_labels_are_asked_for_then_only_their_pods_come),
        cmocka_unit_test(test_walk_when_each_operator_is_used_then_it_selects_as_it_says),
        cmocka_unit_test(test_walk_when_the_selector_is_freed_then_the_walk_has_its_own),
        cmocka_unit_test(test_walk_when_not_all_may_be_seen_then_the_rest_does_not_come),
        cmocka_unit_test(test_walk_when_there_are_many_pods_then_sight_is_asked_once_a_namespace),
        cmocka_unit_test(test_walk_when_keys_are_alike_in_many_clusters_then_the_order_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
