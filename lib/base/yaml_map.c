/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml_map.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

#define VALUE_MAX 4096
#define NUMBER_MAX 1000000

int kr_yaml_fault(struct kr_yaml_reader *r, const struct kr_yaml_node *node, const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return kr_note_set(r->why, KR_EINVAL, "%.80s:%zu: %s", r->file, kr_yaml_line(node), text);
}

static int no_memory(struct kr_yaml_reader *r)
{
    return kr_note_set(r->why, KR_ENOMEM, "%.80s: out of memory", r->file);
}

static bool is_text(struct kr_bytes v)
{
    if (v.n > VALUE_MAX || !kr_bytes_is_utf8(v))
        return false;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < ' ' || v.p[i] == 0x7f)
            return false;
    }
    return true;
}

int kr_yaml_text_read(struct kr_yaml_reader *r, const char *what, const struct kr_yaml_node *node,
                      bool (*valid)(struct kr_bytes), const char **out)
{
    struct kr_bytes v = kr_bytes_str(kr_yaml_text(node));

    if (v.n == 0)
        return kr_yaml_fault(r, node, "%.60s: a text is expected", what);
    if (!is_text(v) || (valid != NULL && !valid(v)))
        return kr_yaml_fault(r, node, "%.60s: \"%.60s\" is not possible here", what,
                             (const char *)v.p);
    v = kr_arena_copy(r->arena, v);
    if (v.p == NULL)
        return no_memory(r);
    *out = (const char *)v.p;
    return 0;
}

int kr_yaml_list_length(struct kr_yaml_reader *r, const char *what, const struct kr_yaml_node *node,
                        size_t *n)
{
    *n = 0;
    if (kr_yaml_kind(node) != KR_YAML_LIST)
        return kr_yaml_fault(r, node, "%.60s: a list is expected", what);
    while (kr_yaml_at(r->doc, node, *n) != NULL) {
        if (++*n > KR_YAML_ITEMS_MAX)
            return kr_yaml_fault(r, node, "%.60s: too long", what);
    }
    return 0;
}

static int read_strings(struct kr_yaml_reader *r, const struct kr_yaml_field *field,
                        const struct kr_yaml_node *node, struct kr_strings *out)
{
    size_t n;
    int rc = kr_yaml_list_length(r, field->key, node, &n);

    if (rc == 0 && n == 0)
        rc = kr_yaml_fault(r, node, "%s: the list is empty", field->key);
    if (rc != 0)
        return rc;
    *out = (struct kr_strings){.v = kr_arena_alloc(r->arena, (n + 1) * sizeof *out->v)};
    if (out->v == NULL)
        return no_memory(r);
    for (; rc == 0 && out->n < n; out->n += rc == 0)
        rc = kr_yaml_text_read(r, field->key, kr_yaml_at(r->doc, node, out->n), field->valid,
                               &out->v[out->n]);
    out->v[out->n] = NULL;
    return rc;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_names(struct kr_yaml_reader *r, const struct kr_yaml_field *field,
                      const struct kr_yaml_node *node, struct kr_names *out)
{
    int rc = read_strings(r, field, node, &out->in);

    if (rc != 0)
        return rc;
    qsort(out->in.v, out->in.n, sizeof *out->in.v, by_text);
    for (size_t i = 0; i < out->in.n; i++)
        out->all = out->all || strcmp(out->in.v[i], "*") == 0;
    return 0;
}

static int compare(const void *key, const void *item)
{
    const struct kr_bytes *text = key;
    const char *name = *(const char *const *)item;
    size_t n = strlen(name);
    int order = memcmp(text->p, name, text->n < n ? text->n : n);

    return order != 0 ? order : (text->n > n) - (text->n < n);
}

bool kr_names_have(const struct kr_names *names, struct kr_bytes text)
{
    struct kr_bytes key = text.n != 0 ? text : KR_LIT("");

    return names->all || (names->in.n != 0 && bsearch(&key, names->in.v, names->in.n,
                                                      sizeof *names->in.v, compare) != NULL);
}

static int read_flag(struct kr_yaml_reader *r, const char *key, const struct kr_yaml_node *node,
                     bool *out)
{
    const char *text = kr_yaml_text(node);

    if (text == NULL || (strcmp(text, "true") != 0 && strcmp(text, "false") != 0))
        return kr_yaml_fault(r, node, "%s: true or false is expected", key);
    *out = text[0] == 't';
    return 0;
}

static int read_number(struct kr_yaml_reader *r, const char *key, const struct kr_yaml_node *node,
                       uint32_t *out)
{
    uint64_t n;

    if (!kr_bytes_to_u64(kr_bytes_str(kr_yaml_text(node)), NUMBER_MAX, &n))
        return kr_yaml_fault(r, node, "%s: a number from 0 to %d is expected", key, NUMBER_MAX);
    *out = (uint32_t)n;
    return 0;
}

static int read_texts(struct kr_yaml_reader *r, const struct kr_yaml_field *field,
                      const struct kr_yaml_node *node, struct kr_yaml_texts *out)
{
    const struct kr_yaml_node *key;
    const struct kr_yaml_node *value;
    size_t n = 0;
    int rc = 0;

    if (kr_yaml_kind(node) != KR_YAML_MAP)
        return kr_yaml_fault(r, node, "%s: a mapping is expected", field->key);
    while (n < KR_YAML_ITEMS_MAX && kr_yaml_entry(r->doc, node, n, &key, &value))
        n++;
    *out = (struct kr_yaml_texts){.all = kr_arena_alloc(r->arena, (n + 1) * sizeof *out->all)};
    if (out->all == NULL)
        return no_memory(r);
    for (size_t i = 0; i < n && rc == 0; i++) {
        kr_yaml_entry(r->doc, node, i, &key, &value);
        rc = kr_yaml_text_read(r, field->key, key, field->valid, &out->all[i].key);
        if (rc == 0)
            rc = kr_yaml_text_read(r, field->key, value, field->valid, &out->all[i].value);
        for (size_t j = 0; j < i && rc == 0; j++) {
            if (strcmp(out->all[j].key, out->all[i].key) == 0)
                rc = kr_yaml_fault(r, key, "%s: %.60s is given twice", field->key, out->all[i].key);
        }
        out->n += rc == 0;
    }
    return rc;
}

static int read_field(struct kr_yaml_reader *r, const struct kr_yaml_field *field,
                      const struct kr_yaml_node *node, void *to)
{
    switch (field->type) {
    case KR_YAML_TEXT:
        return kr_yaml_text_read(r, field->key, node, field->valid, to);
    case KR_YAML_STRINGS:
        return read_strings(r, field, node, to);
    case KR_YAML_NAMES:
        return read_names(r, field, node, to);
    case KR_YAML_FLAG:
        return read_flag(r, field->key, node, to);
    case KR_YAML_NUMBER:
        return read_number(r, field->key, node, to);
    case KR_YAML_TEXTS:
        return read_texts(r, field, node, to);
    case KR_YAML_NODE:
        *(const struct kr_yaml_node **)to = node;
        return 0;
    }
    return KR_EINVAL;
}

int kr_yaml_map_read(struct kr_yaml_reader *r, const char *what, const struct kr_yaml_node *node,
                     const struct kr_yaml_field *fields, size_t n, void *out)
{
    const struct kr_yaml_node *key;
    const struct kr_yaml_node *value;
    uint32_t seen = 0;

    if (kr_yaml_kind(node) != KR_YAML_MAP)
        return kr_yaml_fault(r, node, "%.60s: a mapping is expected", what);
    for (size_t i = 0; kr_yaml_entry(r->doc, node, i, &key, &value); i++) {
        const char *name = kr_yaml_text(key);
        size_t f = 0;
        int rc;

        while (f < n && (name == NULL || strcmp(name, fields[f].key) != 0))
            f++;
        if (f == n)
            return kr_yaml_fault(r, key, "%.60s: unknown key \"%.40s\"", what,
                                 name != NULL ? name : "");
        if ((seen >> f & 1) != 0)
            return kr_yaml_fault(r, key, "%.60s: %s is given twice", what, name);
        seen |= UINT32_C(1) << f;
        rc = read_field(r, &fields[f], value, (char *)out + fields[f].offset);
        if (rc != 0)
            return rc;
    }
    return 0;
}
