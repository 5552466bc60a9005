/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a watch, however its body is cut. */
#include "kube/watch_event.h"

void kr_event_reader_init(struct kr_event_reader *r, const struct kr_event_reader_ops *ops,
                          void *user, size_t line_max)
{
    *r = (struct kr_event_reader){.ops = ops, .user = user, .line_max = line_max};
    kr_buf_init(&r->line, line_max);
}

void kr_event_reader_deinit(struct kr_event_reader *r)
{
    kr_buf_deinit(&r->line);
}

/* A line is whole: `piece` is its last part. */
static int end_line(struct kr_event_reader *r, struct kr_bytes piece)
{
    struct kr_bytes line = piece;
    int rc = 0;

    if (r->skipping != 0 || r->line.n + piece.n > r->line_max) {
        uint64_t n = r->skipping + r->line.n + piece.n;

        kr_buf_deinit(&r->line);
        r->skipping = 0;
        r->ops->on_skipped(r->user, n);
        return 0;
    }
    if (r->line.n != 0) {
        rc = kr_buf_append(&r->line, piece);
        line = kr_buf_bytes(&r->line);
    }
    if (line.n != 0 && line.p[line.n - 1] == '\r')
        line.n--;
    if (rc == 0 && line.n != 0)
        rc = r->ops->on_line(r->user, line);
    r->line.n = 0;
    return rc;
}

/* The start of a line, or more of it, whose end is still to come. */
static int keep(struct kr_event_reader *r, struct kr_bytes piece)
{
    if (r->skipping == 0 && piece.n <= r->line_max - r->line.n)
        return kr_buf_append(&r->line, piece);
    r->skipping += r->line.n + piece.n;
    kr_buf_deinit(&r->line);
    return 0;
}

int kr_event_reader_feed(struct kr_event_reader *r, struct kr_bytes in)
{
    while (r->failed == 0 && in.n != 0) {
        size_t at = kr_bytes_find(in, '\n');
        struct kr_bytes piece = kr_bytes_of(in.p, at);

        r->failed = at < in.n ? end_line(r, piece) : keep(r, piece);
        in = kr_bytes_skip(in, at < in.n ? at + 1 : at);
    }
    return r->failed;
}
