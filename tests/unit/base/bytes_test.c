/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_eq_fold_ignores_ascii_case_only(void **state)
{
    (void)state;
    assert_true(kr_bytes_eq_fold(KR_LIT("Content-LENGTH"), KR_LIT("content-length")));
    assert_false(kr_bytes_eq_fold(KR_LIT("a"), KR_LIT("ab")));
    assert_false(kr_bytes_eq_fold(KR_LIT("["), KR_LIT("{")));
    assert_false(kr_bytes_eq_fold(KR_LIT("\xC4"), KR_LIT("\xE4")));
}

static void test_find_when_absent_is_the_length(void **state)
{
    (void)state;
    assert_int_equal(kr_bytes_find(KR_LIT("a=b=c"), '='), 1);
    assert_int_equal(kr_bytes_find(KR_LIT("abc"), '='), 3);
    assert_int_equal(kr_bytes_find(kr_bytes_of(NULL, 0), '='), 0);
}

static void test_to_u64_when_not_strict_decimal_then_refused(void **state)
{
    static const char *const bad[] = {
        "", "-1", "+1", " 1", "1 ", "0x1", "1a", "18446744073709551616", "000000000000000000001"};
    uint64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(kr_bytes_to_u64(kr_bytes_str(bad[i]), UINT64_MAX, &v));
    assert_true(kr_bytes_to_u64(KR_LIT("18446744073709551615"), UINT64_MAX, &v));
    assert_true(v == UINT64_MAX);
    assert_true(kr_bytes_to_u64(KR_LIT("0099"), 99, &v));
    assert_int_equal(v, 99);
    assert_false(kr_bytes_to_u64(KR_LIT("100"), 99, &v));
}

static void test_take_moves_from_the_front(void **state)
{
    struct kr_bytes in = KR_LIT("abcdef");
    uint8_t out[4] = {0};

    (void)state;
    assert_int_equal(kr_bytes_take(&in, out, 4), 4);
    assert_memory_equal(out, "abcd", 4);
    assert_int_equal(kr_bytes_take(&in, out, 4), 2);
    assert_int_equal(kr_bytes_take(&in, out, 4), 0);
}

static void test_is_utf8_when_malformed_then_false(void **state)
{
    static const char *const good[] = {"",
                                       "a",
                                       "\xC3\xA4",
                                       "\xE2\x82\xAC",
                                       "\xF0\x9F\x98\x80",
                                       "\xED\x9F\xBF",
                                       "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {"\x80",
                                      "\xC0\x80",
                                      "\xC3",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "a\xFF"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(kr_bytes_is_utf8(kr_bytes_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(kr_bytes_is_utf8(kr_bytes_str(bad[i])));
    assert_false(kr_bytes_is_utf8(kr_bytes_of("a\0b", 3)));
}

static void test_is_dns_label_when_not_rfc1123_then_false(void **state)
{
    char long_one[65] = "";

    (void)state;
    memset(long_one, 'a', 63);
    assert_true(kr_is_dns_label(kr_bytes_str(long_one)));
    long_one[63] = 'a';
    assert_false(kr_is_dns_label(kr_bytes_str(long_one)));
    assert_true(kr_is_dns_label(KR_LIT("edge-7")));
    assert_true(kr_is_dns_label(KR_LIT("7")));
    assert_false(kr_is_dns_label(KR_LIT("")));
    assert_false(kr_is_dns_label(KR_LIT("-a")));
    assert_false(kr_is_dns_label(KR_LIT("a-")));
    assert_false(kr_is_dns_label(KR_LIT("A")));
    assert_false(kr_is_dns_label(KR_LIT("a.b")));
}

static void test_dup_ends_in_nul(void **state)
{
    char *s = kr_bytes_dup(kr_bytes_of("abc", 2));

    (void)state;
    assert_string_equal(s, "ab");
    free(s);
    s = kr_bytes_dup(kr_bytes_of(NULL, 0));
    assert_string_equal(s, "");
    free(s);
}

static void test_starts_and_is(void **state)
{
    (void)state;
    assert_true(kr_bytes_starts(KR_LIT("abc"), KR_LIT("ab")));
    assert_true(kr_bytes_starts(KR_LIT("abc"), KR_LIT("")));
    assert_false(kr_bytes_starts(KR_LIT("a"), KR_LIT("ab")));
    assert_true(kr_bytes_is(KR_LIT("abc"), "abc"));
    assert_true(kr_bytes_is(kr_bytes_of(NULL, 0), ""));
}

static void test_compare_then_the_prefix_comes_first(void **state)
{
    (void)state;
    assert_int_equal(kr_bytes_compare(KR_LIT("ab"), KR_LIT("ab")), 0);
    assert_true(kr_bytes_compare(KR_LIT("ab"), KR_LIT("abc")) < 0);
    assert_true(kr_bytes_compare(KR_LIT("b"), KR_LIT("abc")) > 0);
    assert_true(kr_bytes_compare(KR_LIT("a\xff"), KR_LIT("a\x01")) > 0);
    assert_true(kr_bytes_compare(kr_bytes_of(NULL, 0), KR_LIT("a")) < 0);
}

static void test_trim_takes_spaces_and_tabs_of_both_ends_only(void **state)
{
    (void)state;
    assert_true(kr_bytes_is(kr_bytes_trim(KR_LIT(" \ta b\t ")), "a b"));
    assert_true(kr_bytes_is(kr_bytes_trim(KR_LIT("\r a\n")), "\r a\n"));
    assert_int_equal(kr_bytes_trim(KR_LIT(" \t")).n, 0);
    assert_int_equal(kr_bytes_trim(kr_bytes_of(NULL, 0)).n, 0);
}

static void test_hex_digit_of_every_byte(void **state)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    (void)state;
    for (int c = 0; c < 256; c++) {
        const char *at = c != 0 ? strchr(digits, c) : NULL;
        int value = at == NULL ? -1 : (int)(at - digits);

        assert_int_equal(kr_hex_digit((uint8_t)c), value > 15 ? value - 6 : value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eq_fold_ignores_ascii_case_only),
        cmocka_unit_test(test_find_when_absent_is_the_length),
        cmocka_unit_test(test_to_u64_when_not_strict_decimal_then_refused),
        cmocka_unit_test(test_take_moves_from_the_front),
        cmocka_unit_test(test_is_utf8_when_malformed_then_false),
        cmocka_unit_test(test_is_dns_label_when_not_rfc1123_then_false),
        cmocka_unit_test(test_dup_ends_in_nul),
        cmocka_unit_test(test_starts_and_is),
        cmocka_unit_test(test_compare_then_the_prefix_comes_first),
        cmocka_unit_test(test_trim_takes_spaces_and_tabs_of_both_ends_only),
        cmocka_unit_test(test_hex_digit_of_every_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
