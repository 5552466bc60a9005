/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/field_terms.h"

#include "base/err.h"

struct kr_bytes kr_field_term_next(struct kr_bytes *rest)
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

bool kr_field_term_split(struct kr_bytes term, struct kr_bytes *field, struct kr_bytes *value,
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
static int check_value(struct kr_bytes v, struct kr_note *why)
{
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i];

        if (c == ',' || c == '=')
            return kr_note_set(why, KR_EINVAL,
                               "invalid field selector: unescaped character in value: %d", c);
        if (c != '\\')
            continue;
        i++;
        if (i == v.n || (v.p[i] != '\\' && v.p[i] != ',' && v.p[i] != '='))
            return kr_note_set(why, KR_EINVAL,
                               "invalid field selector: invalid escape sequence: \\%.*s", i != v.n,
                               (const char *)v.p + i);
    }
    return 0;
}

int kr_field_value_unescape(struct kr_bytes value, struct kr_arena *arena, struct kr_bytes *out,
                            struct kr_note *why)
{
    int rc = check_value(value, why);
    uint8_t *p;
    size_t n = 0;

    *out = value;
    if (rc != 0 || kr_bytes_find(value, '\\') == value.n)
        return rc;
    p = kr_arena_alloc(arena, value.n);
    if (p == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == '\\')
            i++;
        p[n++] = value.p[i];
    }
    *out = kr_bytes_of(p, n);
    return 0;
}
