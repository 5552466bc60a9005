/* SPDX-License-Identifier: Apache-2.0 */
/* link: one lane to one hub: dials, shakes hands, serves the tunnel, and dials again when it ends.
 * States: waiting -> dialling -> handshake -> open -> attached -> (ended) -> waiting.
 * Waits: full jitter up to reconnectBase, doubling to reconnectMax; a refused certificate or a
 *        refusal by the hub waits 5 to 10 minutes (SIGHUP tries at once).
 * Threads: the agent's. */
#ifndef AGENT_LINK_H
#define AGENT_LINK_H

#include "agent/core.h"
#include "net/proxy.h"

struct agent_link;

struct agent_link_config {
    struct agent_core *c;
    const char *hub; /* "host:port", borrowed */
    enum kr_lane lane;
    const struct kr_proxy *proxy; /* borrowed; NULL: direct */
};

struct agent_link *agent_link_create(const struct agent_link_config *cfg, struct kr_note *why);
void agent_link_destroy(struct agent_link *l); /* after its connection is gone */
void agent_link_start(struct agent_link *l);
/* Dials now if it waits; false: it was never started. */
bool agent_link_retry(struct agent_link *l);
/* Whether nothing but its own calls (Attach, Catalog, Sync) may be under way. */
bool agent_link_is_idle(const struct agent_link *l);
bool agent_link_attached(const struct agent_link *l);
/* Tells the hub what has changed (agent_core.health, draining). */
void agent_link_tell(struct agent_link *l);
void agent_link_drain(struct agent_link *l);
/* Ends the connection and does not dial again. True when nothing is left of it. */
bool agent_link_close(struct agent_link *l);

#endif
