/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char json[] = "{\"type\":\"ADDED\",\"object\":{\"a\":\"x\\ny\"}}\n"
                           "{\"type\":\"BOOKMARK\"}\n"
                           "{\"type\":\"MODIFIED\"";
static const uint64_t json_ends[] = {39, 59};

/* Frames of 3, 0 and 300 bytes, and the start of another. */
static size_t make_protobuf(uint8_t *out, uint64_t *ends)
{
    static const size_t sizes[] = {3, 0, 300};
    size_t n = 0;

    for (size_t i = 0; i < COUNT(sizes); i++) {
        const uint8_t length[4] = {0, 0, (uint8_t)(sizes[i] >> 8), (uint8_t)sizes[i]};

        memcpy(out + n, length, 4);
        memset(out + n + 4, '\n', sizes[i]);
        n += 4 + sizes[i];
        ends[i] = n;
    }
    memcpy(out + n, "\0\0\0\5ab", 6);
    return n + 6;
}

static uint64_t last_end(const uint64_t *ends, size_t count, uint64_t total)
{
    uint64_t end = 0;

    for (size_t i = 0; i < count && ends[i] <= total; i++)
        end = ends[i];
    return end;
}

/* Cut in two at every byte, and fed byte by byte: after each feed the last whole event is known. */
static void check_splits(enum kr_watch_framing framing, const uint8_t *p, size_t n,
                         const uint64_t *ends, size_t count)
{
    struct kr_watch_lines w;

    for (size_t at = 0; at <= n; at++) {
        kr_watch_lines_init(&w, framing);
        assert_int_equal(kr_watch_lines_feed(&w, kr_bytes_of(p, at)), last_end(ends, count, at));
        assert_int_equal(kr_watch_lines_whole(&w), last_end(ends, count, at));
        assert_int_equal(kr_watch_lines_at_boundary(&w), last_end(ends, count, at) == at);
        kr_watch_lines_feed(&w, kr_bytes_of(p + at, n - at));
        assert_int_equal(kr_watch_lines_whole(&w), last_end(ends, count, n));
    }
    kr_watch_lines_init(&w, framing);
    for (size_t at = 0; at < n; at++) {
        size_t whole = kr_watch_lines_feed(&w, kr_bytes_of(p + at, 1));

        assert_int_equal(whole, last_end(ends, count, at + 1) == at + 1);
        assert_int_equal(kr_watch_lines_whole(&w), last_end(ends, count, at + 1));
    }
}

static void test_feed_when_json_is_cut_anywhere_then_last_line_is_known(void **state)
{
    (void)state;
    check_splits(KR_WATCH_JSON, (const uint8_t *)json, sizeof json - 1, json_ends,
                 COUNT(json_ends));
}

static void test_feed_when_protobuf_is_cut_anywhere_then_last_frame_is_known(void **state)
{
    uint8_t body[400];
    uint64_t ends[3];
    size_t n = make_protobuf(body, ends);

    (void)state;
    check_splits(KR_WATCH_PROTOBUF, body, n, ends, COUNT(ends));
}

static void test_feed_when_frame_claims_4_gib_then_nothing_is_whole(void **state)
{
    struct kr_watch_lines w;
    uint8_t body[1000];

    (void)state;
    memset(body, 0xFF, sizeof body);
    kr_watch_lines_init(&w, KR_WATCH_PROTOBUF);
    assert_int_equal(kr_watch_lines_feed(&w, kr_bytes_of(body, sizeof body)), 0);
    assert_int_equal(kr_watch_lines_whole(&w), 0);
    assert_false(kr_watch_lines_at_boundary(&w));
}

static void test_feed_when_untracked_then_all_is_whole(void **state)
{
    struct kr_watch_lines w;

    (void)state;
    kr_watch_lines_init(&w, KR_WATCH_UNTRACKED);
    assert_int_equal(kr_watch_lines_feed(&w, KR_LIT("abc")), 3);
    assert_int_equal(kr_watch_lines_whole(&w), 3);
    assert_true(kr_watch_lines_at_boundary(&w));
}

static void test_framing_when_content_type_given_then_chosen(void **state)
{
    static const struct {
        const char *type;
        const char *encoding;
        enum kr_watch_framing want;
    } cases[] = {
        {"application/json", "", KR_WATCH_JSON},
        {"Application/JSON", "", KR_WATCH_JSON},
        {"application/json;stream=watch", "", KR_WATCH_JSON},
        {"application/json;as=Table;v=v1;g=meta.k8s.io", "", KR_WATCH_JSON},
        {" application/json ; charset=utf-8", "identity", KR_WATCH_JSON},
        {"application/json", "gzip", KR_WATCH_UNTRACKED},
        {"application/vnd.kubernetes.protobuf;stream=watch", "", KR_WATCH_PROTOBUF},
        {"application/vnd.kubernetes.protobuf; as=x; stream=watch", "", KR_WATCH_PROTOBUF},
        {"application/vnd.kubernetes.protobuf", "", KR_WATCH_UNTRACKED},
        {"application/cbor-seq", "", KR_WATCH_UNTRACKED},
        {"application/yaml", "", KR_WATCH_UNTRACKED},
        {"", "", KR_WATCH_UNTRACKED},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(
            kr_watch_framing_of(kr_bytes_str(cases[i].type), kr_bytes_str(cases[i].encoding)),
            cases[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_feed_when_json_is_cut_anywhere_then_last_line_is_known),
        cmocka_unit_test(test_feed_when_protobuf_is_cut_anywhere_then_last_frame_is_known),
        cmocka_unit_test(test_feed_when_frame_claims_4_gib_then_nothing_is_whole),
        cmocka_unit_test(test_feed_when_untracked_then_all_is_whole),
        cmocka_unit_test(test_framing_when_content_type_given_then_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
