/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/field_name.h"

#include "base/err.h"

/* The first term, cut off the front of `rest`; an escaped comma does not end it. */
static struct kr_bytes next_term(struct kr_bytes *rest)
{
    struct kr_bytes term = *rest;
    size_t i = 0;

    while (i < rest->n && rest->p[i] != ',')
        i += rest->p[i] == '\\' ? 2 : 1;
    if (i >= rest->n) {
        *rest = kr_bytes_of(NULL, 0);
        return term;
    }
    term.n = i;
    *rest = kr_bytes_skip(*rest, i + 1);
    return term;
}

/* Splits at the first of "!=", "==", "="; false if there is none. */
static bool split_term(struct kr_bytes term, struct kr_bytes *field, struct kr_bytes *value,
                       bool *equal)
{
    for (size_t i = 0; i < term.n; i++) {
        bool next_eq = i + 1 < term.n && term.p[i + 1] == '=';

        if (term.p[i] != '=' && !(term.p[i] == '!' && next_eq))
            continue;
        *equal = term.p[i] == '=';
        *field = kr_bytes_of(term.p, i);
        *value = kr_bytes_skip(term, i + (next_eq ? 2 : 1));
        return true;
    }
    return false;
}

/* Whether every special character of the value is escaped, and only those are. */
static bool value_is_valid(struct kr_bytes v)
{
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i];

        if (c == ',' || c == '=')
            return false;
        if (c != '\\')
            continue;
        i++;
        if (i == v.n || (v.p[i] != '\\' && v.p[i] != ',' && v.p[i] != '='))
            return false;
    }
    return true;
}

static bool before(struct kr_bytes a, struct kr_bytes b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n != 0 ? memcmp(a.p, b.p, n) : 0;

    return order != 0 ? order < 0 : a.n < b.n;
}

static int unescape(struct kr_bytes v, struct kr_arena *arena, struct kr_bytes *out)
{
    uint8_t *p;
    size_t n = 0;

    *out = v;
    if (kr_bytes_find(v, '\\') == v.n)
        return 0;
    p = kr_arena_alloc(arena, v.n);
    if (p == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] == '\\')
            i++;
        p[n++] = v.p[i];
    }
    *out = kr_bytes_of(p, n);
    return 0;
}

static bool is_path_segment(struct kr_bytes v)
{
    return !kr_bytes_is(v, ".") && !kr_bytes_is(v, "..") && kr_bytes_find(v, '/') == v.n &&
           kr_bytes_find(v, '%') == v.n;
}

int kr_field_name(struct kr_bytes selector, struct kr_arena *arena, struct kr_bytes *name)
{
    struct kr_bytes first = {NULL, 0}; /* kube sorts the terms, then takes the first match */
    struct kr_bytes pinned = {NULL, 0};
    int rc;

    *name = kr_bytes_of(NULL, 0);
    while (selector.n != 0) {
        struct kr_bytes term = next_term(&selector);
        struct kr_bytes field;
        struct kr_bytes value;
        bool equal;

        if (term.n == 0)
            continue;
        if (!split_term(term, &field, &value, &equal) || !value_is_valid(value))
            return KR_EINVAL;
        if (equal && kr_bytes_is(field, "metadata.name") &&
            (first.p == NULL || before(term, first))) {
            first = term;
            pinned = value;
        }
    }
    rc = unescape(pinned, arena, &pinned);
    if (rc == 0 && is_path_segment(pinned))
        *name = pinned;
    return rc;
}
