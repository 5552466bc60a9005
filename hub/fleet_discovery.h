/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_discovery: the discovery documents of the fleet view, both the aggregated form
 * (apidiscovery.k8s.io v2, v2beta1) and the old one. Every type can be listed and watched, nothing
 * else, and is always Current: a Stale version is an error to clients.
 * Rules: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
 * Errors: those of kr_buf; KR_ENOENT where there is no such group or version. Pure. */
#ifndef HUB_FLEET_DISCOVERY_H
#define HUB_FLEET_DISCOVERY_H

#include "base/buf.h"
#include "wire/sync_messages.h"

/* The types that are shown, in the order of hub_catalogs_union: by group, version, name. */
struct hub_shown_types {
    const struct kr_resource_type *const *all;
    size_t n;
};

/* APIGroupDiscoveryList: of the group "" (`core`), or of all others. `beta`: v2beta1, else v2.
 */
int hub_discovery_aggregated(struct kr_buf *out, const struct hub_shown_types *types, bool core,
                             bool beta);
/* APIVersions: what /api is. */
int hub_discovery_versions(struct kr_buf *out, const struct hub_shown_types *types);
/* APIGroupList: what /apis is. */
int hub_discovery_groups(struct kr_buf *out, const struct hub_shown_types *types);
/* APIGroup: what /apis/GROUP is. */
int hub_discovery_group(struct kr_buf *out, const struct hub_shown_types *types,
                        struct kr_bytes group);
/* APIResourceList: what /api/VERSION and /apis/GROUP/VERSION are. */
int hub_discovery_resources(struct kr_buf *out, const struct hub_shown_types *types,
                            struct kr_bytes group, struct kr_bytes version);

#endif
