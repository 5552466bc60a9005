/* SPDX-License-Identifier: Apache-2.0 */
/* sync_table: what the peer of a Sync call holds, as pairs of hashes: an open addressing table by
 * key hash, with a mark per entry for one sweep at a time.
 * Memory: 16.4 bytes a slot, load 9/16 to 3/4: 22 to 29 bytes an entry. It grows in place
 * (realloc), so that the old table and the new one are never both there. Limits: `max` entries
 * (KR_EFULL). Errors: KR_ENOMEM. Pure; one owner. */
#ifndef KR_WIRE_SYNC_TABLE_H
#define KR_WIRE_SYNC_TABLE_H

#include "wire/digest.h"

struct kr_sync_slot;

struct kr_sync_table { /* embed it; read digest; the rest belongs to sync_table.c */
    struct kr_digest digest;
    struct kr_sync_slot *slots;
    uint64_t *bits; /* per 64 slots three words: used, dead, seen */
    size_t cap;     /* slots, a multiple of 64 or 0 */
    size_t dead;    /* slots of entries that are gone, which probes step over */
    size_t max;
    uint64_t spread; /* random and odd: where a key lies, no peer can tell */
};

void kr_sync_table_init(struct kr_sync_table *t, size_t max);
void kr_sync_table_deinit(struct kr_sync_table *t); /* it may be used again afterwards, empty */
/* Whether the entry is there; *object is its hash. */
bool kr_sync_table_get(const struct kr_sync_table *t, uint64_t key, uint64_t *object);
/* Adds or changes it, and marks it as seen. */
int kr_sync_table_put(struct kr_sync_table *t, uint64_t key, uint64_t object);
bool kr_sync_table_remove(struct kr_sync_table *t, uint64_t key);
/* Marks it as seen; false if it is not there. */
bool kr_sync_table_see(struct kr_sync_table *t, uint64_t key);
/* Starts a sweep: nothing is seen. */
void kr_sync_table_sweep(struct kr_sync_table *t);
/* Steps through entries that were not seen, start with *pos = 0; they may be removed on the way. */
bool kr_sync_table_unseen(const struct kr_sync_table *t, size_t *pos, uint64_t *key);
/* Forgets all entries of one bucket. Looks at every slot. */
void kr_sync_table_drop_bucket(struct kr_sync_table *t, unsigned bucket);

#endif
