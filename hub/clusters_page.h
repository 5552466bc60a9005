/* SPDX-License-Identifier: Apache-2.0 */
/* clusters_page: what the hub knows of its clusters, as JSON, sorted by name:
 *   {"clusters":[{"name","state":"connected"|"away","sinceMs","nowMs","agentVersion",
 *     "serverVersion","nodes","tunnels","objects","bytes","receivedBytes","plainBytes","rawBytes",
 *     "types":[{"group","version","resource","objects","bytes","receivedBytes","plainBytes",
 *       "rawBytes","upserts","deletes","refused","skipped","open","synced","metadataOnly",
 *       "staleSinceMs","problem","problemText"}]}]}
 * Times are milliseconds since 1970; bytes and objects are those of the cache, receivedBytes what
 * came over the tunnel, plainBytes the same unpacked, rawBytes what the cluster's API server had
 * sent for it. Errors: those of kr_buf. Threads: the worker's. */
#ifndef HUB_CLUSTERS_PAGE_H
#define HUB_CLUSTERS_PAGE_H

#include "hub/worker.h"

int hub_clusters_page(struct hub_worker *w, struct kr_buf *out);

#endif
