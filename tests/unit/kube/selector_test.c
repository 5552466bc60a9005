/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/selector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define ALNUM "consist of alphanumeric characters, '-', '_' or '.'"

static int setup(void **state)
{
    struct kr_arena *arena = malloc(sizeof *arena);

    kr_arena_init(arena, 4096, 1024 * 1024);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    kr_arena_deinit(*state);
    free(*state);
    return 0;
}

/* The selector in one fixed spelling: key, operator, values in brackets. */
static const char *spell(const struct kr_label_selector *s, char *out, size_t max)
{
    static const char *const ops[] = {"in", "notin", "exists", "!exists", "gt", "lt"};
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < s->n; i++) {
        const struct kr_requirement *r = &s->all[i];

        n += (size_t)snprintf(out + n, max - n, "%s%.*s %s", i != 0 ? ";" : "", (int)r->key.n,
                              (const char *)r->key.p, ops[r->op]);
        for (size_t k = 0; k < r->value_count; k++)
            n += (size_t)snprintf(out + n, max - n, " [%.*s]", (int)r->values[k].n,
                                  (const char *)r->values[k].p);
    }
    return out;
}

static const struct {
    const char *text;
    const char *means;
} good[] = {
    {"", ""},
    {"  ", ""},
    {"x", "x exists"},
    {"!x", "x !exists"},
    {" ! x ", "x !exists"},
    {"x=a", "x in [a]"},
    {"x==a", "x in [a]"},
    {"x = a , y != b", "x in [a];y notin [b]"},
    {"x=", "x in []"},
    {"x=,y!=", "x in [];y notin []"},
    {"x=a,z", "x in [a];z exists"},
    {"x>1,y<-0", NULL},
    {"x>1", "x gt [1]"},
    {"x<10", "x lt [10]"},
    {"x in (a)", "x in [a]"},
    {"x in (b,a,b)", "x in [a] [b]"},
    {"x in()", "x in []"},
    {"x in ()", "x in []"},
    {"x in (,)", "x in []"},
    {"x in (a,,b)", "x in [] [a] [b]"},
    {"x in (,a)", "x in [] [a]"},
    {"x in (a,)", "x in [] [a]"},
    {"x notin (in,notin)", "x notin [in] [notin]"},
    {"in in (in)", "in in [in]"},
    {"notin", "notin exists"},
    {"!in", "in !exists"},
    {"in=notin", "in in [notin]"},
    {"x\tin\r(\na)", "x in [a]"},
    {"x=a,x!=a", "x in [a];x notin [a]"},
    {"example.com/x=a", "example.com/x in [a]"},
    {"kuberelay.io/cluster in (edge-1,edge-2)", "kuberelay.io/cluster in [edge-1] [edge-2]"},
    {"app.kubernetes.io/name notin ()", "app.kubernetes.io/name notin []"},
    {"A_b.c-9=Z", "A_b.c-9 in [Z]"},
};

static void test_parse_when_well_formed_then_means_what_apimachinery_says(void **state)
{
    for (size_t i = 0; i < COUNT(good); i++) {
        struct kr_label_selector s;
        struct kr_note why = {""};
        char text[256];
        int rc = kr_label_selector_parse(kr_bytes_str(good[i].text), *state, &s, &why);

        if (good[i].means == NULL) {
            assert_int_equal(rc, KR_EINVAL);
            continue;
        }
        if (rc != 0)
            print_error("%s: %s\n", good[i].text, why.text);
        assert_int_equal(rc, 0);
        assert_string_equal(spell(&s, text, sizeof text), good[i].means);
    }
}

#define UNPARSED "unable to parse requirement: "

static const struct {
    const char *text;
    const char *why;
} bad[] = {
    {",", "found ',', expected: !, identifier, or 'end of string'"},
    {"=a", "found '=', expected: !, identifier, or 'end of string'"},
    {"x,", "found '', expected: identifier after ','"},
    {"x,,y", "found ',', expected: identifier after ','"},
    {"x y", UNPARSED "found 'y', expected: in, notin, =, ==, !=, gt, lt"},
    {"x y z", UNPARSED "found 'y', expected: in, notin, =, ==, !=, gt, lt"},
    {"x=a y", "found 'y', expected: ',' or 'end of string'"},
    {"x=a=b", "found '=', expected: ',' or 'end of string'"},
    {"!x=a", "found '=', expected: ',' or 'end of string'"},
    {"!x in (a)", "found 'in', expected: ',' or 'end of string'"},
    {"!", UNPARSED "found '', expected: identifier"},
    {"!!x", UNPARSED "found '!', expected: identifier"},
    {"x==!a", UNPARSED "found '!', expected: identifier"},
    {"x===a", UNPARSED "found '=', expected: identifier"},
    {"x in a", UNPARSED "found 'a' expected: '('"},
    {"x in", UNPARSED "found '' expected: '('"},
    {"x in (", UNPARSED "found '', expected: ',', ')' or identifier"},
    {"x in (a", UNPARSED "found '', expected: ',' or ')'"},
    {"x in (a b)", UNPARSED "found 'b', expected: ',' or ')'"},
    {"x in (a=b)", UNPARSED "found '=', expected: ',' or ')'"},
    {"x in (,,)", UNPARSED "found ')', expected: ',', or identifier"},
    {"x in (a))", "found ')', expected: ',' or 'end of string'"},
    {"x>", UNPARSED "values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be "
                    "an integer"},
    {"x>a", UNPARSED "values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must "
                     "be an integer"},
    {"x>9223372036854775808",
     UNPARSED "values[0]: Invalid value: \"9223372036854775808\": for 'Gt', 'Lt' operators, the "
              "value must be an integer"},
    {"x>-1", UNPARSED "values[0][x]: Invalid value: \"-1\": a valid label must be an empty string "
                      "or " ALNUM},
    {"/x", UNPARSED "<nil>: Invalid value: \"/x\": prefix part must be non-empty"},
    {"a/", UNPARSED "<nil>: Invalid value: \"a/\": name part must be non-empty"},
    {"a/b/c", UNPARSED "<nil>: Invalid value: \"a/b/c\": a qualified name must " ALNUM},
    {"A/b", UNPARSED "<nil>: Invalid value: \"A/b\": prefix part a lowercase RFC 1123 subdomain"},
    {"a..b/c", UNPARSED "<nil>: Invalid value: \"a..b/c\": prefix part a lowercase RFC 1123"},
    {"-x", UNPARSED "<nil>: Invalid value: \"-x\": name part must " ALNUM},
    {"x=\xC3\xA4", UNPARSED "values[0][x]: Invalid value: \"\xC3\xA4\": a valid label must be"},
    {"x=a/b", UNPARSED "values[0][x]: Invalid value: \"a/b\": a valid label must be"},
    {"x in (a,-)", UNPARSED "values[0][x]: Invalid value: \"-\": a valid label must be"},
};

static void test_parse_when_malformed_then_says_it_in_the_words_of_kube_apiserver(void **state)
{
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct kr_label_selector s;
        struct kr_note why = {""};

        assert_int_equal(kr_label_selector_parse(kr_bytes_str(bad[i].text), *state, &s, &why),
                         KR_EINVAL);
        if (strncmp(why.text, bad[i].why, strlen(bad[i].why)) != 0)
            print_error("%s\n  is:   %s\n  want: %s\n", bad[i].text, why.text, bad[i].why);
        assert_memory_equal(why.text, bad[i].why, strlen(bad[i].why));
        assert_int_equal(s.n, 0);
    }
}

/* A key or value of `n` times 'a' behind a prefix. */
static int parse_long(struct kr_arena *arena, const char *prefix, size_t n, const char *suffix)
{
    struct kr_label_selector s;
    char text[1024];
    size_t at = strlen(prefix);

    memcpy(text, prefix, at);
    memset(text + at, 'a', n);
    memcpy(text + at + n, suffix, strlen(suffix) + 1);
    return kr_label_selector_parse(kr_bytes_str(text), arena, &s, NULL);
}

static void test_parse_when_names_are_long_then_the_limits_are_those_of_labels(void **state)
{
    assert_int_equal(parse_long(*state, "", 63, ""), 0);
    assert_int_equal(parse_long(*state, "", 64, ""), KR_EINVAL);
    assert_int_equal(parse_long(*state, "x=", 63, ""), 0);
    assert_int_equal(parse_long(*state, "x=", 64, ""), KR_EINVAL);
    assert_int_equal(parse_long(*state, "", 253, "/x"), 0);
    assert_int_equal(parse_long(*state, "", 254, "/x"), KR_EINVAL);
}

static int parse_many(struct kr_arena *arena, const char *start, const char *each, size_t n,
                      const char *end)
{
    struct kr_label_selector s;
    struct kr_buf text = {.max = 1024 * 1024};
    int rc;

    kr_buf_append_str(&text, start);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(kr_buf_printf(&text, "%s%s%zu", i != 0 ? "," : "", each, i), 0);
    kr_buf_append_str(&text, end);
    rc = kr_label_selector_parse(kr_buf_bytes(&text), arena, &s, NULL);
    kr_buf_deinit(&text);
    return rc;
}

static void test_parse_when_there_is_too_much_then_too_big(void **state)
{
    assert_int_equal(parse_many(*state, "", "k", 64, ""), 0);
    assert_int_equal(parse_many(*state, "", "k", 65, ""), KR_ETOOBIG);
    assert_int_equal(parse_many(*state, "k in (", "v", 1024, ")"), 0);
    assert_int_equal(parse_many(*state, "k in (", "v", 1025, ")"), KR_ETOOBIG);
    assert_int_equal(parse_many(*state, "a=b,k in (", "v", 1024, ")"), KR_ETOOBIG);
}

static void test_parse_when_a_nul_is_inside_then_it_ends_a_word(void **state)
{
    struct kr_label_selector s;
    char text[64];

    assert_int_equal(kr_label_selector_parse(kr_bytes_of("x\0", 2), *state, &s, NULL), 0);
    assert_string_equal(spell(&s, text, sizeof text), "x exists");
    assert_int_equal(kr_label_selector_parse(kr_bytes_of("x\0y", 3), *state, &s, NULL), KR_EINVAL);
    assert_int_equal(kr_label_selector_parse(kr_bytes_of("x,\0y", 4), *state, &s, NULL), KR_EINVAL);
}

static const struct {
    const char *selector;
    const char *labels;
    bool matches;
} matches[] = {
    {"", "{}", true},
    {"", "{\"a\":\"b\"}", true},
    {"x", "{\"x\":\"\"}", true},
    {"x", "{\"y\":\"\"}", false},
    {"!x", "{\"y\":\"\"}", true},
    {"!x", "{\"x\":\"1\"}", false},
    {"x=a", "{\"x\":\"a\"}", true},
    {"x=a", "{\"x\":\"b\"}", false},
    {"x=a", "{}", false},
    {"x=", "{\"x\":\"\"}", true},
    {"x=", "{}", false},
    {"x!=a", "{}", true},
    {"x!=a", "{\"x\":\"b\"}", true},
    {"x!=a", "{\"x\":\"a\"}", false},
    {"x in (a,b)", "{\"w\":\"a\",\"x\":\"b\"}", true},
    {"x in (a,b)", "{\"x\":\"c\"}", false},
    {"x notin (a,b)", "{\"x\":\"c\"}", true},
    {"x notin (a,b)", "{}", true},
    {"x notin (a,b)", "{\"x\":\"b\"}", false},
    {"x>5", "{\"x\":\"6\"}", true},
    {"x>5", "{\"x\":\"5\"}", false},
    {"x>5", "{\"x\":\"six\"}", false},
    {"x>5", "{}", false},
    {"x<5", "{\"x\":\"-7\"}", true},
    {"x<5", "{\"x\":\"+4\"}", true},
    {"x<5", "{\"x\":\"99999999999999999999\"}", false},
    {"x=a,y=b", "{\"y\":\"b\",\"x\":\"a\"}", true},
    {"x=a,y=b", "{\"x\":\"a\"}", false},
    {"x=b", "{\"x\":\"a\",\"x\":\"b\"}", true},
    {"x=a", "{\"x\":\"a\",\"x\":\"b\"}", false},
    {"x=a", "{\"\\u0078\":\"\\u0061\"}", true},
    {"x=a", "null", false},
    {"x=a", "", false},
    {"aa=1,a=2,b=3", "{\"b\":\"3\",\"a\":\"2\",\"aa\":\"1\"}", true},
};

static void test_matches_when_labels_differ_then_as_apimachinery(void **state)
{
    for (size_t i = 0; i < COUNT(matches); i++) {
        struct kr_label_selector s;
        struct kr_label labels[8];
        size_t n;

        assert_int_equal(
            kr_label_selector_parse(kr_bytes_str(matches[i].selector), *state, &s, NULL), 0);
        assert_int_equal(
            kr_labels_read(kr_bytes_str(matches[i].labels), *state, labels, 8, &n, NULL), 0);
        if (kr_label_selector_matches(&s, labels, n) != matches[i].matches)
            print_error("%s %s\n", matches[i].selector, matches[i].labels);
        assert_int_equal(kr_label_selector_matches(&s, labels, n), matches[i].matches);
    }
}

static void test_labels_read_when_not_labels_then_says_why(void **state)
{
    struct kr_label labels[2];
    struct kr_note why;
    size_t n;

    assert_int_equal(kr_labels_read(KR_LIT("{\"a\":1}"), *state, labels, 2, &n, &why), KR_EPROTO);
    assert_int_equal(kr_labels_read(KR_LIT("[\"a\"]"), *state, labels, 2, &n, &why), KR_EPROTO);
    assert_int_equal(
        kr_labels_read(KR_LIT("{\"a\":\"\",\"b\":\"\",\"c\":\"\"}"), *state, labels, 2, &n, &why),
        KR_ETOOBIG);
}

static void test_labels_read_when_keys_are_empty_then_the_last_one_counts(void **state)
{
    struct kr_label labels[4];
    size_t n;

    assert_int_equal(
        kr_labels_read(KR_LIT("{\"\":\"\",\"\":\"x\",\"\":\"y\"}"), *state, labels, 4, &n, NULL),
        0);
    assert_int_equal(n, 1);
    assert_true(kr_bytes_is(labels[0].value, "y"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_parse_when_well_formed_then_means_what_apimachinery_says),
        TEST(test_parse_when_malformed_then_says_it_in_the_words_of_kube_apiserver),
        TEST(test_parse_when_names_are_long_then_the_limits_are_those_of_labels),
        TEST(test_parse_when_there_is_too_much_then_too_big),
        TEST(test_parse_when_a_nul_is_inside_then_it_ends_a_word),
        TEST(test_matches_when_labels_differ_then_as_apimachinery),
        TEST(test_labels_read_when_not_labels_then_says_why),
        TEST(test_labels_read_when_keys_are_empty_then_the_last_one_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
