/* SPDX-License-Identifier: Apache-2.0 */
/* walk_filter: a label selector as a walk uses it: what it says of kuberelay.io/cluster is judged
 * once for each shelf, the rest once for each set of labels (remembered in two bits a set), most
 * sets being ruled out by their marks alone: where each object has a set of its own, that counts.
 * The numbers of sets mean the same as long as the walk lasts: what it may give holds its set.
 * Memory: copies the selector. Errors: KR_ENOMEM. Threads: one owner. */
#ifndef HUB_WALK_FILTER_H
#define HUB_WALK_FILTER_H

#include "hub/label_sets.h"

#define HUB_CLUSTER_LABEL "kuberelay.io/cluster"

struct hub_walk_filter { /* embed it; read rest.n; the fields belong to walk_filter.c */
    struct hub_label_sets *sets;
    struct kr_arena arena;
    struct kr_label_selector rest;
    struct kr_label_selector cluster;
    uint64_t *masks; /* a set that matches has at least one mark of each */
    size_t mask_count;
    uint64_t *known;
    size_t words;
};

/* `selector` may be NULL: everything. A failed one may be deinitialized. */
int hub_walk_filter_init(struct hub_walk_filter *f, struct hub_label_sets *sets,
                         const struct kr_label_selector *selector);
void hub_walk_filter_deinit(struct hub_walk_filter *f);
bool hub_walk_filter_cluster(const struct hub_walk_filter *f, const char *cluster);
/* Judges a set that is not known yet. */
bool hub_walk_filter_judge(struct hub_walk_filter *f, uint32_t set);

static inline bool hub_walk_filter_set(struct hub_walk_filter *f, uint32_t set)
{
    size_t word = set / 32;
    unsigned bits = word < f->words ? (unsigned)(f->known[word] >> (set % 32 * 2)) & 3 : 0;

    return bits != 0 ? bits == 3 : hub_walk_filter_judge(f, set);
}

#endif
