/* SPDX-License-Identifier: Apache-2.0 */
/* clusters: which clusters are known, and over which tunnels they are reached.
 * A cluster is known from its first attached tunnel until the hub ends. Its name comes from the
 * agent's certificate and from nowhere else.
 * Memory: owns the clusters; tunnels are linked in by tunnel.c while they are attached.
 * Limits: maxClusters. Threads: the worker's. */
#ifndef HUB_CLUSTERS_H
#define HUB_CLUSTERS_H

#include "base/list.h"
#include "base/map.h"
#include "base/metrics.h"
#include "http/conn.h"

enum hub_lane {
    HUB_LANE_INTERACTIVE,
    HUB_LANE_BULK,
};

struct hub_cluster {
    char name[64];
    struct kr_list tunnels; /* hub_link.link; attached ones */
    size_t tunnel_count;
    struct kr_list waiting; /* hub_waiter.link */
    int64_t gone_ms;        /* when the last tunnel went; -1: one is here */
    int64_t since_wall_ms;  /* when it became what it is: connected or away */
    /* As its agent told last: */
    char agent_version[32];
    char server_version[64];
    uint32_t nodes;
    struct kr_metric *m_tunnels;
};

/* An attached tunnel, as the clusters see it; embedded in hub_tunnel. */
struct hub_link {
    struct kr_list link;
    struct kr_conn *conn;
    const char *instance; /* of the agent */
    enum hub_lane lane;
    bool draining; /* takes no new requests */
    bool syncs;    /* the agent knows Catalog and Sync */
};

/* Somebody who waits for a tunnel of the cluster; embedded. */
struct hub_waiter {
    struct kr_list link;
    void (*on_tunnel)(struct hub_waiter *w);
};

struct hub_clusters {
    struct kr_map by_name;
    struct kr_sched *sched;
    struct kr_metrics *metrics;
    size_t connected;
};

void hub_clusters_init(struct hub_clusters *cs, struct kr_sched *sched, struct kr_metrics *metrics,
                       size_t max);
void hub_clusters_deinit(struct hub_clusters *cs);
/* NULL if it is not known. */
struct hub_cluster *hub_clusters_find(struct hub_clusters *cs, struct kr_bytes name);
/* Finds or adds it. NULL: the limit is reached or memory is short. */
struct hub_cluster *hub_clusters_add(struct hub_clusters *cs, const char *name);
/* A tunnel is there: whoever waits is called, each once. */
void hub_cluster_link(struct hub_clusters *cs, struct hub_cluster *c, struct hub_link *l);
void hub_cluster_unlink(struct hub_clusters *cs, struct hub_cluster *c, struct hub_link *l);
/* The least loaded tunnel of the lane, else of the other lane; NULL if there is none. */
struct kr_conn *hub_cluster_pick(struct hub_cluster *c, enum hub_lane lane);
/* The same among those of agents that sync. */
struct kr_conn *hub_cluster_pick_to_sync(struct hub_cluster *c);
/* Which agent is behind a tunnel of the cluster; NULL: it is none of them. */
const char *hub_cluster_instance(const struct hub_cluster *c, const struct kr_conn *conn);
/* It is forgotten. False: a tunnel is there, or somebody waits for one. */
bool hub_clusters_remove(struct hub_clusters *cs, struct hub_cluster *c);
/* How long no tunnel has been there; 0 if there is one. */
int64_t hub_cluster_away_ms(const struct hub_clusters *cs, const struct hub_cluster *c);

#endif
