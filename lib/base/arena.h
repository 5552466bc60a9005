/* SPDX-License-Identifier: Apache-2.0 */
/* arena: memory that is taken piece by piece and given back at once.
 * Memory: blocks by malloc; everything is gone with kr_arena_deinit. Pieces are 8-aligned.
 * Limits: `max` bytes in all; beyond it kr_arena_alloc returns NULL. */
#ifndef KR_BASE_ARENA_H
#define KR_BASE_ARENA_H

#include "base/bytes.h"

struct kr_arena { /* embed it; the fields belong to arena.c */
    struct kr_arena_block *blocks;
    size_t first; /* size of the first block */
    size_t used;
    size_t max;
    bool wipe; /* may be set by the owner: what was in it is cleared before it is given back */
};

void kr_arena_init(struct kr_arena *a, size_t first, size_t max);
void kr_arena_deinit(struct kr_arena *a); /* may be used again afterwards */
void *kr_arena_alloc(struct kr_arena *a, size_t n);
/* A copy with a NUL behind it (not counted); .p is NULL when memory is short. */
struct kr_bytes kr_arena_copy(struct kr_arena *a, struct kr_bytes in);

#endif
