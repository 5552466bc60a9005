/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_write: a write to /clusters/NAME whose object the client read from the fleet view. Its body
 * carries the fleet's resourceVersion and what only the fleet view adds; both are taken out, and
 * the agent puts the live version in, if the object still is what was served (RelayRequest.rebase).
 * Happy path: hub_write_begin -> the body is collected -> hub/fleet_plan.h decides -> it is edited
 *         (hub/fleet_edit.h) -> the relay goes on with the new body.
 * A PUT on an object of which a profile left parts out becomes a JSON Patch of what was changed
 * (kube/json_diff.h). Refused: a version that this hub gave out and that is not the latest (409); a
 * change that could lose what was left out (422); a body that must be edited and is neither JSON
 * nor protobuf (415). Looked at: POST, PUT, PATCH and DELETE with a body, of a type that is in the
 * cache. Limits: the request's up_max a body; HUB_WRITES_MAX bytes of bodies at once, then 429.
 * Memory: a body while it is collected; the rest for one turn. Threads: the worker's. */
#ifndef HUB_FLEET_WRITE_H
#define HUB_FLEET_WRITE_H

#include "hub/fleet_edit.h"

#define HUB_WRITES_MAX (64u << 20)

/* Whether it takes the request over: then it goes on by itself, to the relay or to an answer. */
bool hub_write_begin(struct hub_request *r);
/* The body is there. */
void hub_write_gathered(struct hub_request *r);
/* The tunnel that it must go over: the one that the object's Sync is open on, as another agent of
 * the cluster knows nothing of it. False: any. *conn is NULL if it is there no more. */
bool hub_write_tunnel(const struct hub_request *r, struct kr_conn **conn);
/* The request ends. */
void hub_write_end(struct hub_request *r);
/* Whether a field of the client's head must not go on with the new body, and those that do. */
bool hub_write_drops(const struct hub_request *r, struct kr_bytes name);
int hub_write_add_fields(const struct hub_request *r, struct kr_head *to);

#endif
