/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: on_bytes reads a head (READ), on_request, body to the user, on_end (WAIT); the user
 * answers; fill hands the answer over; step ends the exchange and reads the next request (READ).
 * An upgrade: on_head does not read on (HOLD: what comes waits in `pending`); 101 makes it RAW, and
 * step hands over what waited, then every byte goes straight through, until the user's direction
 * ends; any other answer makes it DEAF: what came and what comes is thrown away, never parsed
 * (CVE-2018-1002105), and the connection closes behind the answer.
 * Failure modes: a request that is refused is answered, and an answer that is whole before its
 * request ends the connection too: CLOSING by way of flush, where the pipe sees to it that the
 * client reads the answer although its input is not read any more. An abort, a broken body, or a
 * client that goes: CLOSING at once, without a last chunk. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "http/h1_answer.h"
#include "http/h1_side.h"

enum {
    PENDING_MAX = 64 * 1024, /* pipelined or held bytes that wait; then reading stops */
};

enum state {
    READ, /* between requests, in a head or in a body */
    WAIT, /* the request is whole; its exchange goes on */
    HOLD, /* it asks for an upgrade and is not answered; what comes is kept */
    RAW,  /* upgraded */
    DEAF, /* the upgrade was refused; what comes is thrown away */
};

struct server {
    struct kr_h1_side h1;  /* its timer: idle, head, or how long RAW outlives the client's end */
    struct kr_buf pending; /* input behind the current request */
    uint8_t state;         /* enum state; see state_is() */
    bool head_open;        /* out.text ends in a head whose last fields are not written yet */
    bool close_after;      /* the client was told, or told us, that the connection ends */
    bool eof;
    struct kr_h1_date date;
};

/* ---- small steps ---- */

/* A connection that closes is in no state. */
static bool state_is(const struct server *s, enum state state)
{
    return !s->h1.closing && s->state == state;
}

static void update_reading(struct server *s)
{
    kr_h1_side_update_reading(&s->h1, s->pending.n < PENDING_MAX);
}

/* ---- answers ---- */

static const char *date_now(struct server *s)
{
    return kr_h1_date(&s->date, s->h1.cfg.sched->now_wall_ms);
}

/* Connection: close is decided as late as possible: a small request body usually came whole by the
 * time its early answer leaves. */
static int finish_head(struct server *s)
{
    if (!s->head_open)
        return 0;
    s->head_open = false;
    s->h1.ex.head_sent = true;
    if (state_is(s, RAW))
        return kr_buf_append_str(&s->h1.out.text, "connection: Upgrade\r\n\r\n");
    if (s->h1.conn.draining || !s->h1.ex.in_ended || !s->h1.live)
        s->close_after = true;
    return kr_buf_append_str(&s->h1.out.text,
                             s->close_after ? "connection: close\r\n\r\n" : "\r\n");
}

/* Answers what is no request, or stopped being one; nothing is parsed after it. */
static void answer_bad(struct server *s, int status, const char *why)
{
    int code = s->h1.reader.rc != 0 ? s->h1.reader.rc : KR_ETIMEDOUT;
    bool no_body = s->h1.head_method || kr_bytes_is(s->h1.ex.head.method, "HEAD");
    int rc = kr_h1_answer_bad(&s->h1.out.text, &s->h1.cfg, status, why, no_body, date_now(s));

    kr_h1_out_body(&s->h1.out, KR_H1_NONE, 0, true);
    kr_h1_side_shut(&s->h1, rc == 0 ? KR_PIPE_FLUSH : KR_PIPE_ABORT, code, why);
}

static void refuse(struct server *s, int rc, int status, const char *why)
{
    bool answered = s->h1.live && (s->h1.ex.head_sent || s->head_open);

    kr_h1_side_end_exchange(&s->h1, rc == KR_ENOMEM ? KR_ECONNLOST : rc);
    kr_buf_cleanse(&s->pending);
    if (s->h1.closing)
        return;
    if (answered)
        kr_h1_side_shut(&s->h1, KR_PIPE_ABORT, rc, why);
    else
        answer_bad(s, status, why);
}

/* ---- the exchange's calls ---- */

static struct server *server_of(struct kr_exchange *ex)
{
    return KR_CONTAINER_OF(ex, struct server, h1.ex);
}

/* The final answer to an upgrade decides what its bytes are; step sees to those that wait. */
static void settle_upgrade(struct server *s, int status)
{
    s->state = status == 101 ? RAW : DEAF;
    if (state_is(s, DEAF))
        kr_buf_cleanse(&s->pending);
    kr_task_post(s->h1.cfg.sched, &s->h1.step);
}

static int ex_send_head(struct kr_exchange *ex, const struct kr_head *head, bool end)
{
    struct server *s = server_of(ex);
    enum kr_h1_framing framing =
        kr_h1_answer_framing(head, end, s->h1.head_method, s->h1.reader.http10);
    int64_t length = kr_head_content_length(head);
    size_t before = s->h1.out.text.n;
    int rc;

    KR_ASSERT(s->h1.out.state == KR_H1_OUT_IDLE);
    if (head->status == 101 &&
        (!state_is(s, HOLD) || kr_head_find(head, KR_LIT("upgrade")) == NULL))
        return KR_EINVAL;
    rc = kr_h1_answer_head(&s->h1.out.text, head, framing, date_now(s));
    if (rc != 0) {
        s->h1.out.text.n = before;
        return rc;
    }
    if (framing == KR_H1_UNTIL_CLOSE || s->h1.reader.http10 || !s->h1.reader.keep_alive ||
        kr_head_has_token(head, KR_LIT("connection"), KR_LIT("close")))
        s->close_after = true;
    s->head_open = true;
    ex->expects_continue = false;
    if (state_is(s, HOLD))
        settle_upgrade(s, head->status);
    kr_h1_out_body(&s->h1.out, framing, length > 0 ? (uint64_t)length : 0, end);
    if (s->h1.out.state == KR_H1_OUT_BROKEN) /* a length without a body */
        kr_task_post(s->h1.cfg.sched, &s->h1.step);
    else if (!s->h1.in_fill)
        kr_pipe_want_fill(s->h1.pipe);
    return 0;
}

static void ex_send_continue(struct kr_exchange *ex)
{
    struct server *s = server_of(ex);

    if (s->h1.out.state == KR_H1_OUT_IDLE &&
        kr_buf_append_str(&s->h1.out.text, "HTTP/1.1 100 Continue\r\n\r\n") == 0)
        kr_h1_side_want_fill(&s->h1);
}

static void ex_consumed(struct kr_exchange *ex, size_t n)
{
    kr_h1_side_consumed(kr_h1_side_of(ex), n, server_of(ex)->pending.n < PENDING_MAX);
}

static void ex_abort(struct kr_exchange *ex, enum kr_abort how)
{
    struct server *s = server_of(ex);

    (void)how; /* HTTP/1.1 has one word for all of them */
    kr_h1_side_forget(&s->h1);
    kr_h1_side_shut(&s->h1, KR_PIPE_ABORT, 0, "the exchange was aborted");
}

static const struct kr_exchange_ops ex_ops = {
    ex_send_head,     ex_send_continue, kr_h1_side_send_trailers,
    kr_h1_side_ready, ex_consumed,      ex_abort,
};

/* ---- reading ---- */

static void start_message(struct server *s)
{
    s->state = READ;
    s->h1.ex = (struct kr_exchange){.ops = &ex_ops, .conn = &s->h1.conn};
    kr_head_init(&s->h1.ex.head, s->h1.cfg.max_head);
    kr_h1_reader_start(&s->h1.reader, &s->h1.ex.head, false);
    s->h1.head_method = false;
    s->h1.out.state = KR_H1_OUT_IDLE;
}

static void on_head(struct server *s)
{
    kr_timer_stop(s->h1.cfg.sched, &s->h1.timer);
    s->h1.live = true;
    s->h1.conn.exchanges = 1;
    s->h1.head_method = kr_bytes_is(s->h1.ex.head.method, "HEAD");
    s->h1.ex.expects_continue = s->h1.reader.expects_continue;
    s->h1.ex.in_ended = kr_h1_side_no_body(&s->h1);
    if (s->h1.reader.upgrade) {
        s->state = HOLD;
        s->h1.ex.upgrade = true;
        s->h1.ex.in_ended = false;
    }
    s->h1.conn.user_ops->on_request(s->h1.conn.owner, &s->h1.ex);
    KR_ASSERT(!s->h1.live || s->h1.ex.user_ops != NULL);
}

static void on_body(struct server *s, struct kr_bytes body)
{
    s->h1.ex.expects_continue = false; /* it did not wait (RFC 9110 section 10.1.1) */
    kr_h1_side_on_body(&s->h1, body);
}

static void on_end(struct server *s)
{
    if (!state_is(s, RAW))
        s->state = WAIT;
    kr_h1_side_on_end(&s->h1);
}

/* Reads from the front of *in until the request is whole or something is wrong. The user may end
 * the exchange or the connection in any call, so the state is asked again after each. */
static void parse(struct server *s, struct kr_bytes *in)
{
    bool idle = kr_h1_reader_idle(&s->h1.reader) && in->n != 0;
    enum kr_h1_event ev = KR_H1_HEAD;

    while (state_is(s, READ) && ev != KR_H1_MORE) {
        struct kr_bytes body;

        ev = kr_h1_read(&s->h1.reader, in, &body);
        if (ev == KR_H1_HEAD)
            on_head(s);
        else if (ev == KR_H1_BODY)
            on_body(s, body);
        else if (ev == KR_H1_END)
            on_end(s);
        else if (ev == KR_H1_FAILED)
            refuse(s, s->h1.reader.rc, s->h1.reader.status, s->h1.reader.why);
    }
    if (idle && state_is(s, READ) && !s->h1.live)
        kr_h1_side_set_timer(&s->h1, s->h1.cfg.head_timeout_ms);
}

/* What waited while the upgrade was not answered. */
static void hand_over_held(struct server *s)
{
    struct kr_buf held = s->pending;

    if (!state_is(s, RAW) || held.n == 0)
        return;
    kr_buf_init(&s->pending, held.max);
    on_body(s, kr_buf_bytes(&held));
    kr_buf_deinit(&held);
}

static void on_bytes(void *user, struct kr_bytes in)
{
    struct server *s = user;
    bool keep;

    if (state_is(s, READ) && s->pending.n == 0)
        parse(s, &in);
    hand_over_held(s);
    if (state_is(s, RAW) && in.n != 0)
        on_body(s, in);
    keep = state_is(s, READ) || state_is(s, WAIT) || state_is(s, HOLD);
    if (keep && in.n != 0 && kr_buf_append(&s->pending, in) != 0)
        kr_h1_side_shut(&s->h1, KR_PIPE_ABORT, KR_ENOMEM, "no memory for pipelined input");
    update_reading(s);
}

static void parse_pending(struct server *s)
{
    struct kr_bytes in = kr_buf_bytes(&s->pending);

    if (!state_is(s, READ) || in.n == 0)
        return;
    parse(s, &in);
    kr_buf_drop(&s->pending, s->pending.n - (in.n < s->pending.n ? in.n : s->pending.n));
    if (s->pending.n == 0)
        kr_buf_cleanse(&s->pending);
}

/* ---- the end of an answer ---- */

static void next_message(struct server *s)
{
    if (s->eof) {
        kr_h1_side_shut(&s->h1, KR_PIPE_FLUSH, 0, NULL);
        return;
    }
    start_message(s);
    kr_h1_side_set_timer(&s->h1, s->h1.cfg.idle_timeout_ms);
}

static void answered(struct server *s)
{
    bool whole = state_is(s, WAIT);

    kr_h1_side_end_exchange(&s->h1, 0);
    if (s->h1.closing)
        return;
    if (!whole || s->close_after || s->h1.conn.draining)
        kr_h1_side_shut(&s->h1, KR_PIPE_FLUSH, 0, NULL);
    else
        next_message(s);
}

static void run(struct server *s)
{
    hand_over_held(s);
    if (s->h1.closing)
        return;
    if (s->h1.out.state == KR_H1_OUT_BROKEN) {
        kr_h1_side_end_exchange(&s->h1, KR_EPROTO);
        kr_h1_side_shut(&s->h1, KR_PIPE_ABORT, KR_EPROTO, "the answer was cut short");
    } else if (kr_h1_out_done(&s->h1.out)) {
        answered(s);
    }
    parse_pending(s);
    update_reading(s);
    kr_h1_side_want_fill(&s->h1);
}

static void on_step(struct kr_task *t)
{
    run(KR_CONTAINER_OF(t, struct server, h1.step));
}

static void on_timer(struct kr_timer *t)
{
    struct server *s = KR_CONTAINER_OF(t, struct server, h1.timer);

    if (state_is(s, RAW)) /* the client ended its direction long ago */
        kr_h1_side_end_exchange(&s->h1, 0);
    if (state_is(s, READ) && !kr_h1_reader_idle(&s->h1.reader))
        answer_bad(s, 408, "the request head took too long");
    else
        kr_h1_side_shut(&s->h1, KR_PIPE_FLUSH, 0, NULL);
}

/* ---- the pipe's calls ---- */

static size_t fill(void *user, uint8_t *out, size_t room)
{
    struct server *s = user;
    size_t n = 0;

    if (s->h1.out.state == KR_H1_OUT_BROKEN)
        return 0;
    if (finish_head(s) != 0)
        kr_h1_out_cancel(&s->h1.out);
    s->h1.in_fill = true;
    if (s->h1.out.state != KR_H1_OUT_BROKEN)
        n = kr_h1_out_fill(&s->h1.out, s->h1.live ? &s->h1.ex : NULL, out, room);
    s->h1.in_fill = false;
    if (kr_h1_out_done(&s->h1.out) || s->h1.out.state == KR_H1_OUT_BROKEN)
        kr_task_post(s->h1.cfg.sched, &s->h1.step);
    return n;
}

static void raw_eof(struct server *s)
{
    hand_over_held(s);
    if (!state_is(s, RAW))
        return;
    kr_h1_side_set_timer(&s->h1, KR_UPGRADE_LINGER_MS);
    if (state_is(s, RAW))
        on_end(s);
}

static void on_eof(void *user)
{
    struct server *s = user;

    s->eof = true;
    if (state_is(s, RAW))
        raw_eof(s);
    else if (!s->h1.live)
        kr_h1_side_shut(&s->h1, KR_PIPE_FLUSH, 0, NULL);
    else if (!kr_h1_out_done(&s->h1.out)) /* a client that ends its side has gone (as Go sees it) */
        kr_h1_side_shut(&s->h1, KR_PIPE_ABORT, KR_ECONNLOST, "the client went away");
    /* else the answer is out; step sees the end */
}

static void on_close(void *user, int rc, const struct kr_note *why)
{
    struct server *s = user;

    kr_h1_side_closed(&s->h1, KR_ECONNLOST, rc, why);
    kr_h1_side_deinit(&s->h1);
    kr_buf_cleanse(&s->pending);
    free(s);
}

static const struct kr_pipe_user pipe_ops = {on_bytes, fill, on_eof, on_close};

/* ---- the connection's calls ---- */

static void conn_drain(struct kr_conn *c)
{
    struct server *s = KR_CONTAINER_OF(c, struct server, h1.conn);

    c->draining = true;
    if (state_is(s, READ) && !s->h1.live && kr_h1_reader_idle(&s->h1.reader) && s->pending.n == 0)
        kr_h1_side_shut(&s->h1, KR_PIPE_FLUSH, 0, NULL);
}

static const struct kr_conn_ops conn_ops = {NULL, conn_drain, kr_h1_side_close};

struct kr_conn *kr_h1_server_create(const struct kr_h1_config *cfg, struct kr_pipe *pipe)
{
    struct server *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    kr_task_init(&s->h1.step, on_step);
    kr_timer_init(&s->h1.timer, on_timer);
    if (kr_h1_side_init(&s->h1, cfg, pipe, &conn_ops, false) != 0) {
        free(s);
        return NULL;
    }
    kr_buf_init(&s->pending, PENDING_MAX + (4u << 20)); /* what was decrypted still comes */
    start_message(s);
    kr_pipe_attach(pipe, &pipe_ops, s);
    return &s->h1.conn;
}
