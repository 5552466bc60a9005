/* SPDX-License-Identifier: Apache-2.0 */
/* attach: the agent's side of the Attach call on one tunnel: tells the hub how the agent is, at
 * once and every heartbeat, and hears what the hub says of itself. */
#ifndef AGENT_ATTACH_H
#define AGENT_ATTACH_H

#include "agent/core.h"
#include "wire/grpc_call.h"

struct agent_attach_owner {
    /* A state of the hub; the first one means that it has accepted the tunnel. Lent. */
    void (*on_hub_state)(void *owner, const struct kr_hub_state *s);
    /* The call broke or ended: the tunnel is of no more use. */
    void (*on_attach_end)(void *owner, const char *why);
};

struct agent_attach { /* embed it; the fields belong to attach.c */
    struct agent_core *c;
    enum kr_lane lane;
    struct kr_grpc_stream stream;
    struct kr_timer beat;
    int64_t beat_ms;
    uint64_t count;
    const struct agent_attach_owner *ops;
    void *owner;
};

void agent_attach_init(struct agent_attach *a, struct agent_core *c, enum kr_lane lane,
                       const struct agent_attach_owner *ops, void *owner);
void agent_attach_deinit(struct agent_attach *a);
/* Takes the exchange over; within on_request. A second call on one tunnel is refused. */
void agent_attach_accept(struct agent_attach *a, struct kr_exchange *ex);
/* Something has changed: tells the hub now. */
void agent_attach_tell(struct agent_attach *a);

#endif
