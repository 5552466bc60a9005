/* SPDX-License-Identifier: Apache-2.0 */
/* kinds: the table of the resources that the simulator serves. Discovery, OpenAPI, routing and
 * storage all read it, so that they cannot differ.
 * Threads: constant data. */
#ifndef SIM_KINDS_H
#define SIM_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

enum sim_kind_flag {
    SIM_NAMESPACED = 1,
    SIM_STATUS = 2,      /* has /status */
    SIM_SCALE = 4,       /* has /scale */
    SIM_GENERATION = 8,  /* metadata.generation counts changes of spec */
    SIM_CREATE_ONLY = 16 /* a review: answered, never stored */
};

struct sim_kind {
    const char *group; /* "" is the core group */
    const char *version;
    const char *plural;
    const char *singular;
    const char *kind;
    const char *short_names; /* comma separated */
    const char *categories;
    unsigned flags;
};

/* Indexes that the code names. */
enum sim_kind_index {
    SIM_KIND_NAMESPACE,
    SIM_KIND_NODE,
    SIM_KIND_POD,
    SIM_KIND_DEPLOYMENT,
    SIM_KIND_REPLICASET,
    SIM_KIND_SERVICEACCOUNT,
    SIM_KIND_CONFIGMAP,
    SIM_KIND_SERVICE,
};

extern const struct sim_kind sim_kinds[];
extern const size_t sim_kind_count;

/* The index of a resource, or -1. Group and version are as in the path ("" for core). */
int sim_kind_find(struct kr_bytes group, struct kr_bytes version, struct kr_bytes plural);
/* Whether any resource has that group (and version, unless NULL). */
bool sim_group_exists(struct kr_bytes group, const struct kr_bytes *version);
/* Whether kind i is the first of its group and version in the table (for walks by group). */
bool sim_kind_first_of_group(size_t i);
/* "apps/v1" or "v1". */
void sim_kind_api_version(const struct sim_kind *k, char out[64]);

#endif
