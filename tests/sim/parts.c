/* SPDX-License-Identifier: Apache-2.0 */
/* What all simulated worlds are made of. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/counters.h"
#include "base/assert.h"
#include "hub/counters.h"
#include "net/loop.h"
#include "world.h"

void world_check(const struct world *w, bool ok, const char *fmt, ...)
{
    va_list ap;

    if (ok)
        return;
    fprintf(stderr, "seed %llu, at %lld ms: ", (unsigned long long)w->seed,
            (long long)w->sched.now_ms);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nagain: %s --seed %llu --trace\n", w->program, (unsigned long long)w->seed);
    abort();
}

void world_trace(const struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->trace)
        return;
    printf("%8lld ", (long long)w->sched.now_ms);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout); /* the end may be an abort */
}

bool world_one_in(struct world *w, unsigned n)
{
    return kr_rand_below(&w->rand, n) == 0;
}

bool world_breaks(const struct world *w)
{
    return !w->calm && w->sched.now_ms < w->faults_end_ms;
}

void world_init(struct world *w, uint64_t seed, bool trace)
{
    w->seed = seed;
    w->trace = trace;
    kr_sched_init(&w->sched, WORLD_T0_MS, WORLD_T0_MS + w->wall_ms);
    w->lag = kr_loop_create(NULL);
    KR_ASSERT(w->lag != NULL);
    kr_rand_seed(&w->rand, seed);
    KR_ASSERT(kr_h2_shared_init(&w->client_h2, HUB_BUDGET) == 0);
}

void world_deinit(struct world *w)
{
    kr_h2_shared_deinit(&w->client_h2);
    world_check(w, w->sched.count == 0, "%zu timers still run", w->sched.count);
    kr_loop_destroy(w->lag);
    kr_sched_deinit(&w->sched);
}

/* ---- building and taking down ---- */

void world_make_hub(struct world *w)
{
    struct hub_worker *h = &w->hub;

    *h = (struct hub_worker){.log = w->log,
                             .options = &w->hub_options,
                             .sched = &w->sched,
                             .started_ms = w->sched.now_ms};
    snprintf(h->self.name, sizeof h->self.name, "hub-0");
    kr_list_init(&h->live);
    kr_rand_seed(&h->rand, w->seed + 1);
    h->metrics = kr_metrics_create(hub_counters, HUB_COUNTERS_N);
    KR_ASSERT(h->metrics != NULL && kr_h2_shared_init(&h->h2, HUB_BUDGET) == 0);
    hub_clusters_init(&h->clusters, &w->sched, h->metrics, 10);
    h->m_requests_live = kr_metrics_get(h->metrics, HUB_EXCHANGES, "all");
    h->m_long_live = kr_metrics_get(h->metrics, HUB_EXCHANGES, "long-running");
    h->m_bytes_up = kr_metrics_series(h->metrics, HUB_BYTES_UP, NULL, 0);
    h->m_bytes_down = kr_metrics_series(h->metrics, HUB_BYTES_DOWN, NULL, 0);
    h->m_seconds = kr_metrics_series(h->metrics, HUB_REQUEST_SECONDS, NULL, 0);
}

void world_drop_hub(struct world *w)
{
    hub_clusters_deinit(&w->hub.clusters);
    kr_h2_shared_deinit(&w->hub.h2);
    kr_metrics_destroy(w->hub.metrics);
}

void world_make_edge(struct world *w, unsigned i)
{
    struct edge *e = &w->edges[i];

    e->w = w;
    snprintf(e->name, sizeof e->name, "edge-%u", i);
    e->core = (struct agent_core){.options = &w->agent_options, .log = w->log, .sched = &w->sched};
    snprintf(e->core.self.name, sizeof e->core.self.name, "edge-%u", i);
    snprintf(e->core.self.instance, sizeof e->core.self.instance, "0");
    e->core.loop = w->lag;
    e->policy = (struct agent_policy){.mode = AGENT_READ_WRITE, .exec = true};
    e->core.policy = &e->policy;
    kr_rand_seed(&e->core.rand, w->seed + 100 + i);
    e->core.metrics = kr_metrics_create(agent_counters, AGENT_COUNTERS_N);
    KR_ASSERT(e->core.metrics != NULL && kr_h2_shared_init(&e->core.h2, AGENT_BUDGET) == 0);
    e->core.m_exchanges = kr_metrics_series(e->core.metrics, AGENT_EXCHANGES, NULL, 0);
}

void world_drop_edge(struct edge *e)
{
    api_destroy(e->core.api);
    kr_h2_shared_deinit(&e->core.h2);
    kr_metrics_destroy(e->core.metrics);
}

/* ---- running ---- */

void world_run_until(struct world *w, int64_t end_ms)
{
    int64_t now = w->sched.now_ms;

    while (now < end_ms) {
        int64_t wait = kr_sched_run(&w->sched, now, now + w->wall_ms);

        if (w->on_turn != NULL)
            w->on_turn(w);
        now += wait <= 0 ? 1 : wait < end_ms - now ? wait : end_ms - now;
    }
    kr_sched_run(&w->sched, end_ms, end_ms + w->wall_ms);
    if (w->on_turn != NULL)
        w->on_turn(w);
}

void world_heal(struct world *w)
{
    for (unsigned i = 0; i < CLUSTERS; i++) {
        api_heal(w->edges[i].core.api);
        for (unsigned k = 0; k < LANES; k++) {
            struct lane *l = &w->edges[i].lanes[k];

            for (int end = 0; end < 2 && l->hub != NULL && l->agent != NULL; end++)
                kr_mem_pair_stall(l->pair, end, false);
        }
    }
}
