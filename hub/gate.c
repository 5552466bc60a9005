/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/counters.h"
#include "hub/enroll.h"
#include "hub/handshakes.h"
#include "hub/tunnel.h"
#include "net/tls_pipe.h"

#define USER_TIMEOUT_MS 25000 /* unacknowledged bytes on a tunnel */

struct hub_gate {
    struct hub_worker *w;
    struct kr_listener *listener;
    struct kr_list guests; /* guest.link */
    struct hub_handshakes handshakes;
    struct hub_enroll *enroll; /* borrowed; NULL: agents cannot enroll here */
    bool draining;
    struct kr_metric *m_conns;
    struct kr_log_limit refusals;
};

/* One connection on the agent port: a handshake, then a tunnel, or calls of Enrollment. */
struct guest {
    struct hub_gate *g;
    struct kr_list link;
    struct hub_handshake handshake;
    struct hub_tunnel *tunnel;
    struct hub_enroll_conn *enroll;
    struct kr_identity id; /* during the handshake */
    char address[64];
};

static void guest_free(struct guest *u)
{
    struct hub_gate *g = u->g;

    kr_list_remove(&u->link);
    kr_identity_deinit(&u->id);
    free(u);
    g->w->connections--;
    kr_metric_add(g->m_conns, -1);
}

static void on_tunnel_gone(void *owner, struct hub_tunnel *t)
{
    struct guest *u = owner;

    (void)t;
    guest_free(u);
}

static const struct hub_tunnel_owner tunnel_owner = {on_tunnel_gone};

static void on_enroll_gone(void *owner)
{
    guest_free(owner);
}

static int judge(void *owner, const struct kr_tls_info *info, struct kr_note *why)
{
    struct guest *u = owner;
    struct kr_identity_rules rules = {KR_ROLE_AGENT, u->g->w->self.domain};

    int rc;

    kr_identity_deinit(&u->id);
    if (info->peer_der.n == 0)
        return 0; /* TLS has demanded one where it must be */
    rc = kr_identity_judge(&u->id, info->peer_der, &rules, why);
    return rc == 0 ? hub_registry_judge(u->g->w->registry, &u->id, u->address, why) : rc;
}

static void log_refusal(struct hub_gate *g, const struct guest *u, const char *why)
{
    uint64_t held = 0;

    hub_worker_count(g->w, HUB_HANDSHAKE_FAILURES, "agent");
    if (kr_log_allow(&g->refusals, g->w->sched->now_ms, 20, 1000, &held))
        KR_LOG_AT(g->w->log, KR_LOG_WARN, "agent-refused", KR_S("peer", u->address),
                  KR_S("reason", why), KR_U("held", held));
}

static int on_handshake(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                        const struct kr_note *why)
{
    struct guest *u = owner;
    struct hub_gate *g = u->g;

    hub_handshake_end(&g->handshakes, &u->handshake);
    if (rc == 0 && strcmp(info->alpn, "h2") == 0 && g->enroll != NULL) {
        u->enroll = hub_enroll_serve(g->enroll, pipe, &u->id, u->address, on_enroll_gone, u);
        if (u->enroll != NULL)
            return 0;
        rc = KR_EFULL;
    }
    if (rc == 0 && (strcmp(info->alpn, "kuberelay/1") != 0 || u->id.name[0] == '\0'))
        rc = KR_ETLS;
    if (rc == 0)
        u->tunnel = hub_tunnel_create(g->w, pipe, &u->id, u->address, &tunnel_owner, u);
    if (u->tunnel == NULL) {
        if (rc == 0)
            rc = KR_ENOMEM;
        log_refusal(g, u, why != NULL && why->text[0] != '\0' ? why->text : kr_err_text(rc));
        guest_free(u);
        return rc;
    }
    if (g->draining)
        hub_tunnel_drain(u->tunnel);
    return 0;
}

static const struct kr_tls_user tls_user = {judge, on_handshake};

static void on_accept(void *owner, int fd, const char *peer)
{
    struct hub_gate *g = owner;
    struct hub_worker *w = g->w;
    struct guest *u =
        w->connections < (size_t)w->options->max_connections ? calloc(1, sizeof *u) : NULL;
    struct kr_tls_start start = {.ctx = w->agent_tls, .fd = fd, .user_ops = &tls_user, .owner = u};
    struct kr_pipe *pipe;

    if (u == NULL) {
        close(fd);
        return;
    }
    u->g = g;
    snprintf(u->address, sizeof u->address, "%s", peer);
    kr_list_append(&g->guests, &u->link);
    w->connections++;
    kr_metric_add(g->m_conns, 1);
    pipe = kr_tls_accept(w->io, &start, NULL);
    if (pipe != NULL)
        hub_handshake_begin(&g->handshakes, &u->handshake, pipe, peer);
    else
        guest_free(u);
}

struct hub_gate *hub_gate_create(struct hub_worker *w, struct hub_enroll *enroll,
                                 struct kr_note *why)
{
    struct hub_gate *g = calloc(1, sizeof *g);
    struct kr_listener_config cfg = {.on_accept = on_accept,
                                     .owner = g,
                                     .peer_speaks_first = true,
                                     .user_timeout_ms = USER_TIMEOUT_MS};
    struct kr_hostport at;

    if (g == NULL)
        return NULL;
    g->w = w;
    g->enroll = enroll;
    kr_list_init(&g->guests);
    g->m_conns = kr_metrics_get(w->metrics, HUB_CONNECTIONS, "agent");
    cfg.at = &at;
    if (kr_hostport_parse(w->options->agent_listen, 0, &at, why) == 0)
        g->listener = kr_listener_create(w->loop, &cfg, why);
    hub_handshakes_init(&g->handshakes, w->sched, (size_t)w->options->max_handshakes);
    g->handshakes.listener = g->listener;
    if (g->listener == NULL) {
        kr_note_wrap(why, KR_EIO, "agentListen");
        free(g);
        return NULL;
    }
    return g;
}

void hub_gate_destroy(struct hub_gate *g)
{
    if (g == NULL)
        return;
    KR_ASSERT(kr_list_empty(&g->guests));
    hub_handshakes_deinit(&g->handshakes);
    kr_listener_destroy(g->listener);
    free(g);
}

const char *hub_gate_address(const struct hub_gate *g)
{
    return kr_listener_text(g->listener);
}

void hub_gate_drain(struct hub_gate *g)
{
    g->draining = true;
    hub_handshakes_stop(&g->handshakes);
    KR_LIST_FOREACH_SAFE(node, &g->guests)
    {
        struct guest *u = KR_CONTAINER_OF(node, struct guest, link);

        if (u->tunnel != NULL)
            hub_tunnel_drain(u->tunnel);
    }
}

void hub_gate_close(struct hub_gate *g)
{
    KR_LIST_FOREACH_SAFE(node, &g->guests)
    {
        struct guest *u = KR_CONTAINER_OF(node, struct guest, link);

        if (u->tunnel != NULL)
            hub_tunnel_close(u->tunnel);
        else if (u->enroll != NULL)
            hub_enroll_close(u->enroll);
        else if (u->handshake.pipe != NULL)
            kr_pipe_close(u->handshake.pipe, KR_PIPE_ABORT);
    }
}

void hub_gate_drop_revoked(struct hub_gate *g, const struct kr_crl *crl)
{
    KR_LIST_FOREACH_SAFE(node, &g->guests)
    {
        struct guest *u = KR_CONTAINER_OF(node, struct guest, link);

        if (u->tunnel != NULL && kr_crl_lists(crl, hub_tunnel_identity(u->tunnel)->serial))
            hub_tunnel_refuse(u->tunnel, "the agent's certificate was revoked");
    }
}
