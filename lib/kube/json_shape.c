/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_shape.h"

#include "kube/json_frame.h"

enum kr_shape kr_shape_of(struct kr_bytes value)
{
    switch (value.n != 0 ? value.p[0] : 0) {
    case '{':
        return KR_SHAPE_OBJECT;
    case '[':
        return KR_SHAPE_ARRAY;
    case '"':
        return KR_SHAPE_STRING;
    case 'n':
        return KR_SHAPE_NULL;
    default:
        return KR_SHAPE_OTHER;
    }
}

static bool is_mark(uint8_t c)
{
    return c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':' || kr_is_space(c);
}

/* A number, true, false or null at the front. */
static struct kr_bytes word_at(struct kr_bytes rest)
{
    size_t n = 0;

    while (n < rest.n && !is_mark(rest.p[n]) && rest.p[n] != '"')
        n++;
    return kr_bytes_of(rest.p, n);
}

/* Whether a string at the front, of n bytes, is the name of a member. */
static bool is_name(struct kr_bytes rest, size_t n)
{
    const uint8_t *end = rest.p + rest.n;
    const uint8_t *p = kr_skip_space(rest.p + n, end);

    return p < end && *p == ':';
}

static bool is_empty(struct kr_bytes value, bool zero_too)
{
    while (value.n != 0) {
        size_t n = 1;

        if (value.p[0] == '"') {
            n = kr_frame_string(value);
            if (n == 0 || (!is_name(value, n) && !(zero_too && n == 2)))
                return false;
        } else if (!is_mark(value.p[0])) {
            struct kr_bytes word = word_at(value);

            if (!kr_bytes_is(word, "null") &&
                !(zero_too && (kr_bytes_is(word, "0") || kr_bytes_is(word, "false"))))
                return false;
            n = word.n;
        }
        value = kr_bytes_skip(value, n);
    }
    return true;
}

bool kr_is_hollow(struct kr_bytes value)
{
    return is_empty(value, false);
}

bool kr_is_vacant(struct kr_bytes value)
{
    return is_empty(value, true);
}
