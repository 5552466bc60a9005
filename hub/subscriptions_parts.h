/* SPDX-License-Identifier: Apache-2.0 */
/* subscriptions_parts: what the files of subscriptions share. A type that is wanted (hub_wanted)
 * and a cluster (hub_site) meet in a subscription (hub_sub), which owns the shelf.
 *
 * subscriptions.c  who wants what, and who must be told; makes and ends subscriptions
 * completeness.c   which clusters are missing
 * site.c           a cluster: its Catalog call, its tunnels
 * sub.c            one subscription: its Sync call, again and again */
#ifndef HUB_SUBSCRIPTIONS_PARTS_H
#define HUB_SUBSCRIPTIONS_PARTS_H

#include "base/backoff.h"
#include "base/map.h"
#include "hub/subscriptions.h"
#include "hub/sync_in.h"
#include "wire/grpc_call.h"

struct hub_subscriptions {
    struct hub_worker *w;
    const struct hub_fleet_config *config;
    struct hub_sync_desk desk;
    struct kr_list sites;  /* hub_site.link */
    struct kr_list wanted; /* hub_wanted.link */
    struct kr_map by_name; /* hub_site */
    struct kr_map by_type; /* hub_wanted, by the address of the type */
    struct kr_task refresh;
    uint64_t catalogs_seen; /* generation that `always` was looked up in */
    bool look_again;        /* for what is always wanted */
};

struct hub_site {
    struct kr_list link;
    struct hub_subscriptions *owner;
    char name[64];
    struct kr_list subs; /* hub_sub.in_site */
    bool changed;        /* its subscriptions must be looked at */
    struct kr_grpc_stream catalog;
    struct kr_backoff backoff;
    struct kr_timer retry;  /* of the Catalog call */
    struct kr_timer settle; /* until more catalogs may come */
    bool mute;              /* there is no catalog to wait for */
    bool overdue;           /* a reader waited for its catalog in vain, others do not */
};

struct hub_wanted {
    struct kr_list link;
    struct hub_subscriptions *owner;
    struct hub_type *type;
    const void *key;        /* the type's address, as the map's key */
    struct kr_list subs;    /* hub_sub.in_wanted */
    struct kr_list unready; /* hub_want.link: not told yet */
    struct kr_list ready;   /* hub_want.link: told */
    struct kr_timer linger; /* nobody wants it any more */
    bool always;            /* a profile does */
    bool was_always;        /* before the profiles were looked through */
    bool changed;           /* its subscriptions must be looked at */
};

struct hub_sub {
    struct kr_list in_site;
    struct kr_list in_wanted;
    struct hub_site *site;
    struct hub_wanted *wanted;
    struct hub_shelf *shelf;
    struct hub_sync_in *sync; /* NULL: no call is open */
    uint64_t number;          /* of the call */
    struct kr_conn *conn;     /* that it is open on */
    struct kr_buf opening;    /* what it asked for */
    bool metadata_only;       /* the quota made it so */
    struct kr_backoff backoff;
    struct kr_timer retry; /* running: the next attempt, or another look at the room */
    bool penalty;          /* a new tunnel does not shorten the wait */
    bool overdue;          /* a reader waited for it in vain, others do not */
    struct hub_sync_stats stats;
};

/* subscriptions.c: looks at what is changed, later in this turn. */
void hub_subscriptions_refresh(struct hub_subscriptions *s);
/* NULL: nobody wants it. */
struct hub_wanted *hub_subscriptions_wanted(const struct hub_subscriptions *s,
                                            const struct hub_type *type);
/* The profile by which a type is synced there; NULL: it is not. */
const struct hub_profile *hub_subscriptions_profile(const struct hub_subscriptions *s,
                                                    const struct hub_site *site,
                                                    const struct hub_wanted *wanted);

/* site.c */
struct hub_site *hub_site_find(const struct hub_subscriptions *s, const char *name);
struct hub_site *hub_site_add(struct hub_subscriptions *s, const char *name);
void hub_site_destroy(struct hub_site *site); /* its subscriptions are gone */
void hub_site_tunnel_up(struct hub_site *site);
/* A tunnel over which it can be synced; NULL: none. */
struct kr_conn *hub_site_conn(const struct hub_site *site);
/* Whether its catalog is still to come. */
bool hub_site_is_silent(const struct hub_site *site);
/* Whether its catalog came once. */
bool hub_site_has_told(const struct hub_site *site);
/* Whether its catalog has the type. */
bool hub_site_serves(const struct hub_site *site, const struct hub_type *t);
/* Its subscription of the type; NULL: none. `wanted` may be NULL. */
struct hub_sub *hub_site_sub(const struct hub_site *site, const struct hub_wanted *wanted);

/* sub.c */
struct hub_sub *hub_sub_create(struct hub_site *site, struct hub_wanted *wanted);
/* The shelf goes too; `quiet`: without events. */
void hub_sub_destroy(struct hub_sub *sub, bool quiet);
/* Opens the call if it can be opened now. */
void hub_sub_start(struct hub_sub *sub);
/* Starts again if the profile asks for something else. */
void hub_sub_review(struct hub_sub *sub);

#endif
