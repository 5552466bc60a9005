/* SPDX-License-Identifier: Apache-2.0 */
/* audit: the agent's own audit log (auditLog), that no hub can read or change: the same Events as
 * the hub's, under the same auditID, also for what the agent refused. A Sync subscription is a line
 * when it begins (or is refused) and one when it ends.
 * The user is who the hub says is asking, sourceIPs whence the hub says.
 * Strict mode: what changes something is refused while the log takes no lines.
 * Threads: the agent's. */
#ifndef AGENT_AUDIT_H
#define AGENT_AUDIT_H

#include "agent/request_parts.h"
#include "kube/status.h"

struct agent_audit_entry;

/* Sets c->audit, which stays NULL if nothing is to be logged. */
int agent_audit_open(struct agent_core *c, struct kr_note *why);

/* All that follow do nothing if nothing is to be logged. */
/* Before it is handed on. False: it must be refused. */
bool agent_audit_begin(struct agent_request *r);
/* The agent answers itself; while the request's head is still there. */
void agent_audit_refused(struct agent_request *r, enum kr_case which, bool not_sent);
/* The head of the answer went out. */
void agent_audit_begun(struct agent_request *r);
void agent_audit_end(struct agent_request *r);

/* A subscription of a hub; `denied` NULL: it is read. The entry, or NULL, goes to the end of it. */
struct agent_audit_entry *agent_audit_sync(struct agent_core *c, const char *replica,
                                           struct kr_bytes group, struct kr_bytes version,
                                           struct kr_bytes resource,
                                           const struct agent_verdict *denied);
void agent_audit_sync_end(struct agent_core *c, struct agent_audit_entry *e);

#endif
