/* SPDX-License-Identifier: Apache-2.0 */
/* list_gate: how many lists of the API server run at once; who waits goes in the order of priority
 * (lower first), then of arrival. Lists are what is dear for an API server; watches are not.
 * Life:    a place is asked for, called back once (never from inside the call), and given back.
 * Memory:  embedded in who asks. Threads: the agent's. */
#ifndef AGENT_LIST_GATE_H
#define AGENT_LIST_GATE_H

#include "base/sched.h"

#define AGENT_LISTS_MAX 4

struct agent_list_gate { /* embed it; the fields belong to list_gate.c */
    struct kr_sched *sched;
    struct kr_list waiting; /* agent_list_place.link */
    struct kr_task grant;
    unsigned used;
};

struct agent_list_place {
    struct kr_list link;
    struct agent_list_gate *gate; /* while it waits or holds the place */
    uint32_t priority;
    bool held;
    void (*on_granted)(struct agent_list_place *p);
};

void agent_list_gate_init(struct agent_list_gate *g, struct kr_sched *sched);
void agent_list_gate_deinit(struct agent_list_gate *g); /* nobody waits any more */
void agent_list_place_ask(struct agent_list_gate *g, struct agent_list_place *p);
/* Gives it back, or stops waiting; may be called at any time. */
void agent_list_place_leave(struct agent_list_place *p);

#endif
