/* SPDX-License-Identifier: Apache-2.0 */
/* subscriptions: profiles at work. For each attached cluster: one Catalog call, and one Sync call
 * for each type that is wanted there (by a profile with `always`, or because somebody reads it);
 * what comes is checked and put on the cluster's shelf of the type, and on no other. A tunnel that
 * goes leaves the shelf as it is, marked stale; the next one goes on from its digest. Unwanted
 * types are dropped `unsubscribeAfter` after their last reader. Checked before anything is
 * believed: sizes, that the text unpacks, that it is JSON with the name, namespace and uid that
 * were told, that no injected key is in it (such a key is cut out). Threads: the worker's. */
#ifndef HUB_SUBSCRIPTIONS_H
#define HUB_SUBSCRIPTIONS_H

#include "hub/cache.h"
#include "hub/catalogs.h"
#include "hub/clusters.h"
#include "hub/fleet_config.h"
#include "hub/sync_in.h"

struct hub_subscriptions;

/* The worker's clusters, cache, catalogs and configuration are there, and outlive it. NULL: memory.
 */
struct hub_subscriptions *hub_subscriptions_create(struct hub_worker *w);
void hub_subscriptions_destroy(struct hub_subscriptions *s);
/* A tunnel of the cluster came, or one went (called by tunnel.c after clusters.c knows). */
void hub_subscriptions_tunnel_up(struct hub_subscriptions *s, struct hub_cluster *c);
void hub_subscriptions_tunnel_down(struct hub_subscriptions *s, struct hub_cluster *c,
                                   struct kr_conn *conn);
/* The configuration was read anew: subscriptions whose profile differs start again. The old one may
 * go then. */
void hub_subscriptions_reload(struct hub_subscriptions *s, const struct hub_fleet_config *config);
/* The cluster is registered: until it has dialled it counts as missing. KR_ENOMEM. */
int hub_subscriptions_expect(struct hub_subscriptions *s, const char *cluster);
/* The cluster leaves the fleet for good: its shelves go, with events. False: nothing was known of
 * it. */
bool hub_subscriptions_remove_cluster(struct hub_subscriptions *s, const char *cluster);

/* Somebody who reads a type; embedded. While at least one is there the type stays subscribed. */
struct hub_want {
    struct kr_list link;
    struct kr_timer deadline;
    struct hub_type *type;
    struct hub_subscriptions *owner;
    /* Called once, never from inside hub_subscriptions_want: every connected cluster that serves
     * the type is synced (or has said why it cannot), or the deadline has passed. */
    void (*on_ready)(struct hub_want *w);
};
/* KR_EDENIED: the type is neither in a profile nor may it be synced on demand (secrets, leases,
 * events unless a profile names them). */
int hub_subscriptions_want(struct hub_subscriptions *s, struct hub_type *type, struct hub_want *w,
                           int64_t deadline_ms);
void hub_subscriptions_release(struct hub_want *w);

#define HUB_INCOMPLETE_NAMES 160

/* How complete a type is, for warnings: clusters that serve it, or may, and ... */
struct hub_completeness {
    size_t clusters; /* known clusters, registered ones among them */
    size_t stale;    /* their agent is away; content is what it was */
    size_t loading;  /* not synced yet */
    size_t failing;  /* forbidden, denied, failing */
    size_t missing;  /* not heard of since the start, or too old to sync: nothing is known */
    /* Of those that are in one of these numbers, as many as fit: "edge-1, edge-7"; at least one. */
    char names[HUB_INCOMPLETE_NAMES];
    size_t named;
};
/* What `sight` hides (NULL: nothing) is not counted. */
void hub_subscriptions_completeness(struct hub_subscriptions *s, struct hub_type *type,
                                    const struct hub_sight *sight, struct hub_completeness *out);
/* The same of clusters that have not told which types they serve: none is stale. */
void hub_subscriptions_untold(struct hub_subscriptions *s, const struct hub_sight *sight,
                              struct hub_completeness *out);
/* For a write from the fleet view: the number of the open Sync of the type on that cluster; 0:
 * none. */
uint64_t hub_subscriptions_number(struct hub_subscriptions *s, const char *cluster,
                                  const struct hub_type *type);
/* The connection that this Sync is open on; it may be gone already: only to be compared. */
const struct kr_conn *hub_subscriptions_conn(struct hub_subscriptions *s, const char *cluster,
                                             const struct hub_type *type);

/* One type on one cluster, for the operator. */
struct hub_subscription_view {
    const struct hub_shelf *shelf;
    const struct hub_sync_stats *stats;
    bool open; /* a Sync call is */
};
/* Steps through the subscriptions of a cluster; false behind the last one. */
bool hub_subscriptions_view(struct hub_subscriptions *s, const char *cluster, size_t i,
                            struct hub_subscription_view *out);

#endif
