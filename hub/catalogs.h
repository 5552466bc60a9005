/* SPDX-License-Identifier: Apache-2.0 */
/* catalogs: which types each cluster serves, as its agent told, and the union of them, for
 * discovery of the fleet view and to know a type by its resource. A cluster that is away keeps its
 * catalog. Limits: 5,000 types a cluster. Threads: the worker's. */
#ifndef HUB_CATALOGS_H
#define HUB_CATALOGS_H

#include "wire/sync_messages.h"

struct hub_catalogs;
struct hub_catalog; /* of one cluster */

struct hub_catalogs *hub_catalogs_create(void);
void hub_catalogs_destroy(struct hub_catalogs *cs);
/* Takes one update of a cluster (copies); with `more` it is kept until the rest came. Types whose
 * names no path can have are left out. KR_EFULL (too many), KR_ENOMEM: the catalog is as before. */
int hub_catalogs_update(struct hub_catalogs *cs, const char *cluster,
                        const struct kr_catalog_update *update);
/* What came with `more` is forgotten: the call ended before the rest. */
/* Since when the cluster has been in the fleet, for as long as nothing else is told: 0. KR_ENOMEM.
 */
int hub_catalogs_know(struct hub_catalogs *cs, const char *cluster, int64_t since_wall_ms);
void hub_catalogs_interrupted(struct hub_catalogs *cs, const char *cluster);
void hub_catalogs_remove(struct hub_catalogs *cs, const char *cluster);
bool hub_catalogs_has(const struct hub_catalogs *cs, const char *cluster); /* it was told once */

/* Whether the cluster serves the type; NULL: no. */
const struct kr_resource_type *hub_catalog_find(const struct hub_catalogs *cs, const char *cluster,
                                                struct kr_bytes group, struct kr_bytes version,
                                                struct kr_bytes resource);
/* The union: where clusters disagree on kind or scope, the majority counts; of two that are as
 * many, the one that was in the fleet first, so that no new cluster changes a type for the others;
 * of two as old, by the name. So it is the same whoever was heard first. Sorted
 * by group ("" first), version (newest first, as kube-apiserver orders them), resource. Valid until
 * the next update; `generation` tells. */
const struct kr_resource_type *hub_catalogs_union(struct hub_catalogs *cs, size_t *n);
const struct kr_resource_type *hub_catalogs_find(struct hub_catalogs *cs, struct kr_bytes group,
                                                 struct kr_bytes version, struct kr_bytes resource);
uint64_t hub_catalogs_generation(const struct hub_catalogs *cs);

#endif
