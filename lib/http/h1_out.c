/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_out.h"

#include "base/err.h"

enum {
    TEXT_MAX = 2 * KR_HEAD_MAX + 64 * 1024, /* a head as text, and a body of ours behind it */
    ROOM_MIN = 64,                          /* less is not worth a chunk */
    CHUNK_MAX = 1 << 30,
};

void kr_h1_out_init(struct kr_h1_out *o)
{
    *o = (struct kr_h1_out){0};
    kr_buf_init(&o->text, TEXT_MAX);
    kr_buf_init(&o->tail, TEXT_MAX);
}

void kr_h1_out_deinit(struct kr_h1_out *o)
{
    kr_buf_cleanse(&o->text);
    kr_buf_deinit(&o->tail);
}

void kr_h1_out_body(struct kr_h1_out *o, enum kr_h1_framing framing, uint64_t length, bool end)
{
    o->framing = (uint8_t)framing;
    o->left = framing == KR_H1_LENGTH ? length : 0;
    o->tail_at = 0;
    o->state = KR_H1_OUT_BODY;
    if (end)
        o->state = o->left == 0 ? KR_H1_OUT_DONE : KR_H1_OUT_BROKEN;
}

int kr_h1_out_trailers(struct kr_h1_out *o, const struct kr_head *trailers)
{
    int rc;

    if (o->framing != KR_H1_CHUNKED)
        return 0;
    o->tail.n = 0;
    rc = kr_buf_append_str(&o->tail, "0\r\n");
    if (rc == 0)
        rc = kr_h1_write_fields(&o->tail, trailers, false);
    if (rc == 0)
        rc = kr_buf_append_str(&o->tail, "\r\n");
    if (rc != 0)
        kr_buf_deinit(&o->tail);
    return rc;
}

void kr_h1_out_cancel(struct kr_h1_out *o)
{
    kr_buf_cleanse(&o->text);
    kr_buf_deinit(&o->tail);
    o->text_at = o->tail_at = 0;
    o->state = KR_H1_OUT_BROKEN;
}

static size_t put(uint8_t *out, size_t room, struct kr_bytes from, size_t *at)
{
    size_t n = from.n - *at < room ? from.n - *at : room;

    if (n != 0)
        memcpy(out, from.p + *at, n);
    *at += n;
    return n;
}

static size_t put_text(struct kr_h1_out *o, uint8_t *out, size_t room)
{
    size_t n = put(out, room, kr_buf_bytes(&o->text), &o->text_at);

    if (o->text.n != 0 && o->text_at == o->text.n) {
        kr_buf_cleanse(&o->text);
        o->text_at = 0;
    }
    return n;
}

static size_t put_tail(struct kr_h1_out *o, uint8_t *out, size_t room)
{
    struct kr_bytes tail = o->tail.n != 0 ? kr_buf_bytes(&o->tail) : KR_LIT("0\r\n\r\n");
    size_t n = put(out, room, tail, &o->tail_at);

    if (o->tail_at == tail.n) {
        kr_buf_deinit(&o->tail);
        o->state = KR_H1_OUT_DONE;
    }
    return n;
}

static void body_ended(struct kr_h1_out *o)
{
    if (o->left != 0)
        o->state = KR_H1_OUT_BROKEN;
    else
        o->state = o->framing == KR_H1_CHUNKED ? KR_H1_OUT_TAIL : KR_H1_OUT_DONE;
}

/* The user gives a body where none can be sent (an answer to HEAD): it is taken and dropped. */
static void discard(struct kr_h1_out *o, struct kr_exchange *ex, uint8_t *out, size_t room)
{
    bool end = false;
    size_t n;

    while (o->state == KR_H1_OUT_BODY && !end) {
        n = ex->user_ops->available(ex->user, &end);
        if (o->state != KR_H1_OUT_BODY || (n == 0 && !end))
            return;
        if (n > room) {
            n = room;
            end = false;
        }
        if (n != 0)
            ex->user_ops->take(ex->user, out, n);
    }
    if (end && o->state == KR_H1_OUT_BODY)
        body_ended(o);
}

/* One run of body bytes with its framing; 0: nothing now. The user may abort from inside, so the
 * state is looked at again after each call. */
static size_t put_body(struct kr_h1_out *o, struct kr_exchange *ex, uint8_t *out, size_t room)
{
    bool chunked = o->framing == KR_H1_CHUNKED;
    size_t most = room - (chunked ? KR_H1_CHUNK_OVERHEAD : 0);
    bool end = false;
    size_t have = ex->user_ops->available(ex->user, &end);
    size_t n = have < most ? have : most;
    size_t at = 0;

    if (o->state != KR_H1_OUT_BODY)
        return 0;
    if (n > CHUNK_MAX)
        n = CHUNK_MAX;
    if (o->framing == KR_H1_LENGTH && have > o->left) {
        o->state = KR_H1_OUT_BROKEN;
        return 0;
    }
    if (n != 0) {
        at = chunked ? kr_h1_write_chunk_size(out, n) : 0;
        ex->user_ops->take(ex->user, out + at, n);
        at += n;
        o->left -= o->framing == KR_H1_LENGTH ? n : 0;
        if (chunked) {
            out[at++] = '\r';
            out[at++] = '\n';
        }
    }
    if (end && n == have && o->state == KR_H1_OUT_BODY)
        body_ended(o);
    return at;
}

static size_t put_next(struct kr_h1_out *o, struct kr_exchange *ex, uint8_t *out, size_t room)
{
    if (o->state == KR_H1_OUT_TAIL)
        return put_tail(o, out, room);
    if (o->state != KR_H1_OUT_BODY || ex == NULL || room < ROOM_MIN)
        return 0;
    if (o->framing == KR_H1_NONE) {
        discard(o, ex, out, room);
        return 0;
    }
    return put_body(o, ex, out, room);
}

size_t kr_h1_out_fill(struct kr_h1_out *o, struct kr_exchange *ex, uint8_t *out, size_t room)
{
    size_t n = put_text(o, out, room);
    size_t k = 1;

    while (o->text.n == 0 && n < room && k != 0) {
        uint8_t before = o->state;

        k = put_next(o, ex, out + n, room - n);
        n += k;
        if (o->state != before && o->state == KR_H1_OUT_TAIL)
            k = 1; /* nothing was taken, but the end is known now */
    }
    return n;
}

bool kr_h1_out_pending(const struct kr_h1_out *o)
{
    return o->text.n != 0 || o->state == KR_H1_OUT_BODY || o->state == KR_H1_OUT_TAIL;
}

bool kr_h1_out_done(const struct kr_h1_out *o)
{
    return o->text.n == 0 && o->state == KR_H1_OUT_DONE;
}
