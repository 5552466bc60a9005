/* SPDX-License-Identifier: Apache-2.0 */
/* slim_profile: the paths of a profile in the form that slim.c asks. An inner part of slim.
 *
 * Each path advances by one step a level, so which paths still fit at a place is a set of path
 * numbers: a mask of 64 bits. What a key does at a level is one more mask to combine it with. */
#ifndef KR_KUBE_SLIM_PROFILE_H
#define KR_KUBE_SLIM_PROFILE_H

#include "kube/slim_path.h"

#define KR_PATHS_MAX 64

/* What a name means beside the paths. */
enum kr_name_rule {
    KR_NAME_ORDINARY,
    KR_NAME_LEFT_OUT, /* always, and no loss */
    KR_NAME_METADATA,
    KR_NAME_ANNOTATIONS,
    KR_NAME_NAME, /* of metadata: told to the caller */
    KR_NAME_NAMESPACE,
    KR_NAME_UID,
    KR_NAME_VERSION, /* told, and left out */
};

struct kr_profile_name {
    struct kr_bytes name;
    uint64_t head; /* of the name, as kr_profile_find packs it */
    uint64_t tail;
    uint64_t paths; /* with this step */
    enum kr_name_rule rule;
    bool used; /* this slot holds a name */
};

struct kr_profile_level {
    struct kr_profile_name *slots; /* a hash table that is at most half full */
    unsigned bits;                 /* its size */
    uint64_t any;                  /* paths with [*] here */
    uint64_t ends;                 /* paths whose last step is here */
};

#define KR_LEVEL_OF_METADATA KR_PATH_STEPS_MAX /* the names right under metadata */

struct kr_profile {
    struct kr_profile_level levels[KR_PATH_STEPS_MAX + 1];
    uint64_t keep; /* which paths keep; the others drop */
    uint64_t all;
    bool keeps;          /* there are such, or nothing but metadata is kept */
    struct kr_buf names; /* all names, one behind the other; never grows once they are read */
};

/* The name at a level (decoded); NULL: no path and no rule has it. */
const struct kr_profile_name *kr_profile_find(const struct kr_profile_level *level,
                                              struct kr_bytes name);

#endif
