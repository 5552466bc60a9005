/* SPDX-License-Identifier: Apache-2.0 */
/* slim_reach: what a profile leaves of a place in an object, asked place by place on the way down
 * (kube/slim.h has the rules): whether what is served of it is all there is.
 * Memory: a reach owns its paths; places are values. Errors: KR_EINVAL for a path, KR_ENOMEM. Pure.
 */
#ifndef KR_KUBE_SLIM_REACH_H
#define KR_KUBE_SLIM_REACH_H

#include "kube/slim.h"

struct kr_reach;

/* NULL: see *why. */
struct kr_reach *kr_reach_create(const struct kr_profile_paths *paths, struct kr_note *why);
void kr_reach_destroy(struct kr_reach *r);

enum kr_place_kind { KR_PLACE_TOP, KR_PLACE_METADATA, KR_PLACE_BELOW };

struct kr_place {  /* read complete, left_out and kind; the rest belongs to slim_reach.c */
    bool complete; /* everything below it is served as it is */
    bool left_out; /* nothing of it is served (an element or member of this name) */
    enum kr_place_kind kind;
    bool whole;
    uint64_t paths; /* that fit so far */
    unsigned depth; /* steps from the top */
};

/* `r` NULL: the profile is not known. Then only metadata without annotations counts as complete,
 * and all else as left out. */
struct kr_place kr_place_top(const struct kr_reach *r);
struct kr_place kr_place_member(const struct kr_reach *r, const struct kr_place *p,
                                struct kr_bytes name);
struct kr_place kr_place_element(const struct kr_reach *r, const struct kr_place *p);

#endif
