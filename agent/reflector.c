/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a reflector: what it asks next, and how it is told. What comes is in
 * reflector_read.c, how it ended in reflector_end.c. */
#include "agent/reflector.h"

#include "agent/counters.h"
#include "agent/question.h"
#include "agent/reflector_parts.h"
#include "base/assert.h"
#include "base/err.h"
#include "kube/list_options.h"

#define BACKOFF_MS 800
#define BACKOFF_MAX_MS 30000
#define BACKOFF_HEALTHY_MS 120000
#define PATIENCE_MS 10000  /* with a hub that does not read, while others wait to list */
#define RESYNC_MS 21600000 /* the latest list, however well the watches go */
#define WATCH_MIN_S 300
#define WATCH_MAX_S 600
#define REFUSAL_MAX (64u * 1024)
#define FAILURES_TOLD 3 /* in a row, before a type that was synced is told as failing */

void agent_rf_leave_place(struct agent_reflector *r)
{
    agent_list_place_leave(&r->place);
}

void agent_rf_relist(struct agent_reflector *r, const char *reason)
{
    r->version.n = 0;
    r->cont.n = 0;
    r->fresh = false;
    kr_metric_add(kr_metrics_get(r->cfg.c->metrics, AGENT_RELISTS, reason), 1);
}

void agent_rf_wait_ms(struct agent_reflector *r, int64_t ms)
{
    agent_rf_leave_place(r);
    r->fresh = false;
    r->state = AGENT_REFLECTOR_WAITING;
    kr_timer_start(r->cfg.c->sched, &r->timer, ms);
}

int64_t agent_rf_backoff(struct agent_reflector *r)
{
    return kr_backoff_next(&r->backoff, &r->cfg.c->rand, r->cfg.c->sched->now_ms);
}

void agent_rf_tell(struct agent_reflector *r, enum kr_sync_problem problem, const char *text)
{
    if (r->problem == problem)
        return;
    r->problem = problem;
    KR_LOG_AT(r->cfg.c->log, problem == KR_SYNC_OK ? KR_LOG_INFO : KR_LOG_WARN,
              problem == KR_SYNC_OK ? "sync-ok" : "sync-problem",
              KR_S("resource", r->cfg.target->name), KR_S("reason", text));
    r->cfg.ops->on_problem(r->cfg.user, problem, text);
}

/* It works: what was told of it is over. */
void agent_rf_settled(struct agent_reflector *r)
{
    r->failures = r->error_events = r->streams_cut = 0;
    kr_backoff_up(&r->backoff, r->cfg.c->sched->now_ms);
    agent_rf_tell(r, KR_SYNC_OK, "");
}

/* It did not work: again, after a while. */
void agent_rf_failed(struct agent_reflector *r, const char *why)
{
    KR_LOG_AT(r->cfg.c->log, KR_LOG_DEBUG, "sync-failed", KR_S("resource", r->cfg.target->name),
              KR_I("state", r->state), KR_I("status", r->status), KR_S("reason", why));
    r->cont.n = 0; /* a list begins anew */
    r->failures++;
    agent_rf_wait_ms(r, agent_rf_backoff(r));
    if (!r->synced || r->failures >= FAILURES_TOLD)
        agent_rf_tell(r, KR_SYNC_FAILING, why);
}

void agent_rf_take(struct kr_buf *to, struct kr_bytes version)
{
    to->n = 0;
    if (kr_buf_append(to, version) != 0)
        to->n = 0; /* then a list is due */
}

/* Only numbers can be compared; a server may use other words for its versions. */
static bool is_number(struct kr_bytes v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < '0' || v.p[i] > '9')
            return false;
    }
    return v.n != 0 && v.p[0] != '0';
}

bool agent_rf_runs_backwards(const struct agent_reflector *r, struct kr_bytes now)
{
    struct kr_bytes before = kr_buf_bytes(&r->version);

    return is_number(before) && is_number(now) && kr_version_compare(now, before) < 0;
}

/* ---- what to ask next ---- */

static void on_granted(struct agent_list_place *p)
{
    struct agent_reflector *r = KR_CONTAINER_OF(p, struct agent_reflector, place);

    agent_rf_ask(r, r->pages_only || !agent_server_streams(r->cfg.c->health.version)
                        ? AGENT_REFLECTOR_LISTING
                        : AGENT_REFLECTOR_STREAMING);
}

void agent_rf_next(struct agent_reflector *r)
{
    if (r->version.n != 0 && !r->fresh && r->synced &&
        r->cfg.c->sched->now_ms - r->listed_ms >= RESYNC_MS)
        agent_rf_relist(r, "resync");
    if (r->version.n == 0) {
        r->state = AGENT_REFLECTOR_QUEUED;
        r->place.priority = r->cfg.priority;
        agent_list_place_ask(r->cfg.gate, &r->place);
    } else if (!r->fresh && is_number(kr_buf_bytes(&r->version))) {
        agent_rf_ask(r, AGENT_REFLECTOR_CHECKING);
    } else {
        agent_rf_ask(r, AGENT_REFLECTOR_WATCHING);
    }
}

static void on_timer(struct kr_timer *t)
{
    struct agent_reflector *r = KR_CONTAINER_OF(t, struct agent_reflector, timer);

    if (r->state == AGENT_REFLECTOR_WAITING)
        agent_rf_next(r);
    else if (r->state == AGENT_REFLECTOR_WATCHING)
        agent_rf_settled(r);
    else
        agent_rf_leave_place(r); /* a list that its reader holds up; others may go first */
}

/* ---- asking ---- */

void agent_rf_ask(struct agent_reflector *r, enum agent_reflector_state state)
{
    static const enum agent_question_kind kinds[] = {
        [AGENT_REFLECTOR_LISTING] = AGENT_ASK_PAGE,
        [AGENT_REFLECTOR_STREAMING] = AGENT_ASK_STREAM,
        [AGENT_REFLECTOR_CHECKING] = AGENT_ASK_VERSION,
        [AGENT_REFLECTOR_WATCHING] = AGENT_ASK_WATCH,
    };
    struct agent_question q = {
        .kind = kinds[state],
        .target = r->cfg.target,
        .plain = r->plain,
        .metadata_only = r->cfg.metadata_only,
        .whole = r->whole,
        .version = kr_buf_bytes(&r->version),
        .cont = kr_buf_bytes(&r->cont),
        .timeout_s = kr_rand_ms(&r->cfg.c->rand, WATCH_MIN_S, WATCH_MAX_S),
    };
    int rc;

    r->state = state;
    r->status = 0;
    r->retry_after_ms = 0;
    r->error.n = 0;
    r->events = 0;
    r->end = AGENT_END_NONE;
    r->stalled = false;
    r->timeout_s = q.timeout_s;
    r->begun_ms = r->cfg.c->sched->now_ms;
    kr_timer_stop(r->cfg.c->sched, &r->timer);
    rc = agent_question_ask(&q, &r->get);
    if (rc != 0)
        agent_rf_failed(r, kr_err_text(rc));
    else if (state == AGENT_REFLECTOR_LISTING || state == AGENT_REFLECTOR_STREAMING)
        kr_metric_add(kr_metrics_get(r->cfg.c->metrics, AGENT_LISTS, r->cfg.target->name), 1);
    else if (state == AGENT_REFLECTOR_WATCHING)
        kr_metric_add(kr_metrics_get(r->cfg.c->metrics, AGENT_WATCHES, r->cfg.target->name), 1);
}

void agent_rf_stall(struct agent_reflector *r)
{
    r->stalled = true;
    if (r->place.held)
        kr_timer_start(r->cfg.c->sched, &r->timer, PATIENCE_MS);
}

void agent_reflector_read_on(struct agent_reflector *r)
{
    if (!r->stalled)
        return;
    r->stalled = false;
    if (r->state == AGENT_REFLECTOR_PAUSED) {
        agent_rf_ask(r, AGENT_REFLECTOR_LISTING);
        return;
    }
    if (r->state == AGENT_REFLECTOR_LISTING || r->state == AGENT_REFLECTOR_STREAMING)
        kr_timer_stop(r->cfg.c->sched, &r->timer);
    agent_get_consumed(&r->get, r->get.owed);
}

static const struct agent_get_ops get_ops = {agent_rf_on_head, agent_rf_on_body, agent_rf_on_done};

/* ---- for the owner ---- */

void agent_reflector_init(struct agent_reflector *r, const struct agent_reflector_config *cfg)
{
    *r = (struct agent_reflector){.cfg = *cfg};
    agent_get_init(&r->get, cfg->c, &get_ops, r);
    kr_timer_init(&r->timer, on_timer);
    kr_backoff_init(&r->backoff, BACKOFF_MS, BACKOFF_MAX_MS, BACKOFF_HEALTHY_MS);
    kr_buf_init(&r->version, AGENT_VERSION_MAX);
    kr_buf_init(&r->list_version, AGENT_VERSION_MAX);
    kr_buf_init(&r->cont, REFUSAL_MAX);
    kr_buf_init(&r->error, REFUSAL_MAX);
    r->place.on_granted = on_granted;
    r->listener.on_round = agent_rf_on_round;
    r->m_bytes = kr_metrics_get(cfg->c->metrics, AGENT_SYNC_READ_BYTES, cfg->target->name);
}

void agent_reflector_stop(struct agent_reflector *r)
{
    r->epoch++;
    r->state = AGENT_REFLECTOR_IDLE;
    r->stalled = false;
    kr_timer_stop(r->cfg.c->sched, &r->timer);
    agent_catalog_unlisten(&r->listener);
    agent_rf_leave_place(r);
    agent_get_abort(&r->get);
    if (!r->feeding)
        agent_reading_stop(&r->reading);
}

void agent_reflector_start(struct agent_reflector *r, struct kr_bytes version)
{
    agent_reflector_stop(r);
    agent_rf_take(&r->version, version);
    r->fresh = false;
    r->synced = r->synced || version.n != 0;
    if (r->listed_ms == 0)
        r->listed_ms = r->cfg.c->sched->now_ms;
    r->cont.n = 0;
    if (version.n == 0)
        agent_rf_relist(r, "start");
    r->state = AGENT_REFLECTOR_WAITING;
    kr_timer_start(r->cfg.c->sched, &r->timer, 0);
}

void agent_reflector_deinit(struct agent_reflector *r)
{
    if (r->cfg.c == NULL)
        return;
    KR_ASSERT(!r->feeding);
    agent_reflector_stop(r);
    agent_get_deinit(&r->get);
    kr_buf_deinit(&r->version);
    kr_buf_deinit(&r->list_version);
    kr_buf_deinit(&r->cont);
    kr_buf_deinit(&r->error);
}

struct kr_bytes agent_reflector_version(const struct agent_reflector *r)
{
    return kr_buf_bytes(&r->version);
}
