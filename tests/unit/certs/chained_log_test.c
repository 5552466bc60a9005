/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/chained_log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/json.h"
#include "certs/hmac.h"

struct world {
    char dir[64];
    char file[96];
    struct kr_sched sched;
    struct kr_metric lines;
    struct kr_metric lost;
    struct kr_metric failing;
    int changes;
    int error;
    bool is_failing;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    snprintf(w->dir, sizeof w->dir, "/tmp/kr-chain-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->file, sizeof w->file, "%s/log", w->dir);
    kr_sched_init(&w->sched, 1000, 1000);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    kr_sched_deinit(&w->sched);
    unlink(w->file);
    assert_int_equal(rmdir(w->dir), 0);
    free(w);
    return 0;
}

static void on_change(void *owner, bool failing, int error)
{
    struct world *w = owner;

    w->changes++;
    w->is_failing = failing;
    w->error = error;
}

static struct kr_chained_log *open_log(struct world *w, const char *path)
{
    struct kr_chained_config cfg = {
        .file = {path, 0, 1},
        .sched = &w->sched,
        .lines = &w->lines,
        .lost = &w->lost,
        .failing = &w->failing,
        .on_change = on_change,
        .owner = w,
    };
    struct kr_note why = {""};
    struct kr_chained_log *l = kr_chained_log_open(&cfg, &why);

    if (l == NULL)
        fail_msg("%s", why.text);
    return l;
}

static int put(struct kr_chained_log *l, const char *text)
{
    struct kr_buf line = {.max = 1u << 21};
    int rc;

    assert_int_equal(kr_buf_printf(&line, "{\"annotations\":{\"a\":\"%s\"", text), 0);
    rc = kr_chained_log_put(l, &line);
    kr_buf_deinit(&line);
    return rc;
}

/* Each line has the hash of the one before; gives how many there are. */
static size_t check_chain(const char *path)
{
    char before[65];
    char text[8192];
    size_t n = 0;
    FILE *in = fopen(path, "r");

    memset(before, '0', 64);
    before[64] = '\0';
    for (; fgets(text, sizeof text, in) != NULL; n++) {
        struct kr_bytes line = kr_bytes_of(text, strcspn(text, "\n"));
        uint8_t hash[KR_HMAC_SIZE];
        struct kr_json *doc;

        assert_int_equal(kr_json_parse(line, &doc, NULL), 0);
        assert_string_equal(kr_json_text(kr_json_get(doc, "annotations"), "kuberelay.io/prev"),
                            before);
        kr_json_destroy(doc);
        assert_int_equal(kr_sha256(line, hash), 0);
        for (size_t i = 0; i < sizeof hash; i++)
            snprintf(before + 2 * i, 3, "%02x", hash[i]);
    }
    fclose(in);
    return n;
}

static void test_put_when_opened_again_then_the_chain_goes_on(void **state)
{
    struct world *w = *state;

    for (int round = 0; round < 3; round++) {
        struct kr_chained_log *l = open_log(w, w->file);

        assert_int_equal(put(l, "x"), 0);
        assert_int_equal(put(l, "y"), 0);
        kr_chained_log_close(l);
    }
    assert_int_equal(check_chain(w->file), 6);
    assert_int_equal(w->lines.value, 6);
    assert_int_equal(w->changes, 0);
}

static void test_put_when_the_device_is_full_then_told_once_and_lost_lines_are_counted(void **state)
{
    struct world *w = *state;
    struct kr_chained_log *l = open_log(w, "/dev/full");
    char *big = calloc(1, 300001);

    memset(big, 'x', 300000);
    assert_int_equal(put(l, "x"), 0);
    assert_false(kr_chained_log_ok(l));
    assert_int_equal(w->changes, 1);
    assert_true(w->is_failing);
    assert_int_equal(w->error, ENOSPC);
    assert_int_equal(w->failing.value, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(put(l, big), 0);
    assert_int_equal(put(l, big), KR_EFULL);
    assert_int_equal(w->lost.value, 1);
    assert_int_equal(w->lines.value, 4);
    for (int64_t now = 1000; now < 5000; now += 100)
        kr_sched_run(&w->sched, now, now);
    assert_int_equal(w->changes, 1);
    free(big);
    kr_chained_log_close(l);
}

static void test_reopen_when_the_new_file_takes_lines_then_well_and_the_chain_is_whole(void **state)
{
    struct world *w = *state;
    struct kr_chained_log *l;

    assert_int_equal(symlink("/dev/full", w->file), 0);
    l = open_log(w, w->file);
    assert_int_equal(put(l, "x"), 0);
    assert_int_equal(put(l, "y"), 0);
    assert_int_equal(w->failing.value, 1);
    assert_int_equal(unlink(w->file), 0);
    assert_int_equal(kr_chained_log_reopen(l, NULL), 0);
    assert_true(kr_chained_log_ok(l));
    assert_int_equal(w->changes, 2);
    assert_false(w->is_failing);
    assert_int_equal(w->failing.value, 0);
    assert_int_equal(put(l, "z"), 0);
    kr_chained_log_close(l);
    assert_int_equal(check_chain(w->file), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_when_opened_again_then_the_chain_goes_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_put_when_the_device_is_full_then_told_once_and_lost_lines_are_counted, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            test_reopen_when_the_new_file_takes_lines_then_well_and_the_chain_is_whole, setup,
            teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
