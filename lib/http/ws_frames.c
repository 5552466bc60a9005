/* SPDX-License-Identifier: Apache-2.0 */
#include "http/ws_frames.h"

#define OPCODE 0x0f
#define OP_CLOSE 0x8
#define FIN 0x80
#define MASK 0x80
#define LENGTH 0x7f
#define REASON_MAX 123 /* what a control frame holds, without the code */

/* How long the head is, as far as it is known. */
static size_t head_size(const struct kr_ws_frames *f)
{
    size_t n = 2;

    if (f->head_n < 2)
        return n;
    if ((f->head[1] & LENGTH) == 126)
        n += 2;
    else if ((f->head[1] & LENGTH) == 127)
        n += 8;
    return n + ((f->head[1] & MASK) != 0 ? 4 : 0);
}

static uint64_t body_size(const struct kr_ws_frames *f)
{
    size_t bytes = (f->head[1] & LENGTH) == 126 ? 2 : (f->head[1] & LENGTH) == 127 ? 8 : 0;
    uint64_t n = 0;

    if (bytes == 0)
        return f->head[1] & LENGTH;
    for (size_t i = 0; i < bytes; i++)
        n = n << 8 | f->head[2 + i];
    return n;
}

static void end_frame(struct kr_ws_frames *f)
{
    f->whole = f->fed;
    f->closed = f->closed || (f->head[0] & OPCODE) == OP_CLOSE;
    f->head_n = 0;
}

/* Takes bytes of a head; once it is whole the body begins. */
static size_t feed_head(struct kr_ws_frames *f, struct kr_bytes in)
{
    size_t n = 0;

    while (n < in.n && f->head_n < head_size(f))
        f->head[f->head_n++] = in.p[n++];
    f->fed += n;
    if (f->head_n < head_size(f))
        return n;
    f->left = body_size(f);
    f->lost = f->left >> 63 != 0;
    if (f->left == 0)
        end_frame(f);
    return n;
}

void kr_ws_frames_feed(struct kr_ws_frames *f, struct kr_bytes in)
{
    while (in.n != 0 && !f->lost) {
        size_t n;

        if (f->left == 0) {
            n = feed_head(f, in);
        } else {
            n = in.n < f->left ? in.n : (size_t)f->left;
            f->fed += n;
            f->left -= n;
            if (f->left == 0)
                end_frame(f);
        }
        in = kr_bytes_skip(in, n);
    }
}

size_t kr_ws_close_write(uint8_t out[KR_WS_CLOSE_MAX], unsigned code, struct kr_bytes reason)
{
    size_t n = reason.n < REASON_MAX ? reason.n : REASON_MAX;

    out[0] = FIN | OP_CLOSE;
    out[1] = (uint8_t)(2 + n);
    out[2] = (uint8_t)(code >> 8);
    out[3] = (uint8_t)code;
    if (n != 0)
        memcpy(out + 4, reason.p, n);
    return 4 + n;
}
