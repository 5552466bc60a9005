/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: get -> the least loaded connection. None: a dial starts (TCP, TLS, ALPN) and the
 * waiter is called when its connection is usable. Failure: every waiter hears of it. A connection
 * that the server drains (GOAWAY) leaves the pool at once and ends by itself. */
#include "agent/apiserver.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/counters.h"
#include "agent/kubeconfig.h"
#include "agent/token.h"
#include "base/assert.h"
#include "base/err.h"
#include "certs/store_file.h"
#include "http/h1_conn.h"
#include "net/dial.h"
#include "net/tls_pipe.h"

#define H2_MAX 64
#define H1_MAX 256
#define ALONE_MAX 1024
#define BUSY 64 /* exchanges on every connection before another one is dialled ahead of need */
#define CA_FRESH_MS 300000

struct agent_apiserver {
    struct agent_core *c;
    struct agent_kubeconfig k;
    struct agent_token token;
    struct kr_tls_context *tls;
    struct kr_tls_context *tls_h1;   /* offers HTTP/1.1 only */
    struct kr_tls_context *tls_bare; /* the same without our certificate */
    int64_t tls_ms;                  /* when it was made */
    struct kr_list conns;            /* backend.link */
    struct kr_list waiting;          /* agent_waiter.link */
    struct kr_task serve;            /* hands connections to waiters */
    size_t count;                    /* in the pool */
    size_t alone;                    /* for upgrades */
    size_t dialing;
    bool h1; /* what the server spoke last */
    char authority[280];
    struct kr_metric *m_conns;
};

/* One connection, from its dial to its end. */
struct backend {
    struct agent_apiserver *s;
    struct kr_list link;
    struct kr_dial *dial; /* while dialling */
    struct kr_pipe *pipe; /* while shaking hands */
    struct kr_conn *conn; /* after that */
    bool alone;           /* for one upgrade, or one request that is not ours */
    bool bare;
    struct kr_list user; /* alone: the agent_waiter.link of who wants it, as long as they do */
};

static const struct kr_tls_alpn alpn[] = {{"h2", KR_TLS_CERT_NONE}, {"http/1.1", KR_TLS_CERT_NONE}};

static struct kr_tls_context *make_tls(struct agent_apiserver *s, bool h1, bool bare,
                                       struct kr_note *why)
{
    struct kr_tls_config cfg = {
        .tls12 = true,
        .cert.bytes = kr_buf_bytes(&s->k.cert_pem),
        .key.bytes = kr_buf_bytes(&s->k.key_pem),
        .ca.bytes = kr_buf_bytes(&s->k.ca_pem),
        .alpn = h1 ? alpn + 1 : alpn,
        .alpn_count = h1 ? 1 : 2,
        .lax_x509 = true,
        .secret_out = true,
    };

    if (bare)
        cfg.cert.bytes = cfg.key.bytes = (struct kr_bytes){NULL, 0};
    return kr_tls_context_create(&cfg, NULL, why);
}

static int make_all(struct agent_apiserver *s, struct kr_note *why)
{
    struct kr_tls_context *tls = make_tls(s, false, false, why);
    struct kr_tls_context *h1 = tls != NULL ? make_tls(s, true, false, why) : NULL;
    struct kr_tls_context *bare = h1 != NULL ? make_tls(s, true, true, why) : NULL;

    if (bare == NULL) {
        kr_tls_context_unref(tls);
        kr_tls_context_unref(h1);
        return KR_ETLS;
    }
    kr_tls_context_unref(s->tls);
    kr_tls_context_unref(s->tls_h1);
    kr_tls_context_unref(s->tls_bare);
    s->tls = tls;
    s->tls_h1 = h1;
    s->tls_bare = bare;
    return 0;
}

/* New roots are for new connections only; a file that cannot be read or used changes nothing. */
static void refresh_ca(struct agent_apiserver *s)
{
    struct kr_buf pem = {.max = AGENT_FILE_MAX};
    struct kr_buf old = s->k.ca_pem;

    if (s->k.ca_file == NULL || s->c->sched->now_ms - s->tls_ms < CA_FRESH_MS)
        return;
    s->tls_ms = s->c->sched->now_ms;
    if (kr_file_read(&pem, s->k.ca_file, AGENT_FILE_MAX, NULL) != 0 || pem.n == 0 ||
        kr_bytes_eq(kr_buf_bytes(&pem), kr_buf_bytes(&old))) {
        kr_buf_deinit(&pem);
        return;
    }
    s->k.ca_pem = pem;
    if (make_all(s, NULL) == 0) {
        kr_buf_deinit(&old);
    } else {
        s->k.ca_pem = old;
        kr_buf_deinit(&pem);
    }
}

static void backend_free(struct backend *b)
{
    struct agent_apiserver *s = b->s;

    kr_list_remove(&b->link);
    if (b->alone)
        s->alone--;
    else
        s->count--;
    kr_metric_set(s->m_conns, (int64_t)(s->count + s->alone));
    free(b);
}

static void wake(struct agent_apiserver *s)
{
    kr_task_post(s->c->sched, &s->serve);
}

static void fail_waiters(struct agent_apiserver *s, int rc, const struct kr_note *why)
{
    struct kr_list failed;
    struct kr_list *node;

    kr_list_init(&failed);
    while ((node = kr_list_pop(&s->waiting)) != NULL)
        kr_list_append(&failed, node);
    while ((node = kr_list_pop(&failed)) != NULL) {
        struct agent_waiter *w = KR_CONTAINER_OF(node, struct agent_waiter, link);

        w->on_conn(w, NULL, rc, why);
    }
}

static void on_ready(void *owner)
{
    wake(((struct backend *)owner)->s);
}

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct backend *b = owner;
    struct agent_apiserver *s = b->s;

    KR_LOG_AT(s->c->log, KR_LOG_DEBUG, "api-connection-closed", KR_S("reason", why->text),
              KR_S("code", kr_err_text(rc)));
    backend_free(b);
    if (!kr_list_empty(&s->waiting))
        wake(s);
}

static const struct kr_conn_user conn_user = {NULL, NULL, on_ready, on_close};

static struct kr_conn *make_conn(struct backend *b, struct kr_pipe *pipe, bool h2)
{
    struct agent_core *c = b->s->c;
    struct kr_h2_config h2_cfg = {
        .sched = c->sched,
        .user_ops = &conn_user,
        .owner = b,
        .shared = &c->h2,
        .window = 256 * 1024, /* docs/adr/0009-first-windows.md */
        .ping_after_ms = 15000,
        .ping_timeout_ms = 10000,
        .idle_timeout_ms = 90000,
    };
    struct kr_h1_config h1_cfg = {
        .sched = c->sched, .user_ops = &conn_user, .owner = b, .idle_timeout_ms = 60000};

    return h2 ? kr_h2_create(&h2_cfg, pipe) : kr_h1_client_create(&h1_cfg, pipe);
}

static void dial_failed(struct backend *b, int rc, const struct kr_note *why)
{
    struct agent_apiserver *s = b->s;
    struct kr_list *user = b->alone ? kr_list_pop(&b->user) : NULL;
    struct kr_note copy = *why;
    bool alone = b->alone;

    KR_LOG_AT(s->c->log, KR_LOG_WARN, "api-unreachable", KR_S("address", s->authority),
              KR_S("reason", copy.text));
    backend_free(b);
    if (!alone) {
        fail_waiters(s, rc, &copy);
    } else if (user != NULL) {
        struct agent_waiter *w = KR_CONTAINER_OF(user, struct agent_waiter, link);

        w->on_conn(w, NULL, rc, &copy);
    }
}

/* Whoever wanted a connection of its own has it now, or is gone meanwhile. */
static void hand_over(struct backend *b)
{
    struct kr_list *user = kr_list_pop(&b->user);
    struct agent_waiter *w = KR_CONTAINER_OF(user, struct agent_waiter, link);

    if (user == NULL)
        kr_conn_close(b->conn);
    else
        w->on_conn(w, b->conn, 0, NULL);
}

static int on_handshake(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                        const struct kr_note *why)
{
    struct backend *b = owner;
    struct kr_note memory = {"out of memory"};

    b->s->dialing -= !b->alone;
    b->pipe = NULL;
    if (rc == 0) {
        bool h2 = strcmp(info->alpn, "h2") == 0;

        b->conn = make_conn(b, pipe, h2);
        if (b->conn != NULL && b->alone) {
            hand_over(b);
            return 0;
        }
        if (b->conn != NULL) {
            b->s->h1 = !h2;
            wake(b->s);
            return 0;
        }
        rc = KR_ENOMEM;
        why = &memory;
    }
    dial_failed(b, rc, why);
    return rc;
}

static const struct kr_tls_user tls_user = {NULL, on_handshake};

static void on_dial(void *owner, int rc, int fd, const char *peer, const struct kr_note *why)
{
    struct backend *b = owner;
    struct agent_apiserver *s = b->s;
    struct kr_tls_start start = {
        .ctx = b->bare    ? s->tls_bare
               : b->alone ? s->tls_h1
                          : s->tls,
        .fd = fd,
        .user_ops = &tls_user,
        .owner = b,
        .timeout_ms = s->c->options->api_timeout_ms,
        .server_name = s->k.server_name,
        .verify_host = s->k.server_name,
    };
    struct kr_note note = {"out of memory"};

    (void)peer;
    b->dial = NULL;
    if (rc == 0) {
        b->pipe = kr_tls_connect(s->c->io, &start, &note);
        if (b->pipe != NULL)
            return;
        rc = KR_ENOMEM;
        why = &note;
    }
    s->dialing -= !b->alone;
    dial_failed(b, rc, why);
}

static int dial(struct agent_apiserver *s, struct agent_waiter *alone)
{
    struct backend *b = calloc(1, sizeof *b);
    struct kr_dial_config cfg = {
        .host = s->k.host,
        .port = (uint16_t)strtoul(s->k.port, NULL, 10),
        .timeout_ms = s->c->options->api_timeout_ms,
        .on_done = on_dial,
        .owner = b,
    };
    struct kr_note why = {"out of memory"};

    if (b == NULL)
        return KR_ENOMEM;
    refresh_ca(s);
    b->s = s;
    b->alone = alone != NULL;
    b->bare = alone != NULL && alone->bare;
    kr_list_init(&b->user);
    b->dial = kr_dial_start(s->c->loop, &cfg, &why);
    if (b->dial == NULL) {
        free(b);
        return KR_ENOMEM;
    }
    kr_list_append(&s->conns, &b->link);
    if (alone != NULL) {
        kr_list_append(&b->user, &alone->link);
        s->alone++;
    } else {
        s->count++;
        s->dialing++;
    }
    kr_metric_set(s->m_conns, (int64_t)(s->count + s->alone));
    return 0;
}

int agent_apiserver_dial_alone(struct agent_apiserver *s, struct agent_waiter *w)
{
    return s->alone < ALONE_MAX ? dial(s, w) : KR_EFULL;
}

/* The least loaded connection that takes exchanges; HTTP/1.1 ones carry one at a time. */
static struct kr_conn *pick(struct agent_apiserver *s)
{
    struct kr_conn *best = NULL;

    KR_LIST_FOREACH(node, &s->conns)
    {
        struct backend *b = KR_CONTAINER_OF(node, struct backend, link);
        struct kr_conn *c = b->conn;

        if (c == NULL || b->alone || !kr_conn_has_room(c))
            continue;
        if (best == NULL || c->exchanges < best->exchanges)
            best = c;
    }
    return best;
}

static bool may_dial(const struct agent_apiserver *s)
{
    return s->count < (s->h1 ? H1_MAX : H2_MAX) && s->dialing < (s->h1 ? 16 : 1);
}

void agent_apiserver_wait(struct agent_apiserver *s, struct agent_waiter *w)
{
    kr_list_append(&s->waiting, &w->link);
    if (may_dial(s))
        dial(s, NULL);
    if (s->dialing == 0)
        wake(s); /* nothing will come by itself: the full pool is looked at again */
}

struct kr_conn *agent_apiserver_get(struct agent_apiserver *s, struct agent_waiter *w)
{
    struct kr_conn *conn = kr_list_empty(&s->waiting) ? pick(s) : NULL;

    if (conn == NULL)
        agent_apiserver_wait(s, w);
    else if (conn->is_h2 && conn->exchanges >= BUSY && may_dial(s))
        dial(s, NULL);
    return conn;
}

/* Each waiter gets what is free now. One whose kr_conn_open fails comes back by _wait, behind those
 * that were here before, so this ends. */
static void on_serve(struct kr_task *t)
{
    struct agent_apiserver *s = KR_CONTAINER_OF(t, struct agent_apiserver, serve);
    struct kr_note full = {"all connections to the API server are in use"};
    struct kr_list now;
    struct kr_list *node;

    kr_list_init(&now);
    while ((node = kr_list_pop(&s->waiting)) != NULL)
        kr_list_append(&now, node);
    while ((node = kr_list_pop(&now)) != NULL) {
        struct agent_waiter *w = KR_CONTAINER_OF(node, struct agent_waiter, link);
        struct kr_conn *conn = pick(s);

        if (conn != NULL)
            w->on_conn(w, conn, 0, NULL);
        else if (may_dial(s) || s->dialing != 0)
            agent_apiserver_wait(s, w);
        else
            w->on_conn(w, NULL, KR_EFULL, &full);
    }
}

static int start(struct agent_apiserver *s, struct kr_note *why)
{
    const struct agent_options *o = s->c->options;
    struct kr_bytes host;
    int rc = o->kubeconfig != NULL
                 ? agent_kubeconfig_load(&s->k, o->kubeconfig, o->context, why)
                 : agent_kubeconfig_in_cluster(&s->k, o->service_account_dir, why);

    if (rc == 0)
        rc = agent_token_init(&s->token, s->k.token, s->k.token_file, s->c->sched->now_ms, why);
    if (rc != 0)
        return rc;
    host = kr_bytes_str(s->k.host);
    snprintf(s->authority, sizeof s->authority,
             kr_bytes_find(host, ':') != host.n ? "[%s]:%s" : "%s:%s", s->k.host, s->k.port);
    s->tls_ms = s->c->sched->now_ms;
    return make_all(s, why);
}

struct agent_apiserver *agent_apiserver_create(struct agent_core *c, struct kr_note *why)
{
    struct agent_apiserver *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->c = c;
    kr_list_init(&s->conns);
    kr_list_init(&s->waiting);
    kr_task_init(&s->serve, on_serve);
    s->m_conns = kr_metrics_series(c->metrics, AGENT_API_CONNECTIONS, NULL, 0);
    if (start(s, why) != 0) {
        agent_apiserver_destroy(s);
        return NULL;
    }
    return s;
}

void agent_apiserver_close(struct agent_apiserver *s)
{
    KR_LIST_FOREACH_SAFE(node, &s->conns)
    {
        struct backend *b = KR_CONTAINER_OF(node, struct backend, link);

        if (b->conn != NULL) {
            kr_conn_close(b->conn);
        } else if (b->pipe != NULL) {
            kr_pipe_close(b->pipe, KR_PIPE_ABORT);
        } else {
            kr_dial_cancel(b->dial);
            s->dialing -= !b->alone;
            backend_free(b);
        }
    }
}

void agent_apiserver_destroy(struct agent_apiserver *s)
{
    if (s == NULL)
        return;
    KR_ASSERT(kr_list_empty(&s->conns) && kr_list_empty(&s->waiting));
    kr_task_cancel(&s->serve);
    kr_tls_context_unref(s->tls);
    kr_tls_context_unref(s->tls_h1);
    kr_tls_context_unref(s->tls_bare);
    agent_token_deinit(&s->token);
    agent_kubeconfig_deinit(&s->k);
    free(s);
}

bool agent_apiserver_has_certificate(const struct agent_apiserver *s)
{
    return s->k.cert_pem.n != 0;
}

struct kr_bytes agent_apiserver_authority(const struct agent_apiserver *s)
{
    return kr_bytes_str(s->authority);
}

struct kr_bytes agent_apiserver_prefix(const struct agent_apiserver *s)
{
    return kr_bytes_str(s->k.path);
}

struct kr_bytes agent_apiserver_authorization(struct agent_apiserver *s, uint32_t *generation)
{
    struct kr_bytes header = agent_token_header(&s->token, s->c->sched->now_ms);

    *generation = s->token.generation;
    return header;
}

bool agent_apiserver_token_refused(struct agent_apiserver *s, uint32_t generation)
{
    return agent_token_refused(&s->token, generation, s->c->sched->now_ms);
}
