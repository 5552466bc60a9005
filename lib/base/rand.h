/* SPDX-License-Identifier: Apache-2.0 */
/* rand: random numbers for jitter, sampling and schedules (xoshiro256**, by Blackman and Vigna).
 * Fast and seedable, so NOT for keys, tokens or anything that a peer must not guess: those come
 * from kr_rand_secret. Threads: one owner per struct. */
#ifndef KR_BASE_RAND_H
#define KR_BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

struct kr_rand { /* the fields belong to rand.c */
    uint64_t s[4];
};

void kr_rand_init(struct kr_rand *r);                /* seeded by the kernel */
void kr_rand_seed(struct kr_rand *r, uint64_t seed); /* the same seed gives the same numbers */
uint64_t kr_rand_u64(struct kr_rand *r);
/* Uniform in [0, n); 0 when n is 0. */
uint64_t kr_rand_below(struct kr_rand *r, uint64_t n);
/* Uniform in [lo_ms, hi_ms]; lo_ms when hi_ms is not above it. */
int64_t kr_rand_ms(struct kr_rand *r, int64_t lo_ms, int64_t hi_ms);
/* Fills `out` from the kernel's generator; ends the program if the kernel has none. */
void kr_rand_secret(void *out, size_t n);

#endif
