/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/enroll_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

static void test_join_request_comes_back_as_it_was(void **state)
{
    struct kr_join_request in = {KR_LIT("kr1.a.b"), KR_LIT("\x30\x00\xff"), KR_LIT("west")};
    struct kr_join_request out;
    struct kr_buf wire = {.max = 1000};

    (void)state;
    assert_int_equal(kr_join_request_encode(&in, &wire), 0);
    assert_int_equal(kr_join_request_decode(&out, kr_buf_bytes(&wire), NULL), 0);
    assert_true(kr_bytes_eq(in.token, out.token) && kr_bytes_eq(in.csr, out.csr) &&
                kr_bytes_eq(in.instance, out.instance));
    for (size_t n = 1; n < wire.n; n++)
        (void)kr_join_request_decode(&out, kr_bytes_of(wire.p, n), NULL);
    kr_buf_deinit(&wire);
}

static void test_answer_comes_back_as_it_was(void **state)
{
    struct kr_enroll_answer in = {KR_LIT("chain"), KR_LIT("roots"), 300, UINT64_MAX, true};
    struct kr_enroll_answer out;
    struct kr_buf wire = {.max = 1000};

    (void)state;
    assert_int_equal(kr_enroll_answer_encode(&in, &wire), 0);
    assert_int_equal(kr_enroll_answer_decode(&out, kr_buf_bytes(&wire), NULL), 0);
    assert_true(kr_bytes_is(out.chain, "chain") && kr_bytes_is(out.bundle, "roots"));
    assert_true(out.bundle_generation == 300 && out.generation == UINT64_MAX && out.pending);
    kr_buf_deinit(&wire);
}

static void test_renew_request_comes_back_and_skips_what_is_new(void **state)
{
    struct kr_renew_request in = {KR_LIT("der"), 7};
    struct kr_renew_request out;
    struct kr_buf wire = {.max = 1000};

    (void)state;
    assert_int_equal(kr_renew_request_encode(&in, &wire), 0);
    assert_int_equal(kr_buf_append(&wire, KR_LIT("\xfa\x01\x02hi")), 0); /* field 31 */
    assert_int_equal(kr_renew_request_decode(&out, kr_buf_bytes(&wire), NULL), 0);
    assert_true(kr_bytes_is(out.csr, "der") && out.generation == 7);
    kr_buf_deinit(&wire);
}

static void test_text_with_control_bytes_or_too_long_is_refused(void **state)
{
    struct kr_join_request out;
    struct kr_buf wire = {.max = 100000};

    (void)state;
    assert_int_equal(kr_join_request_decode(&out, KR_LIT("\x0a\x02k\n"), NULL), KR_EPROTO);
    assert_int_equal(kr_join_request_decode(&out, KR_LIT("\x1a\x02\xff\xff"), NULL), KR_EPROTO);
    assert_int_equal(kr_join_request_decode(&out, KR_LIT("\x0a\x7f"), NULL), KR_EPROTO);
    assert_int_equal(kr_join_request_decode(&out, KR_LIT("\x12\x00\x1a\x00"), NULL), 0);
    while (wire.n <= KR_ENROLL_REQUEST_MAX)
        assert_int_equal(kr_buf_append(&wire, KR_LIT("\x12\x01x")), 0);
    assert_int_equal(kr_join_request_decode(&out, kr_buf_bytes(&wire), NULL), KR_ETOOBIG);
    kr_buf_deinit(&wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join_request_comes_back_as_it_was),
        cmocka_unit_test(test_answer_comes_back_as_it_was),
        cmocka_unit_test(test_renew_request_comes_back_and_skips_what_is_new),
        cmocka_unit_test(test_text_with_control_bytes_or_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
