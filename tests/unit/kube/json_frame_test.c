/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/rand.h"
#include "kube/json_cursor.h"
#include "kube/json_scan.h"

/* ---- the same, byte by byte ---- */

struct slow {
    size_t end; /* behind the value; 0: it does not end */
    bool deep;
};

static struct slow frame_slowly(struct kr_bytes in)
{
    struct slow s = {0};
    bool in_string = false;
    size_t depth = 0;

    for (size_t i = 0; i < in.n; i++) {
        const uint8_t c = in.p[i];

        if (c == '\\') {
            i++; /* whatever follows, in a string or not */
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == '{' || c == '[')) {
            s.deep |= ++depth > KR_SCAN_DEPTH_MAX;
        } else if (!in_string && (c == '}' || c == ']') && --depth == 0) {
            s.end = i + 1;
            return s;
        }
    }
    return s;
}

/* A backslash outside of strings escapes a quote for the blocks, but never a bracket. */
static void drop_loose_backslashes(uint8_t *p, size_t n)
{
    bool in_string = false;

    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\\' && in_string)
            i++;
        else if (p[i] == '\\')
            p[i] = ' ';
        else if (p[i] == '"')
            in_string = !in_string;
    }
}

static size_t make_noise(struct kr_rand *r, uint8_t *out, size_t max)
{
    static const char bytes[] = "{[]}\"\\,:a 1";
    const size_t n = 1 + kr_rand_below(r, max);
    const uint64_t brackets = 1 + kr_rand_below(r, sizeof bytes - 1);

    for (size_t i = 0; i < n; i++) {
        out[i] = (uint8_t)bytes[kr_rand_below(r, sizeof bytes - 1)];
        if (kr_rand_below(r, brackets) != 0)
            out[i] = 'x';
    }
    out[0] = kr_rand_below(r, 2) != 0 ? '{' : '[';
    drop_loose_backslashes(out, n);
    return n;
}

static void check_frame(struct kr_bytes in, enum kr_frame_way way, size_t first, struct slow want)
{
    struct kr_frame f;
    size_t n;

    kr_frame_start(&f, way);
    n = kr_frame_feed(&f, kr_bytes_of(in.p, first));
    if (!f.done) {
        assert_int_equal(n, first);
        n += kr_frame_feed(&f, kr_bytes_skip(in, first));
    }
    assert_int_equal(f.done, want.end != 0);
    assert_int_equal(n, want.end != 0 ? want.end : in.n);
    assert_int_equal(f.deep, want.deep);
}

static void test_frame_when_noise_is_split_then_each_way_finds_the_same_end(void **state)
{
    uint8_t noise[300];
    struct kr_rand r;
    unsigned ended = 0;

    (void)state;
    kr_rand_seed(&r, 3);
    for (unsigned round = 0; round < 20000; round++) {
        struct kr_bytes in = {noise, make_noise(&r, noise, sizeof noise)};
        struct slow want = frame_slowly(in);
        const size_t split = kr_rand_below(&r, in.n + 1);

        ended += want.end != 0;
        for (enum kr_frame_way way = 0; way < KR_FRAME_WAYS; way++) {
            if (kr_frame_has(way)) {
                check_frame(in, way, split, want);
                check_frame(in, way, in.n, want);
            }
        }
    }
    assert_in_range(ended, 2000, 18000);
}

/* Runs of backslashes of every length, before every place of a block. */
static void test_frame_when_backslashes_run_then_odd_ones_escape(void **state)
{
    (void)state;
    for (size_t before = 0; before < 70; before++) {
        for (size_t run = 0; run < 140; run++) {
            struct kr_buf text;
            struct slow want;

            kr_buf_init(&text, 1000);
            kr_buf_append_str(&text, "[\"");
            for (size_t i = 0; i < before + run; i++)
                kr_buf_append_str(&text, i < before ? "." : "\\");
            kr_buf_append_str(&text, "\"],\"] "); /* ends at this bracket or that one */
            want = frame_slowly(kr_buf_bytes(&text));
            assert_int_equal(want.end, text.n - (run % 2 == 0 ? 4 : 1));
            for (enum kr_frame_way way = 0; way < KR_FRAME_WAYS; way++) {
                if (!kr_frame_has(way))
                    continue;
                check_frame(kr_buf_bytes(&text), way, text.n, want);
                check_frame(kr_buf_bytes(&text), way, before + run, want);
            }
            kr_buf_deinit(&text);
        }
    }
}

static void test_frame_when_at_the_limit_then_only_deeper_is_deep(void **state)
{
    (void)state;
    for (size_t depth = KR_SCAN_DEPTH_MAX - 70; depth < KR_SCAN_DEPTH_MAX + 70; depth++) {
        uint8_t text[2 * KR_SCAN_DEPTH_MAX + 200];
        struct slow want;

        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        memset(text + 2 * depth, '[', 50); /* what is behind the value does not count */
        want = frame_slowly(kr_bytes_of(text, 2 * depth + 50));
        assert_int_equal(want.deep, depth > KR_SCAN_DEPTH_MAX);
        for (enum kr_frame_way way = 0; way < KR_FRAME_WAYS; way++) {
            if (kr_frame_has(way))
                check_frame(kr_bytes_of(text, 2 * depth + 50), way, depth + 3, want);
        }
    }
}

static void test_frame_when_scalar_then_up_to_what_follows(void **state)
{
    static const char *const all[] = {
        "1",    "-1.5e+7",    "true",      "null",
        "\"\"", "\"a\\\"b\"", "\"]\\\\\"", "\"caf\xc3\xa9 ...............\""};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const size_t n = strlen(all[i]);
        char text[64];

        snprintf(text, sizeof text, "%s, 1", all[i]);
        assert_int_equal(kr_frame_value(kr_bytes_str(text)), n);
        assert_int_equal(kr_frame_value(kr_bytes_str(all[i])), n);
        for (size_t split = 0; split <= n; split++) {
            struct kr_frame f;
            size_t got;

            kr_frame_start(&f, KR_FRAME_PLAIN);
            got = kr_frame_feed(&f, kr_bytes_of(text, split));
            got += kr_frame_feed(&f, kr_bytes_of(text + got, strlen(text) - got));
            assert_true(f.done && got == n);
        }
    }
}

static void test_value_when_none_starts_or_ends_then_zero(void **state)
{
    static const char *const bad[] = {"",       " 1",    ",", "}",   ":",      "\"",
                                      "\"\\\"", "\"a\\", "{", "[[]", "{\"}\"", "\\"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(kr_frame_value(kr_bytes_str(bad[i])), 0);
}

/* ---- the cursor ---- */

/* The places of all marks. */
static size_t mark_slowly(struct kr_bytes in, size_t *out)
{
    bool in_string = false;
    size_t count = 0;

    for (size_t i = 0; i < in.n; i++) {
        const uint8_t c = in.p[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && strchr("{}[],:", c) != NULL)
            out[count++] = i;
    }
    return count;
}

static void check_marks(struct kr_bytes in, enum kr_frame_way way, const size_t *want, size_t count)
{
    struct kr_cursor c;

    kr_cursor_start(&c, in, way);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(kr_cursor_next(&c) - in.p, want[i]);
    assert_null(kr_cursor_next(&c));
    assert_null(kr_cursor_next(&c));
}

/* From each opening bracket to the one that closes it, and on to the next mark. */
static void check_close(struct kr_bytes in, enum kr_frame_way way, const size_t *want, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = NULL;
        struct kr_cursor c;
        struct slow slow;

        if (in.p[want[i]] != '{' && in.p[want[i]] != '[')
            continue;
        kr_cursor_start(&c, in, way);
        for (size_t j = 0; j <= i; j++)
            at = kr_cursor_next(&c);
        slow = frame_slowly(kr_bytes_skip(in, want[i]));
        if (slow.end == 0) {
            assert_null(kr_cursor_close(&c));
            continue;
        }
        assert_int_equal(kr_cursor_close(&c) - at, slow.end - 1);
        while (i < count && want[i] < (size_t)(at - in.p) + slow.end)
            i++;
        at = kr_cursor_next(&c);
        assert_int_equal(at != NULL ? (size_t)(at - in.p) : in.n, i < count ? want[i] : in.n);
        i--;
    }
}

static void test_cursor_when_noise_then_each_way_stops_at_the_same_marks(void **state)
{
    uint8_t noise[300];
    size_t marks[300];
    struct kr_rand r;

    (void)state;
    kr_rand_seed(&r, 5);
    for (unsigned round = 0; round < 20000; round++) {
        struct kr_bytes in = {noise, make_noise(&r, noise, sizeof noise)};
        const size_t count = mark_slowly(in, marks);

        for (enum kr_frame_way way = 0; way < KR_FRAME_WAYS; way++) {
            if (kr_frame_has(way)) {
                check_marks(in, way, marks, count);
                check_close(in, way, marks, count);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_when_noise_is_split_then_each_way_finds_the_same_end),
        cmocka_unit_test(test_frame_when_backslashes_run_then_odd_ones_escape),
        cmocka_unit_test(test_frame_when_at_the_limit_then_only_deeper_is_deep),
        cmocka_unit_test(test_frame_when_scalar_then_up_to_what_follows),
        cmocka_unit_test(test_value_when_none_starts_or_ends_then_zero),
        cmocka_unit_test(test_cursor_when_noise_then_each_way_stops_at_the_same_marks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
