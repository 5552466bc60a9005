/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_columns.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

#define SETS_MAX 16
#define NO_MAP SETS_MAX

#define CLUSTER_COLUMN                                                                             \
    "{\"name\":\"Cluster\",\"type\":\"string\",\"format\":\"\","                                   \
    "\"description\":\"The cluster that the object is in.\",\"priority\":0}"
#define PLAIN_COLUMNS                                                                              \
    "[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\","                                 \
    "\"description\":\"Name must be unique within a namespace.\",\"priority\":0},"                 \
    "{\"name\":\"Age\",\"type\":\"string\",\"format\":\"\","                                       \
    "\"description\":\"Time since the object was created.\",\"priority\":0}]"

struct hub_column_use {
    char cluster[64];
    uint8_t map;
};

/* The different definitions among the shelves. */
struct found {
    struct kr_bytes sets[SETS_MAX]; /* lent by the shelves */
    size_t shelves[SETS_MAX];       /* that have it */
    uint64_t changed[SETS_MAX];
    size_t n;
    size_t best;
};

static uint64_t stamp_of(const struct hub_type *type)
{
    uint64_t stamp = 1;

    KR_LIST_FOREACH(node, &type->shelves)
    {
        const struct hub_shelf *s = KR_CONTAINER_OF(node, struct hub_shelf, in_type);

        stamp = stamp * 0x100000001b3u + s->columns_changed + s->columns.n;
        stamp = stamp * 0x100000001b3u + s->cluster[0] + ((uint64_t)strlen(s->cluster) << 8);
    }
    return stamp;
}

static size_t find_set(const struct found *f, struct kr_bytes text)
{
    for (size_t i = 0; i < f->n; i++) {
        if (kr_bytes_eq(f->sets[i], text))
            return i;
    }
    return NO_MAP;
}

static void count(struct found *f, const struct hub_shelf *s)
{
    struct kr_bytes text = kr_buf_bytes(&s->columns);
    size_t i = find_set(f, text);

    if (i == NO_MAP) {
        if (f->n == SETS_MAX)
            return;
        i = f->n++;
        f->sets[i] = text;
    }
    f->shelves[i]++;
    if (s->columns_changed > f->changed[i])
        f->changed[i] = s->columns_changed;
}

static void look(const struct hub_type *type, struct found *f)
{
    KR_LIST_FOREACH(node, &type->shelves)
    {
        const struct hub_shelf *s = KR_CONTAINER_OF(node, struct hub_shelf, in_type);

        if (s->columns.n != 0)
            count(f, s);
    }
    for (size_t i = 1; i < f->n; i++) {
        if (f->shelves[i] > f->shelves[f->best] ||
            (f->shelves[i] == f->shelves[f->best] && f->changed[i] > f->changed[f->best]))
            f->best = i;
    }
}

/* What comes from a cluster is JSON, or it is nothing. */
static int read_set(struct kr_bytes text, struct kr_columns *out)
{
    int rc = kr_scan_check(text, 16, NULL);

    out->n = 0;
    return rc != 0 ? rc : kr_columns_read(text, out);
}

static uint8_t find_column(const struct kr_columns *in, struct kr_bytes name)
{
    for (size_t i = 0; i < in->n; i++) {
        if (kr_bytes_eq(in->all[i].name, name))
            return (uint8_t)i;
    }
    return HUB_COLUMNS_NONE;
}

/* A set that cannot be read has none of the columns. */
static void fill_map(struct hub_column_map *map, const struct kr_columns *shown,
                     struct kr_bytes text)
{
    struct kr_columns theirs = {.n = 0};

    if (read_set(text, &theirs) != 0)
        theirs.n = 0;
    map->n = (uint8_t)theirs.n;
    for (size_t i = 0; i < shown->n; i++)
        map->from[i] = find_column(&theirs, shown->all[i].name);
}

static int write_text(struct hub_columns *c)
{
    int rc = kr_buf_append_str(&c->text, "[" CLUSTER_COLUMN);

    for (size_t i = 0; rc == 0 && i < c->shown.n; i++) {
        rc = kr_buf_append_str(&c->text, ",");
        if (rc == 0)
            rc = kr_buf_append(&c->text, c->shown.all[i].text);
    }
    return rc == 0 ? kr_buf_append_str(&c->text, "]") : rc;
}

static size_t find_name(const struct kr_columns *shown)
{
    for (size_t i = 0; i < shown->n; i++) {
        if (kr_bytes_is(shown->all[i].name, "Name"))
            return i;
    }
    return KR_COLUMNS_MAX;
}

static int take_shown(struct hub_columns *c, struct kr_bytes text)
{
    int rc = kr_buf_append(&c->source, text);

    if (rc == 0 && read_set(kr_buf_bytes(&c->source), &c->shown) != 0) {
        kr_buf_deinit(&c->source);
        rc = kr_buf_append(&c->source, KR_LIT(PLAIN_COLUMNS));
        if (rc == 0)
            rc = read_set(kr_buf_bytes(&c->source), &c->shown);
    }
    c->name_at = find_name(&c->shown);
    return rc != 0 ? rc : write_text(c);
}

static int take_maps(struct hub_columns *c, struct found *f)
{
    struct kr_bytes first = f->sets[f->best];

    c->map_count = f->n;
    c->maps = calloc(f->n + 1, sizeof *c->maps);
    if (c->maps == NULL)
        return KR_ENOMEM;
    if (f->n != 0) { /* what is shown comes first */
        f->sets[f->best] = f->sets[0];
        f->sets[0] = first;
    }
    for (size_t i = 0; i < f->n; i++)
        fill_map(&c->maps[i], &c->shown, f->sets[i]);
    return 0;
}

static int take_uses(struct hub_columns *c, const struct found *f, const struct hub_type *type)
{
    size_t n = 0;

    if (f->n == 0)
        return 0;
    KR_LIST_FOREACH(node, &type->shelves)
    n++;
    c->uses = calloc(n + 1, sizeof *c->uses);
    if (c->uses == NULL)
        return KR_ENOMEM;
    KR_LIST_FOREACH(node, &type->shelves)
    {
        const struct hub_shelf *s = KR_CONTAINER_OF(node, struct hub_shelf, in_type);
        size_t map = s->columns.n == 0 ? NO_MAP : find_set(f, kr_buf_bytes(&s->columns));

        if (map == 0)
            continue;
        memcpy(c->uses[c->use_count].cluster, s->cluster, sizeof s->cluster);
        c->uses[c->use_count++].map = (uint8_t)map;
    }
    return 0;
}

static struct hub_columns *make(const struct hub_type *type, uint64_t stamp)
{
    struct hub_columns *c = calloc(1, sizeof *c);
    struct found f = {.n = 0};
    int rc;

    if (c == NULL)
        return NULL;
    c->refs = 1;
    c->stamp = stamp;
    c->text.max = c->source.max = SIZE_MAX; /* the shelves bound theirs */
    look(type, &f);
    rc = take_shown(c, f.n != 0 ? f.sets[f.best] : KR_LIT(PLAIN_COLUMNS));
    if (rc == 0)
        rc = take_maps(c, &f);
    if (rc == 0)
        rc = take_uses(c, &f, type);
    if (rc != 0) {
        hub_columns_unref(c);
        return NULL;
    }
    return c;
}

struct hub_columns *hub_columns_get(const struct hub_type *type, struct hub_columns *last)
{
    uint64_t stamp = stamp_of(type);

    if (last == NULL || last->stamp != stamp)
        return make(type, stamp);
    last->refs++;
    return last;
}

void hub_columns_unref(struct hub_columns *c)
{
    if (c == NULL || --c->refs != 0)
        return;
    kr_buf_deinit(&c->text);
    kr_buf_deinit(&c->source);
    free(c->maps);
    free(c->uses);
    free(c);
}

static int compare(const void *key, const void *use)
{
    return strcmp(key, ((const struct hub_column_use *)use)->cluster);
}

const struct hub_column_map *hub_columns_map(const struct hub_columns *c, const char *cluster)
{
    const struct hub_column_use *use = NULL;

    if (c->use_count != 0)
        use = bsearch(cluster, c->uses, c->use_count, sizeof *c->uses, compare);
    if (use == NULL)
        return c->map_count != 0 ? &c->maps[0] : NULL;
    return use->map < c->map_count ? &c->maps[use->map] : NULL;
}
