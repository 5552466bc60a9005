/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/json_check.h"
#include "json_random.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static int check(struct kr_bytes text)
{
    struct kr_note why = {.text = ""};
    int rc = kr_scan_check(text, KR_SCAN_DEPTH_MAX, &why);

    assert_true((rc == 0) == (why.text[0] == '\0'));
    return rc;
}

static int check_text(const char *text)
{
    return check(kr_bytes_str(text));
}

static void test_check_when_rfc8259_then_fine(void **state)
{
    static const char *const good[] = {
        "0",
        "-0",
        "10",
        "1.0",
        "1e3",
        "1E+2",
        "-1.5e-7",
        "123456789012345678901234567890",
        "null",
        "true",
        "false",
        "\"\"",
        " [ ] ",
        "{}",
        "[[],{}]",
        "{\"a\":1,\"a\":2}",
        "\t\r\n1 ",
        "\"\\u0000\\ud800\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\x7f\"",
        "[1 , 2]",
        "{\"a\" : { } }",
        "\"\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        if (check_text(good[i]) != 0)
            fail_msg("refused: %s", good[i]);
    }
}

static void test_check_when_not_rfc8259_then_refused(void **state)
{
    static const char *const bad[] = {
        "",          " ",           "{",          "[",     "\"",
        "{\"a\"}",   "{\"a\":}",    "{\"a\":1,}", "[1,]",  "[,1]",
        "[1 2]",     "{a:1}",       "{'a':1}",    "01",    "-01",
        "1.",        ".5",          "+1",         "-",     "1e",
        "1e+",       "0x10",        "NaN",        "nul",   "nulll",
        "tru",       "Infinity",    "[1]]",       "1 2",   "{}{}",
        "\"\\x\"",   "\"\\u12g4\"", "\"\\u12\"",  "\"\\",  "\"\\u",
        "\"a\nb\"",  "\"a\tb\"",    "\"\x1f\"",   "[}",    "{]",
        "{\"a\":1]", "[1}",         "{\"a\" 1}",  "{1:2}", "\xef\xbb\xbf{}",
        "/**/1",     "[1,,2]",      "{,}",        ":",     ",",
        "]",         "\v1",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (check_text(bad[i]) != KR_EPROTO)
            fail_msg("accepted: %s", bad[i]);
    }
    assert_int_equal(check(kr_bytes_of("\"\0\"", 3)), KR_EPROTO);
    assert_int_equal(check(kr_bytes_of("1\0", 2)), KR_EPROTO);
}

static void test_check_when_not_utf8_then_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc3",
        "\xc3(",
        "\xe0\x9f\xbf",
        "\xe2\x82",
        "\xe2\x82(",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x9f\x9a",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        /* Before and behind texts of all lengths: in blocks and at their ends. */
        for (unsigned before = 0; before < 40; before++) {
            char text[128];
            int n = snprintf(text, sizeof text, "\"%.*s%s%.*s\"", before,
                             "........................................", bad[i], 39 - before,
                             "........................................");

            assert_int_equal(check(kr_bytes_of(text, (size_t)n)), KR_EPROTO);
        }
    }
}

/* F033: from 33 levels to two million. */
static void test_f033_check_when_deep_then_up_to_the_limit(void **state)
{
    static const size_t depths[] = {33, 64, 200, 1000, 2047, 2048, 2049, 9999, 10001, 2000000};

    (void)state;
    for (size_t i = 0; i < COUNT(depths); i++) {
        for (int maps = 0; maps < 2; maps++) {
            const char *open = maps ? "{\"a\":" : "[";
            struct kr_buf text;

            kr_buf_init(&text, 16000000);
            for (size_t d = 0; d < depths[i]; d++)
                kr_buf_append_str(&text, open);
            kr_buf_append_str(&text, "1");
            for (size_t d = 0; d < depths[i]; d++)
                kr_buf_append_str(&text, maps ? "}" : "]");
            assert_int_equal(check(kr_buf_bytes(&text)),
                             depths[i] <= KR_SCAN_DEPTH_MAX ? 0 : KR_ETOOBIG);
            kr_buf_deinit(&text);
        }
    }
    assert_int_equal(kr_scan_check(KR_LIT("[[1]]"), 2, NULL), 0);
    assert_int_equal(kr_scan_check(KR_LIT("[[[1]]]"), 2, NULL), KR_ETOOBIG);
    assert_int_equal(kr_scan_check(KR_LIT("1"), 0, NULL), 0);
}

/* Mixed levels: each bracket is closed by its own kind, also where the bits change words. */
static void test_check_when_levels_mix_then_each_is_closed_by_its_kind(void **state)
{
    struct kr_rand r;

    (void)state;
    kr_rand_seed(&r, 7);
    for (unsigned round = 0; round < 200; round++) {
        const size_t depth = 1 + kr_rand_below(&r, 300);
        const size_t wrong = kr_rand_below(&r, depth);
        bool objects[301];
        struct kr_buf text;

        kr_buf_init(&text, 10000);
        for (size_t d = 0; d < depth; d++) {
            objects[d] = kr_rand_below(&r, 2) != 0;
            kr_buf_append_str(&text, objects[d] ? "{\"k\":" : "[");
        }
        kr_buf_append_str(&text, "0");
        for (size_t d = depth; d-- != 0;)
            kr_buf_append_str(&text, objects[d] ? "}" : "]");
        assert_int_equal(check(kr_buf_bytes(&text)), 0);
        text.p[text.n - 1 - wrong] ^= ']' ^ '}';
        assert_int_equal(check(kr_buf_bytes(&text)), KR_EPROTO);
        kr_buf_deinit(&text);
    }
}

static void make_random(struct kr_rand *r, struct kr_buf *out)
{
    struct json_random m = {r, out, json_random_names, true};

    out->n = 0;
    json_random_value(&m, 6);
}

/* A second opinion: base/json_check, which goes byte by byte. */
static void test_check_when_random_then_as_the_plain_checker(void **state)
{
    static const char odd[] = "{}[],:\"\\ \n0e.-tnu\x01\x80\xc3\xff";
    struct kr_rand r;
    struct kr_buf text;
    unsigned fine = 0;

    (void)state;
    kr_rand_seed(&r, 11);
    kr_buf_init(&text, 1 << 20);
    for (unsigned round = 0; round < 30000; round++) {
        const uint64_t changes = kr_rand_below(&r, 3);
        struct kr_bytes whole;
        size_t members;
        bool want;

        make_random(&r, &text);
        for (uint64_t i = 0; i < changes; i++)
            text.p[kr_rand_below(&r, text.n)] = (uint8_t)odd[kr_rand_below(&r, sizeof odd - 1)];
        whole = kr_bytes_of(text.p, changes == 2 ? kr_rand_below(&r, text.n) : text.n);
        want = kr_json_check(whole, &members, NULL) == 0;
        if ((check(whole) == 0) != want)
            fail_msg("round %u: %.*s", round, (int)whole.n, (const char *)whole.p);
        assert_true(want || changes != 0);
        fine += want;
    }
    assert_in_range(fine, 10000, 25000); /* both sorts were there */
    kr_buf_deinit(&text);
}

static void test_steps_when_object_then_spans_as_they_stand(void **state)
{
    struct kr_bytes text =
        KR_LIT(" { \"a\" : 1e3 , \"b\\\"c\":[ 1 , \"]\" ],\"d\": { \"e\":null} , \"\":\"\"\n} ");
    static const char *const want[][2] = {
        {"a", "1e3"}, {"b\\\"c", "[ 1 , \"]\" ]"}, {"d", "{ \"e\":null}"}, {"", "\"\""}};
    struct kr_bytes key;
    struct kr_bytes value;
    struct kr_scan it;

    (void)state;
    assert_true(kr_scan_object(text, &it));
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_true(kr_scan_member(&it, &key, &value));
        assert_true(kr_bytes_is(key, want[i][0]) && kr_bytes_is(value, want[i][1]));
    }
    assert_false(kr_scan_member(&it, &key, &value));
    assert_false(kr_scan_member(&it, &key, &value));
}

static void test_steps_when_array_then_each_element(void **state)
{
    static const char *const want[] = {"null", "[]", "{ }", "-1.50", "\"\\\\\"", "true"};
    struct kr_bytes value;
    struct kr_scan it;

    (void)state;
    assert_true(kr_scan_array(KR_LIT("[null,[] , { },-1.50,\"\\\\\",true ]"), &it));
    for (size_t i = 0; i < COUNT(want); i++)
        assert_true(kr_scan_element(&it, &value) && kr_bytes_is(value, want[i]));
    assert_false(kr_scan_element(&it, &value));
    assert_true(kr_scan_array(KR_LIT("[]"), &it));
    assert_false(kr_scan_element(&it, &value));
}

static void test_steps_when_of_another_kind_then_nothing(void **state)
{
    static const char *const others[] = {"", " ", "1", "\"{\"", "null", "true"};
    struct kr_bytes key;
    struct kr_bytes value;
    struct kr_scan it;

    (void)state;
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_false(kr_scan_object(kr_bytes_str(others[i]), &it));
        assert_false(kr_scan_member(&it, &key, &value));
        assert_false(kr_scan_array(kr_bytes_str(others[i]), &it));
        assert_false(kr_scan_element(&it, &value));
        assert_false(kr_scan_find(kr_bytes_str(others[i]), "a", &value));
    }
    assert_false(kr_scan_array(KR_LIT("{}"), &it));
    assert_false(kr_scan_object(KR_LIT("[]"), &it));
}

/* Text that was never checked: steps end, and stay inside of it. */
static void test_steps_when_unchecked_then_they_end_inside(void **state)
{
    static const char whole[] = "{\"a\":{\"b\":[1,\"\\\"x\",{}]},\"c\":tru e,\"d\\";
    struct kr_bytes key;
    struct kr_bytes value;
    struct kr_scan it;

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++) {
        char *copy = malloc(n != 0 ? n : 1); /* of just this size, for sanitizers */
        unsigned count = 0;

        assert_non_null(copy);
        memcpy(copy, whole, n);
        kr_scan_object(kr_bytes_of(copy, n), &it);
        while (kr_scan_member(&it, &key, &value)) {
            assert_true(value.p >= (uint8_t *)copy && value.p + value.n <= (uint8_t *)copy + n);
            assert_true(++count <= n);
        }
        free(copy);
    }
}

static void test_find_when_twice_then_the_last_one(void **state)
{
    struct kr_bytes value;

    (void)state;
    assert_true(
        kr_scan_find(KR_LIT("{\"a\":1,\"b\":2,\"\\u0061\":3,\"c\":{\"a\":4}}"), "a", &value));
    assert_true(kr_bytes_is(value, "3"));
    assert_false(kr_scan_find(KR_LIT("{\"b\":2}"), "a", &value));
}

static void test_key_when_escaped_then_what_it_means_counts(void **state)
{
    (void)state;
    assert_true(kr_scan_key_is(KR_LIT("metadata"), "metadata"));
    assert_true(kr_scan_key_is(KR_LIT("\\u006detadata"), "metadata"));
    assert_true(kr_scan_key_is(KR_LIT("\\u006D\\u0065tadat\\u0061"), "metadata"));
    assert_true(kr_scan_key_is(KR_LIT("a\\/b"), "a/b"));
    assert_true(kr_scan_key_is(KR_LIT(""), ""));
    assert_false(kr_scan_key_is(KR_LIT("metadat"), "metadata"));
    assert_false(kr_scan_key_is(KR_LIT("metadataa"), "metadata"));
    assert_false(kr_scan_key_is(KR_LIT("\\u006detadat"), "metadata"));
    assert_false(kr_scan_key_is(KR_LIT("metadata\\u0000"), "metadata"));
    assert_false(kr_scan_key_is(KR_LIT("\\"), "a"));
    assert_false(kr_scan_key_is(KR_LIT("\\u00"), ""));
    assert_false(kr_scan_key_is(KR_LIT("\\n"), "\\n"));
}

static void test_plain_when_escapes_or_no_string_then_false(void **state)
{
    static const char *const others[] = {"", "\"", "1", "null", "\"a\\n\"", "{}", "\"a"};
    struct kr_bytes out;

    (void)state;
    assert_true(kr_scan_plain(KR_LIT("\"a b\""), &out) && kr_bytes_is(out, "a b"));
    assert_true(kr_scan_plain(KR_LIT("\"\""), &out) && out.n == 0);
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(kr_scan_plain(kr_bytes_str(others[i]), &out));
}

static void test_string_when_escapes_then_decoded(void **state)
{
    static const struct {
        const char *in;
        struct kr_bytes out;
    } cases[] = {
        {"\"\"", {(const uint8_t *)"", 0}},
        {"\"plain\"", {(const uint8_t *)"plain", 5}},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", {(const uint8_t *)"\"\\/\b\f\n\r\t", 8}},
        {"\"\\u0041\\u00e9\\u20ac\\ud83d\\ude80\"",
         {(const uint8_t *)"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\x80", 10}},
        {"\"\\ud83d\"", {(const uint8_t *)"\xef\xbf\xbd", 3}},
        {"\"\\ude80x\"", {(const uint8_t *)"\xef\xbf\xbdx", 4}},
        {"\"\\ud83d\\u0041\"",
         {(const uint8_t *)"\xef\xbf\xbd"
                           "A",
          4}},
    };
    struct kr_buf out;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        kr_buf_init(&out, 100);
        assert_int_equal(kr_scan_string(kr_bytes_str(cases[i].in), &out), 0);
        assert_true(kr_bytes_eq(kr_buf_bytes(&out), cases[i].out));
        kr_buf_deinit(&out);
    }
}

static void test_string_when_malformed_or_too_long_then_out_is_as_before(void **state)
{
    static const char *const bad[] = {"1", "\"\\x\"", "\"\\u12\"", "\"ab\\\"", "\"\\ud83d\\u12\"x"};
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 8);
    kr_buf_append_str(&out, "1234");
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(kr_scan_string(kr_bytes_str(bad[i]), &out), KR_EPROTO);
        assert_int_equal(out.n, 4);
    }
    assert_int_equal(kr_scan_string(KR_LIT("\"ab\\u0063de\""), &out), KR_ETOOBIG);
    assert_int_equal(out.n, 4);
    kr_buf_deinit(&out);
}

/* F032: a zero byte neither ends a string nor merges keys. */
static void test_f032_when_zero_is_escaped_then_lengths_and_keys_stay(void **state)
{
    struct kr_bytes object =
        KR_LIT("{\"p\\u0000q\":1,\"p\\u0000r\":2,\"p\":3,\"k\":\"a\\u0000b\"}");
    struct kr_bytes value;
    struct kr_buf out;

    (void)state;
    assert_int_equal(check(object), 0);
    assert_true(kr_scan_find(object, "p", &value) && kr_bytes_is(value, "3"));
    kr_buf_init(&out, 100);
    assert_true(kr_scan_find(object, "k", &value));
    assert_int_equal(kr_scan_string(value, &out), 0);
    assert_true(kr_bytes_eq(kr_buf_bytes(&out), kr_bytes_of("a\0b", 3)));
    kr_buf_deinit(&out);
    assert_int_equal(check(kr_bytes_of("{\"k\":\"a\0b\"}", 11)), KR_EPROTO);
}

/* F028: no number is read, so none is changed. */
static void test_f028_when_numbers_are_large_then_they_stay_text(void **state)
{
    static const char *const numbers[] = {"1000000",
                                          "9007199254740993",
                                          "-9223372036854775808",
                                          "18446744073709551615",
                                          "1.0",
                                          "1e3",
                                          "1E+2",
                                          "-0",
                                          "0.1",
                                          "1.7976931348623157e308",
                                          "123456789012345678901234567890",
                                          "1.10"};
    struct kr_bytes value;
    char text[128];

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        snprintf(text, sizeof text, "{\"a\":%s ,\"b\":[%s]}", numbers[i], numbers[i]);
        assert_int_equal(check_text(text), 0);
        assert_true(kr_scan_find(kr_bytes_str(text), "a", &value));
        assert_true(kr_bytes_is(value, numbers[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_when_rfc8259_then_fine),
        cmocka_unit_test(test_check_when_not_rfc8259_then_refused),
        cmocka_unit_test(test_check_when_not_utf8_then_refused),
        cmocka_unit_test(test_f033_check_when_deep_then_up_to_the_limit),
        cmocka_unit_test(test_check_when_levels_mix_then_each_is_closed_by_its_kind),
        cmocka_unit_test(test_check_when_random_then_as_the_plain_checker),
        cmocka_unit_test(test_steps_when_object_then_spans_as_they_stand),
        cmocka_unit_test(test_steps_when_array_then_each_element),
        cmocka_unit_test(test_steps_when_of_another_kind_then_nothing),
        cmocka_unit_test(test_steps_when_unchecked_then_they_end_inside),
        cmocka_unit_test(test_find_when_twice_then_the_last_one),
        cmocka_unit_test(test_key_when_escaped_then_what_it_means_counts),
        cmocka_unit_test(test_plain_when_escapes_or_no_string_then_false),
        cmocka_unit_test(test_string_when_escapes_then_decoded),
        cmocka_unit_test(test_string_when_malformed_or_too_long_then_out_is_as_before),
        cmocka_unit_test(test_f032_when_zero_is_escaped_then_lengths_and_keys_stay),
        cmocka_unit_test(test_f028_when_numbers_are_large_then_they_stay_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
