/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of generated objects without a look at their JSON: what cells.c would find in it. */
#include <stdio.h>

#include "cells.h"
#include "gen.h"
#include "kinds.h"

static void pod_cells(const struct sim_world *w, struct sim_gen_id id, int64_t now_wall_ms,
                      struct kr_buf *out)
{
    char age[32], restarts[48], ago[32];
    struct sim_pod p;
    const char *word = "Running";

    sim_pod_of(w, id, &p);
    sim_duration(now_wall_ms / 1000 - p.born_ms / 1000, age);
    snprintf(restarts, sizeof restarts, "%u", p.restarts);
    if (w->heavy == NULL && !p.ready) {
        word = "CrashLoopBackOff";
    } else if (w->heavy != NULL && p.restarts != 0) {
        sim_duration(now_wall_ms / 1000 - p.changed_ms / 1000, ago);
        snprintf(restarts, sizeof restarts, "%u (%s ago)", p.restarts, ago);
    }
    kr_buf_printf(out,
                  "[\"%s\",\"%u/%u\",\"%s\",\"%s\",\"%s\",\"%s\",\"%s\",\"<none>\",\"<none>\"]",
                  p.name, p.containers - !p.ready, p.containers, word, restarts, age, p.ip,
                  p.node[0] != '\0' ? p.node : "<none>");
}

static void node_cells(const struct sim_world *w, struct sim_gen_id id, int64_t now_wall_ms,
                       struct kr_buf *out)
{
    char name[32], age[32];

    sim_node_name(id.index, name);
    sim_duration(now_wall_ms / 1000 - sim_born_ms(w, SIM_KIND_NODE, id) / 1000, age);
    kr_buf_printf(out,
                  "[\"%s\",\"Ready\",\"%s\",\"%s\",\"v1.33.0\",\"10.0.%u.%u\",\"<none>\","
                  "\"kubesim (simulated node)\",\"6.1.0-simulated\",\"kubesim://1.0\"]",
                  name, id.index == 0 ? "control-plane" : "<none>", age, id.index / 250 % 256,
                  id.index % 250 + 1);
}

bool sim_gen_cells(const struct sim_world *w, int kind, struct sim_gen_id id, int64_t now_wall_ms,
                   struct kr_buf *out)
{
    if (kind == SIM_KIND_POD)
        pod_cells(w, id, now_wall_ms, out);
    else if (kind == SIM_KIND_NODE)
        node_cells(w, id, now_wall_ms, out);
    return kind == SIM_KIND_POD || kind == SIM_KIND_NODE;
}
