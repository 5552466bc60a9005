/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/base64.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/err.h"

/* RFC 4648 section 10, and the two characters that its vectors miss. */
static void test_append_when_vectors_of_the_rfc_then_equal(void **state)
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
        assert_int_equal(ctl_base64_append(&out, rows[i].in), 0);
        assert_true(kr_bytes_is(kr_buf_bytes(&out), rows[i].out));
        kr_buf_deinit(&out);
    }
}

static void test_append_when_full_then_etoobig_and_nothing_written(void **state)
{
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 7);
    assert_int_equal(ctl_base64_append(&out, KR_LIT("foob")), KR_ETOOBIG);
    assert_int_equal(out.n, 0);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_when_vectors_of_the_rfc_then_equal),
        cmocka_unit_test(test_append_when_full_then_etoobig_and_nothing_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
