/* SPDX-License-Identifier: Apache-2.0 */
/* map: a hash table from bytes to pointers, open addressing. Keys come from peers, so the hash is
 * SipHash-2-4 (Aumasson and Bernstein, 2012) with a random key per map.
 * Memory:  owns its table only. Keys are borrowed (they usually live in the value) and must stay
 *          as they are while they are in the map; values are the caller's and never NULL.
 * Limits:  `max` entries. Errors: KR_EEXIST, KR_EFULL, KR_ENOMEM. Threads: one owner. */
#ifndef KR_BASE_MAP_H
#define KR_BASE_MAP_H

#include "base/bytes.h"

struct kr_map_slot;

struct kr_map { /* embed it; read count; the rest belongs to map.c */
    struct kr_map_slot *slots;
    size_t cap;   /* slots, a power of two or 0 */
    size_t count; /* entries */
    size_t dead;  /* slots of erased entries */
    size_t max;
    uint64_t key[2];
};

void kr_map_init(struct kr_map *m, size_t max);
void kr_map_deinit(struct kr_map *m); /* zeroed is fine; values are not touched */
/* Adds an entry; KR_EEXIST (and no change) if the key is there. */
int kr_map_put(struct kr_map *m, struct kr_bytes key, void *value);
void *kr_map_get(const struct kr_map *m, struct kr_bytes key);
/* Takes the entry out and returns its value, or NULL. */
void *kr_map_erase(struct kr_map *m, struct kr_bytes key);
/* Steps through all entries, in no order: start with *pos = 0, go on while a value comes back.
 * Entries may be erased on the way, but none may be put. `key` may be NULL. */
void *kr_map_next(const struct kr_map *m, size_t *pos, struct kr_bytes *key);

/* SipHash-2-4 of the bytes. */
uint64_t kr_siphash(const uint64_t key[2], struct kr_bytes in);

#endif
