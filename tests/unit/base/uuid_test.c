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

static void test_v4_when_made_then_version_and_variant_are_set(void **state)
{
    uint8_t id[KR_UUID_SIZE];
    char text[KR_UUID_TEXT];

    (void)state;
    kr_uuid_v4(UINT64_MAX, UINT64_MAX, id);
    kr_uuid_write(id, text);
    assert_string_equal(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    kr_uuid_v4(0, 0, id);
    kr_uuid_write(id, text);
    assert_string_equal(text, "00000000-0000-4000-8000-000000000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uuid_comes_back_as_it_was),
        cmocka_unit_test(test_uuid_that_is_none_is_refused),
        cmocka_unit_test(test_v4_when_made_then_version_and_variant_are_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
