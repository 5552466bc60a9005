/* SPDX-License-Identifier: Apache-2.0 */
/* admin: plain HTTP/1.1 for operators and kubelet probes: /metrics, /livez, /readyz (ready:
 * attached to a hub). */
#ifndef AGENT_ADMIN_H
#define AGENT_ADMIN_H

#include "agent/core.h"

struct agent_admin;

struct agent_admin *agent_admin_create(struct agent_core *c, bool (*is_attached)(void *owner),
                                       void *owner, struct kr_note *why);
void agent_admin_close(struct agent_admin *a);
void agent_admin_destroy(struct agent_admin *a);
const char *agent_admin_address(const struct agent_admin *a);

#endif
