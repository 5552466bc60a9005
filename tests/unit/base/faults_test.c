/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the Nth allocation, for every N: each module answers with its code, leaks
 * nothing and can be used or destroyed afterwards. The allocator is replaced in this program only.
 */
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../every_alloc.h"
#include "base/arena.h"
#include "base/config.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/sched.h"

static int use_buf(void)
{
    struct kr_buf b;
    int rc;

    kr_buf_init(&b, 10000);
    rc = kr_buf_append_str(&b, "hello");
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = kr_buf_printf(&b, "%d and more text than that", i);
    kr_buf_deinit(&b);
    return rc;
}

static int use_arena(void)
{
    struct kr_arena a;
    int rc = 0;

    kr_arena_init(&a, 32, 10000);
    for (int i = 0; i < 100 && rc == 0; i++)
        rc = kr_arena_copy(&a, KR_LIT("some text")).p != NULL ? 0 : KR_ENOMEM;
    kr_arena_deinit(&a);
    return rc;
}

static int use_map(void)
{
    static char keys[100][4];
    struct kr_map m;
    int rc = 0;

    kr_map_init(&m, 100);
    for (size_t i = 0; i < 100 && rc == 0; i++) {
        snprintf(keys[i], sizeof keys[i], "%d", (int)i);
        rc = kr_map_put(&m, kr_bytes_str(keys[i]), keys[i]);
        for (size_t k = 0; rc == KR_ENOMEM && k < i; k++)
            assert_ptr_equal(kr_map_get(&m, kr_bytes_str(keys[k])), keys[k]);
    }
    kr_map_deinit(&m);
    return rc;
}

static void never(struct kr_timer *t)
{
    (void)t;
}

static int use_sched(void)
{
    struct kr_timer timers[200];
    struct kr_sched s;
    int rc = 0;

    kr_sched_init(&s, 0, 0);
    for (int i = 0; i < 200 && rc == 0; i++) {
        kr_timer_init(&timers[i], never);
        rc = kr_timer_start(&s, &timers[i], 1000 - i);
    }
    kr_sched_deinit(&s);
    return rc;
}

static int use_json(void)
{
    struct kr_json *doc = NULL;
    struct kr_note why;
    int rc = kr_json_parse(KR_LIT("[1]"), &doc, &why);

    kr_json_destroy(doc);
    return rc == KR_EPROTO ? KR_ENOMEM : rc; /* json-c tells no difference */
}

static int on_entry(void *owner, const struct kr_config_entry *e, struct kr_note *why)
{
    (void)why;
    *(size_t *)owner += e->n;
    return 0;
}

static int use_config(void)
{
    struct kr_note why = {.text = ""};
    size_t items = 0;
    int rc = kr_config_parse("F", KR_LIT("a: 1\nb: [x, y]\nc: \"z\"\n"), on_entry, &items, &why);

    assert_true(rc != 0 || items == 4);
    assert_int_equal(why.text[0] != '\0', rc != 0);
    return rc == KR_EINVAL ? KR_ENOMEM : rc; /* libyaml says it in its own words */
}

struct config {
    const char *name;
    struct kr_strings list;
};

static const struct kr_option table[] = {
    {"name", KR_OPT_STRING, offsetof(struct config, name), NULL, .text = "Name."},
    {"list", KR_OPT_STRINGS, offsetof(struct config, list), NULL, .text = "List."},
};
static const struct kr_program program = {
    .name = "p", .summary = "s", .options = table, .n_options = 2};

static int use_options(void)
{
    static char name[2000] = "--name=";
    char *argv[] = {(char *)(uintptr_t) "p", name, (char *)(uintptr_t) "--list=a,b"};
    struct kr_options o;
    struct config c = {.name = NULL};
    int rc;

    memset(name + 7, 'x', sizeof name - 8);
    rc = kr_options_parse(&o, &program, &c, 3, argv, stdout, stderr);
    kr_options_deinit(&o);
    return rc == KR_OPTIONS_RUN ? 0 : KR_ENOMEM;
}

static const struct kr_metric_family families[] = {
    {"a_total", KR_COUNTER, "A.", {"x"}},
    {"b_total", KR_COUNTER, "B.", {NULL}},
};

static int use_metrics(void)
{
    struct kr_metrics *reg = kr_metrics_create(families, 2);
    struct kr_buf out;
    int rc;

    if (reg == NULL)
        return KR_ENOMEM;
    for (int i = 0; i < 20; i++) {
        char value[8];

        snprintf(value, sizeof value, "%d", i);
        kr_metric_add(kr_metrics_get(reg, 0, value), 1); /* never NULL */
    }
    kr_buf_init(&out, 10000);
    rc = kr_metrics_render(&reg, 1, &out);
    kr_buf_deinit(&out);
    kr_metrics_destroy(reg);
    return rc;
}

#define FAULT_TEST(module)                                                                         \
    static void test_##module##_when_memory_runs_out_then_it_says_so(void **state)                 \
    {                                                                                              \
        (void)state;                                                                               \
        for_every_allocation(use_##module);                                                        \
    }
FAULT_TEST(buf)
FAULT_TEST(arena)
FAULT_TEST(map)
FAULT_TEST(sched)
FAULT_TEST(json)
FAULT_TEST(config)
FAULT_TEST(options)
FAULT_TEST(metrics)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf_when_memory_runs_out_then_it_says_so),
        cmocka_unit_test(test_arena_when_memory_runs_out_then_it_says_so),
        cmocka_unit_test(test_map_when_memory_runs_out_then_it_says_so),
        cmocka_unit_test(test_sched_when_memory_runs_out_then_it_says_so),
        cmocka_unit_test(test_json_when_memory_runs_out_then_it_says_so),
        cmocka_unit_test(test_config_when_memory_runs_out_then_it_says_so),
        cmocka_unit_test(test_options_when_memory_runs_out_then_it_says_so),
        cmocka_unit_test(test_metrics_when_memory_runs_out_then_it_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
