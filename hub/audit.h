/* SPDX-License-Identifier: Apache-2.0 */
/* audit: the hub's audit log (auditLog): for each request one line when it is over, before that one
 * when it is about to be handed on if it changes something or connects, and one when a long-running
 * answer begins. Not logged: the hub's own /livez, /readyz, /healthz, /version, and what is beyond
 * maxRequests.
 * Strict mode: what changes something is refused while the log takes no lines.
 * Memory: of a request the text of what does not change, while auditing is on. Threads: the
 * worker's. */
#ifndef HUB_AUDIT_H
#define HUB_AUDIT_H

#include "hub/request.h"

/* Sets w->audit, which stays NULL if nothing is to be logged. */
int hub_audit_open(struct hub_worker *w, struct kr_note *why);

/* All that follow do nothing if nothing is to be logged. */
/* Before it is handed on. False: it must be refused. */
bool hub_audit_begin(struct hub_request *r);
/* It goes to an agent over this tunnel. */
void hub_audit_routed(struct hub_request *r, const struct kr_conn *conn);
/* The hub answers itself; while the request's head is still there. */
void hub_audit_refused(struct hub_request *r, enum kr_case which);
/* What an agent says about its answer. */
void hub_audit_answered(struct hub_request *r, const struct kr_head *from);
/* The head of the answer went out. */
void hub_audit_begun(struct hub_request *r);
void hub_audit_end(struct hub_request *r);

#endif
