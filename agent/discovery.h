/* SPDX-License-Identifier: Apache-2.0 */
/* discovery: reads what an API server says of the types it serves: the aggregated form
 * (apidiscovery.k8s.io v2 and v2beta1) group by group while it arrives, and the old documents.
 * Only types that can be listed and watched are kept; subresources are none.
 * Rules:  kubernetes.io/docs/concepts/overview/kubernetes-api (Discovery API), client-go
 *         discovery/aggregated_discovery.go.
 * Memory: agent_types owns everything. Limits: AGENT_TYPES_MAX; what is beyond is left out.
 * Errors: KR_EPROTO with the reason, KR_ETOOBIG, KR_ENOMEM. Pure. */
#ifndef AGENT_DISCOVERY_H
#define AGENT_DISCOVERY_H

#include "base/arena.h"
#include "base/note.h"
#include "wire/sync_messages.h"

#define AGENT_TYPES_MAX 5000

struct agent_types { /* embed it; read all, n and patchy */
    struct kr_resource_type *all;
    size_t n;
    size_t cap;
    bool patchy; /* the source of some was away, and nothing was known of it before */
    struct kr_arena arena;
};

void agent_types_init(struct agent_types *t);
void agent_types_deinit(struct agent_types *t); /* zeroed is fine */
const struct kr_resource_type *agent_types_find(const struct agent_types *t, struct kr_bytes group,
                                                struct kr_bytes version, struct kr_bytes resource);

/* One element of an APIGroupDiscoveryList. `before`: what was known; a version whose source is away
 * ("Stale", without resources) is taken from there. */
int agent_discovery_group(struct agent_types *t, struct kr_bytes item,
                          const struct agent_types *before, struct kr_note *why);

/* An APIVersions (/api) or APIGroupList (/apis) document: each group and version. */
struct agent_group_version {
    struct kr_bytes group;
    struct kr_bytes version;
    bool preferred;
};
int agent_discovery_versions(struct kr_bytes doc, struct kr_arena *arena,
                             struct agent_group_version *out, size_t max, size_t *n,
                             struct kr_note *why);
/* An APIResourceList of one of them. */
int agent_discovery_resources(struct agent_types *t, struct kr_bytes doc,
                              const struct agent_group_version *gv, struct kr_note *why);
/* Takes what was known of it before: its source is away now. Nothing: the types are patchy. */
int agent_discovery_keep(struct agent_types *t, const struct agent_types *before,
                         struct kr_bytes group, struct kr_bytes version);

#endif
