/* SPDX-License-Identifier: Apache-2.0 */
/* reflector: follows the objects of one target on the local API server: list, then watch, again and
 * again, for as long as it runs (client-go tools/cache/reflector.go is the model).
 *
 * Happy path: (place at the gate) -> a watch that begins with all objects (WatchList, KEP-3157), or
 *         pages of a list and then a watch -> changes and bookmarks -> the watch ends after 5 to 10
 *         minutes -> the next one, from the last version.
 * What can go wrong, and then:
 *   WatchList refused (4xx)           pages
 *   410, as status or as ERROR event  a new list; within pages the list begins anew
 *   401 (a newer token did not help), 5xx, reset, cut, silence    back-off, the version is kept
 *   403                               told, tried every 5 minutes
 *   404                               discovery is asked; only if it agrees the type is gone: told,
 *                                     tried when the catalog changes
 *   429                               as Retry-After says, the version is kept
 *   a version that runs backwards     a new list (etcd was restored). Looked for in every event,
 * and before each watch that goes on from an old version Versions are opaque but for that
 * comparison, which is made only between decimal numbers. A list that breaks is never told as
 * ended: nothing is to be deleted because of it.
 *
 * Back-pressure: after each run of bytes `may_read` is asked; on no, nothing is read until
 *         agent_reflector_read_on. A list that is stopped so for long gives its place back.
 * Life:    init, start, ..., deinit. `ops` are never called from inside a call of the owner; the
 * owner may call anything but deinit from within them. Memory:  one event or element that spans
 * reads. Threads: the agent's. */
#ifndef AGENT_REFLECTOR_H
#define AGENT_REFLECTOR_H

#include "agent/catalog.h"
#include "agent/list_gate.h"
#include "agent/local_get.h"
#include "agent/reading.h"
#include "agent/target.h"
#include "base/backoff.h"
#include "wire/sync_messages.h"

#define AGENT_VERSION_MAX 4096 /* of a resourceVersion */

struct agent_reflector_ops {
    /* All objects follow, then on_list_end. Comes again if that broke on the way. */
    void (*on_list)(void *user);
    /* It is there, new or changed. Non-zero: what was read is given up and listed anew. */
    int (*on_object)(void *user, const struct agent_seen *seen);
    void (*on_gone)(void *user, const struct agent_seen *seen);
    /* What was not told since on_list is not there. */
    void (*on_list_end)(void *user);
    /* columnDefinitions, at the begin of each list and watch, before the objects they belong to. */
    void (*on_columns)(void *user, struct kr_bytes columns);
    /* A run of bytes is worked off; agent_reflector_version may be newer. `bookmark`: the server
     * said so itself. False: read nothing more until agent_reflector_read_on. */
    bool (*may_read)(void *user, bool bookmark);
    /* KR_SYNC_OK: over. */
    void (*on_problem)(void *user, enum kr_sync_problem problem, const char *text);
    void (*on_skipped)(void *user); /* an object that is too large or too deep */
};

enum agent_reflector_state {
    AGENT_REFLECTOR_IDLE,
    AGENT_REFLECTOR_WAITING,    /* a back-off */
    AGENT_REFLECTOR_QUEUED,     /* for a place at the gate */
    AGENT_REFLECTOR_LISTING,    /* a page */
    AGENT_REFLECTOR_PAUSED,     /* between pages */
    AGENT_REFLECTOR_STREAMING,  /* the initial events of a WatchList */
    AGENT_REFLECTOR_CHECKING,   /* whether the server's version is not behind ours */
    AGENT_REFLECTOR_WATCHING,   /* changes */
    AGENT_REFLECTOR_CONFIRMING, /* a 404, by discovery */
    AGENT_REFLECTOR_GONE,       /* until the catalog changes */
};

/* What a body that is being read brought to light. */
enum agent_reflector_end {
    AGENT_END_NONE,
    AGENT_END_EXPIRED, /* 410 */
    AGENT_END_REWOUND,
    AGENT_END_ERROR,   /* an ERROR event */
    AGENT_END_MARKLESS /* a WatchList whose end is not marked */
};

struct agent_reflector_config {
    struct agent_core *c;
    struct agent_list_gate *gate;
    const struct agent_target *target; /* borrowed */
    bool metadata_only;
    uint32_t priority;
    const struct agent_reflector_ops *ops;
    void *user;
};

struct agent_reflector { /* embed it; the fields belong to reflector*.c */
    struct agent_reflector_config cfg;
    enum agent_reflector_state state;
    unsigned epoch; /* changes when the owner starts or stops it */
    struct agent_get get;
    struct agent_list_place place;
    struct agent_catalog_listener listener;
    struct kr_timer timer; /* back-off; the patience with a stalled list; a watch is settled */
    struct kr_backoff backoff;
    /* what is known */
    struct kr_buf version; /* that was reached; empty: list */
    bool fresh;            /* the version is that of a list which just ended */
    bool plain;            /* no Table: JSON only */
    bool pages_only;       /* no WatchList */
    int64_t listed_ms;     /* when the last list ended */
    bool synced;           /* one has ended */
    /* of the list that is under way */
    struct kr_buf cont;
    struct kr_buf list_version;
    unsigned restarts;
    unsigned streams_cut;
    bool whole; /* without pages */
    /* of the body that is being read */
    struct agent_reading reading;
    bool feeding;
    bool bookmark; /* in this run of bytes */
    bool stalled;
    int status;
    int64_t retry_after_ms;
    struct kr_buf error;          /* the body of a refusal */
    enum agent_reflector_end end; /* why we broke off the reading */
    uint64_t events;
    int64_t begun_ms;
    int64_t timeout_s; /* of the watch */
    /* how it goes */
    unsigned failures;     /* in a row */
    unsigned error_events; /* in a row */
    enum kr_sync_problem problem;
    uint64_t raw_bytes; /* of bodies, so far; readable */
    struct kr_metric *m_bytes;
};

void agent_reflector_init(struct agent_reflector *r, const struct agent_reflector_config *cfg);
void agent_reflector_deinit(struct agent_reflector *r);
/* Goes on from that version, or lists if it is empty. Stops what was under way before. */
void agent_reflector_start(struct agent_reflector *r, struct kr_bytes version);
void agent_reflector_stop(struct agent_reflector *r);
void agent_reflector_read_on(struct agent_reflector *r);
/* The version up to which everything was told; empty while a list is under way. */
struct kr_bytes agent_reflector_version(const struct agent_reflector *r);

#endif
