/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/audit_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

struct world {
    struct kr_sched sched;
    struct kr_log log;
    struct kr_audit_options options;
    struct kr_metric lines;
    struct kr_metric lost;
    struct kr_metric failing;
    char file[64];
};

static int open_log(struct world *w, struct kr_audit_log **out)
{
    struct kr_audit_log_config cfg = {
        .options = &w->options,
        .sched = &w->sched,
        .log = &w->log,
        .lines = &w->lines,
        .lost = &w->lost,
        .failing = &w->failing,
    };
    struct kr_note why = {""};

    return kr_audit_log_open(out, &cfg, &why);
}

static void setup(struct world *w, const char *file)
{
    *w = (struct world){.options = {.log = file, .keep = 1}};
    kr_log_init(&w->log, STDERR_FILENO, KR_LOG_ERROR);
    kr_sched_init(&w->sched, 1000, 1000);
}

static int put(struct kr_audit_log *a)
{
    struct kr_buf line = {.max = 4096};

    assert_int_equal(kr_buf_append_str(&line, "{\"annotations\":{\"a\":\"b\""), 0);
    return kr_audit_log_put(a, &line);
}

static void test_log_when_no_file_is_named_then_there_is_none_and_all_is_allowed(void **state)
{
    struct kr_audit_log *a;
    struct world w;

    (void)state;
    setup(&w, NULL);
    assert_int_equal(open_log(&w, &a), 0);
    assert_null(a);
    assert_int_equal(put(a), 0);
    assert_true(kr_audit_log_allows(a, KR_ENOMEM));
    kr_audit_log_reopen(a);
    kr_audit_log_close(a);
    kr_sched_deinit(&w.sched);
}

static void test_log_when_strict_then_what_was_not_logged_is_not_allowed(void **state)
{
    char file[] = "/tmp/kr-audit-XXXXXX";
    int fd = mkstemp(file);
    struct kr_audit_log *a;
    struct world w;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    setup(&w, file);
    assert_int_equal(open_log(&w, &a), 0);
    assert_int_equal(put(a), 0);
    assert_true(kr_audit_log_allows(a, 0));
    assert_false(kr_audit_log_allows(a, KR_ENOMEM));
    w.options.mode = KR_AUDIT_BEST_EFFORT;
    assert_true(kr_audit_log_allows(a, KR_ENOMEM));
    kr_audit_log_close(a);
    kr_sched_deinit(&w.sched);
    unlink(file);
}

static void test_log_when_the_disk_is_full_then_only_best_effort_goes_on(void **state)
{
    struct kr_audit_log *a;
    struct world w;

    (void)state;
    setup(&w, "/dev/full");
    assert_int_equal(open_log(&w, &a), 0);
    put(a);
    assert_false(kr_audit_log_allows(a, 0));
    w.options.mode = KR_AUDIT_BEST_EFFORT;
    assert_true(kr_audit_log_allows(a, 0));
    kr_audit_log_close(a);
    kr_sched_deinit(&w.sched);
}

static void test_log_when_it_cannot_be_opened_then_refused(void **state)
{
    struct kr_audit_log *a;
    struct world w;

    (void)state;
    setup(&w, "/nowhere/at/all");
    assert_int_not_equal(open_log(&w, &a), 0);
    assert_null(a);
    kr_sched_deinit(&w.sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_when_no_file_is_named_then_there_is_none_and_all_is_allowed),
        cmocka_unit_test(test_log_when_strict_then_what_was_not_logged_is_not_allowed),
        cmocka_unit_test(test_log_when_the_disk_is_full_then_only_best_effort_goes_on),
        cmocka_unit_test(test_log_when_it_cannot_be_opened_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
