/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define BYTES(...) kr_bytes_of((const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}))

static const uint8_t zeros[70000];

static void test_feed_when_frames_are_whole_then_their_end_is_known(void **state)
{
    struct kr_ws_frames f = {0};

    (void)state;
    kr_ws_frames_feed(&f, BYTES(0x82, 2, 1, 'x', 0x89, 0));
    assert_int_equal(f.whole, 6);
    kr_ws_frames_feed(&f, BYTES(0x82, 3, 1));
    assert_int_equal(f.whole, 6);
    kr_ws_frames_feed(&f, BYTES('a', 'b'));
    assert_int_equal(f.whole, 11);
    assert_false(f.lost || f.closed);
}

static void test_feed_when_length_has_two_or_eight_bytes_then_it_is_read(void **state)
{
    struct kr_ws_frames f = {0};

    (void)state;
    kr_ws_frames_feed(&f, BYTES(0x82, 126, 1));
    kr_ws_frames_feed(&f, BYTES(0));
    kr_ws_frames_feed(&f, kr_bytes_of(zeros, 255));
    assert_int_equal(f.whole, 0);
    kr_ws_frames_feed(&f, kr_bytes_of(zeros, 1));
    assert_int_equal(f.whole, 260);
    kr_ws_frames_feed(&f, BYTES(0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0));
    kr_ws_frames_feed(&f, kr_bytes_of(zeros, 65536));
    assert_int_equal(f.whole, 260 + 10 + 65536);
}

static void test_feed_when_frame_has_a_mask_then_it_counts(void **state)
{
    struct kr_ws_frames f = {0};

    (void)state;
    kr_ws_frames_feed(&f, BYTES(0x82, 0x80, 1, 2, 3));
    assert_int_equal(f.whole, 0);
    kr_ws_frames_feed(&f, BYTES(4, 0x82, 0x81, 1, 2, 3, 4, 'x'));
    assert_int_equal(f.whole, 13);
}

static void test_feed_when_no_frame_can_be_so_long_then_it_is_lost(void **state)
{
    struct kr_ws_frames f = {0};

    (void)state;
    kr_ws_frames_feed(&f, BYTES(0x82, 1, 'x'));
    kr_ws_frames_feed(&f, BYTES(0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3));
    assert_true(f.lost);
    assert_int_equal(f.whole, 3);
}

static void test_feed_when_the_server_closes_then_it_is_noted(void **state)
{
    struct kr_ws_frames f = {0};

    (void)state;
    kr_ws_frames_feed(&f, BYTES(0x88, 2, 3));
    assert_false(f.closed);
    kr_ws_frames_feed(&f, BYTES(0xe8));
    assert_true(f.closed);
    assert_int_equal(f.whole, 4);
}

static void
test_close_write_when_reason_is_long_then_it_is_a_control_frame_all_the_same(void **state)
{
    uint8_t out[KR_WS_CLOSE_MAX];
    size_t n = kr_ws_close_write(out, KR_WS_POLICY_VIOLATION, KR_LIT("no"));

    (void)state;
    assert_int_equal(n, 6);
    assert_memory_equal(out, "\x88\x04\x03\xf0no", 6);
    n = kr_ws_close_write(out, KR_WS_GOING_AWAY, kr_bytes_of(zeros, 1000));
    assert_int_equal(n, KR_WS_CLOSE_MAX);
    assert_int_equal(out[1], 125);
    assert_int_equal(out[2] << 8 | out[3], 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feed_when_frames_are_whole_then_their_end_is_known),
        cmocka_unit_test(test_feed_when_length_has_two_or_eight_bytes_then_it_is_read),
        cmocka_unit_test(test_feed_when_frame_has_a_mask_then_it_counts),
        cmocka_unit_test(test_feed_when_no_frame_can_be_so_long_then_it_is_lost),
        cmocka_unit_test(test_feed_when_the_server_closes_then_it_is_noted),
        cmocka_unit_test(
            test_close_write_when_reason_is_long_then_it_is_a_control_frame_all_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
