/* SPDX-License-Identifier: Apache-2.0 */
/* What a hub asks for, and where to begin.
 *
 * The hub holds nothing            a list, all of it is sent
 * it holds what the table has      the watch goes on from the kept version
 * the table differs somewhere      the hub's pairs of those buckets put the table right; then the
 *                                  watch goes on from the version that the hub had reached, or, if
 *                                  that is not known, a list follows of which the differences go
 * there is no table                a list that only counts makes one; if it has what the hub holds,
 *                                  that was all, else as above */
#include <stdio.h>
#include <stdlib.h>

#include "agent/audit.h"
#include "agent/policy.h"
#include "agent/sync_call.h"
#include "agent/sync_rules.h"
#include "base/assert.h"
#include "base/err.h"
#include "kube/list_options.h"

#define ARENA_MAX (512u * 1024)
#define BUCKETS_MS 60000
#define VERSION_MAX 4096
#define PATHS_MAX 64

/* ---- refusing ---- */

/* The call stays open, so that the hub does not ask again and again. */
static int refuse(struct agent_sync_call *s, enum kr_sync_problem problem, const char *text)
{
    s->phase = AGENT_SYNC_REFUSED;
    KR_LOG_AT(s->all->c->log, KR_LOG_WARN, "sync-refused", KR_S("hub", s->replica),
              KR_S("reason", text));
    kr_sync_sender_problem(s->sender, problem, kr_bytes_str(text));
    agent_sync_pump_later(s);
    return 0;
}

static int deny(struct agent_sync_call *s, const struct kr_subscription *sub, const char *rule,
                const char *text)
{
    struct agent_verdict verdict = {0};

    snprintf(verdict.rule, sizeof verdict.rule, "%s", rule);
    agent_audit_sync(s->all->c, s->replica, sub->group, sub->version, sub->resource, &verdict);
    return refuse(s, KR_SYNC_DENIED, text);
}

/* ---- what is asked for ---- */

static int check_selectors(const struct kr_subscription *sub, struct kr_note *why)
{
    struct kr_label_selector labels;
    struct kr_field_selector fields;
    struct kr_arena arena;
    int rc;

    kr_arena_init(&arena, 1024, ARENA_MAX);
    rc = kr_label_selector_parse(sub->label_selector, &arena, &labels, why);
    if (rc == 0)
        rc = kr_field_selector_parse(sub->field_selector, &arena, &fields, why);
    kr_arena_deinit(&arena);
    return rc;
}

/* What field selectors of the fleet view look at is kept as well. */
static struct kr_profile *make_profile(const struct kr_subscription *sub, struct kr_note *why)
{
    const char *const *fields = kr_field_paths(sub->group, sub->resource);
    struct kr_bytes keep[PATHS_MAX];
    struct kr_profile_paths paths = {
        .keep = keep,
        .drop = sub->drop,
        .drop_count = sub->drop_count,
        .metadata_only = sub->metadata_only,
    };

    if (sub->keep_count > PATHS_MAX) {
        kr_note_text(why, "more than %d paths to keep", PATHS_MAX);
        return NULL;
    }
    for (size_t i = 0; i < sub->keep_count; i++)
        keep[paths.keep_count++] = sub->keep[i];
    for (size_t i = 0; sub->keep_count != 0 && fields != NULL && fields[i] != NULL &&
                       paths.keep_count < PATHS_MAX;
         i++)
        keep[paths.keep_count++] = kr_bytes_str(fields[i]);
    return kr_profile_create(&paths, why);
}

/* One namespace is asked for as such; of several, all are read and the rest is left out here. A
 * type that is not namespaced has none. */
static struct kr_bytes only_namespace(const struct agent_sync_call *s,
                                      const struct kr_subscription *sub)
{
    const struct kr_resource_type *type =
        agent_catalog_find(s->all->c->catalog, sub->group, sub->version, sub->resource);

    return s->namespace_count == 1 && type != NULL && type->namespaced ? s->namespaces[0]
                                                                       : (struct kr_bytes){NULL, 0};
}

static int read_subscription(struct agent_sync_call *s, const struct kr_subscription *sub,
                             struct kr_note *why)
{
    struct agent_target_spec spec = {
        .group = sub->group,
        .version = sub->version,
        .resource = sub->resource,
        .ns = only_namespace(s, sub),
        .label_selector = sub->label_selector,
        .field_selector = sub->field_selector,
    };
    int rc = check_selectors(sub, why);

    if (rc == 0)
        rc = agent_target_init(&s->target, &spec, why);
    if (rc != 0)
        return rc;
    s->profile = make_profile(sub, why);
    s->number = sub->id;
    s->metadata_only = sub->metadata_only;
    s->priority = sub->priority;
    return s->profile != NULL ? 0 : KR_EINVAL;
}

static bool has_dictionary(const struct agent_sync_call *s, const struct kr_sync_open *open)
{
    for (size_t i = 0; i < open->dictionary_count; i++) {
        if (open->dictionaries[i] == agent_pack_dictionary(&s->all->pack))
            return true;
    }
    return false;
}

/* ---- what is kept ---- */

void agent_sync_leave(struct agent_sync_call *s)
{
    if (s->reflecting)
        agent_reflector_stop(&s->reflector);
    if (s->m_objects != NULL)
        kr_metric_add(s->m_objects, -(int64_t)s->shown);
    s->shown = 0;
    agent_audit_sync_end(s->all->c, s->audit);
    s->audit = NULL;
    if (s->kept != NULL)
        agent_kept_leave(&s->all->kept, s->kept);
    s->kept = NULL;
}

/* A hub that comes again over another tunnel has given the old call up. */
static int take_kept(struct agent_sync_call *s, const struct kr_subscription *sub)
{
    struct kr_buf key = {.max = 1024u * 1024};
    int rc = agent_kept_key(s->replica, sub, &key);
    struct agent_kept *k = rc == 0 ? agent_kept_get(&s->all->kept, kr_buf_bytes(&key)) : NULL;

    kr_buf_deinit(&key);
    if (k == NULL)
        return rc != 0 ? rc : KR_EFULL;
    if (k->holder != NULL)
        agent_sync_end(k->holder, KR_GRPC_FAILED_PRECONDITION, "the hub has another call for this");
    k->holder = s;
    s->kept = k;
    return 0;
}

size_t agent_sync_differ(const struct agent_sync_call *s, bool out[KR_BUCKETS])
{
    size_t n = 0;

    for (unsigned i = 0; i < KR_BUCKETS; i++) {
        bool differs = s->kept->table.digest.sums[i] != s->digest.sums[i];

        n += differs;
        if (out != NULL)
            out[i] = differs;
    }
    return n;
}

void agent_sync_ask_buckets(struct agent_sync_call *s)
{
    uint32_t list[KR_BUCKETS];
    size_t n = 0;

    s->wanted_count = agent_sync_differ(s, s->wanted);
    for (uint32_t i = 0; i < KR_BUCKETS; i++) {
        s->begun[i] = false;
        if (s->wanted[i])
            list[n++] = i;
    }
    s->phase = AGENT_SYNC_ASKING;
    if (kr_sync_sender_want(s->sender, list, n) != 0)
        agent_sync_end(s, KR_GRPC_RESOURCE_EXHAUSTED, "out of memory");
    else
        kr_timer_start(s->all->c->sched, &s->deadline, BUCKETS_MS);
    agent_sync_pump_later(s);
}

/* ---- where to begin ---- */

void agent_sync_follow(struct agent_sync_call *s, enum agent_sync_phase phase,
                       struct kr_bytes version)
{
    struct agent_reflector_config cfg = {
        .c = s->all->c,
        .gate = &s->all->gate,
        .target = &s->target,
        .metadata_only = s->metadata_only,
        .priority = s->priority,
        .ops = &agent_sync_reflector_ops,
        .user = s,
    };

    if (!s->reflecting)
        agent_reflector_init(&s->reflector, &cfg);
    s->reflecting = true;
    s->hurried = false;
    s->phase = phase;
    agent_reflector_start(&s->reflector, version);
}

static bool is_before(struct kr_bytes a, const struct kr_buf *b)
{
    return a.n != 0 && b->n != 0 && kr_version_compare(a, kr_buf_bytes(b)) < 0;
}

/* The table is now what the hub holds, whatever of the last call reached it. */
static void go_on(struct agent_sync_call *s)
{
    struct kr_bytes reached = kr_buf_bytes(&s->reached);
    bool complete = s->kept->version.n != 0;

    s->kept->valid = true;
    if (complete && is_before(reached, &s->kept->changed)) {
        s->kept->version.n = 0;
        kr_buf_append(&s->kept->version, reached);
        agent_sync_follow(s, AGENT_SYNC_CATCHING, reached);
        return;
    }
    s->kept->version.n = 0;
    agent_sync_follow(s, AGENT_SYNC_SENDING, (struct kr_bytes){NULL, 0});
}

static void resume(struct agent_sync_call *s)
{
    struct kr_bytes version = kr_buf_bytes(&s->kept->version);

    if (version.n == 0) {
        agent_sync_follow(s, AGENT_SYNC_SENDING, version);
    } else if (is_before(version, &s->kept->changed)) {
        agent_sync_follow(s, AGENT_SYNC_CATCHING, version);
    } else {
        agent_sync_snapshot_end(s);
        agent_sync_follow(s, AGENT_SYNC_LIVE, version);
    }
}

static void begin(struct agent_sync_call *s, const struct kr_sync_open *open)
{
    struct kr_bytes none = {NULL, 0};

    if (s->kept->columns.n != 0 &&
        kr_columns_read(kr_buf_bytes(&s->kept->columns), &s->columns) != 0)
        s->columns.n = 0;
    if (!open->holds || open->digest.objects == 0) {
        agent_kept_reset(s->kept);
        s->kept->valid = true;
        agent_sync_follow(s, AGENT_SYNC_SENDING, none);
    } else if (!s->kept->valid) {
        agent_sync_follow(s, AGENT_SYNC_COUNTING, none);
    } else if (agent_sync_differ(s, NULL) != 0) {
        agent_sync_ask_buckets(s);
    } else {
        resume(s);
    }
}

int agent_sync_open(struct agent_sync_call *s, const struct kr_sync_open *open, struct kr_note *why)
{
    const struct kr_subscription *sub = &open->subscription;
    const struct agent_options *o = s->all->c->options;
    struct agent_verdict verdict;
    bool everywhere;
    int rc;

    kr_timer_stop(s->all->c->sched, &s->deadline);
    if (!agent_sync_allows(o, sub->group, sub->resource))
        return deny(s, sub, "syncAllow", "the agent's configuration does not allow it");
    agent_policy_check_sync(s->all->c->policy, sub->group, sub->resource, &verdict);
    if (!verdict.allowed)
        return deny(s, sub, verdict.rule, verdict.text);
    rc = agent_sync_namespaces(o, sub, &s->arena, &s->namespaces, &s->namespace_count, &everywhere);
    if (rc == 0 && s->namespace_count == 0 && !everywhere)
        return deny(s, sub, "syncNamespaces",
                    "the agent's configuration allows none of the namespaces");
    if (rc == 0)
        rc = read_subscription(s, sub, why);
    if (rc == KR_EINVAL || rc == KR_ETOOBIG)
        return refuse(s, KR_SYNC_BAD_PROFILE, why->text);
    if (rc == 0)
        rc = take_kept(s, sub);
    if (rc == 0)
        rc = kr_buf_append(&s->reached, open->version);
    if (rc != 0)
        return kr_note_set(why, rc, "%s", kr_err_text(rc));
    s->packs = has_dictionary(s, open);
    s->digest = open->digest;
    agent_sync_metrics(s);
    s->audit =
        agent_audit_sync(s->all->c, s->replica, sub->group, sub->version, sub->resource, NULL);
    begin(s, open);
    return 0;
}

/* ---- what the hub holds ---- */

static int take_pairs(struct agent_sync_call *s, const struct kr_bucket_pairs *b)
{
    struct kr_sync_table *t = &s->kept->table;
    int rc = 0;

    for (size_t i = 0; i < b->n && rc == 0; i++) {
        if (kr_bucket_of(b->pairs[i].key) != b->bucket)
            return KR_EPROTO;
        rc = kr_sync_table_put(t, b->pairs[i].key, b->pairs[i].object);
    }
    return rc;
}

int agent_sync_take_buckets(struct agent_sync_call *s, const struct kr_bucket_pairs *b,
                            struct kr_note *why)
{
    int rc;

    if (s->phase == AGENT_SYNC_ENDED || s->phase == AGENT_SYNC_REFUSED)
        return 0;
    if (s->phase != AGENT_SYNC_ASKING || b->bucket >= KR_BUCKETS || !s->wanted[b->bucket])
        return kr_note_set(why, KR_EPROTO, "pairs of a bucket that was not asked for");
    kr_timer_start(s->all->c->sched, &s->deadline, BUCKETS_MS);
    if (!s->begun[b->bucket])
        kr_sync_table_drop_bucket(&s->kept->table, b->bucket);
    s->begun[b->bucket] = true;
    rc = take_pairs(s, b);
    if (rc != 0)
        return kr_note_set(why, rc, "pairs of a bucket: %s", kr_err_text(rc));
    if (b->more)
        return 0;
    s->wanted[b->bucket] = false;
    if (--s->wanted_count == 0) {
        kr_timer_stop(s->all->c->sched, &s->deadline);
        go_on(s);
    }
    return 0;
}
