/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/rand.h"
#include "hub/label_sets.h"

struct world {
    struct hub_ledger ledger;
    struct hub_label_sets sets;
    struct kr_map uses;
    struct hub_cluster_use *a;
    struct hub_cluster_use *b;
};

static void world_init(struct world *w)
{
    *w = (struct world){.a = NULL};
    hub_label_sets_init(&w->sets, &w->ledger);
    kr_map_init(&w->uses, 10);
    w->a = hub_cluster_use_get(&w->uses, KR_LIT("a"));
    w->b = hub_cluster_use_get(&w->uses, KR_LIT("b"));
}

static void world_deinit(struct world *w)
{
    assert_int_equal(w->sets.count, 0);
    assert_int_equal(w->a->bytes + w->b->bytes, 0);
    hub_label_sets_deinit(&w->sets);
    assert_int_equal(w->ledger.bytes, 0);
    hub_cluster_uses_destroy(&w->uses);
}

static uint32_t take(struct world *w, struct hub_cluster_use *payer, const char *key,
                     const char *value)
{
    struct kr_label label = {.key = kr_bytes_str(key), .value = kr_bytes_str(value)};
    uint32_t number = UINT32_MAX;

    assert_int_equal(hub_label_sets_take(&w->sets, &label, 1, payer, &number), 0);
    return number;
}

static void test_sets_when_alike_then_they_are_one(void **state)
{
    struct world w;
    uint32_t x;
    uint32_t y;
    size_t n;
    const struct kr_label *labels;

    (void)state;
    world_init(&w);
    x = take(&w, w.a, "app", "web");
    y = take(&w, w.b, "app", "db");
    assert_int_not_equal(x, y);
    assert_int_equal(take(&w, w.b, "app", "web"), x);
    assert_int_equal(w.sets.count, 2);
    labels = hub_label_sets_get(&w.sets, x, &n);
    assert_int_equal(n, 1);
    assert_true(kr_bytes_is(labels[0].key, "app") && kr_bytes_is(labels[0].value, "web"));
    /* The last but one is still there. */
    assert_true(kr_bytes_is(hub_label_sets_get(&w.sets, y, &n)[0].value, "db"));
    assert_true(kr_bytes_is(labels[0].value, "web"));
    hub_label_sets_unref(&w.sets, x);
    hub_label_sets_unref(&w.sets, y);
    assert_int_equal(w.sets.count, 1);
    hub_label_sets_unref(&w.sets, x);
    world_deinit(&w);
}

static void test_sets_when_one_is_empty_then_it_is_a_set_like_others(void **state)
{
    struct world w;
    uint32_t none = 9;
    size_t n = 9;

    (void)state;
    world_init(&w);
    assert_int_equal(hub_label_sets_take(&w.sets, NULL, 0, w.a, &none), 0);
    (void)hub_label_sets_get(&w.sets, none, &n);
    assert_int_equal(n, 0);
    hub_label_sets_unref(&w.sets, none);
    world_deinit(&w);
}

static void test_sets_when_texts_run_together_then_they_are_not_mixed_up(void **state)
{
    struct world w;
    uint32_t x;
    uint32_t y;

    (void)state;
    world_init(&w);
    x = take(&w, w.a, "ab", "c");
    y = take(&w, w.a, "a", "bc");
    assert_int_not_equal(x, y);
    hub_label_sets_unref(&w.sets, x);
    hub_label_sets_unref(&w.sets, y);
    world_deinit(&w);
}

static void test_sets_when_texts_are_long_then_they_come_back_whole(void **state)
{
    static char text[100000];
    struct world w;

    (void)state;
    world_init(&w);
    memset(text, 'x', sizeof text - 1);
    for (size_t n = 1; n < sizeof text; n = n * 5 / 2) {
        struct kr_label labels[] = {{kr_bytes_of(text, n), kr_bytes_of(text, n + 1)},
                                    {KR_LIT("y"), KR_LIT("")}};
        const struct kr_label *got;
        uint32_t number;
        size_t count;

        assert_int_equal(hub_label_sets_take(&w.sets, labels, 2, w.a, &number), 0);
        got = hub_label_sets_get(&w.sets, number, &count);
        assert_int_equal(count, 2);
        assert_true(kr_bytes_eq(got[0].key, labels[0].key));
        assert_true(kr_bytes_eq(got[0].value, labels[0].value));
        assert_true(kr_bytes_eq(got[1].key, labels[1].key) && got[1].value.n == 0);
        hub_label_sets_unref(&w.sets, number);
    }
    world_deinit(&w);
}

static void test_sets_when_there_are_many_labels_then_all_come_back(void **state)
{
    struct kr_label labels[300];
    char names[300][8];
    struct world w;
    uint32_t number;
    uint32_t small;
    size_t n;

    (void)state;
    world_init(&w);
    small = take(&w, w.a, "only", "one");
    for (size_t i = 0; i < 300; i++) {
        snprintf(names[i], sizeof names[i], "l%03u", (unsigned)i);
        labels[i] = (struct kr_label){kr_bytes_str(names[i]), kr_bytes_str(names[299 - i])};
    }
    assert_int_equal(hub_label_sets_take(&w.sets, labels, 300, w.a, &number), 0);
    assert_true(kr_bytes_is(hub_label_sets_get(&w.sets, number, &n)[299].value, "l000"));
    assert_int_equal(n, 300);
    hub_label_sets_unref(&w.sets, small);
    hub_label_sets_unref(&w.sets, number);
    world_deinit(&w);
}

static void test_sets_when_the_last_user_goes_then_the_number_serves_another(void **state)
{
    struct world w;
    uint32_t keep;
    uint32_t old;

    (void)state;
    world_init(&w);
    keep = take(&w, w.a, "app", "keep");
    old = take(&w, w.a, "app", "old");
    hub_label_sets_unref(&w.sets, old);
    assert_int_equal(take(&w, w.a, "app", "new"), old);
    hub_label_sets_unref(&w.sets, old);
    hub_label_sets_unref(&w.sets, keep);
    world_deinit(&w);
}

static void test_sets_when_another_cluster_joins_then_the_first_pays_to_the_end(void **state)
{
    struct world w;
    uint32_t x;

    (void)state;
    world_init(&w);
    x = take(&w, w.a, "app", "web");
    assert_int_equal(take(&w, w.b, "app", "web"), x);
    assert_true(w.a->bytes > 0);
    assert_int_equal(w.b->bytes, 0);
    hub_label_sets_unref(&w.sets, x);
    assert_true(w.a->bytes > 0);
    hub_label_sets_unref(&w.sets, x);
    world_deinit(&w);
}

/* Against an array, with a table that is searched past erased entries. */
static void test_sets_when_taken_and_given_back_at_random_then_they_are_as_the_model(void **state)
{
    static unsigned refs[500];
    static uint32_t numbers[500];
    struct kr_rand rand;
    struct world w;
    size_t n;

    (void)state;
    kr_rand_seed(&rand, 7);
    world_init(&w);
    memset(refs, 0, sizeof refs);
    for (unsigned step = 0; step < 40000; step++) {
        unsigned i = (unsigned)kr_rand_below(&rand, 500);
        char value[8];
        uint32_t number;

        snprintf(value, sizeof value, "%u", i);
        if (refs[i] != 0 && kr_rand_below(&rand, step / 10000 % 2 == 0 ? 3 : 2) == 0) {
            assert_true(kr_bytes_is(hub_label_sets_get(&w.sets, numbers[i], &n)[0].value, value));
            hub_label_sets_unref(&w.sets, numbers[i]);
            refs[i]--;
            continue;
        }
        number = take(&w, w.a, "n", value);
        assert_true(refs[i] == 0 || number == numbers[i]);
        numbers[i] = number;
        refs[i]++;
        assert_true(w.sets.used <= 500); /* numbers are used again */
    }
    for (unsigned i = 0; i < 500; i++) {
        for (; refs[i] != 0; refs[i]--)
            hub_label_sets_unref(&w.sets, numbers[i]);
    }
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets_when_alike_then_they_are_one),
        cmocka_unit_test(test_sets_when_one_is_empty_then_it_is_a_set_like_others),
        cmocka_unit_test(test_sets_when_texts_run_together_then_they_are_not_mixed_up),
        cmocka_unit_test(test_sets_when_texts_are_long_then_they_come_back_whole),
        cmocka_unit_test(test_sets_when_there_are_many_labels_then_all_come_back),
        cmocka_unit_test(test_sets_when_the_last_user_goes_then_the_number_serves_another),
        cmocka_unit_test(test_sets_when_another_cluster_joins_then_the_first_pays_to_the_end),
        cmocka_unit_test(test_sets_when_taken_and_given_back_at_random_then_they_are_as_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
