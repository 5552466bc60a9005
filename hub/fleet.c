/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet.h"

#include <stdlib.h>

#include "base/assert.h"
#include "hub/access.h"
#include "hub/authn.h"
#include "hub/fleet_list.h"
#include "hub/fleet_paths.h"
#include "hub/fleet_read.h"
#include "hub/fleet_review.h"
#include "hub/fleet_state.h"
#include "hub/fleet_watch.h"

#define AHEAD_STEP_MS 100
#define AHEAD_MAX_MS 3000 /* as kube-apiserver waits for a version that it has not seen yet */

struct hub_fleet *hub_fleet_create(struct hub_worker *w)
{
    struct hub_fleet *f = calloc(1, sizeof *f);

    if (f == NULL || hub_fleet_state_init(f, w) == 0)
        return f;
    hub_fleet_destroy(f);
    return NULL;
}

void hub_fleet_destroy(struct hub_fleet *f)
{
    if (f == NULL)
        return;
    hub_fleet_state_deinit(f);
    free(f);
}

/* ---- a list or watch that may begin ---- */

static void go(struct hub_read *rd);

static void on_ahead(struct kr_timer *t)
{
    struct hub_read *rd = KR_CONTAINER_OF(t, struct hub_read, timer);

    rd->waited_ms += AHEAD_STEP_MS;
    go(rd);
}

/* A version that only another replica, or the future, can have given out. */
static bool is_ahead(const struct hub_read *rd)
{
    return rd->options.has_version && rd->options.version > hub_cache_now(rd->f->w->cache);
}

static void go(struct hub_read *rd)
{
    if (is_ahead(rd) && rd->waited_ms >= AHEAD_MAX_MS) {
        hub_read_too_large(rd);
    } else if (is_ahead(rd)) {
        kr_timer_init(&rd->timer, on_ahead);
        if (kr_timer_start(rd->f->w->sched, &rd->timer, AHEAD_STEP_MS) != 0)
            hub_read_too_large(rd);
    } else if (rd->options.watch) {
        hub_watch_start(rd);
    } else {
        hub_list_start(rd);
    }
}

static void on_ready(struct hub_want *w)
{
    struct hub_read *rd = KR_CONTAINER_OF(w, struct hub_read, want);

    rd->ready = true;
    if (rd->watch != NULL)
        hub_watch_ready(rd);
    else if (!rd->options.watch)
        go(rd);
}

static void read_collection(struct hub_fleet *f, struct hub_request *r)
{
    struct hub_read *rd = hub_read_create(f, r);

    if (rd == NULL)
        return;
    rd->want.on_ready = on_ready;
    if (!rd->options.watch)
        return;
    hub_access_expect(f->w, r->caller);
    go(rd);
}

/* ---- what is served at all ---- */

static bool is_collection(const struct hub_request *r)
{
    return r->info.is_resource && r->info.parts == 1 && r->info.subresource.n == 0 &&
           (kr_bytes_is(r->info.verb, "list") || kr_bytes_is(r->info.verb, "watch"));
}

static void refuse_method(struct hub_request *r)
{
    struct kr_exchange *ex = kr_forward_release(&r->fw);

    if (r->info.is_resource && r->info.read_only)
        hub_fleet_refuse(r, ex, 405, "MethodNotAllowed",
                         "the fleet view serves list and watch only: several clusters may have an "
                         "object of that name; list with fieldSelector=metadata.name=NAME, or ask "
                         "a cluster, /clusters/NAME");
    else
        hub_fleet_refuse(r, ex, 405, "MethodNotAllowed",
                         "the fleet view serves list and watch only; to change something ask a "
                         "cluster, /clusters/NAME");
}

/* A hub that has just started has not seen its agents yet: what it would show could pass for the
 * loss of most objects. */
static bool is_young(const struct hub_worker *w)
{
    return w->sched->now_ms - w->started_ms < w->options->start_grace_ms;
}

void hub_fleet_serve(struct hub_fleet *f, struct hub_request *r)
{
    bool about_content = r->info.class != KR_REQUEST_OTHER;

    if (r->upgrade.n != 0)
        hub_request_refuse(r, KR_CASE_NO_UPGRADE, r->upgrade);
    else if (hub_fleet_review_begin(r))
        return;
    else if (!r->info.read_only || (r->info.is_resource && !is_collection(r)))
        refuse_method(r);
    else if (about_content && is_young(f->w))
        hub_request_refuse(r, r->is_watch ? KR_CASE_STARTING_WATCH : KR_CASE_STARTING,
                           (struct kr_bytes){NULL, 0});
    else if (r->info.is_resource)
        read_collection(f, r);
    else
        hub_fleet_path(r, kr_forward_release(&r->fw));
}

/* ---- all reads ---- */

void hub_fleet_reload(struct hub_fleet *f)
{
    KR_LIST_FOREACH_SAFE(node, &f->reads)
    {
        struct hub_read *rd = KR_CONTAINER_OF(node, struct hub_read, link);

        if (rd->list != NULL) /* was begun, and is not judged again */
            continue;
        if (rd->watch != NULL)
            hub_watch_judge_again(rd);
        if (hub_read_look_again(rd))
            continue;
        if (rd->watch != NULL)
            hub_watch_end(rd, 0);
        else
            hub_read_refuse(rd, 403, "Forbidden", "no access to the fleet view any more");
    }
}

void hub_fleet_end_watches(struct hub_fleet *f, int64_t spread_ms)
{
    KR_LIST_FOREACH_SAFE(node, &f->reads)
    {
        struct hub_read *rd = KR_CONTAINER_OF(node, struct hub_read, link);

        if (rd->watch != NULL)
            hub_watch_end(rd, kr_rand_ms(&f->w->rand, 0, spread_ms));
    }
}

void hub_fleet_end_expired(struct hub_fleet *f)
{
    KR_LIST_FOREACH_SAFE(node, &f->reads)
    {
        struct hub_read *rd = KR_CONTAINER_OF(node, struct hub_read, link);
        const struct hub_caller *caller = rd->r->caller;

        if (rd->watch == NULL)
            continue;
        if (hub_caller_expired(caller, f->w->sched->now_wall_ms) ||
            !hub_authn_still(f->w->authn, caller))
            hub_watch_end(rd, 0);
        else
            hub_access_expect(f->w, caller);
    }
}
