/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/store_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static int enter_empty_dir(void **state)
{
    char name[] = "/tmp/kr_store_XXXXXX";

    if (mkdtemp(name) == NULL || chdir(name) != 0)
        return -1;
    *state = strdup(name);
    umask(0);
    return *state != NULL ? 0 : -1;
}

static int leave_dir(void **state)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    free(*state);
    return chdir("/") == 0 ? system(command) : -1;
}

static int files_here(void)
{
    DIR *d = opendir(".");
    int n = 0;

    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n - 2;
}

static int mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return (int)(st.st_mode & 07777);
}

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");

    fputs(text, f);
    fclose(f);
    chmod(path, mode);
}

static void assert_content(const char *path, const char *text)
{
    struct kr_buf b = {0};

    assert_int_equal(kr_file_read(&b, path, 1000, NULL), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&b), text));
    kr_buf_deinit(&b);
}

static void test_create_when_new_then_whole_and_0600(void **state)
{
    (void)state;
    assert_int_equal(kr_file_create("a.key", KR_LIT("secret"), NULL), 0);
    assert_content("a.key", "secret");
    assert_int_equal(mode_of("a.key"), 0600);
    assert_int_equal(files_here(), 1);
}

static void test_create_when_taken_then_refused_and_untouched(void **state)
{
    struct kr_note why;

    (void)state;
    put("a", "old", 0644);
    assert_int_equal(kr_file_create("a", KR_LIT("new"), &why), KR_EEXIST);
    assert_string_equal(why.text, "a exists; it is not overwritten");
    assert_content("a", "old");
    assert_int_equal(symlink("nowhere", "link"), 0);
    assert_int_equal(kr_file_create("link", KR_LIT("new"), &why), KR_EEXIST);
    assert_int_equal(access("nowhere", F_OK), -1);
    assert_int_equal(files_here(), 2);
}

static void test_create_when_folder_is_missing_then_enoent(void **state)
{
    struct kr_note why;

    (void)state;
    assert_int_equal(kr_file_create("no/a", KR_LIT("x"), &why), KR_ENOENT);
    assert_non_null(strstr(why.text, "no/a"));
    assert_int_equal(files_here(), 0);
}

static void test_create_pair_when_one_is_taken_then_neither(void **state)
{
    (void)state;
    put("b", "old", 0600);
    assert_int_equal(kr_file_create_pair("a", KR_LIT("1"), "b", KR_LIT("2"), NULL), KR_EEXIST);
    assert_int_equal(kr_file_create_pair("b", KR_LIT("1"), "a", KR_LIT("2"), NULL), KR_EEXIST);
    assert_int_equal(kr_file_create_pair("a", KR_LIT("1"), "no/b", KR_LIT("2"), NULL), KR_ENOENT);
    assert_int_equal(files_here(), 1);
    assert_content("b", "old");
    assert_int_equal(kr_file_create_pair("a", KR_LIT("1"), "c", KR_LIT("2"), NULL), 0);
    assert_content("a", "1");
    assert_content("c", "2");
}

static void test_read_when_at_the_limit_then_exact(void **state)
{
    struct kr_buf b = {0};
    struct kr_note why;

    (void)state;
    put("a", "12345", 0600);
    assert_int_equal(kr_file_read(&b, "a", 5, NULL), 0);
    assert_int_equal(b.n, 5);
    assert_int_equal(kr_file_read(&b, "a", 4, &why), KR_ETOOBIG);
    assert_null(b.p);
    assert_int_equal(kr_file_read(&b, "none", 4, &why), KR_ENOENT);
    kr_buf_deinit(&b);
}

static void test_read_when_not_a_regular_file_then_refused_at_once(void **state)
{
    struct kr_buf b = {0};
    struct kr_note why;

    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(kr_file_read(&b, "fifo", 100, &why), KR_EDENIED);
    assert_int_equal(kr_file_read(&b, ".", 100, &why), KR_EDENIED);
    assert_int_equal(kr_file_read(&b, "/dev/zero", 100, &why), KR_EDENIED);
}

static void test_read_private_when_others_may_read_then_refused(void **state)
{
    struct kr_buf b = {0};
    struct kr_note why;

    (void)state;
    put("a", "key", 0640);
    assert_int_equal(kr_file_read_private(&b, "a", 100, &why), KR_EDENIED);
    assert_non_null(strstr(why.text, "mode 0640"));
    chmod("a", 0604);
    assert_int_equal(kr_file_read_private(&b, "a", 100, &why), KR_EDENIED);
    chmod("a", 0400);
    assert_int_equal(kr_file_read_private(&b, "a", 100, &why), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&b), "key"));
    kr_buf_cleanse(&b);
    assert_null(b.p);
}

static void test_read_private_when_symbolic_link_then_refused(void **state)
{
    struct kr_buf b = {0};
    struct kr_note why;

    (void)state;
    put("a", "key", 0600);
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(kr_file_read_private(&b, "link", 100, &why), KR_EDENIED);
    assert_int_equal(kr_file_read(&b, "link", 100, &why), 0); /* a mounted Secret is one */
    kr_buf_cleanse(&b);
}

static void test_read_private_when_of_another_user_then_refused(void **state)
{
    struct kr_buf b = {0};
    struct kr_note why;

    (void)state;
    if (geteuid() != 0)
        skip();
    put("a", "key", 0600);
    assert_int_equal(chown("a", 12345, 12345), 0);
    assert_int_equal(kr_file_read_private(&b, "a", 100, &why), KR_EDENIED);
    assert_non_null(strstr(why.text, "12345"));
}

static void test_dir_ensure_when_missing_then_0700(void **state)
{
    struct kr_note why;

    (void)state;
    assert_int_equal(kr_dir_ensure("pki", NULL), 0);
    assert_int_equal(mode_of("pki"), 0700);
    assert_int_equal(kr_dir_ensure("pki", NULL), 0);
    chmod("pki", 0755);
    assert_int_equal(kr_dir_ensure("pki", NULL), 0);
    chmod("pki", 0770);
    assert_int_equal(kr_dir_ensure("pki", &why), KR_EDENIED);
    assert_non_null(strstr(why.text, "mode 0770"));
    assert_int_equal(kr_dir_ensure("no/pki", &why), KR_ENOENT);
    put("file", "", 0600);
    assert_int_equal(kr_dir_ensure("file", &why), KR_EEXIST);
}

static void test_dir_hold_when_held_then_exists(void **state)
{
    struct kr_note why;
    int a;
    int b;

    (void)state;
    assert_int_equal(kr_dir_hold("pki", &a, &why), KR_ENOENT);
    assert_int_equal(kr_dir_ensure("pki", NULL), 0);
    assert_int_equal(kr_dir_hold("pki", &a, &why), 0);
    assert_int_equal(kr_dir_hold("pki", &b, &why), KR_EEXIST);
    assert_string_equal(why.text, "another process uses pki");
    assert_int_equal(b, -1);
    close(a);
    assert_int_equal(kr_dir_hold("pki", &b, &why), 0);
    close(b);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, enter_empty_dir, leave_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(test_create_when_new_then_whole_and_0600),
        IN_DIR(test_create_when_taken_then_refused_and_untouched),
        IN_DIR(test_create_when_folder_is_missing_then_enoent),
        IN_DIR(test_create_pair_when_one_is_taken_then_neither),
        IN_DIR(test_read_when_at_the_limit_then_exact),
        IN_DIR(test_read_when_not_a_regular_file_then_refused_at_once),
        IN_DIR(test_read_private_when_others_may_read_then_refused),
        IN_DIR(test_read_private_when_symbolic_link_then_refused),
        IN_DIR(test_read_private_when_of_another_user_then_refused),
        IN_DIR(test_dir_ensure_when_missing_then_0700),
        IN_DIR(test_dir_hold_when_held_then_exists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
