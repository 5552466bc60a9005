/* SPDX-License-Identifier: Apache-2.0 */
/* json_block: sixty-four bytes of JSON at once, as bit masks (bit i is byte i). A part of
 * json_frame. Three ways to the same masks: plain C for every processor, SSE2 where it is a given,
 * and AVX2 for those that say they have it. Pure. */
#ifndef KR_KUBE_JSON_BLOCK_H
#define KR_KUBE_JSON_BLOCK_H

#include "base/bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define KR_BLOCK_X86 1
#define KR_BLOCK_AVX2 __attribute__((target("avx2,bmi,popcnt,pclmul")))
#endif
#define KR_BLOCK_INLINE static inline __attribute__((always_inline))

#define KR_BLOCK 64

struct kr_block {
    uint64_t quotes;
    uint64_t backslashes;
    uint64_t opens; /* '{' and '[' */
    uint64_t closes;
};

KR_BLOCK_INLINE struct kr_block kr_block_plain(const uint8_t *p)
{
    struct kr_block b = {0};

    for (unsigned i = 0; i < KR_BLOCK; i++) {
        uint64_t bit = (uint64_t)1 << i;

        /* 0x20 is all that [ and { differ by, and ] and }. */
        b.quotes |= p[i] == '"' ? bit : 0;
        b.backslashes |= p[i] == '\\' ? bit : 0;
        b.opens |= (p[i] | 0x20) == '{' ? bit : 0;
        b.closes |= (p[i] | 0x20) == '}' ? bit : 0;
    }
    return b;
}

/* Bit i: the parity of the bits 0..i, by doubling. */
KR_BLOCK_INLINE uint64_t kr_parity_plain(uint64_t x)
{
    for (unsigned shift = 1; shift < 64; shift *= 2)
        x ^= x << shift;
    return x;
}

#if defined(KR_BLOCK_X86)

KR_BLOCK_INLINE uint64_t kr_equal_sse2(const __m128i v[4], char c)
{
    const __m128i all = _mm_set1_epi8(c);
    uint64_t mask = 0;

    for (unsigned i = 0; i < 4; i++)
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], all)) << (16 * i);
    return mask;
}

KR_BLOCK_INLINE struct kr_block kr_block_sse2(const uint8_t *p)
{
    const __m128i fold = _mm_set1_epi8(0x20);
    struct kr_block b;
    __m128i v[4];

    for (unsigned i = 0; i < 4; i++)
        v[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
    b.quotes = kr_equal_sse2(v, '"');
    b.backslashes = kr_equal_sse2(v, '\\');
    for (unsigned i = 0; i < 4; i++)
        v[i] = _mm_or_si128(v[i], fold);
    b.opens = kr_equal_sse2(v, '{');
    b.closes = kr_equal_sse2(v, '}');
    return b;
}

KR_BLOCK_AVX2 static inline uint64_t kr_equal_avx2(__m256i low, __m256i high, char c)
{
    const __m256i all = _mm256_set1_epi8(c);
    uint32_t a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all));
    uint32_t b = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all));

    return (uint64_t)b << 32 | a;
}

KR_BLOCK_AVX2 static inline struct kr_block kr_block_avx2(const uint8_t *p)
{
    const __m256i fold = _mm256_set1_epi8(0x20);
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    struct kr_block b;

    b.quotes = kr_equal_avx2(low, high, '"');
    b.backslashes = kr_equal_avx2(low, high, '\\');
    low = _mm256_or_si256(low, fold);
    high = _mm256_or_si256(high, fold);
    b.opens = kr_equal_avx2(low, high, '{');
    b.closes = kr_equal_avx2(low, high, '}');
    return b;
}

/* A product without carries with all ones is the parity of each prefix. */
KR_BLOCK_AVX2 static inline uint64_t kr_parity_avx2(uint64_t x)
{
    __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)x), _mm_set1_epi8(-1), 0);

    return (uint64_t)_mm_cvtsi128_si64(product);
}

#endif
#endif
