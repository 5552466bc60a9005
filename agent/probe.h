/* SPDX-License-Identifier: Apache-2.0 */
/* probe: asks the API server how it is, now and then, as the agent itself: its version, the uid of
 * the kube-system namespace (which identifies the cluster) and the number of nodes. What the agent
 * may not read stays empty; only /version decides on health.
 * Limits: answers of 256 KiB, 10 s each. Threads: the agent's. */
#ifndef AGENT_PROBE_H
#define AGENT_PROBE_H

#include "agent/apiserver.h"

struct agent_probe { /* embed it; the fields belong to probe.c */
    struct agent_core *c;
    void (*on_change)(void *owner); /* agent_core.health is another one */
    void *owner;
    struct agent_waiter waiter;
    struct kr_exchange *ex;
    struct kr_timer timer; /* until the next round, or the deadline of a question */
    struct kr_buf body;
    struct agent_health next;
    size_t step;
    bool asking;
};

void agent_probe_init(struct agent_probe *p, struct agent_core *c, void (*on_change)(void *owner),
                      void *owner);
void agent_probe_start(struct agent_probe *p);
void agent_probe_stop(struct agent_probe *p);

#endif
