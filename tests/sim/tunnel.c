/* SPDX-License-Identifier: Apache-2.0 */
/* The tunnels of an agent: agent/link.c without sockets and TLS. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/attach.h"
#include "agent/request.h"
#include "agent/sync_out.h"
#include "base/assert.h"
#include "base/err.h"
#include "hub/tunnel.h"
#include "world.h"

struct tunnel { /* the agent's end */
    struct lane *lane;
    struct agent_attach attach;
    struct kr_conn *conn;
};

static void again(struct lane *l)
{
    struct world *w = l->w;

    if (l->hub != NULL || l->agent != NULL || w->over || l->edge->off)
        return;
    kr_timer_start(&w->sched, &l->redial, kr_rand_ms(&w->rand, 1, world_one_in(w, 3) ? 9000 : 500));
}

static void on_hub_state(void *owner, const struct kr_hub_state *s)
{
    (void)owner;
    (void)s;
}

static void on_attach_end(void *owner, const char *why)
{
    struct tunnel *t = owner;

    (void)why;
    kr_conn_close(t->conn);
}

static const struct agent_attach_owner attach_owner = {on_hub_state, on_attach_end};

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct tunnel *t = owner;

    if (kr_bytes_is(ex->head.path, KR_GRPC_ATTACH))
        agent_attach_accept(&t->attach, ex);
    else if (!agent_sync_serves(&t->lane->edge->core, ex, t->lane->w->hub.self.name))
        agent_request_start(&t->lane->edge->core, ex);
}

static void on_agent_close(void *owner, int rc, const struct kr_note *why)
{
    struct tunnel *t = owner;
    struct lane *l = t->lane;

    world_trace(l->w, "tunnel %s/%d: agent's end closed (%d, %s)", l->edge->name, l->lane, rc,
                why->text);
    agent_attach_deinit(&t->attach);
    free(t);
    l->agent = NULL;
    again(l);
}

static const struct kr_conn_user agent_user = {on_request, NULL, NULL, on_agent_close};

static void on_gone(void *owner, struct hub_tunnel *t)
{
    struct lane *l = owner;

    (void)t;
    l->hub = NULL;
    again(l);
}

static const struct hub_tunnel_owner hub_owner = {on_gone};

static void serve(struct lane *l)
{
    struct tunnel *t = calloc(1, sizeof *t);
    struct kr_h2_config cfg = {
        .server = true,
        .sched = &l->w->sched,
        .user_ops = &agent_user,
        .owner = t,
        .shared = &l->edge->core.h2,
        .max_streams = 4096,
        .max_head = KR_HEAD_MAX + 64 * 1024,
        .ping_after_ms = 9000,
        .ping_timeout_ms = 12000,
        .preface_timeout_ms = 10000,
    };

    KR_ASSERT(t != NULL);
    t->lane = l;
    agent_attach_init(&t->attach, &l->edge->core, l->lane, &attach_owner, t);
    l->agent = t->conn = kr_h2_create(&cfg, kr_mem_pair_end(l->pair, 1));
    KR_ASSERT(l->agent != NULL);
}

static void dial(struct kr_timer *timer)
{
    struct lane *l = KR_CONTAINER_OF(timer, struct lane, redial);
    struct world *w = l->w;
    struct kr_identity id = {.role = KR_ROLE_AGENT};

    snprintf(id.name, sizeof id.name, "%s", l->edge->name);
    if (w->hub_down) {
        again(l);
        return;
    }
    l->pair = kr_mem_pair_create(&w->sched);
    for (int end = 0; end < 2; end++) {
        size_t room = 1024 + kr_rand_below(&w->rand, 20000);

        kr_mem_pair_step(l->pair, end, world_one_in(w, 2) ? 1 + kr_rand_below(&w->rand, 3000) : 0);
        kr_mem_pair_capacity(l->pair, end, 1 + kr_rand_below(&w->rand, 60000), room);
        if (world_breaks(w) && world_one_in(w, 3))
            kr_mem_pair_cut_after(l->pair, end, 1 + kr_rand_below(&w->rand, 300000));
    }
    l->hub = hub_tunnel_create(&w->hub, kr_mem_pair_end(l->pair, 0), &id, "192.0.2.1:40000",
                               &hub_owner, l);
    KR_ASSERT(l->hub != NULL);
    serve(l);
}

void lane_start(struct lane *l, struct edge *e, enum kr_lane lane)
{
    *l = (struct lane){.w = e->w, .edge = e, .lane = lane};
    kr_timer_init(&l->redial, dial);
    kr_timer_start(&l->w->sched, &l->redial, 0);
}

void lane_cut(struct lane *l)
{
    if (l->hub != NULL && l->agent != NULL)
        kr_mem_pair_cut(l->pair, KR_ECONNLOST);
}

void lane_close(struct lane *l)
{
    kr_timer_stop(&l->w->sched, &l->redial);
    if (l->hub != NULL)
        hub_tunnel_close(l->hub);
    if (l->agent != NULL)
        kr_conn_close(l->agent);
}
