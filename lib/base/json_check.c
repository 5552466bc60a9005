/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_check.h"

#include "base/err.h"

/* What may come next. */
enum expect {
    A_VALUE,
    A_VALUE_OR_END, /* right after '[' */
    A_KEY,
    A_KEY_OR_END, /* right after '{' */
    WHAT_FOLLOWS, /* after a value: ',' or an end */
};

struct scan {
    struct kr_bytes text;
    size_t at;
    unsigned depth;
    uint64_t objects; /* bit per level: it is an object */
    size_t members;
    enum expect expect;
};

static int peek(const struct scan *s)
{
    return s->at < s->text.n ? s->text.p[s->at] : -1;
}

static bool take(struct scan *s, int c)
{
    if (peek(s) != c)
        return false;
    s->at++;
    return true;
}

static void skip_space(struct scan *s)
{
    while (take(s, ' ') || take(s, '\t') || take(s, '\n') || take(s, '\r'))
        ;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool escape(struct scan *s)
{
    int c = peek(s);

    if (c < 0 || strchr("\"\\/bfnrtu", c) == NULL || c == 0)
        return false;
    s->at++;
    for (int i = 0; c == 'u' && i < 4; i++) {
        if (!is_hex(peek(s)))
            return false;
        s->at++;
    }
    return true;
}

static bool string(struct scan *s)
{
    if (!take(s, '"'))
        return false;
    for (;;) {
        int c = peek(s);

        if (c < ' ')
            return false; /* the end of the text, or a control character */
        s->at++;
        if (c == '"')
            return true;
        if (c == '\\' && !escape(s))
            return false;
    }
}

static bool digits(struct scan *s)
{
    size_t from = s->at;

    while (is_digit(peek(s)))
        s->at++;
    return s->at != from;
}

static bool number(struct scan *s)
{
    take(s, '-');
    if (!take(s, '0') && !digits(s))
        return false;
    if (take(s, '.') && !digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            take(s, '-');
        return digits(s);
    }
    return true;
}

static bool literal(struct scan *s, struct kr_bytes word)
{
    if (!kr_bytes_starts(kr_bytes_skip(s->text, s->at), word))
        return false;
    s->at += word.n;
    return true;
}

static bool push(struct scan *s, bool object)
{
    uint64_t bit = (uint64_t)1 << s->depth;

    if (s->depth == KR_JSON_DEPTH)
        return false;
    s->objects = object ? s->objects | bit : s->objects & ~bit;
    s->depth++;
    s->expect = object ? A_KEY_OR_END : A_VALUE_OR_END;
    return true;
}

static bool in_object(const struct scan *s)
{
    return (s->objects >> (s->depth - 1) & 1) != 0;
}

static bool pop(struct scan *s)
{
    s->depth--;
    s->expect = WHAT_FOLLOWS;
    return true;
}

static bool value(struct scan *s)
{
    if (s->expect == A_VALUE_OR_END && take(s, ']'))
        return pop(s);
    s->expect = WHAT_FOLLOWS;
    switch (peek(s)) {
    case '{':
        s->at++;
        return push(s, true);
    case '[':
        s->at++;
        return push(s, false);
    case '"':
        return string(s);
    case 't':
        return literal(s, KR_LIT("true"));
    case 'f':
        return literal(s, KR_LIT("false"));
    case 'n':
        return literal(s, KR_LIT("null"));
    default:
        return number(s);
    }
}

static bool key(struct scan *s)
{
    if (s->expect == A_KEY_OR_END && take(s, '}'))
        return pop(s);
    if (!string(s))
        return false;
    skip_space(s);
    s->members++;
    s->expect = A_VALUE;
    return take(s, ':');
}

static bool follows(struct scan *s)
{
    if (take(s, ',')) {
        s->expect = in_object(s) ? A_KEY : A_VALUE;
        return true;
    }
    return take(s, in_object(s) ? '}' : ']') && pop(s);
}

static bool step(struct scan *s)
{
    skip_space(s);
    switch (s->expect) {
    case A_VALUE:
    case A_VALUE_OR_END:
        return value(s);
    case A_KEY:
    case A_KEY_OR_END:
        return key(s);
    case WHAT_FOLLOWS:
        return follows(s);
    }
    return false;
}

int kr_json_check(struct kr_bytes text, size_t *members, struct kr_note *why)
{
    struct scan s = {.text = text, .expect = A_VALUE};
    bool fine = true;

    if (text.n > KR_JSON_MAX)
        return kr_note_set(why, KR_ETOOBIG, "JSON: %zu bytes, at most %d", text.n, KR_JSON_MAX);
    if (!kr_bytes_is_utf8(text))
        return kr_note_set(why, KR_EPROTO, "JSON: not valid UTF-8");
    while (fine && (s.depth != 0 || s.expect != WHAT_FOLLOWS))
        fine = step(&s);
    skip_space(&s);
    if (!fine && s.depth == KR_JSON_DEPTH)
        return kr_note_set(why, KR_EPROTO, "JSON: malformed or deeper than %d levels at byte %zu",
                           KR_JSON_DEPTH, s.at);
    if (!fine || s.at != text.n)
        return kr_note_set(why, KR_EPROTO, "JSON: malformed at byte %zu", s.at);
    *members = s.members;
    return 0;
}
