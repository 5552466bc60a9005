/* SPDX-License-Identifier: Apache-2.0 */
/* json_members: the members of an object in the order of their names, and the elements of an array,
 * as lists; so that two of them can be compared side by side. Of a name that is there several times
 * the last one counts.
 * Memory: lists and names that had escapes live in the arena; values borrow the text. The text is
 * checked JSON. Errors: KR_EPROTO (no object, no array), KR_ETOOBIG (the arena is full). Pure. */
#ifndef KR_KUBE_JSON_MEMBERS_H
#define KR_KUBE_JSON_MEMBERS_H

#include "base/arena.h"
#include "kube/json_scan.h"

struct kr_member {
    struct kr_bytes name; /* decoded */
    struct kr_bytes value;
};

int kr_members_read(struct kr_bytes object, struct kr_arena *arena, struct kr_member **out,
                    size_t *n);
int kr_elements_read(struct kr_bytes array, struct kr_arena *arena, struct kr_bytes **out,
                     size_t *n);

#endif
