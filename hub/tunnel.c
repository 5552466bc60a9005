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
#include "hub/bundle.h"
#include "hub/counters.h"
#include "hub/forget.h"
#include "hub/request.h"
#include "hub/subscriptions.h"
#include "wire/grpc_call.h"
#include "wire/messages.h"

#define ATTACH_TIMEOUT_MS 10000
#define HEARTBEATS_MISSED 3
#define REFUSAL_MS 200    /* for the refusal to reach the agent */
#define REFUSED_MS 300000 /* until it should ask again */

struct hub_tunnel {
    struct hub_worker *w;
    struct kr_conn *conn;
    struct hub_cluster *cluster; /* once attached */
    struct hub_link link;
    struct hub_seat seat;
    struct kr_grpc_stream attach;
    struct kr_timer alive;  /* until the first state, then between heartbeats */
    struct kr_timer expiry; /* of the agent's certificate */
    struct kr_identity id;
    char address[64];
    char version[32];
    bool attached;
    bool pending; /* attached, but its cluster is not accepted yet: it carries nothing */
    bool draining;
    bool refused;
    uint64_t bundle_sent; /* its generation */
    const char *why;      /* why we closed it ourselves */
    const struct hub_tunnel_owner *ops;
    void *owner;
};

void hub_tunnel_close(struct hub_tunnel *t)
{
    kr_conn_close(t->conn);
}

const struct kr_identity *hub_tunnel_identity(const struct hub_tunnel *t)
{
    return &t->id;
}

static void fail(struct hub_tunnel *t, const char *why)
{
    t->why = t->why != NULL ? t->why : why;
    hub_tunnel_close(t);
}

/* Once for each generation. */
static void put_bundle(struct hub_tunnel *t, struct kr_hub_state *state)
{
    const struct hub_bundle *b = t->w->bundle;

    if (b == NULL || t->refused || b->generation == 0 || b->generation == t->bundle_sent)
        return;
    state->bundle = kr_buf_bytes(&b->pem);
    state->bundle_generation = t->bundle_sent = b->generation;
}

static int send_state(struct hub_tunnel *t)
{
    struct kr_hub_state state = {
        .replica = kr_bytes_str(t->w->self.name),
        .heartbeat_ms = (uint32_t)t->w->options->heartbeat_ms,
        .draining = t->draining,
        .hub_time_wall_ms = t->w->sched->now_wall_ms,
        .version = KR_LIT(KR_VERSION),
        .pending = t->pending,
        .refusal = t->refused ? KR_REFUSAL_DENIED : KR_REFUSAL_NONE,
        .refusal_reason = t->refused ? kr_bytes_str(t->why) : KR_LIT(""),
        .retry_after_ms = t->refused ? REFUSED_MS : 0,
    };
    struct kr_buf out = {.max = KR_STATE_MAX};
    int rc;

    put_bundle(t, &state);
    rc = kr_hub_state_encode(&state, &out);
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

/* Nothing new is begun over it; the agent is told, then what runs is cut. */
void hub_tunnel_refuse(struct hub_tunnel *t, const char *why)
{
    if (t->refused)
        return;
    t->refused = true;
    t->why = why;
    t->link.draining = true;
    hub_worker_count(t->w, HUB_ALARMS, "refused-tunnel");
    if (kr_grpc_is_open(&t->attach))
        send_state(t);
    hub_relay_lose_tunnel(t->w, t->conn, "the cluster is refused");
    kr_timer_start(t->w->sched, &t->alive, REFUSAL_MS);
}

/* From now on requests go over it. */
static void admit(struct hub_tunnel *t)
{
    t->pending = false;
    hub_cluster_link(&t->w->clusters, t->cluster, &t->link);
    if (t->w->subscriptions != NULL)
        hub_subscriptions_tunnel_up(t->w->subscriptions, t->cluster);
}

static int attach(struct hub_tunnel *t, const struct kr_agent_state *s)
{
    struct kr_note why = {""};

    if (hub_registry_attach(t->w->registry, &t->id, t->address, &t->pending, &why) != 0) {
        KR_LOG_AT(t->w->log, KR_LOG_WARN, "tunnel-refused", KR_S("cluster", t->id.name),
                  KR_S("instance", t->id.instance), KR_S("peer", t->address),
                  KR_S("reason", why.text));
        hub_tunnel_refuse(t, "refused by the registry");
        return 0;
    }
    t->cluster = hub_clusters_add(&t->w->clusters, t->id.name);
    if (t->cluster == NULL)
        return KR_EFULL;
    t->attached = t->seat.attached = true;
    t->link.conn = t->conn;
    t->link.instance = t->id.instance;
    t->link.lane = s->lane == KR_LANE_BULK ? HUB_LANE_BULK : HUB_LANE_INTERACTIVE;
    t->link.draining = s->draining;
    t->link.syncs = has_feature(s, KR_FEATURE_SYNC);
    copy_text(t->version, sizeof t->version, s->version);
    kr_metric_add(kr_metrics_series(t->w->metrics, HUB_TUNNEL_UP, NULL, 0), 1);
    KR_LOG_AT(t->w->log, KR_LOG_INFO, "tunnel-up", KR_S("cluster", t->id.name),
              KR_S("instance", t->id.instance), KR_S("peer", t->address),
              KR_S("lane", t->link.lane == HUB_LANE_BULK ? "bulk" : "interactive"),
              KR_S("version", t->version), KR_T("pending", t->pending));
    if (t->pending)
        send_state(t); /* so that its log says what it waits for */
    else
        admit(t);
    return 0;
}

/* What every state may change. */
static void look_at_state(struct hub_tunnel *t, const struct kr_agent_state *s)
{
    struct kr_note why = {""};

    note_facts(t, s);
    hub_registry_take_told(t->w->registry, &t->seat, s->bundle_generation);
    if (hub_registry_check_uid(t->w->registry, &t->id, s->cluster_uid, &why) != 0)
        hub_tunnel_refuse(t, "refused by the registry");
    else if (t->seat.retire_ms != 0 && t->w->sched->now_ms >= t->seat.retire_ms)
        fail(t, "a newer key of this instance is in use");
    else if (t->id.not_after_wall_ms != 0 && t->w->sched->now_wall_ms >= t->id.not_after_wall_ms)
        fail(t, "the agent's certificate has expired");
    else if (t->w->bundle != NULL && t->w->bundle->generation != t->bundle_sent)
        send_state(t);
}

/* The registry has changed. */
static void on_change(struct hub_seat *seat)
{
    struct hub_tunnel *t = KR_CONTAINER_OF(seat, struct hub_tunnel, seat);
    struct kr_note why = {""};
    bool pending = false;

    if (t->refused)
        return;
    if (hub_registry_review(t->w->registry, &t->id, &pending, &why) != 0) {
        KR_LOG_AT(t->w->log, KR_LOG_WARN, "tunnel-refused", KR_S("cluster", t->id.name),
                  KR_S("instance", t->id.instance), KR_S("peer", t->address),
                  KR_S("reason", why.text));
        hub_tunnel_refuse(t, "refused by the registry");
    } else if (t->attached && t->pending && !pending) {
        admit(t);
        send_state(t);
    }
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
        if (!t->refused) {
            kr_timer_start(t->w->sched, &t->alive, HEARTBEATS_MISSED * t->w->options->heartbeat_ms);
            t->link.draining = s.draining;
        }
        if (!t->attached && !t->refused)
            rc = attach(t, &s);
        if (rc == 0 && t->attached && !t->refused)
            look_at_state(t, &s);
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

static void on_expiry(struct kr_timer *timer)
{
    struct hub_tunnel *t = KR_CONTAINER_OF(timer, struct hub_tunnel, expiry);

    fail(t, "the agent's certificate has expired");
}

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct hub_tunnel *t = owner;

    kr_timer_stop(t->w->sched, &t->alive);
    kr_timer_stop(t->w->sched, &t->expiry);
    hub_registry_leave(t->w->registry, &t->seat);
    if (t->attached) {
        hub_cluster_unlink(&t->w->clusters, t->cluster, &t->link);
        kr_metric_add(kr_metrics_series(t->w->metrics, HUB_TUNNEL_DOWN, NULL, 0), 1);
        if (t->w->subscriptions != NULL && !t->pending)
            hub_subscriptions_tunnel_down(t->w->subscriptions, t->cluster, t->conn);
        if (t->refused && hub_registry_is_barred(t->w->registry, t->id.name))
            hub_forget_denied(t->w, t->id.name);
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
    kr_timer_init(&t->expiry, on_expiry);
    if (t->id.not_after_wall_ms != 0)
        kr_timer_start(w->sched, &t->expiry, t->id.not_after_wall_ms - w->sched->now_wall_ms);
    t->seat.id = &t->id;
    t->seat.address = t->address;
    t->seat.on_change = on_change;
    hub_registry_sit(w->registry, &t->seat);
    return t;
}

void hub_tunnel_drain(struct hub_tunnel *t)
{
    t->draining = t->link.draining = true;
    if (kr_grpc_is_open(&t->attach))
        send_state(t);
}
