/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/clusters.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/sched.h"
#include "hub/counters.h"

void hub_clusters_init(struct hub_clusters *cs, struct kr_sched *sched, struct kr_metrics *metrics,
                       size_t max)
{
    *cs = (struct hub_clusters){.sched = sched, .metrics = metrics};
    kr_map_init(&cs->by_name, max);
}

void hub_clusters_deinit(struct hub_clusters *cs)
{
    size_t pos = 0;
    struct hub_cluster *c;

    while ((c = kr_map_next(&cs->by_name, &pos, NULL)) != NULL)
        free(c);
    kr_map_deinit(&cs->by_name);
}

static void show(struct hub_clusters *cs)
{
    kr_metric_set(kr_metrics_get(cs->metrics, HUB_CLUSTERS, "connected"), (int64_t)cs->connected);
    kr_metric_set(kr_metrics_get(cs->metrics, HUB_CLUSTERS, "away"),
                  (int64_t)(cs->by_name.count - cs->connected));
}

struct hub_cluster *hub_clusters_find(struct hub_clusters *cs, struct kr_bytes name)
{
    return kr_map_get(&cs->by_name, name);
}

struct hub_cluster *hub_clusters_add(struct hub_clusters *cs, const char *name)
{
    struct hub_cluster *c = hub_clusters_find(cs, kr_bytes_str(name));

    if (c != NULL)
        return c;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    snprintf(c->name, sizeof c->name, "%s", name);
    kr_list_init(&c->tunnels);
    kr_list_init(&c->waiting);
    c->gone_ms = cs->sched->now_ms;
    c->since_wall_ms = cs->sched->now_wall_ms;
    if (kr_map_put(&cs->by_name, kr_bytes_str(c->name), c) != 0) {
        free(c);
        return NULL;
    }
    c->m_tunnels = kr_metrics_get(cs->metrics, HUB_TUNNELS, c->name);
    show(cs);
    return c;
}

void hub_cluster_link(struct hub_clusters *cs, struct hub_cluster *c, struct hub_link *l)
{
    struct kr_list waiting;
    struct kr_list *node;

    kr_list_append(&c->tunnels, &l->link);
    if (c->tunnel_count++ == 0) {
        cs->connected++;
        c->since_wall_ms = cs->sched->now_wall_ms;
    }
    c->gone_ms = -1;
    kr_metric_add(c->m_tunnels, 1);
    show(cs);
    kr_list_init(&waiting); /* a waiter that must wait again queues up anew */
    while ((node = kr_list_pop(&c->waiting)) != NULL)
        kr_list_append(&waiting, node);
    while ((node = kr_list_pop(&waiting)) != NULL) {
        struct hub_waiter *w = KR_CONTAINER_OF(node, struct hub_waiter, link);

        w->on_tunnel(w);
    }
}

void hub_cluster_unlink(struct hub_clusters *cs, struct hub_cluster *c, struct hub_link *l)
{
    if (!kr_list_linked(&l->link))
        return;
    kr_list_remove(&l->link);
    kr_metric_add(c->m_tunnels, -1);
    if (--c->tunnel_count == 0) {
        c->gone_ms = cs->sched->now_ms;
        c->since_wall_ms = cs->sched->now_wall_ms;
        cs->connected--;
    }
    show(cs);
}

static struct kr_conn *pick(struct hub_cluster *c, enum hub_lane lane, bool to_sync)
{
    struct kr_conn *best = NULL;
    struct kr_conn *full = NULL; /* says better what is wrong than no tunnel would */
    bool best_in_lane = false;

    KR_LIST_FOREACH(node, &c->tunnels)
    {
        struct hub_link *l = KR_CONTAINER_OF(node, struct hub_link, link);
        bool in_lane = l->lane == lane;

        if (l->draining || l->conn->draining || (to_sync && !l->syncs))
            continue;
        if (!kr_conn_has_room(l->conn)) {
            full = l->conn;
            continue;
        }
        if (best == NULL || (in_lane && !best_in_lane) ||
            (in_lane == best_in_lane && l->conn->exchanges < best->exchanges)) {
            best = l->conn;
            best_in_lane = in_lane;
        }
    }
    return best != NULL ? best : full;
}

struct kr_conn *hub_cluster_pick(struct hub_cluster *c, enum hub_lane lane)
{
    return pick(c, lane, false);
}

struct kr_conn *hub_cluster_pick_to_sync(struct hub_cluster *c)
{
    return pick(c, HUB_LANE_BULK, true);
}

const char *hub_cluster_instance(const struct hub_cluster *c, const struct kr_conn *conn)
{
    KR_LIST_FOREACH(node, &c->tunnels)
    {
        const struct hub_link *l = KR_CONTAINER_OF(node, struct hub_link, link);

        if (l->conn == conn)
            return l->instance;
    }
    return NULL;
}

bool hub_clusters_remove(struct hub_clusters *cs, struct hub_cluster *c)
{
    if (c->tunnel_count != 0 || !kr_list_empty(&c->waiting))
        return false;
    kr_map_erase(&cs->by_name, kr_bytes_str(c->name));
    free(c);
    show(cs);
    return true;
}

int64_t hub_cluster_away_ms(const struct hub_clusters *cs, const struct hub_cluster *c)
{
    return c->gone_ms < 0 ? 0 : cs->sched->now_ms - c->gone_ms;
}
