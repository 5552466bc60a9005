/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/cluster_use.h"

#include <stdlib.h>

#include "base/assert.h"

struct hub_cluster_use *hub_cluster_use_take(struct kr_map *all, struct kr_bytes name)
{
    struct hub_cluster_use *u = kr_map_get(all, name);

    if (u != NULL)
        return hub_cluster_use_ref(u);
    if (name.n == 0 || name.n >= sizeof u->name)
        return NULL;
    u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->all = all;
    u->refs = 1;
    memcpy(u->name, name.p, name.n);
    if (kr_map_put(all, kr_bytes_str(u->name), u) != 0) {
        free(u);
        return NULL;
    }
    return u;
}

struct hub_cluster_use *hub_cluster_use_ref(struct hub_cluster_use *u)
{
    u->refs++;
    return u;
}

void hub_cluster_use_unref(struct hub_cluster_use *u)
{
    if (u == NULL || --u->refs != 0)
        return;
    kr_map_erase(u->all, kr_bytes_str(u->name));
    free(u);
}

struct hub_cluster_use *hub_cluster_use_of(const char *name)
{
    return KR_CONTAINER_OF(name, struct hub_cluster_use, name);
}
