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
#include "http/h1_side.h"

enum {
    INFORMATIONAL_MAX = 32,
    TOKEN_MAX = 64, /* of a protocol to upgrade to */
};

struct client {
    struct kr_h1_side h1;   /* its timer: idle, or how long raw outlives the server's end */
    unsigned informational; /* 1xx heads of this exchange */
    bool raw;               /* upgraded */
    bool raw_end;           /* the user sends nothing after the upgrade */
    bool told_drain;        /* on_drain was called */
    uint8_t token_n;        /* length of the protocol that was asked for; 0: none */
    char token[TOKEN_MAX];
    int ex_rc; /* what the running exchange ends with; 0: by the rules */
};

/* ---- small steps ---- */

/* The peer broke the rules: the running exchange ends with rc once the pipe is closed. */
static void fail(struct client *c, int rc, const char *why)
{
    c->ex_rc = rc;
    kr_h1_side_shut(&c->h1, KR_PIPE_ABORT, rc, why);
}

/* ---- the exchange's calls ---- */

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

static void ex_consumed(struct kr_exchange *ex, size_t n)
{
    kr_h1_side_consumed(kr_h1_side_of(ex), n, true);
}

/* A request of which nothing left leaves the connection as it was. */
static void ex_abort(struct kr_exchange *ex, enum kr_abort how)
{
    struct client *c = KR_CONTAINER_OF(ex, struct client, h1.ex);
    bool untouched = !ex->head_sent && !c->h1.closing;

    (void)how; /* HTTP/1.1 has one word for all of them */
    kr_h1_side_forget(&c->h1);
    if (!untouched) {
        kr_h1_side_shut(&c->h1, KR_PIPE_ABORT, 0, "the exchange was aborted");
        return;
    }
    kr_h1_out_cancel(&c->h1.out);
    c->h1.out.state = KR_H1_OUT_IDLE;
    if (c->h1.conn.draining)
        kr_h1_side_shut(&c->h1, KR_PIPE_FLUSH, 0, NULL);
    else
        kr_h1_side_set_timer(&c->h1, c->h1.cfg.idle_timeout_ms);
}

static const struct kr_exchange_ops ex_ops = {
    ex_send_head,     ex_send_continue, kr_h1_side_send_trailers,
    kr_h1_side_ready, ex_consumed,      ex_abort,
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
    struct kr_buf *text = &c->h1.out.text;
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
        kr_h1_out_body(&c->h1.out, KR_H1_LENGTH, (uint64_t)length, end);
    else
        kr_h1_out_body(&c->h1.out, end ? KR_H1_NONE : KR_H1_CHUNKED, 0, end);
    return 0;
}

static void begin_answer(struct client *c)
{
    kr_head_deinit(&c->h1.ex.head);
    kr_h1_reader_start(&c->h1.reader, &c->h1.ex.head, c->h1.head_method);
}

static bool has_room(const struct kr_conn *conn)
{
    const struct client *c = KR_CONTAINER_OF(conn, const struct client, h1.conn);

    return !c->h1.live && !c->h1.closing && !conn->draining;
}

static struct kr_exchange *conn_open(struct kr_conn *conn, const struct kr_head *head, bool end,
                                     const struct kr_exchange_user *ops, void *user)
{
    struct client *c = KR_CONTAINER_OF(conn, struct client, h1.conn);

    if (!has_room(conn))
        return NULL;
    if (write_request(c, head, end) != 0 || c->h1.out.state == KR_H1_OUT_BROKEN) {
        kr_h1_out_cancel(&c->h1.out);
        c->h1.out.state = KR_H1_OUT_IDLE;
        return NULL;
    }
    kr_timer_stop(c->h1.cfg.sched, &c->h1.timer);
    c->h1.ex = (struct kr_exchange){.ops = &ex_ops, .conn = conn, .user_ops = ops, .user = user};
    kr_head_init(&c->h1.ex.head, c->h1.cfg.max_head);
    c->h1.live = true;
    conn->exchanges = 1;
    conn->draining = head->protocol.n != 0; /* whatever becomes of it, the connection is spent */
    c->token_n = (uint8_t)head->protocol.n;
    if (c->token_n != 0)
        memcpy(c->token, head->protocol.p, c->token_n);
    c->raw_end = end;
    c->informational = 0;
    c->ex_rc = 0;
    c->h1.head_method = kr_bytes_is(head->method, "HEAD");
    begin_answer(c);
    kr_pipe_want_fill(c->h1.pipe);
    return &c->h1.ex;
}

/* ---- the answer ---- */

static void tell_drain(struct client *c)
{
    c->h1.conn.draining = true;
    if (!c->told_drain && c->h1.conn.user_ops->on_drain != NULL)
        c->h1.conn.user_ops->on_drain(c->h1.conn.owner);
    c->told_drain = true;
}

/* Whether the head names the protocol that was asked for, and no other. */
static bool names_token(const struct client *c)
{
    struct kr_bytes token = kr_bytes_of(c->token, c->token_n);
    size_t same = 0;
    size_t all = 0;

    for (size_t i = 0; i < c->h1.ex.head.n; i++) {
        const struct kr_field *f = &c->h1.ex.head.fields[i];

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
    if (!c->h1.live || c->h1.closing)
        return;
    c->raw = true;
    kr_h1_out_body(&c->h1.out, KR_H1_UNTIL_CLOSE, 0, c->raw_end);
    kr_task_post(c->h1.cfg.sched, &c->h1.step); /* asks for the bytes that the user kept back */
    c->h1.ex.user_ops->on_head(c->h1.ex.user);
}

static void on_head(struct client *c)
{
    int status = c->h1.ex.head.status;

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
    if (!c->h1.reader.keep_alive || c->token_n != 0)
        tell_drain(c);
    if (!c->h1.live || c->h1.closing)
        return;
    c->h1.ex.in_ended = kr_h1_side_no_body(&c->h1);
    c->h1.ex.user_ops->on_head(c->h1.ex.user);
}

static void on_end(struct client *c)
{
    kr_task_post(c->h1.cfg.sched, &c->h1.step);
    kr_h1_side_on_end(&c->h1);
}

static void on_event(struct client *c, enum kr_h1_event ev, struct kr_bytes body)
{
    switch (ev) {
    case KR_H1_HEAD:
        on_head(c);
        break;
    case KR_H1_BODY:
        kr_h1_side_on_body(&c->h1, body);
        break;
    case KR_H1_END:
        on_end(c);
        break;
    case KR_H1_FAILED:
        fail(c, c->h1.reader.rc, c->h1.reader.why);
        break;
    case KR_H1_MORE:
        break;
    }
}

/* Whether the answer that came is whole (END was seen, or the end of a raw direction). */
static bool answer_whole(const struct client *c)
{
    return c->h1.live && c->h1.ex.in_ended && kr_h1_reader_idle(&c->h1.reader);
}

/* Whether bytes may come now: only as the answer to a request of which something left. */
static bool expects_bytes(const struct client *c)
{
    return c->h1.live && c->h1.ex.head_sent && !answer_whole(c);
}

static void on_bytes(void *user, struct kr_bytes in)
{
    struct client *c = user;
    enum kr_h1_event ev = KR_H1_HEAD;

    if (!c->h1.closing && !expects_bytes(c)) {
        c->ex_rc = answer_whole(c) ? c->ex_rc : KR_EREFUSED;
        tell_drain(c);
        if (!answer_whole(c)) /* else step ends the exchange well, then closes */
            kr_h1_side_shut(&c->h1, KR_PIPE_ABORT, KR_EPROTO, "bytes came that answer no request");
        return;
    }
    while (!c->h1.closing && c->h1.live && !c->raw && ev != KR_H1_MORE) {
        struct kr_bytes body = {NULL, 0};

        ev = kr_h1_read(&c->h1.reader, &in, &body);
        on_event(c, ev, body);
    }
    if (!c->h1.closing && c->raw && in.n != 0)
        kr_h1_side_on_body(&c->h1, in);
    else if (!c->h1.closing && in.n != 0) /* behind the answer */
        tell_drain(c);
    kr_h1_side_update_reading(&c->h1, true);
}

static bool request_whole(const struct client *c)
{
    const struct kr_h1_out *o = &c->h1.out;

    if (o->framing == KR_H1_LENGTH && o->left == 0 && o->text.n == 0)
        return true; /* though its user has not said so yet */
    return kr_h1_out_done(o);
}

/* Both messages are over, or the answer needs no more of the request. */
static void finish(struct client *c)
{
    if (request_whole(c) && !c->h1.conn.draining)
        c->h1.out.state = KR_H1_OUT_IDLE;
    else
        tell_drain(c);
    kr_h1_side_end_exchange(&c->h1, 0);
    if (c->h1.closing || c->h1.live) /* the user may have opened the next one */
        return;
    if (c->h1.conn.draining)
        kr_h1_side_shut(&c->h1, KR_PIPE_FLUSH, 0, NULL);
    else
        kr_h1_side_set_timer(&c->h1, c->h1.cfg.idle_timeout_ms);
}

static void on_step(struct kr_task *t)
{
    struct client *c = KR_CONTAINER_OF(t, struct client, h1.step);

    if (c->h1.closing)
        return;
    if (c->raw ? kr_h1_out_done(&c->h1.out) : answer_whole(c))
        finish(c);
    else if (c->h1.out.state == KR_H1_OUT_BROKEN)
        fail(c, KR_EPROTO, "the request body did not keep to its length");
    kr_h1_side_update_reading(&c->h1, true);
    kr_h1_side_want_fill(&c->h1);
}

static void on_timer(struct kr_timer *t)
{
    struct client *c = KR_CONTAINER_OF(t, struct client, h1.timer);

    kr_h1_side_end_exchange(&c->h1, 0); /* a raw one whose server ended its direction long ago */
    kr_h1_side_shut(&c->h1, KR_PIPE_FLUSH, 0, NULL);
}

/* ---- the pipe's calls ---- */

static size_t fill(void *user, uint8_t *out, size_t room)
{
    struct client *c = user;
    size_t n;

    if (c->h1.out.state == KR_H1_OUT_BROKEN)
        return 0;
    c->h1.ex.head_sent |= c->h1.live && c->h1.out.text.n != 0;
    c->h1.in_fill = true;
    n = kr_h1_out_fill(&c->h1.out, c->h1.live ? &c->h1.ex : NULL, out, room);
    c->h1.in_fill = false;
    if (c->h1.out.state == KR_H1_OUT_BROKEN || (c->raw && kr_h1_out_done(&c->h1.out)))
        kr_task_post(c->h1.cfg.sched, &c->h1.step);
    return n;
}

static void raw_eof(struct client *c)
{
    kr_h1_side_set_timer(&c->h1, KR_UPGRADE_LINGER_MS);
    if (!c->h1.closing)
        on_end(c);
}

static void on_eof(void *user)
{
    struct client *c = user;

    if (c->h1.closing)
        return;
    if (c->raw) {
        raw_eof(c);
        return;
    }
    tell_drain(c);
    if (c->h1.closing)
        return;
    if (c->h1.live && !answer_whole(c) && kr_h1_read_eof(&c->h1.reader) == KR_H1_END)
        on_end(c);
    if (!c->h1.closing && !answer_whole(c))
        kr_h1_side_shut(&c->h1, KR_PIPE_ABORT, c->h1.live ? KR_ECONNLOST : 0,
                        "the server closed the connection");
}

static int final_code(const struct client *c)
{
    if (answer_whole(c))
        return 0;
    if (!c->h1.ex.head_sent)
        return KR_EREFUSED;
    return c->ex_rc != 0 ? c->ex_rc : KR_ECONNLOST;
}

static void on_close(void *user, int rc, const struct kr_note *why)
{
    struct client *c = user;

    kr_h1_side_closed(&c->h1, final_code(c), rc, why);
    kr_h1_side_deinit(&c->h1);
    free(c);
}

static const struct kr_pipe_user pipe_ops = {on_bytes, fill, on_eof, on_close};

/* ---- the connection's calls ---- */

static void conn_drain(struct kr_conn *conn)
{
    struct client *c = KR_CONTAINER_OF(conn, struct client, h1.conn);

    conn->draining = true;
    if (!c->h1.live)
        kr_h1_side_shut(&c->h1, KR_PIPE_FLUSH, 0, NULL);
}

static const struct kr_conn_ops conn_ops = {conn_open, conn_drain, kr_h1_side_close, has_room};

struct kr_conn *kr_h1_client_create(const struct kr_h1_config *cfg, struct kr_pipe *pipe)
{
    struct client *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    kr_task_init(&c->h1.step, on_step);
    kr_timer_init(&c->h1.timer, on_timer);
    if (kr_h1_side_init(&c->h1, cfg, pipe, &conn_ops, true) != 0) {
        free(c);
        return NULL;
    }
    kr_pipe_attach(pipe, &pipe_ops, c);
    return &c->h1.conn;
}
