/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel: one connection that an agent dialled, after its handshake: HTTP/2 with the hub as client.
 * It counts as attached, and carries requests, once the agent's first state was accepted.
 * States: new -> attached -> draining -> gone. Only clusters.c hears of it, by its link.
 * Threads: the worker's. */
#ifndef HUB_TUNNEL_H
#define HUB_TUNNEL_H

#include "hub/worker.h"

struct hub_tunnel;

struct hub_tunnel_owner {
    void (*on_gone)(void *owner, struct hub_tunnel *t); /* it is freed right after */
};

/* Takes identity (moved) and pipe. NULL: memory is short; the pipe is untouched. */
struct hub_tunnel *hub_tunnel_create(struct hub_worker *w, struct kr_pipe *pipe,
                                     struct kr_identity *id, const char *address,
                                     const struct hub_tunnel_owner *ops, void *owner);
/* Tells the agent that this hub goes, takes no new requests, and ends with the last one. */
void hub_tunnel_drain(struct hub_tunnel *t);
void hub_tunnel_close(struct hub_tunnel *t);
const struct kr_identity *hub_tunnel_identity(const struct hub_tunnel *t);
/* Tells the agent that it is refused, and cuts what runs. `why` is a constant. */
void hub_tunnel_refuse(struct hub_tunnel *t, const char *why);

#endif
