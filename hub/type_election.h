/* SPDX-License-Identifier: Apache-2.0 */
/* type_election: which kind, scope and preferred version a type has in the fleet view, where its
 * clusters disagree.
 * Rules: the majority of clusters; of as many, the side of the cluster that was in the fleet first;
 * of clusters as old, of the smaller name. Pure. */
#ifndef HUB_TYPE_ELECTION_H
#define HUB_TYPE_ELECTION_H

#include "wire/sync_messages.h"

struct hub_voter {
    char cluster[64];
    int64_t since_wall_ms; /* in the fleet */
};

struct hub_vote {
    struct kr_resource_type type;
    size_t clusters;               /* that serve it like this */
    const struct hub_voter *first; /* of these */
};

/* The order of discovery: group ("" first), version (newest first), resource. For qsort. */
int hub_type_order(const void *x, const void *y);
/* `b` may be NULL: nobody. */
bool hub_voter_is_earlier(const struct hub_voter *a, const struct hub_voter *b);
/* Sorts the votes and leaves one for each type, at the front; says how many. */
size_t hub_elect_types(struct hub_vote *v, size_t n);

#endif
