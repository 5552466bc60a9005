/* SPDX-License-Identifier: Apache-2.0 */
/* tree: objects in the order (namespace, name, revision), in leaves of up to HUB_LEAF_MAX under one
 * directory: insertion moves part of a leaf, and of the directory when a leaf is split. Beside the
 * pointers each leaf has dense columns: the label sets, which filters scan without touching an
 * object, and 16 bits of each key's hash, by which a key is found whose text is not known.
 * Two kinds: of objects as they are, and of old ones (struct hub_old), which say until when they
 * were current.
 * Memory: the tree and its leaves, about 21 bytes an object after random insertion, 15 after one in
 *         order; counted in the ledger. The items are the owner's.
 * Errors: KR_ENOMEM, and nothing has changed. Threads: one owner. */
#ifndef HUB_TREE_H
#define HUB_TREE_H

#include "base/bytes.h"
#include "base/list.h"
#include "hub/ledger.h"

#define HUB_LEAF_MAX 64

struct hub_object;
struct hub_shelf;

/* A version that was replaced or deleted, while a pin needs it. */
struct hub_old {
    struct hub_object *object;
    uint64_t until; /* revision of the change that ended it */
    struct hub_shelf *shelf;
    struct kr_list link; /* of its pin */
};

struct hub_leaf { /* the columns stand behind it: see hub_leaf_* */
    uint16_t n;
    uint16_t cap;
    uint64_t newest; /* no object in it has a higher revision */
    void *items[];   /* struct hub_object or struct hub_old */
};

struct hub_tree_row {
    struct hub_leaf *leaf;
    const struct hub_object *first; /* of the leaf */
};

struct hub_tree { /* embed it; read it, change it by the functions only */
    struct hub_ledger *ledger;
    struct hub_tree_row *rows;
    size_t n;
    size_t cap;
    size_t count;     /* of objects */
    uint64_t bytes;   /* of the tree itself */
    uint64_t *clock;  /* rises with each change of any tree that shares it */
    uint64_t changed; /* at the last change of this one: spots from later on are good */
    bool old;         /* items are struct hub_old */
};

/* Where the columns of a full-sized leaf begin; a tree of several leaves has no others. */
#define HUB_LEAF_SETS (sizeof(struct hub_leaf) + HUB_LEAF_MAX * sizeof(void *))
#define HUB_LEAF_TAGS (HUB_LEAF_SETS + HUB_LEAF_MAX * sizeof(uint32_t))
#define HUB_LEAF_END (HUB_LEAF_TAGS + HUB_LEAF_MAX * sizeof(uint16_t))

struct hub_spot { /* a place in a tree; past the end: row == n */
    size_t row;
    size_t at;
};

struct hub_key {
    struct kr_bytes ns;
    struct kr_bytes name;
    uint64_t revision;
};

static inline uint32_t *hub_leaf_sets(struct hub_leaf *l)
{
    return (uint32_t *)(void *)(l->items + l->cap);
}

static inline uint16_t *hub_leaf_tags(struct hub_leaf *l)
{
    return (uint16_t *)(void *)(hub_leaf_sets(l) + l->cap);
}

static inline struct hub_object *hub_tree_object(const struct hub_tree *t, void *item)
{
    return t->old ? ((struct hub_old *)item)->object : item;
}

/* The item at a spot; NULL past the end. */
static inline void *hub_tree_at(const struct hub_tree *t, struct hub_spot s)
{
    return s.row < t->n ? t->rows[s.row].leaf->items[s.at] : NULL;
}

static inline void hub_tree_step(const struct hub_tree *t, struct hub_spot *s)
{
    if (++s->at >= t->rows[s->row].leaf->n) {
        s->row++;
        s->at = 0;
    }
}

/* Leaves lie anywhere, so a scan asks early for what it will look at: bytes [from, to) of a leaf.
 */
static inline void hub_tree_prefetch(const struct hub_tree *t, size_t row, size_t from, size_t to)
{
    const char *leaf;

    if (row >= t->n)
        return;
    leaf = (const char *)t->rows[row].leaf;
    __builtin_prefetch(leaf);
    for (; from < to; from += 64)
        __builtin_prefetch(leaf + from);
}

void hub_tree_init(struct hub_tree *t, struct hub_ledger *ledger, uint64_t *clock, bool old);
void hub_tree_deinit(struct hub_tree *t); /* the items are not touched */
/* The first item that is not before the key. */
struct hub_spot hub_tree_seek(const struct hub_tree *t, const struct hub_key *key);
/* The item of a key that was put with this tag, in a tree that has no key twice; false: `spot` is
 * where it would be. */
bool hub_tree_find(const struct hub_tree *t, struct kr_bytes ns, struct kr_bytes name, uint16_t tag,
                   struct hub_spot *spot);
/* Puts an item before the spot, which hub_tree_seek or _find gave for its key. */
int hub_tree_insert(struct hub_tree *t, struct hub_spot spot, void *item, uint16_t tag);
/* Another item of the same key. */
void hub_tree_replace(struct hub_tree *t, struct hub_spot spot, void *item);
void hub_tree_remove(struct hub_tree *t, struct hub_spot spot);
/* All at once. */
void hub_tree_empty(struct hub_tree *t);

#endif
