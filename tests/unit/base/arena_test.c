/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_alloc_pieces_are_aligned_and_apart(void **state)
{
    struct kr_arena a;
    uint8_t *last = NULL;

    (void)state;
    kr_arena_init(&a, 64, 100000);
    for (size_t n = 1; n < 200; n++) {
        uint8_t *p = kr_arena_alloc(&a, n);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 8, 0);
        memset(p, (int)n, n);
        if (last != NULL)
            assert_int_equal(last[0], n - 1);
        last = p;
    }
    kr_arena_deinit(&a);
}

static void test_alloc_when_beyond_max_then_null(void **state)
{
    struct kr_arena a;

    (void)state;
    kr_arena_init(&a, 64, 100);
    assert_non_null(kr_arena_alloc(&a, 80));
    assert_null(kr_arena_alloc(&a, 40));
    assert_null(kr_arena_alloc(&a, SIZE_MAX));
    assert_non_null(kr_arena_alloc(&a, 16));
    kr_arena_deinit(&a);
    assert_non_null(kr_arena_alloc(&a, 80));
    kr_arena_deinit(&a);
}

static void test_copy_ends_in_nul(void **state)
{
    struct kr_arena a;
    struct kr_bytes b;

    (void)state;
    kr_arena_init(&a, 64, 100);
    b = kr_arena_copy(&a, KR_LIT("name"));
    assert_int_equal(b.n, 4);
    assert_string_equal((const char *)b.p, "name");
    assert_string_equal((const char *)kr_arena_copy(&a, kr_bytes_of(NULL, 0)).p, "");
    kr_arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_pieces_are_aligned_and_apart),
        cmocka_unit_test(test_alloc_when_beyond_max_then_null),
        cmocka_unit_test(test_copy_ends_in_nul),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
