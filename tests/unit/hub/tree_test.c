/* SPDX-License-Identifier: Apache-2.0 */
/* The tree against a sorted array, with thousands of objects in many leaves. */
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rand.h"
#include "hub/cache.h"
#include "hub/tree.h"

#define NAMES 5000

struct world {
    struct kr_rand rand;
    struct hub_ledger ledger;
    struct hub_tree tree;
    uint64_t clock;
    struct hub_object *all[NAMES]; /* by number, which is the order; NULL: not in the tree */
    uint64_t seed;
};

static struct hub_object *object_create(unsigned number, uint64_t revision)
{
    char name[16];
    int n = snprintf(name, sizeof name, "%08u", number);
    struct hub_object *o = calloc(1, sizeof *o + 16);

    assert_non_null(o);
    o->refs = 1;
    o->label_set = number * 3;
    o->revision = revision;
    o->name_n = (uint8_t)n;
    memcpy(o->data + 1, name, (size_t)n);
    return o;
}

static uint16_t tag_of(unsigned number)
{
    return (uint16_t)(number % 7); /* hardly tells anything, on purpose */
}

static bool find(struct world *w, unsigned number, struct hub_spot *spot)
{
    char name[16];
    int n = snprintf(name, sizeof name, "%08u", number);

    return hub_tree_find(&w->tree, KR_LIT(""), kr_bytes_of(name, (size_t)n), tag_of(number), spot);
}

static void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){.seed = seed};
    kr_rand_seed(&w->rand, seed);
    hub_tree_init(&w->tree, &w->ledger, &w->clock, false);
}

static void world_deinit(struct world *w)
{
    hub_tree_deinit(&w->tree);
    assert_int_equal(w->ledger.bytes, 0);
    assert_int_equal(w->tree.bytes, 0);
    for (unsigned i = 0; i < NAMES; i++)
        free(w->all[i]);
}

static void insert(struct world *w, unsigned number, uint64_t revision)
{
    struct hub_object *o = object_create(number, revision);
    struct hub_spot spot;

    if (find(w, number, &spot)) {
        assert_ptr_equal(hub_tree_at(&w->tree, spot), w->all[number]);
        hub_tree_replace(&w->tree, spot, o);
        free(w->all[number]);
    } else {
        assert_null(w->all[number]);
        assert_int_equal(hub_tree_insert(&w->tree, spot, o, tag_of(number)), 0);
    }
    w->all[number] = o;
}

static void erase(struct world *w, unsigned number)
{
    struct hub_spot spot;

    assert_int_equal(find(w, number, &spot), w->all[number] != NULL);
    if (w->all[number] == NULL)
        return;
    hub_tree_remove(&w->tree, spot);
    free(w->all[number]);
    w->all[number] = NULL;
}

static void check_leaf(const struct hub_tree *t, size_t row)
{
    struct hub_leaf *l = t->rows[row].leaf;

    assert_in_range(l->n, 1, l->cap);
    assert_true(t->n == 1 || l->cap == HUB_LEAF_MAX);
    assert_ptr_equal(t->rows[row].first, l->items[0]);
    for (size_t i = 0; i < l->n; i++) {
        const struct hub_object *o = l->items[i];

        assert_int_equal(hub_leaf_sets(l)[i], o->label_set);
        assert_int_equal(hub_leaf_tags(l)[i], tag_of(o->label_set / 3));
        assert_true(o->revision <= l->newest);
    }
}

static void check(struct world *w)
{
    struct hub_spot spot = {.row = 0};
    size_t count = 0;

    for (unsigned i = 0; i < NAMES; i++) {
        if (w->all[i] == NULL)
            continue;
        assert_ptr_equal(hub_tree_at(&w->tree, spot), w->all[i]);
        hub_tree_step(&w->tree, &spot);
        count++;
    }
    assert_null(hub_tree_at(&w->tree, spot));
    assert_int_equal(w->tree.count, count);
    assert_int_equal(w->tree.bytes, w->ledger.bytes);
    for (size_t row = 0; row < w->tree.n; row++)
        check_leaf(&w->tree, row);
}

static void test_tree_when_changed_at_random_then_it_is_as_a_sorted_array(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static struct world w;

        print_message("seed %u\n", (unsigned)seed);
        world_init(&w, seed);
        for (unsigned phase = 0; phase < 6; phase++) {
            /* Grows, shrinks, grows: leaves are split and joined. */
            unsigned puts = phase % 2 == 0 ? 80 : 20;
            unsigned names = seed % 4 == 0 ? 20 : NAMES;

            for (unsigned i = 0; i < 4000; i++) {
                unsigned number = (unsigned)kr_rand_below(&w.rand, names);

                if (kr_rand_below(&w.rand, 100) < puts)
                    insert(&w, number, kr_rand_below(&w.rand, 1000));
                else
                    erase(&w, number);
            }
            check(&w);
        }
        world_deinit(&w);
    }
}

static void test_tree_when_filled_in_order_then_its_leaves_are_full(void **state)
{
    static struct world w;

    (void)state;
    world_init(&w, 0);
    for (unsigned i = 0; i < NAMES; i++)
        insert(&w, i, i);
    check(&w);
    assert_int_equal(w.tree.n, (NAMES + HUB_LEAF_MAX - 1) / HUB_LEAF_MAX);
    assert_true(w.tree.bytes < NAMES * 16);
    world_deinit(&w);
}

static void test_tree_when_filled_at_random_then_it_takes_under_22_bytes_an_object(void **state)
{
    static struct world w;

    (void)state;
    world_init(&w, 1);
    for (unsigned i = 0; i < NAMES; i++)
        insert(&w, (unsigned)kr_rand_below(&w.rand, NAMES), i);
    for (unsigned i = 0; i < NAMES; i++)
        insert(&w, i * 2039 % NAMES, i);
    check(&w);
    assert_int_equal(w.tree.count, NAMES);
    assert_true(w.tree.bytes < NAMES * 22);
    world_deinit(&w);
}

/* As when the pods of one namespace come in order, and others stand behind them already. */
static void test_tree_when_filled_in_order_before_others_then_it_is_as_small(void **state)
{
    static struct world w;

    (void)state;
    world_init(&w, 1);
    for (unsigned i = NAMES - 100; i < NAMES; i++)
        insert(&w, i, i);
    for (unsigned i = 0; i < NAMES - 100; i++)
        insert(&w, i, i);
    check(&w);
    assert_true(w.tree.bytes < NAMES * 18);
    world_deinit(&w);
}

static void test_tree_when_emptied_one_by_one_then_nothing_is_left_of_it(void **state)
{
    static struct world w;

    (void)state;
    for (unsigned stride = 1; stride < 5000; stride += 1234) {
        world_init(&w, 1);
        for (unsigned i = 0; i < NAMES; i++)
            insert(&w, i, i);
        for (unsigned i = 0; i < NAMES; i++)
            erase(&w, (unsigned)((uint64_t)i * (stride | 1) % NAMES));
        for (unsigned i = 0; i < NAMES; i++)
            erase(&w, i);
        check(&w);
        assert_int_equal(w.ledger.bytes, 0);
        world_deinit(&w);
    }
}

static void test_tree_when_it_has_one_object_then_it_takes_little(void **state)
{
    static struct world w;

    (void)state;
    world_init(&w, 1);
    insert(&w, 1, 1);
    assert_true(w.tree.bytes <= 128);
    for (unsigned i = 0; i < 64; i++)
        insert(&w, i, 1);
    for (unsigned i = 2; i < 64; i++)
        erase(&w, i);
    assert_true(w.tree.bytes <= 160); /* it has shrunk again */
    check(&w);
    world_deinit(&w);
}

static void test_tree_when_sought_then_it_gives_the_first_that_is_not_before(void **state)
{
    static struct world w;
    struct hub_key key = {.ns = KR_LIT("")};

    (void)state;
    world_init(&w, 1);
    for (unsigned i = 0; i < NAMES; i += 2)
        insert(&w, i, 500);
    for (unsigned i = 0; i + 2 < NAMES; i++) {
        char name[16];

        snprintf(name, sizeof name, "%08u", i);
        key.name = kr_bytes_str(name);
        key.revision = i % 2 == 0 ? 500 : 0;
        assert_ptr_equal(hub_tree_at(&w.tree, hub_tree_seek(&w.tree, &key)), w.all[i + i % 2]);
        key.revision = UINT64_MAX;
        assert_ptr_equal(hub_tree_at(&w.tree, hub_tree_seek(&w.tree, &key)),
                         w.all[i % 2 == 0 ? i + 2 : i + 1]);
    }
    key.name = KR_LIT("9");
    assert_null(hub_tree_at(&w.tree, hub_tree_seek(&w.tree, &key)));
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_when_changed_at_random_then_it_is_as_a_sorted_array),
        cmocka_unit_test(test_tree_when_filled_in_order_then_its_leaves_are_full),
        cmocka_unit_test(test_tree_when_filled_at_random_then_it_takes_under_22_bytes_an_object),
        cmocka_unit_test(test_tree_when_filled_in_order_before_others_then_it_is_as_small),
        cmocka_unit_test(test_tree_when_emptied_one_by_one_then_nothing_is_left_of_it),
        cmocka_unit_test(test_tree_when_it_has_one_object_then_it_takes_little),
        cmocka_unit_test(test_tree_when_sought_then_it_gives_the_first_that_is_not_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
