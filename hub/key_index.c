/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by the hash of their key. Deletes come with nothing but that. One is found by a scan of
 * the columns of 16-bit tags, about a nanosecond an object. Many in one turn (a snapshot that lacks
 * what the shelf has) would be quadratic: so after some scans an index is sorted, which holds until
 * the end of the turn or another change of the shelf, whichever is first. */
#include <stdlib.h>

#include "hub/cache_internal.h"
#include "wire/digest.h"

#define SEARCHES_BEFORE_INDEX 64
#define OBJECTS_WORTH_IT 1024
#define LEAVES_AHEAD 8

struct hub_key_index_row {
    uint64_t key;
    struct hub_object *object; /* NULL: it was deleted */
};

static uint64_t key_of(const struct hub_object *o)
{
    return kr_key_hash(hub_object_ns(o), hub_object_name(o));
}

static size_t index_size(const struct hub_key_index *x)
{
    return x->n * sizeof *x->rows;
}

void hub_key_index_drop(struct hub_cache *c)
{
    hub_ledger_free(&c->ledger, c->key_index.rows, index_size(&c->key_index));
    c->key_index = (struct hub_key_index){.shelf = NULL};
}

static int by_key(const void *a, const void *b)
{
    const struct hub_key_index_row *x = a;
    const struct hub_key_index_row *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

/* When there is no memory for it, scans go on. */
static void build(struct hub_cache *c, struct hub_shelf_box *s)
{
    struct hub_key_index *x = &c->key_index;
    struct hub_spot at = {.row = 0};

    x->n = s->live.count;
    x->rows = hub_ledger_alloc(&c->ledger, index_size(x));
    if (x->rows == NULL) {
        hub_key_index_drop(c);
        return;
    }
    for (size_t i = 0; i < x->n; i++) {
        x->rows[i].object = hub_tree_at(&s->live, at);
        x->rows[i].key = key_of(x->rows[i].object);
        hub_tree_step(&s->live, &at);
    }
    qsort(x->rows, x->n, sizeof *x->rows, by_key);
}

static bool find_by_index(struct hub_shelf_box *s, struct hub_key_index *x, uint64_t key,
                          struct hub_spot *out)
{
    struct hub_key_index_row like = {.key = key};
    struct hub_key_index_row *row = bsearch(&like, x->rows, x->n, sizeof like, by_key);
    struct hub_object *o;

    if (row == NULL || row->object == NULL)
        return false;
    o = row->object;
    row->object = NULL;
    return hub_tree_find(&s->live, hub_object_ns(o), hub_object_name(o), (uint16_t)key, out);
}

/* In a leaf of full size, the unused tags included: so compilers make it a few vector steps. */
static bool any_tag_is(const uint16_t *tags, uint16_t tag)
{
    uint16_t any = 0;

    for (size_t i = 0; i < HUB_LEAF_MAX; i++)
        any |= (uint16_t) - (tags[i] == tag);
    return any != 0;
}

static bool find_in_leaf(struct hub_leaf *l, uint64_t key, size_t *at)
{
    const uint16_t *tags = hub_leaf_tags(l);
    uint16_t tag = (uint16_t)key;

    if (l->cap == HUB_LEAF_MAX && !any_tag_is(tags, tag))
        return false;
    for (size_t i = 0; i < l->n; i++) {
        if (tags[i] == tag && key_of(l->items[i]) == key) {
            *at = i;
            return true;
        }
    }
    return false;
}

static bool find_by_tags(struct hub_shelf_box *s, uint64_t key, struct hub_spot *out)
{
    for (size_t row = 0; row < s->live.n; row++) {
        hub_tree_prefetch(&s->live, row + LEAVES_AHEAD, HUB_LEAF_TAGS, HUB_LEAF_END);
        if (find_in_leaf(s->live.rows[row].leaf, key, &out->at)) {
            out->row = row;
            return true;
        }
    }
    return false;
}

bool hub_key_index_find(struct hub_shelf_box *s, uint64_t key, struct hub_spot *out)
{
    struct hub_cache *c = s->pub.type->cache;
    struct hub_key_index *x = &c->key_index;

    if (x->shelf != s) {
        hub_key_index_drop(c);
        x->shelf = s;
        kr_task_post_last(c->sched, &c->turn_end);
    }
    if (x->rows == NULL && x->searches++ >= SEARCHES_BEFORE_INDEX &&
        s->live.count >= OBJECTS_WORTH_IT)
        build(c, s);
    return x->rows != NULL ? find_by_index(s, x, key, out) : find_by_tags(s, key, out);
}
