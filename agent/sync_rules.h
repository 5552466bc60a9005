/* SPDX-License-Identifier: Apache-2.0 */
/* sync_rules: what of a subscription the agent's own configuration lets through (syncAllow,
 * syncDeny, syncNamespaces). A hub can ask for less than that, never for more. Pure. */
#ifndef AGENT_SYNC_RULES_H
#define AGENT_SYNC_RULES_H

#include "agent/options.h"
#include "wire/sync_messages.h"

/* Whether the resource may be synced at all; deny goes before allow. */
bool agent_sync_allows(const struct agent_options *o, struct kr_bytes group,
                       struct kr_bytes resource);
/* The namespaces that are left of a subscription's: names of both lists, or of the one that is not
 * empty. Copies into the arena. *n 0 and *all: every namespace; *n 0 without it: none. KR_ENOMEM.
 */
int agent_sync_namespaces(const struct agent_options *o, const struct kr_subscription *s,
                          struct kr_arena *arena, struct kr_bytes **out, size_t *n, bool *all);

#endif
