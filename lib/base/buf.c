/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

void kr_buf_init(struct kr_buf *b, size_t max)
{
    *b = (struct kr_buf){.max = max};
}

void kr_buf_deinit(struct kr_buf *b)
{
    free(b->p);
    *b = (struct kr_buf){.max = b->max};
}

void kr_buf_cleanse(struct kr_buf *b)
{
    if (b->p != NULL)
        explicit_bzero(b->p, b->cap);
    kr_buf_deinit(b);
}

int kr_buf_reserve(struct kr_buf *b, size_t more)
{
    size_t cap = b->cap != 0 ? b->cap : 256;
    uint8_t *p;

    if (more > b->max || b->n > b->max - more)
        return KR_ETOOBIG;
    if (b->n + more <= b->cap)
        return 0;
    while (cap < b->n + more)
        cap *= 2;
    p = realloc(b->p, cap);
    if (p == NULL)
        return KR_ENOMEM;
    b->p = p;
    b->cap = cap;
    return 0;
}

int kr_buf_append(struct kr_buf *b, struct kr_bytes in)
{
    int rc = kr_buf_reserve(b, in.n);

    if (rc == 0 && in.n != 0) {
        memcpy(b->p + b->n, in.p, in.n);
        b->n += in.n;
    }
    return rc;
}

int kr_buf_append_str(struct kr_buf *b, const char *s)
{
    return kr_buf_append(b, kr_bytes_str(s));
}

int kr_buf_printf(struct kr_buf *b, const char *fmt, ...)
{
    va_list ap;
    int n;
    int rc;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return KR_EINVAL;
    rc = kr_buf_reserve(b, (size_t)n + 1); /* vsnprintf writes a NUL behind the text */
    if (rc != 0)
        return rc;
    va_start(ap, fmt);
    vsnprintf((char *)b->p + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
    return 0;
}

void kr_buf_drop(struct kr_buf *b, size_t n)
{
    if (n >= b->n) {
        b->n = 0;
        return;
    }
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}
