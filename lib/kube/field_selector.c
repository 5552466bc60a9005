/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "kube/field_terms.h"
#include "kube/field_types.h"
#include "kube/json_scan.h"
#include "kube/selector.h"

#define TERMS_MAX 64
#define SHOWN(b) (int)((b).n < 80 ? (b).n : 80), (const char *)(b).p

static int parse_term(struct kr_bytes selector, struct kr_bytes text, struct kr_arena *arena,
                      struct kr_field_term *out, struct kr_note *why)
{
    if (!kr_field_term_split(text, &out->field, &out->value, &out->equal))
        return kr_note_set(why, KR_EINVAL, "invalid selector: '%.*s'; can't understand '%.*s'",
                           SHOWN(selector), SHOWN(text));
    return kr_field_value_unescape(out->value, arena, &out->value, why);
}

int kr_field_selector_parse(struct kr_bytes text, struct kr_arena *arena,
                            struct kr_field_selector *out, struct kr_note *why)
{
    struct kr_field_term terms[TERMS_MAX];
    struct kr_field_term *all;
    struct kr_bytes own = kr_arena_copy(arena, text);
    struct kr_bytes rest = own;
    size_t n = 0;

    *out = (struct kr_field_selector){0};
    if (own.p == NULL)
        return KR_ENOMEM;
    while (rest.n != 0) {
        struct kr_bytes term = kr_field_term_next(&rest);
        int rc;

        if (term.n == 0)
            continue;
        if (n == TERMS_MAX)
            return kr_note_set(why, KR_ETOOBIG,
                               "more than %d terms in a field selector, a limit of kuberelay",
                               TERMS_MAX);
        rc = parse_term(own, term, arena, &terms[n++], why);
        if (rc != 0)
            return rc;
    }
    if (n == 0)
        return 0;
    all = kr_arena_alloc(arena, n * sizeof *all);
    if (all == NULL)
        return KR_ENOMEM;
    memcpy(all, terms, n * sizeof *all);
    *out = (struct kr_field_selector){.all = all, .n = n};
    return 0;
}

int kr_field_selector_allowed(const struct kr_field_selector *s, struct kr_bytes group,
                              struct kr_bytes resource, struct kr_note *why)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!kr_field_is_known(group, resource, s->all[i].field))
            return kr_note_set(why, KR_EINVAL, "field label not supported: %.*s",
                               SHOWN(s->all[i].field));
    }
    return 0;
}

static bool is_name(struct kr_bytes field)
{
    return kr_bytes_is(field, "metadata.name") || kr_bytes_is(field, "metadata.namespace");
}

bool kr_field_selector_needs_object(const struct kr_field_selector *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!is_name(s->all[i].field))
            return true;
    }
    return false;
}

/* The last member of that name: `name` is ASCII, but not NUL-terminated. */
static bool find_member(struct kr_bytes object, struct kr_bytes name, struct kr_bytes *out)
{
    char text[64];

    if (name.n == 0 || name.n >= sizeof text)
        return false;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    return kr_scan_find(object, text, out);
}

static bool find_path(struct kr_bytes object, struct kr_bytes path, struct kr_bytes *out)
{
    while (path.n != 0) {
        size_t dot = kr_bytes_find(path, '.');

        if (!find_member(object, kr_bytes_of(path.p, dot), &object))
            return false;
        path = kr_bytes_skip(path, dot < path.n ? dot + 1 : dot);
    }
    *out = object;
    return true;
}

static bool string_is(struct kr_bytes json, struct kr_bytes want)
{
    struct kr_buf text = {.max = json.n};
    struct kr_bytes plain;
    bool same;

    if (kr_scan_plain(json, &plain))
        return kr_bytes_eq(plain, want);
    same = kr_scan_string(json, &text) == 0 && kr_bytes_eq(kr_buf_bytes(&text), want);
    kr_buf_deinit(&text);
    return same;
}

static bool field_is(struct kr_bytes object, struct kr_bytes field, struct kr_bytes want)
{
    struct kr_bytes value;

    if (!find_path(object, kr_field_path(field), &value) || kr_bytes_is(value, "null"))
        return kr_bytes_is(want, kr_field_absent(field));
    if (kr_scan_is_string(value))
        return string_is(value, want);
    if (value.n != 0 && (value.p[0] == '{' || value.p[0] == '['))
        return want.n == 0;
    return kr_bytes_eq(value, want);
}

bool kr_field_selector_matches(const struct kr_field_selector *s, struct kr_bytes ns,
                               struct kr_bytes name, struct kr_bytes object)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct kr_field_term *t = &s->all[i];
        bool same;

        if (kr_bytes_is(t->field, "metadata.name"))
            same = kr_bytes_eq(name, t->value);
        else if (kr_bytes_is(t->field, "metadata.namespace"))
            same = kr_bytes_eq(ns, t->value);
        else
            same = field_is(object, t->field, t->value);
        if (same != t->equal)
            return false;
    }
    return true;
}
