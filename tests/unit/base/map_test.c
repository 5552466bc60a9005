/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/rand.h"

/* The vector of the SipHash paper, appendix A. */
static void test_siphash_gives_the_published_vector(void **state)
{
    const uint64_t key[2] = {0x0706050403020100U, 0x0F0E0D0C0B0A0908U};
    uint8_t in[15];

    (void)state;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)i;
    assert_true(kr_siphash(key, kr_bytes_of(in, sizeof in)) == 0xA129CA6149BE45E5U);
}

static void test_put_when_present_or_full_then_refused(void **state)
{
    struct kr_map m;
    int a;
    int b;

    (void)state;
    kr_map_init(&m, 2);
    assert_null(kr_map_get(&m, KR_LIT("x")));
    assert_null(kr_map_erase(&m, KR_LIT("x")));
    assert_int_equal(kr_map_put(&m, KR_LIT("x"), &a), 0);
    assert_int_equal(kr_map_put(&m, KR_LIT("x"), &b), KR_EEXIST);
    assert_ptr_equal(kr_map_get(&m, KR_LIT("x")), &a);
    assert_int_equal(kr_map_put(&m, KR_LIT(""), &b), 0);
    assert_int_equal(kr_map_put(&m, KR_LIT("z"), &b), KR_EFULL);
    assert_ptr_equal(kr_map_erase(&m, KR_LIT("x")), &a);
    assert_int_equal(kr_map_put(&m, KR_LIT("z"), &b), 0);
    kr_map_deinit(&m);
    kr_map_deinit(&m);
}

/* Random puts and erases against a plain array. */
static void test_random_changes_agree_with_an_array(void **state)
{
    enum { KEYS = 300, STEPS = 60000 };
    static char names[KEYS][8];
    bool in[KEYS] = {false};
    size_t count = 0;
    struct kr_map m;
    struct kr_rand r;

    (void)state;
    kr_rand_seed(&r, 11);
    kr_map_init(&m, KEYS);
    for (int i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof names[i], "k%d", i);
    for (int step = 0; step < STEPS; step++) {
        size_t i = (size_t)kr_rand_below(&r, KEYS);
        struct kr_bytes key = kr_bytes_str(names[i]);

        if (kr_rand_below(&r, 2) != 0) {
            assert_int_equal(kr_map_put(&m, key, names[i]), in[i] ? KR_EEXIST : 0);
            count += !in[i];
            in[i] = true;
        } else {
            assert_ptr_equal(kr_map_erase(&m, key), in[i] ? names[i] : NULL);
            count -= in[i];
            in[i] = false;
        }
        assert_int_equal(m.count, count);
        assert_true(m.cap <= 2048); /* the dead do not make it grow */
    }
    for (size_t i = 0; i < KEYS; i++)
        assert_ptr_equal(kr_map_get(&m, kr_bytes_str(names[i])), in[i] ? names[i] : NULL);
    kr_map_deinit(&m);
}

static void test_next_meets_all_and_allows_erase(void **state)
{
    static char names[100][8];
    struct kr_map m;
    struct kr_bytes key;
    size_t pos = 0;
    int seen = 0;

    (void)state;
    kr_map_init(&m, 1000);
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        assert_int_equal(kr_map_put(&m, kr_bytes_str(names[i]), names[i]), 0);
    }
    for (char *v; (v = kr_map_next(&m, &pos, &key)) != NULL; seen++) {
        assert_true(kr_bytes_is(key, v));
        if (seen % 2 == 0)
            assert_ptr_equal(kr_map_erase(&m, key), v);
    }
    assert_int_equal(seen, 100);
    assert_int_equal(m.count, 50);
    kr_map_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_siphash_gives_the_published_vector),
        cmocka_unit_test(test_put_when_present_or_full_then_refused),
        cmocka_unit_test(test_random_changes_agree_with_an_array),
        cmocka_unit_test(test_next_meets_all_and_allows_erase),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
