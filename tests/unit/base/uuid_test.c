/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uuid.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_uuid_comes_back_as_it_was(void **state)
{
    static const char text[] = "0123abcd-4567-89ef-8001-fedcba987654";
    uint8_t id[KR_UUID_SIZE];
    char out[KR_UUID_TEXT];

    (void)state;
    assert_true(kr_uuid_read(kr_bytes_str(text), id));
    assert_int_equal(id[0], 0x01);
    assert_int_equal(id[15], 0x54);
    kr_uuid_write(id, out);
    assert_string_equal(out, text);
}

static void test_uuid_that_is_none_is_refused(void **state)
{
    static const char *const none[] = {
        "",
        "0123abcd-4567-89ef-8001-fedcba98765",
        "0123abcd-4567-89ef-8001-fedcba9876543",
        "0123ABCD-4567-89ef-8001-fedcba987654",
        "0123abcd04567-89ef-8001-fedcba987654",
        "0123abc-d4567-89ef-8001-fedcba987654",
        "g123abcd-4567-89ef-8001-fedcba987654",
    };
    uint8_t id[KR_UUID_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(kr_uuid_read(kr_bytes_str(none[i]), id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uuid_comes_back_as_it_was),
        cmocka_unit_test(test_uuid_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
