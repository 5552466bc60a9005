/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: serve -> a call of Sign -> its one message -> the signer decides, audits, signs ->
 * the answer and OK -> the peer closes, or the time is up. */
#include "signer/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "wire/grpc_call.h"
#include "wire/sign_messages.h"

#define CONNS_MAX 128
#define CALLS_MAX 4 /* of one connection */
#define CONN_MS 15000

struct call {
    struct signer_conn *c; /* NULL: free */
    struct kr_grpc_stream stream;
    bool answered;
};

struct signer_conn {
    struct signer_server *s;
    struct kr_list link;
    struct kr_conn *conn;
    uint32_t uid;
    struct kr_timer end;
    struct call calls[CALLS_MAX];
};

/* ---- calls ---- */

static void log_call(struct signer_conn *c, int rc, struct kr_bytes uri, const struct kr_note *why)
{
    struct signer_server *s = c->s;
    uint64_t held = 0;

    if (rc == 0) {
        s->issued++;
        KR_LOG_AT(s->log, KR_LOG_INFO, "signed", KR_B("uri", uri), KR_U("uid", c->uid));
    } else if (kr_log_allow(&s->refusals, s->sched->now_ms, 20, 1000, &held)) {
        KR_LOG_AT(s->log, KR_LOG_WARN, "not-signed", KR_B("uri", uri), KR_U("uid", c->uid),
                  KR_S("reason", why->text), KR_U("held", held));
    }
}

static int sign(struct call *k, struct kr_bytes message, struct kr_buf *chain, int64_t *retry_ms,
                struct kr_note *why)
{
    struct signer_conn *c = k->c;
    struct kr_sign_request q;
    struct kr_sign_order order;
    char caller[32];
    int rc = kr_sign_request_decode(&q, message, why);

    if (rc == 0) {
        snprintf(caller, sizeof caller, "uid:%" PRIu32, c->uid);
        order = (struct kr_sign_order){
            .uri = q.uri,
            .csr = q.csr,
            .lifetime_s = q.lifetime_s <= INT32_MAX ? (int64_t)q.lifetime_s : -1,
            .caller = caller,
        };
        rc = kr_signer_sign(c->s->signer, &order, chain, retry_ms, why);
    }
    log_call(c, rc, rc == KR_EPROTO || rc == KR_ETOOBIG ? KR_LIT("") : q.uri, why);
    return rc;
}

static int answer(struct call *k, const struct kr_buf *chain)
{
    struct kr_sign_answer a = {.chain = kr_buf_bytes(chain)};
    struct kr_buf out = {.max = KR_SIGN_ANSWER_MAX};
    int rc = kr_sign_answer_encode(&a, &out);

    if (rc == 0)
        rc = kr_grpc_send(&k->stream, kr_buf_bytes(&out));
    if (rc == 0)
        rc = kr_grpc_finish(&k->stream, KR_GRPC_OK, KR_LIT(""));
    kr_buf_deinit(&out);
    return rc;
}

static int status_of(int rc)
{
    return rc == KR_EPROTO || rc == KR_ETOOBIG ? KR_GRPC_INVALID_ARGUMENT : kr_err_grpc_status(rc);
}

static void refuse(struct call *k, int rc, int64_t retry_ms, const struct kr_note *why)
{
    char text[256];

    if (rc == KR_EFULL)
        snprintf(text, sizeof text, "%.160s; come back in %" PRId64 " s", why->text,
                 (retry_ms + 999) / 1000);
    else
        snprintf(text, sizeof text, "%.200s", why->text);
    kr_grpc_finish(&k->stream, status_of(rc), kr_bytes_str(text));
}

static int on_message(void *user, struct kr_bytes message)
{
    struct call *k = user;
    struct kr_buf chain = {0};
    struct kr_note why = {""};
    int64_t retry_ms = 0;
    int rc;

    if (k->answered)
        return KR_EPROTO; /* unary: one message */
    k->answered = true;
    rc = sign(k, message, &chain, &retry_ms, &why);
    if (rc == 0)
        rc = answer(k, &chain);
    if (rc != 0)
        refuse(k, rc, retry_ms, &why);
    kr_buf_deinit(&chain);
    return 0;
}

static void on_peer_done(void *user)
{
    struct call *k = user;

    if (!k->answered)
        kr_grpc_finish(&k->stream, KR_GRPC_INVALID_ARGUMENT, KR_LIT("no message came"));
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    struct call *k = user;

    (void)status, (void)message;
    k->c = NULL;
}

static const struct kr_grpc_user call_user = {on_message, on_peer_done, on_end, NULL};

static struct call *free_call(struct signer_conn *c)
{
    for (size_t i = 0; i < CALLS_MAX; i++) {
        if (c->calls[i].c == NULL)
            return &c->calls[i];
    }
    return NULL;
}

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct kr_grpc_limits limits = {.message = KR_SIGN_REQUEST_MAX,
                                    .queue = KR_SIGN_ANSWER_MAX + 64};
    struct signer_conn *c = owner;
    struct call *k = free_call(c);

    if (!kr_bytes_is(ex->head.path, KR_GRPC_SIGN)) {
        kr_grpc_reject(ex, KR_GRPC_UNIMPLEMENTED, "this socket serves kuberelay.v1.Signer only");
        return;
    }
    if (k == NULL) {
        kr_grpc_reject(ex, KR_GRPC_RESOURCE_EXHAUSTED, "too many calls");
        return;
    }
    kr_grpc_deinit(&k->stream);
    *k = (struct call){.answered = false};
    if (kr_grpc_accept(&k->stream, ex, limits, &call_user, k) == 0)
        k->c = c;
}

/* ---- the connection ---- */

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct signer_conn *c = owner;

    (void)rc, (void)why;
    kr_timer_stop(c->s->sched, &c->end);
    for (size_t i = 0; i < CALLS_MAX; i++)
        kr_grpc_deinit(&c->calls[i].stream);
    kr_list_remove(&c->link);
    c->s->count--;
    free(c);
}

static const struct kr_conn_user conn_user = {on_request, NULL, NULL, on_close};

static void on_time_up(struct kr_timer *t)
{
    kr_conn_close(KR_CONTAINER_OF(t, struct signer_conn, end)->conn);
}

bool signer_server_serve(struct signer_server *s, struct kr_pipe *pipe, uint32_t uid)
{
    struct signer_conn *c = s->count < CONNS_MAX ? calloc(1, sizeof *c) : NULL;
    struct kr_h2_config cfg = {
        .server = true,
        .sched = s->sched,
        .user_ops = &conn_user,
        .owner = c,
        .shared = s->h2,
        .max_streams = CALLS_MAX,
        .abuse = true,
        .preface_timeout_ms = CONN_MS / 2,
    };

    if (c == NULL)
        return false;
    c->s = s;
    c->uid = uid;
    kr_timer_init(&c->end, on_time_up);
    c->conn = kr_h2_create(&cfg, pipe);
    if (c->conn == NULL) {
        free(c);
        return false;
    }
    kr_timer_start(s->sched, &c->end, CONN_MS);
    kr_list_append(&s->conns, &c->link);
    s->count++;
    return true;
}

void signer_server_init(struct signer_server *s)
{
    kr_list_init(&s->conns);
    s->count = 0;
    s->issued = 0;
}
