/* SPDX-License-Identifier: Apache-2.0 */
/* label_sets: each set of labels once, by a small number, so that a filter judges a set once for
 * all objects that carry it. Sets are counted; a number is free for another set when nobody carries
 * its set any more.
 * Memory: sets are packed text, about 50 bytes beside their labels. The cluster that brought a set
 *         pays for it as long as it lives, whoever else came to use it.
 * Errors: KR_ENOMEM, KR_EFULL. Threads: one owner. */
#ifndef HUB_LABEL_SETS_H
#define HUB_LABEL_SETS_H

#include "hub/cluster_use.h"
#include "hub/ledger.h"
#include "kube/selector.h"

struct hub_label_set;

struct hub_label_sets { /* embed it; read used and count; the rest belongs to label_sets.c */
    struct hub_ledger *ledger;
    struct hub_label_set **sets; /* by number; a free one holds the next free number + 1 */
    uint64_t *marks;             /* by number */
    size_t cap;
    uint32_t free_first; /* + 1; 0: none */
    uint32_t used;       /* every number is below it */
    uint32_t count;
    uint32_t *slots; /* hash table, open addressing: number + 1, or 0 */
    size_t slot_count;
    uint64_t key[2];
    struct kr_label *scratch[2];
    size_t scratch_cap;
    unsigned turn;
};

void hub_label_sets_init(struct hub_label_sets *t, struct hub_ledger *ledger);
void hub_label_sets_deinit(struct hub_label_sets *t);
/* The number of the set, counted up. `labels` are sorted. */
int hub_label_sets_take(struct hub_label_sets *t, const struct kr_label *labels, size_t n,
                        struct hub_cluster_use *payer, uint32_t *number);
void hub_label_sets_ref(struct hub_label_sets *t, uint32_t number);
void hub_label_sets_unref(struct hub_label_sets *t, uint32_t number);
/* What a set may have, in one word: a bit for each key and for each pair in it. A set without the
 * bit of a key, or of a pair, does not have it; one with the bit may. */
static inline uint64_t hub_label_sets_marks(const struct hub_label_sets *t, uint32_t number)
{
    return t->marks[number];
}
uint64_t hub_label_key_mark(struct kr_bytes key);
uint64_t hub_label_pair_mark(struct kr_bytes key, struct kr_bytes value);
/* Sorted; valid until the next call but one, or the next take. */
const struct kr_label *hub_label_sets_get(struct hub_label_sets *t, uint32_t number, size_t *n);

#endif
