/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/err.h"
#include "kube/json_scan.h"
#include "kube/query.h"
#include "kube/selector.h"

static bool has_value(const struct kr_requirement *r, struct kr_bytes value)
{
    for (size_t i = 0; i < r->value_count; i++) {
        if (kr_bytes_eq(r->values[i], value))
            return true;
    }
    return false;
}

static bool is_beyond(const struct kr_requirement *r, struct kr_bytes value)
{
    int64_t v;

    if (!kr_query_int(value, &v))
        return false;
    return r->op == KR_OP_GT ? v > r->bound : v < r->bound;
}

bool kr_requirement_matches(const struct kr_requirement *r, const struct kr_bytes *value)
{
    switch (r->op) {
    case KR_OP_IN:
        return value != NULL && has_value(r, *value);
    case KR_OP_NOT_IN:
        return value == NULL || !has_value(r, *value);
    case KR_OP_EXISTS:
        return value != NULL;
    case KR_OP_NOT_EXISTS:
        return value == NULL;
    default:
        return value != NULL && is_beyond(r, *value);
    }
}

static const struct kr_bytes *find_label(const struct kr_label *labels, size_t n,
                                         struct kr_bytes key)
{
    size_t low = 0;

    while (low < n) {
        size_t middle = low + (n - low) / 2;
        int order = kr_bytes_compare(labels[middle].key, key);

        if (order == 0)
            return &labels[middle].value;
        if (order < 0)
            low = middle + 1;
        else
            n = middle;
    }
    return NULL;
}

bool kr_label_selector_matches(const struct kr_label_selector *s, const struct kr_label *labels,
                               size_t n)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!kr_requirement_matches(&s->all[i], find_label(labels, n, s->all[i].key)))
            return false;
    }
    return true;
}

/* Equal keys come in the order of their addresses: kr_labels_read counts on it. */
static int compare_labels(const void *a, const void *b)
{
    const struct kr_label *x = a;
    const struct kr_label *y = b;
    int order = kr_bytes_compare(x->key, y->key);

    if (order != 0)
        return order;
    return ((uintptr_t)x->key.p > (uintptr_t)y->key.p) -
           ((uintptr_t)x->key.p < (uintptr_t)y->key.p);
}

void kr_labels_sort(struct kr_label *labels, size_t n)
{
    if (n > 1)
        qsort(labels, n, sizeof labels[0], compare_labels);
}

/* Decodes behind what is in the block, with a NUL after it, so that no two texts share a place. */
static int decode(struct kr_bytes value, struct kr_buf *block, struct kr_bytes *out)
{
    size_t from = block->n;
    int rc = kr_scan_string(value, block);

    if (rc == 0)
        rc = kr_buf_append(block, kr_bytes_of("", 1));
    if (rc == 0)
        *out = kr_bytes_of(block->p + from, block->n - from - 1);
    return rc;
}

static int read_labels(struct kr_scan *it, struct kr_buf *block, struct kr_label *out, size_t max,
                       size_t *n, struct kr_note *why)
{
    struct kr_bytes key;
    struct kr_bytes value;

    while (kr_scan_member(it, &key, &value)) {
        /* The key with its quotes, as a string. */
        struct kr_bytes quoted = kr_bytes_of(key.p - 1, key.n + 2);

        if (*n == max)
            return kr_note_set(why, KR_ETOOBIG, "more than %zu labels", max);
        if (!kr_scan_is_string(value) || decode(quoted, block, &out[*n].key) != 0 ||
            decode(value, block, &out[*n].value) != 0)
            return kr_note_set(why, KR_EPROTO, "metadata.labels: a value that is no string");
        (*n)++;
    }
    return 0;
}

int kr_labels_read(struct kr_bytes json, struct kr_arena *arena, struct kr_label *out, size_t max,
                   size_t *n, struct kr_note *why)
{
    /* Decoded text is never longer than what stands between the quotes: it never grows. */
    struct kr_buf block = {.cap = json.n, .max = json.n};
    struct kr_scan it;
    size_t kept = 0;
    int rc;

    *n = 0;
    if (json.n == 0 || kr_bytes_is(json, "null"))
        return 0;
    if (!kr_scan_object(json, &it))
        return kr_note_set(why, KR_EPROTO, "metadata.labels is no object");
    block.p = kr_arena_alloc(arena, json.n);
    if (block.p == NULL)
        return KR_ENOMEM;
    rc = read_labels(&it, &block, out, max, n, why);
    if (rc != 0)
        return rc;
    kr_labels_sort(out, *n);
    for (size_t i = 0; i < *n; i++) {
        if (kept != 0 && kr_bytes_eq(out[kept - 1].key, out[i].key))
            kept--;
        out[kept++] = out[i];
    }
    *n = kept;
    return 0;
}
