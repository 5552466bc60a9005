/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h2_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_grow_keeps_what_fits(void **state)
{
    char *p = kr_h2_block_take(8);

    (void)state;
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 16, 0);
    memcpy(p, "abcdefg", 8);
    p = kr_h2_block_grow(p, 100000);
    assert_non_null(p);
    assert_string_equal(p, "abcdefg");
    p = kr_h2_block_grow(p, 3);
    assert_non_null(p);
    assert_memory_equal(p, "abc", 3);
    kr_h2_block_give(p);
}

static void test_zeroed_is_zero_whatever_was_there(void **state)
{
    static const char zero[512] = {0};
    void *p = kr_h2_block_take(512);

    (void)state;
    assert_non_null(p);
    memset(p, 'x', 512);
    kr_h2_block_give(p);
    p = kr_h2_block_take_zeroed(128, 4);
    assert_non_null(p);
    assert_memory_equal(p, zero, 512);
    kr_h2_block_give(p);
}

static void test_sizes_beyond_all_are_null(void **state)
{
    (void)state;
    assert_null(kr_h2_block_take(SIZE_MAX));
    assert_null(kr_h2_block_take_zeroed(SIZE_MAX / 2, 4));
    assert_null(kr_h2_block_take_zeroed(SIZE_MAX, 1));
    kr_h2_block_give(NULL);
}

static void test_an_empty_block_is_a_block(void **state)
{
    void *p = kr_h2_block_take_zeroed(0, 0);

    (void)state;
    assert_non_null(p);
    p = kr_h2_block_grow(p, 1);
    assert_non_null(p);
    kr_h2_block_give(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow_keeps_what_fits),
        cmocka_unit_test(test_zeroed_is_zero_whatever_was_there),
        cmocka_unit_test(test_sizes_beyond_all_are_null),
        cmocka_unit_test(test_an_empty_block_is_a_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
