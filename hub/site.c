/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/subscriptions_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/registry.h"
#include "wire/messages.h"

#define BASE_MS 1000
#define CAP_MS 60000
#define SETTLE_MS 1000 /* behind a catalog, until the agent may send another window */
#define CATALOG_MESSAGE_MAX (2u << 20)
#define QUEUE_MAX 4096

static void open_catalog(struct hub_site *site);

struct hub_site *hub_site_find(const struct hub_subscriptions *s, const char *name)
{
    return kr_map_get(&s->by_name, kr_bytes_str(name));
}

struct kr_conn *hub_site_conn(const struct hub_site *site)
{
    struct hub_clusters *clusters = &site->owner->w->clusters;
    struct hub_cluster *c = hub_clusters_find(clusters, kr_bytes_str(site->name));

    return c != NULL ? hub_cluster_pick_to_sync(c) : NULL;
}

bool hub_site_has_told(const struct hub_site *site)
{
    return hub_catalogs_has(site->owner->w->catalogs, site->name);
}

bool hub_site_is_silent(const struct hub_site *site)
{
    return !site->mute && hub_site_conn(site) != NULL && !hub_site_has_told(site);
}

bool hub_site_serves(const struct hub_site *site, const struct hub_type *t)
{
    return hub_catalog_find(site->owner->w->catalogs, site->name, t->group, t->version,
                            t->resource) != NULL;
}

struct hub_sub *hub_site_sub(const struct hub_site *site, const struct hub_wanted *wanted)
{
    KR_LIST_FOREACH(node, &site->subs)
    {
        struct hub_sub *sub = KR_CONTAINER_OF(node, struct hub_sub, in_site);

        if (sub->wanted == wanted)
            return sub;
    }
    return NULL;
}

/* ---- the Catalog call ---- */

static void look(struct hub_site *site)
{
    site->changed = true;
    hub_subscriptions_refresh(site->owner);
}

/* Since when the cluster has been in the fleet. Without a register: those that come back to a hub
 * that has just started were there before. */
static int64_t known_since(const struct hub_site *site)
{
    const struct hub_worker *w = site->owner->w;
    struct hub_store *store = w->registry != NULL ? hub_registry_store(w->registry) : NULL;
    struct hub_cluster_record record;

    if (store != NULL && store->ops->cluster_find(store, site->name, &record, NULL) == 0)
        return record.since_wall_ms;
    return w->sched->now_ms - w->started_ms < w->options->start_grace_ms ? 0
                                                                         : w->sched->now_wall_ms;
}

static int take(struct hub_site *site, struct kr_bytes message, bool *whole)
{
    struct kr_catalog_update update;
    struct kr_arena arena;
    struct kr_note why = {""};
    int rc;

    kr_arena_init(&arena, 4096, KR_DECODE_ARENA(message.n));
    if (!hub_site_has_told(site))
        hub_catalogs_know(site->owner->w->catalogs, site->name, known_since(site));
    rc = kr_catalog_update_decode(&update, message, &arena, &why);
    if (rc == 0) {
        *whole = !update.more;
        rc = hub_catalogs_update(site->owner->w->catalogs, site->name, &update);
        if (rc != 0)
            kr_note_set(&why, rc, "%s", kr_err_text(rc));
    }
    kr_arena_deinit(&arena);
    if (rc != 0)
        KR_LOG_AT(site->owner->w->log, KR_LOG_WARN, "catalog-refused", KR_S("cluster", site->name),
                  KR_S("reason", why.text), KR_S("effect", "the catalog before stays in use"));
    return rc;
}

static int on_message(void *user, struct kr_bytes message)
{
    struct hub_site *site = user;
    struct hub_worker *w = site->owner->w;
    bool whole = false;
    int rc = take(site, message, &whole);

    if (rc != 0 || !whole)
        return rc;
    kr_backoff_up(&site->backoff, w->sched->now_ms);
    kr_grpc_pause(&site->catalog);
    kr_timer_start(w->sched, &site->settle, SETTLE_MS);
    look(site);
    return 0;
}

static void on_settled(struct kr_timer *timer)
{
    struct hub_site *site = KR_CONTAINER_OF(timer, struct hub_site, settle);

    kr_grpc_resume(&site->catalog);
}

static void wait(struct hub_site *site)
{
    struct hub_worker *w = site->owner->w;

    kr_timer_start(w->sched, &site->retry,
                   1 + kr_backoff_next(&site->backoff, &w->rand, w->sched->now_ms));
}

static void on_end(void *user, int status, struct kr_bytes text)
{
    struct hub_site *site = user;
    struct hub_worker *w = site->owner->w;

    hub_catalogs_interrupted(w->catalogs, site->name);
    KR_LOG_AT(w->log, status == KR_GRPC_UNAVAILABLE ? KR_LOG_DEBUG : KR_LOG_INFO, "catalog-ended",
              KR_S("cluster", site->name), KR_I("status", status), KR_B("reason", text));
    site->mute = status == KR_GRPC_UNIMPLEMENTED;
    look(site); /* who waits for it may have to wait no more */
    wait(site);
}

static const struct kr_grpc_user catalog_user = {.on_message = on_message, .on_end = on_end};

static void on_retry(struct kr_timer *timer)
{
    open_catalog(KR_CONTAINER_OF(timer, struct hub_site, retry));
}

static void open_catalog(struct hub_site *site)
{
    struct kr_grpc_limits limits = {.message = CATALOG_MESSAGE_MAX, .queue = QUEUE_MAX};
    struct kr_conn *conn = hub_site_conn(site);
    int rc;

    if (kr_grpc_is_open(&site->catalog) || conn == NULL)
        return;
    kr_grpc_deinit(&site->catalog);
    kr_timer_stop(site->owner->w->sched, &site->retry);
    rc = kr_grpc_open(&site->catalog, conn, KR_LIT("agent"), KR_LIT(KR_GRPC_CATALOG), limits,
                      &catalog_user, site);
    if (rc == 0)
        rc = kr_grpc_send(&site->catalog, KR_LIT("")); /* CatalogRequest has no fields */
    if (rc == 0)
        rc = kr_grpc_finish(&site->catalog, 0, KR_LIT(""));
    if (rc == 0)
        return;
    kr_grpc_deinit(&site->catalog);
    wait(site);
}

/* ---- life ---- */

struct hub_site *hub_site_add(struct hub_subscriptions *s, const char *name)
{
    struct hub_site *site = hub_site_find(s, name);

    if (site != NULL)
        return site;
    site = calloc(1, sizeof *site);
    if (site == NULL)
        return NULL;
    site->owner = s;
    snprintf(site->name, sizeof site->name, "%s", name);
    kr_list_init(&site->subs);
    kr_backoff_init(&site->backoff, BASE_MS, CAP_MS, KR_BACKOFF_HEALTHY_MS);
    kr_timer_init(&site->retry, on_retry);
    kr_timer_init(&site->settle, on_settled);
    if (kr_map_put(&s->by_name, kr_bytes_str(site->name), site) != 0) {
        free(site);
        return NULL;
    }
    kr_list_append(&s->sites, &site->link);
    return site;
}

void hub_site_destroy(struct hub_site *site)
{
    struct kr_sched *sched = site->owner->w->sched;

    KR_ASSERT(kr_list_empty(&site->subs));
    kr_grpc_deinit(&site->catalog);
    kr_timer_stop(sched, &site->retry);
    kr_timer_stop(sched, &site->settle);
    kr_map_erase(&site->owner->by_name, kr_bytes_str(site->name));
    kr_list_remove(&site->link);
    free(site);
}

void hub_site_tunnel_up(struct hub_site *site)
{
    site->mute = false;
    open_catalog(site);
    KR_LIST_FOREACH_SAFE(node, &site->subs)
    {
        hub_sub_start(KR_CONTAINER_OF(node, struct hub_sub, in_site));
    }
    look(site);
}
