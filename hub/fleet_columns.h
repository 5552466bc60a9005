/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_columns: the columns of a type's Table. Clusters of different versions may have different
 * ones: those that most clusters have are shown (the newest, if that is a draw), the others' cells
 * are matched by the name of their column. Column `Cluster` comes first; a type whose clusters gave
 * none has Name and Age. A set never changes: it is counted, so that a watch keeps the one it began
 * with.
 * Limits: 16 different sets of one type; a cluster with another one is shown by Name and Age.
 * Errors: KR_ENOMEM. Threads: the worker's. */
#ifndef HUB_FLEET_COLUMNS_H
#define HUB_FLEET_COLUMNS_H

#include "hub/cache.h"
#include "kube/cells.h"

#define HUB_COLUMNS_NONE 0xFF /* in `from`: the cluster has no such column */

/* Where the cells of a cluster lie: shown column i is its cell from[i]. */
struct hub_column_map {
    uint8_t n; /* cells that its rows have */
    uint8_t from[KR_COLUMNS_MAX];
};

struct hub_columns { /* read it */
    uint32_t refs;
    uint64_t stamp;              /* of the shelves that it was made from */
    struct kr_buf text;          /* columnDefinitions, an array */
    struct kr_buf source;        /* what `shown` borrows */
    struct kr_columns shown;     /* without Cluster */
    size_t name_at;              /* which of them is the name; KR_COLUMNS_MAX: none */
    struct hub_column_map *maps; /* [0]: as shown */
    size_t map_count;
    struct hub_column_use *uses; /* clusters with another map than [0], ordered by name */
    size_t use_count;
};

/* The set for what the shelves have now: `last` with one more reference if it still fits, else a
 * new one. NULL: memory. `last` may be NULL. */
struct hub_columns *hub_columns_get(const struct hub_type *type, struct hub_columns *last);
void hub_columns_unref(struct hub_columns *c);
/* NULL: its cells are not to be used. */
const struct hub_column_map *hub_columns_map(const struct hub_columns *c, const char *cluster);

#endif
