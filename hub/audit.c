/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "certs/audit_log.h"
#include "hub/counters.h"
#include "kube/audit_event.h"
#include "wire/request_header.h"

struct hub_audit_entry {
    enum kr_audit_outcome outcome;
    bool settled; /* the outcome is known */
    bool forbid;
    const char *reason;
    char *instance;     /* of the agent that it was given to last; NULL: to none */
    struct kr_buf text; /* of kr_audit_request_write */
};

int hub_audit_open(struct hub_worker *w, struct kr_note *why)
{
    struct kr_audit_log_config cfg = {
        .options = &w->options->audit,
        .sched = w->sched,
        .log = w->log,
        .lines = kr_metrics_series(w->metrics, HUB_AUDIT_LINES, NULL, 0),
        .lost = kr_metrics_series(w->metrics, HUB_AUDIT_LOST, NULL, 0),
        .failing = kr_metrics_series(w->metrics, HUB_AUDIT_FAILING, NULL, 0),
    };

    return kr_audit_log_open(&w->audit, &cfg, why);
}

/* ---- a request ---- */

static int add_as(const struct hub_request *r, struct kr_arena *arena, struct kr_audit_user *out)
{
    struct kr_audit_extra *extra =
        kr_arena_alloc(arena, (r->as.extra_count + 1) * sizeof(struct kr_audit_extra));

    if (extra == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < r->as.extra_count; i++)
        extra[i] = (struct kr_audit_extra){r->as.extra[i].key, r->as.extra[i].values,
                                           r->as.extra[i].value_count};
    *out = (struct kr_audit_user){
        .name = r->as.user,
        .uid = r->as.uid,
        .groups = r->as.groups,
        .group_count = r->as.group_count,
        .extra = extra,
        .extra_count = r->as.extra_count,
    };
    return 0;
}

static struct kr_bytes address_of(const struct hub_peer *peer)
{
    struct kr_bytes b = kr_bytes_str(peer->address);
    const char *colon = strrchr(peer->address, ':');

    if (colon != NULL)
        b.n = (size_t)(colon - peer->address);
    if (b.n > 2 && b.p[0] == '[') /* [::1]:443 */
        b = kr_bytes_of(b.p + 1, b.n - 2);
    return b;
}

/* Who and what, while the head is there. */
static int fill(struct hub_request *r, struct kr_arena *arena, struct kr_audit_request *a)
{
    const struct kr_head *h = &r->fw.in->head;
    const struct kr_sched *sched = r->w->sched;

    *a = (struct kr_audit_request){
        .id = kr_bytes_str(r->audit_id),
        .uri = h->path,
        .verb = r->info.target.n != 0 ? r->info.verb : h->method,
        .source = address_of(r->peer),
        .user_agent = kr_head_get(h, KR_LIT("user-agent")),
        .info = &r->info,
        .received_wall_us = (sched->now_wall_ms - (sched->now_ms - r->started_ms)) * 1000,
    };
    if (r->caller != NULL)
        a->user = (struct kr_audit_user){.name = r->caller->user,
                                         .uid = r->caller->uid,
                                         .groups = r->caller->groups,
                                         .group_count = r->caller->group_count};
    return r->as.asked ? add_as(r, arena, &a->as) : 0;
}

static struct hub_audit_entry *entry_of(struct hub_request *r)
{
    struct hub_audit_entry *e;
    struct kr_audit_request a;
    struct kr_arena arena;
    int rc;

    if (r->audit != NULL || r->w->audit == NULL || r->fw.in == NULL)
        return r->audit;
    e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    kr_buf_init(&e->text, KR_AUDIT_LINE_MAX);
    kr_arena_init(&arena, 512, 65536);
    rc = fill(r, &arena, &a);
    if (rc == 0)
        rc = kr_audit_request_write(&a, &e->text);
    kr_arena_deinit(&arena);
    if (rc == 0) {
        r->audit = e;
    } else {
        kr_buf_deinit(&e->text);
        free(e);
    }
    return r->audit;
}

static int write_line(struct hub_request *r, enum kr_audit_stage stage)
{
    const struct hub_audit_entry *e = r->audit;
    struct kr_audit_facts f = {
        .stage = stage,
        .wall_us = r->w->sched->now_wall_ms * 1000,
        .code = r->code,
        .reason = e->reason,
        .cluster = kr_bytes_str(r->cluster_path.text),
        .forbid = e->forbid,
        .rule = kr_bytes_str(r->rule),
        .instance = kr_bytes_str(e->instance != NULL ? e->instance : ""),
        .request_uid = kr_bytes_str(r->audit_id),
        .outcome = e->outcome,
        .bytes_in = r->fw.up_bytes,
        .bytes_out = r->fw.down_bytes + r->own_bytes,
    };
    struct kr_buf line = {.max = KR_AUDIT_LINE_MAX};

    if (stage == KR_AUDIT_COMPLETE && f.code == 0)
        f.code = 499; /* the client left before it had an answer */
    kr_audit_event_write(kr_buf_bytes(&e->text), &f, &line);
    return kr_audit_log_put(r->w->audit, &line);
}

bool hub_audit_begin(struct hub_request *r)
{
    struct hub_audit_entry *e = entry_of(r);

    if (r->w->audit == NULL || (r->info.read_only && !r->info.connects))
        return true;
    return kr_audit_log_allows(r->w->audit,
                               e != NULL ? write_line(r, KR_AUDIT_RECEIVED) : KR_ENOMEM);
}

void hub_audit_routed(struct hub_request *r, const struct kr_conn *conn)
{
    const char *instance = r->audit != NULL ? hub_cluster_instance(r->cluster, conn) : NULL;

    if (instance == NULL)
        return;
    free(r->audit->instance);
    r->audit->instance = strdup(instance);
}

/* Of the cases in which the request may have reached an agent: whether it ran is not known. */
static bool is_unknown(const struct hub_request *r, enum kr_case which)
{
    switch (which) {
    case KR_CASE_LOST_READ:
    case KR_CASE_LOST_WRITE:
    case KR_CASE_DEADLINE:
    case KR_CASE_BAD_AGENT:
    case KR_CASE_BODY_TOO_LARGE:
    case KR_CASE_REDIRECT:
    case KR_CASE_UPGRADE_FAILED:
        return r->attempts != 0;
    case KR_CASE_AWAY_WATCH:
        return r->lost;
    default:
        return false;
    }
}

void hub_audit_refused(struct hub_request *r, enum kr_case which)
{
    struct hub_audit_entry *e = entry_of(r);
    struct kr_case_facts none = {0};
    struct kr_case_answer answer = {0};

    if (e == NULL)
        return;
    kr_case_write(which, &none, &answer, NULL, NULL);
    e->reason = answer.reason;
    e->forbid = which == KR_CASE_UNAUTHORIZED || which == KR_CASE_DENIED ||
                which == KR_CASE_UNKNOWN_CLUSTER || which == KR_CASE_IMPERSONATION;
    e->outcome = is_unknown(r, which) ? KR_AUDIT_UNKNOWN : KR_AUDIT_NOT_FORWARDED;
    e->settled = true;
}

void hub_audit_answered(struct hub_request *r, const struct kr_head *from)
{
    struct kr_bytes text = kr_head_get(from, KR_LIT(KR_RESPONSE_HEADER));
    struct kr_relay_response m = {0};
    struct kr_arena arena;

    if (r->audit == NULL || text.n == 0)
        return;
    kr_arena_init(&arena, 256, 65536);
    if (kr_response_header_read(&m, text, &arena, NULL) == 0 && m.origin == KR_ORIGIN_AGENT) {
        r->audit->outcome = m.not_sent ? KR_AUDIT_NOT_FORWARDED : KR_AUDIT_UNKNOWN;
        r->audit->settled = true;
    }
    kr_arena_deinit(&arena);
}

void hub_audit_begun(struct hub_request *r)
{
    if (r->audit != NULL && r->long_running)
        write_line(r, KR_AUDIT_STARTED);
}

static enum kr_audit_outcome outcome_of(const struct hub_request *r)
{
    if (r->code == 0)
        return r->attempts == 0 ? KR_AUDIT_NOT_FORWARDED : KR_AUDIT_UNKNOWN;
    return r->attempts == 0 && r->code >= 400 ? KR_AUDIT_NOT_FORWARDED : KR_AUDIT_COMPLETED;
}

void hub_audit_end(struct hub_request *r)
{
    struct hub_audit_entry *e = r->audit;

    if (e == NULL)
        return;
    if (!e->settled)
        e->outcome = outcome_of(r);
    if (r->cluster_path.fleet && r->code == 403)
        e->forbid = true;
    write_line(r, KR_AUDIT_COMPLETE);
    kr_buf_deinit(&e->text);
    free(e->instance);
    free(e);
    r->audit = NULL;
}
