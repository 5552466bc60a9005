/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet_past.h"

#include <stdlib.h>

#include "base/assert.h"
#include "fleet.h"
#include "hub/fleet_state.h"

static unsigned cluster_of(const struct fleet *f, const char *name)
{
    for (unsigned i = 0; i < CLUSTERS; i++) {
        if (strcmp(f->w.edges[i].name, name) == 0)
            return i;
    }
    world_check(&f->w, false, "a cluster that is none: %s", name);
    return 0;
}

static unsigned read_object(struct fleet *f, unsigned type, struct hub_object *o, struct facts *out)
{
    struct hub_plain text;
    unsigned index = 0;

    world_check(&f->w, hub_fleet_plain(f->w.hub.fleet, o, &text) == 0, "it does not unpack");
    world_check(&f->w, facts_read(text.slim, out, type, &index), "not one of ours: %.*s",
                (int)text.slim.n, (const char *)text.slim.p);
    return index;
}

/* What is there now is where the past begins. */
static void begin(struct fleet *f, unsigned type)
{
    struct past *p = &f->pasts[type];
    struct hub_walk_query q = {.type = p->type};
    struct hub_walk *walk = hub_walk_create(&q);
    struct hub_object *o;
    const char *cluster;

    KR_ASSERT(walk != NULL);
    p->generation++;
    p->n = 0;
    p->begin = p->type->revision;
    p->first = (struct state){0};
    hub_place_at_end(p->type, &p->place);
    while ((o = hub_walk_next(walk, &cluster)) != NULL) {
        struct facts facts;
        unsigned index = read_object(f, type, o, &facts);

        p->first.held[cluster_of(f, cluster)][index] = (struct held){true, o->revision, facts};
    }
    hub_walk_destroy(walk);
    p->last = p->first;
}

void past_begin(struct fleet *f, unsigned type)
{
    struct past *p = &f->pasts[type];

    p->type = hub_cache_add_type(f->w.hub.cache, kr_bytes_str(api_types[type].group), KR_LIT("v1"),
                                 kr_bytes_str(api_types[type].resource));
    KR_ASSERT(p->type != NULL);
    begin(f, type);
}

void past_forget(struct past *p)
{
    p->type = NULL;
    p->generation++;
    free(p->steps);
    p->steps = NULL;
    p->n = p->cap = 0;
}

static struct step *add(struct past *p)
{
    if (p->n == p->cap) {
        p->cap = p->cap != 0 ? 2 * p->cap : 256;
        p->steps = realloc(p->steps, p->cap * sizeof *p->steps);
        KR_ASSERT(p->steps != NULL);
    }
    return &p->steps[p->n++];
}

/* What was not gone at its source, and was not told to go by anybody, must not go. */
static void judge_delete(const struct fleet *f, unsigned type, const struct step *s)
{
    const struct source *src = &f->sources[s->cluster];
    const struct thing *t = &src->now.things[type][s->index];

    world_check(&f->w,
                f->upset[type] || src->left[type][s->index] ||
                    !shape_selects(f->shapes[type], s->cluster, t, s->index),
                "%s: %s %u is deleted at revision %llu, and never was at its source",
                f->w.edges[s->cluster].name, api_types[type].resource, s->index,
                (unsigned long long)s->revision);
}

static void take(struct fleet *f, unsigned type, struct hub_event *e)
{
    struct past *p = &f->pasts[type];
    uint64_t before = p->n != 0 ? p->steps[p->n - 1].revision : p->begin;
    struct step *s = add(p);
    struct held *held;

    *s = (struct step){.revision = e->revision,
                       .at_ms = f->w.sched.now_ms,
                       .change = e->change,
                       .cluster = cluster_of(f, e->cluster)};
    s->index = read_object(f, type, e->object, &s->now);
    held = &p->last.held[s->cluster][s->index];
    s->before = held->facts;
    world_trace(&f->w, "past: %s %s %u %s at %llu", e->cluster, api_types[type].resource, s->index,
                e->change == HUB_ADDED     ? "added"
                : e->change == HUB_DELETED ? "deleted"
                                           : "modified",
                (unsigned long long)e->revision);
    world_check(&f->w, e->revision > before, "revisions run backwards: %llu after %llu",
                (unsigned long long)e->revision, (unsigned long long)before);
    world_check(&f->w, held->there == (e->change != HUB_ADDED), "a change of what is not there");
    world_check(&f->w, !held->there || strcmp(held->facts.uid, s->now.uid) == 0,
                "another object in the place of one that was not deleted");
    if (e->change == HUB_DELETED)
        judge_delete(f, type, s);
    *held = (struct held){e->change != HUB_DELETED, e->revision, s->now};
}

static void read_type(struct fleet *f, unsigned type)
{
    struct past *p = &f->pasts[type];
    struct hub_event *e;
    int rc;

    while ((rc = hub_place_next(&p->place, &e)) == 1)
        take(f, type, e);
    if (rc != 0)
        begin(f, type);
    if (p->type->revision > f->highest)
        f->highest = p->type->revision;
}

void past_read(struct fleet *f)
{
    for (unsigned i = 0; i < TYPES; i++) {
        if (f->pasts[i].type != NULL)
            read_type(f, i);
    }
}

size_t past_behind(const struct past *p, uint64_t revision)
{
    size_t i = 0;

    while (i < p->n && p->steps[i].revision <= revision)
        i++;
    return i;
}

void past_at(const struct past *p, uint64_t revision, struct state *out)
{
    *out = p->first;
    for (size_t i = 0; i < p->n && p->steps[i].revision <= revision; i++) {
        const struct step *s = &p->steps[i];

        out->held[s->cluster][s->index] =
            (struct held){s->change != HUB_DELETED, s->revision, s->now};
    }
}
