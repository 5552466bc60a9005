/* SPDX-License-Identifier: Apache-2.0 */
/* churn: what happens in clusters by itself: pods lose and regain readiness, restart, are replaced,
 * get an annotation; nodes send heartbeats, of which 2 in 100 report another condition.
 * Threads: the loop's. */
#ifndef SIM_CHURN_H
#define SIM_CHURN_H

#include "store.h"

enum sim_mix {
    SIM_MIX_DEFAULT, /* readiness, 10 % heartbeats, 2 % replacements */
    SIM_MIX_PODS,    /* a quarter each of the four that follow */
    SIM_MIX_READINESS,
    SIM_MIX_RESTARTS,
    SIM_MIX_REPLACEMENTS,
    SIM_MIX_ANNOTATIONS,
    SIM_MIX_HEARTBEATS,
};

/* False: there is no such mix. */
bool sim_mix_parse(const char *name, enum sim_mix *out);
/* One change to a random generated object. */
void sim_churn(struct sim_cluster *c, enum sim_mix mix);

struct sim_fleet {           /* the clusters of a process, which change at one pace */
    struct kr_list clusters; /* sim_cluster.in_fleet */
    struct kr_sched *sched;
    struct kr_timer timer;
    uint32_t rate; /* changes a second in each; 0: none */
    enum sim_mix mix;
    int64_t last_ms;
};

void sim_fleet_init(struct sim_fleet *f, struct kr_sched *sched);
void sim_fleet_deinit(struct sim_fleet *f);
void sim_fleet_add(struct sim_fleet *f, struct sim_cluster *c);
void sim_fleet_pace(struct sim_fleet *f, uint32_t rate, enum sim_mix mix);

#endif
