/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdlib.h>

struct kr_arena_block {
    struct kr_arena_block *next;
    size_t used;
    size_t cap;
    _Alignas(16) uint8_t data[];
};

void kr_arena_init(struct kr_arena *a, size_t first, size_t max)
{
    *a = (struct kr_arena){.first = first, .max = max};
}

void kr_arena_deinit(struct kr_arena *a)
{
    while (a->blocks != NULL) {
        struct kr_arena_block *b = a->blocks;

        a->blocks = b->next;
        if (a->wipe)
            explicit_bzero(b->data, b->used);
        free(b);
    }
    a->used = 0;
}

static struct kr_arena_block *grow(struct kr_arena *a, size_t n)
{
    size_t cap = a->blocks != NULL ? a->blocks->cap * 2 : a->first;
    struct kr_arena_block *b;

    if (cap > 64 * 1024)
        cap = 64 * 1024;
    if (cap < n)
        cap = n;
    b = malloc(sizeof *b + cap);
    if (b == NULL)
        return NULL;
    b->used = 0;
    b->cap = cap;
    b->next = a->blocks;
    a->blocks = b;
    return b;
}

void *kr_arena_alloc(struct kr_arena *a, size_t n)
{
    struct kr_arena_block *b = a->blocks;
    void *p;

    if (n > a->max || a->used + n > a->max)
        return NULL;
    n = (n + 7) & ~(size_t)7;
    if (b == NULL || b->cap - b->used < n)
        b = grow(a, n);
    if (b == NULL)
        return NULL;
    p = b->data + b->used;
    b->used += n;
    a->used += n;
    return p;
}

struct kr_bytes kr_arena_copy(struct kr_arena *a, struct kr_bytes in)
{
    uint8_t *p = kr_arena_alloc(a, in.n + 1);

    if (p == NULL)
        return (struct kr_bytes){NULL, 0};
    if (in.n != 0)
        memcpy(p, in.p, in.n);
    p[in.n] = 0;
    return (struct kr_bytes){p, in.n};
}
