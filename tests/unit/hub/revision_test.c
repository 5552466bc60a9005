/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "hub/revision.h"

#define NOW INT64_C(1700000000000000) /* microseconds */
#define MINUTE INT64_C(60000000)

struct folder {
    char path[64];
    char file[96];
};

static int setup(void **state)
{
    struct folder *f = calloc(1, sizeof *f);

    snprintf(f->path, sizeof f->path, "/tmp/kr-revision-XXXXXX");
    if (mkdtemp(f->path) == NULL)
        return -1;
    snprintf(f->file, sizeof f->file, "%s/revision", f->path);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct folder *f = *state;

    (void)chmod(f->path, 0700);
    (void)unlink(f->file);
    (void)rmdir(f->path); /* and nothing else is in it */
    free(f);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static uint64_t of_time(int64_t us)
{
    return (uint64_t)us << 4;
}

static void test_revision_when_time_goes_on_then_it_is_the_time_and_the_replica(void **state)
{
    struct hub_revision r;

    (void)state;
    assert_int_equal(hub_revision_init(&r, NULL, 5, NOW, NULL), 0);
    assert_int_equal(r.first, of_time(NOW) | 5);
    assert_int_equal(r.last, r.first);
    assert_int_equal(hub_revision_next(&r, NOW + 7), of_time(NOW + 7) | 5);
    assert_int_equal(r.last, of_time(NOW + 7) | 5);
    hub_revision_deinit(&r);
}

static void test_revision_when_the_clock_stands_or_steps_back_then_it_still_rises(void **state)
{
    struct hub_revision r;
    uint64_t last;

    (void)state;
    assert_int_equal(hub_revision_init(&r, NULL, 5, NOW, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        last = r.last;
        assert_int_equal(hub_revision_next(&r, i % 2 == 0 ? NOW : NOW - 1000 * MINUTE), last + 16);
    }
    last = hub_revision_next(&r, 0);
    assert_int_equal(r.last, last);
    hub_revision_deinit(&r);
}

static void test_revision_when_asked_whose_it_is_then_only_ours_since_the_start_are(void **state)
{
    struct hub_revision r;

    (void)state;
    assert_int_equal(hub_revision_init(&r, NULL, 5, NOW, NULL), 0);
    (void)hub_revision_next(&r, NOW + 100);
    assert_true(hub_revision_is_ours(&r, r.first));
    assert_true(hub_revision_is_ours(&r, r.last));
    assert_true(hub_revision_is_ours(&r, r.first + 16));
    assert_false(hub_revision_is_ours(&r, r.first + 1)); /* another replica's */
    assert_false(hub_revision_is_ours(&r, r.first - 16));
    assert_false(hub_revision_is_ours(&r, r.last + 16));
    assert_false(hub_revision_is_ours(&r, 0));
    hub_revision_deinit(&r);
}

static void test_revision_when_restarted_with_an_older_clock_then_none_comes_twice(void **state)
{
    const struct folder *f = *state;
    struct hub_revision r;
    struct kr_note why;
    uint64_t last;

    assert_int_equal(hub_revision_init(&r, f->file, 5, NOW, &why), 0);
    for (int64_t i = 0; i < 100; i++)
        (void)hub_revision_next(&r, NOW + i * MINUTE);
    last = r.last;
    hub_revision_deinit(&r); /* as after a crash: nothing is written at the end */
    assert_int_equal(hub_revision_init(&r, f->file, 5, NOW - 500 * MINUTE, &why), 0);
    assert_true(r.first > last);
    assert_int_equal(r.first & 15, 5);
    last = r.last;
    hub_revision_deinit(&r);
    assert_int_equal(hub_revision_init(&r, f->file, 4, NOW - 500 * MINUTE, &why), 0);
    assert_true(r.first > last);
    hub_revision_deinit(&r);
}

static void test_revision_when_the_clock_steps_back_while_it_runs_then_it_reserves_on(void **state)
{
    const struct folder *f = *state;
    struct hub_revision r;
    uint64_t last;

    assert_int_equal(hub_revision_init(&r, f->file, 5, NOW, NULL), 0);
    /* Far beyond what was reserved, without any help of the clock. */
    r.last = r.reserved - 16 * 1000;
    for (int i = 0; i < 3000; i++)
        (void)hub_revision_next(&r, NOW);
    last = r.last;
    assert_true(r.reserved > last);
    hub_revision_deinit(&r);
    assert_int_equal(hub_revision_init(&r, f->file, 5, NOW, NULL), 0);
    assert_true(r.first > last);
    hub_revision_deinit(&r);
}

static void test_revision_when_it_is_early_then_the_file_is_left_alone(void **state)
{
    const struct folder *f = *state;
    struct hub_revision r;
    struct stat first;
    struct stat later;

    assert_int_equal(hub_revision_init(&r, f->file, 5, NOW, NULL), 0);
    assert_int_equal(stat(f->file, &first), 0);
    assert_int_equal(first.st_mode & 0777, 0600);
    for (int i = 0; i < 1000; i++)
        (void)hub_revision_next(&r, NOW + 4 * MINUTE);
    assert_int_equal(stat(f->file, &later), 0);
    assert_int_equal(later.st_ino, first.st_ino);
    (void)hub_revision_next(&r, NOW + 6 * MINUTE);
    assert_true(r.reserved >= of_time(NOW + 16 * MINUTE));
    hub_revision_deinit(&r);
}

static void test_revision_when_the_file_is_no_mark_then_it_does_not_start(void **state)
{
    static const char *const bad[] = {"",
                                      "\n",
                                      "12x\n",
                                      "-1\n",
                                      "99999999999999999999\n",
                                      "18446744073709551615\n",
                                      "1 2\n",
                                      "000000000000000000000000000000000000000001\n"};
    const struct folder *f = *state;
    struct hub_revision r;
    struct kr_note why;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(f->file, bad[i]);
        why.text[0] = '\0';
        assert_int_not_equal(hub_revision_init(&r, f->file, 5, NOW, &why), 0);
        assert_non_null(strstr(why.text, f->file));
    }
}

static void test_revision_when_its_folder_is_missing_then_it_does_not_start(void **state)
{
    struct hub_revision r;
    struct kr_note why = {.text = ""};

    (void)state;
    assert_int_equal(hub_revision_init(&r, "/nowhere/at/all/revision", 5, NOW, &why), KR_EIO);
    assert_non_null(strstr(why.text, "/nowhere/at/all/revision"));
}

/* How often the log says it. */
static int told(FILE *log, const char *event)
{
    char line[512];
    int n = 0;

    rewind(log);
    while (fgets(line, sizeof line, log) != NULL)
        n += strstr(line, event) != NULL;
    return n;
}

/* A folder in the place of the temporary file: that stops root, too. */
static void test_revision_when_the_file_cannot_be_written_then_it_says_so_and_retries(void **state)
{
    const struct folder *f = *state;
    struct kr_note why = {.text = ""};
    FILE *lines = tmpfile();
    struct kr_log log;
    struct hub_revision r;
    char temp[128];

    assert_non_null(lines);
    kr_log_init(&log, fileno(lines), KR_LOG_INFO);

    snprintf(temp, sizeof temp, "%s.new", f->file);
    assert_int_equal(hub_revision_init(&r, f->file, 5, NOW, NULL), 0);
    r.log = &log;
    assert_false(hub_revision_failed(&r, &why));
    assert_int_equal(mkdir(temp, 0700), 0);
    assert_true(hub_revision_next(&r, NOW + 20 * MINUTE) >= of_time(NOW + 20 * MINUTE));
    assert_true(hub_revision_failed(&r, &why));
    assert_non_null(strstr(why.text, temp));
    assert_true(hub_revision_failed(&r, NULL));
    assert_int_equal(rmdir(temp), 0);
    (void)hub_revision_next(&r, NOW + 20 * MINUTE + 1);
    assert_true(hub_revision_failed(&r, &why)); /* not at once */
    assert_int_equal(told(lines, "event=revision-unsaved"), 1);
    assert_int_equal(told(lines, "event=revision-saved"), 0);
    (void)hub_revision_next(&r, NOW + 21 * MINUTE);
    assert_false(hub_revision_failed(&r, &why));
    assert_true(r.reserved > r.last);
    assert_int_equal(told(lines, "event=revision-unsaved"), 1);
    assert_int_equal(told(lines, "event=revision-saved"), 1);
    hub_revision_deinit(&r);
    fclose(lines);
}

int main(void)
{
#define WITH_FOLDER(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_revision_when_time_goes_on_then_it_is_the_time_and_the_replica),
        cmocka_unit_test(test_revision_when_the_clock_stands_or_steps_back_then_it_still_rises),
        cmocka_unit_test(test_revision_when_asked_whose_it_is_then_only_ours_since_the_start_are),
        WITH_FOLDER(test_revision_when_restarted_with_an_older_clock_then_none_comes_twice),
        WITH_FOLDER(test_revision_when_the_clock_steps_back_while_it_runs_then_it_reserves_on),
        WITH_FOLDER(test_revision_when_it_is_early_then_the_file_is_left_alone),
        WITH_FOLDER(test_revision_when_the_file_is_no_mark_then_it_does_not_start),
        cmocka_unit_test(test_revision_when_its_folder_is_missing_then_it_does_not_start),
        WITH_FOLDER(test_revision_when_the_file_cannot_be_written_then_it_says_so_and_retries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
