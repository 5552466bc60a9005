/* SPDX-License-Identifier: Apache-2.0 */
/* cache_internal: what the files of the cache share: cache.c (types and shelves), object.c,
 * shelf.c, key_index.c, change_log.c, pin.c, walk.c. Nobody else includes it. */
#ifndef HUB_CACHE_INTERNAL_H
#define HUB_CACHE_INTERNAL_H

#include "base/assert.h"
#include "base/err.h"
#include "hub/cache.h"
#include "hub/cluster_use.h"
#include "hub/label_sets.h"
#include "hub/tree.h"

struct hub_log { /* of one type; belongs to change_log.c */
    struct hub_event **ring;
    size_t cap;     /* a power of two, or 0 */
    uint64_t head;  /* number of the oldest event */
    uint64_t end;   /* number of the next one */
    uint64_t floor; /* events up to this revision are forgotten */
    uint64_t bytes; /* weight of its events */
    uint64_t texts; /* events before it have no text any more */
};

struct hub_type_box {
    struct hub_type pub;
    struct hub_shelf_box **shelves; /* sorted by cluster, as in the list */
    size_t shelf_count;
    size_t shelf_cap;
    struct kr_list ghosts; /* hub_shelf.in_type: removed, but a pin or a walk needs them */
    struct kr_list pins;   /* hub_pin.in_type, oldest first */
    struct kr_list dirty;  /* of the cache's dirty types */
    struct hub_log log;
    size_t key_n;
    char key[]; /* group, version, resource, each with a NUL behind it */
};

struct hub_shelf_box {
    struct hub_shelf pub;
    struct hub_tree live;
    struct hub_tree old;
    size_t refs; /* walks */
    bool removed;
};

/* For many deletes by hash in one turn: see key_index.c. */
struct hub_key_index {
    struct hub_shelf_box *shelf; /* of which the rest tells; NULL: none */
    size_t searches;             /* without an index */
    struct hub_key_index_row *rows;
    size_t n;
};

struct hub_cache {
    struct kr_sched *sched;
    struct hub_revision *revision;
    struct hub_cache_limits limits;
    struct hub_ledger ledger;
    struct hub_label_sets label_sets;
    uint64_t clock;       /* of all trees: see tree.h */
    struct kr_map uses;   /* hub_cluster_use by name */
    struct kr_map by_key; /* hub_type_box */
    struct kr_list types; /* hub_type.link */
    struct kr_list dirty; /* hub_type_box.dirty: events came in this turn */
    struct kr_list pins;  /* hub_pin.in_cache, oldest first */
    size_t pin_count;
    uint64_t pin_bytes; /* held by pins alone */
    uint64_t log_bytes; /* weight of all events of all logs */
    uint64_t text_bytes;
    struct hub_event *lent; /* in this turn: by next_lent, each with a reference */
    uint32_t turn;          /* from 1 */
    struct kr_task turn_end;
    struct kr_timer log_timer;
    struct hub_key_index key_index;
};

static inline struct hub_type_box *hub_type_box(struct hub_type *t)
{
    return KR_CONTAINER_OF(t, struct hub_type_box, pub);
}

static inline struct hub_shelf_box *hub_shelf_box(struct hub_shelf *s)
{
    return KR_CONTAINER_OF(s, struct hub_shelf_box, pub);
}

/* ---- object.c ---- */

size_t hub_object_bytes(const struct hub_object *o); /* what it takes from the allocator */
/* The key as one run of bytes, in the order of which walks go: namespace, NUL, name. */
static inline struct kr_bytes hub_object_key(const struct hub_object *o)
{
    return kr_bytes_of(o->data, (size_t)o->ns_n + 1 + o->name_n);
}
/* KR_EINVAL, KR_ETOOBIG: a text is too long. *size: what hub_object_create will allocate. */
int hub_object_measure(const struct hub_incoming *in, size_t *size);
/* With one reference; revision 0. Takes over the caller's reference to the label set. */
struct hub_object *hub_object_create(struct hub_cache *c, const struct hub_incoming *in,
                                     uint32_t label_set);
bool hub_object_has_uid(const struct hub_object *o, struct kr_bytes uid);
/* False: the new version does not fit. */
bool hub_object_set_version(struct hub_object *o, struct kr_bytes version);

/* ---- cache.c ---- */

uint64_t hub_cache_next_revision(struct hub_cache *c);
/* After the last user of a removed shelf. */
void hub_shelf_bury(struct hub_shelf_box *s);

/* ---- key_index.c ---- */

/* The spot of the object whose key has this hash. */
bool hub_key_index_find(struct hub_shelf_box *s, uint64_t key, struct hub_spot *out);
void hub_key_index_drop(struct hub_cache *c);
static inline void hub_key_index_changed(struct hub_cache *c, const struct hub_shelf_box *s)
{
    if (c->key_index.shelf == s)
        hub_key_index_drop(c);
}

/* ---- change_log.c ---- */

void hub_log_init(struct hub_cache *c); /* the parts in the cache */
/* Writes one event of the type's latest revision. `object` is for DELETED, and `before` for
 * MODIFIED, the version that has just left the shelf. Takes references of its own. Never fails:
 * when memory is short, the log forgets. */
void hub_log_append(struct hub_shelf_box *s, enum hub_change change, struct hub_object *object,
                    struct hub_object *before);
/* An object was replaced by its twin, without an event. */
void hub_log_exchange(struct hub_type_box *t, struct hub_object *old, struct hub_object *twin);
/* All events up to now are as if they had fallen off. */
void hub_log_forget(struct hub_type_box *t);
/* At the end of a turn. */
void hub_log_turn(struct hub_cache *c);

/* ---- pin.c ---- */

/* An object of the shelf was replaced or deleted by the change `until`; kept if a pin needs it. */
void hub_pin_keep(struct hub_shelf_box *s, struct hub_object *o, uint64_t until);
struct hub_pin *hub_pin_ref(struct hub_pin *p); /* one more user */
void hub_pins_break_all(struct hub_cache *c);

#endif
