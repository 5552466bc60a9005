/* SPDX-License-Identifier: Apache-2.0 */
/* sync_table against a plain array, over random steps. */
#include "wire/sync_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/rand.h"

#define KEYS 600 /* so many different ones, in few buckets and close together */

struct model {
    bool there[KEYS];
    bool seen[KEYS];
    uint64_t object[KEYS];
    size_t n;
};

static uint64_t key_of(size_t i)
{
    return (uint64_t)(i % 5) << 56 | (uint64_t)(i / 5);
}

static void check_all(const struct kr_sync_table *t, const struct model *m)
{
    struct kr_digest expected = {.objects = 0};
    size_t pos = 0;
    size_t unseen = 0;
    size_t model_unseen = 0;
    uint64_t key;

    for (size_t i = 0; i < KEYS; i++) {
        uint64_t object = 0;

        assert_int_equal(kr_sync_table_get(t, key_of(i), &object), m->there[i]);
        if (!m->there[i])
            continue;
        assert_true(object == m->object[i]);
        kr_digest_add(&expected, key_of(i), object);
        model_unseen += !m->seen[i];
    }
    assert_memory_equal(&expected, &t->digest, sizeof expected);
    while (kr_sync_table_unseen(t, &pos, &key)) {
        size_t i = (size_t)(key & 0xFFFFFF) * 5 + (size_t)(key >> 56);

        assert_true(i < KEYS && m->there[i] && !m->seen[i]);
        unseen++;
    }
    assert_int_equal(unseen, model_unseen);
}

static void drop_bucket(struct kr_sync_table *t, struct model *m, unsigned bucket)
{
    kr_sync_table_drop_bucket(t, bucket);
    for (size_t i = 0; i < KEYS; i++) {
        if (m->there[i] && kr_bucket_of(key_of(i)) == bucket) {
            m->there[i] = false;
            m->n--;
        }
    }
}

static void remove_unseen(struct kr_sync_table *t, struct model *m)
{
    size_t pos = 0;
    uint64_t key;

    while (kr_sync_table_unseen(t, &pos, &key))
        assert_true(kr_sync_table_remove(t, key));
    for (size_t i = 0; i < KEYS; i++) {
        if (m->there[i] && !m->seen[i]) {
            m->there[i] = false;
            m->n--;
        }
    }
}

static void step(struct kr_sync_table *t, struct model *m, struct kr_rand *r, size_t max)
{
    size_t i = kr_rand_below(r, KEYS);
    uint64_t object = kr_rand_below(r, 3);
    unsigned what = (unsigned)kr_rand_below(r, 1000);

    if (what < 500) {
        bool fits = m->there[i] || m->n < max;

        assert_int_equal(kr_sync_table_put(t, key_of(i), object), fits ? 0 : KR_EFULL);
        if (!fits)
            return;
        m->n += !m->there[i];
        m->there[i] = m->seen[i] = true;
        m->object[i] = object;
    } else if (what < 850) {
        assert_int_equal(kr_sync_table_remove(t, key_of(i)), m->there[i]);
        m->n -= m->there[i];
        m->there[i] = false;
    } else if (what < 980) {
        assert_int_equal(kr_sync_table_see(t, key_of(i)), m->there[i]);
        m->seen[i] = m->there[i];
    } else if (what < 990) {
        kr_sync_table_sweep(t);
        for (size_t k = 0; k < KEYS; k++)
            m->seen[k] = false;
    } else if (what < 995) {
        remove_unseen(t, m);
    } else {
        drop_bucket(t, m, (unsigned)kr_rand_below(r, 6));
    }
}

static void test_table_when_changed_at_random_then_as_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        size_t max = seed % 4 == 0 ? 100 : 1000;
        struct kr_sync_table t;
        struct model m = {.n = 0};
        struct kr_rand r;

        kr_rand_seed(&r, seed);
        kr_sync_table_init(&t, max);
        for (int i = 0; i < 3000; i++) {
            step(&t, &m, &r, max);
            if (i % 50 == 0)
                check_all(&t, &m);
        }
        check_all(&t, &m);
        kr_sync_table_deinit(&t);
        m = (struct model){.n = 0};
        check_all(&t, &m); /* empty, and may be used again */
        assert_int_equal(kr_sync_table_put(&t, 1, 1), 0);
        kr_sync_table_deinit(&t);
    }
}

static void test_table_when_20000_objects_then_below_600_kilobytes(void **state)
{
    struct kr_sync_table t;
    size_t most = 0;

    (void)state;
    kr_sync_table_init(&t, 1000000);
    for (uint64_t i = 0; i < 20000; i++) {
        size_t bytes;

        assert_int_equal(kr_sync_table_put(&t, kr_key_hash(KR_LIT("ns"), kr_bytes_of(&i, 8)), i),
                         0);
        bytes = t.cap * 16 + t.cap / 64 * 3 * 8;
        most = bytes > most ? bytes : most;
        assert_true(t.digest.objects * 4 <= t.cap * 3);
    }
    assert_int_equal(t.digest.objects, 20000);
    assert_in_range(most, 400000, 600000);
    kr_sync_table_deinit(&t);
}

/* Entries that come and go must not make the table grow for ever. */
static void test_table_when_entries_come_and_go_then_it_stays_small(void **state)
{
    struct kr_sync_table t;

    (void)state;
    kr_sync_table_init(&t, 1000);
    for (uint64_t i = 0; i < 100000; i++) {
        assert_int_equal(kr_sync_table_put(&t, i << 40 ^ i, i), 0);
        if (i >= 100)
            assert_true(kr_sync_table_remove(&t, (i - 100) << 40 ^ (i - 100)));
    }
    assert_int_equal(t.digest.objects, 100);
    assert_in_range(t.cap, 100, 512);
    kr_sync_table_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_when_changed_at_random_then_as_the_model),
        cmocka_unit_test(test_table_when_20000_objects_then_below_600_kilobytes),
        cmocka_unit_test(test_table_when_entries_come_and_go_then_it_stays_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
