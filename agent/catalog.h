/* SPDX-License-Identifier: Apache-2.0 */
/* catalog: which types the local API server serves that can be listed and watched, kept fresh by
 * discovery (agent/discovery.h) every discoveryInterval, and told to hubs by their Catalog calls:
 * at once, and again whenever it changes. Memory: the types, in an arena a document. Limits:
 * AGENT_TYPES_MAX types, AGENT_CATALOGS_MAX calls. Threads: the agent's. */
#ifndef AGENT_CATALOG_H
#define AGENT_CATALOG_H

#include "agent/core.h"
#include "http/exchange.h"
#include "wire/sync_messages.h"

#define AGENT_CATALOGS_MAX 256

struct agent_catalog;

struct agent_catalog *agent_catalog_create(struct agent_core *c);
void agent_catalog_destroy(struct agent_catalog *cat); /* all calls have ended */
void agent_catalog_start(struct agent_catalog *cat);
void agent_catalog_stop(struct agent_catalog *cat);

/* Takes a Catalog call over; within on_request of a tunnel. */
void agent_catalog_accept(struct agent_catalog *cat, struct kr_exchange *ex);

/* Whether discovery has succeeded once. */
bool agent_catalog_known(const struct agent_catalog *cat);
/* NULL: it is not served. Valid until the loop turns. */
const struct kr_resource_type *agent_catalog_find(const struct agent_catalog *cat,
                                                  struct kr_bytes group, struct kr_bytes version,
                                                  struct kr_bytes resource);

/* Somebody who waits for the next look at what is served; embedded. */
struct agent_catalog_listener {
    struct kr_list link;
    /* Called after each round. `ok`: the API server has answered all of it. */
    void (*on_round)(struct agent_catalog_listener *l, bool ok);
};
void agent_catalog_listen(struct agent_catalog *cat, struct agent_catalog_listener *l);
void agent_catalog_unlisten(struct agent_catalog_listener *l);
/* Looks now, rather than after the interval (at most once a second). */
void agent_catalog_refresh(struct agent_catalog *cat);

#endif
