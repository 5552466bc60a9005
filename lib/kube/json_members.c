/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_members.h"

#include <stdlib.h>

#include "base/err.h"

/* Among equals, the one that stands first in the text comes first. */
static int compare(const void *a, const void *b)
{
    const struct kr_member *x = a;
    const struct kr_member *y = b;
    int order = kr_bytes_compare(x->name, y->name);

    return order != 0 ? order : (x->value.p > y->value.p) - (x->value.p < y->value.p);
}

static int decode(struct kr_bytes key, struct kr_arena *arena, struct kr_bytes *out)
{
    struct kr_bytes quoted = kr_bytes_of(key.p - 1, key.n + 2);
    struct kr_buf text = {.cap = key.n, .max = key.n}; /* never longer than with its escapes */

    *out = key;
    if (kr_bytes_find(key, '\\') == key.n)
        return 0;
    text.p = kr_arena_alloc(arena, key.n);
    if (text.p == NULL)
        return KR_ETOOBIG;
    if (kr_scan_string(quoted, &text) != 0)
        return KR_EPROTO;
    *out = kr_buf_bytes(&text);
    return 0;
}

static size_t count_members(struct kr_scan it)
{
    struct kr_bytes key;
    struct kr_bytes value;
    size_t n = 0;

    while (kr_scan_member(&it, &key, &value))
        n++;
    return n;
}

int kr_members_read(struct kr_bytes object, struct kr_arena *arena, struct kr_member **out,
                    size_t *n)
{
    struct kr_scan it;
    struct kr_member *all;
    struct kr_bytes key;
    size_t read = 0;
    size_t kept = 0;

    if (!kr_scan_object(object, &it))
        return KR_EPROTO;
    all = kr_arena_alloc(arena, count_members(it) * sizeof *all);
    if (all == NULL)
        return KR_ETOOBIG;
    while (kr_scan_member(&it, &key, &all[read].value)) {
        int rc = decode(key, arena, &all[read].name);

        if (rc != 0)
            return rc;
        read++;
    }
    qsort(all, read, sizeof *all, compare);
    for (size_t i = 0; i < read; i++) {
        if (kept != 0 && kr_bytes_eq(all[kept - 1].name, all[i].name))
            kept--;
        all[kept++] = all[i];
    }
    *out = all;
    *n = kept;
    return 0;
}

int kr_elements_read(struct kr_bytes array, struct kr_arena *arena, struct kr_bytes **out,
                     size_t *n)
{
    struct kr_scan it;
    struct kr_scan again;
    struct kr_bytes value;
    size_t count = 0;

    if (!kr_scan_array(array, &it))
        return KR_EPROTO;
    again = it;
    while (kr_scan_element(&it, &value))
        count++;
    *out = kr_arena_alloc(arena, count * sizeof **out);
    if (*out == NULL)
        return KR_ETOOBIG;
    *n = 0;
    while (*n < count && kr_scan_element(&again, &(*out)[*n]))
        (*n)++;
    return 0;
}
