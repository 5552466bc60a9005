/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: serve -> a call of Join or Renew -> its one message -> the issuer decides -> a
 * certificate is made -> the issuer decides again -> the answer and OK -> the peer closes, or the
 * time is up. */
#include "hub/enroll.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "certs/store_file.h"
#include "hub/counters.h"
#include "hub/join_audit.h"
#include "hub/join_token.h"
#include "hub/signing.h"
#include "hub/trust_audit.h"
#include "wire/grpc_call.h"

#define CONNS_MAX 16
#define CALLS_MAX 4   /* of one connection */
#define CONN_MS 15000 /* a signer has 10 s */
#define ADDRESSES_MAX 4096
#define MINUTE_MS 60000

struct hub_enroll {
    struct hub_worker *w;
    struct hub_issuer *issuer;
    struct hub_signer *signer;
    const struct hub_bundle *bundle;
    size_t conns;
    struct kr_map tries; /* tries.address -> struct tries */
    int64_t minute_ms;   /* when they were forgotten last */
};

struct tries {
    char address[64];
    int64_t failures;
};

struct call {
    struct hub_enroll_conn *c; /* NULL: free */
    struct kr_grpc_stream stream;
    bool join;
    bool answered;                /* or about to be */
    char token[HUB_TOKEN_ID + 1]; /* its id; empty: none that is one */
    struct kr_buf message;        /* while a certificate is made */
    struct hub_issued asked;      /* for whom */
    struct hub_signing signing;
};

struct hub_enroll_conn {
    struct hub_enroll *e;
    struct kr_conn *conn;
    struct kr_identity id; /* empty: none */
    char address[64];      /* without the port */
    struct kr_timer end;
    struct call calls[CALLS_MAX];
    void (*on_gone)(void *owner);
    void *owner;
};

/* ---- those who guess ---- */

static void forget(struct hub_enroll *e)
{
    size_t pos = 0;
    struct tries *t;

    while ((t = kr_map_next(&e->tries, &pos, NULL)) != NULL) {
        kr_map_erase(&e->tries, kr_bytes_str(t->address));
        free(t);
    }
    e->minute_ms = e->w->sched->now_ms;
}

static bool may_try(struct hub_enroll *e, const char *address)
{
    struct tries *t;

    if (e->w->sched->now_ms - e->minute_ms >= MINUTE_MS)
        forget(e);
    t = kr_map_get(&e->tries, kr_bytes_str(address));
    return t == NULL || t->failures < e->w->options->join_tries;
}

static void count_failure(struct hub_enroll *e, const char *address)
{
    struct tries *t = kr_map_get(&e->tries, kr_bytes_str(address));

    if (t == NULL) {
        t = calloc(1, sizeof *t);
        if (t == NULL)
            return;
        snprintf(t->address, sizeof t->address, "%s", address);
        if (kr_map_put(&e->tries, kr_bytes_str(t->address), t) != 0) {
            free(t);
            return;
        }
    }
    t->failures++;
}

/* ---- calls ---- */

/* It is not the asker's fault: it is to come again. */
static bool is_later(int rc)
{
    return rc == KR_EFULL || rc == KR_EUNAVAILABLE || rc == KR_ETIMEDOUT || rc == KR_EIO ||
           rc == KR_ENOMEM;
}

static void log_call(const struct call *k, int rc, const struct hub_issued *got,
                     const struct kr_note *why)
{
    struct hub_worker *w = k->c->e->w;

    hub_worker_count(w, HUB_ENROLLMENTS,
                     rc == 0        ? (k->join ? "join" : "renew")
                     : is_later(rc) ? (k->join ? "join-later" : "renew-later")
                                    : (k->join ? "join-refused" : "renew-refused"));
    KR_LOG_AT(w->log, rc == 0 ? KR_LOG_INFO : KR_LOG_WARN, k->join ? "join" : "renew",
              KR_S("result", rc == 0 ? "issued" : "refused"), KR_S("cluster", got->cluster),
              KR_S("instance", got->instance), KR_S("peer", k->c->address),
              KR_U("generation", got->generation), KR_T("pending", got->pending),
              KR_T("again", got->again), KR_S("reason", rc == 0 ? "" : why->text));
}

static int answer(struct call *k, const struct hub_issued *got)
{
    const struct hub_bundle *b = k->c->e->bundle;
    struct kr_enroll_answer a = {
        .chain = kr_buf_bytes(&got->chain),
        .bundle = kr_buf_bytes(&b->pem),
        .bundle_generation = b->generation,
        .generation = got->generation,
        .pending = got->pending,
    };
    struct kr_buf out = {.max = KR_ENROLL_ANSWER_MAX};
    int rc = kr_enroll_answer_encode(&a, &out);

    if (rc == 0)
        rc = kr_grpc_send(&k->stream, kr_buf_bytes(&out));
    if (rc == 0)
        rc = kr_grpc_finish(&k->stream, KR_GRPC_OK, KR_LIT(""));
    kr_buf_deinit(&out);
    return rc;
}

static int join(struct call *k, struct kr_bytes message, struct kr_bytes chain,
                struct hub_issued *got, struct kr_note *why)
{
    struct hub_enroll_conn *c = k->c;
    struct kr_join_request q;
    int rc;

    if (!may_try(c->e, c->address))
        return kr_note_set(why, KR_EFULL, "too many tries from this address; come back in 60 s");
    rc = kr_join_request_decode(&q, message, why);
    if (rc == 0)
        hub_join_token_id(q.token, k->token);
    if (rc == 0)
        rc = hub_issuer_join(c->e->issuer, &q, chain, got, why);
    if (rc < 0 && !is_later(rc))
        count_failure(c->e, c->address);
    return rc;
}

static int renew(struct call *k, struct kr_bytes message, struct kr_bytes chain,
                 struct hub_issued *got, struct kr_note *why)
{
    struct hub_enroll_conn *c = k->c;
    struct kr_renew_request q;
    int rc;

    if (c->id.name[0] == '\0')
        return kr_note_set(why, KR_EDENIED, "a renewal needs the current certificate");
    rc = kr_renew_request_decode(&q, message, why);
    return rc == 0 ? hub_issuer_renew(c->e->issuer, &c->id, &q, chain, got, why) : rc;
}

static int decide(struct call *k, struct kr_bytes message, struct kr_bytes chain,
                  struct hub_issued *got, struct kr_note *why)
{
    return k->join ? join(k, message, chain, got, why) : renew(k, message, chain, got, why);
}

/* The peer learns the kind of failure; the log has the reason. */
static const char *words(int rc, const struct kr_note *why)
{
    switch (rc) {
    case KR_EDENIED:
        return "refused";
    case KR_EEXIST:
        return "the token is used";
    case KR_EFULL:
        return why->text;
    case KR_EPROTO:
    case KR_EINVAL:
    case KR_ETOOBIG:
        return "the request is not in order";
    default:
        return "the hub cannot do it now";
    }
}

static int status_of(int rc)
{
    if (rc == KR_EPROTO || rc == KR_EINVAL || rc == KR_ETOOBIG)
        return KR_GRPC_INVALID_ARGUMENT;
    return rc == KR_ETIMEDOUT ? KR_GRPC_UNAVAILABLE : kr_err_grpc_status(rc);
}

/* It is decided. */
static void end_call(struct call *k, int rc, const struct hub_issued *got,
                     const struct kr_note *why)
{
    log_call(k, rc, got, why);
    if (k->join)
        hub_join_audit(k->c->e->w, k->token, k->c->address, rc, got, why);
    else
        hub_renew_audit(k->c->e->w, &k->c->id, k->c->address, rc, got, why);
    if (rc == 0)
        rc = answer(k, got);
    if (rc != 0)
        kr_grpc_finish(&k->stream, status_of(rc), kr_bytes_str(words(rc, why)));
    kr_buf_cleanse(&k->message);
}

static void on_signed(struct hub_signing *g, int rc, struct kr_bytes chain,
                      const struct kr_note *reason)
{
    struct call *k = KR_CONTAINER_OF(g, struct call, signing);
    struct hub_issued got = k->asked;
    struct kr_note why = *reason;

    if (rc == 0)
        rc = decide(k, kr_buf_bytes(&k->message), chain, &got, &why);
    if (rc == HUB_ISSUER_SIGN) /* a chain was there: that cannot be */
        rc = kr_note_set(&why, KR_EUNAVAILABLE, "the signer gave nothing");
    end_call(k, rc, &got, &why);
    kr_buf_deinit(&got.chain);
}

static int start_signing(struct call *k, struct kr_bytes message, const struct hub_issued *asked)
{
    struct kr_renew_request renewal = {.generation = 0};
    struct kr_join_request joining = {.token = {NULL, 0}};
    int rc;

    kr_buf_init(&k->message, KR_ENROLL_REQUEST_MAX);
    rc = kr_buf_append(&k->message, message);
    if (rc == 0)
        rc = k->join ? kr_join_request_decode(&joining, kr_buf_bytes(&k->message), NULL)
                     : kr_renew_request_decode(&renewal, kr_buf_bytes(&k->message), NULL);
    if (rc != 0)
        return rc;
    k->asked = *asked;
    k->signing.on_done = on_signed;
    hub_signing_start(k->c->e->signer, &k->signing, asked->uri,
                      k->join ? joining.csr : renewal.csr);
    return 0;
}

static int on_message(void *user, struct kr_bytes message)
{
    struct call *k = user;
    struct hub_issued got = {.generation = 0};
    struct kr_note why = {""};
    int rc;

    if (k->answered)
        return KR_EPROTO; /* unary: one message */
    k->answered = true;
    rc = hub_trust_audit_ready(k->c->e->w, &why) ? decide(k, message, KR_LIT(""), &got, &why)
                                                 : KR_EIO;
    if (rc == HUB_ISSUER_SIGN)
        rc = start_signing(k, message, &got) == 0 ? HUB_ISSUER_SIGN : KR_ENOMEM;
    if (rc != HUB_ISSUER_SIGN)
        end_call(k, rc, &got, &why);
    kr_buf_deinit(&got.chain);
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
    hub_signing_cancel(&k->signing);
    kr_buf_cleanse(&k->message);
    k->c = NULL;
}

static const struct kr_grpc_user call_user = {on_message, on_peer_done, on_end, NULL};

static struct call *free_call(struct hub_enroll_conn *c)
{
    for (size_t i = 0; i < CALLS_MAX; i++) {
        if (c->calls[i].c == NULL)
            return &c->calls[i];
    }
    return NULL;
}

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct kr_grpc_limits limits = {.message = KR_ENROLL_REQUEST_MAX,
                                    .queue = KR_ENROLL_ANSWER_MAX + 64};
    struct hub_enroll_conn *c = owner;
    bool is_join = kr_bytes_is(ex->head.path, KR_GRPC_JOIN);
    struct call *k = free_call(c);

    if (!is_join && !kr_bytes_is(ex->head.path, KR_GRPC_RENEW)) {
        kr_grpc_reject(ex, KR_GRPC_UNIMPLEMENTED, "this port serves kuberelay.v1.Enrollment only");
        return;
    }
    if (k == NULL) {
        kr_grpc_reject(ex, KR_GRPC_RESOURCE_EXHAUSTED, "too many calls");
        return;
    }
    kr_grpc_deinit(&k->stream);
    *k = (struct call){.join = is_join};
    if (kr_grpc_accept(&k->stream, ex, limits, &call_user, k) == 0)
        k->c = c;
}

/* ---- the connection ---- */

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct hub_enroll_conn *c = owner;

    (void)rc, (void)why;
    kr_timer_stop(c->e->w->sched, &c->end);
    for (size_t i = 0; i < CALLS_MAX; i++) {
        hub_signing_cancel(&c->calls[i].signing);
        kr_buf_cleanse(&c->calls[i].message);
        kr_grpc_deinit(&c->calls[i].stream);
    }
    kr_identity_deinit(&c->id);
    c->e->conns--;
    c->on_gone(c->owner);
    free(c);
}

static const struct kr_conn_user conn_user = {on_request, NULL, NULL, on_close};

static void on_time_up(struct kr_timer *t)
{
    kr_conn_close(KR_CONTAINER_OF(t, struct hub_enroll_conn, end)->conn);
}

struct hub_enroll_conn *hub_enroll_serve(struct hub_enroll *e, struct kr_pipe *pipe,
                                         struct kr_identity *id, const char *address,
                                         void (*on_gone)(void *owner), void *owner)
{
    struct hub_enroll_conn *c = e->conns < CONNS_MAX ? calloc(1, sizeof *c) : NULL;
    const char *port = strrchr(address, ':');
    struct kr_h2_config cfg = {
        .server = true,
        .sched = e->w->sched,
        .user_ops = &conn_user,
        .owner = c,
        .shared = &e->w->h2,
        .max_streams = CALLS_MAX,
        .abuse = true,
        .preface_timeout_ms = CONN_MS / 2,
    };

    if (c == NULL)
        return NULL;
    c->e = e;
    snprintf(c->address, sizeof c->address, "%.*s",
             (int)(port != NULL ? (size_t)(port - address) : strlen(address)), address);
    c->on_gone = on_gone;
    c->owner = owner;
    kr_timer_init(&c->end, on_time_up);
    c->conn = kr_h2_create(&cfg, pipe);
    if (c->conn == NULL) {
        free(c);
        return NULL;
    }
    kr_timer_start(e->w->sched, &c->end, CONN_MS);
    c->id = *id;
    *id = (struct kr_identity){0};
    e->conns++;
    return c;
}

void hub_enroll_close(struct hub_enroll_conn *c)
{
    kr_conn_close(c->conn);
}

struct hub_enroll *hub_enroll_create(struct hub_worker *w, struct hub_issuer *is,
                                     struct hub_signer *signer, const struct hub_bundle *bundle)
{
    struct hub_enroll *e = calloc(1, sizeof *e);

    if (e == NULL)
        return NULL;
    e->w = w;
    e->issuer = is;
    e->signer = signer;
    e->bundle = bundle;
    e->minute_ms = w->sched->now_ms;
    kr_map_init(&e->tries, ADDRESSES_MAX);
    return e;
}

void hub_enroll_destroy(struct hub_enroll *e)
{
    if (e == NULL)
        return;
    forget(e);
    kr_map_deinit(&e->tries);
    free(e);
}
