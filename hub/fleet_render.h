/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_render: an object as the fleet view shows it: the slim text, with apiVersion and kind at
 * its top and, in metadata, the fleet's resourceVersion and what tells where the object is from:
 *   label      kuberelay.io/cluster
 *   annotation kcp.io/cluster, multicluster.x-k8s.io/cluster-name, kuberelay.io/resource-version
 *              (at the edge), kuberelay.io/slimmed ("true": a profile left something out),
 *              kuberelay.io/stale-since (RFC 3339: the cluster is away since then)
 * The slim text has none of them (subscriptions.c).
 * Memory: appends to the caller's buf, which grows once an object. Errors: KR_EPROTO, those of
 * kr_buf; `out` is then as before. Pure. */
#ifndef HUB_FLEET_RENDER_H
#define HUB_FLEET_RENDER_H

#include "base/buf.h"
#include "hub/fleet_spots.h"

/* A type, as its objects name it. */
struct hub_kind {
    struct kr_bytes api_version; /* text between quotes */
    struct kr_bytes kind;
    struct kr_bytes top; /* "apiVersion":"apps/v1","kind":"Deployment", */
};

/* What is put into one object. */
struct hub_face {
    const char *cluster;
    uint64_t revision;
    struct kr_bytes origin; /* resourceVersion at the edge */
    bool lossy;
    struct kr_bytes stale_since; /* empty: not stale */
};

int hub_render_object(struct kr_buf *out, const struct hub_kind *kind, struct kr_bytes slim,
                      const struct hub_face *face);
/* A PartialObjectMetadata of meta.k8s.io/VERSION; `spots` were found with `whole`. */
int hub_render_partial(struct kr_buf *out, const char *version, struct kr_bytes slim,
                       const struct hub_spots *spots, const struct hub_face *face);
/* The same as hub_render_object, with spots that are known already. */
int hub_render_at(struct kr_buf *out, const struct hub_kind *kind, struct kr_bytes slim,
                  const struct hub_spots *spots, const struct hub_face *face);
/* Appends a number. */
int hub_render_u64(struct kr_buf *out, uint64_t v);

#endif
