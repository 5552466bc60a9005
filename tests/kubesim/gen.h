/* SPDX-License-Identifier: Apache-2.0 */
/* gen: the objects that a cluster is born with, as functions of (seed, kind, index). Nothing of
 * them is stored but how often they were replaced (`life`) and changed (`change`): that is what
 * keeps a simulated pod under 200 bytes.
 * Threads: pure. Times: a cluster is born at born_wall_ms; its objects are older than that. */
#ifndef SIM_GEN_H
#define SIM_GEN_H

#include "base/buf.h"

#define SIM_KEY_MAX 384

struct sim_world {
    const char *cluster;
    uint64_t seed;
    uint32_t pods;
    uint32_t nodes;
    int64_t born_wall_ms;
};

struct sim_gen_id {
    uint32_t index;
    uint32_t life : 12;
    uint32_t change : 20;
};

/* How many objects of a kind are generated. */
uint32_t sim_gen_count(const struct sim_world *w, int kind);
/* "namespace/name" or "name". */
void sim_gen_key(const struct sim_world *w, int kind, struct sim_gen_id id, char out[SIM_KEY_MAX]);
int sim_gen_render(const struct sim_world *w, int kind, struct sim_gen_id id, uint64_t rv,
                   struct kr_buf *out);
/* The name of one of the fixed namespaces; NULL beyond the last. */
const char *sim_gen_namespace(size_t i);

uint64_t sim_hash(uint64_t a, uint64_t b, uint64_t c);
/* A random-looking UUID of a hash. */
void sim_uuid(uint64_t hash, char out[40]);
/* RFC 3339 in UTC, in whole seconds. */
void sim_time(int64_t wall_ms, char out[32]);

#endif
