/* SPDX-License-Identifier: Apache-2.0 */
/* The strict check of a whole text. What reads a token takes where it starts and gives what lies
 * behind it, or NULL: so the place stays in a register, which is half of the speed. */
#include "kube/json_scan.h"

#include "base/err.h"
#include "kube/json_block.h"
#include "kube/json_frame.h"

_Static_assert(KR_SCAN_DEPTH_MAX == KR_FRAME_DEPTH_MAX, "what is framed can be checked");

struct check {
    const uint8_t *at; /* where it ended */
    const uint8_t *end;
    unsigned depth;
    unsigned depth_max;
    uint64_t objects[KR_SCAN_DEPTH_MAX / 64]; /* bit per level: it is an object */
};

static inline bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(uint8_t c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* At the backslash. */
static const uint8_t *escape(const uint8_t *p, const uint8_t *end)
{
    p++;
    if (p == end || *p == 0 || strchr("\"\\/bfnrtu", *p) == NULL)
        return NULL;
    if (*p++ != 'u')
        return p;
    if (end - p < 4 || !is_hex(p[0]) || !is_hex(p[1]) || !is_hex(p[2]) || !is_hex(p[3]))
        return NULL;
    return p + 4;
}

/* A character of two to four bytes: RFC 3629, table 3-7 of Unicode. */
static const uint8_t *long_character(const uint8_t *p, const uint8_t *end)
{
    const uint8_t lead = p[0];
    const int n = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint8_t low = 0x80;
    uint8_t high = 0xBF;

    if (lead < 0xC2 || lead > 0xF4 || end - p < n)
        return NULL;
    if (lead == 0xE0)
        low = 0xA0;
    else if (lead == 0xED)
        high = 0x9F; /* no surrogates */
    else if (lead == 0xF0)
        low = 0x90;
    else if (lead == 0xF4)
        high = 0x8F;
    if (p[1] < low || p[1] > high)
        return NULL;
    for (int i = 2; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return NULL;
    }
    return p + n;
}

/* Behind the opening quote; gives what lies behind the closing one. */
static inline const uint8_t *string(const uint8_t *p, const uint8_t *end)
{
    while (p != NULL) {
        while (end - p >= KR_PLAIN_STEP) {
            const unsigned n = kr_plain_run(p);

            p += n;
            if (n < KR_PLAIN_STEP)
                break;
        }
        if (p == end || *p < ' ')
            return NULL;
        if (*p == '"')
            return p + 1;
        if (*p == '\\')
            p = escape(p, end);
        else
            p = *p < 0x80 ? p + 1 : long_character(p, end);
    }
    return NULL;
}

/* At least one. */
static const uint8_t *digits(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *from = p;

    while (p < end && is_digit(*p))
        p++;
    return p != from ? p : NULL;
}

static const uint8_t *number(const uint8_t *p, const uint8_t *end)
{
    if (*p == '-')
        p++;
    if (p < end && *p == '0')
        p++;
    else
        p = digits(p, end);
    if (p != NULL && p < end && *p == '.')
        p = digits(p + 1, end);
    if (p == NULL || p == end || (*p | 0x20) != 'e')
        return p;
    p++;
    if (p < end && (*p == '+' || *p == '-'))
        p++;
    return digits(p, end);
}

static const uint8_t *word(const uint8_t *p, const uint8_t *end, struct kr_bytes word)
{
    return kr_bytes_starts(kr_bytes_of(p, (size_t)(end - p)), word) ? p + word.n : NULL;
}

static inline const uint8_t *scalar(const uint8_t *p, const uint8_t *end)
{
    switch (*p) {
    case '"':
        return string(p + 1, end);
    case 't':
        return word(p, end, KR_LIT("true"));
    case 'f':
        return word(p, end, KR_LIT("false"));
    case 'n':
        return word(p, end, KR_LIT("null"));
    default:
        return number(p, end);
    }
}

/* Up to the value of a member. */
static inline const uint8_t *key(const uint8_t *p, const uint8_t *end)
{
    p = kr_skip_space(p, end);
    if (p == end || *p != '"')
        return NULL;
    p = string(p + 1, end);
    if (p == NULL)
        return NULL;
    p = kr_skip_space(p, end);
    return p < end && *p == ':' ? p + 1 : NULL;
}

static inline bool push(struct check *c, bool object)
{
    const uint64_t bit = (uint64_t)object << (c->depth % 64);
    const uint64_t below = ((uint64_t)1 << (c->depth % 64)) - 1;
    uint64_t *bits;

    if (c->depth == c->depth_max)
        return false;
    bits = &c->objects[c->depth / 64];
    *bits = (below != 0 ? *bits & below : 0) | bit;
    c->depth++;
    return true;
}

/* Whether the innermost level is an object. */
static inline bool in_object(const struct check *c)
{
    const unsigned level = c->depth - 1;

    return c->depth != 0 && (c->objects[level / 64] >> (level % 64) & 1) != 0;
}

/* Behind a value: over the brackets that close and the comma. c->depth 0: all is closed. NULL:
 * neither comes. */
static inline const uint8_t *follow(struct check *c, const uint8_t *p, bool *object)
{
    while (c->depth != 0) {
        p = kr_skip_space(p, c->end);
        if (p == c->end)
            return NULL;
        if (*p == ',')
            return p + 1;
        if (*p != (*object ? '}' : ']'))
            return NULL;
        p++;
        c->depth--;
        *object = in_object(c);
    }
    return p;
}

/* Over one value; c->at is where it ended or went wrong. */
static int run(struct check *c, const uint8_t *p)
{
    bool object = false; /* the innermost level is one */

    for (;;) {
        const uint8_t *behind = object ? key(p, c->end) : p;

        c->at = p;
        if (behind == NULL)
            return KR_EPROTO;
        p = kr_skip_space(behind, c->end);
        c->at = p;
        if (p == c->end)
            return KR_EPROTO;
        if (*p == '{' || *p == '[') {
            object = *p == '{';
            if (!push(c, object))
                return KR_ETOOBIG;
            p = kr_skip_space(p + 1, c->end);
            if (p == c->end || *p != (object ? '}' : ']'))
                continue;
        } else {
            p = scalar(p, c->end);
        }
        if (p != NULL)
            p = follow(c, p, &object);
        if (p == NULL)
            return KR_EPROTO;
        if (c->depth == 0) {
            c->at = p;
            return 0;
        }
    }
}

int kr_scan_check(struct kr_bytes text, unsigned depth_max, struct kr_note *why)
{
    struct check c; /* objects[] is written before it is read */
    int rc;

    if (text.n == 0)
        return kr_note_set(why, KR_EPROTO, "JSON: no text");
    c.end = text.p + text.n;
    c.depth = 0;
    c.depth_max = depth_max < KR_SCAN_DEPTH_MAX ? depth_max : KR_SCAN_DEPTH_MAX;
    rc = run(&c, text.p);
    if (rc == 0) {
        c.at = kr_skip_space(c.at, c.end);
        rc = c.at == c.end ? 0 : KR_EPROTO;
    }
    if (rc == 0)
        return 0;
    return kr_note_set(why, rc, "JSON: %s at byte %zu", rc == KR_ETOOBIG ? "too deep" : "malformed",
                       (size_t)(c.at - text.p));
}
