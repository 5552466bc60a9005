/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/cluster_use.h"

#include <stdlib.h>

struct hub_cluster_use *hub_cluster_use_get(struct kr_map *all, struct kr_bytes name)
{
    struct hub_cluster_use *u = kr_map_get(all, name);

    if (u != NULL)
        return u;
    if (name.n == 0 || name.n >= sizeof u->name)
        return NULL;
    u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    memcpy(u->name, name.p, name.n);
    if (kr_map_put(all, kr_bytes_str(u->name), u) != 0) {
        free(u);
        return NULL;
    }
    return u;
}

void hub_cluster_uses_destroy(struct kr_map *all)
{
    size_t pos = 0;
    void *use;

    while ((use = kr_map_next(all, &pos, NULL)) != NULL)
        free(use);
    kr_map_deinit(all);
}
