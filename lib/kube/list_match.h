/* SPDX-License-Identifier: Apache-2.0 */
/* list_match: which item of one list is which of another, by what names an item in Kubernetes
 * (name, type, uid, ..., containerPort and protocol), as the merge keys of strategic merge do.
 * Memory: from the arena. Errors: KR_ENOENT (the items have no name in common that tells each from
 * each), KR_ETOOBIG (longer than KR_LIST_MATCH_MAX, or the arena is full). Pure. */
#ifndef KR_KUBE_LIST_MATCH_H
#define KR_KUBE_LIST_MATCH_H

#include "base/arena.h"

#define KR_LIST_MATCH_MAX 512
#define KR_LIST_NONE SIZE_MAX

struct kr_items { /* of JSON values, checked */
    const struct kr_bytes *items;
    size_t n;
};

/* (*of)[j]: which item of `old` the j-th item of `now` is, or KR_LIST_NONE. */
int kr_list_match(struct kr_items old, struct kr_items now, struct kr_arena *arena, size_t **of);
/* Whether an item of `now` is, as text, an item of `old` that stood in another place and is not in
 * its own any more. Only for lists of one length, up to KR_LIST_MATCH_MAX. */
bool kr_list_is_shuffled(struct kr_items old, struct kr_items now);

#endif
