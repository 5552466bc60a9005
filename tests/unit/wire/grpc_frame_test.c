/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/grpc_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

struct heard { /* a sink that remembers the lengths and a sum */
    size_t count;
    size_t lengths[8];
    uint32_t sum;
    int answer; /* what it returns for the last message */
};

static int hear(void *owner, struct kr_bytes message)
{
    struct heard *h = owner;

    assert_in_range(h->count, 0, 7);
    h->lengths[h->count++] = message.n;
    for (size_t i = 0; i < message.n; i++)
        h->sum = h->sum * 31 + message.p[i];
    return h->answer;
}

static void write_three(struct kr_buf *out)
{
    uint8_t big[300];

    memset(big, 7, sizeof big);
    kr_buf_init(out, 1000);
    assert_int_equal(kr_grpc_write(out, KR_LIT("abc")), 0);
    assert_int_equal(kr_grpc_write(out, KR_LIT("")), 0);
    assert_int_equal(kr_grpc_write(out, kr_bytes_of(big, sizeof big)), 0);
}

static void test_feed_when_cut_anywhere_then_same_messages(void **state)
{
    struct kr_buf in;
    struct heard whole = {.count = 0};
    struct kr_grpc_reader r;

    (void)state;
    write_three(&in);
    assert_int_equal(in.n, 3 * 5 + 303);
    kr_grpc_reader_init(&r, 300);
    assert_int_equal(kr_grpc_reader_feed(&r, kr_buf_bytes(&in), hear, &whole), 0);
    assert_int_equal(whole.count, 3);
    assert_int_equal(whole.lengths[0], 3);
    assert_int_equal(whole.lengths[1], 0);
    assert_int_equal(whole.lengths[2], 300);
    assert_true(kr_grpc_reader_clean(&r));
    kr_grpc_reader_deinit(&r);
    for (size_t at = 0; at <= in.n; at++) {
        struct heard cut = {.count = 0};

        kr_grpc_reader_init(&r, 300);
        assert_int_equal(kr_grpc_reader_feed(&r, kr_bytes_of(in.p, at), hear, &cut), 0);
        assert_int_equal(kr_grpc_reader_clean(&r), at == 0 || at == 8 || at == 13 || at == in.n);
        assert_int_equal(kr_grpc_reader_feed(&r, kr_bytes_of(in.p + at, in.n - at), hear, &cut), 0);
        assert_int_equal(cut.count, 3);
        assert_int_equal(cut.sum, whole.sum);
        kr_grpc_reader_deinit(&r);
    }
    kr_buf_deinit(&in);
}

static void check_refused(struct kr_bytes in, int want)
{
    struct heard h = {.count = 0};
    struct kr_grpc_reader r;

    kr_grpc_reader_init(&r, 100);
    assert_int_equal(kr_grpc_reader_feed(&r, in, hear, &h), want);
    assert_int_equal(h.count, 0);
    assert_int_equal(kr_grpc_reader_feed(&r, KR_LIT("\0\0\0\0\0"), hear, &h), want);
    assert_int_equal(h.count, 0);
    assert_false(kr_grpc_reader_clean(&r));
    kr_grpc_reader_deinit(&r);
}

static void test_feed_when_compressed_odd_or_too_big_then_refused_for_good(void **state)
{
    (void)state;
    check_refused(KR_LIT("\1\0\0\0\1a"), KR_EUNSUPPORTED);
    check_refused(KR_LIT("\2\0\0\0\1a"), KR_EPROTO);
    check_refused(KR_LIT("\xff\0\0\0\1a"), KR_EPROTO);
    check_refused(KR_LIT("\0\0\0\0\x65"), KR_ETOOBIG);
    check_refused(KR_LIT("\0\xff\xff\xff\xff"), KR_ETOOBIG);
}

static void test_feed_when_sink_fails_then_stops_and_sticks(void **state)
{
    struct kr_buf in;
    struct heard h = {.answer = KR_EDENIED};
    struct kr_grpc_reader r;

    (void)state;
    write_three(&in);
    kr_grpc_reader_init(&r, 300);
    assert_int_equal(kr_grpc_reader_feed(&r, kr_buf_bytes(&in), hear, &h), KR_EDENIED);
    assert_int_equal(h.count, 1);
    assert_int_equal(kr_grpc_reader_feed(&r, kr_buf_bytes(&in), hear, &h), KR_EDENIED);
    assert_int_equal(h.count, 1);
    kr_grpc_reader_deinit(&r);
    kr_buf_deinit(&in);
}

static void test_write_when_no_room_then_nothing_is_written(void **state)
{
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 12);
    assert_int_equal(kr_grpc_write(&out, KR_LIT("abc")), 0);
    assert_int_equal(kr_grpc_write(&out, KR_LIT("")), KR_ETOOBIG);
    assert_int_equal(out.n, 8);
    assert_memory_equal(out.p, "\0\0\0\0\3abc", 8);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feed_when_cut_anywhere_then_same_messages),
        cmocka_unit_test(test_feed_when_compressed_odd_or_too_big_then_refused_for_good),
        cmocka_unit_test(test_feed_when_sink_fails_then_stops_and_sticks),
        cmocka_unit_test(test_write_when_no_room_then_nothing_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
