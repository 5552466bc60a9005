/* SPDX-License-Identifier: Apache-2.0 */
/* idle -> open (a Sync call) -> idle -> (back-off, or a new tunnel) -> open ...
 * A call that ended by a fault of the agent waits its full time, whatever tunnels come. */
#include "hub/subscriptions_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/counters.h"

#define BASE_MS 1000
#define CAP_MS 60000
#define OPENING_MAX (1u << 20)
#define ROOM_CHECK_MS 60000 /* between looks whether there is room again */

static const char *const end_names[] = {
    [HUB_SYNC_LOST] = "lost",     [HUB_SYNC_UNSUPPORTED] = "unsupported",
    [HUB_SYNC_BROKEN] = "broken", [HUB_SYNC_OVER_QUOTA] = "over-quota",
    [HUB_SYNC_FAILED] = "failed",
};

static struct hub_worker *worker(const struct hub_sub *sub)
{
    return sub->site->owner->w;
}

static void show_open(const struct hub_sub *sub, int64_t change)
{
    kr_metric_add(kr_metrics_series(worker(sub)->metrics, HUB_SYNCS, NULL, 0), change);
}

static void stop(struct hub_sub *sub)
{
    if (sub->sync == NULL)
        return;
    hub_sync_in_close(sub->sync);
    sub->sync = NULL;
    sub->number = 0;
    show_open(sub, -1);
}

static void wait(struct hub_sub *sub)
{
    struct hub_worker *w = worker(sub);

    kr_timer_start(w->sched, &sub->retry,
                   1 + kr_backoff_next(&sub->backoff, &w->rand, w->sched->now_ms));
}

/* ---- what the call tells ---- */

static void on_news(void *owner)
{
    struct hub_sub *sub = owner;

    if (sub->shelf->synced)
        kr_backoff_up(&sub->backoff, worker(sub)->sched->now_ms);
    if (hub_sync_in_refused(sub->sync) != 0 && !kr_timer_running(&sub->retry))
        kr_timer_start(worker(sub)->sched, &sub->retry, ROOM_CHECK_MS);
    if (sub->shelf->problem == KR_SYNC_NOT_SERVED) /* perhaps the catalog agrees */
        sub->site->changed = true;
    hub_subscriptions_refresh(sub->site->owner);
}

static void set_problem(struct hub_sub *sub, const char *why)
{
    sub->shelf->problem = KR_SYNC_FAILING;
    snprintf(sub->shelf->problem_text, sizeof sub->shelf->problem_text, "%s", why);
}

/* The whole objects have no room: what identifies them may. */
static void on_over_quota(struct hub_sub *sub)
{
    sub->metadata_only = sub->shelf->metadata_only = true;
    kr_timer_start(worker(sub)->sched, &sub->retry, 1);
}

static void on_end(void *owner, enum hub_sync_end end, const char *why)
{
    struct hub_sub *sub = owner;
    struct hub_worker *w = worker(sub);
    /* Of a tunnel that is lost, tunnel-down tells enough. */
    enum kr_log_level level = end == HUB_SYNC_LOST ? KR_LOG_DEBUG : KR_LOG_WARN;

    KR_LOG_AT(w->log, level, "sync-ended", KR_S("cluster", sub->site->name),
              KR_B("resource", sub->wanted->type->resource),
              KR_B("group", sub->wanted->type->group), KR_S("how", end_names[end]),
              KR_S("reason", why), KR_U("objects", sub->shelf->objects),
              KR_S("effect", end == HUB_SYNC_OVER_QUOTA ? "only metadata is synced from now on"
                                                        : "what is here stays"));
    hub_worker_count(w, HUB_SYNC_ENDS, end_names[end]);
    sub->penalty = end != HUB_SYNC_LOST && end != HUB_SYNC_OVER_QUOTA;
    if (sub->penalty)
        set_problem(sub, why);
    stop(sub);
    if (end == HUB_SYNC_OVER_QUOTA)
        on_over_quota(sub);
    else
        wait(sub);
    hub_subscriptions_refresh(sub->site->owner);
}

static const struct hub_sync_user sync_user = {on_news, on_end};

/* ---- opening ---- */

static uint64_t new_number(struct hub_worker *w)
{
    uint64_t n = 0;

    while (n == 0) /* other replicas choose numbers on the same agent, too */
        n = kr_rand_u64(&w->rand);
    return n;
}

/* Writes what is asked for now. The version that was reached is worth nothing if that is something
 * else than before: what it newly selects need not have changed since. */
static int ask_for(struct hub_sub *sub, const struct hub_profile *profile, bool metadata_only)
{
    struct kr_buf opening = {.max = OPENING_MAX};
    int rc = hub_sync_opening(sub->wanted->type, profile, metadata_only, &opening);

    if (!kr_bytes_eq(kr_buf_bytes(&opening), kr_buf_bytes(&sub->opening)))
        sub->shelf->origin_version[0] = '\0';
    kr_buf_deinit(&sub->opening);
    sub->opening = opening;
    return rc;
}

static bool open_on(struct hub_sub *sub, struct kr_conn *conn, const struct hub_profile *profile)
{
    struct hub_subscriptions *s = sub->site->owner;
    struct hub_sync_config cfg = {
        .desk = &s->desk,
        .conn = conn,
        .shelf = sub->shelf,
        .profile = profile,
        .metadata_only = sub->metadata_only || profile->metadata_only,
        .number = new_number(s->w),
        .stats = &sub->stats,
        .ops = &sync_user,
        .owner = sub,
    };

    if (ask_for(sub, profile, cfg.metadata_only) != 0)
        return false;
    sub->sync = hub_sync_in_open(&cfg);
    if (sub->sync == NULL)
        return false;
    sub->number = cfg.number;
    sub->conn = conn;
    sub->penalty = false;
    show_open(sub, 1);
    return true;
}

void hub_sub_start(struct hub_sub *sub)
{
    const struct hub_profile *profile =
        hub_subscriptions_profile(sub->site->owner, sub->site, sub->wanted);
    struct kr_conn *conn = hub_site_conn(sub->site);

    if (sub->sync != NULL || profile == NULL || conn == NULL ||
        (sub->penalty && kr_timer_running(&sub->retry)))
        return;
    kr_timer_stop(worker(sub)->sched, &sub->retry);
    if (!open_on(sub, conn, profile))
        wait(sub);
}

/* Room enough that what was left out may fit now. */
static bool has_room(const struct hub_sub *sub)
{
    const struct hub_worker *w = worker(sub);
    uint64_t quota = (uint64_t)w->options->cache_quota;

    return hub_cache_cluster_bytes(w->cache, kr_bytes_str(sub->site->name)) < quota / 10 * 9;
}

static void on_retry(struct kr_timer *timer)
{
    struct hub_sub *sub = KR_CONTAINER_OF(timer, struct hub_sub, retry);

    if (sub->sync != NULL && hub_sync_in_refused(sub->sync) == 0)
        return;
    if (sub->sync != NULL && !has_room(sub)) {
        kr_timer_start(worker(sub)->sched, &sub->retry, ROOM_CHECK_MS);
        return;
    }
    stop(sub);
    hub_sub_start(sub);
}

void hub_sub_review(struct hub_sub *sub)
{
    const struct hub_profile *profile =
        hub_subscriptions_profile(sub->site->owner, sub->site, sub->wanted);
    struct kr_buf opening = {.max = OPENING_MAX};
    bool same;

    if (sub->sync == NULL || profile == NULL)
        return;
    same = hub_sync_opening(sub->wanted->type, profile,
                            sub->metadata_only || profile->metadata_only, &opening) == 0 &&
           kr_bytes_eq(kr_buf_bytes(&opening), kr_buf_bytes(&sub->opening));
    kr_buf_deinit(&opening);
    if (same)
        return;
    sub->metadata_only = sub->shelf->metadata_only = false;
    stop(sub);
    hub_sub_start(sub);
}

/* ---- life ---- */

struct hub_sub *hub_sub_create(struct hub_site *site, struct hub_wanted *wanted)
{
    struct hub_sub *sub = calloc(1, sizeof *sub);

    if (sub == NULL)
        return NULL;
    sub->site = site;
    sub->wanted = wanted;
    sub->shelf = hub_type_add_shelf(wanted->type, kr_bytes_str(site->name));
    if (sub->shelf == NULL) {
        free(sub);
        return NULL;
    }
    sub->shelf->subscribed = true;
    kr_buf_init(&sub->opening, OPENING_MAX);
    kr_backoff_init(&sub->backoff, BASE_MS, CAP_MS, KR_BACKOFF_HEALTHY_MS);
    kr_timer_init(&sub->retry, on_retry);
    kr_list_append(&site->subs, &sub->in_site);
    kr_list_append(&wanted->subs, &sub->in_wanted);
    return sub;
}

void hub_sub_destroy(struct hub_sub *sub, bool quiet)
{
    stop(sub);
    kr_timer_stop(worker(sub)->sched, &sub->retry);
    if (quiet)
        hub_shelf_clear(sub->shelf, true);
    hub_shelf_remove(sub->shelf);
    kr_buf_deinit(&sub->opening);
    kr_list_remove(&sub->in_site);
    kr_list_remove(&sub->in_wanted);
    free(sub);
}
