/* SPDX-License-Identifier: Apache-2.0 */
/* Hub and agents come and go. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/catalog.h"
#include "agent/sync_out.h"
#include "base/assert.h"
#include "fleet.h"

/* ---- the fleet file ---- */

static void put_profile(FILE *out, const struct shape *s)
{
    const struct api_type *k = &api_types[s->type];

    fprintf(out, "- name: of-%s\n  resources: [%s%s%s]\n", k->resource, k->resource,
            k->group[0] != '\0' ? "." : "", k->group);
    if (s->labels != NULL)
        fprintf(out, "  labelSelector: \"%s\"\n", s->labels);
    if (s->fields != NULL)
        fprintf(out, "  fieldSelector: \"%s\"\n", s->fields);
    if (s->namespaces != NULL)
        fprintf(out, "  namespaces: %s\n", s->namespaces);
    if (s->image_only)
        fprintf(out, "  keep: [\"spec.image\"]\n");
    if (s->no_status)
        fprintf(out, "  drop: [\"status\"]\n");
    if (s->metadata_only)
        fprintf(out, "  metadataOnly: true\n");
    if (s->always)
        fprintf(out, "  always: true\n");
    if (s->first_only)
        fprintf(out, "  clusters: [edge-0]\n");
}

void fleet_write_file(struct fleet *f)
{
    FILE *out = fopen(f->file, "w");

    KR_ASSERT(out != NULL);
    fprintf(out, "readers:\n"
                 "- users: [alice]\n  clusters: [\"*\"]\n  resources: [\"*\"]\n"
                 "- users: [bob]\n  clusters: [\"*\"]\n  namespaces: [n0]\n  resources: [pods]\n"
                 "profiles:\n");
    for (unsigned i = 0; i < TYPES; i++)
        put_profile(out, f->shapes[i]);
    fclose(out);
}

/* ---- the hub ---- */

void fleet_start_hub(struct fleet *f)
{
    struct world *w = &f->w;
    struct kr_note why = {""};

    f->grace_ms = kr_rand_ms(&w->rand, 0, 8000);
    w->hub_options = (struct hub_options){
        .hold_ms = 5000,
        .request_timeout_ms = 65000,
        .stall_timeout_ms = 120000,
        .heartbeat_ms = 5000,
        .silence_ms = 30000,
        .max_requests = 1000,
        .max_clusters = 10,
        .start_grace_ms = f->grace_ms,
        .fleet_wait_ms = 5000,
        .fleet_file = f->file,
        .state_dir = f->dir,
        .cache_quota = 64 << 20,
        .fleet_log_events = LOG_EVENTS,
        .unsubscribe_after_ms = LINGER_MS,
    };
    world_make_hub(w);
    kr_rand_seed(&w->hub.rand, kr_rand_u64(&w->rand));
    world_check(w, hub_fleet_parts_create(&w->hub, &f->parts, &why) == 0, "%s", why.text);
    world_check(w, w->hub.revision->first > f->highest,
                "a hub begins at revision %llu, behind %llu that was told",
                (unsigned long long)w->hub.revision->first, (unsigned long long)f->highest);
    f->epoch++;
    f->tally->hub_starts++;
    for (unsigned i = 0; i < TYPES; i++)
        past_begin(f, i);
    w->hub_down = false;
    world_trace(w, "hub: up, the first revision is %llu",
                (unsigned long long)w->hub.revision->first);
}

static void turn(struct world *w)
{
    kr_sched_run(&w->sched, w->sched.now_ms, w->sched.now_ms + w->wall_ms);
}

void fleet_stop_hub(struct fleet *f)
{
    struct world *w = &f->w;

    world_trace(w, "hub: killed");
    w->hub_down = true;
    for (unsigned i = 0; i < READERS + AUDITORS; i++) {
        struct user *u = &f->readers[i].user;

        if (u->client != NULL && u->server != NULL)
            kr_mem_pair_cut(u->pair, -1);
        user_close(u);
    }
    for (unsigned i = 0; i < CLUSTERS; i++) {
        lane_cut(&w->edges[i].lanes[0]);
        lane_cut(&w->edges[i].lanes[1]);
    }
    turn(w);
    past_read(f);
    world_check(w, w->hub.requests == 0, "%zu requests outlive the hub", w->hub.requests);
    for (unsigned i = 0; i < TYPES; i++)
        past_forget(&f->pasts[i]);
    hub_fleet_parts_destroy(f->parts);
    f->parts = NULL;
    world_drop_hub(w);
}

/* ---- agents ---- */

void fleet_start_edge(struct fleet *f, unsigned i)
{
    struct world *w = &f->w;
    struct edge *e = &w->edges[i];
    struct agent_core *c = &e->core;

    world_make_edge(w, i);
    kr_rand_seed(&c->rand, kr_rand_u64(&w->rand));
    for (size_t k = 0; k < sizeof c->boot_id; k++)
        c->boot_id[k] = (uint8_t)kr_rand_u64(&w->rand);
    snprintf(c->health.version, sizeof c->health.version, "%s",
             f->sources[i].streams || world_one_in(w, 2) ? "v1.33.1" : "v1.28.0");
    c->api = api_create(w, c, i == 1, fleet_answer);
    c->catalog = agent_catalog_create(c);
    KR_ASSERT(c->catalog != NULL && agent_sync_create(c) == 0);
    agent_catalog_start(c->catalog);
    e->off = false;
    lane_start(&e->lanes[0], e, KR_LANE_INTERACTIVE);
    lane_start(&e->lanes[1], e, KR_LANE_BULK);
    f->tally->agent_starts++;
    world_trace(w, "%s: up", e->name);
}

void fleet_stop_edge(struct fleet *f, unsigned i)
{
    struct world *w = &f->w;
    struct edge *e = &w->edges[i];
    struct agent_core *c = &e->core;

    world_trace(w, "%s: killed", e->name);
    e->off = true;
    for (unsigned k = 0; k < LANES; k++) {
        lane_cut(&e->lanes[k]);
        lane_close(&e->lanes[k]);
    }
    agent_catalog_stop(c->catalog);
    api_close(c->api);
    turn(w);
    world_check(w, e->lanes[0].agent == NULL && e->lanes[1].agent == NULL, "a tunnel stays");
    agent_sync_destroy(c);
    agent_catalog_destroy(c->catalog);
    world_drop_edge(e);
}
