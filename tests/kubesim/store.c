/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

#define FIRST_RV 1000u

uint64_t sim_random(struct sim_cluster *c)
{
    return c->random = sim_hash(c->random, 1, 2);
}

/* ---- revisions */

struct sim_rev sim_rev_ref(struct sim_rev r)
{
    if (r.blob != NULL)
        r.blob->refs++;
    return r;
}

void sim_rev_unref(struct sim_rev *r)
{
    if (r->blob != NULL && --r->blob->refs == 0)
        free(r->blob);
    *r = (struct sim_rev){0};
}

int sim_rev_text(const struct sim_cluster *c, int kind, const struct sim_rev *r, struct kr_buf *out)
{
    if (r->blob != NULL)
        return kr_buf_append(out, kr_bytes_of(r->blob->text, r->blob->n));
    return sim_gen_render(&c->world, kind, r->gen, r->rv, out);
}

struct json_object *sim_rev_tree(const struct sim_cluster *c, int kind, const struct sim_rev *r)
{
    struct json_object *v = NULL;
    struct kr_buf text;

    kr_buf_init(&text, 64u << 20);
    if (sim_rev_text(c, kind, r, &text) == 0)
        v = sim_json_parse(kr_buf_bytes(&text));
    kr_buf_deinit(&text);
    return v;
}

static struct sim_blob *blob_of(struct json_object *v)
{
    struct sim_blob *blob = NULL;
    struct kr_buf text;

    kr_buf_init(&text, 64u << 20);
    if (sim_json_print(v, &text) == 0)
        blob = malloc(sizeof *blob + text.n);
    if (blob != NULL) {
        blob->refs = 1;
        blob->n = (uint32_t)text.n;
        memcpy(blob->text, text.p, text.n);
    }
    kr_buf_deinit(&text);
    return blob;
}

/* ---- collections */

size_t sim_store_lower(const struct sim_cluster *c, int kind, const char *key)
{
    const struct sim_coll *coll = &c->colls[kind];
    size_t lo = 0, hi = coll->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (strcmp(coll->objs[mid]->key, key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct sim_obj *sim_store_get(const struct sim_cluster *c, int kind, const char *key)
{
    const struct sim_coll *coll = &c->colls[kind];
    size_t i = sim_store_lower(c, kind, key);

    return i < coll->n && strcmp(coll->objs[i]->key, key) == 0 ? coll->objs[i] : NULL;
}

static struct sim_obj *obj_new(const char *key)
{
    struct sim_obj *o = calloc(1, sizeof *o + strlen(key) + 1);

    if (o != NULL)
        memcpy(o->key, key, strlen(key) + 1);
    return o;
}

static int coll_grow(struct sim_coll *coll, size_t n)
{
    struct sim_obj **more;

    if (n <= coll->cap)
        return 0;
    if (n < coll->cap * 2)
        n = coll->cap * 2;
    more = realloc(coll->objs, n * sizeof *more);
    if (more == NULL)
        return KR_ENOMEM;
    coll->objs = more;
    coll->cap = n;
    return 0;
}

static struct sim_obj *coll_insert(struct sim_cluster *c, int kind, const char *key)
{
    struct sim_coll *coll = &c->colls[kind];
    size_t i = sim_store_lower(c, kind, key);
    struct sim_obj *o;

    if (coll_grow(coll, coll->n + 1) != 0 || (o = obj_new(key)) == NULL)
        return NULL;
    memmove(coll->objs + i + 1, coll->objs + i, (coll->n - i) * sizeof(struct sim_obj *));
    coll->objs[i] = o;
    coll->n++;
    return o;
}

static void coll_remove(struct sim_cluster *c, int kind, struct sim_obj *o)
{
    struct sim_coll *coll = &c->colls[kind];
    size_t i = sim_store_lower(c, kind, o->key);

    KR_ASSERT(i < coll->n && coll->objs[i] == o);
    coll->n--;
    memmove(coll->objs + i, coll->objs + i + 1, (coll->n - i) * sizeof(struct sim_obj *));
    sim_rev_unref(&o->rev);
    free(o);
}

static int compare_objs(const void *a, const void *b)
{
    return strcmp((*(struct sim_obj *const *)a)->key, (*(struct sim_obj *const *)b)->key);
}

static int populate(struct sim_cluster *c, int kind)
{
    struct sim_coll *coll = &c->colls[kind];
    uint32_t n = sim_gen_count(&c->world, kind);
    char key[SIM_KEY_MAX];

    if (coll_grow(coll, n) != 0)
        return KR_ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        struct sim_gen_id id = {.index = i};
        struct sim_obj *o;

        sim_gen_key(&c->world, kind, id, key);
        if ((o = obj_new(key)) == NULL)
            return KR_ENOMEM;
        o->rev = (struct sim_rev){.rv = ++c->rv, .gen = id};
        coll->objs[coll->n++] = o;
    }
    if (coll->n != 0)
        qsort(coll->objs, coll->n, sizeof(struct sim_obj *), compare_objs);
    return 0;
}

/* ---- events */

static void event_deinit(struct sim_event *e)
{
    sim_rev_unref(&e->now);
    sim_rev_unref(&e->prev);
    free(e->key);
    *e = (struct sim_event){0};
}

static void drop_oldest(struct sim_cluster *c)
{
    struct sim_event *e = &c->ring[c->ring_first];

    KR_ASSERT(c->ring != NULL && c->ring_n != 0 && c->ring_cap != 0);
    c->compacted = e->rv;
    event_deinit(e);
    c->ring_first = (c->ring_first + 1) % c->ring_cap;
    c->ring_n--;
}

/* Takes the references of now and prev. */
static void publish(struct sim_cluster *c, int kind, enum sim_event_type type, const char *key,
                    struct sim_rev now, struct sim_rev prev)
{
    struct sim_event *e;

    if (c->ring_n == c->ring_cap)
        drop_oldest(c);
    e = &c->ring[(c->ring_first + c->ring_n++) % c->ring_cap];
    *e = (struct sim_event){now.rv, kind, type, now, prev, strdup(key)};
    KR_ASSERT(e->key != NULL);
    KR_LIST_FOREACH_SAFE(node, &c->listeners)
    {
        struct sim_listener *l = KR_CONTAINER_OF(node, struct sim_listener, link);

        if (l->kind == kind)
            l->wake(l);
    }
}

const struct sim_event *sim_store_event_after(const struct sim_cluster *c, uint64_t rv)
{
    size_t lo = 0, hi = c->ring_n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (c->ring[(c->ring_first + mid) % c->ring_cap].rv <= rv)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < c->ring_n ? &c->ring[(c->ring_first + lo) % c->ring_cap] : NULL;
}

void sim_store_compact(struct sim_cluster *c)
{
    while (c->ring_n != 0)
        drop_oldest(c);
    c->compacted = c->rv;
}

/* ---- writes */

static void stamp(struct json_object *v, uint64_t rv)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)rv);
    sim_json_set_str(sim_json_child(v, "metadata"), "resourceVersion", text);
}

int sim_store_put(struct sim_cluster *c, int kind, const char *key, struct json_object *v)
{
    struct sim_obj *o = sim_store_get(c, kind, key);
    struct sim_blob *blob;
    struct sim_rev prev;
    bool fresh = o == NULL;

    stamp(v, c->rv + 1);
    if ((blob = blob_of(v)) == NULL)
        return KR_ENOMEM;
    if (fresh && (o = coll_insert(c, kind, key)) == NULL) {
        free(blob);
        return KR_ENOMEM;
    }
    prev = o->rev; /* its reference goes to the event */
    o->rev = (struct sim_rev){.blob = blob, .rv = ++c->rv};
    publish(c, kind, fresh ? SIM_ADDED : SIM_MODIFIED, key, sim_rev_ref(o->rev), prev);
    return 0;
}

int sim_store_delete(struct sim_cluster *c, int kind, const char *key, struct sim_rev *out)
{
    struct sim_obj *o = sim_store_get(c, kind, key);
    struct sim_rev prev, last;
    char copy[SIM_KEY_MAX];

    KR_ASSERT(o != NULL);
    prev = last = sim_rev_ref(o->rev);
    if (last.blob != NULL) {
        struct json_object *v = sim_rev_tree(c, kind, &prev);

        if (v == NULL)
            return KR_ENOMEM;
        stamp(v, c->rv + 1);
        last.blob = blob_of(v);
        json_object_put(v);
        if (last.blob == NULL)
            return KR_ENOMEM;
    }
    last.rv = ++c->rv;
    if (out != NULL)
        *out = sim_rev_ref(last);
    snprintf(copy, sizeof copy, "%s", key); /* it may be the object's own */
    coll_remove(c, kind, o);
    publish(c, kind, SIM_DELETED, copy, last, prev);
    return 0;
}

void sim_store_change(struct sim_cluster *c, int kind, struct sim_obj *o, struct sim_gen_id now)
{
    struct sim_rev prev = o->rev;

    if (prev.blob != NULL)
        return;
    o->rev.rv = ++c->rv;
    o->rev.gen = now;
    publish(c, kind, SIM_MODIFIED, o->key, o->rev, prev);
}

void sim_store_replace(struct sim_cluster *c, int kind, struct sim_obj *o, int64_t at_us)
{
    struct sim_gen_id id = {
        .index = o->rev.gen.index, .life = (uint16_t)(o->rev.gen.life + 1), .at_us = at_us};
    char key[SIM_KEY_MAX];

    if (o->rev.blob != NULL || sim_store_delete(c, kind, o->key, NULL) != 0)
        return;
    sim_gen_key(&c->world, kind, id, key);
    if (sim_store_get(c, kind, key) != NULL || (o = coll_insert(c, kind, key)) == NULL)
        return;
    o->rev = (struct sim_rev){.rv = ++c->rv, .gen = id};
    publish(c, kind, SIM_ADDED, key, o->rev, (struct sim_rev){0});
}

/* ---- life */

struct sim_cluster *sim_cluster_create(const struct sim_cluster_config *cfg)
{
    struct sim_cluster *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    snprintf(c->name, sizeof c->name, "%s", cfg->world.cluster);
    c->world = cfg->world;
    c->world.cluster = c->name;
    c->sched = cfg->sched;
    c->rv = FIRST_RV;
    c->random = cfg->world.seed;
    c->ring_cap = cfg->history;
    kr_list_init(&c->listeners);
    kr_list_init(&c->dues);
    kr_list_init(&c->faults);
    kr_list_init(&c->seen);
    kr_list_init(&c->in_fleet);
    c->colls = calloc(sim_kind_count, sizeof *c->colls);
    c->ring = calloc(c->ring_cap, sizeof *c->ring);
    for (int kind = 0; c->colls != NULL && kind < (int)sim_kind_count; kind++)
        if (populate(c, kind) != 0)
            c->ring_cap = 0;
    if (c->colls == NULL || c->ring == NULL || c->ring_cap == 0) {
        sim_cluster_destroy(c);
        return NULL;
    }
    c->compacted = c->rv;
    return c;
}

void sim_cluster_destroy(struct sim_cluster *c)
{
    if (c == NULL)
        return;
    while (c->ring_n != 0)
        drop_oldest(c);
    for (size_t kind = 0; c->colls != NULL && kind < sim_kind_count; kind++) {
        for (size_t i = 0; i < c->colls[kind].n; i++) {
            sim_rev_unref(&c->colls[kind].objs[i]->rev);
            free(c->colls[kind].objs[i]);
        }
        free(c->colls[kind].objs);
    }
    kr_list_remove(&c->in_fleet);
    free(c->colls);
    free(c->ring);
    free(c);
}
