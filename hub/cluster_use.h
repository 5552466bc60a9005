/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_use: what one cluster holds of the cache, and its name as a text that events may point
 * to. One for each name; counted by shelves, events and label sets, gone with the last of them.
 * Units: bytes. Threads: one owner. */
#ifndef HUB_CLUSTER_USE_H
#define HUB_CLUSTER_USE_H

#include "base/map.h"

struct hub_cluster_use { /* read bytes and name */
    struct kr_map *all;  /* the table that it is in, by name */
    size_t refs;
    uint64_t bytes;
    char name[64];
};

/* Finds or makes it, counted up. NULL: the name is too long, the table full, or memory short. */
struct hub_cluster_use *hub_cluster_use_take(struct kr_map *all, struct kr_bytes name);
struct hub_cluster_use *hub_cluster_use_ref(struct hub_cluster_use *u);
void hub_cluster_use_unref(struct hub_cluster_use *u); /* NULL is fine */
/* The one whose name this is. */
struct hub_cluster_use *hub_cluster_use_of(const char *name);

#endif
