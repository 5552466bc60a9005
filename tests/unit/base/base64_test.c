/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/err.h"

/* RFC 4648 section 10, and the two characters that its vectors miss. */
static void test_encode_when_vectors_of_the_rfc_then_equal(void **state)
{
    static const struct {
        struct kr_bytes in;
        const char *out;
    } rows[] = {
        {{(const uint8_t *)"", 0}, ""},
        {{(const uint8_t *)"f", 1}, "Zg=="},
        {{(const uint8_t *)"fo", 2}, "Zm8="},
        {{(const uint8_t *)"foo", 3}, "Zm9v"},
        {{(const uint8_t *)"foob", 4}, "Zm9vYg=="},
        {{(const uint8_t *)"fooba", 5}, "Zm9vYmE="},
        {{(const uint8_t *)"foobar", 6}, "Zm9vYmFy"},
        {{(const uint8_t *)"\xfb\xff\xbf", 3}, "+/+/"},
        {{(const uint8_t *)"\0\0\0", 3}, "AAAA"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kr_buf out;

        kr_buf_init(&out, 100);
        assert_int_equal(kr_base64_encode(&out, rows[i].in, true), 0);
        assert_true(kr_bytes_is(kr_buf_bytes(&out), rows[i].out));
        kr_buf_deinit(&out);
        assert_int_equal(kr_base64_decode(&out, kr_bytes_str(rows[i].out)), 0);
        assert_true(kr_bytes_eq(kr_buf_bytes(&out), rows[i].in));
        kr_buf_deinit(&out);
    }
}

static void test_encode_when_full_then_etoobig_and_nothing_written(void **state)
{
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 7);
    assert_int_equal(kr_base64_encode(&out, KR_LIT("foob"), true), KR_ETOOBIG);
    assert_int_equal(out.n, 0);
    kr_buf_deinit(&out);
}

static void test_decode_when_not_base64_then_einval(void **state)
{
    static const char *const bad[] = {"A", "Zg=a", "Zm9v\n", "Zm9-", "=", "Zm9vY"};
    struct kr_buf out;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        kr_buf_init(&out, 100);
        assert_int_equal(kr_base64_decode(&out, kr_bytes_str(bad[i])), KR_EINVAL);
        kr_buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encode_when_vectors_of_the_rfc_then_equal),
        cmocka_unit_test(test_encode_when_full_then_etoobig_and_nothing_written),
        cmocka_unit_test(test_decode_when_not_base64_then_einval),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
