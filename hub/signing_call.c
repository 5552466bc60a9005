/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/signing_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/socket.h"
#include "net/tcp_pipe.h"
#include "wire/grpc_call.h"
#include "wire/sign_messages.h"

#define CALL_MS 10000

struct hub_signing_call {
    struct hub_worker *w;
    struct hub_signing *g; /* NULL: cancelled */
    hub_signing_answer *on_answer;
    void *owner;
    struct kr_conn *conn;
    struct kr_grpc_stream stream;
    struct kr_timer end;
    struct kr_task done; /* so that nothing calls back from inside */
    struct kr_buf message;
    struct kr_buf answer; /* as it came; without a connection: the chain */
    bool over;            /* rc is known */
    int rc;
    struct kr_note why;
};

static void end(struct hub_signing_call *k, struct kr_bytes chain)
{
    kr_timer_stop(k->w->sched, &k->end);
    kr_task_cancel(&k->done);
    kr_grpc_deinit(&k->stream);
    k->on_answer(k->owner, k->g, k->rc, k->rc == 0 ? chain : KR_LIT(""), &k->why);
    kr_buf_deinit(&k->message);
    kr_buf_deinit(&k->answer);
    free(k);
}

static void on_task(struct kr_task *t)
{
    struct hub_signing_call *k = KR_CONTAINER_OF(t, struct hub_signing_call, done);

    end(k, kr_buf_bytes(&k->answer));
}

/* The first cause counts. */
static void settle(struct hub_signing_call *k, int rc, const char *why)
{
    if (k->over)
        return;
    k->over = true;
    k->rc = rc;
    if (rc != 0)
        kr_note_set(&k->why, rc, "%s", why);
}

void hub_signing_call_finish(struct hub_signing_call *k, int rc, struct kr_buf *chain,
                             const struct kr_note *why)
{
    settle(k, rc, why->text);
    k->answer = *chain;
    *chain = (struct kr_buf){0};
    kr_task_post(k->w->sched, &k->done);
}

static void close_conn(struct hub_signing_call *k)
{
    if (k->conn != NULL)
        kr_conn_close(k->conn);
}

/* ---- the call ---- */

static int on_message(void *user, struct kr_bytes message)
{
    struct hub_signing_call *k = user;

    return k->answer.n != 0 ? KR_EPROTO : kr_buf_append(&k->answer, message);
}

static int code_of(int status)
{
    switch (status) {
    case KR_GRPC_RESOURCE_EXHAUSTED:
        return KR_EFULL;
    case KR_GRPC_PERMISSION_DENIED:
        return KR_EDENIED;
    case KR_GRPC_INVALID_ARGUMENT:
        return KR_EINVAL;
    default:
        return KR_EUNAVAILABLE;
    }
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    struct hub_signing_call *k = user;
    char text[256];

    snprintf(text, sizeof text, "%.*s", message.n < 200 ? (int)message.n : 200,
             (const char *)message.p);
    if (status == KR_GRPC_OK && k->answer.n != 0)
        settle(k, 0, "");
    else
        settle(k, status == KR_GRPC_OK ? KR_EUNAVAILABLE : code_of(status), text);
    close_conn(k);
}

static const struct kr_grpc_user call_user = {.on_message = on_message, .on_end = on_end};

static void on_ready(void *owner)
{
    struct kr_grpc_limits limits = {.message = KR_SIGN_ANSWER_MAX,
                                    .queue = KR_SIGN_REQUEST_MAX + 64};
    struct hub_signing_call *k = owner;

    if (k->over)
        return;
    if (kr_grpc_open(&k->stream, k->conn, KR_LIT("signer"), KR_LIT(KR_GRPC_SIGN), limits,
                     &call_user, k) != 0 ||
        kr_grpc_send(&k->stream, kr_buf_bytes(&k->message)) != 0 ||
        kr_grpc_finish(&k->stream, 0, KR_LIT("")) != 0) {
        settle(k, KR_EUNAVAILABLE, "the signer takes no call");
        close_conn(k);
    }
}

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct hub_signing_call *k = owner;
    struct kr_sign_answer a = {.chain = {NULL, 0}};

    k->conn = NULL;
    settle(k, KR_EUNAVAILABLE, rc != 0 ? why->text : "the signer closed the connection");
    if (k->rc == 0)
        k->rc = kr_sign_answer_decode(&a, kr_buf_bytes(&k->answer), &k->why);
    end(k, a.chain);
}

static const struct kr_conn_user conn_user = {NULL, NULL, on_ready, on_close};

static void on_time_up(struct kr_timer *t)
{
    struct hub_signing_call *k = KR_CONTAINER_OF(t, struct hub_signing_call, end);

    settle(k, KR_ETIMEDOUT, "the signer does not answer");
    close_conn(k);
}

static int connect_to(struct hub_signing_call *k, const char *path, struct kr_note *why)
{
    struct kr_h2_config cfg = {
        .sched = k->w->sched,
        .user_ops = &conn_user,
        .owner = k,
        .shared = &k->w->h2,
        .preface_timeout_ms = CALL_MS,
    };
    int fd = kr_socket_connect_unix(path, why);
    struct kr_pipe *pipe = fd >= 0 ? kr_tcp_pipe_create(k->w->io, fd) : NULL;

    if (fd < 0)
        return KR_EUNAVAILABLE;
    if (pipe != NULL)
        k->conn = kr_h2_create(&cfg, pipe);
    if (k->conn != NULL)
        return 0;
    if (pipe != NULL)
        kr_pipe_close(pipe, KR_PIPE_ABORT);
    return kr_note_set(why, KR_ENOMEM, "out of memory");
}

void hub_signing_call_dial(struct hub_signing_call *k, const char *path,
                           const struct hub_signing_order *order)
{
    struct kr_sign_request q = {
        .uri = kr_bytes_str(order->uri),
        .csr = order->csr,
        .lifetime_s = (uint64_t)order->lifetime_s,
    };
    struct kr_note why = {"out of memory"};
    int rc;

    kr_buf_init(&k->message, KR_SIGN_REQUEST_MAX);
    kr_buf_init(&k->answer, KR_SIGN_ANSWER_MAX);
    rc = kr_sign_request_encode(&q, &k->message);
    if (rc == 0)
        rc = connect_to(k, path, &why);
    if (rc == 0) {
        kr_timer_start(k->w->sched, &k->end, CALL_MS);
        return;
    }
    settle(k, rc, why.text);
    kr_task_post(k->w->sched, &k->done);
}

void hub_signing_call_cancel(struct hub_signing_call *k)
{
    k->g = NULL;
    settle(k, KR_ECANCELED, "cancelled");
    close_conn(k);
}

struct hub_signing_call *hub_signing_call_create(struct hub_worker *w, struct hub_signing *g,
                                                 hub_signing_answer *on_answer, void *owner)
{
    struct hub_signing_call *k = calloc(1, sizeof *k);

    if (k == NULL)
        return NULL;
    k->w = w;
    k->g = g;
    k->on_answer = on_answer;
    k->owner = owner;
    kr_timer_init(&k->end, on_time_up);
    kr_task_init(&k->done, on_task);
    return k;
}
