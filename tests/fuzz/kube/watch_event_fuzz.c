/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte that says how the body is cut, a byte for the longest line, the body of a watch.
 * However it is cut, the same lines come of it; events lie inside their lines. */
#include "base/assert.h"
#include "base/err.h"
#include "kube/watch_event.h"

struct reader {
    struct kr_event_reader lines;
    struct kr_buf told;
    uint64_t skipped;
};

static void check_inside(struct kr_bytes part, struct kr_bytes line)
{
    KR_ASSERT(part.n == 0 || (part.p >= line.p && part.p + part.n <= line.p + line.n));
}

/* What nobody checks later was checked. */
static void check_inside_out(const struct kr_watch_event *e, struct kr_bytes line)
{
    bool strict = e->type != KR_EVENT_ADDED && e->type != KR_EVENT_MODIFIED;

    KR_ASSERT(!strict || kr_scan_check(line, KR_SCAN_DEPTH_MAX, NULL) == 0);
    KR_ASSERT(e->object.n == 0 || (e->object.p[0] == '{' && e->object.p[e->object.n - 1] == '}'));
    KR_ASSERT(e->cells.n == 0 || kr_scan_check(e->cells, KR_SCAN_DEPTH_MAX, NULL) == 0);
    KR_ASSERT(e->columns.n == 0 || kr_scan_check(e->columns, KR_SCAN_DEPTH_MAX, NULL) == 0);
}

static void check_event(struct kr_bytes line)
{
    struct kr_watch_event e;
    struct kr_note why;
    int rc = kr_watch_event_read(line, &e, &why);

    KR_ASSERT(rc == 0 || rc == KR_EPROTO || rc == KR_ETOOBIG);
    if (rc != 0)
        return;
    check_inside(e.object, line);
    check_inside(e.cells, line);
    check_inside(e.columns, line);
    check_inside(e.version, line);
    check_inside(e.reason, line);
    check_inside(e.message, line);
    KR_ASSERT(e.object.n != 0 || e.type == KR_EVENT_BOOKMARK);
    check_inside_out(&e, line);
    KR_ASSERT(!e.initial_end || e.type == KR_EVENT_BOOKMARK);
    KR_ASSERT(e.code >= 0 && e.retry_after_s >= 0);
}

static int on_line(void *user, struct kr_bytes line)
{
    struct reader *r = user;

    KR_ASSERT(line.n != 0 && line.n <= r->lines.line_max);
    KR_ASSERT(kr_bytes_find(line, '\n') == line.n);
    check_event(line);
    kr_buf_append(&r->told, line);
    kr_buf_append_str(&r->told, "\n");
    return 0;
}

static void on_skipped(void *user, uint64_t n)
{
    struct reader *r = user;

    KR_ASSERT(n > r->lines.line_max);
    r->skipped += n;
}

static void read_body(struct reader *r, struct kr_bytes in, size_t chunk, size_t line_max)
{
    static const struct kr_event_reader_ops ops = {on_line, on_skipped};

    kr_buf_init(&r->told, in.n * 2 + 1);
    r->skipped = 0;
    kr_event_reader_init(&r->lines, &ops, r, line_max);
    while (in.n != 0) {
        const size_t n = in.n < chunk ? in.n : chunk;

        KR_ASSERT(kr_event_reader_feed(&r->lines, kr_bytes_of(in.p, n)) == 0);
        KR_ASSERT(r->lines.line.n <= line_max);
        in = kr_bytes_skip(in, n);
    }
}

static void done(struct reader *r)
{
    kr_event_reader_deinit(&r->lines);
    kr_buf_deinit(&r->told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct reader whole;
    struct reader cut;
    struct kr_bytes in;
    size_t line_max;

    if (n < 2)
        return 0;
    in = kr_bytes_of(data + 2, n - 2);
    line_max = data[1] == 255 ? 1 << 20 : data[1];
    read_body(&whole, in, in.n + 1, line_max);
    read_body(&cut, in, 1 + data[0] % 80, line_max);
    KR_ASSERT(kr_bytes_eq(kr_buf_bytes(&whole.told), kr_buf_bytes(&cut.told)));
    KR_ASSERT(whole.skipped == cut.skipped);
    done(&whole);
    done(&cut);
    return 0;
}
