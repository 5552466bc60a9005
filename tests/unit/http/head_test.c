/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "http/head.h"

static void test_fields_when_added_then_order_and_repetition_are_kept(void **state)
{
    struct kr_head h;
    char name[] = "x-a";
    char value[] = "1";

    (void)state;
    kr_head_init(&h, KR_HEAD_MAX);
    assert_int_equal(kr_head_add_str(&h, name, value), 0);
    name[2] = 'z'; /* it was copied */
    value[0] = '9';
    assert_int_equal(kr_head_add_str(&h, "x-b", "2"), 0);
    assert_int_equal(kr_head_add_str(&h, "x-a", "3"), 0);
    assert_int_equal(h.n, 3);
    assert_true(kr_bytes_is(kr_head_get(&h, KR_LIT("x-a")), "1"));
    assert_true(kr_bytes_is(h.fields[2].value, "3"));
    assert_int_equal(h.size, 3 * (3 + 1 + 32));
    assert_null(kr_head_find(&h, KR_LIT("x-c")));
    assert_null(kr_head_find(&h, KR_LIT("X-A"))); /* names are lower-case already */
    assert_int_equal(kr_head_get(&h, KR_LIT("x-c")).n, 0);
    kr_head_deinit(&h);
    assert_int_equal(h.n, 0);
    assert_int_equal(kr_head_add_u64(&h, "content-length", UINT64_MAX), 0); /* used again */
    assert_true(kr_bytes_is(h.fields[0].value, "18446744073709551615"));
    kr_head_deinit(&h);
}

static void test_fields_when_many_then_all_are_there(void **state)
{
    struct kr_head h;

    (void)state;
    kr_head_init(&h, KR_HEAD_MAX);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(kr_head_add_u64(&h, "n", i), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t v = 0;

        assert_true(kr_bytes_to_u64(h.fields[i].value, 1000, &v));
        assert_int_equal(v, i);
    }
    kr_head_deinit(&h);
}

static void test_add_when_beyond_a_limit_then_too_big_and_unchanged(void **state)
{
    struct kr_head h;
    char *big = calloc(1, KR_FIELD_MAX + 1);

    (void)state;
    kr_head_init(&h, KR_HEAD_MAX);
    assert_int_equal(kr_head_add(&h, KR_LIT("x"), kr_bytes_of(big, KR_FIELD_MAX)), 0);
    assert_int_equal(kr_head_add(&h, KR_LIT("x"), kr_bytes_of(big, KR_FIELD_MAX + 1)), KR_ETOOBIG);
    assert_int_equal(kr_head_add_ref(&h, KR_LIT("x"), kr_bytes_of(big, KR_FIELD_MAX + 1)),
                     KR_ETOOBIG);
    assert_int_equal(h.n, 1);
    kr_head_deinit(&h);
    kr_head_init(&h, 100);
    assert_int_equal(kr_head_add_str(&h, "abc", "defgh"), 0); /* 40 */
    assert_int_equal(kr_head_add_str(&h, "abc", "defgh"), 0); /* 80 */
    assert_int_equal(kr_head_add_str(&h, "", ""), KR_ETOOBIG);
    assert_int_equal(h.size, 80);
    kr_head_deinit(&h);
    free(big);
}

static void test_token_when_in_a_list_then_found_whatever_its_case(void **state)
{
    struct kr_head h;

    (void)state;
    kr_head_init(&h, KR_HEAD_MAX);
    kr_head_add_str(&h, "connection", "keep-alive, Upgrade\t,x");
    kr_head_add_str(&h, "connection", "");
    kr_head_add_str(&h, "connection", "last");
    assert_true(kr_head_has_token(&h, KR_LIT("connection"), KR_LIT("upgrade")));
    assert_true(kr_head_has_token(&h, KR_LIT("connection"), KR_LIT("X")));
    assert_true(kr_head_has_token(&h, KR_LIT("connection"), KR_LIT("last")));
    assert_false(kr_head_has_token(&h, KR_LIT("connection"), KR_LIT("keep")));
    assert_false(kr_head_has_token(&h, KR_LIT("te"), KR_LIT("last")));
    kr_head_deinit(&h);
}

static void test_content_length_when_odd_then_minus_one(void **state)
{
    static const struct {
        const char *text;
        int64_t n;
    } rows[] = {
        {"0", 0},    {"42", 42},
        {"", -1},    {"-1", -1},
        {"+1", -1},  {"1, 1", -1},
        {" 1", -1},  {"0x10", -1},
        {"1e3", -1}, {"9223372036854775807", INT64_MAX},
        {"1.0", -1}, {"9223372036854775808", -1},
    };
    struct kr_head h;

    (void)state;
    kr_head_init(&h, KR_HEAD_MAX);
    assert_int_equal(kr_head_content_length(&h), -1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kr_head_deinit(&h);
        kr_head_add_str(&h, "content-length", rows[i].text);
        assert_int_equal(kr_head_content_length(&h), rows[i].n);
    }
    kr_head_deinit(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_when_added_then_order_and_repetition_are_kept),
        cmocka_unit_test(test_fields_when_many_then_all_are_there),
        cmocka_unit_test(test_add_when_beyond_a_limit_then_too_big_and_unchanged),
        cmocka_unit_test(test_token_when_in_a_list_then_found_whatever_its_case),
        cmocka_unit_test(test_content_length_when_odd_then_minus_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
