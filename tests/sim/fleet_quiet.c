/* SPDX-License-Identifier: Apache-2.0 */
/* Quiet points: nothing breaks and nothing changes any more; before long the fleet view is the
 * sources, filtered, and everybody has been told all of it. */
#include <stdio.h>

#include "base/assert.h"
#include "fleet.h"

#define STEP_MS 1000
#define LIMIT_MS 2400000 /* a forbidden list waits 5 minutes, old discovery 10 */
#define AWAY_MS 5000

struct why {
    char text[200];
};

static bool served(const struct fleet *f, unsigned type)
{
    for (unsigned i = 0; i < CLUSTERS; i++) {
        if (f->sources[i].now.served[type])
            return true;
    }
    return false;
}

/* What the profile makes of the source. */
static void expect(const struct fleet *f, unsigned type, unsigned cluster, unsigned index,
                   struct held *out)
{
    const struct thing *t = &f->sources[cluster].now.things[type][index];
    struct kr_buf text = {.max = 1 << 20};
    unsigned found;

    *out = (struct held){.there = shape_selects(f->shapes[type], cluster, t, index)};
    if (!out->there)
        return;
    shape_text(&text, f->shapes[type], cluster, t, index, type);
    facts_read(kr_buf_bytes(&text), &out->facts, type, &found);
    kr_buf_deinit(&text);
}

static bool is_right(const struct fleet *f, unsigned type, const struct state *state,
                     struct why *why)
{
    for (unsigned cluster = 0; cluster < CLUSTERS; cluster++) {
        for (unsigned index = 0; index < THINGS; index++) {
            const struct held *held = &state->held[cluster][index];
            struct held want;

            expect(f, type, cluster, index, &want);
            if (want.there == held->there &&
                (!want.there || (strcmp(want.facts.uid, held->facts.uid) == 0 &&
                                 want.facts.whole == held->facts.whole)))
                continue;
            snprintf(why->text, sizeof why->text,
                     "%s of edge-%u: %u is %s (%s) there, %s (%s) here", api_types[type].resource,
                     cluster, index, want.there ? "" : "not", want.facts.uid,
                     held->there ? "" : "not", held->facts.uid);
            return false;
        }
    }
    return true;
}

static bool is_settled(const struct fleet *f, struct why *why)
{
    if (f->w.hub.clusters.connected != CLUSTERS) {
        snprintf(why->text, sizeof why->text, "an agent is away");
        return false;
    }
    for (unsigned i = 0; i < TYPES; i++) {
        if (!is_right(f, i, &f->pasts[i].last, why))
            return false;
    }
    for (unsigned i = 0; i < READERS; i++) {
        if (served(f, f->readers[i].view->type) && !judge_caught_up(&f->readers[i])) {
            snprintf(why->text, sizeof why->text, "reader %u has not caught up", i);
            return false;
        }
    }
    return true;
}

/* ---- lists ---- */

static void audit(struct fleet *f)
{
    int64_t end_ms = f->w.sched.now_ms + 60000;

    for (unsigned i = 0; i < AUDITORS; i++)
        reader_audit(&f->readers[READERS + i]);
    for (unsigned i = 0; i < AUDITORS; i++) {
        struct reader *r = &f->readers[READERS + i];

        while (served(f, r->view->type) && !r->audited && f->w.sched.now_ms < end_ms)
            world_run_until(&f->w, f->w.sched.now_ms + 100);
    }
}

/* Lists as they are shown now are the sources; the objects of a cluster that is away (-1: none)
 * say so, and so does the list. False: not yet. */
static bool audit_is_right(struct fleet *f, int away, struct why *why)
{
    audit(f);
    for (unsigned i = 0; i < AUDITORS; i++) {
        struct reader *r = &f->readers[READERS + i];
        struct state state = {0};
        bool stale = false;

        if (!served(f, r->view->type))
            continue;
        snprintf(why->text, sizeof why->text, "the list of auditor %u: %d%s", i, r->status,
                 r->warned ? " with a warning" : "");
        if (!r->audited || (away < 0 && r->warned))
            return false;
        for (size_t k = 0; k < r->entry_count; k++) {
            const struct entry *e = &r->entries[k];

            state.held[e->cluster][e->index] = (struct held){true, e->revision, e->facts};
            stale = stale || e->stale;
            world_check(&f->w, e->stale == ((int)e->cluster == away), "%u of edge-%u is%s stale",
                        e->index, e->cluster, e->stale ? "" : " not");
        }
        world_check(&f->w, r->warned || !stale, "a list with stale objects, and no warning");
        if (!is_right(f, r->view->type, &state, why))
            return false;
    }
    return true;
}

/* An agent is away, and the lists keep what it had told. */
static void go_away(struct fleet *f)
{
    unsigned i = (unsigned)kr_rand_below(&f->w.rand, CLUSTERS);
    struct edge *e = &f->w.edges[i];
    struct why why = {""};

    world_trace(&f->w, "%s: away", e->name);
    e->off = true;
    for (unsigned k = 0; k < LANES; k++) {
        lane_cut(&e->lanes[k]);
        lane_close(&e->lanes[k]);
    }
    world_run_until(&f->w, f->w.sched.now_ms + AWAY_MS);
    world_check(&f->w, audit_is_right(f, (int)i, &why), "while %s is away: %s", e->name, why.text);
    e->off = false;
    lane_start(&e->lanes[0], e, KR_LANE_INTERACTIVE);
    lane_start(&e->lanes[1], e, KR_LANE_BULK);
}

/* ---- all of it ---- */

static void calm_down(struct fleet *f)
{
    struct world *w = &f->w;

    w->calm = true;
    if (w->hub_down)
        fleet_start_hub(f);
    for (unsigned i = 0; i < CLUSTERS; i++) {
        if (w->edges[i].off)
            fleet_start_edge(f, i);
    }
    world_heal(w);
    for (unsigned i = 0; i < READERS; i++) {
        if (f->readers[i].ex == NULL)
            reader_again(&f->readers[i], kr_rand_ms(&w->rand, 0, 5000));
    }
}

void fleet_quiet(struct fleet *f)
{
    struct world *w = &f->w;
    int64_t end_ms = w->sched.now_ms + LIMIT_MS;
    struct why why = {""};

    world_trace(w, "quiet");
    calm_down(f);
    do {
        world_check(w, w->sched.now_ms < end_ms, "it does not settle: %s", why.text);
        world_run_until(w, w->sched.now_ms + STEP_MS);
    } while (!is_settled(f, &why) || !audit_is_right(f, -1, &why));
    for (unsigned i = 0; i < CLUSTERS; i++) {
        memset(f->sources[i].left, 0, sizeof f->sources[i].left);
        f->sources[i].frozen = false;
    }
    memset(f->upset, 0, sizeof f->upset);
    world_trace(w, "settled");
    if (world_one_in(w, 3))
        go_away(f);
    f->tally->quiet++;
    w->calm = false;
}
