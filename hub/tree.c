/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/tree.h"

#include "base/err.h"
#include "hub/cache.h"

#define LEAF_MIN 4
#define LEND_MIN 4
#define ITEM_BYTES (sizeof(void *) + sizeof(uint32_t) + sizeof(uint16_t))

static size_t leaf_size(size_t cap)
{
    return sizeof(struct hub_leaf) + cap * ITEM_BYTES;
}

static size_t rows_size(size_t cap)
{
    return cap * sizeof(struct hub_tree_row);
}

static void *take(struct hub_tree *t, size_t size)
{
    void *p = hub_ledger_alloc(t->ledger, size);

    if (p != NULL)
        t->bytes += hub_footprint(size);
    return p;
}

static void give(struct hub_tree *t, void *p, size_t size)
{
    if (p == NULL)
        return;
    t->bytes -= hub_footprint(size);
    hub_ledger_free(t->ledger, p, size);
}

void hub_tree_init(struct hub_tree *t, struct hub_ledger *ledger, uint64_t *clock, bool old)
{
    *t = (struct hub_tree){.ledger = ledger, .clock = clock, .old = old};
}

void hub_tree_empty(struct hub_tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        give(t, t->rows[i].leaf, leaf_size(t->rows[i].leaf->cap));
    give(t, t->rows, rows_size(t->cap));
    t->rows = NULL;
    t->n = t->cap = t->count = 0;
    t->changed = ++*t->clock;
}

void hub_tree_deinit(struct hub_tree *t)
{
    hub_tree_empty(t);
}

/* ---- finding ---- */

/* Order of an object and a key. */
static int compare(const struct hub_object *o, const struct hub_key *key)
{
    int d = kr_bytes_compare(hub_object_ns(o), key->ns);

    if (d == 0)
        d = kr_bytes_compare(hub_object_name(o), key->name);
    if (d != 0)
        return d;
    return o->revision < key->revision ? -1 : o->revision > key->revision;
}

/* The last leaf that does not begin after the key, or the first leaf. */
static size_t seek_row(const struct hub_tree *t, const struct hub_key *key)
{
    size_t low = 0;
    size_t high = t->n;

    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(t->rows[middle].first, key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The first item of a row that is not before the key, or the next row. */
static struct hub_spot seek_in_row(const struct hub_tree *t, size_t row, const struct hub_key *key)
{
    const struct hub_leaf *leaf = t->rows[row].leaf;
    size_t low = 0;
    size_t high = leaf->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(hub_tree_object(t, leaf->items[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < leaf->n ? (struct hub_spot){.row = row, .at = low}
                         : (struct hub_spot){.row = row + 1};
}

struct hub_spot hub_tree_seek(const struct hub_tree *t, const struct hub_key *key)
{
    if (t->n == 0)
        return (struct hub_spot){.row = 0};
    return seek_in_row(t, seek_row(t, key), key);
}

bool hub_tree_find(const struct hub_tree *t, struct kr_bytes ns, struct kr_bytes name, uint16_t tag,
                   struct hub_spot *spot)
{
    struct hub_key key = {.ns = ns, .name = name, .revision = UINT64_MAX};
    struct hub_leaf *leaf;
    const uint16_t *tags;

    *spot = (struct hub_spot){.row = 0};
    if (t->n == 0)
        return false;
    spot->row = seek_row(t, &key);
    leaf = t->rows[spot->row].leaf;
    tags = hub_leaf_tags(leaf);
    for (spot->at = 0; spot->at < leaf->n; spot->at++) {
        const struct hub_object *o = leaf->items[spot->at];

        if (tags[spot->at] == tag && kr_bytes_eq(hub_object_name(o), name) &&
            kr_bytes_eq(hub_object_ns(o), ns))
            return true;
    }
    *spot = seek_in_row(t, spot->row, &key);
    return false;
}

/* ---- leaves ---- */

static void set_first(struct hub_tree *t, size_t row)
{
    t->rows[row].first = hub_tree_object(t, t->rows[row].leaf->items[0]);
}

/* Copies n entries; the ranges may overlap within one leaf. */
static void move(struct hub_leaf *to, size_t to_at, struct hub_leaf *from, size_t from_at, size_t n)
{
    memmove(to->items + to_at, from->items + from_at, n * sizeof *to->items);
    memmove(hub_leaf_sets(to) + to_at, hub_leaf_sets(from) + from_at, n * sizeof(uint32_t));
    memmove(hub_leaf_tags(to) + to_at, hub_leaf_tags(from) + from_at, n * sizeof(uint16_t));
}

static struct hub_leaf *leaf_create(struct hub_tree *t, size_t cap)
{
    struct hub_leaf *l = take(t, leaf_size(cap));

    if (l == NULL)
        return NULL;
    l->n = 0;
    l->cap = (uint16_t)cap;
    l->newest = 0;
    memset(hub_leaf_tags(l), 0, cap * sizeof(uint16_t)); /* scans read those of no item, too */
    return l;
}

/* Room for `cap` in the leaf of a row. */
static int leaf_resize(struct hub_tree *t, size_t row, size_t cap)
{
    struct hub_leaf *old = t->rows[row].leaf;
    struct hub_leaf *l = leaf_create(t, cap);

    if (l == NULL)
        return KR_ENOMEM;
    move(l, 0, old, 0, old->n);
    l->n = old->n;
    l->newest = old->newest;
    t->rows[row].leaf = l;
    give(t, old, leaf_size(old->cap));
    return 0;
}

static int rows_reserve(struct hub_tree *t)
{
    size_t cap = t->cap != 0 ? t->cap + t->cap / 2 + 1 : 1;
    struct hub_tree_row *rows;

    if (t->n < t->cap)
        return 0;
    rows = take(t, rows_size(cap));
    if (rows == NULL)
        return KR_ENOMEM;
    if (t->n != 0)
        memcpy(rows, t->rows, rows_size(t->n));
    give(t, t->rows, rows_size(t->cap));
    t->rows = rows;
    t->cap = cap;
    return 0;
}

/* A new leaf becomes `row`; those from there on move up. Its first is to be set. */
static int row_insert(struct hub_tree *t, size_t row, size_t cap)
{
    struct hub_leaf *l;

    if (rows_reserve(t) != 0)
        return KR_ENOMEM;
    l = leaf_create(t, cap);
    if (l == NULL)
        return KR_ENOMEM;
    memmove(t->rows + row + 1, t->rows + row, rows_size(t->n - row));
    t->rows[row] = (struct hub_tree_row){.leaf = l};
    t->n++;
    return 0;
}

static void row_remove(struct hub_tree *t, size_t row)
{
    struct hub_leaf *l = t->rows[row].leaf;

    t->n--;
    memmove(t->rows + row, t->rows + row + 1, rows_size(t->n - row));
    give(t, l, leaf_size(l->cap));
    if (t->n == 0) {
        give(t, t->rows, rows_size(t->cap));
        t->rows = NULL;
        t->cap = 0;
    }
}

/* ---- inserting ---- */

/* Where it goes, made so that the leaf has room. */
static int split(struct hub_tree *t, struct hub_spot *s)
{
    struct hub_leaf *full = t->rows[s->row].leaf;
    struct hub_leaf *l;
    /* What comes in order fills leaves whole. */
    size_t keep = s->row + 1 == t->n && s->at == full->n ? full->n : full->n / 2;

    if (row_insert(t, s->row + 1, HUB_LEAF_MAX) != 0)
        return KR_ENOMEM;
    l = t->rows[s->row + 1].leaf;
    l->newest = full->newest;
    l->n = (uint16_t)(full->n - keep);
    move(l, 0, full, keep, l->n);
    full->n = (uint16_t)keep;
    if (l->n != 0)
        set_first(t, s->row + 1);
    if (s->at >= keep && (s->at > keep || l->n == 0))
        *s = (struct hub_spot){.row = s->row + 1, .at = s->at - keep};
    return 0;
}

/* Moves some of a full leaf to the one before it, if that has room: leaves stay fuller than by
 * splitting alone. */
static bool lend_left(struct hub_tree *t, struct hub_spot *s)
{
    struct hub_leaf *full = t->rows[s->row].leaf;
    struct hub_leaf *left = s->row > 0 ? t->rows[s->row - 1].leaf : NULL;
    size_t n = left != NULL ? (size_t)(HUB_LEAF_MAX - left->n) / 2 : 0;
    size_t had;

    if (n < LEND_MIN)
        return false;
    had = left->n;
    move(left, had, full, 0, n);
    move(full, 0, full, n, full->n - n);
    left->n = (uint16_t)(had + n);
    full->n = (uint16_t)(full->n - n);
    if (full->newest > left->newest)
        left->newest = full->newest;
    set_first(t, s->row);
    *s = s->at <= n ? (struct hub_spot){.row = s->row - 1, .at = had + s->at}
                    : (struct hub_spot){.row = s->row, .at = s->at - n};
    return true;
}

static int make_room(struct hub_tree *t, struct hub_spot *s)
{
    struct hub_leaf *l;

    if (t->n == 0)
        return row_insert(t, 0, LEAF_MIN);
    /* Before the first of a leaf is as good as behind the last of the one before it. */
    if (s->at == 0 && s->row > 0)
        *s = (struct hub_spot){.row = s->row - 1, .at = t->rows[s->row - 1].leaf->n};
    l = t->rows[s->row].leaf;
    if (l->n < l->cap)
        return 0;
    if (l->cap < HUB_LEAF_MAX)
        return leaf_resize(t, s->row, (size_t)l->cap * 2);
    return lend_left(t, s) ? 0 : split(t, s);
}

static void set_entry(struct hub_tree *t, struct hub_spot s, void *item)
{
    struct hub_leaf *l = t->rows[s.row].leaf;
    const struct hub_object *o = hub_tree_object(t, item);

    l->items[s.at] = item;
    hub_leaf_sets(l)[s.at] = o->label_set;
    if (o->revision > l->newest)
        l->newest = o->revision;
    if (s.at == 0)
        t->rows[s.row].first = o;
    t->changed = ++*t->clock;
}

int hub_tree_insert(struct hub_tree *t, struct hub_spot spot, void *item, uint16_t tag)
{
    struct hub_leaf *l;

    if (make_room(t, &spot) != 0)
        return KR_ENOMEM;
    l = t->rows[spot.row].leaf;
    move(l, spot.at + 1, l, spot.at, l->n - spot.at);
    l->n++;
    t->count++;
    set_entry(t, spot, item);
    hub_leaf_tags(l)[spot.at] = tag;
    return 0;
}

void hub_tree_replace(struct hub_tree *t, struct hub_spot spot, void *item)
{
    set_entry(t, spot, item);
}

/* ---- removing ---- */

/* Joins a leaf with the one behind it if both fit well into one. */
static bool join(struct hub_tree *t, size_t row)
{
    struct hub_leaf *a;
    struct hub_leaf *b;

    if (row + 1 >= t->n)
        return false;
    a = t->rows[row].leaf;
    b = t->rows[row + 1].leaf;
    if (a->cap < HUB_LEAF_MAX || a->n + b->n > HUB_LEAF_MAX * 3 / 4)
        return false;
    move(a, a->n, b, 0, b->n);
    a->n = (uint16_t)(a->n + b->n);
    if (b->newest > a->newest)
        a->newest = b->newest;
    row_remove(t, row + 1);
    return true;
}

static void tidy(struct hub_tree *t, size_t row)
{
    struct hub_leaf *l = t->rows[row].leaf;

    if (l->n == 0) {
        row_remove(t, row);
        return;
    }
    set_first(t, row);
    if (!join(t, row) && row > 0)
        (void)join(t, row - 1);
    /* A small shelf is small; it stays as it is if there is no memory to make it so. */
    if (t->n == 1 && t->rows[0].leaf->n * 4 <= t->rows[0].leaf->cap &&
        t->rows[0].leaf->cap > LEAF_MIN)
        (void)leaf_resize(t, 0, t->rows[0].leaf->cap / 2);
}

void hub_tree_remove(struct hub_tree *t, struct hub_spot spot)
{
    struct hub_leaf *l = t->rows[spot.row].leaf;

    move(l, spot.at, l, spot.at + 1, l->n - spot.at - 1);
    l->n--;
    t->count--;
    t->changed = ++*t->clock;
    tidy(t, spot.row);
}
