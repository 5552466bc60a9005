/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "hub/fleet.h"
#include "scratch.h"

#define WALL_MS INT64_C(1700000000000)
#define STEPS 70

static struct kr_rand *rand_of(struct fleet *f)
{
    return &f->w.rand;
}

static bool one_in(struct fleet *f, unsigned n)
{
    return world_one_in(&f->w, n);
}

/* ---- at the sources ---- */

/* What is not selected now may go, or have gone, from the fleet view. */
static void note_left(struct fleet *f, unsigned cluster)
{
    struct source *s = &f->sources[cluster];

    for (unsigned type = 0; type < TYPES; type++) {
        for (unsigned i = 0; i < THINGS; i++) {
            if (!shape_selects(f->shapes[type], cluster, &s->now.things[type][i], i))
                s->left[type][i] = true;
        }
    }
}

static void change(struct fleet *f)
{
    unsigned i = (unsigned)kr_rand_below(rand_of(f), CLUSTERS);

    for (uint64_t n = 1 + kr_rand_below(rand_of(f), one_in(f, 8) ? 40 : 4); n != 0; n--) {
        source_change(&f->sources[i], rand_of(f));
        note_left(f, i);
    }
}

static void restore(struct fleet *f, unsigned i)
{
    bool bump = one_in(f, 2);

    world_trace(&f->w, "%s: restored%s", f->w.edges[i].name, bump ? ", versions bumped" : "");
    source_restore(&f->sources[i], bump);
    if (!f->w.edges[i].off)
        api_cut(f->w.edges[i].core.api);
    f->upset[PODS] = f->upset[WIDGETS] = true;
    f->tally->restores++;
}

static void toggle(struct fleet *f, unsigned i)
{
    world_trace(&f->w, "%s: widgets come or go", f->w.edges[i].name);
    source_toggle(&f->sources[i], WIDGETS);
    f->upset[WIDGETS] = true;
}

/* ---- between them ---- */

static void cut(struct fleet *f, struct edge *e)
{
    unsigned k = (unsigned)kr_rand_below(rand_of(f), LANES);

    lane_cut(&e->lanes[k]);
    if (one_in(f, 2))
        lane_cut(&e->lanes[1 - k]);
}

static void stall(struct fleet *f, struct edge *e)
{
    struct lane *l = &e->lanes[kr_rand_below(rand_of(f), LANES)];

    if (l->hub != NULL && l->agent != NULL)
        kr_mem_pair_stall(l->pair, (int)kr_rand_below(rand_of(f), 2), one_in(f, 2));
}

static void stop_edge(struct fleet *f, unsigned i)
{
    if (f->w.edges[i].off)
        return;
    fleet_stop_edge(f, i);
    f->edge_up_ms[i] = f->w.sched.now_ms + kr_rand_ms(rand_of(f), 0, one_in(f, 3) ? 60000 : 2000);
}

/* ---- at the hub ---- */

static void turn_clock(struct fleet *f)
{
    f->w.wall_ms += kr_rand_ms(rand_of(f), -7200000, one_in(f, 3) ? 3600000 : 1000);
    world_trace(&f->w, "the wall clock is turned");
}

static void stop_hub(struct fleet *f)
{
    if (f->w.hub_down)
        return;
    fleet_stop_hub(f);
    f->hub_up_ms = f->w.sched.now_ms + kr_rand_ms(rand_of(f), 0, one_in(f, 3) ? 40000 : 1000);
    if (one_in(f, 2))
        turn_clock(f);
}

static void choose_shape(struct fleet *f, unsigned type)
{
    do
        f->shapes[type] = &shapes[kr_rand_below(rand_of(f), shape_count)];
    while (f->shapes[type]->type != type);
}

static void reload(struct fleet *f)
{
    unsigned type = (unsigned)kr_rand_below(rand_of(f), TYPES);

    choose_shape(f, type);
    world_trace(&f->w, "%s have profile %zu", api_types[type].resource,
                (size_t)(f->shapes[type] - shapes));
    fleet_write_file(f);
    f->upset[type] = true;
    f->tally->reloads++;
    if (!f->w.hub_down)
        hub_fleet_parts_reload(f->parts);
}

/* ---- running ---- */

static void happen(struct fleet *f)
{
    unsigned i = (unsigned)kr_rand_below(rand_of(f), CLUSTERS);
    struct edge *e = &f->w.edges[i];
    unsigned what = (unsigned)kr_rand_below(rand_of(f), 30);

    if (what == 0)
        cut(f, e);
    else if (what == 1)
        stall(f, e);
    else if (what == 2 && !e->off)
        api_fault(e->core.api);
    else if (what == 3) {
        source_compact(&f->sources[i]);
        f->tally->compactions++;
    } else if (what == 4 && one_in(f, 3))
        restore(f, i);
    else if (what == 5 && one_in(f, 3))
        toggle(f, i);
    else if (what == 6 && one_in(f, 2))
        stop_edge(f, i);
    else if (what == 7 && one_in(f, 3))
        stop_hub(f);
    else if (what == 8)
        f->sources[i].backup = f->sources[i].now;
    else if (what == 9 && one_in(f, 3))
        reload(f);
    else if (what == 10 && one_in(f, 4))
        turn_clock(f);
    else if (what == 11 && one_in(f, 4) && !f->w.hub_down)
        hub_fleet_end_watches(f->w.hub.fleet, 500);
    else
        change(f);
}

static void come_back(struct fleet *f)
{
    if (f->w.hub_down && f->w.sched.now_ms >= f->hub_up_ms)
        fleet_start_hub(f);
    for (unsigned i = 0; i < CLUSTERS; i++) {
        if (f->w.edges[i].off && f->w.sched.now_ms >= f->edge_up_ms[i])
            fleet_start_edge(f, i);
    }
}

static void run_phase(struct fleet *f)
{
    for (unsigned i = 0; i < STEPS; i++) {
        int64_t ms = kr_rand_ms(rand_of(f), 0, one_in(f, 10) ? 20000 : 800);

        happen(f);
        if (one_in(f, 150))
            ms = 400000;
        world_run_until(&f->w, f->w.sched.now_ms + ms);
        come_back(f);
    }
    fleet_quiet(f);
}

/* ---- life ---- */

static void on_turn(struct world *w)
{
    past_read(fleet_of(w));
}

static void set_up(struct fleet *f)
{
    static const char *all[] = {"*", NULL};
    struct world *w = &f->w;

    w->program = "fleet";
    w->faults_end_ms = INT64_MAX;
    w->wall_ms = WALL_MS;
    w->on_turn = on_turn;
    w->agent_options = (struct agent_options){
        .user_prefix = "sim:", .max_requests = 1000, .discovery_interval_ms = 30000};
    w->agent_options.sync_allow = (struct kr_strings){all, 1};
    for (unsigned i = 0; i < TYPES; i++)
        choose_shape(f, i);
    snprintf(f->file, sizeof f->file, "%s/fleet.yaml", f->dir);
    fleet_write_file(f);
    for (unsigned i = 0; i < CLUSTERS; i++)
        source_init(&f->sources[i], rand_of(f));
    fleet_start_hub(f);
    for (unsigned i = 0; i < CLUSTERS; i++)
        fleet_start_edge(f, i);
    for (unsigned i = 0; i < READERS + AUDITORS; i++)
        reader_init(&f->readers[i], f, i, &fleet_views[i]);
}

static void take_down(struct fleet *f)
{
    f->w.over = true;
    fleet_stop_hub(f);
    for (unsigned i = 0; i < CLUSTERS; i++)
        fleet_stop_edge(f, i);
    world_run_until(&f->w, f->w.sched.now_ms + 10);
    for (unsigned i = 0; i < READERS + AUDITORS; i++)
        reader_deinit(&f->readers[i]);
    for (unsigned i = 0; i < CLUSTERS; i++)
        source_deinit(&f->sources[i]);
    world_deinit(&f->w);
}

void fleet_run(uint64_t seed, bool trace, struct fleet_tally *tally)
{
    struct fleet *f = calloc(1, sizeof *f);
    struct kr_log log;
    int lock;

    KR_ASSERT(f != NULL);
    kr_log_init(&log, STDOUT_FILENO, KR_LOG_DEBUG);
    f->w.log = trace ? &log : NULL;
    f->tally = tally;
    lock = scratch_make(f->dir, sizeof f->dir);
    f->w.wall_ms = WALL_MS;
    world_init(&f->w, seed, trace);
    set_up(f);
    for (unsigned i = 0; i < PHASES; i++)
        run_phase(f);
    take_down(f);
    scratch_drop(f->dir, lock);
    free(f);
}
