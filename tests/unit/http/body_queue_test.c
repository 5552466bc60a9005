/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

static void fill(uint8_t *p, size_t n, size_t from)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)((from + i) * 31 + ((from + i) >> 8));
}

static void test_append_when_beyond_max_then_nothing_is_kept(void **state)
{
    struct kr_body_queue q;

    (void)state;
    kr_body_queue_init(&q, 5);
    assert_int_equal(kr_body_queue_append(&q, KR_LIT("abc")), 0);
    assert_int_equal(kr_body_queue_append(&q, KR_LIT("def")), KR_ETOOBIG);
    assert_int_equal(q.size, 3);
    assert_int_equal(kr_body_queue_append(&q, KR_LIT("de")), 0);
    assert_int_equal(kr_body_queue_append(&q, KR_LIT("")), 0);
    kr_body_queue_deinit(&q);
    assert_int_equal(q.size, 0);
    assert_int_equal(q.max, 5);
}

static void test_take_when_all_is_taken_then_no_memory_is_held(void **state)
{
    struct kr_body_queue q;
    uint8_t out[8];

    (void)state;
    kr_body_queue_init(&q, 100);
    assert_int_equal(kr_body_queue_append(&q, KR_LIT("abcdef")), 0);
    kr_body_queue_take(&q, out, 2);
    assert_memory_equal(out, "ab", 2);
    kr_body_queue_take(&q, out, 4);
    assert_memory_equal(out, "cdef", 4);
    assert_null(q.first);
    assert_null(q.last);
    kr_body_queue_take(&q, out, 0);
}

static void test_take_when_sizes_are_mixed_then_bytes_keep_their_order(void **state)
{
    static uint8_t in[40000];
    static uint8_t out[40000];
    static uint8_t want[40000];
    struct kr_body_queue q;
    size_t put = 0;
    size_t got = 0;

    (void)state;
    srand(7);
    kr_body_queue_init(&q, 300000);
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)rand() % (i % 10 == 0 ? sizeof in : 3000);

        fill(in, n, put);
        if (kr_body_queue_append(&q, kr_bytes_of(in, n)) == 0)
            put += n;
        n = (size_t)rand() % (i % 7 == 0 ? sizeof out : 3000);
        n = n < q.size ? n : q.size;
        kr_body_queue_take(&q, out, n);
        fill(want, n, got);
        assert_memory_equal(out, want, n);
        got += n;
        assert_int_equal(q.size, put - got);
    }
    kr_body_queue_deinit(&q);
}

static void test_truncate_when_tail_is_cut_then_the_front_stays(void **state)
{
    static uint8_t in[50000];
    static uint8_t out[50000];
    struct kr_body_queue q;

    (void)state;
    fill(in, sizeof in, 0);
    for (size_t size = 0; size <= 30000; size += 1237) {
        kr_body_queue_init(&q, 100000);
        for (size_t at = 0; at < 25000; at += 2500)
            assert_int_equal(kr_body_queue_append(&q, kr_bytes_of(in + at, 2500)), 0);
        kr_body_queue_take(&q, out, 100);
        kr_body_queue_truncate(&q, size);
        assert_int_equal(q.size, size < 24900 ? size : 24900);
        assert_int_equal(kr_body_queue_append(&q, kr_bytes_of(in, 5000)), 0);
        kr_body_queue_take(&q, out, q.size);
        assert_memory_equal(out, in + 100, size < 24900 ? size : 24900);
        assert_null(q.first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_when_beyond_max_then_nothing_is_kept),
        cmocka_unit_test(test_take_when_all_is_taken_then_no_memory_is_held),
        cmocka_unit_test(test_take_when_sizes_are_mixed_then_bytes_keep_their_order),
        cmocka_unit_test(test_truncate_when_tail_is_cut_then_the_front_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
