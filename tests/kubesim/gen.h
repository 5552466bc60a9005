/* SPDX-License-Identifier: Apache-2.0 */
/* gen: the objects that a cluster is born with, as functions of (seed, kind, index). Nothing of
 * them is stored but what happened to them since (struct sim_gen_id): that is what keeps a
 * simulated pod under 200 bytes. Threads: pure. Times: a cluster is born at born_wall_ms; its
 * objects are older than that. */
#ifndef SIM_GEN_H
#define SIM_GEN_H

#include "base/buf.h"

#define SIM_KEY_MAX 384
#define SIM_PODS_PER_DEPLOYMENT 5u
#define SIM_CONTAINERS_MAX 3

struct sim_heavy;

struct sim_world {
    const char *cluster;
    uint64_t seed;
    uint32_t pods;
    uint32_t nodes;
    int64_t born_wall_ms;
    const struct sim_heavy *heavy; /* pods and nodes of real size (heavy.h); NULL: small ones */
};

struct sim_gen_id {
    uint32_t index;
    uint32_t change;   /* pods: readiness went away or came; nodes: heartbeats */
    uint16_t life;     /* how often it was replaced */
    uint16_t restarts; /* pods: of the first container; nodes: a condition changed */
    uint16_t touches;  /* an annotation was written */
    int64_t at_us;     /* wall time of the last `change` or restart; 0: none */
};

/* How many objects of a kind are generated. */
uint32_t sim_gen_count(const struct sim_world *w, int kind);
/* "namespace/name" or "name". */
void sim_gen_key(const struct sim_world *w, int kind, struct sim_gen_id id, char out[SIM_KEY_MAX]);
int sim_gen_render(const struct sim_world *w, int kind, struct sim_gen_id id, uint64_t rv,
                   struct kr_buf *out);
/* The name of one of the fixed namespaces; NULL beyond the last. */
const char *sim_gen_namespace(size_t i);

/* Appends the cells of its Table row, behind which `now_wall_ms` is for ages. False: nothing was
 * appended, this kind has no short way (see sim_table_cells). */
bool sim_gen_cells(const struct sim_world *w, int kind, struct sim_gen_id id, int64_t now_wall_ms,
                   struct kr_buf *out);

/* ---- what rendering needs to know of one object */

struct sim_workload { /* a deployment and what it owns */
    uint32_t index;
    uint32_t replicas;
    const char *ns;
    const char *word; /* of its containers and images */
    char name[64];
    char rs[96];
    char template_hash[16];
};

struct sim_pod {
    struct sim_workload owner;
    char name[128];
    char node[32]; /* "" without nodes */
    char ip[32];
    char host_ip[32];
    unsigned containers;
    unsigned restarts;
    bool ready;
    int64_t born_ms;
    int64_t changed_ms;
};

/* Annotations that changes leave on a pod: how often it was touched, and at_us. */
#define SIM_TOUCHED "kubesim/touched"
#define SIM_CHANGED "kubesim/changed-us"

#define SIM_CONDITIONS 4 /* of a node; the last one is Ready */

struct sim_condition {
    const char *type;
    const char *status;
    const char *reason;
    const char *message;
    int64_t since_ms;
};

struct sim_condition sim_condition_of(const struct sim_world *w, size_t i, struct sim_gen_id id);
void sim_workload_of(const struct sim_world *w, uint32_t deployment, struct sim_workload *out);
void sim_pod_of(const struct sim_world *w, struct sim_gen_id id, struct sim_pod *out);
void sim_node_name(uint32_t i, char out[32]);
int64_t sim_born_ms(const struct sim_world *w, int kind, struct sim_gen_id id);
void sim_uid_of(const struct sim_world *w, int kind, struct sim_gen_id id, char out[40]);

uint64_t sim_hash(uint64_t a, uint64_t b, uint64_t c);
/* A random-looking UUID of a hash. */
void sim_uuid(uint64_t hash, char out[40]);
/* RFC 3339 in UTC, in whole seconds. */
void sim_time(int64_t wall_ms, char out[32]);

#endif
