/* SPDX-License-Identifier: Apache-2.0 */
/* store: the objects of one simulated cluster, its resourceVersion and its recent history.
 *
 * An object is a revision: either a blob of JSON text, or the coordinates of a generated one. The
 * history is a ring of events that keep the revision before and after; lists at an older version
 * and watches are answered from it, and what fell out of it is "too old" (410).
 * Memory: blobs are counted; a revision that is kept is copied with sim_rev_ref.
 * Threads: one. Limits: `history` events; objects as memory lasts. */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include "base/list.h"
#include "base/sched.h"
#include "gen.h"
#include "json.h"
#include "kinds.h"

struct sim_blob {
    uint32_t refs;
    uint32_t n;
    char text[];
};

struct sim_rev {
    struct sim_blob *blob; /* NULL: generated */
    uint64_t rv;           /* 0: no object */
    struct sim_gen_id gen;
};

struct sim_obj {
    struct sim_rev rev;
    char key[]; /* "namespace/name" or "name" */
};

struct sim_coll { /* sorted by key */
    struct sim_obj **objs;
    size_t n;
    size_t cap;
};

enum sim_event_type { SIM_ADDED, SIM_MODIFIED, SIM_DELETED };

struct sim_event {
    uint64_t rv;
    int kind;
    enum sim_event_type type;
    struct sim_rev now;  /* after DELETED: the last state, with this event's version */
    struct sim_rev prev; /* .rv 0 before ADDED */
    char *key;
};

/* Someone who wants to know that there is something new. */
struct sim_listener {
    int kind;
    void (*wake)(struct sim_listener *l);
    struct kr_list link; /* sim_cluster.listeners */
};

struct sim_cluster_config {
    struct sim_world world;
    struct kr_sched *sched;
    size_t history; /* events kept */
};

struct sim_cluster {
    struct sim_world world;
    struct kr_sched *sched;
    char name[64];
    uint64_t rv;
    struct sim_coll *colls; /* one per kind */
    struct sim_event *ring;
    size_t ring_cap;
    size_t ring_first;
    size_t ring_n;
    uint64_t compacted;       /* events up to this version are gone */
    struct kr_list listeners; /* sim_listener.link */
    struct kr_list dues;      /* sim_due.link, see lifecycle.h */
    struct kr_timer due_timer;
    struct kr_list faults; /* sim_fault.link, see faults.h */
    struct kr_list seen;   /* sim_seen.link, see faults.h */
    size_t seen_n;
    uint64_t random;         /* state of sim_random */
    struct sim_fleet *fleet; /* all clusters of the process; NULL: it is alone. See churn.h */
    struct kr_list in_fleet; /* sim_fleet.clusters */
    uint32_t churn_debt;     /* thousandths of a change */
    bool real_time;          /* times of changes are the clock's, to the microsecond */
    uint64_t requests;
    uint64_t watches;
};

struct sim_cluster *sim_cluster_create(const struct sim_cluster_config *cfg);
void sim_cluster_destroy(struct sim_cluster *c);
uint64_t sim_random(struct sim_cluster *c);

struct sim_obj *sim_store_get(const struct sim_cluster *c, int kind, const char *key);
/* Index of the first object whose key is >= key. */
size_t sim_store_lower(const struct sim_cluster *c, int kind, const char *key);
/* Creates or replaces. Sets metadata.resourceVersion of `v` and keeps its text. KR_ENOMEM. */
int sim_store_put(struct sim_cluster *c, int kind, const char *key, struct json_object *v);
/* The object must exist. If `out` is not NULL it gets the last state, with the new version. */
int sim_store_delete(struct sim_cluster *c, int kind, const char *key, struct sim_rev *out);
/* The next state of a generated object; nothing for one that has been written to. */
void sim_store_change(struct sim_cluster *c, int kind, struct sim_obj *o, struct sim_gen_id now);
/* Replaces a generated object by its next life (new name, new uid), begun at at_us. */
void sim_store_replace(struct sim_cluster *c, int kind, struct sim_obj *o, int64_t at_us);
/* Forgets the history: every older version is too old from now on. */
void sim_store_compact(struct sim_cluster *c);

struct sim_rev sim_rev_ref(struct sim_rev r);
void sim_rev_unref(struct sim_rev *r);
/* Appends the JSON text. */
int sim_rev_text(const struct sim_cluster *c, int kind, const struct sim_rev *r,
                 struct kr_buf *out);
/* A new tree; NULL when memory is short. */
struct json_object *sim_rev_tree(const struct sim_cluster *c, int kind, const struct sim_rev *r);

/* The first event after version rv; NULL if there is none. rv must be >= c->compacted. */
const struct sim_event *sim_store_event_after(const struct sim_cluster *c, uint64_t rv);

struct sim_snap { /* what existed at a version, in key order */
    struct sim_snap_item {
        struct sim_rev rev;
        char *key;
        size_t place; /* for snap.c */
    } * items;
    size_t n;
    size_t cap;
};

/* All objects of a kind whose key starts with `prefix` and is >= `from`, as of version `at`
 * (c->compacted <= at <= c->rv). */
int sim_snap_take(const struct sim_cluster *c, int kind, const char *prefix, const char *from,
                  uint64_t at, struct sim_snap *out);
void sim_snap_deinit(struct sim_snap *s);

#endif
