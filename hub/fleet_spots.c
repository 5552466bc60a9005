/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_spots.h"

#include "base/err.h"

#define EACH(c) (0x0101010101010101u * (uint8_t)(c))
/* Non-zero if a byte of `w` is zero. */
#define HAS_ZERO(w) (((w)-EACH(1)) & ~(w)&EACH(0x80))

struct cursor {
    const uint8_t *p;
    const uint8_t *end;
};

/* p is behind the opening quote; the result is at the closing one, or `end`. Eight bytes at a time:
 * this is where most of the time goes. */
static const uint8_t *string_end(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        uint64_t w;

        if (end - p >= 8) {
            memcpy(&w, p, 8);
            if ((HAS_ZERO(w ^ EACH('"')) | HAS_ZERO(w ^ EACH('\\'))) == 0) {
                p += 8;
                continue;
            }
        }
        while (p < end && *p != '"' && *p != '\\')
            p++;
        if (p == end || *p == '"')
            return p;
        p += end - p >= 2 ? 2 : 1;
    }
    return end;
}

static void skip_space(struct cursor *c)
{
    while (c->p < c->end && *c->p <= ' ')
        c->p++;
}

static bool at(const struct cursor *c, uint8_t byte)
{
    return c->p < c->end && *c->p == byte;
}

static bool skip_string(struct cursor *c, struct kr_bytes *text)
{
    const uint8_t *from = c->p + 1;
    const uint8_t *to;

    if (!at(c, '"'))
        return false;
    to = string_end(from, c->end);
    if (to == c->end)
        return false;
    *text = kr_bytes_of(from, (size_t)(to - from));
    c->p = to + 1;
    return true;
}

/* p is at '{' or '['. */
static bool skip_nested(struct cursor *c)
{
    size_t depth = 0;
    struct kr_bytes text;

    while (c->p < c->end) {
        uint8_t byte = *c->p;

        if (byte == '"') {
            if (!skip_string(c, &text))
                return false;
            continue;
        }
        c->p++;
        if (byte == '{' || byte == '[')
            depth++;
        else if ((byte == '}' || byte == ']') && --depth == 0)
            return true;
    }
    return false;
}

static bool skip_value(struct cursor *c)
{
    struct kr_bytes text;

    if (at(c, '"'))
        return skip_string(c, &text);
    if (at(c, '{') || at(c, '['))
        return skip_nested(c);
    while (c->p < c->end && *c->p != ',' && *c->p != '}' && *c->p != ']')
        c->p++;
    return c->p < c->end;
}

/* The next key of an object, with the cursor left at its value. False: the '}' (consumed), or no
 * JSON (*broken). */
static bool next_key(struct cursor *c, struct kr_bytes *key, bool *broken)
{
    skip_space(c);
    if (at(c, ',')) {
        c->p++;
        skip_space(c);
    }
    if (at(c, '}')) {
        c->p++;
        return false;
    }
    *broken = !skip_string(c, key);
    if (*broken)
        return false;
    skip_space(c);
    *broken = !at(c, ':');
    if (*broken)
        return false;
    c->p++;
    skip_space(c);
    return true;
}

static bool note_map(struct cursor *c, const uint8_t *start, struct hub_gap *out)
{
    const uint8_t *open = c->p;
    struct cursor inside = {open + 1, c->end};

    out->null = at(c, 'n');
    if (!out->null && !at(c, '{'))
        return false;
    if (!skip_value(c))
        return false;
    if (out->null) {
        out->at = (size_t)(open - start);
        return c->p - open >= 4;
    }
    out->at = (size_t)(open + 1 - start);
    skip_space(&inside);
    out->empty = at(&inside, '}');
    return true;
}

static int walk_metadata(struct cursor *c, const uint8_t *start, bool whole, struct hub_spots *out)
{
    struct kr_bytes key;
    bool broken = false;

    while ((whole || out->labels.at == 0 || out->annotations.at == 0) &&
           next_key(c, &key, &broken)) {
        bool ok;

        if (key.n == 6 && memcmp(key.p, "labels", 6) == 0)
            ok = note_map(c, start, &out->labels);
        else if (key.n == 11 && memcmp(key.p, "annotations", 11) == 0)
            ok = note_map(c, start, &out->annotations);
        else if (key.n == 17 && memcmp(key.p, "creationTimestamp", 17) == 0 && at(c, '"'))
            ok = skip_string(c, &out->created);
        else
            ok = skip_value(c);
        if (!ok)
            return KR_EPROTO;
    }
    out->metadata_end = (size_t)(c->p - start);
    return broken ? KR_EPROTO : 0;
}

int hub_spots_find(struct kr_bytes slim, bool whole, struct hub_spots *out)
{
    struct cursor c = {slim.p, slim.p + slim.n};
    struct kr_bytes key;
    bool broken = false;

    *out = (struct hub_spots){0};
    skip_space(&c);
    if (!at(&c, '{'))
        return KR_EPROTO;
    c.p++;
    out->top = (size_t)(c.p - slim.p);
    while (next_key(&c, &key, &broken)) {
        if (!kr_bytes_is(key, "metadata")) {
            if (!skip_value(&c))
                return KR_EPROTO;
            continue;
        }
        if (!at(&c, '{'))
            return KR_EPROTO;
        c.p++;
        out->metadata = (size_t)(c.p - slim.p);
        skip_space(&c);
        if (at(&c, '}')) /* no object is without a name */
            return KR_EPROTO;
        return walk_metadata(&c, slim.p, whole, out);
    }
    return KR_EPROTO;
}
