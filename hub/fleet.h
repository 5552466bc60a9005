/* SPDX-License-Identifier: Apache-2.0 */
/* fleet: what /clusters/<*> serves from the cache: discovery, LIST and WATCH, each as JSON, Table
 * or PartialObjectMetadata; everything else is 405. Never waits for an edge but for the first sync
 * of a type, up to a deadline. Rules: fidelity to kube-apiserver's lists and watches; kcp's
 * contract for wildcard consumers (annotation kcp.io/cluster), multicluster-runtime's
 * (multicluster.x-k8s.io/cluster-name). Threads: the worker's. */
#ifndef HUB_FLEET_H
#define HUB_FLEET_H

#include "hub/request.h"

struct hub_fleet;

/* The worker's cache, catalogs, subscriptions and configuration are there, and outlive it. NULL:
 * memory. */
struct hub_fleet *hub_fleet_create(struct hub_worker *w);
void hub_fleet_destroy(struct hub_fleet *f); /* its exchanges are gone */
/* The request is authenticated, checked and classified; info.target is the part behind the prefix.
 * Answers now or later; the request ends with it. */
void hub_fleet_serve(struct hub_fleet *f, struct hub_request *r);
/* hub_worker.fleet_config is another one: who may read what is looked up again. Watches of readers
 * who may see nothing any more end; a list that was begun goes on as it is. */
void hub_fleet_reload(struct hub_fleet *f);
/* Ends the watches whose credential has expired, or is not good any more. */
void hub_fleet_end_expired(struct hub_fleet *f);
/* All watches end cleanly, spread over spread_ms. */
void hub_fleet_end_watches(struct hub_fleet *f, int64_t spread_ms);

#endif
