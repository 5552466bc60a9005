/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/clusters_page.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/json.h"
#include "hub/subscriptions.h"

static const char *problem_name(int problem)
{
    static const char *const names[] = {
        [KR_SYNC_OK] = "",
        [KR_SYNC_FORBIDDEN] = "forbidden",
        [KR_SYNC_NOT_SERVED] = "not-served",
        [KR_SYNC_DENIED] = "denied",
        [KR_SYNC_FAILING] = "failing",
        [KR_SYNC_BAD_PROFILE] = "bad-profile",
    };

    return problem >= 0 && problem < (int)(sizeof names / sizeof names[0]) ? names[problem]
                                                                           : "unknown";
}

static void put_amounts(struct kr_json_out *o, uint64_t objects, uint64_t bytes,
                        const struct hub_sync_stats *s)
{
    kr_json_out_int(o, "objects", (int64_t)objects);
    kr_json_out_int(o, "bytes", (int64_t)bytes);
    kr_json_out_int(o, "receivedBytes", (int64_t)s->bytes);
    kr_json_out_int(o, "plainBytes", (int64_t)s->plain);
    kr_json_out_int(o, "rawBytes", (int64_t)s->raw);
}

static void put_type(struct kr_json_out *o, const struct hub_subscription_view *v)
{
    const struct hub_shelf *shelf = v->shelf;
    const struct hub_type *t = shelf->type;

    kr_json_out_object(o, NULL);
    kr_json_out_string(o, "group", t->group);
    kr_json_out_string(o, "version", t->version);
    kr_json_out_string(o, "resource", t->resource);
    put_amounts(o, shelf->objects, shelf->bytes, v->stats);
    kr_json_out_int(o, "upserts", (int64_t)v->stats->upserts);
    kr_json_out_int(o, "deletes", (int64_t)v->stats->deletes);
    kr_json_out_int(o, "refused", (int64_t)v->stats->bad);
    kr_json_out_int(o, "skipped", (int64_t)v->stats->skipped);
    kr_json_out_bool(o, "open", v->open);
    kr_json_out_bool(o, "synced", shelf->synced);
    kr_json_out_bool(o, "metadataOnly", shelf->metadata_only);
    kr_json_out_int(o, "staleSinceMs", shelf->stale_since_wall_ms);
    kr_json_out_text(o, "problem", problem_name(shelf->problem));
    kr_json_out_text(o, "problemText", shelf->problem_text);
    kr_json_out_end(o);
}

static void add(struct hub_sync_stats *sum, const struct hub_sync_stats *s)
{
    sum->bytes += s->bytes;
    sum->plain += s->plain;
    sum->raw += s->raw;
}

static void put_types(struct hub_worker *w, struct kr_json_out *o, const char *cluster)
{
    struct hub_subscription_view v;

    kr_json_out_array(o, "types");
    for (size_t i = 0;
         w->subscriptions != NULL && hub_subscriptions_view(w->subscriptions, cluster, i, &v); i++)
        put_type(o, &v);
    kr_json_out_end(o);
}

static void put_sums(struct hub_worker *w, struct kr_json_out *o, const char *cluster)
{
    struct hub_sync_stats sum = {0};
    struct hub_subscription_view v;
    uint64_t objects = 0;
    uint64_t bytes = 0;

    for (size_t i = 0;
         w->subscriptions != NULL && hub_subscriptions_view(w->subscriptions, cluster, i, &v);
         i++) {
        add(&sum, v.stats);
        objects += v.shelf->objects;
        bytes += v.shelf->bytes;
    }
    put_amounts(o, objects, bytes, &sum);
}

static void put_cluster(struct hub_worker *w, struct kr_json_out *o, const struct hub_cluster *c)
{
    kr_json_out_object(o, NULL);
    kr_json_out_text(o, "name", c->name);
    kr_json_out_text(o, "state", c->tunnel_count != 0 ? "connected" : "away");
    kr_json_out_int(o, "sinceMs", c->since_wall_ms);
    kr_json_out_int(o, "nowMs", w->sched->now_wall_ms);
    kr_json_out_text(o, "agentVersion", c->agent_version);
    kr_json_out_text(o, "serverVersion", c->server_version);
    kr_json_out_int(o, "nodes", c->nodes);
    kr_json_out_int(o, "tunnels", (int64_t)c->tunnel_count);
    put_sums(w, o, c->name);
    put_types(w, o, c->name);
    kr_json_out_end(o);
}

static int by_name(const void *a, const void *b)
{
    const struct hub_cluster *const *x = a;
    const struct hub_cluster *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

int hub_clusters_page(struct hub_worker *w, struct kr_buf *out)
{
    size_t n = w->clusters.by_name.count;
    struct hub_cluster **sorted = calloc(n + 1, sizeof(struct hub_cluster *));
    struct kr_json_out o;
    size_t pos = 0;

    if (sorted == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < n; i++)
        sorted[i] = kr_map_next(&w->clusters.by_name, &pos, NULL);
    qsort(sorted, n, sizeof *sorted, by_name);
    kr_json_out_init(&o, out);
    kr_json_out_object(&o, NULL);
    kr_json_out_array(&o, "clusters");
    for (size_t i = 0; i < n; i++)
        put_cluster(w, &o, sorted[i]);
    kr_json_out_end(&o);
    kr_json_out_end(&o);
    free(sorted);
    return o.rc;
}
