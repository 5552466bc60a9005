/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h2_block.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct block {
    size_t n;
    _Alignas(16) uint8_t data[];
};

static struct block *of_data(void *p)
{
    return KR_CONTAINER_OF(p, struct block, data);
}

void *kr_h2_block_take(size_t n)
{
    struct block *b = n <= SIZE_MAX / 2 ? malloc(sizeof *b + n) : NULL;

    if (b == NULL)
        return NULL;
    b->n = n;
    return b->data;
}

void *kr_h2_block_take_zeroed(size_t n, size_t size)
{
    void *p = size == 0 || n <= SIZE_MAX / 2 / size ? kr_h2_block_take(n * size) : NULL;

    if (p != NULL)
        memset(p, 0, n * size);
    return p;
}

void *kr_h2_block_grow(void *p, size_t n)
{
    void *fresh = kr_h2_block_take(n);

    if (fresh == NULL)
        return NULL;
    memcpy(fresh, p, of_data(p)->n < n ? of_data(p)->n : n);
    kr_h2_block_give(p);
    return fresh;
}

void kr_h2_block_give(void *p)
{
    if (p == NULL)
        return;
    explicit_bzero(p, of_data(p)->n);
    free(of_data(p));
}
