/* SPDX-License-Identifier: Apache-2.0 */
/* h2_block: memory for nghttp2. Names and values of fields are in it, credentials among them: each
 * block knows its size, and is cleared when it is given back or moves.
 * Memory: as malloc, calloc, realloc and free; NULL when there is none. Threads: any. */
#ifndef KR_HTTP_H2_BLOCK_H
#define KR_HTTP_H2_BLOCK_H

#include <stddef.h>

void *kr_h2_block_take(size_t n);
void *kr_h2_block_take_zeroed(size_t n, size_t size);
void *kr_h2_block_grow(void *p, size_t n); /* also smaller; p is not NULL */
void kr_h2_block_give(void *p);            /* NULL is fine */

#endif
