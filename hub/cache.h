/* SPDX-License-Identifier: Apache-2.0 */
/* cache: what the agents have sent, by type (group, version, resource) and, within it, one shelf
 * per cluster. A stream from a cluster can only touch that cluster's shelves: they are what its
 * subscription is given.
 *
 * Objects are immutable, counted, and kept as they came: compressed one by one, without
 * resourceVersion, apiVersion and kind. A shelf is ordered by (namespace, name), with the numbers
 * of label sets in dense columns beside it, so that a label filter looks at 4 bytes an object.
 * Every change gets a fleet revision and is written to the type's log, from which watchers read.
 *
 * Old content: what a pin or the log still needs stays, up to a bound; beyond it the oldest pin is
 * broken (hub_pin_broken: answer 410) and the log forgets (KR_ENOENT: answer 410).
 * A cluster that is away keeps its shelves; only hub_shelf_clear empties one.
 *
 * Memory: counted per shelf and in all, as the allocator rounds it (hub/ledger.h). Over the quota
 * of its cluster an object is refused (KR_EFULL): the subscription then goes on metadata only.
 * Limits: types, objects per shelf, bytes; see struct hub_cache_limits.
 * Errors: KR_ENOMEM, KR_EFULL, KR_ENOENT, KR_EINVAL (a text too long, or with a NUL). Threads: the
 *         worker's; pure (no I/O, but that hub/revision.h keeps its file). */
#ifndef HUB_CACHE_H
#define HUB_CACHE_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sched.h"
#include "hub/revision.h"
#include "kube/selector.h"

struct hub_cache;
struct hub_shelf;
struct hub_event;

struct hub_cache_limits {
    size_t types;           /* known at once */
    uint64_t cluster_bytes; /* quota of each cluster */
    size_t log_events;      /* the log of a type keeps at least so many (memory permitting) */
    int64_t log_ms;         /* and what is younger than this */
    uint64_t log_bytes;     /* but no more than this, old objects included; pins as much again */
    size_t pins;
    int64_t pin_ms; /* how long a pin lives after its last use */
};

#define HUB_UID_BUF 37 /* a UUID as text, and a NUL */

struct hub_object { /* immutable but for `version`; read it by the functions below */
    uint32_t refs;
    uint32_t label_set; /* number in the cache's table */
    uint64_t revision;  /* of the change that brought it */
    uint64_t hash;      /* as the agent told it: kr_object_hash */
    uint32_t size;      /* of the plain text: cells, newline, slim object */
    uint32_t packed_n;
    uint8_t dictionary;
    bool lossy;
    bool uuid;      /* the uid is kept as the 16 bytes that it stands for */
    uint8_t name_n; /* at most 253 */
    uint8_t ns_n;
    uint8_t uid_n;
    uint8_t version_n;
    uint8_t version_cap;
    uint8_t data[]; /* ns, NUL, name, uid, packed, version */
};

static inline struct kr_bytes hub_object_ns(const struct hub_object *o)
{
    return kr_bytes_of(o->data, o->ns_n);
}

static inline struct kr_bytes hub_object_name(const struct hub_object *o)
{
    return kr_bytes_of(o->data + o->ns_n + 1, o->name_n);
}

/* Lives in the object, or in `buf`. */
struct kr_bytes hub_object_uid(const struct hub_object *o, char buf[HUB_UID_BUF]);
struct kr_bytes hub_object_version(const struct hub_object *o); /* at the edge */
struct kr_bytes hub_object_packed(const struct hub_object *o);
struct hub_object *hub_object_ref(struct hub_object *o);
void hub_object_unref(struct hub_cache *c, struct hub_object *o);

struct hub_type { /* read it; one object for each type, it lives as long as the cache */
    struct hub_cache *cache;
    struct kr_bytes group;
    struct kr_bytes version;
    struct kr_bytes resource;
    uint64_t revision;        /* of its latest change; at first, the cache's at that time */
    size_t objects;           /* on all shelves */
    struct kr_list shelves;   /* hub_shelf.in_type, ordered by the cluster's name */
    struct kr_list listeners; /* hub_listener.link */
    struct kr_list link;      /* of the cache's types */
    void *watchers;           /* for watchers.c */
};

struct hub_shelf { /* read it; set the fields that are said to be the subscription's */
    struct hub_type *type;
    struct kr_list in_type;
    char cluster[64];
    size_t objects;
    uint64_t bytes;
    /* The subscription's: */
    bool synced;        /* it was complete at least once */
    bool metadata_only; /* the quota made it so */
    bool subscribed;
    int64_t stale_since_wall_ms; /* 0: an agent is keeping it in step */
    int problem;                 /* enum kr_sync_problem */
    char problem_text[128];
    char origin_version[64]; /* the last progress */
    struct kr_buf columns;   /* columnDefinitions as the cluster sent them */
    uint64_t columns_changed;
    struct hub_cluster_use *use; /* bytes of the cluster, over all its shelves */
};

struct hub_incoming {
    struct kr_bytes ns;
    struct kr_bytes name;
    struct kr_bytes uid;
    struct kr_bytes version;
    uint64_t hash;
    uint32_t dictionary;
    uint32_t size;
    bool lossy;
    struct kr_bytes packed;
    const struct kr_label *labels; /* sorted, without the one that the hub adds */
    size_t label_count;
};

/* ---- the cache and its parts ---- */

struct hub_cache *hub_cache_create(struct kr_sched *sched, struct hub_revision *revision,
                                   const struct hub_cache_limits *limits);
void hub_cache_destroy(struct hub_cache *c); /* the watchers and walks are gone */
/* Finds; or adds (NULL: the limit, or memory). */
struct hub_type *hub_cache_find_type(struct hub_cache *c, struct kr_bytes group,
                                     struct kr_bytes version, struct kr_bytes resource);
struct hub_type *hub_cache_add_type(struct hub_cache *c, struct kr_bytes group,
                                    struct kr_bytes version, struct kr_bytes resource);
struct kr_list *hub_cache_types(struct hub_cache *c); /* hub_type.link */
struct hub_shelf *hub_type_find_shelf(struct hub_type *t, struct kr_bytes cluster);
struct hub_shelf *hub_type_add_shelf(struct hub_type *t, struct kr_bytes cluster);
/* Bytes that the cache holds: of one cluster; of all, log and pins included. */
uint64_t hub_cache_cluster_bytes(const struct hub_cache *c, struct kr_bytes cluster);
uint64_t hub_cache_bytes(const struct hub_cache *c);
uint64_t hub_cache_now(const struct hub_cache *c); /* the revision of the latest change of all */
/* The labels of a set, sorted. Valid until the next call but one, or the next put. */
const struct kr_label *hub_cache_labels(const struct hub_cache *c, uint32_t label_set, size_t *n);

/* ---- changes, by the subscription of that shelf only ---- */

/* Adds or replaces. An object of the same hash only gets the new origin version, without an event.
 * Another uid under the same name is a delete and an add: two events. 0, or 1 if nothing that
 * counts has changed. */
int hub_shelf_put(struct hub_shelf *s, const struct hub_incoming *in);
bool hub_shelf_delete(struct hub_shelf *s, struct kr_bytes ns, struct kr_bytes name);
/* By hash of the key (kr_key_hash). */
bool hub_shelf_delete_hash(struct hub_shelf *s, uint64_t key);
/* All objects go, each with its event: the cluster has left, or nobody wants the type any more
 * (`quiet`: without events, the type has no readers; its log forgets all). */
void hub_shelf_clear(struct hub_shelf *s, bool quiet);
/* Clear, then takes the shelf out of its type and frees it. */
void hub_shelf_remove(struct hub_shelf *s);
/* Whether the object still has this revision (a fleet revision that a client sends back). */
const struct hub_object *hub_shelf_get(struct hub_shelf *s, struct kr_bytes ns,
                                       struct kr_bytes name);
/* Steps through a shelf in no order that matters, for digests: start with *pos zeroed; no change
 * may come between the steps. */
struct hub_shelf_pos {
    size_t leaf;
    size_t at;
};
const struct hub_object *hub_shelf_next(struct hub_shelf *s, struct hub_shelf_pos *pos);

/* ---- reading at one revision ---- */

/* A pin keeps all that a type shows at a revision. At most limits.pins; the one unused for longest
 * breaks first. NULL: memory. */
struct hub_pin;
struct hub_pin *hub_pin_take(struct hub_type *t); /* at the type's present content */
struct hub_pin *hub_pin_find(struct hub_type *t, uint64_t revision); /* NULL: 410. Counts as use */
uint64_t hub_pin_revision(const struct hub_pin *p);
bool hub_pin_broken(const struct hub_pin *p);
/* The taker is done; the pin stays for its pin_ms, so that the next page finds it (`keep`), or goes
 * with its last user. */
void hub_pin_release(struct hub_pin *p, bool keep);

/* Who may see what, decided for one reader and type: per shelf none, all, or some namespaces.
 * Filled by readers.c; the walk asks it once per shelf, and per namespace where it must. */
struct hub_sight {
    /* 0: nothing of this cluster; 1: all; 2: ask `namespace` for each. */
    int (*cluster)(const void *sight, const struct hub_shelf *s);
    bool (*ns)(const void *sight, const struct hub_shelf *s, struct kr_bytes ns);
};

struct hub_walk_query {
    struct hub_type *type;
    struct hub_pin *pin;           /* NULL: the present content; then no change between the steps */
    const struct hub_sight *sight; /* NULL: sees all */
    struct kr_bytes ns;            /* empty: all */
    const struct kr_label_selector *labels; /* may speak of kuberelay.io/cluster */
    struct kr_bytes after_ns;               /* start behind this key; all empty: at the start */
    struct kr_bytes after_name;
    struct kr_bytes after_cluster;
};

/* Steps through a type in the order (namespace, name, cluster). Field selectors are the caller's.
 */
struct hub_walk;
struct hub_walk *hub_walk_create(const struct hub_walk_query *q); /* copies texts; NULL: memory */
void hub_walk_destroy(struct hub_walk *w);
/* NULL: the end (or its pin is broken: ask hub_pin_broken). The object is lent until the next step,
 * or ref it. With a pin the walk survives changes between its steps; the shelf may be gone by then
 * (*cluster stays valid for the step). */
struct hub_object *hub_walk_next(struct hub_walk *w, const char **cluster);

/* ---- the log: what happened, in order ---- */

enum hub_change { HUB_ADDED, HUB_MODIFIED, HUB_DELETED };

#define HUB_EVENT_FORMS 4

struct hub_event { /* immutable but for `shown`; lives as long as the log keeps it or it is ref'd */
    uint32_t refs;
    enum hub_change change;
    uint64_t revision;
    const char *cluster;       /* one text for each name, as long as the cache lives */
    struct hub_object *object; /* DELETED: its last state */
    struct hub_object *before; /* MODIFIED: the state before; else NULL */
    /* The text of the event as watchers send it, made once by the first that needs it; freed with
     * the event. Slots are watchers.c's own. */
    struct hub_shown *shown[HUB_EVENT_FORMS];
    /* The rest belongs to change_log.c. */
    struct hub_type *type;
    struct hub_event *next_lent;
    uint64_t number; /* in the log of its type */
    int64_t at_ms;
    uint32_t weight; /* bytes that would not be there without the event, but for its texts */
    uint32_t text_n; /* bytes of texts that the log has counted */
    uint32_t lent;   /* the turn in which it was lent last */
};

struct hub_event *hub_event_ref(struct hub_event *e);
void hub_event_unref(struct hub_cache *c, struct hub_event *e);

/* Text that several watchers send: counted, by malloc. The log counts it among its bytes, and lets
 * it go before the event itself when many events came after. */
struct hub_shown {
    uint32_t refs;
    uint32_t n;
    uint8_t text[];
};
void hub_shown_unref(struct hub_shown *s);

/* A place in the log of a type: behind all events up to a revision. */
struct hub_place {
    struct hub_type *type;
    uint64_t next; /* number of the next event */
};

/* KR_ENOENT: the log does not reach back that far. */
int hub_place_at(struct hub_type *t, uint64_t revision, struct hub_place *out);
void hub_place_at_end(struct hub_type *t, struct hub_place *out);
/* 1: an event (lent until the caller returns to the loop, or ref it); 0: no more now; KR_ENOENT: it
 * fell off the log. */
int hub_place_next(struct hub_place *p, struct hub_event **out);

/* Called once after a turn in which events came. Listeners may come and go in the call. */
struct hub_listener {
    struct kr_list link;
    void (*on_events)(struct hub_listener *l);
};
void hub_type_listen(struct hub_type *t, struct hub_listener *l);
void hub_listener_stop(struct hub_listener *l);

#endif
