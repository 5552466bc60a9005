/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of a list or a watch. The owner may stop or start the reflector from within any of its
 * callbacks: then the epoch is another one, and nothing more is done here. */
#include "agent/reflector_parts.h"
#include "base/err.h"

#define WATCH_SLACK_MS 30000
#define SETTLED_MS 10000 /* a watch that is quiet for so long is well */

void agent_rf_break_off(struct agent_reflector *r)
{
    agent_get_abort(&r->get);
    agent_reading_stop(&r->reading);
}

/* The list is whole: what it did not have is not there. False: the owner wants something else. */
bool agent_rf_list_ended(struct agent_reflector *r, struct kr_bytes version)
{
    unsigned epoch = r->epoch;

    agent_rf_take(&r->version, version);
    r->fresh = true;
    r->synced = true;
    r->whole = false;
    r->restarts = 0;
    r->cont.n = 0;
    r->listed_ms = r->cfg.c->sched->now_ms;
    agent_rf_leave_place(r);
    agent_rf_settled(r);
    if (r->epoch == epoch)
        r->cfg.ops->on_list_end(r->cfg.user);
    return r->epoch == epoch;
}

static int on_columns(void *user, struct kr_bytes columns)
{
    struct agent_reflector *r = user;
    unsigned epoch = r->epoch;

    if (r->state != AGENT_REFLECTOR_CHECKING)
        r->cfg.ops->on_columns(r->cfg.user, columns);
    return r->epoch == epoch ? 0 : KR_ECANCELED;
}

static int on_element(void *user, const struct agent_seen *seen)
{
    struct agent_reflector *r = user;
    unsigned epoch = r->epoch;
    int rc = r->state == AGENT_REFLECTOR_LISTING ? r->cfg.ops->on_object(r->cfg.user, seen) : 0;

    return r->epoch == epoch ? rc : KR_ECANCELED;
}

static int broken(struct agent_reflector *r, enum agent_reflector_end end)
{
    r->end = end;
    return KR_ECANCELED;
}

static int on_error_event(struct agent_reflector *r, const struct kr_watch_event *e)
{
    if (r->state == AGENT_REFLECTOR_STREAMING)
        return broken(r, AGENT_END_ERROR);
    if (e->code == 410 || kr_bytes_is(e->reason, "Expired") || kr_bytes_is(e->reason, "Gone"))
        return broken(r, AGENT_END_EXPIRED);
    r->status = e->code;
    r->retry_after_ms =
        e->retry_after_s > 0 && e->retry_after_s < 3600 ? e->retry_after_s * 1000 : 0;
    return broken(r, AGENT_END_ERROR);
}

static int on_bookmark(struct agent_reflector *r, const struct kr_watch_event *e)
{
    if (r->state != AGENT_REFLECTOR_STREAMING) {
        r->bookmark = true;
        return 0;
    }
    if (!e->initial_end || e->version.n == 0 || e->version.n > AGENT_VERSION_MAX)
        return broken(r, AGENT_END_MARKLESS);
    if (!agent_rf_list_ended(r, e->version))
        return KR_ECANCELED;
    r->state = AGENT_REFLECTOR_WATCHING;
    agent_get_silence(&r->get, r->timeout_s * 1000 + WATCH_SLACK_MS);
    r->fresh = false;
    r->bookmark = true;
    return 0;
}

/* A change may be told only if its version is not from another history. */
static int on_change(struct agent_reflector *r, const struct kr_watch_event *e,
                     const struct agent_seen *seen)
{
    unsigned epoch = r->epoch;
    int rc = 0;

    if (e->type == KR_EVENT_BOOKMARK)
        rc = on_bookmark(r, e);
    else if (e->type == KR_EVENT_DELETED)
        r->cfg.ops->on_gone(r->cfg.user, seen);
    else
        rc = r->cfg.ops->on_object(r->cfg.user, seen);
    if (rc != 0 || r->epoch != epoch)
        return rc != 0 ? rc : KR_ECANCELED;
    if (r->state == AGENT_REFLECTOR_WATCHING && e->version.n != 0) {
        agent_rf_take(&r->version, e->version);
        r->fresh = false;
    }
    return 0;
}

static int on_event(void *user, const struct kr_watch_event *e, const struct agent_seen *seen)
{
    struct agent_reflector *r = user;
    unsigned epoch = r->epoch;

    if (e->type == KR_EVENT_ERROR)
        return on_error_event(r, e);
    r->events++;
    if (r->state == AGENT_REFLECTOR_WATCHING) {
        if (agent_rf_runs_backwards(r, e->version))
            return broken(r, AGENT_END_REWOUND);
        agent_rf_settled(r);
        if (r->epoch != epoch)
            return KR_ECANCELED;
    }
    return on_change(r, e, seen);
}

static void on_skipped(void *user)
{
    struct agent_reflector *r = user;

    if (r->state != AGENT_REFLECTOR_CHECKING)
        r->cfg.ops->on_skipped(r->cfg.user);
}

static const struct agent_reading_ops reading_ops = {on_columns, on_element, on_event, on_skipped};

/* The answer is good: its body is read. */
static int begin_reading(struct agent_reflector *r)
{
    enum agent_objects wanted = r->state == AGENT_REFLECTOR_CHECKING ? AGENT_OBJECTS_NONE
                                : r->cfg.metadata_only               ? AGENT_OBJECTS_METADATA
                                                                     : AGENT_OBJECTS_WHOLE;
    bool watch = r->state == AGENT_REFLECTOR_WATCHING || r->state == AGENT_REFLECTOR_STREAMING;
    bool first = r->state == AGENT_REFLECTOR_STREAMING ||
                 (r->state == AGENT_REFLECTOR_LISTING && r->cont.n == 0);

    if (first)
        r->cfg.ops->on_list(r->cfg.user);
    if (r->state == AGENT_REFLECTOR_WATCHING)
        kr_timer_start(r->cfg.c->sched, &r->timer, SETTLED_MS);
    if (!watch)
        return agent_reading_list(&r->reading, &reading_ops, r, wanted);
    agent_reading_watch(&r->reading, &reading_ops, r, wanted);
    return 0;
}

void agent_rf_on_head(void *user, const struct kr_head *head)
{
    struct agent_reflector *r = user;
    unsigned epoch = r->epoch;
    uint64_t s;

    r->status = head->status;
    if (head->status != 200) {
        if (kr_bytes_to_u64(kr_head_get(head, KR_LIT("retry-after")), 3600, &s))
            r->retry_after_ms = (int64_t)s * 1000;
        return;
    }
    if (begin_reading(r) != 0 && r->epoch == epoch) {
        agent_rf_break_off(r);
        agent_rf_failed(r, "out of memory");
    }
}

void agent_rf_on_body(void *user, struct kr_bytes in)
{
    struct agent_reflector *r = user;
    unsigned epoch = r->epoch;
    int rc;

    r->raw_bytes += in.n;
    kr_metric_add(r->m_bytes, (int64_t)in.n);
    if (r->status != 200) {
        kr_buf_append(&r->error, in); /* what does not fit is not needed */
        agent_get_consumed(&r->get, in.n);
        return;
    }
    r->bookmark = false;
    r->feeding = true;
    rc = agent_reading_feed(&r->reading, in);
    r->feeding = false;
    if (r->epoch != epoch) {
        agent_reading_stop(&r->reading);
        return;
    }
    if (rc != 0) {
        agent_rf_broke_off(r, rc);
        return;
    }
    if (r->cfg.ops->may_read(r->cfg.user, r->bookmark) && r->epoch == epoch)
        agent_get_consumed(&r->get, r->get.owed);
    else if (r->epoch == epoch)
        agent_rf_stall(r);
}
