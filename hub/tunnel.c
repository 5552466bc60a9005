/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: create -> the agent's SETTINGS come -> Attach is called -> the agent's first state ->
 * linked into its cluster -> states every heartbeat -> the connection ends -> unlinked.
 * Failure modes: no state in time, a state that is refused, no heartbeat, a broken Attach stream:
 * the connection is closed, and the agent dials again. */
#include "hub/tunnel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/counters.h"
#include "hub/subscriptions.h"
#include "wire/grpc_call.h"
#include "wire/messages.h"

#define ATTACH_TIMEOUT_MS 10000
#define HEARTBEATS_MISSED 3

struct hub_tunnel {
    struct hub_worker *w;
    struct kr_conn *conn;
    struct hub_cluster *cluster; /* once attached */
    struct hub_link link;
    struct kr_grpc_stream attach;
    struct kr_timer alive; /* until the first state, then between heartbeats */
    struct kr_identity id;
    char address[64];
    char version[32];
    bool attached;
    bool draining;
    const char *why; /* why we closed it ourselves */
    const struct hub_tunnel_owner *ops;
    void *owner;
};

void hub_tunnel_close(struct hub_tunnel *t)
{
    kr_conn_close(t->conn);
}

static void fail(struct hub_tunnel *t, const char *why)
{
    t->why = t->why != NULL ? t->why : why;
    hub_tunnel_close(t);
}

static int send_state(struct hub_tunnel *t)
{
    struct kr_hub_state state = {
        .replica = kr_bytes_str(t->w->self.name),
        .heartbeat_ms = (uint32_t)t->w->options->heartbeat_ms,
        .draining = t->draining,
        .hub_time_wall_ms = t->w->sched->now_wall_ms,
        .version = KR_LIT(KR_VERSION),
    };
    struct kr_buf out = {.max = KR_STATE_MAX};
    int rc = kr_hub_state_encode(&state, &out);

    if (rc == 0)
        rc = kr_grpc_send(&t->attach, kr_buf_bytes(&out));
    kr_buf_deinit(&out);
    return rc;
}

static bool has_feature(const struct kr_agent_state *s, const char *name)
{
    for (size_t i = 0; i < s->feature_count; i++) {
        if (kr_bytes_is(s->features[i], name))
            return true;
    }
    return false;
}

static void copy_text(char *out, size_t size, struct kr_bytes in)
{
    snprintf(out, size, "%.*s", (int)in.n, (const char *)in.p);
}

/* What operators are shown of the cluster. */
static void note_facts(struct hub_tunnel *t, const struct kr_agent_state *s)
{
    struct hub_cluster *c = t->cluster;

    copy_text(c->agent_version, sizeof c->agent_version, s->version);
    if (s->api_server_version.n != 0)
        copy_text(c->server_version, sizeof c->server_version, s->api_server_version);
    c->nodes = s->nodes;
}

static int attach(struct hub_tunnel *t, const struct kr_agent_state *s)
{
    t->cluster = hub_clusters_add(&t->w->clusters, t->id.name);
    if (t->cluster == NULL)
        return KR_EFULL;
    t->attached = true;
    t->link.conn = t->conn;
    t->link.lane = s->lane == KR_LANE_BULK ? HUB_LANE_BULK : HUB_LANE_INTERACTIVE;
    t->link.draining = s->draining;
    t->link.syncs = has_feature(s, KR_FEATURE_SYNC);
    copy_text(t->version, sizeof t->version, s->version);
    kr_metric_add(kr_metrics_series(t->w->metrics, HUB_TUNNEL_UP, NULL, 0), 1);
    KR_LOG_AT(t->w->log, KR_LOG_INFO, "tunnel-up", KR_S("cluster", t->id.name),
              KR_S("instance", t->id.instance), KR_S("peer", t->address),
              KR_S("lane", t->link.lane == HUB_LANE_BULK ? "bulk" : "interactive"),
              KR_S("version", t->version));
    hub_cluster_link(&t->w->clusters, t->cluster, &t->link);
    if (t->w->subscriptions != NULL)
        hub_subscriptions_tunnel_up(t->w->subscriptions, t->cluster);
    return 0;
}

static int on_message(void *user, struct kr_bytes message)
{
    struct hub_tunnel *t = user;
    struct kr_agent_state s;
    struct kr_arena arena;
    struct kr_note why = {""};
    int rc;

    kr_arena_init(&arena, 1024, KR_DECODE_ARENA(message.n));
    rc = kr_agent_state_decode(&s, message, &arena, &why);
    if (rc != 0) {
        KR_LOG_AT(t->w->log, KR_LOG_WARN, "agent-state-refused", KR_S("cluster", t->id.name),
                  KR_S("reason", why.text));
    } else {
        kr_timer_start(t->w->sched, &t->alive, HEARTBEATS_MISSED * t->w->options->heartbeat_ms);
        t->link.draining = s.draining;
        if (!t->attached)
            rc = attach(t, &s);
        if (rc == 0)
            note_facts(t, &s);
    }
    kr_arena_deinit(&arena);
    return rc;
}

static void on_attach_end(void *user, int status, struct kr_bytes message)
{
    struct hub_tunnel *t = user;

    KR_LOG_AT(t->w->log, KR_LOG_DEBUG, "attach-ended", KR_S("cluster", t->id.name),
              KR_I("status", status), KR_B("message", message));
    fail(t, "the Attach stream ended");
}

static const struct kr_grpc_user attach_user = {on_message, NULL, on_attach_end};

static void on_ready(void *owner)
{
    struct hub_tunnel *t = owner;
    struct kr_grpc_limits limits = {.message = KR_STATE_MAX, .queue = 4 * KR_STATE_MAX};

    if (kr_grpc_open(&t->attach, t->conn, KR_LIT("agent"), KR_LIT(KR_GRPC_ATTACH), limits,
                     &attach_user, t) != 0 ||
        send_state(t) != 0)
        fail(t, "Attach could not be called");
}

static void on_drain(void *owner)
{
    struct hub_tunnel *t = owner;

    t->link.draining = true; /* GOAWAY of the agent; what runs goes on */
}

static void on_alive_end(struct kr_timer *timer)
{
    struct hub_tunnel *t = KR_CONTAINER_OF(timer, struct hub_tunnel, alive);

    fail(t, t->attached ? "no heartbeat" : "no state of the agent in time");
}

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct hub_tunnel *t = owner;

    kr_timer_stop(t->w->sched, &t->alive);
    if (t->attached) {
        hub_cluster_unlink(&t->w->clusters, t->cluster, &t->link);
        kr_metric_add(kr_metrics_series(t->w->metrics, HUB_TUNNEL_DOWN, NULL, 0), 1);
        if (t->w->subscriptions != NULL)
            hub_subscriptions_tunnel_down(t->w->subscriptions, t->cluster, t->conn);
    }
    KR_LOG_AT(t->w->log, KR_LOG_INFO, "tunnel-down", KR_S("cluster", t->id.name),
              KR_S("instance", t->id.instance), KR_S("peer", t->address),
              KR_T("attached", t->attached),
              KR_S("reason", t->why != NULL ? t->why
                             : rc != 0      ? why->text
                                            : "closed"));
    kr_grpc_deinit(&t->attach);
    t->ops->on_gone(t->owner, t);
    kr_identity_deinit(&t->id);
    free(t);
}

static const struct kr_conn_user conn_user = {NULL, on_drain, on_ready, on_close};

struct hub_tunnel *hub_tunnel_create(struct hub_worker *w, struct kr_pipe *pipe,
                                     struct kr_identity *id, const char *address,
                                     const struct hub_tunnel_owner *ops, void *owner)
{
    struct hub_tunnel *t = calloc(1, sizeof *t);
    int64_t silence = w->options->silence_ms;
    struct kr_h2_config cfg = {
        .sched = w->sched,
        .user_ops = &conn_user,
        .owner = t,
        .shared = &w->h2,
        .window = 256 * 1024, /* docs/adr/0009-first-windows.md */
        /* The PING goes out when two fifths of the time have passed, jittered per connection. */
        .ping_after_ms = kr_rand_ms(&w->rand, silence * 3 / 10, silence * 2 / 5),
        .ping_timeout_ms = silence * 2 / 5,
        .preface_timeout_ms = ATTACH_TIMEOUT_MS,
    };

    if (t == NULL)
        return NULL;
    t->w = w;
    t->ops = ops;
    t->owner = owner;
    snprintf(t->address, sizeof t->address, "%s", address);
    kr_timer_init(&t->alive, on_alive_end);
    kr_timer_start(w->sched, &t->alive, ATTACH_TIMEOUT_MS);
    t->conn = kr_h2_create(&cfg, pipe);
    if (t->conn == NULL) {
        kr_timer_stop(w->sched, &t->alive);
        free(t);
        return NULL;
    }
    t->id = *id;
    *id = (struct kr_identity){0};
    return t;
}

void hub_tunnel_drain(struct hub_tunnel *t)
{
    t->draining = t->link.draining = true;
    if (kr_grpc_is_open(&t->attach))
        send_state(t);
}
