/* SPDX-License-Identifier: Apache-2.0 */
/* The whole command through its only door, in an empty folder per test. */
#include "ctl/ctl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORDS_MAX 32

static char *last_out;
static char *last_err;

static int enter_empty_dir(void **state)
{
    char name[] = "/tmp/kr_ctl_XXXXXX";

    if (mkdtemp(name) == NULL || chdir(name) != 0)
        return -1;
    *state = strdup(name);
    umask(022);
    return *state != NULL ? 0 : -1;
}

static int leave_dir(void **state)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    free(*state);
    free(last_out);
    free(last_err);
    last_out = last_err = NULL;
    return chdir("/") == 0 ? system(command) : -1;
}

/* Runs the words of `line`, which are parted by single spaces; returns the exit code. */
static int ctl(const char *line)
{
    char *text = strdup(line);
    char *argv[WORDS_MAX] = {(char *)"kuberelayctl"};
    size_t out_n;
    size_t err_n;
    FILE *out;
    FILE *err;
    int argc = 1;
    int rc;

    free(last_out);
    free(last_err);
    out = open_memstream(&last_out, &out_n);
    err = open_memstream(&last_err, &err_n);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    rc = ctl_run(argc, argv, out, err);
    fclose(out);
    fclose(err);
    free(text);
    return rc;
}

static void assert_one_line(const char *text)
{
    const char *end = strchr(text, '\n');

    assert_int_equal(strncmp(text, "kuberelayctl: ", 14), 0);
    assert_true(end != NULL && end[1] == 0);
    assert_null(strpbrk(text, "\x1b\x7f"));
}

static void assert_mode(const char *path, unsigned mode)
{
    struct stat st;

    if (stat(path, &st) != 0)
        fail_msg("%s is missing", path);
    assert_int_equal(st.st_mode & 07777, mode);
}

static char *slurp(const char *path)
{
    char *text = calloc(1, 100000);
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    assert_true(fread(text, 1, 99999, f) > 0);
    fclose(f);
    return text;
}

static void init_pki(void)
{
    assert_int_equal(ctl("ca init --dir pki --trust-domain fleet.test"), 0);
}

static void test_init_when_new_then_two_private_files(void **state)
{
    (void)state;
    assert_int_equal(ctl("ca init --dir pki"), 0);
    assert_string_equal(last_out, "pki/ca.crt\npki/ca.key\n");
    assert_mode("pki", 0700);
    assert_mode("pki/ca.crt", 0600);
    assert_mode("pki/ca.key", 0600);
    assert_int_equal(ctl("ca show pki/ca.crt"), 0);
    assert_non_null(strstr(last_out, "role: ca\nuri: spiffe://kuberelay.internal\n"));
}

static void test_init_when_there_then_refused_and_untouched(void **state)
{
    char *before;
    char *after;

    (void)state;
    init_pki();
    before = slurp("pki/ca.key");
    assert_int_equal(ctl("ca init --dir pki"), 1);
    assert_one_line(last_err);
    assert_non_null(strstr(last_err, "exists"));
    assert_string_equal(last_out, "");
    unlink("pki/ca.crt"); /* the key alone must be safe too */
    assert_int_equal(ctl("ca init --dir pki"), 1);
    assert_int_equal(access("pki/ca.crt", F_OK), -1);
    after = slurp("pki/ca.key");
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void test_issue_when_each_role_then_files_that_verify(void **state)
{
    static const struct {
        const char *line;
        const char *stem;
        const char *show;
        const char *purpose;
    } rows[] = {
        {"ca issue hub --dir pki --name hub-1 --dns localhost --dns *.hub.test --ip 127.0.0.1",
         "pki/hub-hub-1", "role: hub\nname: hub-1\n", "sslserver"},
        {"ca issue agent --dir pki --cluster edge-1", "pki/agent-edge-1-a",
         "role: agent\nname: edge-1\ninstance: a\n", "sslclient"},
        {"ca issue agent --dir=pki --cluster=edge-1 --instance=b", "pki/agent-edge-1-b",
         "instance: b\n", "sslclient"},
        {"ca issue user --dir pki --name alice --group dev --group ops", "pki/user-alice",
         "role: user\nname: alice\ngroup: dev\ngroup: ops\n", "sslclient"},
        {"ca issue user --dir pki --name bob@example.com --hours 1", "pki/user-bob@example.com",
         "role: user\nname: bob@example.com\n", "sslclient"},
        {"ca issue user --dir pki --name x/y --out elsewhere", "elsewhere", "name: x/y\n",
         "sslclient"},
    };
    bool tool = system("openssl version >/dev/null 2>&1") == 0;

    (void)state;
    init_pki();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];

        if (ctl(rows[i].line) != 0)
            fail_msg("%s: %s", rows[i].line, last_err);
        snprintf(text, sizeof text, "%s.crt\n%s.key\n", rows[i].stem, rows[i].stem);
        assert_string_equal(last_out, text);
        assert_string_equal(last_err, "");
        snprintf(text, sizeof text, "%s.key", rows[i].stem);
        assert_mode(text, 0600);
        snprintf(text, sizeof text, "%s.crt", rows[i].stem);
        assert_mode(text, 0600);
        snprintf(text, sizeof text, "ca show %s.crt", rows[i].stem);
        assert_int_equal(ctl(text), 0);
        if (strstr(last_out, rows[i].show) == NULL)
            fail_msg("%s: %s", rows[i].line, last_out);
        snprintf(text, sizeof text,
                 "openssl verify -x509_strict -purpose %s -CAfile pki/ca.crt %s.crt >/dev/null",
                 rows[i].purpose, rows[i].stem);
        if (tool)
            assert_int_equal(system(text), 0);
        assert_int_equal(ctl(rows[i].line), 1); /* a second time: nothing is overwritten */
        assert_non_null(strstr(last_err, "exists"));
    }
}

static void test_use_when_wrong_then_one_line_and_2(void **state)
{
    static const char *const lines[] = {
        "",
        "frobnicate",
        "ca",
        "ca issue",
        "ca issue pod",
        "--dir pki",
        "ca init",
        "ca init --dir",
        "ca init --dir=",
        "ca init --dir a --dir b",
        "ca init --dir a extra",
        "ca init --dir a --years ten",
        "ca init --dir a --years 0",
        "ca init --dir a --years 31",
        "ca init --dir a --trust-domain Fleet",
        "ca init -d a",
        "ca show",
        "ca show a b",
        "ca issue hub --dir pki",
        "ca issue hub --dir pki --name h --dns https://x",
        "ca issue hub --dir pki --name h --ip 1.2.3",
        "ca issue hub --dir pki --name a/b",
        "ca issue agent --dir pki --cluster Edge",
        "ca issue agent --dir pki --cluster e --instance ..",
        "ca issue agent --dir pki --cluster e --days 91",
        "ca issue agent --dir pki --cluster e --days 1 --hours 1",
        "ca issue agent --dir pki --cluster e --trust-domain other.test",
        "ca issue agent --dir pki --cluster e --group x",
        "ca issue user --dir pki --name x/y",
        "ca\nissue\x1b[2J",
        "ca init --dir a --years 1\n\x7f",
        "kubeconfig --server https://h:6443 --ca a --cert b --key c",
        "kubeconfig --server http://h:6443 --ca a --cert b --key c --cluster e",
        "kubeconfig --server https://h:6443/x --ca a --cert b --key c --cluster e",
        "kubeconfig --server https://u@h --ca a --cert b --key c --cluster e",
        "kubeconfig --server https://h:0 --ca a --cert b --key c --cluster e",
        "kubeconfig --server https://h:65536 --ca a --cert b --key c --cluster e",
        "kubeconfig --server https:// --ca a --cert b --key c --cluster e",
        "kubeconfig --server https://[::1 --ca a --cert b --key c --cluster e",
        "kubeconfig --server https://h --ca a --cert b --key c --cluster E",
        "kubeconfig --server https://h --ca a --cert b --key c --cluster e --cluster e",
        "kubeconfig --server https://h --ca a --cert b --key c --cluster e --embed --files",
        "kubeconfig --server https://h --ca a --cert b --key c --cluster e --embed=yes",
    };

    (void)state;
    init_pki();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int rc = ctl(lines[i]);

        if (rc != 2)
            fail_msg("\"%s\": %d %s", lines[i], rc, last_err);
        assert_one_line(last_err);
        assert_string_equal(last_out, "");
    }
}

static void test_failure_when_files_are_wrong_then_one_line_and_1(void **state)
{
    static const char *const lines[] = {
        "ca init --dir no/pki",
        "ca show none",
        "ca show pki",
        "ca show pki/ca.key",
        "ca issue hub --dir none --name hub.test",
        "ca issue hub --dir open --name hub.test",
        "ca issue user --dir pki --name system:admin --out u",
        "ca issue user --dir pki --name eve --group system:masters",
        "ca issue user --dir pki --name eve --out no/eve",
        "kubeconfig --server https://h --ca none --cert b --key c --cluster e",
        "kubeconfig --server https://h --ca pki/agent-e-a.crt --cert pki/user-a.crt "
        "--key pki/user-a.key --cluster e",
        "kubeconfig --server https://h --ca pki/ca.crt --cert pki/user-a.crt "
        "--key pki/agent-e-a.key --cluster e",
        "kubeconfig --server https://h --ca pki/ca.crt --cert pki/agent-e-a.crt "
        "--key pki/agent-e-a.key --cluster e",
    };

    (void)state;
    init_pki();
    assert_int_equal(ctl("ca issue agent --dir pki --cluster e"), 0);
    assert_int_equal(ctl("ca issue user --dir pki --name a"), 0);
    assert_int_equal(system("cp -r pki open && chmod 644 open/ca.key"), 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int rc = ctl(lines[i]);

        if (rc != 1)
            fail_msg("\"%s\": %d %s", lines[i], rc, last_err);
        assert_one_line(last_err);
        assert_string_equal(last_out, "");
    }
    assert_int_equal(access("pki/user-eve.key", F_OK), -1);
}

static void test_help_when_asked_then_every_command_has_it(void **state)
{
    static const char *const words[] = {"ca init",       "ca issue hub", "ca issue agent",
                                        "ca issue user", "ca show",      "kubeconfig"};

    (void)state;
    assert_int_equal(ctl("--help"), 0);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char *all = strdup(last_out);
        char line[64];

        assert_non_null(strstr(all, words[i]));
        snprintf(line, sizeof line, "%s --help", words[i]);
        assert_int_equal(ctl(line), 0);
        snprintf(line, sizeof line, "Usage: kuberelayctl %s", words[i]);
        assert_int_equal(strncmp(last_out, line, strlen(line)), 0);
        assert_string_equal(last_err, "");
        free(all);
        assert_int_equal(ctl("ca -h"), 0);
    }
    assert_int_equal(ctl("--version"), 0);
    assert_string_equal(last_out, "kuberelayctl " KR_VERSION "\n");
}

static void test_issue_when_output_is_full_then_1(void **state)
{
    char *argv[] = {(char *)"kuberelayctl", (char *)"--help", NULL};
    char *init[] = {(char *)"kuberelayctl", (char *)"ca",   (char *)"init",
                    (char *)"--dir",        (char *)"full", NULL};
    FILE *full = fopen("/dev/full", "w");
    FILE *err = fopen("/dev/null", "w");

    (void)state;
    if (full == NULL)
        skip();
    assert_int_equal(ctl_run(2, argv, full, err), 1);
    assert_int_equal(ctl_run(5, init, full, err), 1);
    fclose(full);
    fclose(err);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, enter_empty_dir, leave_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(test_init_when_new_then_two_private_files),
        IN_DIR(test_init_when_there_then_refused_and_untouched),
        IN_DIR(test_issue_when_each_role_then_files_that_verify),
        IN_DIR(test_use_when_wrong_then_one_line_and_2),
        IN_DIR(test_failure_when_files_are_wrong_then_one_line_and_1),
        IN_DIR(test_help_when_asked_then_every_command_has_it),
        IN_DIR(test_issue_when_output_is_full_then_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
