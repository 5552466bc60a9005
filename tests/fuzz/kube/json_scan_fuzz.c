/* SPDX-License-Identifier: Apache-2.0 */
/* Input: any text. The checker agrees with that of base, which is another one; every way to frame
 * finds the same; steps through a text stay inside of it, and give well-formed parts of one that
 * is. */
#include "base/assert.h"
#include "base/err.h"
#include "base/json_check.h"
#include "kube/json_cursor.h"
#include "kube/json_scan.h"

static void check_frames(struct kr_bytes in)
{
    struct kr_frame plain;
    size_t end;

    kr_frame_start(&plain, KR_FRAME_PLAIN);
    end = kr_frame_feed(&plain, in);
    KR_ASSERT(end <= in.n);
    for (enum kr_frame_way way = KR_FRAME_PLAIN; way < KR_FRAME_WAYS; way++) {
        struct kr_frame f;
        size_t n;

        if (!kr_frame_has(way))
            continue;
        kr_frame_start(&f, way);
        n = kr_frame_feed(&f, kr_bytes_of(in.p, in.n / 3));
        n += f.done ? 0 : kr_frame_feed(&f, kr_bytes_skip(in, in.n / 3));
        KR_ASSERT(n == end && f.done == plain.done && f.deep == plain.deep);
    }
}

static void check_cursors(struct kr_bytes in)
{
    for (enum kr_frame_way way = KR_FRAME_SSE2; way < KR_FRAME_WAYS; way++) {
        struct kr_cursor plain;
        struct kr_cursor c;
        const uint8_t *at;

        if (!kr_frame_has(way))
            continue;
        kr_cursor_start(&plain, in, KR_FRAME_PLAIN);
        kr_cursor_start(&c, in, way);
        do {
            at = kr_cursor_next(&plain);
            KR_ASSERT(kr_cursor_next(&c) == at);
            if (at != NULL && *at == '[') { /* over some */
                at = kr_cursor_close(&plain);
                KR_ASSERT(kr_cursor_close(&c) == at);
            }
            KR_ASSERT(at == NULL || (at >= in.p && at < in.p + in.n));
        } while (at != NULL);
    }
}

static void check_inside(struct kr_bytes part, struct kr_bytes whole)
{
    KR_ASSERT(part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

/* One level of an object or array; into the last value that has more. */
static struct kr_bytes step(struct kr_bytes in, bool well_formed)
{
    struct kr_bytes inner = {NULL, 0};
    struct kr_bytes key;
    struct kr_bytes value;
    struct kr_scan it;
    const bool object = kr_scan_object(in, &it);

    if (!object && !kr_scan_array(in, &it))
        return inner;
    while (object ? kr_scan_member(&it, &key, &value) : kr_scan_element(&it, &value)) {
        check_inside(value, in);
        KR_ASSERT(value.n != 0);
        if (object)
            check_inside(key, in);
        KR_ASSERT(!well_formed || kr_scan_check(value, KR_SCAN_DEPTH_MAX, NULL) == 0);
        if (value.p[0] == '{' || value.p[0] == '[')
            inner = value;
    }
    return inner;
}

static void check_strings(struct kr_bytes in)
{
    struct kr_bytes plain;
    struct kr_buf out;

    kr_buf_init(&out, in.n);
    if (kr_scan_string(in, &out) == 0)
        KR_ASSERT(out.n + 2 <= in.n);
    else
        KR_ASSERT(out.n == 0);
    if (kr_scan_plain(in, &plain))
        KR_ASSERT(kr_bytes_eq(plain, kr_buf_bytes(&out)));
    kr_scan_key_is(in, "metadata");
    kr_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_bytes in = {data, n};
    struct kr_note why;
    size_t members;
    bool fine;

    if (n == 0 || n > KR_JSON_MAX)
        return 0;
    fine = kr_scan_check(in, KR_JSON_DEPTH, &why) == 0;
    KR_ASSERT(fine == (kr_json_check(in, &members, &why) == 0));
    fine = kr_scan_check(in, KR_SCAN_DEPTH_MAX, &why) == 0;
    check_frames(in);
    check_cursors(in);
    check_strings(in);
    for (unsigned level = 0; level < 64 && in.n != 0; level++)
        in = step(in, fine);
    return 0;
}
