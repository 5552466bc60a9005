/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_frame.h"

#include "kube/json_block.h"

/* Whether one of the brackets of a block goes too deep. */
static bool goes_deep(uint64_t depth, uint64_t opens, uint64_t closes)
{
    for (uint64_t all = opens | closes; all != 0; all &= all - 1) {
        depth += (opens & all & -all) != 0 ? 1 : (uint64_t)-1;
        if (depth == 0 || depth > KR_FRAME_DEPTH_MAX)
            return depth != 0; /* what lies behind the end of the value does not count */
    }
    return false;
}

/* One block: the place behind the end of the value, or 0. */
KR_BLOCK_INLINE unsigned step(struct kr_frame *f, struct kr_block b, uint64_t parity)
{
    uint64_t in_string = parity ^ f->in_string;
    uint64_t opens = b.opens & ~in_string;
    uint64_t closes = b.closes & ~in_string;
    uint64_t opened = (uint64_t)__builtin_popcountll(opens);
    uint64_t closed = (uint64_t)__builtin_popcountll(closes);

    if (f->depth + opened > KR_FRAME_DEPTH_MAX && !f->deep)
        f->deep = goes_deep(f->depth, opens, closes);
    if (closed >= f->depth) {
        unsigned end = kr_block_closing(f->depth, opens, closes);

        if (end != 0)
            return end;
    }
    f->depth += opened - closed;
    f->in_string = (uint64_t)0 - (in_string >> 63);
    return 0;
}

typedef struct kr_block read_block(const uint8_t *p);
typedef uint64_t read_parity(uint64_t quotes);

/* A bracketed value, by the instructions given. */
KR_BLOCK_INLINE size_t feed(struct kr_frame *f, struct kr_bytes in, read_block *block,
                            read_parity *parity)
{
    size_t at = 0;

    while (at < in.n) {
        uint8_t padded[KR_BLOCK];
        const uint8_t *p = in.p + at;
        size_t n = in.n - at;
        uint64_t escaped;
        struct kr_block b;
        unsigned end;

        if (n < KR_BLOCK) {
            memset(padded, 0, sizeof padded);
            memcpy(padded, p, n);
            p = padded;
        } else {
            n = KR_BLOCK;
        }
        b = block(p);
        escaped = kr_block_escaped(b.backslashes, &f->escaped);
        if (n < KR_BLOCK)
            f->escaped = escaped >> n & 1;
        end = step(f, b, parity(b.quotes & ~escaped));
        if (end != 0) {
            f->done = true;
            return at + end;
        }
        at += n;
    }
    return at;
}

static size_t feed_plain(struct kr_frame *f, struct kr_bytes in)
{
    return feed(f, in, kr_block_plain, kr_parity_plain);
}

#if defined(KR_BLOCK_X86)
static size_t feed_sse2(struct kr_frame *f, struct kr_bytes in)
{
    return feed(f, in, kr_block_sse2, kr_parity_plain);
}

KR_BLOCK_AVX2 static size_t feed_avx2(struct kr_frame *f, struct kr_bytes in)
{
    return feed(f, in, kr_block_avx2, kr_parity_avx2);
}
#endif

bool kr_frame_has(enum kr_frame_way way)
{
#if defined(KR_BLOCK_X86)
    if (way == KR_FRAME_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
               __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("pclmul");
    return way < KR_FRAME_AVX2;
#else
    return way == KR_FRAME_PLAIN;
#endif
}

enum kr_frame_way kr_frame_best(void)
{
    if (kr_frame_has(KR_FRAME_AVX2))
        return KR_FRAME_AVX2;
    return kr_frame_has(KR_FRAME_SSE2) ? KR_FRAME_SSE2 : KR_FRAME_PLAIN;
}

static size_t feed_brackets(struct kr_frame *f, struct kr_bytes in)
{
#if defined(KR_BLOCK_X86)
    if (f->way == KR_FRAME_AVX2)
        return feed_avx2(f, in);
    if (f->way == KR_FRAME_SSE2)
        return feed_sse2(f, in);
#endif
    return feed_plain(f, in);
}

/* Behind the opening quote. */
static size_t feed_string(struct kr_frame *f, struct kr_bytes in)
{
    for (size_t at = 0; at < in.n; at++) {
        if (f->escaped != 0) {
            f->escaped = 0;
        } else if (in.p[at] == '\\') {
            f->escaped = 1;
        } else if (in.p[at] == '"') {
            f->done = true;
            return at + 1;
        }
    }
    return in.n;
}

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
           c == '+' || c == '.';
}

static size_t feed_word(struct kr_frame *f, struct kr_bytes in)
{
    size_t at = 0;

    while (at < in.n && is_word(in.p[at]))
        at++;
    f->done = at < in.n;
    return at;
}

void kr_frame_start(struct kr_frame *f, enum kr_frame_way way)
{
    *f = (struct kr_frame){.way = way};
}

size_t kr_frame_feed(struct kr_frame *f, struct kr_bytes in)
{
    bool starts = f->first == 0;

    if (in.n == 0 || f->done)
        return 0;
    if (starts)
        f->first = in.p[0];
    if (f->first == '{' || f->first == '[')
        return feed_brackets(f, in);
    if (f->first == '"')
        return starts ? 1 + feed_string(f, kr_bytes_skip(in, 1)) : feed_string(f, in);
    return feed_word(f, in);
}

size_t kr_frame_string(struct kr_bytes in)
{
    size_t at = 1;

    if (in.n < 2 || in.p[0] != '"')
        return 0;
    while (at < in.n) {
        if (in.n - at >= KR_PLAIN_STEP) {
            const unsigned n = kr_plain_run(in.p + at);

            at += n;
            if (n == KR_PLAIN_STEP)
                continue;
        }
        if (in.p[at] == '"')
            return at + 1;
        at += in.p[at] == '\\' ? 2 : 1;
    }
    return 0;
}

size_t kr_frame_value(struct kr_bytes in)
{
    struct kr_frame f;
    size_t n;

    if (in.n == 0)
        return 0;
    if (in.p[0] == '"')
        return kr_frame_string(in);
    kr_frame_start(&f, kr_frame_best());
    n = kr_frame_feed(&f, in);
    return f.done || is_word(f.first) ? n : 0;
}
