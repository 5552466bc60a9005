/* SPDX-License-Identifier: Apache-2.0 */
/* h1_out: the outgoing message of an HTTP/1.1 connection: text that is ready (heads), then a body
 * that is pulled from the exchange's user and framed on the way, straight into the pipe's buffer.
 * Memory:  owns the text until it is handed over; a body is never held.
 * Units:   bytes.
 * Threads: one owner, no locks. */
#ifndef KR_HTTP_H1_OUT_H
#define KR_HTTP_H1_OUT_H

#include "http/exchange.h"
#include "http/h1_codec.h"

enum kr_h1_out_state {
    KR_H1_OUT_IDLE,   /* no message; text (a 100) may wait all the same */
    KR_H1_OUT_BODY,   /* the body is pulled once the text is out */
    KR_H1_OUT_TAIL,   /* the last chunk */
    KR_H1_OUT_DONE,   /* all of it was handed over (as soon as the text is out) */
    KR_H1_OUT_BROKEN, /* the body did not keep to its length, or was canceled */
};

struct kr_h1_out { /* embed it; append to text, read the rest */
    struct kr_buf text;
    size_t text_at;
    struct kr_buf tail; /* the last chunk and its trailers; empty: the plain last chunk */
    size_t tail_at;
    uint64_t left;   /* with KR_H1_LENGTH */
    uint8_t framing; /* enum kr_h1_framing */
    uint8_t state;   /* enum kr_h1_out_state */
};

void kr_h1_out_init(struct kr_h1_out *o);
void kr_h1_out_deinit(struct kr_h1_out *o); /* zeroed is fine */
/* After the head was appended to `text`: its body follows; `end`: it has none. A length that is
 * promised but not given breaks the message. */
void kr_h1_out_body(struct kr_h1_out *o, enum kr_h1_framing framing, uint64_t length, bool end);
/* Fields behind a chunked body (dropped with any other framing). KR_ENOMEM, KR_EINVAL. */
int kr_h1_out_trailers(struct kr_h1_out *o, const struct kr_head *trailers);
/* Forgets all that was not handed over. */
void kr_h1_out_cancel(struct kr_h1_out *o);
/* Writes up to `room` (>= 1024) bytes. `ex` may be NULL when no body is to be pulled. */
size_t kr_h1_out_fill(struct kr_h1_out *o, struct kr_exchange *ex, uint8_t *out, size_t room);
/* Whether text waits or a body may be pulled. */
bool kr_h1_out_pending(const struct kr_h1_out *o);
/* Whether the message is whole and every byte of it was handed over. */
bool kr_h1_out_done(const struct kr_h1_out *o);

#endif
