/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/sign_limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

#define HOUR_MS INT64_C(3600000)

static bool try_one(struct kr_sign_limits *l, const char *cluster, int64_t now_ms, int64_t *retry)
{
    if (kr_sign_limits_check(l, cluster, now_ms, retry, NULL) != 0)
        return false;
    assert_int_equal(kr_sign_limits_take(l, cluster, now_ms), 0);
    return true;
}

static void test_one_cluster_gets_a_burst_and_then_one_a_second(void **state)
{
    struct kr_sign_limits l;
    int64_t retry = -1;
    int got = 0;

    (void)state;
    kr_sign_limits_init(&l, 600, 60);
    while (try_one(&l, "edge-1", 5000, &retry))
        got++;
    assert_int_equal(got, KR_SIGN_CLUSTER_BURST);
    assert_int_equal(retry, 1000);
    assert_true(try_one(&l, "edge-2", 5000, &retry)); /* others have their own */
    assert_int_equal(retry, 0);
    assert_false(try_one(&l, "edge-1", 5999, &retry));
    assert_int_equal(retry, 1);
    assert_true(try_one(&l, "edge-1", 6000, &retry));
    assert_false(try_one(&l, "edge-1", 6000, &retry));
    kr_sign_limits_deinit(&l);
}

/* Whoever asks without a pause, for ever new names. */
static void test_no_hour_has_more_than_the_limit(void **state)
{
    static const int64_t limits[] = {KR_SIGN_HOUR_MIN, 100, 600, KR_SIGN_HOUR_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct kr_sign_limits l;
        int64_t got = 0;
        int64_t at_once = 0;
        int64_t retry = 0;
        char name[32];

        kr_sign_limits_init(&l, limits[i], 60);
        for (int64_t now = 1000; now<1000 + HOUR_MS; now += retry> 0 ? retry : 1) {
            do {
                snprintf(name, sizeof name, "c%lld", (long long)got);
                if (!try_one(&l, name, now, &retry))
                    break;
                got++;
            } while (true);
            at_once = at_once == 0 ? got : at_once;
        }
        assert_int_equal(at_once, limits[i] / 6);
        assert_true(got <= limits[i]);
        assert_true(got >= limits[i] * 9 / 10); /* and not much less */
        kr_sign_limits_deinit(&l);
    }
}

static void test_after_a_rest_all_is_as_at_the_start(void **state)
{
    struct kr_sign_limits l;
    int64_t retry = 0;
    int got = 0;
    char name[32];

    (void)state;
    kr_sign_limits_init(&l, 600, 60);
    for (int round = 0; round < 2; round++) {
        for (got = 0; got < 1000; got++) {
            snprintf(name, sizeof name, "c%d", got);
            if (!try_one(&l, name, round * HOUR_MS, &retry))
                break;
        }
        assert_int_equal(got, 100);
    }
    kr_sign_limits_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_cluster_gets_a_burst_and_then_one_a_second),
        cmocka_unit_test(test_no_hour_has_more_than_the_limit),
        cmocka_unit_test(test_after_a_rest_all_is_as_at_the_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
