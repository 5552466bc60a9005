/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/grpc_call.h"

#include "base/assert.h"
#include "base/err.h"
#include "wire/grpc_status.h"

#define HEAD_MAX 8192
#define TEXT_MAX 1024
#define OUT_KEPT 65536

static const struct kr_exchange_user exchange_user;

static void init(struct kr_grpc_stream *s, struct kr_grpc_limits limits,
                 const struct kr_grpc_user *ops, void *user)
{
    *s = (struct kr_grpc_stream){.ops = ops, .user = user};
    kr_grpc_reader_init(&s->reader, limits.message);
    kr_buf_init(&s->out, limits.queue);
    kr_buf_init(&s->message, TEXT_MAX);
}

void kr_grpc_deinit(struct kr_grpc_stream *s)
{
    kr_grpc_abort(s);
    kr_grpc_reader_deinit(&s->reader);
    kr_buf_deinit(&s->out);
    kr_buf_deinit(&s->message);
}

void kr_grpc_abort(struct kr_grpc_stream *s)
{
    struct kr_exchange *ex = s->ex;

    s->ex = NULL;
    if (ex != NULL)
        kr_exchange_abort(ex, KR_ABORT_CANCEL);
}

static void set_status(struct kr_grpc_stream *s, int status, struct kr_bytes text)
{
    s->status = status;
    s->message.n = 0;
    if (text.n > TEXT_MAX)
        text.n = TEXT_MAX;
    kr_buf_append(&s->message, text); /* a text that finds no memory is left out */
}

/* The last thing that the stream does: the owner may deinit it in there. */
static void end(struct kr_grpc_stream *s)
{
    s->ex = NULL;
    s->ops->on_end(s->user, s->status, kr_buf_bytes(&s->message));
}

/* Client: what came is no gRPC, or not what we take. */
static void break_off(struct kr_grpc_stream *s, int status, const char *text)
{
    kr_grpc_abort(s);
    set_status(s, status, kr_bytes_str(text));
    end(s);
}

/* --- opening ------------------------------------------------------------------------------- */

static int add_grpc_fields(struct kr_head *h, bool request)
{
    int rc = kr_head_add_str(h, "content-type", "application/grpc");

    if (rc == 0 && request)
        rc = kr_head_add_str(h, "te", "trailers");
    return rc == 0 && request ? kr_head_add_str(h, "user-agent", "kuberelay") : rc;
}

int kr_grpc_open(struct kr_grpc_stream *s, struct kr_conn *conn, struct kr_bytes authority,
                 struct kr_bytes path, struct kr_grpc_limits limits, const struct kr_grpc_user *ops,
                 void *user)
{
    struct kr_head head;
    int rc;

    init(s, limits, ops, user);
    kr_head_init(&head, HEAD_MAX);
    head.method = KR_LIT("POST");
    head.scheme = KR_LIT("https");
    head.authority = authority;
    head.path = path;
    rc = add_grpc_fields(&head, true);
    if (rc == 0) {
        s->ex = kr_conn_open(conn, &head, false, &exchange_user, s);
        rc = s->ex != NULL ? 0 : KR_EUNAVAILABLE;
    }
    kr_head_deinit(&head);
    return rc;
}

/* A request that is answered and forgotten: its user is the exchange itself. */
static void forget_body(void *user, struct kr_bytes in)
{
    kr_exchange_consumed(user, in.n);
}

static void forget_end(void *user, const struct kr_head *trailers)
{
    (void)user;
    (void)trailers;
}

static size_t nothing_available(void *user, bool *last)
{
    (void)user;
    *last = true;
    return 0;
}

static void take_nothing(void *user, uint8_t *out, size_t n)
{
    (void)user;
    (void)out;
    KR_ASSERT(n == 0);
}

static void forget_done(void *user, int rc)
{
    (void)user;
    (void)rc;
}

static const struct kr_exchange_user forgetful = {
    .on_body = forget_body,
    .on_end = forget_end,
    .available = nothing_available,
    .take = take_nothing,
    .on_done = forget_done,
};

static int add_status(struct kr_head *h, int status, struct kr_bytes text)
{
    struct kr_buf encoded;
    int rc = kr_head_add_u64(h, "grpc-status", (uint64_t)status);

    kr_buf_init(&encoded, 3 * TEXT_MAX + 16);
    if (rc == 0 && text.n != 0)
        rc = kr_grpc_message_encode(text, &encoded);
    if (rc == 0 && text.n != 0)
        rc = kr_head_add(h, KR_LIT("grpc-message"), kr_buf_bytes(&encoded));
    kr_buf_deinit(&encoded);
    return rc;
}

/* An answer that is a head only; grpc status < 0: a plain HTTP one. */
static int answer(struct kr_exchange *ex, int http, int status, struct kr_bytes text)
{
    struct kr_head head;
    int rc;

    kr_head_init(&head, HEAD_MAX);
    head.status = http;
    rc = status >= 0 ? add_grpc_fields(&head, false) : 0;
    if (rc == 0 && status >= 0)
        rc = add_status(&head, status, text);
    if (rc == 0)
        rc = kr_exchange_send_head(ex, &head, true);
    kr_head_deinit(&head);
    return rc;
}

static void answer_and_forget(struct kr_exchange *ex, int http, int status, const char *text)
{
    kr_exchange_attach(ex, &forgetful, ex);
    if (answer(ex, http, status, kr_bytes_str(text)) != 0)
        kr_exchange_abort(ex, KR_ABORT_INTERNAL);
}

void kr_grpc_reject(struct kr_exchange *ex, int status, const char *message)
{
    answer_and_forget(ex, 200, status, message);
}

static bool is_grpc(const struct kr_head *head)
{
    const struct kr_bytes type = KR_LIT("application/grpc");
    struct kr_bytes v = kr_head_get(head, KR_LIT("content-type"));

    return kr_bytes_starts(v, type) && (v.n == type.n || v.p[type.n] == '+' || v.p[type.n] == ';');
}

int kr_grpc_accept(struct kr_grpc_stream *s, struct kr_exchange *ex, struct kr_grpc_limits limits,
                   const struct kr_grpc_user *ops, void *user)
{
    init(s, limits, ops, user);
    if (!kr_bytes_is(ex->head.method, "POST")) {
        answer_and_forget(ex, 405, -1, "");
        return KR_EPROTO;
    }
    if (!is_grpc(&ex->head)) {
        answer_and_forget(ex, 415, -1, "");
        return KR_EPROTO;
    }
    s->server = true;
    s->ex = ex;
    kr_exchange_attach(ex, &exchange_user, s);
    return 0;
}

/* --- sending ------------------------------------------------------------------------------- */

static int send_answer_head(struct kr_grpc_stream *s)
{
    struct kr_head head;
    int rc;

    if (!s->server || s->head_sent)
        return 0;
    kr_head_init(&head, HEAD_MAX);
    head.status = 200;
    rc = add_grpc_fields(&head, false);
    if (rc == 0)
        rc = kr_exchange_send_head(s->ex, &head, false);
    s->head_sent = rc == 0;
    kr_head_deinit(&head);
    return rc;
}

int kr_grpc_send(struct kr_grpc_stream *s, struct kr_bytes message)
{
    int rc;

    if (s->ex == NULL || s->finished)
        return KR_ECANCELED;
    if (message.n > s->out.max || message.n + KR_GRPC_PREFIX > s->out.max)
        return KR_ETOOBIG;
    if (s->out.n + message.n + KR_GRPC_PREFIX > s->out.max) {
        kr_buf_drop(&s->out, s->sent);
        s->sent = 0;
    }
    if (s->out.n + message.n + KR_GRPC_PREFIX > s->out.max)
        return KR_EFULL;
    rc = send_answer_head(s);
    if (rc == 0)
        rc = kr_grpc_write(&s->out, message);
    if (rc == 0)
        kr_exchange_ready(s->ex);
    return rc;
}

/* The status behind the messages; a server that sent none answers with a head only. */
static int send_status(struct kr_grpc_stream *s)
{
    struct kr_head trailers;
    int rc;

    if (!s->head_sent)
        return answer(s->ex, 200, s->status, kr_buf_bytes(&s->message));
    kr_head_init(&trailers, HEAD_MAX);
    rc = add_status(&trailers, s->status, kr_buf_bytes(&s->message));
    if (rc == 0)
        rc = kr_exchange_send_trailers(s->ex, &trailers);
    kr_head_deinit(&trailers);
    return rc;
}

int kr_grpc_finish(struct kr_grpc_stream *s, int status, struct kr_bytes message)
{
    bool bare = s->server && !s->head_sent;
    int rc = 0;

    if (s->ex == NULL || s->finished)
        return KR_ECANCELED;
    if (s->server) {
        set_status(s, status, message);
        rc = send_status(s);
    }
    if (rc != 0)
        return rc;
    s->finished = true;
    if (!bare)
        kr_exchange_ready(s->ex);
    return 0;
}

static size_t on_available(void *user, bool *last)
{
    const struct kr_grpc_stream *s = user;

    *last = s->finished;
    return s->out.n - s->sent;
}

static void on_take(void *user, uint8_t *out, size_t n)
{
    struct kr_grpc_stream *s = user;

    KR_ASSERT(n <= s->out.n - s->sent);
    if (n != 0)
        memcpy(out, s->out.p + s->sent, n);
    s->sent += n;
    if (s->sent == s->out.n) {
        s->sent = s->out.n = 0;
        if (s->out.cap > OUT_KEPT) /* a burst is over */
            kr_buf_deinit(&s->out);
    }
    if (n != 0 && !s->finished && s->ops->on_room != NULL && kr_grpc_waiting(s) < s->out.max / 2)
        s->ops->on_room(s->user); /* the last thing: the stream may be gone */
}

/* --- receiving ----------------------------------------------------------------------------- */

static int on_message(void *owner, struct kr_bytes message)
{
    struct kr_grpc_stream *s = owner;
    int rc = s->ops->on_message(s->user, message);

    return s->ex == NULL ? KR_ECANCELED : rc; /* aborted in there */
}

static void on_bad_input(struct kr_grpc_stream *s, int rc)
{
    int status = kr_err_grpc_status(rc);

    if (!s->server)
        break_off(s, status, kr_err_text(rc));
    else if (!s->finished && kr_grpc_finish(s, status, kr_bytes_str(kr_err_text(rc))) != 0)
        break_off(s, status, kr_err_text(rc));
}

static void on_body(void *user, struct kr_bytes in)
{
    struct kr_grpc_stream *s = user;
    int rc;

    if (s->paused)
        s->owed += in.n;
    else
        kr_exchange_consumed(s->ex, in.n);
    if (s->reader.failed != 0)
        return;
    rc = kr_grpc_reader_feed(&s->reader, in, on_message, s);
    if (rc != 0 && s->ex != NULL)
        on_bad_input(s, rc);
}

void kr_grpc_pause(struct kr_grpc_stream *s)
{
    s->paused = true;
}

void kr_grpc_resume(struct kr_grpc_stream *s)
{
    size_t owed = s->owed;

    s->paused = false;
    s->owed = 0;
    if (s->ex != NULL)
        kr_exchange_consumed(s->ex, owed);
}

/* grpc-status and grpc-message of trailers, or of a head that is the whole answer. */
static void take_status(struct kr_grpc_stream *s, const struct kr_head *h)
{
    struct kr_bytes v = kr_head_get(h, KR_LIT("grpc-status"));
    uint64_t status;

    if (v.n == 0)
        return;
    s->has_status = true;
    s->status =
        kr_bytes_to_u64(v, KR_GRPC_UNAUTHENTICATED, &status) ? (int)status : KR_GRPC_UNKNOWN;
    s->message.n = 0;
    kr_grpc_message_decode(kr_head_get(h, KR_LIT("grpc-message")), &s->message);
}

static void on_head(void *user)
{
    struct kr_grpc_stream *s = user;
    const struct kr_head *h = &s->ex->head;

    if (h->status != 200)
        break_off(s, kr_grpc_status_of_http(h->status), "the answer is not HTTP 200");
    else if (!is_grpc(h))
        break_off(s, KR_GRPC_UNKNOWN, "the answer is not gRPC");
    else
        take_status(s, h);
}

static void on_client_end(struct kr_grpc_stream *s, const struct kr_head *trailers)
{
    if (trailers != NULL)
        take_status(s, trailers);
    if (!kr_grpc_reader_clean(&s->reader) && s->status == KR_GRPC_OK) {
        break_off(s, KR_GRPC_INTERNAL, "the answer ends within a message");
        return;
    }
    /* The call is over: end our direction too, without what still waits. */
    s->out.n = s->sent = 0;
    s->finished = true;
    kr_exchange_ready(s->ex);
}

static void on_in_end(void *user, const struct kr_head *trailers)
{
    struct kr_grpc_stream *s = user;

    if (!s->server)
        on_client_end(s, trailers);
    else if (s->finished)
        return;
    else if (!kr_grpc_reader_clean(&s->reader))
        on_bad_input(s, KR_EPROTO);
    else if (s->ops->on_peer_done != NULL)
        s->ops->on_peer_done(s->user);
    else if (kr_grpc_finish(s, KR_GRPC_OK, KR_LIT("")) != 0)
        break_off(s, KR_GRPC_INTERNAL, "no memory for the status");
}

static void on_done(void *user, int rc)
{
    struct kr_grpc_stream *s = user;

    if (rc != 0 && !(s->has_status && !s->server))
        set_status(s, kr_grpc_status_of_end(rc, s->ex->reset_code), kr_bytes_str(kr_err_text(rc)));
    else if (rc == 0 && !s->server && !s->has_status)
        set_status(s, KR_GRPC_INTERNAL, KR_LIT("the answer has no grpc-status"));
    end(s);
}

static const struct kr_exchange_user exchange_user = {
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_in_end,
    .available = on_available,
    .take = on_take,
    .on_done = on_done,
};
