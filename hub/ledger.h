/* SPDX-License-Identifier: Apache-2.0 */
/* ledger: memory whose bytes are counted: what the allocator really takes for each piece, so that a
 * quota means what it says. Who frees tells the size again; nothing is kept per piece.
 * Units: bytes. Threads: one owner. */
#ifndef HUB_LEDGER_H
#define HUB_LEDGER_H

#include <stddef.h>
#include <stdint.h>

struct hub_ledger { /* embed it; read bytes */
    uint64_t bytes;
};

/* glibc: 8 bytes before each piece, pieces in steps of 16, none below 32. */
static inline size_t hub_footprint(size_t n)
{
    return n <= 24 ? 32 : (n + 8 + 15) & ~(size_t)15;
}

void *hub_ledger_alloc(struct hub_ledger *l, size_t n); /* NULL: memory is short */
void hub_ledger_free(struct hub_ledger *l, void *p, size_t n);
/* NULL, and the old piece as it was, if memory is short. `p` NULL: there is none yet. */
void *hub_ledger_resize(struct hub_ledger *l, void *p, size_t old, size_t n);

#endif
