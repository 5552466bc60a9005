/* SPDX-License-Identifier: Apache-2.0 */
#include "http/head.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/err.h"

void kr_head_init(struct kr_head *h, size_t max)
{
    *h = (struct kr_head){.max = max};
    kr_arena_init(&h->arena, 1024, 2 * max + 64 * 1024);
    h->arena.wipe = true; /* credentials come and go in heads */
}

void kr_head_deinit(struct kr_head *h)
{
    size_t max = h->max;

    kr_arena_deinit(&h->arena);
    kr_head_init(h, max);
}

static int grow(struct kr_head *h)
{
    size_t cap = h->cap != 0 ? h->cap * 2 : 16;
    struct kr_field *fields = kr_arena_alloc(&h->arena, cap * sizeof *fields);

    if (fields == NULL)
        return KR_ETOOBIG;
    if (h->n != 0)
        memcpy(fields, h->fields, h->n * sizeof *fields);
    h->fields = fields;
    h->cap = cap;
    return 0;
}

int kr_head_add_ref(struct kr_head *h, struct kr_bytes name, struct kr_bytes value)
{
    size_t size = name.n + value.n + 32;

    if (value.n > KR_FIELD_MAX || h->size + size > h->max)
        return KR_ETOOBIG;
    if (h->n == h->cap && grow(h) != 0)
        return KR_ETOOBIG;
    h->fields[h->n++] = (struct kr_field){.name = name, .value = value};
    h->size += size;
    return 0;
}

int kr_head_add(struct kr_head *h, struct kr_bytes name, struct kr_bytes value)
{
    struct kr_bytes n;
    struct kr_bytes v;

    if (value.n > KR_FIELD_MAX || h->size + name.n + value.n + 32 > h->max)
        return KR_ETOOBIG;
    n = kr_arena_copy(&h->arena, name);
    v = kr_arena_copy(&h->arena, value);
    if (n.p == NULL || v.p == NULL)
        return KR_ENOMEM;
    return kr_head_add_ref(h, n, v);
}

int kr_head_add_str(struct kr_head *h, const char *name, const char *value)
{
    return kr_head_add(h, kr_bytes_str(name), kr_bytes_str(value));
}

int kr_head_add_u64(struct kr_head *h, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    return kr_head_add_str(h, name, text);
}

const struct kr_field *kr_head_find(const struct kr_head *h, struct kr_bytes name)
{
    for (size_t i = 0; i < h->n; i++) {
        if (kr_bytes_eq(h->fields[i].name, name))
            return &h->fields[i];
    }
    return NULL;
}

struct kr_bytes kr_head_get(const struct kr_head *h, struct kr_bytes name)
{
    const struct kr_field *f = kr_head_find(h, name);

    return f != NULL ? f->value : (struct kr_bytes){NULL, 0};
}

static bool list_has(struct kr_bytes list, struct kr_bytes token)
{
    for (;;) {
        size_t at = kr_bytes_find(list, ',');

        if (kr_bytes_eq_fold(kr_bytes_trim(kr_bytes_of(list.p, at)), token))
            return true;
        if (at == list.n)
            return false;
        list = kr_bytes_skip(list, at + 1);
    }
}

bool kr_head_has_token(const struct kr_head *h, struct kr_bytes name, struct kr_bytes token)
{
    for (size_t i = 0; i < h->n; i++) {
        if (kr_bytes_eq(h->fields[i].name, name) && list_has(h->fields[i].value, token))
            return true;
    }
    return false;
}

int64_t kr_head_content_length(const struct kr_head *h)
{
    uint64_t v;

    if (!kr_bytes_to_u64(kr_head_get(h, KR_LIT("content-length")), INT64_MAX, &v))
        return -1;
    return (int64_t)v;
}
