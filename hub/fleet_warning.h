/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_warning: the Warning header by which an answer of the fleet view says that it may lack
 * something: "fleet view of pods: of 12 clusters 3 stale 1 missing: edge-7, edge-9, ...". At most
 * 240 characters, as clients cut beyond 256; at least one cluster is named. Pure. */
#ifndef HUB_FLEET_WARNING_H
#define HUB_FLEET_WARNING_H

#include "base/bytes.h"
#include "hub/subscriptions.h"

/* What is said where 404 could be wrong. */
#define HUB_FLEET_UNTOLD                                                                           \
    "not every cluster has told yet which types it serves, and those that have do not serve this " \
    "one"

bool hub_fleet_is_incomplete(const struct hub_completeness *c);
/* Adds it to the head, if anything is incomplete. `of`: a resource; empty: discovery. KR_ENOMEM,
 * KR_EFULL. */
int hub_fleet_warn(struct kr_head *head, struct kr_bytes of, const struct hub_completeness *c);

#endif
