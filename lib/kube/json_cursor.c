/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_cursor.h"

#include "kube/json_block.h"

typedef struct kr_block read_block(const uint8_t *p);
typedef uint64_t read_mask(const uint8_t *p);
typedef uint64_t read_parity(uint64_t quotes);

/* The bytes of the next block; those behind the text are zeros. */
KR_BLOCK_INLINE const uint8_t *bytes_of(const struct kr_cursor *c, uint8_t padded[KR_BLOCK])
{
    const size_t n = (size_t)(c->end - c->behind);

    if (n >= KR_BLOCK)
        return c->behind;
    memset(padded, 0, KR_BLOCK);
    memcpy(padded, c->behind, n);
    return padded;
}

/* Makes the block that lies at `p` the present one, without its separators; gives what is inside of
 * strings. */
KR_BLOCK_INLINE uint64_t advance(struct kr_cursor *c, const uint8_t *p, read_block *block,
                                 read_parity *parity)
{
    const struct kr_block b = block(p);
    const uint64_t escaped = kr_block_escaped(b.backslashes, &c->escaped);
    const uint64_t in_string = parity(b.quotes & ~escaped) ^ c->in_string;

    c->in_string = (uint64_t)0 - (in_string >> 63);
    c->backslashes = b.backslashes;
    c->opens = b.opens & ~in_string;
    c->closes = b.closes & ~in_string;
    c->block = c->behind;
    c->behind = c->end - c->behind > KR_BLOCK ? c->behind + KR_BLOCK : c->end;
    return in_string;
}

KR_BLOCK_INLINE bool load(struct kr_cursor *c, read_block *block, read_mask *separators,
                          read_parity *parity)
{
    uint8_t padded[KR_BLOCK];
    const uint8_t *p;
    uint64_t in_string;

    if (c->behind == c->end)
        return false;
    p = bytes_of(c, padded);
    in_string = advance(c, p, block, parity);
    c->marks = (separators(p) & ~in_string) | c->opens | c->closes;
    return true;
}

/* The value may end in the present block or in any behind it; separators are looked for only where
 * it ends. */
KR_BLOCK_INLINE const uint8_t *close(struct kr_cursor *c, read_block *block, read_mask *separators,
                                     read_parity *parity)
{
    uint8_t padded[KR_BLOCK];
    uint64_t opens = c->opens & c->marks;
    uint64_t closes = c->closes & c->marks;
    const uint8_t *p = NULL; /* the present block's marks are known */
    uint64_t in_string = 0;
    uint64_t depth = 1;

    for (;;) {
        uint64_t closed = (uint64_t)__builtin_popcountll(closes);

        if (closed >= depth) {
            unsigned end = kr_block_closing(depth, opens, closes);

            if (end != 0) {
                if (p != NULL)
                    c->marks = (separators(p) & ~in_string) | c->opens | c->closes;
                c->marks = end < 64 ? c->marks & (~(uint64_t)0 << end) : 0;
                return c->block + end - 1;
            }
        }
        depth += (uint64_t)__builtin_popcountll(opens) - closed;
        c->marks = 0;
        if (c->behind == c->end)
            return NULL;
        p = bytes_of(c, padded);
        in_string = advance(c, p, block, parity);
        opens = c->opens;
        closes = c->closes;
    }
}

static bool load_plain(struct kr_cursor *c)
{
    return load(c, kr_block_plain, kr_separators_plain, kr_parity_plain);
}

static const uint8_t *close_plain(struct kr_cursor *c)
{
    return close(c, kr_block_plain, kr_separators_plain, kr_parity_plain);
}

#if defined(KR_BLOCK_X86)
static bool load_sse2(struct kr_cursor *c)
{
    return load(c, kr_block_sse2, kr_separators_sse2, kr_parity_plain);
}

static const uint8_t *close_sse2(struct kr_cursor *c)
{
    return close(c, kr_block_sse2, kr_separators_sse2, kr_parity_plain);
}

KR_BLOCK_AVX2 static bool load_avx2(struct kr_cursor *c)
{
    return load(c, kr_block_avx2, kr_separators_avx2, kr_parity_avx2);
}

KR_BLOCK_AVX2 static const uint8_t *close_avx2(struct kr_cursor *c)
{
    return close(c, kr_block_avx2, kr_separators_avx2, kr_parity_avx2);
}
#endif

void kr_cursor_start(struct kr_cursor *c, struct kr_bytes text, enum kr_frame_way way)
{
    *c = (struct kr_cursor){.block = text.p, .behind = text.p, .end = text.p + text.n, .way = way};
}

bool kr_cursor_load(struct kr_cursor *c)
{
#if defined(KR_BLOCK_X86)
    if (c->way == KR_FRAME_AVX2)
        return load_avx2(c);
    if (c->way == KR_FRAME_SSE2)
        return load_sse2(c);
#endif
    return load_plain(c);
}

const uint8_t *kr_cursor_close(struct kr_cursor *c)
{
#if defined(KR_BLOCK_X86)
    if (c->way == KR_FRAME_AVX2)
        return close_avx2(c);
    if (c->way == KR_FRAME_SSE2)
        return close_sse2(c);
#endif
    return close_plain(c);
}
