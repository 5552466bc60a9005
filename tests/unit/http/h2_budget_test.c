/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/h2_budget.h"

/* How many tokens can be taken at that moment. */
static int drain(struct kr_h2_budget *b, enum kr_h2_glitch kind, int64_t now_ms)
{
    int n = 0;

    while (kr_h2_budget_take(b, kind, now_ms))
        n++;
    return n;
}

static const struct {
    int burst;
    int refill; /* in 1000 s */
} rows[] = {
#define X(name, burst, refill) {burst, refill},
    KR_H2_GLITCHES(X)
#undef X
};

static void test_take_when_full_then_the_burst_and_no_more(void **state)
{
    struct kr_h2_budget b;

    (void)state;
    kr_h2_budget_init(&b, 5000);
    for (int k = 0; k < KR_H2_GLITCH_ENTRIES; k++)
        assert_int_equal(drain(&b, (enum kr_h2_glitch)k, 5000), rows[k].burst);
}

static void test_take_when_time_passed_then_refilled_by_the_rate(void **state)
{
    struct kr_h2_budget b;

    (void)state;
    for (int k = 0; k < KR_H2_GLITCH_ENTRIES; k++) {
        int64_t ms = 1000LL * 1000 * (rows[k].burst / 2) / rows[k].refill; /* for half of it */

        kr_h2_budget_init(&b, 0);
        drain(&b, (enum kr_h2_glitch)k, 0);
        assert_in_range(drain(&b, (enum kr_h2_glitch)k, ms), rows[k].burst / 2 - 1,
                        rows[k].burst / 2 + 1);
        assert_int_equal(drain(&b, (enum kr_h2_glitch)k, INT32_MAX), rows[k].burst);
    }
}

/* Asking often must not lose what refills between two questions. */
static void test_take_when_asked_every_millisecond_then_the_rate_is_kept(void **state)
{
    struct kr_h2_budget b;
    int n = 0;

    (void)state;
    kr_h2_budget_init(&b, 0);
    drain(&b, KR_H2_PING, 0);
    for (int64_t ms = 1; ms <= 60000; ms++)
        n += kr_h2_budget_take(&b, KR_H2_PING, ms);
    assert_in_range(n, 58, 61); /* one a second */
}

static void test_grant_when_beyond_the_burst_then_capped(void **state)
{
    struct kr_h2_budget b;

    (void)state;
    kr_h2_budget_init(&b, 0);
    kr_h2_budget_grant(&b, KR_H2_WINDOW_UPDATE, 1 << 20);
    assert_int_equal(drain(&b, KR_H2_WINDOW_UPDATE, 0), 1000);
    kr_h2_budget_grant(&b, KR_H2_WINDOW_UPDATE, 10);
    assert_int_equal(drain(&b, KR_H2_WINDOW_UPDATE, 0), 10);
}

static void test_name_when_asked_then_without_prefix(void **state)
{
    (void)state;
    assert_string_equal(kr_h2_glitch_name(KR_H2_RESET_RECEIVED), "RESET_RECEIVED");
    assert_string_equal(kr_h2_glitch_name(KR_H2_BAD_HEAD), "BAD_HEAD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_when_full_then_the_burst_and_no_more),
        cmocka_unit_test(test_take_when_time_passed_then_refilled_by_the_rate),
        cmocka_unit_test(test_take_when_asked_every_millisecond_then_the_rate_is_kept),
        cmocka_unit_test(test_grant_when_beyond_the_burst_then_capped),
        cmocka_unit_test(test_name_when_asked_then_without_prefix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
