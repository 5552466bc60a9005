/* SPDX-License-Identifier: Apache-2.0 */
/* The strict check of a whole text. */
#include "kube/json_scan.h"

#include "base/err.h"
#include "kube/json_frame.h"

struct check {
    const uint8_t *p;
    const uint8_t *end;
    unsigned depth;
    unsigned depth_max;
    uint64_t objects[KR_SCAN_DEPTH_MAX / 64]; /* bit per level: it is an object */
};

enum next { NEXT_VALUE, NEXT_KEY, NEXT_FOLLOWS, NEXT_MALFORMED, NEXT_TOO_DEEP };

static int peek(const struct check *c)
{
    return c->p < c->end ? *c->p : -1;
}

static bool take(struct check *c, int byte)
{
    if (peek(c) != byte)
        return false;
    c->p++;
    return true;
}

static void skip_space(struct check *c)
{
    c->p = kr_skip_space(c->p, c->end);
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(int c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Behind the backslash. */
static bool escape(struct check *c)
{
    int byte = peek(c);

    if (byte <= 0 || strchr("\"\\/bfnrtu", byte) == NULL)
        return false;
    c->p++;
    for (int i = 0; byte == 'u' && i < 4; i++) {
        if (!is_hex(peek(c)))
            return false;
        c->p++;
    }
    return true;
}

/* A character of two to four bytes: RFC 3629, table 3-7 of Unicode. */
static bool long_character(struct check *c)
{
    size_t left = (size_t)(c->end - c->p);
    uint8_t lead = c->p[0];
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    size_t n = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;

    if (lead < 0xC2 || lead > 0xF4 || left < n)
        return false;
    if (lead == 0xE0)
        low = 0xA0;
    else if (lead == 0xED)
        high = 0x9F; /* no surrogates */
    else if (lead == 0xF0)
        low = 0x90;
    else if (lead == 0xF4)
        high = 0x8F;
    if (c->p[1] < low || c->p[1] > high)
        return false;
    for (size_t i = 2; i < n; i++) {
        if ((c->p[i] & 0xC0) != 0x80)
            return false;
    }
    c->p += n;
    return true;
}

/* Moves over bytes that need no thought inside a string, eight at a time. */
static void skip_plain(struct check *c)
{
    const uint64_t ones = 0x0101010101010101;

    while (c->end - c->p >= 8) {
        uint64_t v;
        uint64_t hits;

        memcpy(&v, c->p, 8);
        /* The top bit of each byte that is not ASCII, a control character, '"' or '\\'; a borrow
         * can spoil only bytes above a hit. */
        hits = v | (v - ones * 0x20) | ((v ^ ones * '"') - ones) | ((v ^ ones * '\\') - ones);
        hits &= ones * 0x80;
        if (hits != 0) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            c->p += __builtin_ctzll(hits) / 8;
#endif
            return;
        }
        c->p += 8;
    }
}

static bool string(struct check *c)
{
    if (!take(c, '"'))
        return false;
    for (;;) {
        int byte;

        skip_plain(c);
        byte = peek(c);
        if (byte < ' ')
            return false; /* the end of the text, or a control character */
        if (byte >= 0x80) {
            if (!long_character(c))
                return false;
            continue;
        }
        c->p++;
        if (byte == '"')
            return true;
        if (byte == '\\' && !escape(c))
            return false;
    }
}

static bool digits(struct check *c)
{
    const uint8_t *from = c->p;

    while (is_digit(peek(c)))
        c->p++;
    return c->p != from;
}

static bool number(struct check *c)
{
    take(c, '-');
    if (!take(c, '0') && !digits(c))
        return false;
    if (take(c, '.') && !digits(c))
        return false;
    if (take(c, 'e') || take(c, 'E')) {
        if (!take(c, '+'))
            take(c, '-');
        return digits(c);
    }
    return true;
}

static bool word(struct check *c, struct kr_bytes word)
{
    if (!kr_bytes_starts(kr_bytes_of(c->p, (size_t)(c->end - c->p)), word))
        return false;
    c->p += word.n;
    return true;
}

static bool scalar(struct check *c)
{
    switch (peek(c)) {
    case '"':
        return string(c);
    case 't':
        return word(c, KR_LIT("true"));
    case 'f':
        return word(c, KR_LIT("false"));
    case 'n':
        return word(c, KR_LIT("null"));
    default:
        return number(c);
    }
}

static bool in_object(const struct check *c)
{
    unsigned level = c->depth - 1;

    return (c->objects[level / 64] >> (level % 64) & 1) != 0;
}

/* Behind an opening bracket. */
static enum next enter(struct check *c, bool object)
{
    uint64_t bit = (uint64_t)1 << (c->depth % 64);
    uint64_t *bits;

    if (c->depth == c->depth_max)
        return NEXT_TOO_DEEP;
    bits = &c->objects[c->depth / 64];
    *bits = object ? *bits | bit : *bits & ~bit;
    c->depth++;
    skip_space(c);
    if (take(c, object ? '}' : ']')) {
        c->depth--;
        return NEXT_FOLLOWS;
    }
    return object ? NEXT_KEY : NEXT_VALUE;
}

static enum next value(struct check *c)
{
    skip_space(c);
    if (take(c, '{'))
        return enter(c, true);
    if (take(c, '['))
        return enter(c, false);
    return scalar(c) ? NEXT_FOLLOWS : NEXT_MALFORMED;
}

static enum next key(struct check *c)
{
    skip_space(c);
    if (!string(c))
        return NEXT_MALFORMED;
    skip_space(c);
    return take(c, ':') ? value(c) : NEXT_MALFORMED;
}

/* Behind a value that is inside another one. */
static enum next follows(struct check *c)
{
    bool object = in_object(c);

    skip_space(c);
    if (take(c, ','))
        return object ? key(c) : value(c);
    if (!take(c, object ? '}' : ']'))
        return NEXT_MALFORMED;
    c->depth--;
    return NEXT_FOLLOWS;
}

static enum next run(struct check *c)
{
    enum next next = value(c);

    for (;;) {
        if (next == NEXT_KEY)
            next = key(c);
        else if (next == NEXT_VALUE)
            next = value(c);
        else if (next == NEXT_FOLLOWS && c->depth != 0)
            next = follows(c);
        else
            return next;
    }
}

int kr_scan_check(struct kr_bytes text, unsigned depth_max, struct kr_note *why)
{
    struct check c; /* objects[] is written before it is read */
    enum next next;

    if (text.n == 0)
        return kr_note_set(why, KR_EPROTO, "JSON: no text");
    c.p = text.p;
    c.end = text.p + text.n;
    c.depth = 0;
    c.depth_max = depth_max < KR_SCAN_DEPTH_MAX ? depth_max : KR_SCAN_DEPTH_MAX;
    memset(c.objects, 0, sizeof c.objects);
    next = run(&c);
    skip_space(&c);
    if (next == NEXT_TOO_DEEP)
        return kr_note_set(why, KR_ETOOBIG, "JSON: deeper than %u levels at byte %zu", c.depth_max,
                           (size_t)(c.p - text.p));
    if (next != NEXT_FOLLOWS || c.p != c.end)
        return kr_note_set(why, KR_EPROTO, "JSON: malformed at byte %zu", (size_t)(c.p - text.p));
    return 0;
}
