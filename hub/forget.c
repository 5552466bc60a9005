/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/forget.h"

#include "hub/request.h"
#include "hub/subscriptions.h"

bool hub_forget_cluster(struct hub_worker *w, struct hub_cluster *c)
{
    char name[sizeof c->name];

    memcpy(name, c->name, sizeof name);
    if (hub_requests_use(w, c) || !hub_clusters_remove(&w->clusters, c))
        return false;
    if (w->subscriptions != NULL)
        hub_subscriptions_remove_cluster(w->subscriptions, name);
    KR_LOG_AT(w->log, KR_LOG_INFO, "cluster-forgotten", KR_S("cluster", name));
    return true;
}

bool hub_forget_expected(struct hub_worker *w, const char *name)
{
    return hub_clusters_find(&w->clusters, kr_bytes_str(name)) == NULL &&
           w->subscriptions != NULL && hub_subscriptions_remove_cluster(w->subscriptions, name);
}

void hub_forget_denied(struct hub_worker *w, const char *name)
{
    struct hub_cluster *c = hub_clusters_find(&w->clusters, kr_bytes_str(name));
    char copy[sizeof c->name];

    if (c == NULL)
        hub_forget_expected(w, name);
    if (c == NULL || c->tunnel_count != 0)
        return;
    memcpy(copy, c->name, sizeof copy);
    if (!hub_forget_cluster(w, c) && w->subscriptions != NULL)
        hub_subscriptions_remove_cluster(w->subscriptions, copy);
}
