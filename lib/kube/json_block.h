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

/* Commas and colons. */
KR_BLOCK_INLINE uint64_t kr_separators_plain(const uint8_t *p)
{
    uint64_t mask = 0;

    for (unsigned i = 0; i < KR_BLOCK; i++)
        mask |= p[i] == ',' || p[i] == ':' ? (uint64_t)1 << i : 0;
    return mask;
}

/* Bit i: the parity of the bits 0..i, by doubling. */
KR_BLOCK_INLINE uint64_t kr_parity_plain(uint64_t x)
{
    for (unsigned shift = 1; shift < 64; shift *= 2)
        x ^= x << shift;
    return x;
}

/* The bytes behind an odd number of backslashes; *carry is 1 if the first byte is, and becomes 1 if
 * the byte behind the block is. A run of backslashes that starts at an even place and ends (its
 * first byte behind) at an odd one is odd, and the other way round; adding the start of a run to
 * the run carries to its end. */
KR_BLOCK_INLINE uint64_t kr_block_escaped(uint64_t backslashes, uint64_t *carry)
{
    const uint64_t even = 0x5555555555555555;
    uint64_t runs = backslashes & ~*carry; /* one that is escaped itself escapes nothing */
    uint64_t starts = runs & ~(runs << 1);
    uint64_t escaped = *carry;
    uint64_t from_even;
    uint64_t from_odd;

    if (backslashes == 0) {
        *carry = 0;
        return escaped;
    }
    from_even = runs + (starts & even);
    *carry = __builtin_add_overflow(runs, starts & ~even, &from_odd) ? 1 : 0;
    return escaped | (from_even & ~runs & ~even) | (from_odd & ~runs & even);
}

/* The place behind the bracket that closes the value, or 0 if none of these does; `depth` is that
 * before them. */
KR_BLOCK_INLINE unsigned kr_block_closing(uint64_t depth, uint64_t opens, uint64_t closes)
{
    for (; closes != 0; closes &= closes - 1) {
        uint64_t before = (closes & -closes) - 1;

        if (depth + (uint64_t)__builtin_popcountll(opens & before) == 1)
            return (unsigned)__builtin_ctzll(closes) + 1;
        depth--;
    }
    return 0;
}

/* How many of the bytes at the front of a string's text need no thought: they are ASCII, but no
 * control characters, no '"' and no '\\'. At most KR_PLAIN_STEP, which is how many there must be to
 * read. */
#if defined(KR_BLOCK_X86)
#define KR_PLAIN_STEP 16

KR_BLOCK_INLINE unsigned kr_plain_run(const uint8_t *p)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    /* As signed numbers, control characters and all bytes from 0x80 are below 0x20. */
    const __m128i stops = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)),
                                       _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                                                    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))));

    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(stops) | 1U << KR_PLAIN_STEP);
}
#else
#define KR_PLAIN_STEP 1

KR_BLOCK_INLINE unsigned kr_plain_run(const uint8_t *p)
{
    return *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\';
}
#endif

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

KR_BLOCK_INLINE uint64_t kr_separators_sse2(const uint8_t *p)
{
    __m128i v[4];

    for (unsigned i = 0; i < 4; i++)
        v[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
    return kr_equal_sse2(v, ',') | kr_equal_sse2(v, ':');
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

KR_BLOCK_AVX2 static inline uint64_t kr_separators_avx2(const uint8_t *p)
{
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));

    return kr_equal_avx2(low, high, ',') | kr_equal_avx2(low, high, ':');
}

/* A product without carries with all ones is the parity of each prefix. */
KR_BLOCK_AVX2 static inline uint64_t kr_parity_avx2(uint64_t x)
{
    __m128i product = _mm_clmulepi64_si128(_mm_set_epi64x(0, (long long)x), _mm_set1_epi8(-1), 0);

    return (uint64_t)_mm_cvtsi128_si64(product);
}

#endif
#endif
