/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/grpc_frame.h"

#include "base/err.h"

void kr_grpc_reader_init(struct kr_grpc_reader *r, size_t limit)
{
    *r = (struct kr_grpc_reader){.limit = limit};
    kr_buf_init(&r->body, limit);
}

void kr_grpc_reader_deinit(struct kr_grpc_reader *r)
{
    kr_buf_deinit(&r->body);
}

static int on_prefix(struct kr_grpc_reader *r)
{
    const uint8_t *p = r->prefix;

    if (p[0] == 1)
        return KR_EUNSUPPORTED; /* compressed, and we announce no encoding */
    if (p[0] != 0)
        return KR_EPROTO;
    r->want = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    return r->want > r->limit ? KR_ETOOBIG : 0;
}

/* The message's bytes from the front of `in`; *whole when it is complete. */
static int take_body(struct kr_grpc_reader *r, struct kr_bytes *in, struct kr_bytes *message,
                     bool *whole)
{
    size_t n = r->want - r->body.n;
    int rc;

    *whole = in->n >= n;
    if (*whole && r->body.n == 0) {
        *message = kr_bytes_of(in->p, n);
        *in = kr_bytes_skip(*in, n);
        return 0;
    }
    if (!*whole)
        n = in->n;
    rc = kr_buf_append(&r->body, kr_bytes_of(in->p, n));
    *in = kr_bytes_skip(*in, n);
    *message = kr_buf_bytes(&r->body);
    return rc;
}

int kr_grpc_reader_feed(struct kr_grpc_reader *r, struct kr_bytes in, kr_grpc_sink *sink,
                        void *owner)
{
    int rc = r->failed;

    while (rc == 0) {
        struct kr_bytes message;
        bool whole;

        if (r->have < KR_GRPC_PREFIX) {
            r->have += (uint8_t)kr_bytes_take(&in, r->prefix + r->have, KR_GRPC_PREFIX - r->have);
            if (r->have < KR_GRPC_PREFIX)
                break;
            rc = on_prefix(r);
            continue;
        }
        rc = take_body(r, &in, &message, &whole);
        if (rc != 0 || !whole)
            break;
        rc = sink(owner, message);
        r->have = 0;
        r->body.n = 0;
    }
    return r->failed = rc;
}

bool kr_grpc_reader_clean(const struct kr_grpc_reader *r)
{
    return r->failed == 0 && r->have == 0;
}

int kr_grpc_write(struct kr_buf *out, struct kr_bytes message)
{
    uint8_t prefix[KR_GRPC_PREFIX] = {0};
    int rc;

    if (message.n > UINT32_MAX)
        return KR_ETOOBIG;
    rc = kr_buf_reserve(out, sizeof prefix + message.n);
    if (rc != 0)
        return rc;
    for (unsigned i = 0; i < 4; i++)
        prefix[1 + i] = (uint8_t)(message.n >> (24 - 8 * i));
    kr_buf_append(out, kr_bytes_of(prefix, sizeof prefix)); /* cannot fail: reserved */
    kr_buf_append(out, message);
    return 0;
}
