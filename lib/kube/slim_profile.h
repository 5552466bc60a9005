/* SPDX-License-Identifier: Apache-2.0 */
/* slim_profile: the paths of a profile in the form that slim.c asks. An inner part of slim.
 *
 * Each path advances by one step a level, so which paths still fit at a place is a set of path
 * numbers: a mask of 64 bits. What a key does at a level is one more mask to combine it with. */
#ifndef KR_KUBE_SLIM_PROFILE_H
#define KR_KUBE_SLIM_PROFILE_H

#include "kube/slim.h"

#define KR_PATHS_MAX 64
#define KR_PATH_STEPS_MAX 16
#define KR_PATH_BYTES_MAX 512

struct kr_profile_name { /* a step by name */
    struct kr_bytes name;
    uint64_t paths;
};

struct kr_profile_level {
    const struct kr_profile_name *names;
    size_t name_count;
    uint64_t any;  /* paths with [*] here */
    uint64_t ends; /* paths whose last step is here */
};

struct kr_profile {
    uint64_t keep; /* which paths keep; the others drop */
    uint64_t all;
    bool keeps; /* there are such, or nothing but metadata is kept */
    struct kr_profile_level levels[KR_PATH_STEPS_MAX];
    struct kr_buf text; /* the names; never grows once they are read */
    size_t name_count;
    struct kr_profile_name names[];
};

/* The paths that go through a member of this name (decoded) at a level, [*] included. */
uint64_t kr_profile_match(const struct kr_profile_level *level, struct kr_bytes name);

#endif
