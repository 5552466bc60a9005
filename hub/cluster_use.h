/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_use: what one cluster holds of the cache, and its name as a text that others point to and
 * compare by its address. One for each name that was ever seen, for as long as the table lives:
 * names are few, for they come from certificates.
 * Units: bytes. Threads: one owner. */
#ifndef HUB_CLUSTER_USE_H
#define HUB_CLUSTER_USE_H

#include "base/map.h"

struct hub_cluster_use { /* read it; bytes is counted by those who hold something */
    uint64_t bytes;
    char name[64];
};

/* Finds or makes it. NULL: the name is empty or too long, the table full, or memory short. */
struct hub_cluster_use *hub_cluster_use_get(struct kr_map *all, struct kr_bytes name);
void hub_cluster_uses_destroy(struct kr_map *all); /* nobody points to one any more */

#endif
