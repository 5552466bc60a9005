/* SPDX-License-Identifier: Apache-2.0 */
/* What the reflector tells, and what of it the hub must hear: only what it does not hold so. */
#include "agent/counters.h"
#include "agent/sync_call.h"
#include "base/assert.h"
#include "base/err.h"
#include "kube/list_options.h"

#define PROGRESS_MS 10000 /* between two tellings of progress for nothing else */

/* ---- the table ---- */

static void skip(struct agent_sync_call *s)
{
    s->skipped++;
    kr_metric_add(s->m_skipped, 1);
    kr_sync_sender_skipped(s->sender, s->skipped);
}

static bool is_wanted(const struct agent_sync_call *s, struct kr_bytes ns)
{
    if (s->namespace_count == 0 || ns.n == 0)
        return true;
    for (size_t i = 0; i < s->namespace_count; i++) {
        if (kr_bytes_eq(s->namespaces[i], ns))
            return true;
    }
    return false;
}

static void remember(struct kr_buf *to, struct kr_bytes version)
{
    to->n = 0;
    kr_buf_append(to, version); /* one that does not fit is not remembered */
}

/* Of the latest change that went out. While catching up, older ones go out once more. */
static void note_change(struct agent_sync_call *s, struct kr_bytes version)
{
    struct kr_buf *changed = &s->kept->changed;

    if (s->phase != AGENT_SYNC_CATCHING || kr_version_compare(version, kr_buf_bytes(changed)) > 0)
        remember(changed, version);
}

/* The table tells what the hub holds: it must never know of something that was not put. */
static int send_item(struct agent_sync_call *s, const struct agent_item *item)
{
    struct kr_sync_table *t = &s->kept->table;
    struct kr_upsert change = {.size = 0};
    uint64_t before = 0;
    bool had = kr_sync_table_get(t, item->key, &before);
    int rc = agent_pack_upsert(&s->all->pack, item, s->packs, &change);

    change.lossy = change.lossy || s->metadata_only; /* the rest was not even asked for */
    if (rc == 0)
        rc = kr_sync_table_put(t, item->key, item->hash);
    if (rc != 0)
        return rc;
    rc = kr_sync_sender_put(s->sender, item->key, &change);
    if (rc != 0) {
        if (had)
            kr_sync_table_put(t, item->key, before); /* it is there: no memory is asked for */
        else
            kr_sync_table_remove(t, item->key);
        return rc;
    }
    kr_metric_add(s->m_sent, 1);
    kr_metric_add(s->m_slim, change.size);
    kr_metric_add(s->m_sent_bytes, (int64_t)change.packed.n);
    s->sent = true;
    note_change(s, item->seen.version);
    return 0;
}

static int take_item(struct agent_sync_call *s, const struct agent_item *item)
{
    struct kr_sync_table *t = &s->kept->table;
    uint64_t held;

    if (s->phase == AGENT_SYNC_COUNTING)
        return kr_sync_table_put(t, item->key, item->hash);
    if (kr_sync_table_get(t, item->key, &held) && held == item->hash) {
        kr_sync_table_see(t, item->key);
        kr_metric_add(s->m_unchanged, 1);
        return 0;
    }
    return send_item(s, item);
}

static int send_delete(struct agent_sync_call *s, uint64_t key)
{
    int rc = kr_sync_sender_delete(s->sender, key);

    if (rc != 0)
        return rc;
    kr_sync_table_remove(&s->kept->table, key);
    kr_metric_add(s->m_sent, 1);
    s->sent = true;
    return 0;
}

/* ---- from the reflector ---- */

static void on_list(void *user)
{
    struct agent_sync_call *s = user;

    s->kept->version.n = 0;
    if (s->phase == AGENT_SYNC_COUNTING) {
        agent_kept_reset(s->kept);
        return;
    }
    s->phase = AGENT_SYNC_SENDING;
    kr_sync_table_sweep(&s->kept->table);
}

static int on_object(void *user, const struct agent_seen *seen)
{
    struct agent_sync_call *s = user;
    struct agent_item item;
    int rc = agent_pack_read(&s->all->pack, s->profile, s->columns.n != 0 ? &s->columns : NULL,
                             seen, &item);

    if (rc == 0 && is_wanted(s, item.seen.ns))
        rc = take_item(s, &item);
    if (rc != KR_EPROTO && rc != KR_ETOOBIG && rc != KR_EINVAL)
        return rc;
    skip(s);
    return 0;
}

static void on_gone(void *user, const struct agent_seen *seen)
{
    struct agent_sync_call *s = user;
    struct agent_item item;
    uint64_t held;

    if (agent_pack_name(&s->all->pack, seen->object, &item) != 0 ||
        !kr_sync_table_get(&s->kept->table, item.key, &held))
        return;
    if (s->phase == AGENT_SYNC_COUNTING) {
        kr_sync_table_remove(&s->kept->table, item.key);
        return;
    }
    if (send_delete(s, item.key) != 0)
        agent_sync_end(s, KR_GRPC_RESOURCE_EXHAUSTED, "out of memory");
    else
        note_change(s, item.seen.version);
}

static void on_columns(void *user, struct kr_bytes columns)
{
    struct agent_sync_call *s = user;
    struct kr_buf *kept = &s->kept->columns;
    bool same = kr_bytes_eq(kr_buf_bytes(kept), columns);

    if (!same) {
        kept->n = 0;
        if (kr_buf_append(kept, columns) != 0)
            kept->n = 0;
    }
    if (!same || s->columns.n == 0) {
        s->columns.n = 0;
        if (kr_columns_read(kr_buf_bytes(kept), &s->columns) != 0)
            s->columns.n = 0; /* then there are no cells */
    }
    if ((!same || !s->columns_sent) && s->columns.n != 0)
        s->columns_sent = kr_sync_sender_columns(s->sender, kr_buf_bytes(kept)) == 0;
}

static void show(struct agent_sync_call *s)
{
    size_t now = (size_t)s->kept->table.digest.objects;

    kr_metric_add(s->m_objects, (int64_t)now - (int64_t)s->shown);
    s->shown = now;
}

void agent_sync_snapshot_end(struct agent_sync_call *s)
{
    struct kr_bytes version = kr_buf_bytes(&s->kept->version);

    s->phase = AGENT_SYNC_LIVE;
    s->kept->valid = true;
    if (kr_sync_sender_snapshot_end(s->sender) != 0 ||
        kr_sync_sender_progress(s->sender, version) != 0)
        agent_sync_end(s, KR_GRPC_RESOURCE_EXHAUSTED, "out of memory");
    s->progress_ms = s->all->c->sched->now_ms;
    if (s->kept != NULL)
        show(s);
    agent_sync_pump_later(s);
}

/* What the hub holds and the list did not have is gone. */
static void on_list_end(void *user)
{
    struct agent_sync_call *s = user;
    struct kr_bytes version = agent_reflector_version(&s->reflector);
    struct kr_sync_table *t = &s->kept->table;
    size_t pos = 0;
    uint64_t key;

    if (s->phase == AGENT_SYNC_COUNTING && agent_sync_differ(s, NULL) != 0) {
        agent_reflector_stop(&s->reflector);
        agent_sync_ask_buckets(s);
        return;
    }
    while (s->phase != AGENT_SYNC_COUNTING && kr_sync_table_unseen(t, &pos, &key)) {
        if (send_delete(s, key) != 0) {
            agent_sync_end(s, KR_GRPC_RESOURCE_EXHAUSTED, "out of memory");
            return;
        }
    }
    remember(&s->kept->version, version);
    remember(&s->kept->changed, version);
    agent_sync_snapshot_end(s);
}

/* Caught up: everything that the agent had sent before was looked at again. */
static bool caught_up(const struct agent_sync_call *s)
{
    struct kr_bytes now = agent_reflector_version(&s->reflector);

    return now.n != 0 && kr_version_compare(now, kr_buf_bytes(&s->kept->changed)) >= 0;
}

static void tell_progress(struct agent_sync_call *s, bool bookmark)
{
    int64_t now_ms = s->all->c->sched->now_ms;
    struct kr_bytes version = agent_reflector_version(&s->reflector);

    if (!s->sent && !bookmark && now_ms - s->progress_ms < PROGRESS_MS)
        return;
    s->progress_ms = now_ms;
    kr_sync_sender_progress(s->sender, version); /* without memory: the next time */
}

static bool may_read(void *user, bool bookmark)
{
    struct agent_sync_call *s = user;

    struct kr_bytes version = agent_reflector_version(&s->reflector);

    if ((s->phase == AGENT_SYNC_LIVE || s->phase == AGENT_SYNC_CATCHING) && version.n != 0)
        remember(&s->kept->version, version);
    if (s->phase == AGENT_SYNC_CATCHING && caught_up(s))
        agent_sync_snapshot_end(s);
    else if (s->phase == AGENT_SYNC_LIVE && version.n != 0)
        tell_progress(s, bookmark);
    if (s->phase == AGENT_SYNC_ENDED || s->phase == AGENT_SYNC_ASKING)
        return true; /* the reflector was stopped */
    kr_sync_sender_raw(s->sender, s->reflector.raw_bytes);
    s->sent = false;
    show(s);
    agent_sync_pump_later(s);
    return !kr_sync_sender_full(s->sender);
}

static void on_problem(void *user, enum kr_sync_problem problem, const char *text)
{
    struct agent_sync_call *s = user;

    if (problem == KR_SYNC_NOT_SERVED) { /* by which a hub forgets all of it */
        agent_kept_reset(s->kept);
        s->kept->valid = true;
        s->phase = AGENT_SYNC_SENDING;
        show(s);
    }
    kr_sync_sender_problem(s->sender, problem, kr_bytes_str(text));
    s->hurried = true;
    agent_sync_pump_later(s);
}

static void on_skipped(void *user)
{
    skip(user);
}

const struct agent_reflector_ops agent_sync_reflector_ops = {
    .on_list = on_list,
    .on_object = on_object,
    .on_gone = on_gone,
    .on_list_end = on_list_end,
    .on_columns = on_columns,
    .may_read = may_read,
    .on_problem = on_problem,
    .on_skipped = on_skipped,
};
