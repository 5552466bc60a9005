/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/discovery.h"

#include <stdlib.h>

#include "base/err.h"
#include "kube/json_scan.h"

#define ARENA_MAX (8u * 1024 * 1024)
#define WORDS_MAX 64
#define DEPTH_MAX 64

void agent_types_init(struct agent_types *t)
{
    *t = (struct agent_types){0};
    kr_arena_init(&t->arena, 4096, ARENA_MAX);
}

void agent_types_deinit(struct agent_types *t)
{
    free(t->all);
    kr_arena_deinit(&t->arena);
    *t = (struct agent_types){0};
}

const struct kr_resource_type *agent_types_find(const struct agent_types *t, struct kr_bytes group,
                                                struct kr_bytes version, struct kr_bytes resource)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct kr_resource_type *type = &t->all[i];

        if (kr_bytes_eq(type->resource, resource) && kr_bytes_eq(type->group, group) &&
            kr_bytes_eq(type->version, version))
            return type;
    }
    return NULL;
}

static int grow(struct agent_types *t)
{
    size_t cap = t->cap != 0 ? 2 * t->cap : 64;
    struct kr_resource_type *all;

    if (t->n < t->cap)
        return 0;
    all = realloc(t->all, cap * sizeof *all);
    if (all == NULL)
        return KR_ENOMEM;
    t->all = all;
    t->cap = cap;
    return 0;
}

/* ---- words */

static int text(struct agent_types *t, struct kr_bytes object, const char *name,
                struct kr_bytes *out)
{
    struct kr_bytes v;

    *out = (struct kr_bytes){NULL, 0};
    if (!kr_scan_find(object, name, &v) || !kr_scan_plain(v, &v) || v.n == 0)
        return 0;
    *out = kr_arena_copy(&t->arena, v);
    return out->p != NULL ? 0 : KR_ENOMEM;
}

static int words(struct agent_types *t, struct kr_bytes object, const char *name,
                 const struct kr_bytes **out, size_t *n)
{
    struct kr_bytes found[WORDS_MAX];
    struct kr_bytes v, *kept;
    struct kr_scan it;

    *n = 0;
    if (!kr_scan_find(object, name, &v) || !kr_scan_array(v, &it))
        return 0;
    while (*n < WORDS_MAX && kr_scan_element(&it, &v)) {
        if (!kr_scan_plain(v, &v) || v.n == 0)
            continue;
        found[*n] = kr_arena_copy(&t->arena, v);
        if (found[(*n)++].p == NULL)
            return KR_ENOMEM;
    }
    kept = kr_arena_alloc(&t->arena, *n * sizeof *kept + 1);
    if (kept == NULL)
        return KR_ENOMEM;
    if (*n != 0)
        memcpy(kept, found, *n * sizeof *kept);
    *out = kept;
    return 0;
}

static bool has_verb(struct kr_bytes resource, const char *verb)
{
    struct kr_bytes v;
    struct kr_scan it;

    if (!kr_scan_find(resource, "verbs", &v) || !kr_scan_array(v, &it))
        return false;
    while (kr_scan_element(&it, &v)) {
        if (kr_scan_plain(v, &v) && kr_bytes_is(v, verb))
            return true;
    }
    return false;
}

static bool is_followed(struct kr_bytes resource)
{
    return has_verb(resource, "list") && has_verb(resource, "watch");
}

/* ---- one type */

/* The names of members differ between the two forms. */
struct names {
    const char *resource;
    const char *singular;
};

static int add(struct agent_types *t, struct kr_bytes res, const struct names *names,
               const struct agent_group_version *gv, struct kr_bytes kind_in, bool namespaced)
{
    struct kr_resource_type type = {.namespaced = namespaced, .preferred = gv->preferred};
    int rc = t->n < AGENT_TYPES_MAX ? grow(t) : 0;

    if (rc != 0 || t->n >= AGENT_TYPES_MAX || !is_followed(res))
        return rc;
    rc = text(t, res, names->resource, &type.resource);
    if (rc == 0)
        rc = text(t, kind_in, "kind", &type.kind);
    if (rc != 0 || type.kind.n == 0 || type.resource.n == 0 ||
        kr_bytes_find(type.resource, '/') != type.resource.n)
        return rc;
    rc = text(t, res, names->singular, &type.singular);
    if (rc == 0)
        rc = words(t, res, "shortNames", &type.short_names, &type.short_name_count);
    if (rc == 0)
        rc = words(t, res, "categories", &type.categories, &type.category_count);
    type.group = kr_arena_copy(&t->arena, gv->group);
    type.version = kr_arena_copy(&t->arena, gv->version);
    if (rc != 0 || type.group.p == NULL || type.version.p == NULL)
        return KR_ENOMEM;
    t->all[t->n++] = type;
    return 0;
}

static bool is_true(struct kr_bytes object, const char *name)
{
    struct kr_bytes v;

    return kr_scan_find(object, name, &v) && kr_bytes_is(v, "true");
}

static int copy_words(struct agent_types *t, const struct kr_bytes *from, size_t n,
                      const struct kr_bytes **out)
{
    struct kr_bytes *kept = kr_arena_alloc(&t->arena, n * sizeof *kept + 1);

    if (kept == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        kept[i] = kr_arena_copy(&t->arena, from[i]);
        if (kept[i].p == NULL)
            return KR_ENOMEM;
    }
    *out = kept;
    return 0;
}

static int copy_type(struct agent_types *t, const struct kr_resource_type *from)
{
    struct kr_resource_type to = *from;
    int rc = grow(t);

    to.group = kr_arena_copy(&t->arena, from->group);
    to.version = kr_arena_copy(&t->arena, from->version);
    to.resource = kr_arena_copy(&t->arena, from->resource);
    to.kind = kr_arena_copy(&t->arena, from->kind);
    to.singular = kr_arena_copy(&t->arena, from->singular);
    if (rc == 0)
        rc = copy_words(t, from->short_names, from->short_name_count, &to.short_names);
    if (rc == 0)
        rc = copy_words(t, from->categories, from->category_count, &to.categories);
    if (rc != 0 || to.group.p == NULL || to.version.p == NULL || to.resource.p == NULL ||
        to.kind.p == NULL || to.singular.p == NULL)
        return KR_ENOMEM;
    t->all[t->n++] = to;
    return 0;
}

int agent_discovery_keep(struct agent_types *t, const struct agent_types *before,
                         struct kr_bytes group, struct kr_bytes version)
{
    size_t n = t->n;
    int rc = 0;

    for (size_t i = 0; i < before->n && rc == 0 && t->n < AGENT_TYPES_MAX; i++) {
        if (kr_bytes_eq(before->all[i].group, group) &&
            kr_bytes_eq(before->all[i].version, version))
            rc = copy_type(t, &before->all[i]);
    }
    t->patchy = t->patchy || t->n == n;
    return rc;
}

/* ---- the aggregated form */

static int read_resource(struct agent_types *t, struct kr_bytes res,
                         const struct agent_group_version *gv)
{
    static const struct names names = {"resource", "singularResource"};
    struct kr_bytes kind = {NULL, 0};
    struct kr_bytes scope = {NULL, 0};

    kr_scan_find(res, "responseKind", &kind);
    kr_scan_find(res, "scope", &scope);
    return add(t, res, &names, gv, kind, kr_bytes_is(scope, "\"Namespaced\""));
}

static int read_version(struct agent_types *t, struct kr_bytes version,
                        const struct agent_group_version *gv, const struct agent_types *before)
{
    struct kr_bytes v;
    struct kr_bytes res = {NULL, 0};
    struct kr_scan it;
    size_t n = 0;
    int rc = 0;

    if (kr_scan_find(version, "resources", &v) && kr_scan_array(v, &it)) {
        for (; rc == 0 && kr_scan_element(&it, &res); n++)
            rc = read_resource(t, res, gv);
    }
    if (rc == 0 && n == 0 && kr_scan_find(version, "freshness", &v) && kr_bytes_is(v, "\"Stale\""))
        rc = agent_discovery_keep(t, before, gv->group, gv->version);
    return rc;
}

int agent_discovery_group(struct agent_types *t, struct kr_bytes item,
                          const struct agent_types *before, struct kr_note *why)
{
    struct agent_group_version gv = {.group = KR_LIT(""), .preferred = true};
    struct kr_bytes meta, v, version;
    struct kr_scan it;
    int rc = 0;

    if (kr_scan_find(item, "metadata", &meta) && kr_scan_find(meta, "name", &v) &&
        !kr_scan_plain(v, &gv.group))
        return kr_note_set(why, KR_EPROTO, "a group's name is no plain string");
    if (!kr_scan_find(item, "versions", &v) || !kr_scan_array(v, &it))
        return kr_note_set(why, KR_EPROTO, "a group without versions");
    while (rc == 0 && kr_scan_element(&it, &version)) {
        if (!kr_scan_find(version, "version", &v) || !kr_scan_plain(v, &gv.version))
            return kr_note_set(why, KR_EPROTO, "a version without its name");
        rc = read_version(t, version, &gv, before);
        gv.preferred = false;
    }
    return rc;
}

/* ---- the old documents */

static int put_version(struct kr_arena *arena, struct kr_bytes group, struct kr_bytes version,
                       bool preferred, struct agent_group_version *out)
{
    out->group = kr_arena_copy(arena, group);
    out->version = kr_arena_copy(arena, version);
    out->preferred = preferred;
    return out->group.p != NULL && out->version.p != NULL ? 0 : KR_ENOMEM;
}

/* {"name":G,"versions":[{"version":V}..],"preferredVersion":{"version":V}} */
static int read_group(struct kr_bytes group, struct kr_arena *arena,
                      struct agent_group_version *out, size_t max, size_t *n)
{
    struct kr_bytes v, item, name, preferred = {NULL, 0};
    struct kr_scan it;
    int rc = 0;

    if (!kr_scan_find(group, "name", &v) || !kr_scan_plain(v, &name) ||
        !kr_scan_find(group, "versions", &v) || !kr_scan_array(v, &it))
        return KR_EPROTO;
    if (kr_scan_find(group, "preferredVersion", &v) && kr_scan_find(v, "version", &v))
        kr_scan_plain(v, &preferred);
    while (rc == 0 && *n < max && kr_scan_element(&it, &item)) {
        if (!kr_scan_find(item, "version", &v) || !kr_scan_plain(v, &v))
            return KR_EPROTO;
        rc = put_version(arena, name, v, kr_bytes_eq(v, preferred), &out[(*n)++]);
    }
    return rc;
}

int agent_discovery_versions(struct kr_bytes doc, struct kr_arena *arena,
                             struct agent_group_version *out, size_t max, size_t *n,
                             struct kr_note *why)
{
    struct kr_bytes v, item;
    struct kr_scan it;
    int rc = kr_scan_check(doc, DEPTH_MAX, why);

    *n = 0;
    if (rc != 0)
        return rc;
    if (kr_scan_find(doc, "versions", &v) && kr_scan_array(v, &it)) {
        while (rc == 0 && *n < max && kr_scan_element(&it, &item)) {
            bool first = *n == 0;

            rc = kr_scan_plain(item, &v) ? put_version(arena, KR_LIT(""), v, first, &out[(*n)++])
                                         : KR_EPROTO;
        }
    } else if (kr_scan_find(doc, "groups", &v) && kr_scan_array(v, &it)) {
        while (rc == 0 && kr_scan_element(&it, &item))
            rc = read_group(item, arena, out, max, n);
    } else {
        rc = KR_EPROTO;
    }
    return rc == KR_EPROTO ? kr_note_set(why, rc, "no document of discovery") : rc;
}

int agent_discovery_resources(struct agent_types *t, struct kr_bytes doc,
                              const struct agent_group_version *gv, struct kr_note *why)
{
    static const struct names names = {"name", "singularName"};
    struct kr_bytes v, res;
    struct kr_scan it;
    int rc = kr_scan_check(doc, DEPTH_MAX, why);

    if (rc != 0)
        return rc;
    if (!kr_scan_find(doc, "resources", &v) || !kr_scan_array(v, &it))
        return kr_note_set(why, KR_EPROTO, "no list of resources");
    while (rc == 0 && kr_scan_element(&it, &res))
        rc = add(t, res, &names, gv, res, is_true(res, "namespaced"));
    return rc;
}
