/* SPDX-License-Identifier: Apache-2.0 */
/* parts: what an agent serves requests with: the audit log, connections to its API server, its
 * catalog, what it syncs. All hang off agent_core. */
#ifndef AGENT_PARTS_H
#define AGENT_PARTS_H

#include "agent/core.h"

int agent_parts_create(struct agent_core *c, struct kr_note *why);
void agent_parts_start(struct agent_core *c);
void agent_parts_stop(struct agent_core *c);    /* half-built is fine, here and below */
void agent_parts_destroy(struct agent_core *c); /* after the I/O has ended */
/* SIGHUP: another file may be in the place of the audit log. */
void agent_parts_reopen(struct agent_core *c);

#endif
