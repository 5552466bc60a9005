/* SPDX-License-Identifier: Apache-2.0 */
/* How a list or a watch ended, and what follows from it. */
#include <stdio.h>

#include "agent/counters.h"
#include "agent/question.h"
#include "agent/reflector_parts.h"
#include "base/assert.h"
#include "base/err.h"

#define FORBIDDEN_MS 300000
#define RETRY_AFTER_MAX_MS 60000
#define SHORT_WATCH_MS 1000 /* a watch that ends earlier and without an event is not well */
#define RESTARTS_MAX 2      /* of a list in pages, before it is asked for in one */
#define STREAMS_CUT_MAX 2   /* WatchLists that broke, before pages are tried */
#define FAILURES_TOLD 3     /* in a row, before a type that was synced is told as failing */

/* A new list, but not in a tight loop. */
static void list_anew(struct agent_reflector *r, const char *reason)
{
    agent_rf_relist(r, reason);
    agent_rf_wait_ms(r, agent_rf_backoff(r));
}

/* The pages do not fit together any more: from the first one, at last in one piece. */
static void restart_list(struct agent_reflector *r)
{
    r->whole = ++r->restarts > RESTARTS_MAX;
    list_anew(r, "expired");
}

static void stream_broke(struct agent_reflector *r, const char *why)
{
    r->pages_only = ++r->streams_cut >= STREAMS_CUT_MAX;
    agent_rf_failed(r, why);
}

static void error_event(struct agent_reflector *r)
{
    if (r->state == AGENT_REFLECTOR_STREAMING) {
        stream_broke(r, "the API server sent an error");
        return;
    }
    if (r->status != 429 && ++r->error_events > 1)
        agent_rf_relist(r, "error");
    if (r->status == 429 && r->retry_after_ms != 0)
        agent_rf_wait_ms(r, r->retry_after_ms < RETRY_AFTER_MAX_MS ? r->retry_after_ms
                                                                   : RETRY_AFTER_MAX_MS);
    else
        agent_rf_failed(r, "the API server sent an error");
}

/* What was read made us stop reading. */
void agent_rf_broke_off(struct agent_reflector *r, int rc)
{
    char why[sizeof r->reading.why.text];
    bool listing = r->state == AGENT_REFLECTOR_LISTING || r->state == AGENT_REFLECTOR_STREAMING;

    snprintf(why, sizeof why, "%s",
             r->reading.why.text[0] != '\0' ? r->reading.why.text : kr_err_text(rc));
    agent_rf_break_off(r);
    if (r->end == AGENT_END_EXPIRED) {
        list_anew(r, "expired");
    } else if (r->end == AGENT_END_REWOUND) {
        list_anew(r, "rewound");
    } else if (r->end == AGENT_END_MARKLESS) {
        r->pages_only = true;
        list_anew(r, "no-mark");
    } else if (r->end == AGENT_END_ERROR) {
        error_event(r);
    } else if (rc == KR_EUNSUPPORTED && !r->plain) {
        r->plain = true;
        list_anew(r, "form");
    } else if (r->state == AGENT_REFLECTOR_STREAMING) {
        stream_broke(r, why);
    } else {
        if (!listing && r->state != AGENT_REFLECTOR_CHECKING && r->failures >= 1)
            agent_rf_relist(r, "broken"); /* a line that nobody can read comes again and again */
        agent_rf_failed(r, why);
    }
}

static void page_ended(struct agent_reflector *r)
{
    bool stalled = r->stalled;

    if (agent_reading_end(&r->reading) != 0) {
        agent_rf_broke_off(r, KR_EPROTO);
        return;
    }
    if (r->cont.n == 0)
        agent_rf_take(&r->list_version, agent_reading_version(&r->reading));
    agent_rf_take(&r->cont, agent_reading_continue(&r->reading));
    agent_reading_stop(&r->reading);
    if (r->list_version.n == 0) {
        agent_rf_failed(r, "the version of the list is too long");
        return;
    }
    if (r->cont.n == 0) {
        if (agent_rf_list_ended(r, kr_buf_bytes(&r->list_version)))
            agent_rf_ask(r, AGENT_REFLECTOR_WATCHING);
        return;
    }
    if (!stalled) {
        agent_rf_ask(r, AGENT_REFLECTOR_LISTING);
        return;
    }
    r->state = AGENT_REFLECTOR_PAUSED;
    agent_rf_stall(r);
}

static void check_ended(struct agent_reflector *r)
{
    int rc = agent_reading_end(&r->reading);
    bool back = rc == 0 && agent_rf_runs_backwards(r, agent_reading_version(&r->reading));

    agent_reading_stop(&r->reading);
    if (rc != 0)
        agent_rf_failed(r, "the API server's answer is no list");
    else if (back)
        list_anew(r, "rewound");
    else
        agent_rf_ask(r, AGENT_REFLECTOR_WATCHING);
}

static void watch_ended(struct agent_reflector *r)
{
    agent_reading_stop(&r->reading);
    r->fresh = false;
    if (r->events != 0 || r->cfg.c->sched->now_ms - r->begun_ms >= SHORT_WATCH_MS)
        agent_rf_next(r);
    else
        agent_rf_failed(r, "the watch ended at once");
}

static void body_ended(struct agent_reflector *r)
{
    switch (r->state) {
    case AGENT_REFLECTOR_LISTING:
        page_ended(r);
        break;
    case AGENT_REFLECTOR_CHECKING:
        check_ended(r);
        break;
    case AGENT_REFLECTOR_WATCHING:
        watch_ended(r);
        break;
    default:
        agent_reading_stop(&r->reading);
        stream_broke(r, "the list in a watch ended early");
    }
}

void agent_rf_on_round(struct agent_catalog_listener *l, bool ok)
{
    struct agent_reflector *r = KR_CONTAINER_OF(l, struct agent_reflector, listener);
    const struct agent_target *t = r->cfg.target;
    bool served = agent_catalog_find(r->cfg.c->catalog, kr_bytes_str(t->group),
                                     kr_bytes_str(t->version), kr_bytes_str(t->resource)) != NULL;

    if (r->state == AGENT_REFLECTOR_CONFIRMING && (!ok || served)) {
        agent_catalog_unlisten(l);
        agent_rf_failed(r, "the API server says 404");
    } else if (r->state == AGENT_REFLECTOR_CONFIRMING) {
        r->state = AGENT_REFLECTOR_GONE;
        r->version.n = 0;
        agent_rf_tell(r, KR_SYNC_NOT_SERVED, "the API server does not serve it");
    } else if (ok && served) {
        agent_catalog_unlisten(l);
        agent_rf_next(r);
    }
}

static void not_found(struct agent_reflector *r)
{
    agent_rf_leave_place(r);
    r->state = AGENT_REFLECTOR_CONFIRMING;
    agent_catalog_listen(r->cfg.c->catalog, &r->listener);
    agent_catalog_refresh(r->cfg.c->catalog);
}

static void expired(struct agent_reflector *r)
{
    if (r->state == AGENT_REFLECTOR_LISTING && r->cont.n != 0)
        restart_list(r);
    else if (r->state == AGENT_REFLECTOR_LISTING)
        agent_rf_failed(r, "the API server says 410 to a list");
    else
        list_anew(r, "expired");
}

static void busy(struct agent_reflector *r)
{
    int64_t ms = r->retry_after_ms != 0 ? r->retry_after_ms : agent_rf_backoff(r);

    r->cont.n = 0;
    agent_rf_wait_ms(r, ms < RETRY_AFTER_MAX_MS ? ms : RETRY_AFTER_MAX_MS);
    if (++r->failures >= FAILURES_TOLD) /* a server says so for a second while it starts, too */
        agent_rf_tell(r, KR_SYNC_FAILING, "the API server is too busy");
}

static void forbidden(struct agent_reflector *r)
{
    r->cont.n = 0;
    agent_rf_wait_ms(r, kr_rand_ms(&r->cfg.c->rand, FORBIDDEN_MS * 9 / 10, FORBIDDEN_MS * 11 / 10));
    agent_rf_tell(r, KR_SYNC_FORBIDDEN, "the agent's credential may not list and watch it");
}

/* A Status with that word as the reason of a cause. */
static bool says(struct kr_bytes body, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= body.n; i++) {
        if (memcmp(body.p + i, word, n) == 0)
            return true;
    }
    return false;
}

static void refused(struct agent_reflector *r)
{
    char why[64];
    bool too_large = says(kr_buf_bytes(&r->error), "\"ResourceVersionTooLarge\"");

    snprintf(why, sizeof why, "the API server says %d", r->status);
    if (r->status == 401) {
        agent_rf_failed(r, "the API server refuses the agent's credential");
    } else if (r->status == 403) {
        forbidden(r);
    } else if (r->status == 404) {
        not_found(r);
    } else if (r->status == 406 && !r->plain) {
        r->plain = true;
        agent_rf_ask(r, r->state);
    } else if (r->status == 410) {
        expired(r);
    } else if (r->status == 429) {
        busy(r);
    } else if (r->state == AGENT_REFLECTOR_STREAMING && r->status < 500) {
        r->pages_only = true;
        agent_rf_ask(r, AGENT_REFLECTOR_LISTING);
    } else if (r->state == AGENT_REFLECTOR_STREAMING) {
        stream_broke(r, why);
    } else if (r->state == AGENT_REFLECTOR_CHECKING && r->status < 500) {
        agent_rf_ask(r, AGENT_REFLECTOR_WATCHING); /* it would only have been a look */
    } else if (too_large && r->state != AGENT_REFLECTOR_LISTING) {
        list_anew(r, "rewound");
    } else {
        if (r->status < 500 && r->state == AGENT_REFLECTOR_WATCHING && r->failures >= 1)
            agent_rf_relist(r, "refused");
        agent_rf_failed(r, why);
    }
}

void agent_rf_on_done(void *user, int rc, const char *why)
{
    struct agent_reflector *r = user;

    kr_timer_stop(r->cfg.c->sched, &r->timer);
    if (rc == 0 && r->status == 200) {
        body_ended(r);
    } else if (rc == 0) {
        refused(r);
    } else {
        agent_reading_stop(&r->reading);
        r->fresh = false;
        if (r->state == AGENT_REFLECTOR_STREAMING && r->status == 200)
            stream_broke(r, why);
        else
            agent_rf_failed(r, why);
    }
    kr_buf_deinit(&r->error);
}
