/* SPDX-License-Identifier: Apache-2.0 */
/* sync_out: the agent's side of Sync: what a profile selects of one resource type is read from the
 * local API server (agent/reflector.h), slimmed, compared with what the hub holds
 * (wire/sync_table.h) and sent if it differs. Happy path: SyncOpen -> the agent's own rules
 * (agent/sync_rules.h) -> the kept table, or a list that only counts -> what differs is sent ->
 * snapshot_end -> changes as they come.
 * Memory: about 25 bytes an object, and 300 KiB of changes that wait for a hub to read.
 * Limits: AGENT_SYNCS_MAX open calls. Threads: the agent's. */
#ifndef AGENT_SYNC_OUT_H
#define AGENT_SYNC_OUT_H

#include "agent/core.h"
#include "http/exchange.h"
#include "kube/slim.h"

#define AGENT_SYNCS_MAX 1024

/* Makes, and takes down, what all calls share (c->sync); takes down after all tunnels are gone. */
int agent_sync_create(struct agent_core *c);
void agent_sync_destroy(struct agent_core *c);

/* Takes the exchange over; within on_request of a tunnel. `replica` is the hub's name, as its
 * certificate has it; lent. */
void agent_sync_accept(struct agent_core *c, struct kr_exchange *ex, const char *replica);

/* The same for whichever call of the fleet view it is, Catalog or Sync. False: it is neither. */
bool agent_sync_serves(struct agent_core *c, struct kr_exchange *ex, const char *replica);

/* How an open Sync call reads its objects. */
struct agent_sync_view {
    const struct kr_profile *profile; /* valid until the loop turns */
    bool metadata_only;               /* it asks for PartialObjectMetadata */
};

/* Of the open call with that number (Subscription.id). False: there is none, or more than one (two
 * hubs that chose the same number). */
bool agent_sync_find(struct agent_core *c, uint64_t number, struct agent_sync_view *out);

#endif
