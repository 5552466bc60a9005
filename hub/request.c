/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/uuid.h"
#include "hub/access.h"
#include "hub/audit.h"
#include "hub/counters.h"
#include "hub/fleet_write.h"
#include "hub/relay.h"

/* A version 4 UUID (RFC 9562): kube-apiserver adopts it as the audit id. */
static void make_id(struct hub_request *r)
{
    uint64_t a = kr_rand_u64(&r->w->rand);
    uint64_t b = kr_rand_u64(&r->w->rand);

    kr_uuid_v4(a, b, r->id);
    kr_uuid_write(r->id, r->audit_id);
}

void hub_request_start(struct hub_worker *w, const struct hub_peer *peer, struct kr_exchange *ex)
{
    struct hub_request *r =
        w->requests < (size_t)w->options->max_requests ? calloc(1, sizeof *r) : NULL;
    struct kr_case_facts facts = {.detail = KR_LIT("too many requests at once"), .busy_s = 1};

    if (r == NULL) {
        hub_answer(w, ex, KR_CASE_OVERLOADED, &facts, (struct kr_bytes){NULL, 0});
        return;
    }
    r->w = w;
    r->peer = peer;
    r->started_ms = w->sched->now_ms;
    r->verdict = -1;
    r->verb_label = "";
    make_id(r);
    hub_relay_init(r);
    kr_arena_init(&r->arena, 512, 4 * KR_HEAD_MAX);
    r->arena.wipe = true; /* a token may be in it */
    kr_list_append(&w->live, &r->link);
    w->requests++;
    kr_metric_add(w->m_requests_live, 1);
    kr_forward_in(&r->fw, ex);
    hub_pipeline_run(r);
}

void hub_request_refuse(struct hub_request *r, enum kr_case which, struct kr_bytes detail)
{
    struct kr_exchange *ex = NULL;
    struct hub_answer given;
    struct kr_case_facts facts = {
        .cluster = r->cluster_path.name,
        .detail = detail,
        .request = r->info.target.n != 0 ? &r->info : NULL,
        .busy_s = 1,
    };

    if (r->cluster != NULL)
        facts.away_s = (unsigned)(hub_cluster_away_ms(&r->w->clusters, r->cluster) / 1000);
    else /* one that has not dialled yet */
        facts.away_s = (unsigned)((r->w->sched->now_ms - r->w->started_ms) / 1000);
    hub_audit_refused(r, which);
    ex = kr_forward_release(&r->fw);
    KR_ASSERT(ex != NULL);
    given = hub_answer(r->w, ex, which, &facts, kr_bytes_str(r->audit_id));
    r->code = given.code;
    r->own_bytes += given.size;
    KR_LOG_AT(r->w->log, KR_LOG_INFO, "request-refused", KR_S("case", kr_case_name(which)),
              KR_I("code", r->code), KR_S("user", hub_caller_name(r->caller)),
              KR_S("cluster", r->cluster_path.text), KR_S("verb", r->verb_label),
              KR_B("path", r->info.path), KR_B("detail", detail), KR_S("id", r->audit_id));
    hub_request_end(r);
}

static void count_end(struct hub_request *r)
{
    char code[8];
    int shown = r->code != 0 ? r->code : 499; /* the client left before it had an answer */

    snprintf(code, sizeof code, "%d", shown % 1000);
    kr_metric_add(kr_metrics_get(r->w->metrics, HUB_REQUESTS, r->verb_label, code), 1);
    kr_metric_add(r->w->m_bytes_up, (int64_t)r->fw.up_bytes);
    kr_metric_add(r->w->m_bytes_down, (int64_t)r->fw.down_bytes);
    if (r->long_running)
        kr_metric_add(r->w->m_long_live, -1);
    else
        kr_metric_observe(r->w->m_seconds, r->w->sched->now_ms - r->started_ms);
}

void hub_request_end(struct hub_request *r)
{
    struct hub_worker *w = r->w;

    count_end(r);
    kr_timer_stop(w->sched, &r->deadline);
    kr_timer_stop(w->sched, &r->hold);
    kr_list_remove(&r->waiter.link);
    kr_list_remove(&r->link);
    hub_audit_end(r);
    hub_write_end(r);
    hub_access_forget(r);
    hub_caller_unref(r->caller);
    kr_forward_deinit(&r->fw);
    kr_arena_deinit(&r->arena);
    free(r);
    w->requests--;
    kr_metric_add(w->m_requests_live, -1);
}

bool hub_requests_use(const struct hub_worker *w, const struct hub_cluster *c)
{
    KR_LIST_FOREACH(node, &w->live)
    {
        if (KR_CONTAINER_OF(node, struct hub_request, link)->cluster == c)
            return true;
    }
    return false;
}

void hub_requests_end_watches(struct hub_worker *w, int64_t spread_ms)
{
    KR_LIST_FOREACH_SAFE(node, &w->live)
    {
        struct hub_request *r = KR_CONTAINER_OF(node, struct hub_request, link);

        if (r->is_watch && r->fw.response_begun)
            kr_timer_start(w->sched, &r->deadline, kr_rand_ms(&w->rand, 0, spread_ms));
    }
}
