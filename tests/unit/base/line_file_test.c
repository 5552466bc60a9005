/* SPDX-License-Identifier: Apache-2.0 */
#include "base/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

struct place {
    char dir[64];
    char file[96];
};

static int make_place(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    snprintf(p->dir, sizeof p->dir, "/tmp/kr-lines-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->file, sizeof p->file, "%s/log", p->dir);
    *state = p;
    return 0;
}

static int drop_place(void **state)
{
    struct place *p = *state;
    char name[128];

    unlink(p->file);
    for (int i = 1; i < 9; i++) {
        snprintf(name, sizeof name, "%s.%d", p->file, i);
        unlink(name);
    }
    assert_int_equal(rmdir(p->dir), 0);
    free(p);
    return 0;
}

static struct kr_line_file *open_file(const char *path, int64_t max_size, int64_t keep)
{
    struct kr_line_file_config cfg = {path, max_size, keep};
    struct kr_note why = {""};
    struct kr_line_file *f = kr_line_file_open(&cfg, &why);

    if (f == NULL)
        fail_msg("%s", why.text);
    return f;
}

static void assert_file(const char *path, const char *want)
{
    char text[4096] = "";
    FILE *in = fopen(path, "r");

    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    assert_string_equal(text, want);
}

static void test_put_when_the_file_is_new_then_lines_for_its_owner_only(void **state)
{
    struct place *p = *state;
    struct kr_line_file *f = open_file(p->file, 0, 1);
    struct stat st;

    assert_int_equal(kr_line_file_put(f, KR_LIT("one"), 1), 0);
    assert_int_equal(kr_line_file_put(f, KR_LIT("two"), 1), 0);
    assert_true(kr_line_file_ok(f));
    assert_file(p->file, "one\ntwo\n");
    assert_int_equal(stat(p->file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    kr_line_file_close(f);
}

static void test_put_when_the_file_is_long_enough_then_it_is_rotated(void **state)
{
    struct place *p = *state;
    struct kr_line_file *f = open_file(p->file, 10, 2);
    char name[128];

    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "%d234", i);
        assert_int_equal(kr_line_file_put(f, kr_bytes_str(name), 1), 0);
    }
    assert_file(p->file, "6234\n");
    snprintf(name, sizeof name, "%s.1", p->file);
    assert_file(name, "4234\n5234\n");
    snprintf(name, sizeof name, "%s.2", p->file);
    assert_file(name, "2234\n3234\n");
    snprintf(name, sizeof name, "%s.3", p->file);
    assert_int_equal(access(name, F_OK), -1);
    kr_line_file_close(f);
}

static void test_put_when_the_device_is_full_then_it_says_so_and_keeps_what_fits(void **state)
{
    struct kr_line_file *f = open_file("/dev/full", 0, 1);
    char *big = calloc(1, KR_LINE_WAIT_MAX + 1);

    (void)state;
    assert_int_equal(kr_line_file_put(f, KR_LIT("line"), 1), 0);
    assert_false(kr_line_file_ok(f));
    assert_int_equal(kr_line_file_errno(f), ENOSPC);
    assert_int_equal(kr_line_file_waiting(f), 5);
    memset(big, 'x', KR_LINE_WAIT_MAX);
    assert_int_equal(kr_line_file_put(f, kr_bytes_of(big, KR_LINE_WAIT_MAX - 6), 1), 0);
    assert_int_equal(kr_line_file_put(f, KR_LIT(""), 1), KR_EFULL);
    assert_int_equal(kr_line_file_waiting(f), KR_LINE_WAIT_MAX);
    free(big);
    kr_line_file_close(f);
}

/* A disk that fills in the middle of a line: the line is whole once there is room. */
static void test_flush_when_there_is_room_again_then_no_line_is_torn(void **state)
{
    struct place *p = *state;
    struct kr_line_file *f = open_file(p->file, 0, 1);
    struct rlimit old;
    struct rlimit small;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 12;
    assert_int_equal(kr_line_file_put(f, KR_LIT("1234567"), 1), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(kr_line_file_put(f, KR_LIT("abcdefg"), 1), 0);
    assert_int_equal(kr_line_file_put(f, KR_LIT("second"), 1), 0);
    assert_false(kr_line_file_ok(f));
    assert_int_equal(kr_line_file_errno(f), EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    kr_line_file_flush(f, 2);
    assert_true(kr_line_file_ok(f));
    assert_int_equal(kr_line_file_waiting(f), 0);
    assert_file(p->file, "1234567\nabcdefg\nsecond\n");
    kr_line_file_close(f);
}

/* The same, and the file is renamed meanwhile: the line is whole in the new one. */
static void test_reopen_when_half_a_line_is_out_then_the_whole_one_comes_again(void **state)
{
    struct place *p = *state;
    struct kr_line_file *f = open_file(p->file, 0, 1);
    struct rlimit old;
    struct rlimit small;
    char name[128];

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(kr_line_file_put(f, KR_LIT("abcdefg"), 1), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    snprintf(name, sizeof name, "%s.1", p->file);
    assert_int_equal(rename(p->file, name), 0);
    assert_int_equal(kr_line_file_reopen(f, NULL), 0);
    kr_line_file_flush(f, 2);
    assert_file(name, "abcd");
    assert_file(p->file, "abcdefg\n");
    kr_line_file_close(f);
}

static void fill_pipe(struct kr_line_file *f)
{
    char line[1024];

    memset(line, 'x', sizeof line);
    while (kr_line_file_waiting(f) == 0)
        assert_int_equal(kr_line_file_put(f, kr_bytes_of(line, sizeof line), 1000), 0);
}

static void test_put_when_nobody_reads_the_pipe_then_it_fails_after_a_while(void **state)
{
    struct place *p = *state;
    struct kr_line_file *f;
    static char sink[1 << 20];
    int reader;

    assert_int_equal(mkfifo(p->file, 0600), 0);
    f = open_file(p->file, 0, 1);
    reader = open(p->file, O_RDONLY | O_NONBLOCK);
    fill_pipe(f);
    assert_true(kr_line_file_ok(f));
    kr_line_file_flush(f, 1000 + KR_LINE_STALL_MS - 1);
    assert_true(kr_line_file_ok(f));
    kr_line_file_flush(f, 1000 + KR_LINE_STALL_MS);
    assert_false(kr_line_file_ok(f));
    assert_int_equal(kr_line_file_errno(f), 0);
    assert_true(read(reader, sink, sizeof sink) > 0);
    kr_line_file_flush(f, 9000);
    assert_true(kr_line_file_ok(f));
    assert_int_equal(kr_line_file_waiting(f), 0);
    close(reader);
    kr_line_file_close(f);
}

static void test_last_when_the_file_was_torn_then_the_rest_is_ended_first(void **state)
{
    struct place *p = *state;
    struct kr_buf last = {.max = 100};
    struct kr_line_file *f;
    FILE *out = fopen(p->file, "w");

    fputs("one\ntwo\nhal", out);
    fclose(out);
    f = open_file(p->file, 0, 1);
    assert_int_equal(kr_line_file_last(f, &last), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&last), "hal"));
    assert_int_equal(kr_line_file_put(f, KR_LIT("new"), 1), 0);
    assert_file(p->file, "one\ntwo\nhal\nnew\n");
    last.n = 0;
    kr_line_file_close(f);
    f = open_file(p->file, 0, 1);
    assert_int_equal(kr_line_file_last(f, &last), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&last), "new"));
    kr_line_file_close(f);
    kr_buf_deinit(&last);
}

static void test_open_when_there_is_no_such_directory_then_the_note_names_it(void **state)
{
    struct kr_line_file_config cfg = {"/no/such/directory/log", 0, 1};
    struct kr_note why = {""};

    (void)state;
    assert_null(kr_line_file_open(&cfg, &why));
    assert_non_null(strstr(why.text, "/no/such/directory/log"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_put_when_the_file_is_new_then_lines_for_its_owner_only,
                                        make_place, drop_place),
        cmocka_unit_test_setup_teardown(test_put_when_the_file_is_long_enough_then_it_is_rotated,
                                        make_place, drop_place),
        cmocka_unit_test(test_put_when_the_device_is_full_then_it_says_so_and_keeps_what_fits),
        cmocka_unit_test_setup_teardown(test_flush_when_there_is_room_again_then_no_line_is_torn,
                                        make_place, drop_place),
        cmocka_unit_test_setup_teardown(
            test_reopen_when_half_a_line_is_out_then_the_whole_one_comes_again, make_place,
            drop_place),
        cmocka_unit_test_setup_teardown(
            test_put_when_nobody_reads_the_pipe_then_it_fails_after_a_while, make_place,
            drop_place),
        cmocka_unit_test_setup_teardown(
            test_last_when_the_file_was_torn_then_the_rest_is_ended_first, make_place, drop_place),
        cmocka_unit_test(test_open_when_there_is_no_such_directory_then_the_note_names_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
