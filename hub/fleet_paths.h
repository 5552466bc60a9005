/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_paths: what the fleet view answers beside lists and watches: discovery, version, OpenAPI,
 * health. Discovery shows what the clusters serve that the reader may see. */
#ifndef HUB_FLEET_PATHS_H
#define HUB_FLEET_PATHS_H

#include "hub/request.h"

/* For GET and HEAD of what is no resource. Answers and ends the request. */
void hub_fleet_path(struct hub_request *r, struct kr_exchange *ex);

#endif
