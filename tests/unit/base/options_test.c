/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <stdlib.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

struct config {
    const char *listen;
    const char *token;
    struct kr_strings hubs;
    int64_t workers;
    int64_t wait_ms;
    int64_t budget;
    bool verbose;
    int level;
};

static const char *const levels[] = {"error", "info", NULL};
#define AT(member) offsetof(struct config, member)
static const struct kr_option table[] = {
    {"apiListen", KR_OPT_STRING, AT(listen), "0.0.0.0:6443", .unit = "HOST:PORT", .text = "Where."},
    {"token", KR_OPT_STRING, AT(token), NULL, .secret = true, .text = "Token."},
    {"hubs", KR_OPT_STRINGS, AT(hubs), NULL, 1, 3, .required = true, .text = "Hubs."},
    {"workers", KR_OPT_INT, AT(workers), "1", 1, 64, .text = "Workers."},
    {"waitTime", KR_OPT_DURATION, AT(wait_ms), "5s", 0, 60000, .text = "Wait."},
    {"budget", KR_OPT_SIZE, AT(budget), "64MiB", .text = "Budget."},
    {"verbose", KR_OPT_BOOL, AT(verbose), "false", .text = "Verbose."},
    {"logLevel", KR_OPT_ENUM, AT(level), "info", .choices = levels, .text = "Level"},
};

static int check(const void *config, struct kr_note *why)
{
    const struct config *c = config;

    if (c->workers == 13)
        return kr_note_set(why, KR_EINVAL, "workers: 13 is unlucky\nreally");
    return 0;
}

static const struct kr_program program = {.name = "prog",
                                          .summary = "Does things.",
                                          .max_args = 1,
                                          .options = table,
                                          .n_options = sizeof table / sizeof table[0],
                                          .check = check};

struct world {
    struct kr_options o;
    struct config c;
    char *out;
    char *err;
    char file[64];
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    snprintf(w->file, sizeof w->file, "/tmp/options_test.%d.yaml", (int)getpid());
    *state = w;
    return 0;
}

static void forget(struct world *w)
{
    kr_options_deinit(&w->o);
    free(w->out);
    free(w->err);
    w->out = w->err = NULL;
}

static int teardown(void **state)
{
    struct world *w = *state;

    forget(w);
    unlink(w->file);
    free(w);
    return 0;
}

/* Runs with up to six arguments; "@" stands for the file. */
static int run(struct world *w, const char *a, const char *b, const char *c, const char *d)
{
    const char *given[] = {a, b, c, d};
    char *argv[6] = {(char *)(uintptr_t) "prog"};
    size_t n_out;
    size_t n_err;
    int argc = 1;
    FILE *out;
    FILE *err;
    int rc;

    forget(w);
    out = open_memstream(&w->out, &n_out);
    err = open_memstream(&w->err, &n_err);
    for (size_t i = 0; i < 4 && given[i] != NULL; i++)
        argv[argc++] = strcmp(given[i], "@") == 0 ? w->file : (char *)(uintptr_t)given[i];
    w->c = (struct config){.listen = NULL};
    rc = kr_options_parse(&w->o, &program, &w->c, argc, argv, out, err);
    fclose(out);
    fclose(err);
    return rc;
}

static void write_file(struct world *w, const char *text, size_t n)
{
    FILE *f = fopen(w->file, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

/* The file is refused with exactly this line (after "FILE"). */
static void assert_refused(struct world *w, const char *text, const char *line)
{
    char want[512];

    write_file(w, text, strlen(text));
    assert_int_equal(run(w, "--config", "@", "--hubs=x", NULL), 2);
    snprintf(want, sizeof want, "%s%s\n", w->file, line);
    assert_string_equal(w->err, want);
    assert_string_equal(w->out, "");
}

static void test_defaults_then_file_then_flags(void **state)
{
    struct world *w = *state;
    const char *text =
        "# comment\n---\nhubs: [a:1, 'b:2']\nworkers: 4\nwaitTime: 100ms\nbudget: 64KiB\n"
        "verbose: true\nlogLevel: error\napiListen: \"h:1\"\n";

    write_file(w, text, strlen(text));
    assert_int_equal(run(w, "--config=@", NULL, NULL, NULL), 2);
    assert_int_equal(run(w, "--config", "@", "--workers=8", "--log-level=info"), KR_OPTIONS_RUN);
    assert_string_equal(w->err, "");
    assert_string_equal(w->c.listen, "h:1");
    assert_null(w->c.token);
    assert_int_equal(w->c.hubs.n, 2);
    assert_string_equal(w->c.hubs.v[1], "b:2");
    assert_null(w->c.hubs.v[2]);
    assert_int_equal(w->c.workers, 8);
    assert_int_equal(w->c.wait_ms, 100);
    assert_int_equal(w->c.budget, 65536);
    assert_true(w->c.verbose);
    assert_int_equal(w->c.level, 1);
    assert_int_equal(run(w, "--hubs", "c:3", "--hubs=d:4,e:5", "--verbose"), KR_OPTIONS_RUN);
    assert_string_equal(w->c.listen, "0.0.0.0:6443");
    assert_int_equal(w->c.hubs.n, 3);
    assert_string_equal(w->c.hubs.v[2], "e:5");
    assert_int_equal(w->c.wait_ms, 5000);
    assert_int_equal(w->c.budget, 64 << 20);
    assert_true(w->c.verbose);
    assert_int_equal(run(w, "--config", "@", "--hubs=z:1", "--verbose=false"), KR_OPTIONS_RUN);
    assert_int_equal(w->c.hubs.n, 1);
    assert_false(w->c.verbose);
}

static void test_file_when_wrong_is_refused_with_file_and_line(void **state)
{
    struct world *w = *state;

    assert_refused(w, "workers: 1\ncolour: red\n", ":2: unknown key `colour`");
    assert_refused(w, "workers: 1\nverbose: true\nworkers: 1\n",
                   ":3: key `workers` stands twice (first in line 1)");
    assert_refused(w, "workers: many\n", ":1: workers: expected a whole number");
    assert_refused(w, "workers: 65\n", ":1: workers: out of range (1 to 64)");
    assert_refused(w, "waitTime: 61s\n", ":1: waitTime: out of range (0 to 60000 ms)");
    assert_refused(w, "waitTime: 5\n",
                   ":1: waitTime: expected a duration such as 500ms, 30s, 5m or 1h");
    assert_refused(w, "budget: 5KB\n",
                   ":1: budget: expected a size such as 512, 64KiB, 4MiB or 1GiB");
    assert_refused(w, "verbose: yes\n", ":1: verbose: expected true or false");
    assert_refused(w, "logLevel: loud\n", ":1: logLevel: expected one of error, info");
    assert_refused(w, "workers: [1]\n", ":1: workers: expected one value, not a list");
    assert_refused(w, "hubs: a\n", ":1: hubs: expected a list");
    assert_refused(w, "hubs: []\n", ":1: hubs: expected 1 to 3 items");
    assert_refused(w, "hubs: [a, b, c, d]\n", ":1: hubs: expected 1 to 3 items");
    assert_refused(w, "hubs:\n- a\n- \"\"\n", ":1: hubs: an item is empty");
    assert_refused(w, "hubs:\n- [a]\n", ":2: a list inside a list is not allowed");
    assert_refused(w, "workers:\n", ":1: a value is missing");
    assert_refused(w, "workers: {a: 1}\n", ":1: nested mappings are not allowed");
    assert_refused(w, "a: &x 1\n", ":1: anchors and tags are not allowed");
    assert_refused(w, "workers: !!int 1\n", ":1: anchors and tags are not allowed");
    assert_refused(w, "workers: *x\n", ":1: aliases are not allowed");
    assert_refused(w, "- a\n", ":1: expected `key: value` lines");
    assert_refused(w, "a\n", ":1: expected `key: value` lines");
    assert_refused(w, "workers: 1\n---\nworkers: 2\n", ":2: only one document is allowed");
    assert_refused(w, "apiListen: \"a\\nb\"\n",
                   ":1: apiListen: control characters are not allowed");
    assert_refused(w, "workers: 1\nverbose: @x\n",
                   ":2: found character that cannot start any token");
    assert_refused(w, "workers: \xFF\n", ": not valid UTF-8");
}

static void test_file_when_empty_or_comments_then_accepted(void **state)
{
    struct world *w = *state;

    write_file(w, "", 0);
    assert_int_equal(run(w, "--config", "@", "--hubs=x", NULL), KR_OPTIONS_RUN);
    write_file(w, "# nothing\n---\n", 14);
    assert_int_equal(run(w, "--config", "@", "--hubs=x", NULL), KR_OPTIONS_RUN);
}

static void test_file_when_too_large_or_absent_then_refused(void **state)
{
    struct world *w = *state;
    char *big = malloc((1 << 20) + 1);

    assert_non_null(big);
    memset(big, '#', (1 << 20) + 1);
    write_file(w, big, (1 << 20) + 1);
    assert_int_equal(run(w, "--config", "@", "--hubs=x", NULL), 2);
    assert_non_null(strstr(w->err, ": larger than 1048576 bytes\n"));
    write_file(w, big, 1 << 20);
    assert_int_equal(run(w, "--config", "@", "--hubs=x", NULL), KR_OPTIONS_RUN);
    free(big);
    unlink(w->file);
    assert_int_equal(run(w, "--config", "@", "--hubs=x", NULL), 2);
    assert_non_null(strstr(w->err, ": No such file or directory\n"));
}

static void test_line_when_wrong_is_refused_in_one_line(void **state)
{
    struct world *w = *state;

    assert_int_equal(run(w, NULL, NULL, NULL, NULL), 2);
    assert_string_equal(w->err, "prog: option `hubs` is required (see --help)\n");
    assert_int_equal(run(w, "--apiListen", "x", NULL, NULL), 2);
    assert_string_equal(w->err, "prog: unknown option --apiListen (see --help)\n");
    assert_int_equal(run(w, "-x", NULL, NULL, NULL), 2);
    assert_string_equal(w->err, "prog: unknown option -x (see --help)\n");
    assert_int_equal(run(w, "--api-listen", "--verbose", NULL, NULL), 2);
    assert_string_equal(w->err, "prog: --api-listen needs a value\n");
    assert_int_equal(run(w, "--api-listen", NULL, NULL, NULL), 2);
    assert_int_equal(run(w, "--help=1", NULL, NULL, NULL), 2);
    assert_int_equal(run(w, "--verbose=2", "--hubs=a", NULL, NULL), 2);
    assert_string_equal(w->err, "prog: verbose: expected true or false\n");
    assert_int_equal(run(w, "--hubs=a,,b", NULL, NULL, NULL), 2);
    assert_int_equal(run(w, "--hubs=a,", NULL, NULL, NULL), 2);
    assert_int_equal(run(w, "one", "two", NULL, NULL), 2);
    assert_string_equal(w->err, "prog: unexpected argument `two` (see --help)\n");
    assert_int_equal(run(w, "--hubs=a", "--workers=13", NULL, NULL), 2);
    assert_string_equal(w->err, "prog: workers: 13 is unlucky?really\n");
}

static void test_arguments_after_two_dashes_are_positional(void **state)
{
    struct world *w = *state;

    assert_int_equal(run(w, "--hubs=a", "--", "--workers=0", NULL), KR_OPTIONS_RUN);
    assert_int_equal(w->o.n_args, 1);
    assert_string_equal(w->o.args[0], "--workers=0");
    assert_int_equal(w->c.workers, 1);
}

static void test_print_config_reads_back_and_hides_secrets(void **state)
{
    struct world *w = *state;

    assert_int_equal(run(w, "--hubs=a,b\"c", "--token=s3cret", "--print-config", NULL), 0);
    assert_string_equal(
        w->out, "apiListen: \"0.0.0.0:6443\"\ntoken: \"***\"\nhubs: [\"a\", \"b\\\"c\"]\n"
                "workers: 1\nwaitTime: 5s\nbudget: 64MiB\nverbose: false\nlogLevel: info\n");
    write_file(w, w->out, strlen(w->out));
    assert_int_equal(run(w, "--config", "@", "--check-config", NULL), 0);
    assert_string_equal(w->out, "the configuration is valid\n");
    assert_int_equal(run(w, "--check-config", NULL, NULL, NULL), 2);
}

static void test_help_and_version_are_made_from_the_table(void **state)
{
    struct world *w = *state;

    assert_int_equal(run(w, "--help", NULL, NULL, NULL), 0);
    assert_non_null(
        strstr(w->out, "  --api-listen HOST:PORT\n      Where. (default 0.0.0.0:6443)\n"));
    assert_non_null(
        strstr(w->out, "  --log-level WORD\n      Level: error, info (default info)\n"));
    assert_non_null(strstr(w->out, "  --hubs LIST\n      Hubs. (required)\n"));
    assert_int_equal(run(w, "--version", NULL, NULL, NULL), 0);
    assert_int_equal(strncmp(w->out, "prog ", 5), 0);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_defaults_then_file_then_flags),
        WITH_WORLD(test_file_when_wrong_is_refused_with_file_and_line),
        WITH_WORLD(test_file_when_empty_or_comments_then_accepted),
        WITH_WORLD(test_file_when_too_large_or_absent_then_refused),
        WITH_WORLD(test_line_when_wrong_is_refused_in_one_line),
        WITH_WORLD(test_arguments_after_two_dashes_are_positional),
        WITH_WORLD(test_print_config_reads_back_and_hides_secrets),
        WITH_WORLD(test_help_and_version_are_made_from_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
