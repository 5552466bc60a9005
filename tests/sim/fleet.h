/* SPDX-License-Identifier: Apache-2.0 */
/* fleet: the world of the fleet view. What is real, beside what world.h names: at the agents
 * discovery, catalog, reflectors and Sync; at the hub what a fleet file makes (subscriptions,
 * cache, revision with its file, LIST and WATCH, asked through the request pipeline). What is not:
 * API servers, which are models with a history (fleet_source.h, fleet_answer.c).
 *
 * While objects come, change and go, links break, agents and hubs start anew (the wall clock steps
 * back over some of it), servers compact their history, are restored from backups and take types
 * away, profiles change, and readers list page by page, watch, leave and come back. Then all is
 * quiet, and everything must be as it is at the sources. What is judged and when:
 *
 * fleet_past.c    every change of the cache is written down as it comes (the past of a type)
 * fleet_judge.c   each list must be the past at its revision, also pages that come late; each watch
 *                 must be what follows its version: no gap, nothing twice, no step back; 410 only
 *                 when it is due, and always over a restart of the hub
 * fleet_quiet.c   quiet points: cache and LIST are the sources, filtered; everybody has caught up
 *
 * A broken promise prints the seed and ends the program. */
#ifndef SIM_FLEET_H
#define SIM_FLEET_H

#include "base/assert.h"
#include "fleet_past.h"
#include "fleet_source.h"
#include "hub/fleet_parts.h"
#include "world.h"

enum {
    READERS = 8,
    AUDITORS = 2, /* one for each type; they only list, when told to */
    PHASES = 3,
    LINGER_MS = 20000, /* a type stays subscribed without readers */
    LOG_EVENTS = 24,   /* that the hub keeps at least; younger than LOG_MS are kept as well */
    LOG_MS = 300000,
    PIN_MS = 300000,
};

struct fleet_tally { /* over all worlds of a run */
    uint64_t events, bookmarks, lists, pages, initials, resumed, expired, refused, cut;
    uint64_t hub_starts, agent_starts, reloads, compactions, restores, quiet;
};

/* A part of the fleet view as one asks for it. */
struct view {
    unsigned type;
    const char *user;
    const char *path;   /* behind /clusters/<*> */
    const char *query;  /* with an '&' behind it */
    const char *accept; /* NULL: objects */
    int ns;             /* -1: all */
    char app;           /* 0: all */
    int cluster;        /* -1: all */
    bool running;       /* only those of status.phase Running */
    bool partial;       /* metadata is all that comes */
};

struct entry { /* an object as a reader was shown it */
    unsigned cluster;
    unsigned index;
    uint64_t revision;
    struct facts facts;
    enum hub_change change; /* of a watch */
    bool stale;             /* it says so */
};

enum doing { IDLE, LISTING, WATCHING };

struct reader {
    struct fleet *f;
    unsigned id;
    const struct view *view;
    struct user user;
    enum doing doing;
    struct kr_exchange *ex;
    struct kr_timer timer; /* the next thing to do; while watching: leaves */
    struct kr_timer sip;   /* a slow reader takes what it was given */
    bool slow;
    size_t owed;
    int status;
    bool warned;
    bool ended;         /* the answer is whole */
    struct kr_buf body; /* of a list; the begin of a line of a watch */
    /* where it is */
    bool placed;
    uint64_t version;
    unsigned epoch;      /* of the hub that gave the version */
    unsigned generation; /* of the past that it is judged by */
    /* a list */
    struct entry *entries; /* of its pages so far; of initial events */
    size_t entry_count;
    size_t entry_cap;
    char cont[1024];
    int64_t page_ms; /* when the last page came */
    unsigned limit;
    bool audited; /* an auditor's list is whole */
    /* a watch */
    bool initial; /* the bookmark behind initial events has not come */
    size_t next;  /* step of the past */
};

struct fleet {
    struct world w; /* first */
    struct source sources[CLUSTERS];
    struct past pasts[TYPES];
    struct reader readers[READERS + AUDITORS];
    struct hub_fleet_parts *parts;
    const struct shape *shapes[TYPES]; /* of the profiles in use */
    bool upset[TYPES]; /* since the last quiet point more than single objects changed */
    char dir[64];
    char file[96];    /* the fleet file */
    unsigned epoch;   /* starts of the hub */
    uint64_t highest; /* revision that anybody was ever told */
    int64_t grace_ms;
    int64_t hub_up_ms; /* while it is down: when it comes back */
    int64_t edge_up_ms[CLUSTERS];
    struct fleet_tally *tally;
};

static inline struct fleet *fleet_of(struct world *w)
{
    return KR_CONTAINER_OF(w, struct fleet, w);
}

void fleet_run(uint64_t seed, bool trace, struct fleet_tally *tally);

/* fleet_hub.c */
void fleet_write_file(struct fleet *f);
void fleet_start_hub(struct fleet *f);
void fleet_stop_hub(struct fleet *f); /* killed */
void fleet_start_edge(struct fleet *f, unsigned i);
void fleet_stop_edge(struct fleet *f, unsigned i); /* killed */

/* fleet_answer.c: an API server gets a request. */
void fleet_answer(struct agent_core *core, struct kr_exchange *ex);

/* fleet_quiet.c */
void fleet_quiet(struct fleet *f);

/* fleet_reader.c */
void reader_init(struct reader *r, struct fleet *f, unsigned id, const struct view *view);
void reader_deinit(struct reader *r);
void reader_again(struct reader *r, int64_t after_ms);
void reader_audit(struct reader *r); /* an auditor lists; `audited` tells when it is done */
extern const struct view fleet_views[READERS + AUDITORS];

/* fleet_judge.c: what came. */
bool judge_selects(const struct view *v, unsigned cluster, unsigned index, const struct facts *x);
void judge_page(struct reader *r);
void judge_line(struct reader *r, struct kr_bytes line);
void judge_start(struct reader *r); /* a watch begins, at r->version or with initial events */
void judge_refusal(struct reader *r);
bool judge_caught_up(const struct reader *r);

#endif
