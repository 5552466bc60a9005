/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: open writes the head, fill hands it over and pulls the body; on_bytes reads the
 * answer; step ends the exchange when both are whole, and the connection is free again (or closes
 * if either side said so). An upgrade: the user's bytes wait until 101 makes the connection raw;
 * then every byte goes straight through until the user's direction ends. Whatever the answer, the
 * connection closes behind it (CVE-2018-1002105). Failure modes: whatever breaks while an exchange
 * runs closes the connection at once and ends the exchange with it (KR_EREFUSED if nothing of the
 * request had been handed over); bytes that answer no request do the same. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "http/h1_codec.h"
#include "http/h1_conn.h"
#include "http/h1_out.h"

enum {
    OWED_MAX = 64 * 1024, /* body bytes the user has not consumed; then reading stops */
    INFORMATIONAL_MAX = 32,
    TOKEN_MAX = 64, /* of a protocol to upgrade to */
};

struct client {
    struct kr_conn conn;
    struct kr_h1_config cfg;
    struct kr_pipe *pipe;
    struct kr_exchange ex;
    struct kr_h1_reader reader;
    struct kr_h1_out out;
    struct kr_task step;
    struct kr_timer timer; /* unused, or how long a raw connection outlives the server's end */
    size_t owed;
    unsigned informational; /* 1xx heads of this exchange */
    bool live;              /* ex is in use */
    bool head_method;       /* the request is HEAD */
    bool raw;               /* upgraded */
    bool raw_end;           /* the user sends nothing after the upgrade */
    uint8_t token_n;        /* length of the protocol that was asked for; 0: none */
    char token[TOKEN_MAX];
    bool told_drain; /* on_drain was called */
    bool closing;    /* the pipe was told to close */
    bool reading;
    bool in_fill;
    int ex_rc; /* what the running exchange ends with; 0: by the rules */
    int rc;    /* for on_close, with why */
    const char *why;
};

/* ---- small steps ---- */

static void shut(struct client *c, enum kr_pipe_close how, int rc, const char *why)
{
    c->conn.draining = true;
    if (c->closing)
        return;
    c->closing = true;
    c->rc = rc;
    c->why = why;
    kr_timer_stop(c->cfg.sched, &c->timer);
    if (how == KR_PIPE_ABORT)
        kr_h1_out_cancel(&c->out);
    kr_pipe_close(c->pipe, how);
}

/* The peer broke the rules: the running exchange ends with rc once the pipe is closed. */
static void fail(struct client *c, int rc, const char *why)
{
    c->ex_rc = rc;
    shut(c, KR_PIPE_ABORT, rc, why);
}

static void start_idle(struct client *c)
{
    if (c->cfg.idle_timeout_ms > 0 && !c->closing &&
        kr_timer_start(c->cfg.sched, &c->timer, c->cfg.idle_timeout_ms) != 0)
        shut(c, KR_PIPE_ABORT, KR_ENOMEM, "no memory for a timer");
}

/* Neither may be called inside fill: it may not call into the pipe, step makes up for it. */
static void update_reading(struct client *c)
{
    bool want = c->owed < OWED_MAX;

    if (c->in_fill) {
        kr_task_post(c->cfg.sched, &c->step);
        return;
    }
    if (c->closing || want == c->reading)
        return;
    c->reading = want;
    kr_pipe_set_reading(c->pipe, want);
}

static void want_fill(struct client *c)
{
    if (c->in_fill)
        kr_task_post(c->cfg.sched, &c->step);
    else if (!c->closing && kr_h1_out_pending(&c->out))
        kr_pipe_want_fill(c->pipe);
}

static void exchange_over(struct client *c)
{
    c->live = false;
    c->conn.exchanges = 0;
    c->owed = 0;
    kr_head_deinit(&c->ex.head);
}

static void end_exchange(struct client *c, int rc)
{
    const struct kr_exchange_user *ops = c->ex.user_ops;
    void *user = c->ex.user;

    if (!c->live)
        return;
    exchange_over(c);
    ops->on_done(user, rc);
}

/* ---- the exchange's calls ---- */

static struct client *client_of(struct kr_exchange *ex)
{
    return KR_CONTAINER_OF(ex, struct client, ex);
}

static int ex_send_head(struct kr_exchange *ex, const struct kr_head *head, bool end)
{
    (void)ex;
    (void)head;
    (void)end;
    KR_ASSERT(!"the request head is sent by open");
    return KR_EINVAL;
}

static void ex_send_continue(struct kr_exchange *ex)
{
    (void)ex;
}

static int ex_send_trailers(struct kr_exchange *ex, const struct kr_head *trailers)
{
    return kr_h1_out_trailers(&client_of(ex)->out, trailers);
}

static void ex_ready(struct kr_exchange *ex)
{
    want_fill(client_of(ex));
}

static void ex_consumed(struct kr_exchange *ex, size_t n)
{
    struct client *c = client_of(ex);

    KR_ASSERT(n <= c->owed);
    c->owed -= n;
    if (!c->reading)
        update_reading(c);
}

/* A request of which nothing left leaves the connection as it was. */
static void ex_abort(struct kr_exchange *ex, enum kr_abort how)
{
    struct client *c = client_of(ex);
    bool untouched = !ex->head_sent && !c->closing;

    (void)how; /* HTTP/1.1 has one word for all of them */
    exchange_over(c);
    if (!untouched) {
        shut(c, KR_PIPE_ABORT, 0, "the exchange was aborted");
        return;
    }
    kr_h1_out_cancel(&c->out);
    c->out.state = KR_H1_OUT_IDLE;
    if (c->conn.draining)
        shut(c, KR_PIPE_FLUSH, 0, NULL);
    else
        start_idle(c);
}

static const struct kr_exchange_ops ex_ops = {
    ex_send_head, ex_send_continue, ex_send_trailers, ex_ready, ex_consumed, ex_abort,
};

/* ---- the request ---- */

/* Whether a request without a body says so (RFC 9110 section 8.6). */
static bool says_no_body(struct kr_bytes method)
{
    return kr_bytes_is(method, "POST") || kr_bytes_is(method, "PUT") ||
           kr_bytes_is(method, "PATCH");
}

static int write_request(struct client *c, const struct kr_head *head, bool end)
{
    int64_t length = kr_head_content_length(head);
    struct kr_buf *text = &c->out.text;
    int rc;

    if (head->protocol.n != 0) { /* without a body: nothing is sent before 101 */
        if (head->protocol.n > TOKEN_MAX || length > 0)
            return KR_EINVAL;
        length = -1;
        end = true;
    }
    rc = kr_h1_write_request(text, head, length >= 0);
    if (rc == 0 && head->protocol.n != 0)
        rc = kr_h1_write_upgrade(text, head->protocol);

    if (rc == 0 && length < 0 && !end)
        rc = kr_buf_append_str(text, "transfer-encoding: chunked\r\n");
    if (rc == 0 && length < 0 && end && says_no_body(head->method))
        rc = kr_buf_append_str(text, "content-length: 0\r\n");
    if (rc == 0)
        rc = kr_buf_append_str(text, "\r\n");
    if (rc != 0)
        return rc;
    if (length >= 0)
        kr_h1_out_body(&c->out, KR_H1_LENGTH, (uint64_t)length, end);
    else
        kr_h1_out_body(&c->out, end ? KR_H1_NONE : KR_H1_CHUNKED, 0, end);
    return 0;
}

static void begin_answer(struct client *c)
{
    kr_head_deinit(&c->ex.head);
    kr_h1_reader_start(&c->reader, &c->ex.head, c->head_method);
}

static bool has_room(const struct kr_conn *conn)
{
    const struct client *c = KR_CONTAINER_OF(conn, const struct client, conn);

    return !c->live && !c->closing && !conn->draining;
}

static struct kr_exchange *conn_open(struct kr_conn *conn, const struct kr_head *head, bool end,
                                     const struct kr_exchange_user *ops, void *user)
{
    struct client *c = KR_CONTAINER_OF(conn, struct client, conn);

    if (!has_room(conn))
        return NULL;
    if (write_request(c, head, end) != 0 || c->out.state == KR_H1_OUT_BROKEN) {
        kr_h1_out_cancel(&c->out);
        c->out.state = KR_H1_OUT_IDLE;
        return NULL;
    }
    kr_timer_stop(c->cfg.sched, &c->timer);
    c->ex = (struct kr_exchange){.ops = &ex_ops, .conn = conn, .user_ops = ops, .user = user};
    kr_head_init(&c->ex.head, c->cfg.max_head);
    c->live = true;
    conn->exchanges = 1;
    conn->draining = head->protocol.n != 0; /* whatever becomes of it, the connection is spent */
    c->token_n = (uint8_t)head->protocol.n;
    if (c->token_n != 0)
        memcpy(c->token, head->protocol.p, c->token_n);
    c->raw_end = end;
    c->informational = 0;
    c->ex_rc = 0;
    c->head_method = kr_bytes_is(head->method, "HEAD");
    begin_answer(c);
    kr_pipe_want_fill(c->pipe);
    return &c->ex;
}

/* ---- the answer ---- */

static void tell_drain(struct client *c)
{
    c->conn.draining = true;
    if (!c->told_drain && c->conn.user_ops->on_drain != NULL)
        c->conn.user_ops->on_drain(c->conn.owner);
    c->told_drain = true;
}

/* Whether the head names the protocol that was asked for, and no other. */
static bool names_token(const struct client *c)
{
    struct kr_bytes token = kr_bytes_of(c->token, c->token_n);
    size_t same = 0;
    size_t all = 0;

    for (size_t i = 0; i < c->ex.head.n; i++) {
        const struct kr_field *f = &c->ex.head.fields[i];

        if (kr_bytes_is(f->name, "upgrade")) {
            all++;
            same += kr_bytes_eq_fold(f->value, token);
        }
    }
    return all == 1 && same == 1;
}

static void on_upgraded(struct client *c)
{
    if (c->token_n == 0) {
        fail(c, KR_EPROTO, "the server switches protocols unasked");
        return;
    }
    if (!names_token(c)) {
        fail(c, KR_EPROTO, "the server switches to another protocol than asked for");
        return;
    }
    tell_drain(c);
    if (!c->live || c->closing)
        return;
    c->raw = true;
    kr_h1_out_body(&c->out, KR_H1_UNTIL_CLOSE, 0, c->raw_end);
    kr_task_post(c->cfg.sched, &c->step); /* asks for the bytes that the user kept back */
    c->ex.user_ops->on_head(c->ex.user);
}

static void on_head(struct client *c)
{
    int status = c->ex.head.status;

    if (status == 101) {
        on_upgraded(c);
        return;
    }
    if (status < 200) {
        if (++c->informational > INFORMATIONAL_MAX)
            fail(c, KR_EPROTO, "too many informational answers");
        else
            begin_answer(c);
        return;
    }
    if (!c->reader.keep_alive || c->token_n != 0)
        tell_drain(c);
    if (!c->live || c->closing)
        return;
    c->ex.in_ended = c->reader.framing == KR_H1_NONE ||
                     (c->reader.framing == KR_H1_LENGTH && c->reader.left == 0);
    c->ex.user_ops->on_head(c->ex.user);
}

static void on_body(struct client *c, struct kr_bytes body)
{
    c->owed += body.n;
    c->ex.user_ops->on_body(c->ex.user, body);
}

static void on_end(struct client *c)
{
    const struct kr_head *trailers = c->reader.trailers.n != 0 ? &c->reader.trailers : NULL;

    c->ex.in_ended = true;
    kr_task_post(c->cfg.sched, &c->step);
    c->ex.user_ops->on_end(c->ex.user, trailers);
}

static void on_event(struct client *c, enum kr_h1_event ev, struct kr_bytes body)
{
    switch (ev) {
    case KR_H1_HEAD:
        on_head(c);
        break;
    case KR_H1_BODY:
        on_body(c, body);
        break;
    case KR_H1_END:
        on_end(c);
        break;
    case KR_H1_FAILED:
        fail(c, c->reader.rc, c->reader.why);
        break;
    case KR_H1_MORE:
        break;
    }
}

/* Whether the answer that came is whole (END was seen, or the end of a raw direction). */
static bool answer_whole(const struct client *c)
{
    return c->live && c->ex.in_ended && kr_h1_reader_idle(&c->reader);
}

/* Whether bytes may come now: only as the answer to a request of which something left. */
static bool expects_bytes(const struct client *c)
{
    return c->live && c->ex.head_sent && !answer_whole(c);
}

static void on_bytes(void *user, struct kr_bytes in)
{
    struct client *c = user;
    enum kr_h1_event ev = KR_H1_HEAD;

    if (!c->closing && !expects_bytes(c)) {
        c->ex_rc = answer_whole(c) ? c->ex_rc : KR_EREFUSED;
        tell_drain(c);
        if (!answer_whole(c)) /* else step ends the exchange well, then closes */
            shut(c, KR_PIPE_ABORT, KR_EPROTO, "bytes came that answer no request");
        return;
    }
    while (!c->closing && c->live && !c->raw && ev != KR_H1_MORE) {
        struct kr_bytes body = {NULL, 0};

        ev = kr_h1_read(&c->reader, &in, &body);
        on_event(c, ev, body);
    }
    if (!c->closing && c->raw && in.n != 0)
        on_body(c, in);
    else if (!c->closing && in.n != 0) /* behind the answer */
        tell_drain(c);
    update_reading(c);
}

static bool request_whole(const struct client *c)
{
    const struct kr_h1_out *o = &c->out;

    if (o->framing == KR_H1_LENGTH && o->left == 0 && o->text.n == 0)
        return true; /* though its user has not said so yet */
    return kr_h1_out_done(o);
}

/* Both messages are over, or the answer needs no more of the request. */
static void finish(struct client *c)
{
    if (request_whole(c) && !c->conn.draining)
        c->out.state = KR_H1_OUT_IDLE;
    else
        tell_drain(c);
    end_exchange(c, 0);
    if (c->closing || c->live) /* the user may have opened the next one */
        return;
    if (c->conn.draining)
        shut(c, KR_PIPE_FLUSH, 0, NULL);
    else
        start_idle(c);
}

static void on_step(struct kr_task *t)
{
    struct client *c = KR_CONTAINER_OF(t, struct client, step);

    if (c->closing)
        return;
    if (c->raw ? kr_h1_out_done(&c->out) : answer_whole(c))
        finish(c);
    else if (c->out.state == KR_H1_OUT_BROKEN)
        fail(c, KR_EPROTO, "the request body did not keep to its length");
    update_reading(c);
    want_fill(c);
}

static void on_timer(struct kr_timer *t)
{
    struct client *c = KR_CONTAINER_OF(t, struct client, timer);

    end_exchange(c, 0); /* a raw one whose server ended its direction long ago */
    shut(c, KR_PIPE_FLUSH, 0, NULL);
}

/* ---- the pipe's calls ---- */

static size_t fill(void *user, uint8_t *out, size_t room)
{
    struct client *c = user;
    size_t n;

    if (c->out.state == KR_H1_OUT_BROKEN)
        return 0;
    c->ex.head_sent |= c->live && c->out.text.n != 0;
    c->in_fill = true;
    n = kr_h1_out_fill(&c->out, c->live ? &c->ex : NULL, out, room);
    c->in_fill = false;
    if (c->out.state == KR_H1_OUT_BROKEN || (c->raw && kr_h1_out_done(&c->out)))
        kr_task_post(c->cfg.sched, &c->step);
    return n;
}

static void raw_eof(struct client *c)
{
    if (kr_timer_start(c->cfg.sched, &c->timer, KR_UPGRADE_LINGER_MS) == 0)
        on_end(c);
    else
        shut(c, KR_PIPE_ABORT, KR_ENOMEM, "no memory for a timer");
}

static void on_eof(void *user)
{
    struct client *c = user;

    if (c->closing)
        return;
    if (c->raw) {
        raw_eof(c);
        return;
    }
    tell_drain(c);
    if (c->closing)
        return;
    if (c->live && !answer_whole(c) && kr_h1_read_eof(&c->reader) == KR_H1_END)
        on_end(c);
    if (!c->closing && !answer_whole(c))
        shut(c, KR_PIPE_ABORT, c->live ? KR_ECONNLOST : 0, "the server closed the connection");
}

static int final_code(const struct client *c)
{
    if (answer_whole(c))
        return 0;
    if (!c->ex.head_sent)
        return KR_EREFUSED;
    return c->ex_rc != 0 ? c->ex_rc : KR_ECONNLOST;
}

static void on_close(void *user, int rc, const struct kr_note *why)
{
    struct client *c = user;
    struct kr_note note = *why;

    c->closing = c->conn.draining = true;
    kr_timer_stop(c->cfg.sched, &c->timer);
    end_exchange(c, final_code(c));
    if (c->why != NULL)
        kr_note_set(&note, 0, "%s", c->why);
    c->conn.user_ops->on_close(c->conn.owner, c->rc != 0 ? c->rc : rc, &note);
    kr_task_cancel(&c->step);
    kr_h1_reader_deinit(&c->reader);
    kr_h1_out_deinit(&c->out);
    kr_head_deinit(&c->ex.head);
    free(c);
}

static const struct kr_pipe_user pipe_ops = {on_bytes, fill, on_eof, on_close};

/* ---- the connection's calls ---- */

static void conn_drain(struct kr_conn *conn)
{
    struct client *c = KR_CONTAINER_OF(conn, struct client, conn);

    conn->draining = true;
    if (!c->live)
        shut(c, KR_PIPE_FLUSH, 0, NULL);
}

static void conn_close(struct kr_conn *conn)
{
    shut(KR_CONTAINER_OF(conn, struct client, conn), KR_PIPE_ABORT, 0, NULL);
}

static const struct kr_conn_ops conn_ops = {conn_open, conn_drain, conn_close, has_room};

struct kr_conn *kr_h1_client_create(const struct kr_h1_config *cfg, struct kr_pipe *pipe)
{
    struct client *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->conn = (struct kr_conn){
        .ops = &conn_ops, .user_ops = cfg->user_ops, .owner = cfg->owner, .peer = cfg->peer};
    c->cfg = *cfg;
    if (c->cfg.max_head == 0)
        c->cfg.max_head = KR_HEAD_MAX;
    c->pipe = pipe;
    kr_h1_reader_init(&c->reader, true, c->cfg.max_head);
    kr_h1_out_init(&c->out);
    kr_task_init(&c->step, on_step);
    kr_timer_init(&c->timer, on_timer);
    if (cfg->idle_timeout_ms > 0 &&
        kr_timer_start(cfg->sched, &c->timer, cfg->idle_timeout_ms) != 0) {
        free(c);
        return NULL;
    }
    c->reading = true;
    kr_pipe_attach(pipe, &pipe_ops, c);
    return &c->conn;
}
