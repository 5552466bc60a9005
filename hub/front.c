/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "http/h1_conn.h"
#include "hub/counters.h"
#include "hub/handshakes.h"
#include "hub/request.h"
#include "net/tls_pipe.h"

#define EXPIRED_MS 30000 /* from GOAWAY to the end, when a client's certificate has expired */

struct hub_front {
    struct hub_worker *w;
    struct kr_listener *listener;
    struct kr_list conns; /* client.link */
    size_t count;         /* of them */
    struct hub_handshakes handshakes;
    bool draining;
    struct kr_metric *m_conns;
    struct kr_log_limit refusals;
};

/* One client connection, from its handshake to its end. */
struct client {
    struct hub_front *f;
    struct kr_list link;
    struct kr_conn *conn; /* NULL during the handshake */
    struct hub_handshake handshake;
    struct kr_timer expiry; /* of its certificate, then of what it still runs */
    struct hub_peer peer;
};

static void client_free(struct client *c)
{
    struct hub_front *f = c->f;

    kr_list_remove(&c->link);
    kr_timer_stop(f->w->sched, &c->expiry);
    kr_identity_deinit(&c->peer.id);
    hub_caller_unref(c->peer.caller);
    free(c);
    f->count--;
    f->w->connections--;
    kr_metric_add(f->m_conns, -1);
    if (f->w->draining && kr_list_empty(&f->conns))
        f->w->on_quiet(f->w->owner);
}

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct client *c = owner;

    hub_request_start(c->f->w, &c->peer, ex);
}

static void on_conn_close(void *owner, int rc, const struct kr_note *why)
{
    struct client *c = owner;

    KR_LOG_AT(c->f->w->log, rc == KR_EPROTO ? KR_LOG_WARN : KR_LOG_DEBUG, "client-closed",
              KR_S("peer", c->peer.address), KR_S("user", c->peer.id.name),
              KR_S("reason", rc == 0 ? "" : why->text));
    client_free(c);
}

static const struct kr_conn_user conn_user = {on_request, NULL, NULL, on_conn_close};

static void on_bad_request(void *owner, int status, const char *why, struct kr_head *head,
                           struct kr_buf *body)
{
    struct client *c = owner;

    hub_answer_bad_request(c->f->w, status, why, head, body);
}

static struct kr_conn *serve_h2(struct client *c, struct kr_pipe *pipe)
{
    const struct hub_options *o = c->f->w->options;
    struct kr_h2_config cfg = {
        .server = true,
        .sched = c->f->w->sched,
        .user_ops = &conn_user,
        .owner = c,
        .peer = &c->peer,
        .shared = &c->f->w->h2,
        .abuse = true,
        .ping_after_ms = 30000,
        .ping_timeout_ms = 15000,
        .idle_timeout_ms = o->idle_timeout_ms,
        .stall_timeout_ms = o->stall_timeout_ms,
        .preface_timeout_ms = 10000,
    };

    return kr_h2_create(&cfg, pipe);
}

static struct kr_conn *serve_h1(struct client *c, struct kr_pipe *pipe)
{
    struct kr_h1_config cfg = {
        .sched = c->f->w->sched,
        .user_ops = &conn_user,
        .owner = c,
        .peer = &c->peer,
        .head_timeout_ms = 10000,
        .idle_timeout_ms = c->f->w->options->idle_timeout_ms,
        .on_bad_request = on_bad_request,
    };

    return kr_h1_server_create(&cfg, pipe);
}

static void log_refusal(struct hub_front *f, const struct client *c, const char *why)
{
    uint64_t held = 0;

    hub_worker_count(f->w, HUB_HANDSHAKE_FAILURES, "api");
    if (kr_log_allow(&f->refusals, f->w->sched->now_ms, 20, 1000, &held))
        KR_LOG_AT(f->w->log, KR_LOG_WARN, "client-refused", KR_S("peer", c->peer.address),
                  KR_S("reason", why), KR_U("held", held));
}

/* A certificate that TLS found good still has to name a user. */
static int judge(void *owner, const struct kr_tls_info *info, struct kr_note *why)
{
    struct client *c = owner;
    struct kr_identity_rules rules = {KR_ROLE_USER, c->f->w->self.domain};

    if (info->peer_der.n == 0)
        return 0;
    kr_identity_deinit(&c->peer.id);
    return kr_identity_judge(&c->peer.id, info->peer_der, &rules, why);
}

/* TLS never looks at the time again. GOAWAY first, so that clients come with a new certificate. */
static void on_expiry(struct kr_timer *t)
{
    struct client *c = KR_CONTAINER_OF(t, struct client, expiry);

    if (c->conn->draining) {
        kr_conn_close(c->conn);
        return;
    }
    KR_LOG_AT(c->f->w->log, KR_LOG_INFO, "client-expired", KR_S("peer", c->peer.address),
              KR_S("user", c->peer.id.name));
    kr_timer_start(c->f->w->sched, &c->expiry, EXPIRED_MS);
    kr_conn_drain(c->conn);
}

static void watch_expiry(struct client *c)
{
    struct kr_sched *s = c->f->w->sched;

    if (c->peer.known && c->peer.id.not_after_wall_ms != 0)
        kr_timer_start(s, &c->expiry, c->peer.id.not_after_wall_ms - s->now_wall_ms);
}

static int on_handshake(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                        const struct kr_note *why)
{
    struct client *c = owner;
    struct hub_front *f = c->f;

    hub_handshake_end(&f->handshakes, &c->handshake);
    if (rc != 0) {
        if (rc != KR_ECONNLOST)
            log_refusal(f, c, why->text);
        client_free(c);
        return 0;
    }
    c->peer.known = info->peer_der.n != 0 && c->peer.id.name[0] != '\0';
    if (c->peer.known)
        c->peer.caller = hub_caller_of_identity(&c->peer.id);
    snprintf(c->peer.sni, sizeof c->peer.sni, "%s", info->sni);
    c->conn = strcmp(info->alpn, "h2") == 0 ? serve_h2(c, pipe) : serve_h1(c, pipe);
    if (c->conn == NULL) {
        client_free(c);
        return KR_ENOMEM;
    }
    watch_expiry(c);
    if (f->draining)
        kr_conn_drain(c->conn);
    return 0;
}

static const struct kr_tls_user tls_user = {judge, on_handshake};

/* Some places are kept for agents: clients must not shut them out. */
static bool has_place(const struct hub_worker *w)
{
    return w->connections <
           (size_t)(w->options->max_connections - w->options->max_connections / 10);
}

static void on_accept(void *owner, int fd, const char *peer)
{
    struct hub_front *f = owner;
    struct hub_worker *w = f->w;
    struct client *c = has_place(w) ? calloc(1, sizeof *c) : NULL;
    struct kr_tls_start start = {.ctx = w->api_tls, .fd = fd, .user_ops = &tls_user, .owner = c};
    struct kr_pipe *pipe;

    if (c == NULL) {
        close(fd);
        return;
    }
    c->f = f;
    kr_timer_init(&c->expiry, on_expiry);
    snprintf(c->peer.address, sizeof c->peer.address, "%s", peer);
    kr_list_append(&f->conns, &c->link);
    f->count++;
    w->connections++;
    kr_metric_add(f->m_conns, 1);
    pipe = kr_tls_accept(w->io, &start, NULL);
    if (pipe != NULL)
        hub_handshake_begin(&f->handshakes, &c->handshake, pipe, peer);
    else
        client_free(c);
}

struct hub_front *hub_front_create(struct hub_worker *w, struct kr_note *why)
{
    struct hub_front *f = calloc(1, sizeof *f);
    struct kr_listener_config cfg = {.on_accept = on_accept, .owner = f, .peer_speaks_first = true};
    struct kr_hostport at;

    if (f == NULL)
        return NULL;
    f->w = w;
    kr_list_init(&f->conns);
    f->m_conns = kr_metrics_get(w->metrics, HUB_CONNECTIONS, "api");
    cfg.at = &at;
    if (kr_hostport_parse(w->options->api_listen, 0, &at, why) == 0)
        f->listener = kr_listener_create(w->loop, &cfg, why);
    hub_handshakes_init(&f->handshakes, w->sched, (size_t)w->options->max_handshakes);
    f->handshakes.listener = f->listener;
    if (f->listener == NULL) {
        kr_note_wrap(why, KR_EIO, "apiListen");
        free(f);
        return NULL;
    }
    return f;
}

void hub_front_destroy(struct hub_front *f)
{
    if (f == NULL)
        return;
    KR_ASSERT(kr_list_empty(&f->conns));
    hub_handshakes_deinit(&f->handshakes);
    kr_listener_destroy(f->listener);
    free(f);
}

const char *hub_front_address(const struct hub_front *f)
{
    return kr_listener_text(f->listener);
}

size_t hub_front_connections(const struct hub_front *f)
{
    return f->count;
}

void hub_front_stop_accepting(struct hub_front *f)
{
    f->draining = true;
    hub_handshakes_stop(&f->handshakes);
}

void hub_front_drain(struct hub_front *f)
{
    KR_LIST_FOREACH_SAFE(node, &f->conns)
    {
        struct client *c = KR_CONTAINER_OF(node, struct client, link);

        if (c->conn != NULL)
            kr_conn_drain(c->conn);
    }
}

void hub_front_close(struct hub_front *f)
{
    KR_LIST_FOREACH_SAFE(node, &f->conns)
    {
        struct client *c = KR_CONTAINER_OF(node, struct client, link);

        if (c->conn != NULL)
            kr_conn_close(c->conn);
        else if (c->handshake.pipe != NULL)
            kr_pipe_close(c->handshake.pipe, KR_PIPE_ABORT);
    }
}

void hub_front_drop_revoked(struct hub_front *f, const struct kr_crl *crl)
{
    KR_LIST_FOREACH_SAFE(node, &f->conns)
    {
        struct client *c = KR_CONTAINER_OF(node, struct client, link);

        if (c->conn != NULL && c->peer.known && kr_crl_lists(crl, c->peer.id.serial))
            kr_conn_close(c->conn);
    }
}
