/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rand.h"

static void test_below_stays_in_range_and_is_even(void **state)
{
    struct kr_rand r;
    int hits[10] = {0};

    (void)state;
    kr_rand_seed(&r, 1);
    for (int i = 0; i < 100000; i++)
        hits[kr_rand_below(&r, 10)]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(hits[i], 9500, 10500);
    assert_int_equal(kr_rand_below(&r, 1), 0);
    assert_int_equal(kr_rand_below(&r, 0), 0);
}

static void test_same_seed_gives_the_same_numbers(void **state)
{
    struct kr_rand a;
    struct kr_rand b;
    struct kr_rand c;

    (void)state;
    kr_rand_seed(&a, 42);
    kr_rand_seed(&b, 42);
    kr_rand_init(&c);
    for (int i = 0; i < 100; i++)
        assert_true(kr_rand_u64(&a) == kr_rand_u64(&b));
    assert_false(kr_rand_u64(&a) == kr_rand_u64(&c));
}

static void test_ms_takes_both_ends(void **state)
{
    struct kr_rand r;
    int low = 0;
    int high = 0;

    (void)state;
    kr_rand_seed(&r, 3);
    for (int i = 0; i < 1000; i++) {
        int64_t ms = kr_rand_ms(&r, 5, 8);

        assert_in_range(ms, 5, 8);
        low += ms == 5;
        high += ms == 8;
    }
    assert_true(low > 0 && high > 0);
    assert_int_equal(kr_rand_ms(&r, 7, 7), 7);
    assert_int_equal(kr_rand_ms(&r, 7, -7), 7);
}

/* The largest of many draws comes close to the bound and never above it. */
static void test_next_doubles_its_bound_up_to_the_cap(void **state)
{
    static const int64_t bounds[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct kr_rand r;

    (void)state;
    kr_rand_seed(&r, 5);
    for (size_t n = 0; n < sizeof bounds / sizeof bounds[0]; n++) {
        int64_t largest = 0;

        for (int i = 0; i < 2000; i++) {
            struct kr_backoff b;
            int64_t wait = 0;

            kr_backoff_init(&b, 1000, 60000, KR_BACKOFF_HEALTHY_MS);
            for (size_t k = 0; k <= n; k++)
                wait = kr_backoff_next(&b, &r, 0);
            assert_in_range(wait, 0, bounds[n]);
            largest = wait > largest ? wait : largest;
        }
        assert_true(largest > bounds[n] * 9 / 10);
    }
}

static void test_next_when_up_too_short_then_not_reset(void **state)
{
    struct kr_backoff b;
    struct kr_rand r;

    (void)state;
    kr_rand_seed(&r, 9);
    kr_backoff_init(&b, 1000, 60000, KR_BACKOFF_HEALTHY_MS);
    for (int i = 0; i < 10; i++)
        kr_backoff_next(&b, &r, 0);
    kr_backoff_up(&b, 1000);
    kr_backoff_up(&b, 50000); /* still the same connection */
    kr_backoff_next(&b, &r, 60999);
    assert_true(b.failures > 1);
    kr_backoff_up(&b, 70000);
    assert_in_range(kr_backoff_next(&b, &r, 130000), 0, 1000);
    assert_int_equal(b.failures, 1);
    kr_backoff_next(&b, &r, 300000); /* long away is not long up */
    assert_int_equal(b.failures, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_below_stays_in_range_and_is_even),
        cmocka_unit_test(test_same_seed_gives_the_same_numbers),
        cmocka_unit_test(test_ms_takes_both_ends),
        cmocka_unit_test(test_next_doubles_its_bound_up_to_the_cap),
        cmocka_unit_test(test_next_when_up_too_short_then_not_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
