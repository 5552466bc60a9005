/* SPDX-License-Identifier: Apache-2.0 */
/* The cache as a whole: its types, and which shelves each of them has. */
#include "hub/cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "hub/cache_internal.h"

#define CLUSTERS_MAX 1000000 /* names ever seen */
#define SHELVES_MAX 100000   /* of one type */
#define TYPE_KEY_MAX 600
#define COLUMNS_MAX (64u * 1024)

struct hub_cache *hub_cache_create(struct kr_sched *sched, struct hub_revision *revision,
                                   const struct hub_cache_limits *limits)
{
    struct hub_cache *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->sched = sched;
    c->revision = revision;
    c->limits = *limits;
    hub_label_sets_init(&c->label_sets, &c->ledger);
    kr_map_init(&c->uses, CLUSTERS_MAX);
    kr_map_init(&c->by_key, limits->types);
    kr_list_init(&c->types);
    kr_list_init(&c->dirty);
    kr_list_init(&c->pins);
    hub_log_init(c);
    return c;
}

static void type_destroy(struct hub_type_box *t)
{
    struct hub_cache *c = t->pub.cache;

    while (t->shelf_count != 0) {
        hub_shelf_clear(&t->shelves[t->shelf_count - 1]->pub, true);
        hub_shelf_remove(&t->shelves[t->shelf_count - 1]->pub);
    }
    KR_ASSERT(kr_list_empty(&t->ghosts)); /* walks first */
    hub_log_forget(t);
    kr_map_erase(&c->by_key, kr_bytes_of(t->key, t->key_n));
    kr_list_remove(&t->pub.link);
    kr_list_remove(&t->dirty);
    hub_ledger_free(&c->ledger, t->shelves, t->shelf_cap * sizeof(struct hub_shelf_box *));
    hub_ledger_free(&c->ledger, t, sizeof *t + t->key_n);
}

void hub_cache_destroy(struct hub_cache *c)
{
    if (c == NULL)
        return;
    hub_pins_break_all(c);
    hub_log_turn(c); /* what is lent goes back */
    while (!kr_list_empty(&c->types))
        type_destroy(hub_type_box(KR_CONTAINER_OF(c->types.next, struct hub_type, link)));
    kr_task_cancel(&c->turn_end);
    kr_timer_stop(c->sched, &c->log_timer);
    hub_label_sets_deinit(&c->label_sets);
    kr_map_deinit(&c->by_key);
    hub_cluster_uses_destroy(&c->uses);
    free(c);
}

/* ---- types ---- */

/* Texts with a NUL behind each: none of them can hold one. */
static size_t type_key(char out[TYPE_KEY_MAX], struct kr_bytes group, struct kr_bytes version,
                       struct kr_bytes resource)
{
    const struct kr_bytes parts[] = {group, version, resource};
    size_t n = 0;

    if (group.n + version.n + resource.n + 3 > TYPE_KEY_MAX)
        return 0;
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].n != 0)
            memcpy(out + n, parts[i].p, parts[i].n);
        n += parts[i].n;
        out[n++] = '\0';
    }
    return n;
}

struct hub_type *hub_cache_find_type(struct hub_cache *c, struct kr_bytes group,
                                     struct kr_bytes version, struct kr_bytes resource)
{
    char key[TYPE_KEY_MAX];
    size_t n = type_key(key, group, version, resource);
    struct hub_type_box *t = n != 0 ? kr_map_get(&c->by_key, kr_bytes_of(key, n)) : NULL;

    return t != NULL ? &t->pub : NULL;
}

static void type_init(struct hub_type_box *t, struct hub_cache *c)
{
    t->pub.cache = c;
    t->pub.revision = c->revision->last;
    kr_list_init(&t->pub.shelves);
    kr_list_init(&t->pub.listeners);
    kr_list_init(&t->ghosts);
    kr_list_init(&t->pins);
}

static struct hub_type_box *type_create(struct hub_cache *c, struct kr_bytes group,
                                        struct kr_bytes version, struct kr_bytes resource)
{
    char key[TYPE_KEY_MAX];
    size_t n = type_key(key, group, version, resource);
    struct hub_type_box *t = n != 0 ? hub_ledger_alloc(&c->ledger, sizeof *t + n) : NULL;

    if (t == NULL)
        return NULL;
    memset(t, 0, sizeof *t);
    type_init(t, c);
    t->key_n = n;
    memcpy(t->key, key, n);
    t->pub.group = kr_bytes_of(t->key, group.n);
    t->pub.version = kr_bytes_of(t->key + group.n + 1, version.n);
    t->pub.resource = kr_bytes_of(t->key + group.n + version.n + 2, resource.n);
    return t;
}

struct hub_type *hub_cache_add_type(struct hub_cache *c, struct kr_bytes group,
                                    struct kr_bytes version, struct kr_bytes resource)
{
    struct hub_type *found = hub_cache_find_type(c, group, version, resource);
    struct hub_type_box *t;

    if (found != NULL)
        return found;
    t = type_create(c, group, version, resource);
    if (t == NULL)
        return NULL;
    if (kr_map_put(&c->by_key, kr_bytes_of(t->key, t->key_n), t) != 0) {
        hub_ledger_free(&c->ledger, t, sizeof *t + t->key_n);
        return NULL;
    }
    kr_list_append(&c->types, &t->pub.link);
    return &t->pub;
}

struct kr_list *hub_cache_types(struct hub_cache *c)
{
    return &c->types;
}

/* ---- shelves of a type ---- */

/* The index of the shelf, or where it would go. */
static bool find_shelf(const struct hub_type_box *t, struct kr_bytes cluster, size_t *at)
{
    size_t low = 0;
    size_t high = t->shelf_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int d = kr_bytes_compare(kr_bytes_str(t->shelves[middle]->pub.cluster), cluster);

        *at = middle;
        if (d == 0)
            return true;
        if (d < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return false;
}

struct hub_shelf *hub_type_find_shelf(struct hub_type *t, struct kr_bytes cluster)
{
    struct hub_type_box *box = hub_type_box(t);
    size_t at;

    return find_shelf(box, cluster, &at) ? &box->shelves[at]->pub : NULL;
}

static int reserve_shelf(struct hub_type_box *t)
{
    size_t cap = t->shelf_cap != 0 ? t->shelf_cap * 2 : 4;
    struct hub_shelf_box **shelves;

    if (t->shelf_count < t->shelf_cap)
        return 0;
    if (cap > SHELVES_MAX)
        return KR_EFULL;
    shelves = hub_ledger_resize(&t->pub.cache->ledger, t->shelves, t->shelf_cap * sizeof *shelves,
                                cap * sizeof *shelves);
    if (shelves == NULL)
        return KR_ENOMEM;
    t->shelves = shelves;
    t->shelf_cap = cap;
    return 0;
}

static struct hub_shelf_box *shelf_create(struct hub_type *t, struct kr_bytes cluster)
{
    struct hub_cache *c = t->cache;
    struct hub_cluster_use *use = hub_cluster_use_get(&c->uses, cluster);
    struct hub_shelf_box *s = use != NULL ? hub_ledger_alloc(&c->ledger, sizeof *s) : NULL;

    if (s == NULL)
        return NULL;
    memset(s, 0, sizeof *s);
    s->pub.type = t;
    s->pub.use = use;
    memcpy(s->pub.cluster, use->name, sizeof s->pub.cluster);
    kr_buf_init(&s->pub.columns, COLUMNS_MAX);
    hub_tree_init(&s->live, &c->ledger, &c->clock, false);
    hub_tree_init(&s->old, &c->ledger, &c->clock, true);
    return s;
}

static void insert_shelf(struct hub_type_box *t, struct hub_shelf_box *s, size_t at)
{
    struct kr_list *before = at < t->shelf_count ? &t->shelves[at]->pub.in_type : &t->pub.shelves;

    memmove(t->shelves + at + 1, t->shelves + at,
            (t->shelf_count - at) * sizeof(struct hub_shelf_box *));
    t->shelves[at] = s;
    t->shelf_count++;
    kr_list_append(before, &s->pub.in_type);
}

struct hub_shelf *hub_type_add_shelf(struct hub_type *t, struct kr_bytes cluster)
{
    struct hub_type_box *box = hub_type_box(t);
    struct hub_shelf_box *s;
    size_t at;

    if (find_shelf(box, cluster, &at))
        return &box->shelves[at]->pub;
    if (reserve_shelf(box) != 0)
        return NULL;
    s = shelf_create(t, cluster);
    if (s == NULL)
        return NULL;
    insert_shelf(box, s, at);
    return &s->pub;
}

void hub_shelf_bury(struct hub_shelf_box *s)
{
    struct hub_cache *c = s->pub.type->cache;

    if (!s->removed || s->refs != 0 || s->old.count != 0)
        return;
    kr_list_remove(&s->pub.in_type);
    kr_buf_deinit(&s->pub.columns);
    hub_tree_deinit(&s->live);
    hub_tree_deinit(&s->old);
    hub_ledger_free(&c->ledger, s, sizeof *s);
}

void hub_shelf_remove(struct hub_shelf *s)
{
    struct hub_type_box *t = hub_type_box(s->type);
    struct hub_shelf_box *box = hub_shelf_box(s);
    size_t at;

    hub_shelf_clear(s, false);
    if (find_shelf(t, kr_bytes_str(s->cluster), &at)) {
        t->shelf_count--;
        memmove(t->shelves + at, t->shelves + at + 1,
                (t->shelf_count - at) * sizeof(struct hub_shelf_box *));
    }
    kr_list_remove(&s->in_type);
    box->removed = true;
    kr_list_append(&t->ghosts, &s->in_type);
    hub_shelf_bury(box);
}

/* ---- figures ---- */

uint64_t hub_cache_cluster_bytes(const struct hub_cache *c, struct kr_bytes cluster)
{
    const struct hub_cluster_use *use = kr_map_get(&c->uses, cluster);

    return use != NULL ? use->bytes : 0;
}

uint64_t hub_cache_bytes(const struct hub_cache *c)
{
    return c->ledger.bytes + c->text_bytes;
}

uint64_t hub_cache_now(const struct hub_cache *c)
{
    return c->revision->last;
}

uint64_t hub_cache_next_revision(struct hub_cache *c)
{
    return hub_revision_next(c->revision, c->sched->now_wall_ms * 1000);
}

const struct kr_label *hub_cache_labels(const struct hub_cache *c, uint32_t label_set, size_t *n)
{
    /* The scratch space of the table is all that is written. */
    return hub_label_sets_get((struct hub_label_sets *)(uintptr_t)&c->label_sets, label_set, n);
}
