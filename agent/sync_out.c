/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sync_out.h"

#include <stdlib.h>

#include "agent/counters.h"
#include "agent/sync_call.h"
#include "base/assert.h"
#include "base/err.h"

#define CONTROL_MAX (1024u * 1024)
#define SENDER_BUDGET (128u * 1024)
#define QUEUE_TARGET (32u * 1024) /* of bytes that can no longer be replaced by newer ones */
#define BATCH_ROOM (KR_SYNC_BATCH_TARGET + 16u * 1024)
#define QUEUE_MAX (KR_SYNC_MESSAGE_MAX + 4 * QUEUE_TARGET)
#define OPEN_MS 30000
#define VERSION_MAX 4096
#define NAMESPACES_MAX (512u * 1024)

/* ---- the end ---- */

static void call_free(struct agent_sync_call *s)
{
    struct agent_sync *all = s->all;

    agent_sync_leave(s);
    kr_timer_stop(all->c->sched, &s->deadline);
    kr_task_cancel(&s->pump);
    kr_task_cancel(&s->freed);
    if (s->reflecting)
        agent_reflector_deinit(&s->reflector);
    kr_grpc_deinit(&s->stream);
    kr_sync_sender_destroy(s->sender);
    kr_profile_destroy(s->profile);
    agent_target_deinit(&s->target);
    kr_arena_deinit(&s->arena);
    kr_buf_deinit(&s->reached);
    free(s->replica);
    kr_list_remove(&s->link);
    free(s);
    all->n--;
    kr_metric_set(all->m_calls, (int64_t)all->n);
}

static void on_freed(struct kr_task *t)
{
    call_free(KR_CONTAINER_OF(t, struct agent_sync_call, freed));
}

void agent_sync_end(struct agent_sync_call *s, int status, const char *text)
{
    if (s->phase == AGENT_SYNC_ENDED)
        return;
    s->phase = AGENT_SYNC_ENDED;
    kr_timer_stop(s->all->c->sched, &s->deadline);
    agent_sync_leave(s);
    if (kr_grpc_finish(&s->stream, status, kr_bytes_str(text)) == 0)
        return; /* on_end follows */
    kr_grpc_abort(&s->stream);
    kr_task_post(s->all->c->sched, &s->freed);
}

/* ---- sending ---- */

/* While catching up old changes come once more. The hub may have seen newer ones; its watchers
 * would go back in time. So all waits until the last of them is there, and only the latest of each
 * object goes out, which is what the hub holds if nothing was lost. With no room left, or a problem
 * to tell, they go as they are. */
static bool holds_back(struct agent_sync_call *s)
{
    if (s->phase != AGENT_SYNC_CATCHING)
        return false;
    s->hurried = s->hurried || kr_sync_sender_full(s->sender);
    return !s->hurried;
}

static void pump(struct agent_sync_call *s)
{
    struct kr_buf out = {.max = KR_SYNC_MESSAGE_MAX};
    /* At once: growing by steps would leave holes in the heap. */
    int rc = kr_sync_sender_empty(s->sender) || holds_back(s) ? 0 : 1;

    if (rc > 0 && kr_buf_reserve(&out, BATCH_ROOM) != 0)
        rc = 0; /* later */

    while (rc > 0 && kr_grpc_waiting(&s->stream) < QUEUE_TARGET) {
        out.n = 0;
        rc = kr_sync_sender_next(s->sender, &out);
        if (rc > 0 && kr_grpc_send(&s->stream, kr_buf_bytes(&out)) != 0)
            rc = KR_ENOMEM; /* it is in no queue any more */
    }
    kr_buf_deinit(&out);
    if (rc < 0)
        agent_sync_end(s, KR_GRPC_RESOURCE_EXHAUSTED, kr_err_text(rc));
    else if (s->reflecting && !kr_sync_sender_full(s->sender))
        agent_reflector_read_on(&s->reflector);
}

static void on_pump(struct kr_task *t)
{
    struct agent_sync_call *s = KR_CONTAINER_OF(t, struct agent_sync_call, pump);

    if (s->phase != AGENT_SYNC_ENDED)
        pump(s);
}

void agent_sync_pump_later(struct agent_sync_call *s)
{
    kr_task_post_last(s->all->c->sched, &s->pump);
}

/* ---- the stream ---- */

static int take_control(struct agent_sync_call *s, const struct kr_sync_control *m,
                        struct kr_note *why)
{
    int rc = 0;

    if ((m->open != NULL) != (s->phase == AGENT_SYNC_OPENING))
        return kr_note_set(why, KR_EPROTO, "SyncOpen must be the first message, and only that");
    if (m->open != NULL)
        rc = agent_sync_open(s, m->open, why);
    for (size_t i = 0; i < m->bucket_count && rc == 0; i++)
        rc = agent_sync_take_buckets(s, &m->buckets[i], why);
    return rc;
}

static int on_message(void *user, struct kr_bytes message)
{
    struct agent_sync_call *s = user;
    struct kr_sync_control m;
    struct kr_note why = {""};
    struct kr_arena arena;
    int rc;

    if (s->phase == AGENT_SYNC_ENDED)
        return 0;
    kr_arena_init(&arena, 1024, KR_DECODE_ARENA(message.n));
    rc = kr_sync_control_decode(&m, message, &arena, &why);
    if (rc == 0)
        rc = take_control(s, &m, &why);
    kr_arena_deinit(&arena);
    if (rc != 0) {
        KR_LOG_AT(s->all->c->log, KR_LOG_WARN, "sync-broken", KR_S("hub", s->replica),
                  KR_S("reason", why.text));
        agent_sync_end(s, kr_err_grpc_status(rc), why.text);
    }
    return 0;
}

static void on_peer_done(void *user)
{
    agent_sync_end(user, KR_GRPC_OK, "");
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    struct agent_sync_call *s = user;

    KR_LOG_AT(s->all->c->log, KR_LOG_DEBUG, "sync-end", KR_S("hub", s->replica),
              KR_S("resource", s->target.name != NULL ? s->target.name : ""),
              KR_I("status", status), KR_B("reason", message));
    call_free(s);
}

static void on_room(void *user)
{
    agent_sync_pump_later(user);
}

static const struct kr_grpc_user stream_user = {
    .on_message = on_message,
    .on_peer_done = on_peer_done,
    .on_end = on_end,
    .on_room = on_room,
};

static void on_deadline(struct kr_timer *t)
{
    struct agent_sync_call *s = KR_CONTAINER_OF(t, struct agent_sync_call, deadline);

    agent_sync_end(s, kr_err_grpc_status(KR_ETIMEDOUT),
                   "the hub did not say what it should have said");
}

static struct agent_sync_call *call_make(struct agent_sync *all, const char *replica)
{
    struct agent_sync_call *s = all->n < AGENT_SYNCS_MAX ? calloc(1, sizeof *s) : NULL;

    if (s == NULL)
        return NULL;
    s->all = all;
    s->replica = kr_bytes_dup(kr_bytes_str(replica));
    s->sender = kr_sync_sender_create(SENDER_BUDGET);
    if (s->replica == NULL || s->sender == NULL) {
        kr_sync_sender_destroy(s->sender);
        free(s->replica);
        free(s);
        return NULL;
    }
    kr_timer_init(&s->deadline, on_deadline);
    kr_task_init(&s->pump, on_pump);
    kr_task_init(&s->freed, on_freed);
    kr_arena_init(&s->arena, 512, NAMESPACES_MAX);
    kr_buf_init(&s->reached, VERSION_MAX);
    kr_list_append(&all->calls, &s->link);
    all->n++;
    kr_metric_set(all->m_calls, (int64_t)all->n);
    return s;
}

void agent_sync_accept(struct agent_core *c, struct kr_exchange *ex, const char *replica)
{
    struct kr_grpc_limits limits = {.message = CONTROL_MAX, .queue = QUEUE_MAX};
    struct agent_sync_call *s = call_make(c->sync, replica);

    if (s == NULL) {
        kr_grpc_reject(ex, KR_GRPC_RESOURCE_EXHAUSTED, "too many Sync calls");
        return;
    }
    if (kr_grpc_accept(&s->stream, ex, limits, &stream_user, s) != 0) {
        call_free(s);
        return;
    }
    kr_timer_start(c->sched, &s->deadline, OPEN_MS);
}

bool agent_sync_serves(struct agent_core *c, struct kr_exchange *ex, const char *replica)
{
    if (kr_bytes_is(ex->head.path, KR_GRPC_SYNC))
        agent_sync_accept(c, ex, replica);
    else if (kr_bytes_is(ex->head.path, KR_GRPC_CATALOG))
        agent_catalog_accept(c->catalog, ex);
    else
        return false;
    return true;
}

/* ---- of the agent ---- */

void agent_sync_metrics(struct agent_sync_call *s)
{
    struct kr_metrics *m = s->all->c->metrics;
    const char *name = s->target.name;

    s->m_objects = kr_metrics_get(m, AGENT_SYNC_OBJECTS, name);
    s->m_slim = kr_metrics_get(m, AGENT_SYNC_SLIM_BYTES, name);
    s->m_sent_bytes = kr_metrics_get(m, AGENT_SYNC_SENT_BYTES, name);
    s->m_sent = kr_metrics_get(m, AGENT_SYNC_SENT, name);
    s->m_unchanged = kr_metrics_get(m, AGENT_SYNC_UNCHANGED, name);
    s->m_skipped = kr_metrics_get(m, AGENT_SYNC_SKIPPED, name);
}

bool agent_sync_find(struct agent_core *c, uint64_t number, struct agent_sync_view *out)
{
    size_t found = 0;

    if (c->sync == NULL)
        return false;
    KR_LIST_FOREACH(node, &c->sync->calls)
    {
        struct agent_sync_call *s = KR_CONTAINER_OF(node, struct agent_sync_call, link);

        if (s->kept == NULL || s->number != number)
            continue;
        *out = (struct agent_sync_view){s->profile, s->metadata_only};
        found++;
    }
    return found == 1;
}

int agent_sync_create(struct agent_core *c)
{
    struct agent_sync *all = calloc(1, sizeof *all);

    if (all == NULL || agent_pack_init(&all->pack) != 0) {
        free(all);
        return KR_ENOMEM;
    }
    all->c = c;
    agent_list_gate_init(&all->gate, c->sched);
    agent_kept_init(&all->kept, c->sched);
    kr_list_init(&all->calls);
    all->m_calls = kr_metrics_series(c->metrics, AGENT_SYNCS, NULL, 0);
    c->sync = all;
    return 0;
}

void agent_sync_destroy(struct agent_core *c)
{
    struct agent_sync *all = c->sync;

    if (all == NULL)
        return;
    KR_LIST_FOREACH_SAFE(node, &all->calls)
    {
        struct agent_sync_call *s = KR_CONTAINER_OF(node, struct agent_sync_call, link);

        KR_ASSERT(!kr_grpc_is_open(&s->stream)); /* its tunnel has gone before */
        call_free(s);
    }
    agent_kept_deinit(&all->kept);
    agent_list_gate_deinit(&all->gate);
    agent_pack_deinit(&all->pack);
    c->sync = NULL;
    free(all);
}
