/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { REQUESTS, TUNNELS, LATENCY, PLAIN };

static const int64_t buckets[] = {5, 50, 1000};
static const struct kr_metric_family table[] = {
    [REQUESTS] =
        {"kr_requests_total", KR_COUNTER, "Requests.", {"cluster", "code"}, .max_series = 3},
    [TUNNELS] = {"kr_tunnels", KR_GAUGE, "Back\\slash\nand line.", {"cluster"}},
    [LATENCY] = {"kr_seconds", KR_HISTOGRAM, "Time.", {"leg"}, buckets, 3, .scale = 1000},
    [PLAIN] = {"kr_bytes_total", KR_COUNTER, "Bytes.", {NULL}},
};

static struct kr_metrics *create(void)
{
    struct kr_metrics *reg = kr_metrics_create(table, sizeof table / sizeof table[0]);

    assert_non_null(reg);
    return reg;
}

static void assert_page(struct kr_metrics *const *regs, size_t n, const char *want)
{
    struct kr_buf out;

    kr_buf_init(&out, 1 << 20);
    assert_int_equal(kr_metrics_render(regs, n, &out), 0);
    assert_int_equal(kr_buf_append(&out, kr_bytes_of("", 1)), 0);
    assert_string_equal((const char *)out.p, want);
    kr_buf_deinit(&out);
}

static void test_render_when_fresh_shows_only_what_has_no_labels(void **state)
{
    struct kr_metrics *reg = create();

    (void)state;
    assert_page(&reg, 1,
                "# HELP kr_requests_total Requests.\n# TYPE kr_requests_total counter\n"
                "# HELP kr_tunnels Back\\\\slash\\nand line.\n# TYPE kr_tunnels gauge\n"
                "# HELP kr_seconds Time.\n# TYPE kr_seconds histogram\n"
                "# HELP kr_bytes_total Bytes.\n# TYPE kr_bytes_total counter\nkr_bytes_total 0\n");
    kr_metrics_destroy(reg);
    kr_metrics_destroy(NULL);
}

static void test_render_adds_up_registries_and_escapes_labels(void **state)
{
    struct kr_metrics *regs[2] = {create(), create()};

    (void)state;
    kr_metric_add(kr_metrics_get(regs[0], REQUESTS, "a\"\\\n", "200"), 2);
    kr_metric_add(kr_metrics_get(regs[0], REQUESTS, "a\"\\\n", "200"), 1);
    kr_metric_add(kr_metrics_get(regs[1], REQUESTS, "a\"\\\n", "200"), 4);
    kr_metric_set(kr_metrics_get(regs[1], TUNNELS, "\xFF"), -7);
    kr_metric_add(kr_metrics_get(regs[0], PLAIN), 5);
    kr_metric_observe(kr_metrics_get(regs[0], LATENCY, "hub"), 5);
    kr_metric_observe(kr_metrics_get(regs[1], LATENCY, "hub"), 6);
    kr_metric_observe(kr_metrics_get(regs[1], LATENCY, "hub"), 2000);
    assert_page(regs, 2,
                "# HELP kr_requests_total Requests.\n# TYPE kr_requests_total counter\n"
                "kr_requests_total{cluster=\"a\\\"\\\\\\n\",code=\"200\"} 7\n"
                "# HELP kr_tunnels Back\\\\slash\\nand line.\n# TYPE kr_tunnels gauge\n"
                "kr_tunnels{cluster=\"invalid\"} -7\n"
                "# HELP kr_seconds Time.\n# TYPE kr_seconds histogram\n"
                "kr_seconds_bucket{leg=\"hub\",le=\"0.005\"} 1\n"
                "kr_seconds_bucket{leg=\"hub\",le=\"0.05\"} 2\n"
                "kr_seconds_bucket{leg=\"hub\",le=\"1\"} 2\n"
                "kr_seconds_bucket{leg=\"hub\",le=\"+Inf\"} 3\n"
                "kr_seconds_sum{leg=\"hub\"} 2.011\nkr_seconds_count{leg=\"hub\"} 3\n"
                "# HELP kr_bytes_total Bytes.\n# TYPE kr_bytes_total counter\nkr_bytes_total 5\n");
    kr_metrics_destroy(regs[0]);
    kr_metrics_destroy(regs[1]);
}

static void test_get_when_series_are_used_up_then_other(void **state)
{
    struct kr_metrics *reg = create();
    struct kr_metric *first = kr_metrics_get(reg, REQUESTS, "c0", "200");

    (void)state;
    for (int i = 0; i < 10; i++) {
        char name[8];

        snprintf(name, sizeof name, "c%d", i);
        kr_metric_add(kr_metrics_get(reg, REQUESTS, name, "200"), 1);
    }
    assert_ptr_equal(kr_metrics_get(reg, REQUESTS, "c0", "200"), first);
    assert_int_equal(kr_metric_value(first), 1);
    assert_int_equal(kr_metric_value(kr_metrics_get(reg, REQUESTS, "c9", "200")), 7);
    assert_ptr_equal(kr_metrics_get(reg, REQUESTS, "other", "other"),
                     kr_metrics_get(reg, REQUESTS, "c8", "200"));
    kr_metrics_destroy(reg);
}

static void test_long_label_values_are_cut_and_same_label_text_is_one_series(void **state)
{
    struct kr_metrics *reg = create();
    char big[1000];

    (void)state;
    memset(big, '"', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    kr_metric_add(kr_metrics_get(reg, TUNNELS, big), 1);
    big[500] = 'x';
    kr_metric_add(kr_metrics_get(reg, TUNNELS, big), 1);
    assert_int_equal(kr_metric_value(kr_metrics_get(reg, TUNNELS, big)), 2);
    kr_metrics_destroy(reg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_render_when_fresh_shows_only_what_has_no_labels),
        cmocka_unit_test(test_render_adds_up_registries_and_escapes_labels),
        cmocka_unit_test(test_get_when_series_are_used_up_then_other),
        cmocka_unit_test(test_long_label_values_are_cut_and_same_label_text_is_one_series),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
