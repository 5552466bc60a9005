/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body_queue.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

enum { CHUNK_MIN = 2048, CHUNK_MAX = 16384 }; /* with the chunk's own fields */

struct kr_body_chunk {
    struct kr_body_chunk *next;
    uint32_t from; /* first byte that waits */
    uint32_t to;   /* behind the last one */
    uint32_t cap;
    uint8_t bytes[];
};

void kr_body_queue_init(struct kr_body_queue *q, size_t max)
{
    *q = (struct kr_body_queue){.max = max};
}

static void free_chain(struct kr_body_chunk *c)
{
    while (c != NULL) {
        struct kr_body_chunk *next = c->next;

        free(c);
        c = next;
    }
}

void kr_body_queue_deinit(struct kr_body_queue *q)
{
    free_chain(q->first);
    kr_body_queue_init(q, q->max);
}

/* Large where much waits already or comes at once, so that a long queue is few chunks and a short
 * one is little memory. */
static struct kr_body_chunk *new_chunk(size_t waiting, size_t n)
{
    size_t want = (waiting > n ? waiting : n) + sizeof(struct kr_body_chunk);
    size_t size = CHUNK_MIN;
    struct kr_body_chunk *c;

    while (size < want && size < CHUNK_MAX)
        size *= 2;
    c = malloc(size);
    if (c != NULL)
        *c = (struct kr_body_chunk){.cap = (uint32_t)(size - sizeof *c)};
    return c;
}

static size_t put(struct kr_body_chunk *c, struct kr_bytes *in)
{
    size_t k = kr_bytes_take(in, c->bytes + c->to, c->cap - c->to);

    c->to += (uint32_t)k;
    return k;
}

/* Chunks for n bytes, before anything is copied: an append is whole or did not happen. */
static int make_chain(size_t waiting, size_t n, struct kr_body_chunk **out)
{
    struct kr_body_chunk **tail = out;

    *out = NULL;
    while (n != 0) {
        struct kr_body_chunk *c = new_chunk(waiting, n);

        if (c == NULL) {
            free_chain(*out);
            *out = NULL;
            return KR_ENOMEM;
        }
        *tail = c;
        tail = &c->next;
        n -= n < c->cap ? n : c->cap;
    }
    return 0;
}

int kr_body_queue_append(struct kr_body_queue *q, struct kr_bytes in)
{
    size_t space = q->last != NULL ? q->last->cap - q->last->to : 0;
    struct kr_body_chunk *chain;

    if (in.n > q->max || q->size > q->max - in.n)
        return KR_ETOOBIG;
    if (make_chain(q->size, in.n > space ? in.n - space : 0, &chain) != 0)
        return KR_ENOMEM;
    if (in.n != 0 && space != 0)
        q->size += put(q->last, &in);
    if (chain == NULL)
        return 0;
    if (q->last != NULL)
        q->last->next = chain;
    else
        q->first = chain;
    for (; chain != NULL; chain = chain->next) {
        q->size += put(chain, &in);
        q->last = chain;
    }
    return 0;
}

static void drop_first(struct kr_body_queue *q)
{
    struct kr_body_chunk *c = q->first;

    q->first = c->next;
    if (q->first == NULL)
        q->last = NULL;
    free(c);
}

void kr_body_queue_take(struct kr_body_queue *q, uint8_t *out, size_t n)
{
    KR_ASSERT(n <= q->size);
    q->size -= n;
    while (n != 0) {
        struct kr_body_chunk *c = q->first;
        size_t k = c->to - c->from < n ? c->to - c->from : n;

        memcpy(out, c->bytes + c->from, k);
        c->from += (uint32_t)k;
        out += k;
        n -= k;
        if (c->from == c->to)
            drop_first(q);
    }
}

void kr_body_queue_truncate(struct kr_body_queue *q, size_t size)
{
    struct kr_body_chunk *c = q->first;
    size_t left = size;

    if (size >= q->size)
        return;
    if (size == 0) {
        kr_body_queue_deinit(q);
        return;
    }
    for (; left > c->to - c->from; c = c->next)
        left -= c->to - c->from;
    c->to = c->from + (uint32_t)left;
    free_chain(c->next);
    c->next = NULL;
    q->last = c;
    q->size = size;
}
