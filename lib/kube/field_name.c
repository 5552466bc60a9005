/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/field_name.h"

#include "base/err.h"
#include "kube/field_terms.h"

static bool before(struct kr_bytes a, struct kr_bytes b)
{
    return kr_bytes_compare(a, b) < 0;
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
        struct kr_bytes term = kr_field_term_next(&selector);
        struct kr_bytes field;
        struct kr_bytes value;
        bool equal;

        if (term.n == 0)
            continue;
        if (!kr_field_term_split(term, &field, &value, &equal))
            return KR_EINVAL;
        rc = kr_field_value_unescape(value, arena, &value, NULL);
        if (rc != 0)
            return rc;
        if (equal && kr_bytes_is(field, "metadata.name") &&
            (first.p == NULL || before(term, first))) {
            first = term;
            pinned = value;
        }
    }
    if (is_path_segment(pinned))
        *name = pinned;
    return 0;
}
