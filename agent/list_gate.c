/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/list_gate.h"

#include "base/assert.h"

static struct agent_list_place *first(struct agent_list_gate *g)
{
    struct agent_list_place *best = NULL;

    KR_LIST_FOREACH(node, &g->waiting)
    {
        struct agent_list_place *p = KR_CONTAINER_OF(node, struct agent_list_place, link);

        if (best == NULL || p->priority < best->priority)
            best = p;
    }
    return best;
}

static void on_grant(struct kr_task *t)
{
    struct agent_list_gate *g = KR_CONTAINER_OF(t, struct agent_list_gate, grant);

    while (g->used < AGENT_LISTS_MAX && !kr_list_empty(&g->waiting)) {
        struct agent_list_place *p = first(g);

        kr_list_remove(&p->link);
        p->held = true;
        g->used++;
        p->on_granted(p);
    }
}

void agent_list_gate_init(struct agent_list_gate *g, struct kr_sched *sched)
{
    *g = (struct agent_list_gate){.sched = sched};
    kr_list_init(&g->waiting);
    kr_task_init(&g->grant, on_grant);
}

void agent_list_gate_deinit(struct agent_list_gate *g)
{
    KR_ASSERT(kr_list_empty(&g->waiting) && g->used == 0);
    kr_task_cancel(&g->grant);
}

void agent_list_place_ask(struct agent_list_gate *g, struct agent_list_place *p)
{
    KR_ASSERT(p->gate == NULL);
    p->gate = g;
    kr_list_append(&g->waiting, &p->link);
    kr_task_post(g->sched, &g->grant);
}

void agent_list_place_leave(struct agent_list_place *p)
{
    struct agent_list_gate *g = p->gate;

    if (g == NULL)
        return;
    p->gate = NULL;
    kr_list_remove(&p->link);
    if (p->held) {
        p->held = false;
        g->used--;
        kr_task_post(g->sched, &g->grant);
    }
}
