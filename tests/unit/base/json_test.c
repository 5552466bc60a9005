/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

static int parse(const char *text)
{
    struct kr_json *doc;
    struct kr_note why = {.text = ""};
    int rc = kr_json_parse(kr_bytes_str(text), &doc, &why);

    if (rc != 0)
        assert_true(why.text[0] != '\0' && doc == NULL);
    kr_json_destroy(doc);
    return rc;
}

static void test_parse_when_not_rfc8259_then_refused(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "[",
                                      "\"",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "[1,]",
                                      "[1 2]",
                                      "{a:1}",
                                      "{'a':1}",
                                      "01",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "-",
                                      "1e",
                                      "1e+",
                                      "0x10",
                                      "NaN",
                                      "nan",
                                      "Infinity",
                                      "-Infinity",
                                      "True",
                                      "nulL",
                                      "tru",
                                      "[1]x",
                                      "[1] [2]",
                                      "/*c*/1",
                                      "\"\\x\"",
                                      "\"\\u12g4\"",
                                      "\"\t\"",
                                      "\"\xFF\"",
                                      "]",
                                      "}",
                                      "[}",
                                      "{]",
                                      ",",
                                      "{\"a\" 1}",
                                      "{1:2}",
                                      "[\"a\"",
                                      "\xEF\xBB\xBF{}"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parse(bad[i]) != KR_EPROTO)
            fail_msg("accepted: %s", bad[i]);
    }
}

static void test_parse_when_rfc8259_then_accepted(void **state)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       " { } ",
                                       "[ ]",
                                       "0",
                                       "-0",
                                       "1.5e+10",
                                       "-1E-2",
                                       "\"\"",
                                       "true",
                                       "[null]",
                                       "{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}",
                                       "\"\\u00e4\\ud83d\\ude00\\/\"",
                                       "[[[[]]]]",
                                       "\r\n\t 12 "};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (parse(good[i]) != 0)
            fail_msg("refused: %s", good[i]);
    }
}

static void test_parse_when_a_key_repeats_then_refused(void **state)
{
    (void)state;
    assert_int_equal(parse("{\"a\":1,\"a\":2}"), KR_EPROTO);
    assert_int_equal(parse("{\"a\":1,\"\\u0061\":2}"), KR_EPROTO);
    assert_int_equal(parse("[{\"x\":{\"b\":1,\"c\":2,\"b\":3}}]"), KR_EPROTO);
}

static void test_parse_when_too_deep_or_big_then_refused(void **state)
{
    char deep[2 * KR_JSON_DEPTH + 3] = "";
    char *big = calloc(1, KR_JSON_MAX + 2);

    (void)state;
    assert_non_null(big);
    memset(deep, '[', KR_JSON_DEPTH);
    memset(deep + KR_JSON_DEPTH, ']', KR_JSON_DEPTH);
    assert_int_equal(parse(deep), 0);
    memset(deep, '[', KR_JSON_DEPTH + 1);
    memset(deep + KR_JSON_DEPTH + 1, ']', KR_JSON_DEPTH + 1);
    assert_int_equal(parse(deep), KR_EPROTO);
    memset(big, ' ', KR_JSON_MAX + 1);
    big[0] = '1';
    assert_int_equal(parse(big), KR_ETOOBIG);
    free(big);
}

static void test_getters_answer_by_type(void **state)
{
    struct kr_json *doc;
    struct kr_bytes s;
    int64_t i;
    bool b;

    (void)state;
    assert_int_equal(
        kr_json_parse(
            KR_LIT("{\"s\":\"x\\u0000y\",\"t\":\"text\",\"i\":-5,\"big\":9223372036854775808,"
                   "\"huge\":99999999999999999999,\"f\":1.5,\"yes\":true,\"n\":null,\"l\":[1,"
                   "\"two\"]}"),
            &doc, NULL),
        0);
    assert_true(kr_json_is_object(doc));
    assert_true(kr_json_string(kr_json_get(doc, "s"), &s));
    assert_int_equal(s.n, 3);
    assert_null(kr_json_text(doc, "s"));
    assert_string_equal(kr_json_text(doc, "t"), "text");
    assert_null(kr_json_text(doc, "i"));
    assert_true(kr_json_int(kr_json_get(doc, "i"), &i));
    assert_int_equal(i, -5);
    assert_false(kr_json_int(kr_json_get(doc, "big"), &i));
    assert_false(kr_json_int(kr_json_get(doc, "huge"), &i));
    assert_false(kr_json_int(kr_json_get(doc, "f"), &i));
    assert_true(kr_json_bool(kr_json_get(doc, "yes"), &b) && b);
    assert_null(kr_json_get(doc, "n"));
    assert_null(kr_json_get(doc, "absent"));
    assert_int_equal(kr_json_len(kr_json_get(doc, "l")), 2);
    assert_true(kr_json_string(kr_json_at(kr_json_get(doc, "l"), 1), &s));
    assert_null(kr_json_at(kr_json_get(doc, "l"), 2));
    assert_false(kr_json_bool(NULL, &b) || kr_json_int(NULL, &i) || kr_json_string(NULL, &s));
    assert_null(kr_json_get(NULL, "x"));
    kr_json_destroy(doc);
    kr_json_destroy(NULL);
}

static void test_out_writes_nested_values_that_parse_again(void **state)
{
    struct kr_json_out w;
    struct kr_buf buf;

    (void)state;
    kr_buf_init(&buf, 4096);
    kr_json_out_init(&w, &buf);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "a", "q\"b\\n\n\x01\x7F\xC3\xA4");
    kr_json_out_array(&w, "l");
    kr_json_out_int(&w, NULL, INT64_MIN);
    kr_json_out_object(&w, NULL);
    kr_json_out_end(&w);
    kr_json_out_bool(&w, NULL, false);
    kr_json_out_end(&w);
    kr_json_out_string(&w, "bad", KR_LIT("x\xFFy\xE2\x82"));
    kr_json_out_raw(&w, "raw", KR_LIT("[1]"));
    kr_json_out_end(&w);
    assert_int_equal(w.rc, 0);
    assert_int_equal(w.depth, 0);
    assert_int_equal(kr_buf_append(&buf, kr_bytes_of("", 1)), 0);
    assert_string_equal(
        (const char *)buf.p,
        "{\"a\":\"q\\\"b\\\\n\\n\\u0001\\u007f\xC3\xA4\",\"l\":[-9223372036854775808,{},false],"
        "\"bad\":\"x\\ufffdy\\ufffd\\ufffd\",\"raw\":[1]}");
    assert_int_equal(parse((const char *)buf.p), 0);
    kr_buf_deinit(&buf);
}

static void test_out_when_the_buffer_is_full_then_the_code_sticks(void **state)
{
    struct kr_json_out w;
    struct kr_buf buf;

    (void)state;
    kr_buf_init(&buf, 8);
    kr_json_out_init(&w, &buf);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "key", "value");
    kr_json_out_end(&w);
    assert_int_equal(w.rc, KR_ETOOBIG);
    kr_buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_when_not_rfc8259_then_refused),
        cmocka_unit_test(test_parse_when_rfc8259_then_accepted),
        cmocka_unit_test(test_parse_when_a_key_repeats_then_refused),
        cmocka_unit_test(test_parse_when_too_deep_or_big_then_refused),
        cmocka_unit_test(test_getters_answer_by_type),
        cmocka_unit_test(test_out_writes_nested_values_that_parse_again),
        cmocka_unit_test(test_out_when_the_buffer_is_full_then_the_code_sticks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
