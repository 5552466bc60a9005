/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: dial -> handshake -> SETTINGS of the hub -> the call -> its message -> OK -> close ->
 * on_done. Whatever breaks comes down to finish(), which frees it once the connection is gone. */
#include "agent/enroll.h"

#include <stdlib.h>

#include "agent/trust.h"
#include "base/assert.h"
#include "base/err.h"
#include "certs/store_file.h"
#include "net/dial.h"
#include "net/tls_pipe.h"
#include "wire/grpc_call.h"

#define ALL_MS 15000

struct agent_enroll {
    struct agent_enroll_config cfg;
    struct kr_hostport at;
    struct kr_tls_context *tls;
    struct kr_dial *dial;
    struct kr_pipe *pipe; /* during the handshake */
    struct kr_conn *conn;
    struct kr_grpc_stream stream;
    struct kr_timer end;
    struct kr_task done; /* so that nothing calls back from inside */
    struct kr_buf message;
    struct kr_buf answer;
    bool has_answer;
    bool over;      /* rc is known */
    bool cancelled; /* nobody wants to know */
    int rc;
    struct kr_note why;
};

static void free_it(struct agent_enroll *e)
{
    kr_timer_stop(e->cfg.c->sched, &e->end);
    kr_task_cancel(&e->done);
    kr_grpc_deinit(&e->stream);
    kr_tls_context_unref(e->tls);
    kr_buf_cleanse(&e->message);
    kr_buf_deinit(&e->answer);
    free(e);
}

static void on_task(struct kr_task *task)
{
    struct agent_enroll *e = KR_CONTAINER_OF(task, struct agent_enroll, done);
    struct kr_enroll_answer answer;

    if (e->rc == 0)
        e->rc = kr_enroll_answer_decode(&answer, kr_buf_bytes(&e->answer), &e->why);
    if (!e->cancelled)
        e->cfg.on_done(e->cfg.owner, e->rc, e->rc == 0 ? &answer : NULL, &e->why);
    free_it(e);
}

/* The first cause counts; the connection, if there is one, goes first. */
static void finish(struct agent_enroll *e, int rc, const char *why)
{
    if (!e->over) {
        e->over = true;
        e->rc = rc;
        if (rc != 0)
            kr_note_set(&e->why, rc, "%s", why);
    }
    kr_dial_cancel(e->dial);
    e->dial = NULL;
    if (e->conn != NULL)
        kr_conn_close(e->conn);
    else if (e->pipe != NULL)
        kr_pipe_close(e->pipe, KR_PIPE_ABORT);
    else
        kr_task_post(e->cfg.c->sched, &e->done);
}

static int on_message(void *user, struct kr_bytes message)
{
    struct agent_enroll *e = user;

    if (e->has_answer)
        return KR_EPROTO;
    e->has_answer = true;
    return kr_buf_append(&e->answer, message);
}

static int code_of(int status)
{
    switch (status) {
    case KR_GRPC_PERMISSION_DENIED:
    case KR_GRPC_UNAUTHENTICATED:
    case 6: /* already exists: the token is used */
        return KR_EDENIED;
    case KR_GRPC_RESOURCE_EXHAUSTED:
        return KR_EFULL;
    case KR_GRPC_UNAVAILABLE:
        return KR_EUNAVAILABLE;
    default:
        return KR_EPROTO;
    }
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    struct agent_enroll *e = user;
    char text[128];

    snprintf(text, sizeof text, "the hub: %.*s (gRPC status %d)",
             message.n < 80 ? (int)message.n : 80, (const char *)message.p, status);
    if (status == KR_GRPC_OK && e->has_answer)
        finish(e, 0, "");
    else
        finish(e, status == KR_GRPC_OK ? KR_EPROTO : code_of(status), text);
}

static const struct kr_grpc_user call_user = {.on_message = on_message, .on_end = on_end};

static void on_ready(void *owner)
{
    struct kr_grpc_limits limits = {.message = KR_ENROLL_ANSWER_MAX,
                                    .queue = KR_ENROLL_REQUEST_MAX + 64};
    struct agent_enroll *e = owner;

    if (kr_grpc_open(&e->stream, e->conn, KR_LIT("hub"), kr_bytes_str(e->cfg.path), limits,
                     &call_user, e) != 0 ||
        kr_grpc_send(&e->stream, kr_buf_bytes(&e->message)) != 0 ||
        kr_grpc_finish(&e->stream, 0, KR_LIT("")) != 0)
        finish(e, KR_EPROTO, "the hub takes no call");
}

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct agent_enroll *e = owner;

    e->conn = NULL;
    finish(e, rc != 0 ? rc : KR_ECONNLOST, rc != 0 ? why->text : "the hub closed the connection");
}

static const struct kr_conn_user conn_user = {NULL, NULL, on_ready, on_close};

static int judge(void *owner, const struct kr_tls_info *info, struct kr_note *why)
{
    struct agent_enroll *e = owner;
    const char *domain = e->cfg.c->self.domain;
    struct kr_identity_rules rules = {KR_ROLE_HUB, domain[0] != '\0' ? domain : NULL};
    struct kr_identity hub = {0};
    int rc = kr_identity_judge(&hub, info->peer_der, &rules, why);

    kr_identity_deinit(&hub);
    return rc;
}

static int on_handshake(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                        const struct kr_note *why)
{
    struct agent_enroll *e = owner;
    struct kr_h2_config cfg = {
        .sched = e->cfg.c->sched,
        .user_ops = &conn_user,
        .owner = e,
        .shared = &e->cfg.c->h2,
        .preface_timeout_ms = ALL_MS,
    };

    (void)info;
    e->pipe = NULL;
    if (rc == 0 && !e->over)
        e->conn = kr_h2_create(&cfg, pipe);
    if (e->conn != NULL)
        return 0;
    finish(e, rc != 0 ? rc : KR_ENOMEM, rc != 0 ? why->text : "out of memory");
    return rc != 0 ? rc : KR_ENOMEM;
}

static const struct kr_tls_user tls_user = {judge, on_handshake};

static void on_dial(void *owner, int rc, int fd, const char *peer, const struct kr_note *why)
{
    struct agent_enroll *e = owner;
    const struct agent_options *o = e->cfg.c->options;
    const char *name = o->hub_name != NULL ? o->hub_name : e->at.host;
    struct kr_tls_start start = {
        .ctx = e->tls,
        .fd = fd,
        .user_ops = &tls_user,
        .owner = e,
        .server_name = name,
        .verify_host = name,
    };
    struct kr_note note = {""};

    (void)peer;
    e->dial = NULL;
    if (rc != 0) {
        finish(e, rc, why->text);
        return;
    }
    e->pipe = kr_tls_connect(e->cfg.c->io, &start, &note);
    if (e->pipe == NULL)
        finish(e, KR_ENOMEM, note.text);
}

static void on_time_up(struct kr_timer *t)
{
    finish(KR_CONTAINER_OF(t, struct agent_enroll, end), KR_ETIMEDOUT, "no answer in time");
}

static int prepare(struct agent_enroll *e, struct kr_note *why)
{
    int rc = kr_hostport_parse(e->cfg.hub, 8443, &e->at, why);

    kr_buf_init(&e->message, KR_ENROLL_REQUEST_MAX);
    kr_buf_init(&e->answer, KR_ENROLL_ANSWER_MAX);
    if (rc == 0)
        rc = kr_buf_append(&e->message, e->cfg.message);
    if (rc == 0)
        e->tls = agent_trust_enroll_context(e->cfg.c, e->cfg.with_cert, &rc, why);
    return rc;
}

struct agent_enroll *agent_enroll_start(const struct agent_enroll_config *cfg, struct kr_note *why)
{
    struct agent_enroll *e = calloc(1, sizeof *e);
    struct kr_dial_config dial = {
        .proxy = cfg->proxy, .timeout_ms = ALL_MS, .on_done = on_dial, .owner = e};

    if (e == NULL)
        return NULL;
    e->cfg = *cfg;
    kr_timer_init(&e->end, on_time_up);
    kr_task_init(&e->done, on_task);
    if (prepare(e, why) == 0) {
        dial.host = e->at.host;
        dial.port = e->at.port;
        e->dial = kr_dial_start(cfg->c->loop, &dial, why);
    }
    if (e->dial == NULL) {
        free_it(e);
        return NULL;
    }
    kr_timer_start(cfg->c->sched, &e->end, ALL_MS);
    return e;
}

void agent_enroll_cancel(struct agent_enroll *e)
{
    if (e == NULL)
        return;
    e->cancelled = true;
    finish(e, KR_ECANCELED, "cancelled");
}
