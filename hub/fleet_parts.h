/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_parts: makes what the fleet view consists of, in order, and takes it apart again:
 * configuration, revision, cache, catalogs, subscriptions, fleet.
 * Without option fleetFile there is no fleet view, and nothing of it is made.
 * Errors: those of the fleet file and of the state directory. Threads: the worker's. */
#ifndef HUB_FLEET_PARTS_H
#define HUB_FLEET_PARTS_H

#include "hub/worker.h"

struct hub_fleet_parts;

/* *out is NULL if the fleet view is not offered. */
int hub_fleet_parts_create(struct hub_worker *w, struct hub_fleet_parts **out, struct kr_note *why);
/* Clients and tunnels are gone. */
void hub_fleet_parts_destroy(struct hub_fleet_parts *p);
/* SIGHUP. */
void hub_fleet_parts_reload(struct hub_fleet_parts *p);

#endif
