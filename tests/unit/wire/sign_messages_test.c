/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sign_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

static void test_request_comes_back_as_it_was(void **state)
{
    struct kr_sign_request a = {KR_LIT("spiffe://d/cluster/c/agent/a"), KR_LIT("der"), 3600};
    struct kr_buf wire = {.max = KR_SIGN_REQUEST_MAX};
    struct kr_sign_request b;

    (void)state;
    assert_int_equal(kr_sign_request_encode(&a, &wire), 0);
    assert_int_equal(kr_sign_request_decode(&b, kr_buf_bytes(&wire), NULL), 0);
    assert_true(kr_bytes_eq(a.uri, b.uri) && kr_bytes_eq(a.csr, b.csr));
    assert_int_equal(b.lifetime_s, 3600);
    kr_buf_deinit(&wire);
}

static void test_answer_comes_back_as_it_was(void **state)
{
    struct kr_sign_answer a = {KR_LIT("-----BEGIN")};
    struct kr_buf wire = {.max = KR_SIGN_ANSWER_MAX};
    struct kr_sign_answer b;

    (void)state;
    assert_int_equal(kr_sign_answer_encode(&a, &wire), 0);
    assert_int_equal(kr_sign_answer_decode(&b, kr_buf_bytes(&wire), NULL), 0);
    assert_true(kr_bytes_eq(a.chain, b.chain));
    kr_buf_deinit(&wire);
}

static void test_messages_that_are_none_are_refused(void **state)
{
    static uint8_t large[KR_SIGN_ANSWER_MAX + 1];
    struct kr_sign_request q;
    struct kr_sign_answer a;

    (void)state;
    assert_int_equal(kr_sign_request_decode(&q, KR_LIT("\x0a\x7f"), NULL), KR_EPROTO);
    assert_int_equal(kr_sign_request_decode(&q, KR_LIT("\x0a\x01\x07"), NULL), KR_EPROTO);
    assert_int_equal(kr_sign_request_decode(&q, KR_LIT("\x0a\x00"), NULL), KR_EPROTO);
    assert_int_equal(kr_sign_request_decode(&q, KR_LIT("\x1a\x01x"), NULL), KR_EPROTO);
    assert_int_equal(kr_sign_request_decode(&q, kr_bytes_of(large, KR_SIGN_REQUEST_MAX + 1), NULL),
                     KR_ETOOBIG);
    assert_int_equal(kr_sign_answer_decode(&a, kr_bytes_of(large, sizeof large), NULL), KR_ETOOBIG);
    assert_int_equal(kr_sign_answer_decode(&a, KR_LIT("\xff"), NULL), KR_EPROTO);
}

static void test_fields_of_a_newer_version_are_skipped(void **state)
{
    struct kr_sign_request q;

    (void)state;
    assert_int_equal(kr_sign_request_decode(&q, KR_LIT("\x18\x05\x7a\x01x"), NULL), 0);
    assert_int_equal(q.lifetime_s, 5);
    assert_int_equal(q.uri.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_comes_back_as_it_was),
        cmocka_unit_test(test_answer_comes_back_as_it_was),
        cmocka_unit_test(test_messages_that_are_none_are_refused),
        cmocka_unit_test(test_fields_of_a_newer_version_are_skipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
