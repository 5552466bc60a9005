/* SPDX-License-Identifier: Apache-2.0 */
/* buf: a growing run of bytes with a hard maximum.
 * Memory: owns its bytes; a zeroed buf with `max` set is valid and empty. Units: bytes. */
#ifndef KR_BASE_BUF_H
#define KR_BASE_BUF_H

#include "base/bytes.h"

struct kr_buf { /* embed it; read p and n, change them only through these functions */
    uint8_t *p;
    size_t n;
    size_t cap;
    size_t max;
};

void kr_buf_init(struct kr_buf *b, size_t max);
void kr_buf_deinit(struct kr_buf *b); /* zeroed is fine; it may be used again afterwards */
/* The same for secrets: clears the bytes first. What a growing buf left behind it cannot clear:
 * make room for all of a secret before its first byte. */
void kr_buf_cleanse(struct kr_buf *b);
/* Makes room for `more` bytes behind what is there. KR_ENOMEM, KR_ETOOBIG beyond max. */
int kr_buf_reserve(struct kr_buf *b, size_t more);
int kr_buf_append(struct kr_buf *b, struct kr_bytes in);
int kr_buf_append_str(struct kr_buf *b, const char *s);
__attribute__((format(printf, 2, 3))) int kr_buf_printf(struct kr_buf *b, const char *fmt, ...);
/* Drops the first n bytes; what follows moves to the front. */
void kr_buf_drop(struct kr_buf *b, size_t n);
static inline struct kr_bytes kr_buf_bytes(const struct kr_buf *b)
{
    return (struct kr_bytes){b->p, b->n};
}

#endif
