/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_source: keeps hub_worker.fleet_config what the fleet file says: read at the start, on
 * SIGHUP, and when the file is another one (looked at every 2 s). A bad file is logged and changes
 * nothing. Whom a new one concerns is told: subscriptions, and the fleet view.
 * Errors: those of hub_fleet_config_load at the start. Threads: the worker's; blocks on the disk
 *         for one small file. */
#ifndef HUB_FLEET_SOURCE_H
#define HUB_FLEET_SOURCE_H

#include "hub/worker.h"

struct hub_fleet_source;

/* Sets w->fleet_config from option fleetFile, which is given. NULL: see *why. */
struct hub_fleet_source *hub_fleet_source_create(struct hub_worker *w, struct kr_note *why);
void hub_fleet_source_destroy(struct hub_fleet_source *s); /* and the configuration */
/* Reads the file whether it has changed or not. */
void hub_fleet_source_reload(struct hub_fleet_source *s);

#endif
