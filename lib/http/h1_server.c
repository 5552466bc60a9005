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
#include "http/h1_codec.h"
#include "http/h1_conn.h"
#include "http/h1_out.h"

enum {
    PENDING_MAX = 64 * 1024, /* pipelined or held bytes that wait; then reading stops */
    OWED_MAX = 64 * 1024,    /* body bytes the user has not consumed; then reading stops */
};

enum state {
    READ,    /* between requests, in a head or in a body */
    WAIT,    /* the request is whole; its exchange goes on */
    HOLD,    /* it asks for an upgrade and is not answered; what comes is kept */
    RAW,     /* upgraded */
    DEAF,    /* the upgrade was refused; what comes is thrown away */
    CLOSING, /* the pipe was told to close */
};

struct server {
    struct kr_conn conn;
    struct kr_h1_config cfg;
    struct kr_pipe *pipe;
    struct kr_exchange ex;
    struct kr_h1_reader reader;
    struct kr_h1_out out;
    struct kr_buf pending; /* input behind the current request */
    struct kr_task step;
    struct kr_timer timer; /* idle, head, or how long RAW outlives the client's end */
    size_t owed;
    uint8_t state;    /* enum state */
    bool live;        /* ex is in use */
    bool head_open;   /* out.text ends in a head whose last fields are not written yet */
    bool head_method; /* the request is HEAD */
    bool close_after; /* the client was told, or told us, that the connection ends */
    bool reading;
    bool in_fill;
    bool eof;
    int rc; /* for on_close, with why */
    const char *why;
    struct kr_h1_date date;
};

/* ---- small steps ---- */

static void shut(struct server *s, enum kr_pipe_close how, int rc, const char *why)
{
    if (s->state == CLOSING)
        return;
    s->state = CLOSING;
    s->rc = rc;
    s->why = why;
    kr_timer_stop(s->cfg.sched, &s->timer);
    if (how == KR_PIPE_ABORT)
        kr_h1_out_cancel(&s->out);
    kr_pipe_close(s->pipe, how);
}

static void set_timer(struct server *s, int64_t after_ms)
{
    if (after_ms <= 0)
        kr_timer_stop(s->cfg.sched, &s->timer);
    else if (kr_timer_start(s->cfg.sched, &s->timer, after_ms) != 0)
        shut(s, KR_PIPE_ABORT, KR_ENOMEM, "no memory for a timer");
}

/* Neither may be called inside fill: it may not call into the pipe, step makes up for it. */
static void update_reading(struct server *s)
{
    bool want = s->owed < OWED_MAX && s->pending.n < PENDING_MAX;

    if (s->in_fill) {
        kr_task_post(s->cfg.sched, &s->step);
        return;
    }
    if (s->state == CLOSING || want == s->reading)
        return;
    s->reading = want;
    kr_pipe_set_reading(s->pipe, want);
}

static void want_fill(struct server *s)
{
    if (s->in_fill)
        kr_task_post(s->cfg.sched, &s->step);
    else if (s->state != CLOSING && kr_h1_out_pending(&s->out))
        kr_pipe_want_fill(s->pipe);
}

static void exchange_over(struct server *s)
{
    s->live = false;
    s->conn.exchanges = 0;
    s->owed = 0;
    kr_head_deinit(&s->ex.head);
}

static void end_exchange(struct server *s, int rc)
{
    const struct kr_exchange_user *ops = s->ex.user_ops;
    void *user = s->ex.user;

    if (!s->live)
        return;
    exchange_over(s);
    ops->on_done(user, rc);
}

/* ---- answers ---- */

static const char *date_now(struct server *s)
{
    return kr_h1_date(&s->date, s->cfg.sched->now_wall_ms);
}

/* Connection: close is decided as late as possible: a small request body usually came whole by the
 * time its early answer leaves. */
static int finish_head(struct server *s)
{
    if (!s->head_open)
        return 0;
    s->head_open = false;
    s->ex.head_sent = true;
    if (s->state == RAW)
        return kr_buf_append_str(&s->out.text, "connection: Upgrade\r\n\r\n");
    if (s->conn.draining || !s->ex.in_ended || !s->live)
        s->close_after = true;
    return kr_buf_append_str(&s->out.text, s->close_after ? "connection: close\r\n\r\n" : "\r\n");
}

/* Answers what is no request, or stopped being one; nothing is parsed after it. */
static void answer_bad(struct server *s, int status, const char *why)
{
    int code = s->reader.rc != 0 ? s->reader.rc : KR_ETIMEDOUT;
    bool no_body = s->head_method || kr_bytes_is(s->ex.head.method, "HEAD");
    int rc = kr_h1_answer_bad(&s->out.text, &s->cfg, status, why, no_body, date_now(s));

    kr_h1_out_body(&s->out, KR_H1_NONE, 0, true);
    shut(s, rc == 0 ? KR_PIPE_FLUSH : KR_PIPE_ABORT, code, why);
}

static void refuse(struct server *s, int rc, int status, const char *why)
{
    bool answered = s->live && (s->ex.head_sent || s->head_open);

    end_exchange(s, rc == KR_ENOMEM ? KR_ECONNLOST : rc);
    kr_buf_cleanse(&s->pending);
    if (s->state == CLOSING)
        return;
    if (answered)
        shut(s, KR_PIPE_ABORT, rc, why);
    else
        answer_bad(s, status, why);
}

/* ---- the exchange's calls ---- */

static struct server *server_of(struct kr_exchange *ex)
{
    return KR_CONTAINER_OF(ex, struct server, ex);
}

/* The final answer to an upgrade decides what its bytes are; step sees to those that wait. */
static void settle_upgrade(struct server *s, int status)
{
    s->state = status == 101 ? RAW : DEAF;
    if (s->state == DEAF)
        kr_buf_cleanse(&s->pending);
    kr_task_post(s->cfg.sched, &s->step);
}

static int ex_send_head(struct kr_exchange *ex, const struct kr_head *head, bool end)
{
    struct server *s = server_of(ex);
    enum kr_h1_framing framing = kr_h1_answer_framing(head, end, s->head_method, s->reader.http10);
    int64_t length = kr_head_content_length(head);
    size_t before = s->out.text.n;
    int rc;

    KR_ASSERT(s->out.state == KR_H1_OUT_IDLE);
    if (head->status == 101 && (s->state != HOLD || kr_head_find(head, KR_LIT("upgrade")) == NULL))
        return KR_EINVAL;
    rc = kr_h1_answer_head(&s->out.text, head, framing, date_now(s));
    if (rc != 0) {
        s->out.text.n = before;
        return rc;
    }
    if (framing == KR_H1_UNTIL_CLOSE || s->reader.http10 || !s->reader.keep_alive ||
        kr_head_has_token(head, KR_LIT("connection"), KR_LIT("close")))
        s->close_after = true;
    s->head_open = true;
    ex->expects_continue = false;
    if (s->state == HOLD)
        settle_upgrade(s, head->status);
    kr_h1_out_body(&s->out, framing, length > 0 ? (uint64_t)length : 0, end);
    if (s->out.state == KR_H1_OUT_BROKEN) /* a length without a body */
        kr_task_post(s->cfg.sched, &s->step);
    else if (!s->in_fill)
        kr_pipe_want_fill(s->pipe);
    return 0;
}

static void ex_send_continue(struct kr_exchange *ex)
{
    struct server *s = server_of(ex);

    if (s->out.state == KR_H1_OUT_IDLE &&
        kr_buf_append_str(&s->out.text, "HTTP/1.1 100 Continue\r\n\r\n") == 0)
        want_fill(s);
}

static int ex_send_trailers(struct kr_exchange *ex, const struct kr_head *trailers)
{
    return kr_h1_out_trailers(&server_of(ex)->out, trailers);
}

static void ex_ready(struct kr_exchange *ex)
{
    want_fill(server_of(ex));
}

static void ex_consumed(struct kr_exchange *ex, size_t n)
{
    struct server *s = server_of(ex);

    KR_ASSERT(n <= s->owed);
    s->owed -= n;
    if (!s->reading)
        update_reading(s);
}

static void ex_abort(struct kr_exchange *ex, enum kr_abort how)
{
    struct server *s = server_of(ex);

    (void)how; /* HTTP/1.1 has one word for all of them */
    exchange_over(s);
    shut(s, KR_PIPE_ABORT, 0, "the exchange was aborted");
}

static const struct kr_exchange_ops ex_ops = {
    ex_send_head, ex_send_continue, ex_send_trailers, ex_ready, ex_consumed, ex_abort,
};

/* ---- reading ---- */

static void start_message(struct server *s)
{
    s->state = READ;
    s->ex = (struct kr_exchange){.ops = &ex_ops, .conn = &s->conn};
    kr_head_init(&s->ex.head, s->cfg.max_head);
    kr_h1_reader_start(&s->reader, &s->ex.head, false);
    s->head_method = false;
    s->out.state = KR_H1_OUT_IDLE;
}

static void on_head(struct server *s)
{
    kr_timer_stop(s->cfg.sched, &s->timer);
    s->live = true;
    s->conn.exchanges = 1;
    s->head_method = kr_bytes_is(s->ex.head.method, "HEAD");
    s->ex.expects_continue = s->reader.expects_continue;
    s->ex.in_ended = s->reader.framing == KR_H1_NONE ||
                     (s->reader.framing == KR_H1_LENGTH && s->reader.left == 0);
    if (s->reader.upgrade) {
        s->state = HOLD;
        s->ex.upgrade = true;
        s->ex.in_ended = false;
    }
    s->conn.user_ops->on_request(s->conn.owner, &s->ex);
    KR_ASSERT(!s->live || s->ex.user_ops != NULL);
}

static void on_body(struct server *s, struct kr_bytes body)
{
    s->ex.expects_continue = false; /* it did not wait (RFC 9110 section 10.1.1) */
    s->owed += body.n;
    s->ex.user_ops->on_body(s->ex.user, body);
}

static void on_end(struct server *s)
{
    const struct kr_head *trailers = s->reader.trailers.n != 0 ? &s->reader.trailers : NULL;

    if (s->state != RAW)
        s->state = WAIT;
    s->ex.in_ended = true;
    s->ex.user_ops->on_end(s->ex.user, trailers);
}

/* Reads from the front of *in until the request is whole or something is wrong. The user may end
 * the exchange or the connection in any call, so the state is asked again after each. */
static void parse(struct server *s, struct kr_bytes *in)
{
    bool idle = kr_h1_reader_idle(&s->reader) && in->n != 0;
    enum kr_h1_event ev = KR_H1_HEAD;

    while (s->state == READ && ev != KR_H1_MORE) {
        struct kr_bytes body;

        ev = kr_h1_read(&s->reader, in, &body);
        if (ev == KR_H1_HEAD)
            on_head(s);
        else if (ev == KR_H1_BODY)
            on_body(s, body);
        else if (ev == KR_H1_END)
            on_end(s);
        else if (ev == KR_H1_FAILED)
            refuse(s, s->reader.rc, s->reader.status, s->reader.why);
    }
    if (idle && s->state == READ && !s->live)
        set_timer(s, s->cfg.head_timeout_ms);
}

/* What waited while the upgrade was not answered. */
static void hand_over_held(struct server *s)
{
    struct kr_buf held = s->pending;

    if (s->state != RAW || held.n == 0)
        return;
    kr_buf_init(&s->pending, held.max);
    on_body(s, kr_buf_bytes(&held));
    kr_buf_deinit(&held);
}

static void on_bytes(void *user, struct kr_bytes in)
{
    struct server *s = user;
    bool keep;

    if (s->state == READ && s->pending.n == 0)
        parse(s, &in);
    hand_over_held(s);
    if (s->state == RAW && in.n != 0)
        on_body(s, in);
    keep = s->state == READ || s->state == WAIT || s->state == HOLD;
    if (keep && in.n != 0 && kr_buf_append(&s->pending, in) != 0)
        shut(s, KR_PIPE_ABORT, KR_ENOMEM, "no memory for pipelined input");
    update_reading(s);
}

static void parse_pending(struct server *s)
{
    struct kr_bytes in = kr_buf_bytes(&s->pending);

    if (s->state != READ || in.n == 0)
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
        shut(s, KR_PIPE_FLUSH, 0, NULL);
        return;
    }
    start_message(s);
    set_timer(s, s->cfg.idle_timeout_ms);
}

static void answered(struct server *s)
{
    bool whole = s->state == WAIT;

    end_exchange(s, 0);
    if (s->state == CLOSING)
        return;
    if (!whole || s->close_after || s->conn.draining)
        shut(s, KR_PIPE_FLUSH, 0, NULL);
    else
        next_message(s);
}

static void run(struct server *s)
{
    hand_over_held(s);
    if (s->state == CLOSING)
        return;
    if (s->out.state == KR_H1_OUT_BROKEN) {
        end_exchange(s, KR_EPROTO);
        shut(s, KR_PIPE_ABORT, KR_EPROTO, "the answer was cut short");
    } else if (kr_h1_out_done(&s->out)) {
        answered(s);
    }
    parse_pending(s);
    update_reading(s);
    want_fill(s);
}

static void on_step(struct kr_task *t)
{
    run(KR_CONTAINER_OF(t, struct server, step));
}

static void on_timer(struct kr_timer *t)
{
    struct server *s = KR_CONTAINER_OF(t, struct server, timer);

    if (s->state == RAW) /* the client ended its direction long ago */
        end_exchange(s, 0);
    if (s->state == READ && !kr_h1_reader_idle(&s->reader))
        answer_bad(s, 408, "the request head took too long");
    else
        shut(s, KR_PIPE_FLUSH, 0, NULL);
}

/* ---- the pipe's calls ---- */

static size_t fill(void *user, uint8_t *out, size_t room)
{
    struct server *s = user;
    size_t n = 0;

    if (s->out.state == KR_H1_OUT_BROKEN)
        return 0;
    if (finish_head(s) != 0)
        kr_h1_out_cancel(&s->out);
    s->in_fill = true;
    if (s->out.state != KR_H1_OUT_BROKEN)
        n = kr_h1_out_fill(&s->out, s->live ? &s->ex : NULL, out, room);
    s->in_fill = false;
    if (kr_h1_out_done(&s->out) || s->out.state == KR_H1_OUT_BROKEN)
        kr_task_post(s->cfg.sched, &s->step);
    return n;
}

static void raw_eof(struct server *s)
{
    hand_over_held(s);
    if (s->state != RAW)
        return;
    set_timer(s, KR_UPGRADE_LINGER_MS);
    if (s->state == RAW)
        on_end(s);
}

static void on_eof(void *user)
{
    struct server *s = user;

    s->eof = true;
    if (s->state == RAW)
        raw_eof(s);
    else if (!s->live)
        shut(s, KR_PIPE_FLUSH, 0, NULL);
    else if (!kr_h1_out_done(&s->out)) /* a client that ends its side has gone (as Go sees it) */
        shut(s, KR_PIPE_ABORT, KR_ECONNLOST, "the client went away");
    /* else the answer is out; step sees the end */
}

static void on_close(void *user, int rc, const struct kr_note *why)
{
    struct server *s = user;
    struct kr_note note = *why;

    s->state = CLOSING;
    kr_task_cancel(&s->step);
    kr_timer_stop(s->cfg.sched, &s->timer);
    end_exchange(s, KR_ECONNLOST);
    if (s->why != NULL)
        kr_note_set(&note, 0, "%s", s->why);
    s->conn.user_ops->on_close(s->conn.owner, s->rc != 0 ? s->rc : rc, &note);
    kr_task_cancel(&s->step);
    kr_h1_reader_deinit(&s->reader);
    kr_h1_out_deinit(&s->out);
    kr_buf_cleanse(&s->pending);
    kr_head_deinit(&s->ex.head);
    free(s);
}

static const struct kr_pipe_user pipe_ops = {on_bytes, fill, on_eof, on_close};

/* ---- the connection's calls ---- */

static void conn_drain(struct kr_conn *c)
{
    struct server *s = KR_CONTAINER_OF(c, struct server, conn);

    c->draining = true;
    if (s->state == READ && !s->live && kr_h1_reader_idle(&s->reader) && s->pending.n == 0)
        shut(s, KR_PIPE_FLUSH, 0, NULL);
}

static void conn_close(struct kr_conn *c)
{
    shut(KR_CONTAINER_OF(c, struct server, conn), KR_PIPE_ABORT, 0, NULL);
}

static const struct kr_conn_ops conn_ops = {NULL, conn_drain, conn_close};

struct kr_conn *kr_h1_server_create(const struct kr_h1_config *cfg, struct kr_pipe *pipe)
{
    struct server *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->conn = (struct kr_conn){
        .ops = &conn_ops, .user_ops = cfg->user_ops, .owner = cfg->owner, .peer = cfg->peer};
    s->cfg = *cfg;
    if (s->cfg.max_head == 0)
        s->cfg.max_head = KR_HEAD_MAX;
    s->pipe = pipe;
    kr_h1_reader_init(&s->reader, false, s->cfg.max_head);
    kr_h1_out_init(&s->out);
    kr_buf_init(&s->pending, PENDING_MAX + (4u << 20)); /* what was decrypted still comes */
    kr_task_init(&s->step, on_step);
    kr_timer_init(&s->timer, on_timer);
    start_message(s);
    if (cfg->idle_timeout_ms > 0 &&
        kr_timer_start(cfg->sched, &s->timer, cfg->idle_timeout_ms) != 0) {
        free(s);
        return NULL;
    }
    s->reading = true;
    kr_pipe_attach(pipe, &pipe_ops, s);
    return &s->conn;
}
