/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_past: what the cache of the hub has held of a type, revision by revision, read from its log
 * behind each turn. A type that the hub has dropped without telling anybody begins a new past. */
#ifndef SIM_FLEET_PAST_H
#define SIM_FLEET_PAST_H

#include "fleet_source.h"
#include "hub/cache.h"
#include "world.h"

struct fleet;

struct state { /* all objects of a type */
    struct held {
        bool there;
        uint64_t revision;
        struct facts facts;
    } held[CLUSTERS][THINGS];
};

struct step {
    uint64_t revision;
    int64_t at_ms;
    enum hub_change change;
    unsigned cluster;
    unsigned index;
    struct facts now; /* DELETED: what it was last */
    struct facts before;
};

struct past {
    struct hub_type *type;
    struct hub_place place;
    unsigned generation;
    uint64_t begin; /* revision that the first state is of */
    struct state first;
    struct state last;
    struct step *steps;
    size_t n;
    size_t cap;
};

void past_begin(struct fleet *f, unsigned type); /* the hub has started */
void past_forget(struct past *p);                /* it is gone */
void past_read(struct fleet *f);                 /* what is new */
/* The state at a revision that is not before the begin. */
void past_at(const struct past *p, uint64_t revision, struct state *out);
/* The first step behind it. */
size_t past_behind(const struct past *p, uint64_t revision);

#endif
