/* SPDX-License-Identifier: Apache-2.0 */
/* request: one relayed request at the agent: checked again, given the caller's identity, executed
 * on the local API server. Identity: the header kuberelay-request-bin says who asks; it becomes
 * Impersonate-User and -Group, prefixed with userPrefix, rendered last and never empty. `system:`
 * is never producible. Limits: maxRequests. Threads: the agent's. */
#ifndef AGENT_REQUEST_H
#define AGENT_REQUEST_H

#include "agent/core.h"
#include "http/conn.h"

/* Takes the exchange over; within on_request of a tunnel. */
void agent_request_start(struct agent_core *c, struct kr_exchange *ex);

#endif
