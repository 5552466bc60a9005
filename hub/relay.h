/* SPDX-License-Identifier: Apache-2.0 */
/* relay: from the pipeline to the agent and back.
 * Delivery decides what may be said when it breaks: a request that was handed to nobody may be
 * tried again; one that may have run is never repeated, and a write among them is "outcome
 * unknown". */
#ifndef HUB_RELAY_H
#define HUB_RELAY_H

#include "hub/request.h"

/* Makes the request's forward and timers ready. */
void hub_relay_init(struct hub_request *r);

#endif
