/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

static void test_append_when_beyond_max_then_toobig_and_unchanged(void **state)
{
    struct kr_buf b;

    (void)state;
    kr_buf_init(&b, 5);
    assert_int_equal(kr_buf_append_str(&b, "abc"), 0);
    assert_int_equal(kr_buf_append_str(&b, "def"), KR_ETOOBIG);
    assert_int_equal(b.n, 3);
    assert_int_equal(kr_buf_append_str(&b, "de"), 0);
    assert_memory_equal(b.p, "abcde", 5);
    assert_int_equal(kr_buf_reserve(&b, SIZE_MAX), KR_ETOOBIG);
    kr_buf_deinit(&b);
    assert_int_equal(b.max, 5);
}

static void test_append_many_keeps_the_bytes(void **state)
{
    struct kr_buf b;

    (void)state;
    kr_buf_init(&b, 100000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(kr_buf_printf(&b, "%04d", i), 0);
    assert_int_equal(b.n, 40000);
    assert_memory_equal(b.p + 4 * 1234, "1234", 4);
    kr_buf_deinit(&b);
}

static void test_drop_moves_the_rest_to_the_front(void **state)
{
    struct kr_buf b;

    (void)state;
    kr_buf_init(&b, 100);
    assert_int_equal(kr_buf_append_str(&b, "hello"), 0);
    kr_buf_drop(&b, 2);
    assert_true(kr_bytes_is(kr_buf_bytes(&b), "llo"));
    kr_buf_drop(&b, 10);
    assert_int_equal(b.n, 0);
    kr_buf_deinit(&b);
}

static void test_deinit_of_a_zeroed_buf_is_fine(void **state)
{
    struct kr_buf b = {.max = 10};

    (void)state;
    kr_buf_deinit(&b);
    assert_int_equal(kr_buf_append_str(&b, "x"), 0);
    kr_buf_deinit(&b);
    kr_buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_when_beyond_max_then_toobig_and_unchanged),
        cmocka_unit_test(test_append_many_keeps_the_bytes),
        cmocka_unit_test(test_drop_moves_the_rest_to_the_front),
        cmocka_unit_test(test_deinit_of_a_zeroed_buf_is_fine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
