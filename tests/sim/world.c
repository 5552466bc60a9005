/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/request.h"

#define QUIET_MS 75000 /* after the faults, for whatever still runs (65 s is the longest wait) */

uint8_t world_byte(const struct call *c, bool up, uint64_t at)
{
    uint64_t x =
        (at + 1) * 0x9E3779B97F4A7C15u ^ ((uint64_t)c->id << 32 | up) * 0xD1B54A32D192ED03u;

    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 32;
    return x % 61 == 0 ? '\n' : (uint8_t)('a' + x % 26);
}

struct call *world_call_of(struct world *w, struct kr_bytes path)
{
    uint64_t id = CALLS;
    size_t at = path.n;

    while (at != 0 && path.p[at - 1] != '=')
        at--;
    world_check(w, kr_bytes_to_u64(kr_bytes_skip(path, at), CALLS - 1, &id),
                "a path that nobody asked for: %.*s", (int)path.n, (const char *)path.p);
    return &w->calls[id];
}

static void start_edge(struct world *w, unsigned i)
{
    struct edge *e = &w->edges[i];

    world_make_edge(w, i);
    e->core.api = api_create(w, &e->core, i == 1, turn_begin);
    lane_start(&e->lanes[0], e, KR_LANE_INTERACTIVE);
    lane_start(&e->lanes[1], e, KR_LANE_BULK);
}

/* ---- running ---- */

static void on_fault(struct kr_timer *t)
{
    struct world *w = KR_CONTAINER_OF(t, struct world, fault);
    struct edge *e = &w->edges[kr_rand_below(&w->rand, CLUSTERS)];
    struct lane *l = &e->lanes[kr_rand_below(&w->rand, LANES)];

    if (w->sched.now_ms >= FAULTS_END_MS)
        return;
    kr_timer_start(&w->sched, t, kr_rand_ms(&w->rand, 10, 4000));
    switch (kr_rand_below(&w->rand, 7)) {
    case 0:
        lane_cut(l);
        break;
    case 4: /* as while the hub drains */
        hub_requests_end_watches(&w->hub, 500);
        break;
    case 1: /* the whole edge is away */
        lane_cut(&e->lanes[0]);
        lane_cut(&e->lanes[1]);
        break;
    case 2: /* a link that goes silent; somebody has to notice */
        if (l->hub != NULL && l->agent != NULL)
            kr_mem_pair_stall(l->pair, (int)kr_rand_below(&w->rand, 2), true);
        break;
    case 3:
        if (l->hub != NULL && l->agent != NULL) {
            kr_mem_pair_stall(l->pair, 0, false);
            kr_mem_pair_stall(l->pair, 1, false);
        }
        break;
    default:
        api_fault(e->core.api);
    }
}

static void check_quiet(const struct world *w)
{
    world_check(w, w->hub.requests == 0, "%zu requests at the hub", w->hub.requests);
    world_check(w, kr_list_empty(&w->hub.live), "the hub's list of requests");
    world_check(w, kr_metric_value(w->hub.m_requests_live) == 0, "gauge of exchanges");
    world_check(w, kr_metric_value(w->hub.m_long_live) == 0, "gauge of long exchanges");
    world_check(w, w->hub.h2.window_left == HUB_BUDGET, "the hub's window budget: %lld",
                (long long)w->hub.h2.window_left);
    world_check(w, w->client_h2.window_left == HUB_BUDGET, "the clients' window budget");
    for (unsigned i = 0; i < CLUSTERS; i++) {
        const struct agent_core *c = &w->edges[i].core;

        world_check(w, c->requests == 0, "%zu requests at %s", c->requests, c->self.name);
        world_check(w, kr_metric_value(c->m_exchanges) == 0, "gauge of %s", c->self.name);
        world_check(w, c->h2.window_left == AGENT_BUDGET, "window budget of %s: %lld", c->self.name,
                    (long long)c->h2.window_left);
        world_check(w, w->hub.clusters.connected == CLUSTERS, "an agent did not come back");
    }
    for (unsigned i = 0; i < USERS; i++)
        world_check(w,
                    w->users[i].client != NULL && w->users[i].client->exchanges == 0 &&
                        w->users[i].server->exchanges == 0,
                    "exchanges of user %u", i);
}

static void close_all(struct world *w)
{
    w->over = true;
    kr_timer_stop(&w->sched, &w->fault);
    for (unsigned i = 0; i < USERS; i++)
        user_close(&w->users[i]);
    for (unsigned i = 0; i < CALLS; i++)
        user_close(&w->calls[i].own);
    for (unsigned i = 0; i < CLUSTERS; i++) {
        lane_close(&w->edges[i].lanes[0]);
        lane_close(&w->edges[i].lanes[1]);
        api_close(w->edges[i].core.api);
    }
    world_run_until(w, w->sched.now_ms + 10);
    for (unsigned i = 0; i < CLUSTERS; i++)
        world_drop_edge(&w->edges[i]);
    world_drop_hub(w);
    world_deinit(w);
}

static void count(const struct world *w, struct tally *t)
{
    for (unsigned i = 0; i < CALLS; i++) {
        const struct call *c = &w->calls[i];

        t->left += c->left;
        t->cut += c->done != 0 && c->rc != 0;
        t->statuses[c->done != 0 && c->rc == 0 ? c->status : 0]++;
    }
}

void world_run(uint64_t seed, bool calm, bool trace, struct tally *tally)
{
    struct world *w = calloc(1, sizeof *w);

    KR_ASSERT(w != NULL);
    w->program = calm ? "world --calm" : "world";
    w->calm = calm;
    w->faults_end_ms = FAULTS_END_MS;
    world_init(w, seed, trace);
    w->agent_options = (struct agent_options){.user_prefix = "sim:", .max_requests = 1000};
    w->hub_options = (struct hub_options){
        .hold_ms = 5000,
        .request_timeout_ms = 65000,
        .heartbeat_ms = 5000,
        .silence_ms = 30000,
        .max_requests = 1000,
        .max_clusters = 10,
    };
    world_make_hub(w);
    for (unsigned i = 0; i < CLUSTERS; i++)
        start_edge(w, i);
    for (unsigned i = 0; i < USERS; i++)
        user_start(&w->users[i], w, false);
    world_run_until(w, WORLD_T0_MS + 100);
    for (unsigned i = 0; i < CALLS; i++)
        call_plan(&w->calls[i], w, i);
    kr_timer_init(&w->fault, on_fault);
    if (!calm)
        kr_timer_start(&w->sched, &w->fault, 1000);
    world_run_until(w, FAULTS_END_MS);
    world_heal(w);
    world_run_until(w, FAULTS_END_MS + QUIET_MS);
    for (unsigned i = 0; i < CALLS; i++) {
        if (w->calls[i].kind == KIND_WATCH && !calm)
            call_give_up(&w->calls[i]);
    }
    world_run_until(w, FAULTS_END_MS + QUIET_MS + 2000);
    for (unsigned i = 0; i < CALLS; i++)
        call_judge(&w->calls[i]);
    count(w, tally);
    check_quiet(w);
    close_all(w);
    free(w);
}
