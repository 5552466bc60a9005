/* SPDX-License-Identifier: Apache-2.0 */
/* walk_source: one shelf as a walk sees it: with its next object in hand, which the reader may see,
 * the selector selects, and that was current at the walk's revision.
 *
 * A source under a pin has two cursors: in the live tree, where what is newer than the pin is
 * passed over, and in the tree of old versions. At most one of them has a version of a key that the
 * pin sees. When a tree has changed since the last step, its cursor is found again by the key of
 * the object that was in hand: what the pin shows cannot have changed. */
#ifndef HUB_WALK_SOURCE_H
#define HUB_WALK_SOURCE_H

#include "hub/cache_internal.h"
#include "hub/walk_filter.h"

#define HUB_SOURCE_NS_MAX 63

struct hub_walk_view { /* what all sources of a walk have in common */
    bool pinned;
    uint64_t revision;     /* what is newer is not seen */
    const uint64_t *clock; /* of all trees */
    const struct hub_sight *sight;
    struct kr_bytes ns; /* empty: all */
    struct hub_walk_filter filter;
};

struct hub_source {              /* embed it; read head and shelf */
    struct hub_shelf_box *shelf; /* counted */
    struct hub_object *head;     /* counted; NULL: the end */
    /* The cursors, good for the trees as they were at `clock`. The live one has what it needs at
     * hand: a walk steps from source to source, and each page of memory that a step touches costs
     * as much as the rest of it. */
    uint64_t clock;
    struct hub_leaf *leaf; /* NULL: the end */
    size_t row;
    uint32_t at;
    uint32_t leaf_n;
    bool all_seen; /* nothing in the leaf is newer than the walk */
    bool head_is_old;
    bool old_ended;
    struct hub_spot old;
    bool ask_ns;   /* not all namespaces may be seen */
    bool ns_known; /* the answer for `ns` is ns_allowed */
    bool ns_allowed;
    uint8_t ns_n;
    char ns[HUB_SOURCE_NS_MAX];
};

/* False: nothing of the shelf may be seen or is selected. */
bool hub_source_init(struct hub_source *s, const struct hub_walk_view *v,
                     struct hub_shelf_box *shelf);
void hub_source_deinit(struct hub_source *s);
/* Takes the first object in hand that is not before the key. */
void hub_source_start(struct hub_source *s, struct hub_walk_view *v, const struct hub_key *key);
/* Takes the next one. What was in hand, and its reference, is the caller's from now on. */
struct hub_object *hub_source_advance(struct hub_source *s, struct hub_walk_view *v);

#endif
