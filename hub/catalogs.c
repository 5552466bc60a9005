/* SPDX-License-Identifier: Apache-2.0 */
/* Most clusters of a fleet serve the same types, so equal catalogs are kept once: clusters point to
 * a set, and the union counts a set as often as clusters point to it. A set is the canonical bytes
 * of its types; the texts of the types are borrowed from there. */
#include "hub/catalogs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/map.h"
#include "hub/type_election.h"

#define CLUSTERS_MAX 1000000
#define TYPES_MAX 5000
#define TEXT_MAX 253
#define NAMES_MAX 64 /* short names, categories */
#define SET_BYTES_MAX (8u << 20)

struct type_set {
    size_t clusters;               /* that have it */
    const struct hub_voter *first; /* of those that have it; made with the union */
    struct kr_buf canonical;
    struct kr_arena arena;
    struct kr_resource_type *types; /* sorted, no type twice */
    size_t n;
};

struct hub_catalog {
    struct hub_voter voter;
    struct type_set *set; /* NULL: not told yet */
    struct kr_arena coming_arena;
    struct kr_resource_type *coming; /* a catalog of which more is to come */
    size_t coming_n;
};

struct hub_catalogs {
    struct kr_map by_cluster;
    struct kr_map sets; /* by their canonical bytes */
    uint64_t generation;
    bool stale; /* the union must be made anew */
    struct kr_resource_type *all;
    size_t n;
};

struct hub_catalogs *hub_catalogs_create(void)
{
    struct hub_catalogs *cs = calloc(1, sizeof *cs);

    if (cs == NULL)
        return NULL;
    kr_map_init(&cs->by_cluster, CLUSTERS_MAX);
    kr_map_init(&cs->sets, CLUSTERS_MAX);
    return cs;
}

static void free_set(struct type_set *s)
{
    if (s == NULL)
        return;
    kr_arena_deinit(&s->arena);
    kr_buf_deinit(&s->canonical);
    free(s);
}

static void drop_set(struct hub_catalogs *cs, struct type_set *s)
{
    if (s == NULL || --s->clusters != 0)
        return;
    kr_map_erase(&cs->sets, kr_buf_bytes(&s->canonical));
    free_set(s);
}

static void forget_coming(struct hub_catalog *c)
{
    kr_arena_deinit(&c->coming_arena);
    free(c->coming);
    c->coming = NULL;
    c->coming_n = 0;
}

static void free_catalog(struct hub_catalogs *cs, struct hub_catalog *c)
{
    forget_coming(c);
    drop_set(cs, c->set);
    free(c);
}

void hub_catalogs_destroy(struct hub_catalogs *cs)
{
    size_t pos = 0;
    struct hub_catalog *c;

    if (cs == NULL)
        return;
    while ((c = kr_map_next(&cs->by_cluster, &pos, NULL)) != NULL)
        free_catalog(cs, c);
    kr_map_deinit(&cs->by_cluster);
    kr_map_deinit(&cs->sets);
    free(cs->all);
    free(cs);
}

static const struct kr_resource_type *find(const struct kr_resource_type *types, size_t n,
                                           struct kr_bytes group, struct kr_bytes version,
                                           struct kr_bytes resource)
{
    struct kr_resource_type key = {.group = group, .version = version, .resource = resource};

    return n != 0 ? bsearch(&key, types, n, sizeof *types, hub_type_order) : NULL;
}

/* ---- one cluster's catalog ---- */

/* What a path can be made of. */
static bool is_name(struct kr_bytes b, bool may_be_empty)
{
    if (b.n == 0)
        return may_be_empty;
    if (b.n > TEXT_MAX || b.p[0] == '.' || b.p[0] == '-')
        return false;
    for (size_t i = 0; i < b.n; i++) {
        if (!((b.p[i] >= 'a' && b.p[i] <= 'z') || (b.p[i] >= '0' && b.p[i] <= '9') ||
              b.p[i] == '-' || b.p[i] == '.'))
            return false;
    }
    return true;
}

static bool is_usable(const struct kr_resource_type *t)
{
    bool ok = is_name(t->group, true) && is_name(t->version, false) &&
              is_name(t->resource, false) && t->kind.n != 0 && t->kind.n <= TEXT_MAX &&
              t->singular.n <= TEXT_MAX && t->short_name_count <= NAMES_MAX &&
              t->category_count <= NAMES_MAX;

    for (size_t i = 0; ok && i < t->short_name_count; i++)
        ok = t->short_names[i].n <= TEXT_MAX;
    for (size_t i = 0; ok && i < t->category_count; i++)
        ok = t->categories[i].n <= TEXT_MAX;
    return ok;
}

static bool copy_text(struct kr_arena *arena, struct kr_bytes *b)
{
    *b = kr_arena_copy(arena, *b);
    return b->p != NULL;
}

static bool copy_list(struct kr_arena *arena, const struct kr_bytes **list, size_t n)
{
    struct kr_bytes *copy = kr_arena_alloc(arena, (n + 1) * sizeof *copy);

    if (copy == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        copy[i] = (*list)[i];
        if (!copy_text(arena, &copy[i]))
            return false;
    }
    *list = copy;
    return true;
}

static int add_coming(struct hub_catalog *c, const struct kr_resource_type *t)
{
    struct kr_resource_type copy = *t;
    struct kr_arena *a = &c->coming_arena;

    if (!copy_text(a, &copy.group) || !copy_text(a, &copy.version) ||
        !copy_text(a, &copy.resource) || !copy_text(a, &copy.kind) ||
        !copy_text(a, &copy.singular) || !copy_list(a, &copy.short_names, t->short_name_count) ||
        !copy_list(a, &copy.categories, t->category_count))
        return KR_ENOMEM;
    c->coming[c->coming_n++] = copy;
    return 0;
}

/* Adds what is usable; what is not is as if it were not served. */
static int take_types(struct hub_catalog *c, const struct kr_catalog_update *u)
{
    struct kr_resource_type *grown = realloc(c->coming, (c->coming_n + u->n + 1) * sizeof *grown);

    if (grown == NULL)
        return KR_ENOMEM;
    c->coming = grown;
    if (c->coming_n == 0)
        kr_arena_init(&c->coming_arena, 4096, SET_BYTES_MAX);
    for (size_t i = 0; i < u->n; i++) {
        int rc = 0;

        if (is_usable(&u->types[i]))
            rc = c->coming_n < TYPES_MAX ? add_coming(c, &u->types[i]) : KR_EFULL;
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void sort_coming(struct hub_catalog *c)
{
    size_t kept = 0;

    if (c->coming_n == 0)
        return;
    qsort(c->coming, c->coming_n, sizeof *c->coming, hub_type_order);
    for (size_t i = 1; i < c->coming_n; i++) {
        if (hub_type_order(&c->coming[kept], &c->coming[i]) != 0)
            c->coming[++kept] = c->coming[i];
    }
    c->coming_n = kept + 1;
}

/* ---- sets: canonical bytes, and the types read back from them ---- */

static int put_text(struct kr_buf *out, struct kr_bytes b)
{
    uint8_t n[2] = {(uint8_t)(b.n >> 8), (uint8_t)b.n};
    int rc = kr_buf_append(out, kr_bytes_of(n, 2));

    return rc != 0 ? rc : kr_buf_append(out, b);
}

static int put_list(struct kr_buf *out, const struct kr_bytes *list, size_t n)
{
    uint8_t count = (uint8_t)n;
    int rc = kr_buf_append(out, kr_bytes_of(&count, 1));

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = put_text(out, list[i]);
    return rc;
}

static int put_type(struct kr_buf *out, const struct kr_resource_type *t)
{
    const struct kr_bytes texts[] = {t->group, t->version, t->resource, t->kind, t->singular};
    uint8_t flags = (uint8_t)(t->namespaced | t->preferred << 1);
    int rc = kr_buf_append(out, kr_bytes_of(&flags, 1));

    for (size_t i = 0; rc == 0 && i < sizeof texts / sizeof texts[0]; i++)
        rc = put_text(out, texts[i]);
    if (rc == 0)
        rc = put_list(out, t->short_names, t->short_name_count);
    return rc != 0 ? rc : put_list(out, t->categories, t->category_count);
}

static struct kr_bytes get_text(struct kr_bytes *in)
{
    size_t n = (size_t)in->p[0] << 8 | in->p[1];
    struct kr_bytes b = {in->p + 2, n};

    KR_ASSERT(n + 2 <= in->n);
    *in = kr_bytes_skip(*in, n + 2);
    return b;
}

static const struct kr_bytes *get_list(struct kr_bytes *in, struct kr_arena *arena, size_t *n)
{
    struct kr_bytes *list;

    *n = in->p[0];
    *in = kr_bytes_skip(*in, 1);
    list = kr_arena_alloc(arena, (*n + 1) * sizeof *list);
    for (size_t i = 0; list != NULL && i < *n; i++)
        list[i] = get_text(in);
    return list;
}

static int read_types(struct type_set *s, size_t n)
{
    struct kr_bytes in = kr_buf_bytes(&s->canonical);

    kr_arena_init(&s->arena, 4096, SET_BYTES_MAX);
    s->types = kr_arena_alloc(&s->arena, (n + 1) * sizeof *s->types);
    if (s->types == NULL)
        return KR_ENOMEM;
    for (; s->n < n; s->n++) {
        struct kr_resource_type *t = &s->types[s->n];
        uint8_t flags = in.p[0];

        in = kr_bytes_skip(in, 1);
        *t = (struct kr_resource_type){.namespaced = flags & 1, .preferred = flags >> 1 & 1};
        t->group = get_text(&in);
        t->version = get_text(&in);
        t->resource = get_text(&in);
        t->kind = get_text(&in);
        t->singular = get_text(&in);
        t->short_names = get_list(&in, &s->arena, &t->short_name_count);
        if (t->short_names == NULL)
            return KR_ENOMEM;
        t->categories = get_list(&in, &s->arena, &t->category_count);
        if (t->categories == NULL)
            return KR_ENOMEM;
    }
    return 0;
}

/* The set of what came: one that is there already, or a new one. */
static int find_set(struct hub_catalogs *cs, const struct hub_catalog *c, struct type_set **out)
{
    struct type_set *s = calloc(1, sizeof *s);
    int rc = s != NULL ? 0 : KR_ENOMEM;

    if (rc == 0)
        kr_buf_init(&s->canonical, SET_BYTES_MAX);
    for (size_t i = 0; rc == 0 && i < c->coming_n; i++)
        rc = put_type(&s->canonical, &c->coming[i]);
    if (rc != 0) {
        free_set(s);
        return rc;
    }
    *out = kr_map_get(&cs->sets, kr_buf_bytes(&s->canonical));
    if (*out == NULL) {
        rc = read_types(s, c->coming_n);
        if (rc == 0)
            rc = kr_map_put(&cs->sets, kr_buf_bytes(&s->canonical), s);
        if (rc == 0) {
            *out = s;
            return 0;
        }
    }
    free_set(s);
    return rc;
}

static int finish(struct hub_catalogs *cs, struct hub_catalog *c)
{
    struct type_set *s;
    int rc;

    sort_coming(c);
    rc = find_set(cs, c, &s);
    if (rc != 0 || s == c->set)
        return rc;
    s->clusters++;
    drop_set(cs, c->set);
    c->set = s;
    cs->generation++;
    cs->stale = true;
    return 0;
}

static struct hub_catalog *add_catalog(struct hub_catalogs *cs, const char *cluster)
{
    struct hub_catalog *c = kr_map_get(&cs->by_cluster, kr_bytes_str(cluster));

    if (c != NULL)
        return c;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    snprintf(c->voter.cluster, sizeof c->voter.cluster, "%s", cluster);
    if (kr_map_put(&cs->by_cluster, kr_bytes_str(c->voter.cluster), c) == 0)
        return c;
    free(c);
    return NULL;
}

int hub_catalogs_know(struct hub_catalogs *cs, const char *cluster, int64_t since_wall_ms)
{
    struct hub_catalog *c = add_catalog(cs, cluster);

    if (c == NULL)
        return KR_ENOMEM;
    cs->stale = cs->stale || c->voter.since_wall_ms != since_wall_ms;
    c->voter.since_wall_ms = since_wall_ms;
    return 0;
}

int hub_catalogs_update(struct hub_catalogs *cs, const char *cluster,
                        const struct kr_catalog_update *update)
{
    struct hub_catalog *c = add_catalog(cs, cluster);
    int rc = c != NULL ? take_types(c, update) : KR_ENOMEM;

    if (rc == 0 && update->more)
        return 0;
    if (rc == 0)
        rc = finish(cs, c);
    if (c != NULL)
        forget_coming(c);
    return rc;
}

void hub_catalogs_interrupted(struct hub_catalogs *cs, const char *cluster)
{
    struct hub_catalog *c = kr_map_get(&cs->by_cluster, kr_bytes_str(cluster));

    if (c != NULL)
        forget_coming(c);
}

void hub_catalogs_remove(struct hub_catalogs *cs, const char *cluster)
{
    struct hub_catalog *c = kr_map_erase(&cs->by_cluster, kr_bytes_str(cluster));

    if (c == NULL)
        return;
    if (c->set != NULL) {
        cs->generation++;
        cs->stale = true;
    }
    free_catalog(cs, c);
}

bool hub_catalogs_has(const struct hub_catalogs *cs, const char *cluster)
{
    const struct hub_catalog *c = kr_map_get(&cs->by_cluster, kr_bytes_str(cluster));

    return c != NULL && c->set != NULL;
}

const struct kr_resource_type *hub_catalog_find(const struct hub_catalogs *cs, const char *cluster,
                                                struct kr_bytes group, struct kr_bytes version,
                                                struct kr_bytes resource)
{
    const struct hub_catalog *c = kr_map_get(&cs->by_cluster, kr_bytes_str(cluster));

    return c != NULL && c->set != NULL ? find(c->set->types, c->set->n, group, version, resource)
                                       : NULL;
}

/* ---- the union ---- */

static void find_first(struct hub_catalogs *cs)
{
    struct hub_catalog *c;
    struct type_set *s;
    size_t pos = 0;

    while ((s = kr_map_next(&cs->sets, &pos, NULL)) != NULL)
        s->first = NULL;
    pos = 0;
    while ((c = kr_map_next(&cs->by_cluster, &pos, NULL)) != NULL) {
        if (c->set != NULL && hub_voter_is_earlier(&c->voter, c->set->first))
            c->set->first = &c->voter;
    }
}

static struct hub_vote *gather(struct hub_catalogs *cs, size_t *n)
{
    struct hub_vote *v;
    struct type_set *s;
    size_t pos = 0;
    size_t total = 0;

    find_first(cs);
    while ((s = kr_map_next(&cs->sets, &pos, NULL)) != NULL)
        total += s->n;
    v = calloc(total + 1, sizeof *v);
    *n = 0;
    pos = 0;
    while (v != NULL && (s = kr_map_next(&cs->sets, &pos, NULL)) != NULL) {
        for (size_t i = 0; i < s->n; i++)
            v[(*n)++] = (struct hub_vote){s->types[i], s->clusters, s->first};
    }
    return v;
}

/* Without memory there is no union for now; the next call tries again. */
static void make_union(struct hub_catalogs *cs)
{
    size_t n;
    struct hub_vote *v = gather(cs, &n);

    cs->n = 0;
    if (v == NULL)
        return;
    n = hub_elect_types(v, n);
    free(cs->all);
    cs->all = calloc(n + 1, sizeof *cs->all);
    for (; cs->all != NULL && cs->n < n; cs->n++)
        cs->all[cs->n] = v[cs->n].type;
    cs->stale = cs->all == NULL;
    free(v);
}

const struct kr_resource_type *hub_catalogs_union(struct hub_catalogs *cs, size_t *n)
{
    if (cs->stale)
        make_union(cs);
    *n = cs->n;
    return cs->all;
}

const struct kr_resource_type *hub_catalogs_find(struct hub_catalogs *cs, struct kr_bytes group,
                                                 struct kr_bytes version, struct kr_bytes resource)
{
    size_t n;
    const struct kr_resource_type *all = hub_catalogs_union(cs, &n);

    return find(all, n, group, version, resource);
}

uint64_t hub_catalogs_generation(const struct hub_catalogs *cs)
{
    return cs->generation;
}
