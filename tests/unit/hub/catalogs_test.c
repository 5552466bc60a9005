/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/catalogs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

static struct kr_resource_type type(const char *group, const char *version, const char *resource,
                                    const char *kind)
{
    return (struct kr_resource_type){
        .group = kr_bytes_str(group),
        .version = kr_bytes_str(version),
        .resource = kr_bytes_str(resource),
        .kind = kr_bytes_str(kind),
        .singular = kr_bytes_str("one"),
        .namespaced = true,
    };
}

static int tell(struct hub_catalogs *cs, const char *cluster, const struct kr_resource_type *types,
                size_t n, bool more)
{
    struct kr_catalog_update u = {.types = types, .n = n, .more = more};

    return hub_catalogs_update(cs, cluster, &u);
}

static void assert_order(struct hub_catalogs *cs, const char *expected)
{
    char text[1024] = "";
    size_t n;
    const struct kr_resource_type *all = hub_catalogs_union(cs, &n);

    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s/%.*s/%.*s ",
                 (int)all[i].group.n, (const char *)all[i].group.p, (int)all[i].version.n,
                 (const char *)all[i].version.p, (int)all[i].resource.n,
                 (const char *)all[i].resource.p);
    assert_string_equal(text, expected);
}

static void test_update_when_told_then_found_and_copied(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    char kind[] = "Pod";
    struct kr_bytes names[] = {KR_LIT("po")};
    struct kr_resource_type t = type("", "v1", "pods", kind);
    const struct kr_resource_type *found;

    (void)state;
    t.short_names = names;
    t.short_name_count = 1;
    t.categories = names;
    t.category_count = 1;
    assert_false(hub_catalogs_has(cs, "c1"));
    assert_int_equal(tell(cs, "c1", &t, 1, false), 0);
    kind[0] = 'X';
    assert_true(hub_catalogs_has(cs, "c1"));
    found = hub_catalog_find(cs, "c1", KR_LIT(""), KR_LIT("v1"), KR_LIT("pods"));
    assert_non_null(found);
    assert_true(kr_bytes_is(found->kind, "Pod"));
    assert_true(found->namespaced);
    assert_int_equal(found->short_name_count, 1);
    assert_true(kr_bytes_is(found->short_names[0], "po"));
    assert_true(kr_bytes_is(found->categories[0], "po"));
    assert_null(hub_catalog_find(cs, "c2", KR_LIT(""), KR_LIT("v1"), KR_LIT("pods")));
    assert_null(hub_catalog_find(cs, "c1", KR_LIT(""), KR_LIT("v2"), KR_LIT("pods")));
    assert_non_null(hub_catalogs_find(cs, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods")));
    hub_catalogs_destroy(cs);
}

static void test_union_when_clusters_differ_then_sorted_sum(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    struct kr_resource_type a[] = {
        type("apps", "v1", "deployments", "Deployment"),
        type("x.io", "v1beta1", "widgets", "Widget"),
        type("", "v1", "services", "Service"),
        type("x.io", "v1", "widgets", "Widget"),
        type("", "v1", "pods", "Pod"),
    };
    struct kr_resource_type b[] = {
        type("x.io", "v2", "widgets", "Widget"),
        type("x.io", "v1alpha1", "widgets", "Widget"),
        type("x.io", "v1beta2", "widgets", "Widget"),
        type("x.io", "custom", "widgets", "Widget"),
    };

    (void)state;
    assert_int_equal(tell(cs, "c1", a, 5, false), 0);
    assert_int_equal(tell(cs, "c2", b, 4, false), 0);
    assert_order(cs, "/v1/pods /v1/services apps/v1/deployments x.io/v2/widgets x.io/v1/widgets "
                     "x.io/v1beta2/widgets x.io/v1beta1/widgets x.io/v1alpha1/widgets "
                     "x.io/custom/widgets ");
    hub_catalogs_remove(cs, "c2");
    assert_order(cs, "/v1/pods /v1/services apps/v1/deployments x.io/v1/widgets "
                     "x.io/v1beta1/widgets ");
    hub_catalogs_destroy(cs);
}

static void test_union_when_kinds_differ_then_majority_counts(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    struct kr_resource_type common = type("x.io", "v1", "widgets", "Widget");
    struct kr_resource_type odd = type("x.io", "v1", "widgets", "Gadget");
    struct kr_resource_type odder = common;
    const struct kr_resource_type *t;

    (void)state;
    odder.namespaced = false;
    assert_int_equal(tell(cs, "c1", &odd, 1, false), 0);
    assert_int_equal(tell(cs, "c2", &odder, 1, false), 0);
    assert_int_equal(tell(cs, "c3", &common, 1, false), 0);
    assert_int_equal(tell(cs, "c4", &common, 1, false), 0);
    t = hub_catalogs_find(cs, KR_LIT("x.io"), KR_LIT("v1"), KR_LIT("widgets"));
    assert_true(kr_bytes_is(t->kind, "Widget"));
    assert_true(t->namespaced);
    assert_int_equal(tell(cs, "c3", &odd, 1, false), 0);
    t = hub_catalogs_find(cs, KR_LIT("x.io"), KR_LIT("v1"), KR_LIT("widgets"));
    assert_true(kr_bytes_is(t->kind, "Gadget"));
    hub_catalogs_destroy(cs);
}

static void test_union_when_as_many_differ_then_who_was_there_first_counts(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    struct kr_resource_type pods = type("", "v1", "pods", "Pod");
    struct kr_resource_type more[] = {pods, type("x.io", "v1", "widgets", "Widget")};
    struct kr_resource_type odd[] = {type("", "v1", "pods", "Evil"), type("", "v9", "pods", "Pod")};
    const struct kr_resource_type *t;

    (void)state;
    more[0].preferred = odd[1].preferred = true;
    assert_int_equal(hub_catalogs_know(cs, "a-new-one", 2000), 0);
    assert_int_equal(hub_catalogs_know(cs, "c1", 1000), 0);
    assert_int_equal(tell(cs, "c1", &pods, 1, false), 0);
    assert_int_equal(tell(cs, "a-new-one", odd, 2, false), 0);
    assert_int_equal(tell(cs, "c1", more, 2, false), 0); /* a new catalog, an old cluster */
    t = hub_catalogs_find(cs, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods"));
    assert_true(kr_bytes_is(t->kind, "Pod"));
    assert_true(t->preferred);
    assert_false(hub_catalogs_find(cs, KR_LIT(""), KR_LIT("v9"), KR_LIT("pods"))->preferred);
    hub_catalogs_remove(cs, "c1");
    t = hub_catalogs_find(cs, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods"));
    assert_true(kr_bytes_is(t->kind, "Evil"));
    hub_catalogs_destroy(cs);
}

/* Whoever dialled first after a restart: two clusters of the same age, then a third. */
static void test_union_when_as_many_differ_then_no_order_of_dialling_counts(void **state)
{
    static const char *const orders[][3] = {{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"},
                                            {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}};
    static const char *const kinds[] = {"Apple", "Berry", "Cherry"};

    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        struct hub_catalogs *cs = hub_catalogs_create();
        const struct kr_resource_type *t;

        for (size_t k = 0; k < 3; k++) {
            const char *name = orders[i][k];
            struct kr_resource_type one = type("x.io", "v1", "fruits", kinds[name[0] - 'a']);

            assert_int_equal(hub_catalogs_know(cs, name, name[0] == 'a' ? 7 : 5), 0);
            assert_int_equal(tell(cs, name, &one, 1, false), 0);
        }
        t = hub_catalogs_find(cs, KR_LIT("x.io"), KR_LIT("v1"), KR_LIT("fruits"));
        assert_true(kr_bytes_is(t->kind, "Berry"));
        assert_int_equal(hub_catalogs_know(cs, "a", 1), 0);
        t = hub_catalogs_find(cs, KR_LIT("x.io"), KR_LIT("v1"), KR_LIT("fruits"));
        assert_true(kr_bytes_is(t->kind, "Apple"));
        hub_catalogs_destroy(cs);
    }
}

static void test_union_when_versions_are_preferred_then_one_per_group(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    struct kr_resource_type v1[] = {type("x.io", "v1", "a", "A"), type("x.io", "v1", "b", "B"),
                                    type("x.io", "v2", "a", "A")};
    size_t n;
    const struct kr_resource_type *all;

    (void)state;
    v1[0].preferred = v1[1].preferred = true;
    assert_int_equal(tell(cs, "c1", v1, 3, false), 0);
    assert_int_equal(tell(cs, "c2", v1, 3, false), 0);
    v1[0].preferred = v1[1].preferred = false;
    v1[2].preferred = true;
    assert_int_equal(tell(cs, "c3", v1, 3, false), 0);
    all = hub_catalogs_union(cs, &n);
    assert_int_equal(n, 3);
    assert_false(all[0].preferred); /* v2 */
    assert_true(all[1].preferred);
    assert_true(all[2].preferred);
    hub_catalogs_destroy(cs);
}

static void test_update_when_it_comes_in_parts_then_shown_at_the_end(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    struct kr_resource_type a = type("", "v1", "pods", "Pod");
    struct kr_resource_type b = type("", "v1", "nodes", "Node");
    uint64_t generation = hub_catalogs_generation(cs);

    (void)state;
    assert_int_equal(tell(cs, "c1", &a, 1, true), 0);
    assert_false(hub_catalogs_has(cs, "c1"));
    hub_catalogs_interrupted(cs, "c1");
    assert_int_equal(tell(cs, "c1", &b, 1, true), 0);
    assert_int_equal(hub_catalogs_generation(cs), generation);
    assert_int_equal(tell(cs, "c1", &a, 1, false), 0);
    assert_order(cs, "/v1/nodes /v1/pods ");
    assert_true(hub_catalogs_generation(cs) > generation);
    generation = hub_catalogs_generation(cs);
    assert_int_equal(tell(cs, "c1", &a, 1, true), 0);
    assert_int_equal(tell(cs, "c1", &b, 1, false), 0); /* the same, in another order */
    assert_int_equal(hub_catalogs_generation(cs), generation);
    assert_int_equal(tell(cs, "c2", &b, 1, false), 0);
    hub_catalogs_remove(cs, "c1");
    assert_order(cs, "/v1/nodes ");
    hub_catalogs_destroy(cs);
}

static void test_update_when_names_are_odd_then_left_out(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    static const char long_name[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct kr_resource_type odd[] = {
        type("", "v1", "pods/exec", "Pod"), type("", "", "pods", "Pod"),
        type("", "v1", "", "Pod"),          type("", "v1", "pods", ""),
        type("../..", "v1", "x", "X"),      type("a b", "v1", "x", "X"),
        type("", "v1", "Pods", "X"),        type("", "v1", long_name, "X"),
        type("", "v1", "pods", "Pod"),      type("", "v1", "pods", "Twice"),
    };

    (void)state;
    assert_int_equal(tell(cs, "c1", odd, sizeof odd / sizeof odd[0], false), 0);
    assert_order(cs, "/v1/pods ");
    hub_catalogs_destroy(cs);
}

static void test_update_when_there_are_too_many_then_the_old_one_stays(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    struct kr_resource_type one = type("", "v1", "pods", "Pod");
    struct kr_resource_type *many = calloc(5001, sizeof *many);
    char names[5001][16];

    (void)state;
    for (size_t i = 0; i < 5001; i++) {
        snprintf(names[i], sizeof names[i], "r%zu", i);
        many[i] = type("x.io", "v1", names[i], "X");
    }
    assert_int_equal(tell(cs, "c1", &one, 1, false), 0);
    assert_int_equal(tell(cs, "c1", many, 5001, false), KR_EFULL);
    assert_order(cs, "/v1/pods ");
    assert_int_equal(tell(cs, "c1", many, 5000, false), 0);
    assert_non_null(hub_catalog_find(cs, "c1", KR_LIT("x.io"), KR_LIT("v1"), KR_LIT("r4999")));
    free(many);
    hub_catalogs_destroy(cs);
}

static void test_union_when_there_are_no_clusters_then_empty(void **state)
{
    struct hub_catalogs *cs = hub_catalogs_create();
    size_t n = 1;

    (void)state;
    hub_catalogs_union(cs, &n);
    assert_int_equal(n, 0);
    assert_null(hub_catalogs_find(cs, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods")));
    assert_int_equal(tell(cs, "c1", NULL, 0, false), 0);
    assert_true(hub_catalogs_has(cs, "c1"));
    assert_order(cs, "");
    hub_catalogs_remove(cs, "nobody");
    hub_catalogs_destroy(cs);
    hub_catalogs_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update_when_told_then_found_and_copied),
        cmocka_unit_test(test_union_when_clusters_differ_then_sorted_sum),
        cmocka_unit_test(test_union_when_kinds_differ_then_majority_counts),
        cmocka_unit_test(test_union_when_as_many_differ_then_who_was_there_first_counts),
        cmocka_unit_test(test_union_when_as_many_differ_then_no_order_of_dialling_counts),
        cmocka_unit_test(test_union_when_versions_are_preferred_then_one_per_group),
        cmocka_unit_test(test_update_when_it_comes_in_parts_then_shown_at_the_end),
        cmocka_unit_test(test_update_when_names_are_odd_then_left_out),
        cmocka_unit_test(test_update_when_there_are_too_many_then_the_old_one_stays),
        cmocka_unit_test(test_union_when_there_are_no_clusters_then_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
