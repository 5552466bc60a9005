/* SPDX-License-Identifier: Apache-2.0 */
/* body_queue: bytes of a body that wait between two exchanges: first in, first out.
 * Memory:  owns its chunks (malloc, 2 to 16 KiB each by how much waits); a chunk is freed as soon
 *          as it is taken empty, and an empty queue holds no memory at all.
 * Units:   every length is in bytes.
 * Limits:  never more than `max` bytes.
 * Threads: one owner, no locks. */
#ifndef KR_HTTP_BODY_QUEUE_H
#define KR_HTTP_BODY_QUEUE_H

#include "base/bytes.h"

struct kr_body_chunk;

struct kr_body_queue { /* embed it; read size and max, the fields belong to body_queue.c */
    struct kr_body_chunk *first;
    struct kr_body_chunk *last;
    size_t size; /* bytes waiting */
    size_t max;
};

void kr_body_queue_init(struct kr_body_queue *q, size_t max);
/* Frees everything that waits; zeroed is fine; the queue may be used again afterwards. */
void kr_body_queue_deinit(struct kr_body_queue *q);
/* Copies all of `in` to the tail, or nothing: KR_ETOOBIG beyond max, KR_ENOMEM. */
int kr_body_queue_append(struct kr_body_queue *q, struct kr_bytes in);
/* Moves exactly n <= size bytes from the front to `out`. */
void kr_body_queue_take(struct kr_body_queue *q, uint8_t *out, size_t n);
/* Drops bytes from the tail until no more than `size` wait. */
void kr_body_queue_truncate(struct kr_body_queue *q, size_t size);

#endif
