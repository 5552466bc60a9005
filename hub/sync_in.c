/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/sync_in.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/counters.h"
#include "hub/sync_held.h"
#include "kube/cells.h"
#include "wire/messages.h"

#define QUEUE_MAX (32u << 20) /* pairs of two million objects */
#define LISTS_MAX 1000        /* namespaces, paths */
#define UPSERT_COST 512       /* beside its text */

struct message {
    struct kr_list link;
    size_t n;
    uint8_t bytes[];
};

struct hub_sync_in {
    struct hub_sync_config cfg;
    struct kr_grpc_stream call;
    struct hub_job job;
    struct kr_list inbox; /* message.link */
    struct message *now;  /* being worked off */
    struct kr_arena arena;
    struct kr_sync_batch batch; /* of `now` */
    size_t at;                  /* upserts of it that are done */
    bool begun;                 /* what comes before the upserts is done */
    bool asked[KR_BUCKETS];
    bool in_step;       /* a snapshot of this call has ended */
    bool ended;         /* the call has; what came is still worked off */
    bool unsupported;   /* ... because the agent does not know it */
    bool short_of_room; /* the problem of the shelf is ours */
    size_t bad;
    size_t refused;
    uint64_t raw; /* of this call */
    struct kr_note why;
};

/* ---- the desk ---- */

int hub_sync_desk_init(struct hub_sync_desk *d, struct hub_worker *w)
{
    *d = (struct hub_sync_desk){.w = w};
    hub_turns_init(&d->turns, w->sched);
    d->dictionaries = kr_dictionaries_create(true, true);
    if (d->dictionaries != NULL)
        d->check = hub_upsert_check_create(d->dictionaries);
    return d->check != NULL ? 0 : KR_ENOMEM;
}

void hub_sync_desk_deinit(struct hub_sync_desk *d)
{
    hub_turns_deinit(&d->turns);
    hub_upsert_check_destroy(d->check);
    kr_dictionaries_destroy(d->dictionaries);
}

/* ---- small helpers ---- */

static struct kr_log *log_of(const struct hub_sync_in *s)
{
    return s->cfg.desk->w->log;
}

static void count(const struct hub_sync_in *s, size_t family, uint64_t n)
{
    kr_metric_add(kr_metrics_series(s->cfg.desk->w->metrics, family, NULL, 0), (int64_t)n);
}

static void count_cluster(const struct hub_sync_in *s, size_t family, uint64_t n)
{
    kr_metric_add(kr_metrics_get(s->cfg.desk->w->metrics, family, s->cfg.shelf->cluster),
                  (int64_t)n);
}

static const char *type_text(const struct hub_type *t, char buf[160])
{
    snprintf(buf, 160, "%.*s%s%.*s", (int)(t->resource.n < 64 ? t->resource.n : 64),
             (const char *)t->resource.p, t->group.n != 0 ? "." : "",
             (int)(t->group.n < 80 ? t->group.n : 80), (const char *)t->group.p);
    return buf;
}

static int64_t wall(const struct hub_sync_in *s)
{
    return s->cfg.desk->w->sched->now_wall_ms;
}

static void mark_stale(struct hub_sync_in *s)
{
    struct hub_shelf *shelf = s->cfg.shelf;

    if (shelf->synced && shelf->stale_since_wall_ms == 0)
        shelf->stale_since_wall_ms = wall(s);
}

/* ---- the end ---- */

static void drop_message(struct hub_sync_in *s)
{
    free(s->now);
    s->now = NULL;
    s->begun = false;
    s->at = 0;
    kr_arena_deinit(&s->arena);
}

static void drop_all(struct hub_sync_in *s)
{
    drop_message(s);
    KR_LIST_FOREACH_SAFE(node, &s->inbox)
    {
        free(KR_CONTAINER_OF(node, struct message, link));
    }
    kr_list_init(&s->inbox);
}

/* The last thing that a step does: the owner may free `s` in there. */
static void end(struct hub_sync_in *s, enum hub_sync_end how)
{
    kr_grpc_abort(&s->call);
    drop_all(s);
    mark_stale(s);
    s->cfg.ops->on_end(s->cfg.owner, how, s->why.text);
}

void hub_sync_in_close(struct hub_sync_in *s)
{
    if (s == NULL)
        return;
    hub_job_cancel(&s->job);
    kr_grpc_deinit(&s->call);
    drop_all(s);
    mark_stale(s);
    free(s);
}

size_t hub_sync_in_refused(const struct hub_sync_in *s)
{
    return s->refused;
}

/* ---- what the agent asks ---- */

static int send(void *user, struct kr_bytes message)
{
    struct hub_sync_in *s = user;

    return kr_grpc_send(&s->call, message);
}

static enum hub_sync_end fail(struct hub_sync_in *s, enum hub_sync_end how, const char *what)
{
    kr_note_set(&s->why, 0, "%s", what);
    return how;
}

/* Each bucket once: what else was asked for would be asked for again. -1: go on. */
static int answer_wants(struct hub_sync_in *s, size_t *cost)
{
    bool wanted[KR_BUCKETS] = {false};
    int rc;

    if (s->batch.want_count == 0)
        return -1;
    for (size_t i = 0; i < s->batch.want_count; i++) {
        uint32_t bucket = s->batch.want_buckets[i];

        if (bucket >= KR_BUCKETS || s->asked[bucket])
            return (int)fail(s, HUB_SYNC_BROKEN, "it asks for a bucket that is none, or twice");
        wanted[bucket] = s->asked[bucket] = true;
    }
    *cost += s->cfg.shelf->objects * sizeof(struct kr_pair);
    rc = s->call.ex != NULL ? hub_held_pairs(s->cfg.shelf, wanted, send, s) : 0;
    return rc != 0 ? (int)fail(s, HUB_SYNC_FAILED, kr_err_text(rc)) : -1;
}

static int take_columns(struct hub_sync_in *s)
{
    struct hub_shelf *shelf = s->cfg.shelf;
    struct kr_columns columns;

    if (s->batch.columns.n == 0 || kr_bytes_eq(s->batch.columns, kr_buf_bytes(&shelf->columns)))
        return -1;
    if (kr_scan_check(s->batch.columns, 64, &s->why) != 0 ||
        kr_columns_read(s->batch.columns, &columns) != 0)
        return (int)fail(s, HUB_SYNC_BROKEN, "its columns are none");
    shelf->columns.max = KR_SYNC_COLUMNS_MAX;
    shelf->columns.n = 0;
    if (kr_buf_append(&shelf->columns, s->batch.columns) != 0)
        return (int)fail(s, HUB_SYNC_FAILED, kr_err_text(KR_ENOMEM));
    shelf->columns_changed++;
    return -1;
}

/* ---- objects ---- */

static int on_bad(struct hub_sync_in *s, const struct kr_upsert *u, const struct kr_note *why)
{
    char type[160];

    s->cfg.stats->bad++;
    count(s, HUB_SYNC_BAD, 1);
    if (s->bad++ == 0)
        KR_LOG_AT(log_of(s), KR_LOG_WARN, "object-refused", KR_S("cluster", s->cfg.shelf->cluster),
                  KR_S("type", type_text(s->cfg.shelf->type, type)), KR_B("namespace", u->ns),
                  KR_B("name", u->name), KR_S("reason", why->text),
                  KR_S("effect", "it is left out; more of this call are only counted"));
    if (s->bad > HUB_SYNC_BAD_MAX)
        return (int)fail(s, HUB_SYNC_BROKEN, "too many of its objects are refused");
    return -1;
}

/* -1: go on; else how the call ends. */
static int put(struct hub_sync_in *s, const struct kr_upsert *u)
{
    struct hub_incoming in;
    struct kr_note why = {""};
    int rc = hub_upsert_check(s->cfg.desk->check, u, &in, &why);

    if (rc == 0) {
        rc = hub_shelf_put(s->cfg.shelf, &in);
        if (rc == KR_EINVAL)
            kr_note_set(&why, rc, "a text is too long");
    }
    if (rc >= 0) {
        s->cfg.stats->upserts++;
        s->cfg.stats->plain += u->size;
        count(s, HUB_SYNC_UPSERTS, 1);
        count(s, HUB_SYNC_PLAIN, u->size);
        return -1;
    }
    if (rc == KR_ENOMEM)
        return (int)fail(s, HUB_SYNC_FAILED, kr_err_text(rc));
    if (rc != KR_EFULL)
        return on_bad(s, u, &why);
    if (!s->cfg.metadata_only)
        return (int)fail(s, HUB_SYNC_OVER_QUOTA, "the quota of the cluster is used up");
    s->refused++;
    return -1;
}

static int put_some(struct hub_sync_in *s, size_t *cost)
{
    int how = -1;

    while (how < 0 && s->at < s->batch.upsert_count && *cost < HUB_STEP_COST) {
        const struct kr_upsert *u = &s->batch.upserts[s->at++];

        *cost += u->size + UPSERT_COST;
        how = put(s, u);
    }
    return how;
}

static void delete_all(struct hub_sync_in *s, size_t *cost)
{
    for (size_t i = 0; i < s->batch.delete_count; i++)
        hub_shelf_delete_hash(s->cfg.shelf, s->batch.deletes[i]);
    s->cfg.stats->deletes += s->batch.delete_count;
    count(s, HUB_SYNC_DELETES, s->batch.delete_count);
    *cost += s->batch.delete_count * UPSERT_COST;
}

/* ---- marks ---- */

static void set_problem(struct hub_sync_in *s, int problem, struct kr_bytes text)
{
    struct hub_shelf *shelf = s->cfg.shelf;
    char type[160];

    if (text.n >= sizeof shelf->problem_text)
        text.n = sizeof shelf->problem_text - 1;
    if (shelf->problem != problem)
        KR_LOG_AT(log_of(s), problem == KR_SYNC_OK ? KR_LOG_INFO : KR_LOG_WARN,
                  problem == KR_SYNC_OK ? "sync-recovered" : "sync-problem",
                  KR_S("cluster", shelf->cluster), KR_S("type", type_text(shelf->type, type)),
                  KR_B("reason", text));
    shelf->problem = problem;
    snprintf(shelf->problem_text, sizeof shelf->problem_text, "%.*s", (int)text.n,
             (const char *)text.p);
}

/* The objects that were left out for lack of room are a problem of ours. */
static void judge_room(struct hub_sync_in *s)
{
    char text[96];

    if (s->refused != 0) {
        snprintf(text, sizeof text, "over the quota of the cluster: %zu objects are left out",
                 s->refused);
        set_problem(s, KR_SYNC_FAILING, kr_bytes_str(text));
        s->short_of_room = true;
    } else if (s->cfg.shelf->problem != KR_SYNC_OK) {
        set_problem(s, KR_SYNC_OK, KR_LIT(""));
    }
}

static void on_snapshot_end(struct hub_sync_in *s)
{
    struct hub_shelf *shelf = s->cfg.shelf;
    char type[160];

    if (!s->in_step)
        KR_LOG_AT(log_of(s), KR_LOG_INFO, "synced", KR_S("cluster", shelf->cluster),
                  KR_S("type", type_text(shelf->type, type)), KR_U("objects", shelf->objects),
                  KR_U("bytes", shelf->bytes), KR_U("received", s->cfg.stats->bytes),
                  KR_U("refused", s->bad));
    s->in_step = true;
    shelf->synced = true;
    shelf->stale_since_wall_ms = 0;
    judge_room(s);
}

static void on_problem(struct hub_sync_in *s)
{
    struct hub_shelf *shelf = s->cfg.shelf;
    bool over = s->batch.problem == KR_SYNC_OK;

    if (over && s->short_of_room)
        return;
    set_problem(s, (int)s->batch.problem, s->batch.problem_text);
    if (!over)
        mark_stale(s);
    else if (s->in_step)
        shelf->stale_since_wall_ms = 0;
    /* The type is gone, and discovery of the cluster agrees: so are its objects. */
    if (s->batch.problem != KR_SYNC_NOT_SERVED)
        return;
    shelf->origin_version[0] = '\0'; /* should it come back, it is another one */
    if (shelf->objects != 0)
        hub_shelf_clear(shelf, false);
}

static void take_marks(struct hub_sync_in *s)
{
    struct hub_shelf *shelf = s->cfg.shelf;
    const struct kr_sync_batch *b = &s->batch;
    bool news = b->snapshot_end || b->has_problem;

    if (b->snapshot_end)
        on_snapshot_end(s);
    if (b->progress.n >= sizeof shelf->origin_version)
        shelf->origin_version[0] = '\0';
    else if (b->progress.n != 0)
        snprintf(shelf->origin_version, sizeof shelf->origin_version, "%.*s", (int)b->progress.n,
                 (const char *)b->progress.p);
    if (b->has_problem)
        on_problem(s);
    s->cfg.stats->skipped = b->skipped;
    if (b->raw_bytes > s->raw) {
        s->cfg.stats->raw += b->raw_bytes - s->raw;
        count_cluster(s, HUB_SYNC_RAW, b->raw_bytes - s->raw);
        s->raw = b->raw_bytes;
    }
    if (news)
        s->cfg.ops->on_news(s->cfg.owner);
}

/* ---- messages ---- */

static int begin(struct hub_sync_in *s, size_t *cost)
{
    struct kr_bytes in = kr_bytes_of(s->now->bytes, s->now->n);
    int how;

    kr_arena_init(&s->arena, 4096, KR_DECODE_ARENA(in.n));
    if (kr_sync_batch_decode(&s->batch, in, &s->arena, &s->why) != 0)
        return HUB_SYNC_BROKEN;
    s->begun = true;
    how = take_columns(s);
    return how < 0 ? answer_wants(s, cost) : how;
}

/* A part of the message at hand. -1: go on. */
static int work(struct hub_sync_in *s, size_t *cost)
{
    int how = s->begun ? -1 : begin(s, cost);

    if (how < 0)
        how = put_some(s, cost);
    if (how >= 0 || s->at < s->batch.upsert_count)
        return how;
    delete_all(s, cost);
    take_marks(s);
    drop_message(s);
    return -1;
}

static bool step(struct hub_job *job, size_t *cost)
{
    struct hub_sync_in *s = KR_CONTAINER_OF(job, struct hub_sync_in, job);
    int how = -1;

    if (s->now == NULL && !kr_list_empty(&s->inbox))
        s->now = KR_CONTAINER_OF(kr_list_pop(&s->inbox), struct message, link);
    if (s->now != NULL)
        how = work(s, cost);
    if (how >= 0) {
        end(s, (enum hub_sync_end)how);
        return false;
    }
    if (s->now != NULL || !kr_list_empty(&s->inbox))
        return true;
    if (s->ended) {
        end(s, s->unsupported ? HUB_SYNC_UNSUPPORTED : HUB_SYNC_LOST);
        return false;
    }
    kr_grpc_resume(&s->call);
    return false;
}

static int on_message(void *user, struct kr_bytes in)
{
    struct hub_sync_in *s = user;
    struct message *m = malloc(sizeof *m + in.n);

    if (m == NULL)
        return KR_ENOMEM;
    *m = (struct message){.n = in.n};
    if (in.n != 0)
        memcpy(m->bytes, in.p, in.n);
    kr_list_append(&s->inbox, &m->link);
    s->cfg.stats->bytes += in.n;
    count_cluster(s, HUB_SYNC_BYTES, in.n);
    kr_grpc_pause(&s->call);
    hub_job_post(&s->cfg.desk->turns, &s->job);
    return 0;
}

static void on_end(void *user, int status, struct kr_bytes text)
{
    struct hub_sync_in *s = user;

    s->ended = true;
    s->unsupported = status == KR_GRPC_UNIMPLEMENTED;
    kr_note_set(&s->why, 0, "status %d: %.*s", status, (int)text.n, (const char *)text.p);
    hub_job_post(&s->cfg.desk->turns, &s->job);
}

static const struct kr_grpc_user call_user = {.on_message = on_message, .on_end = on_end};

/* ---- opening ---- */

static size_t fill(struct kr_bytes *out, const struct kr_strings *from)
{
    size_t n = 0;

    for (; n < from->n && n < LISTS_MAX; n++)
        out[n] = kr_bytes_str(from->v[n]);
    return n;
}

/* `lists` has room for 3 * LISTS_MAX. */
static void describe(const struct hub_type *t, const struct hub_profile *p, bool metadata_only,
                     struct kr_bytes *lists, struct kr_subscription *out)
{
    bool bare = metadata_only || p->metadata_only;

    *out = (struct kr_subscription){
        .group = t->group,
        .version = t->version,
        .resource = t->resource,
        .namespaces = lists,
        .namespace_count = fill(lists, &p->namespaces),
        .label_selector = kr_bytes_str(p->label_selector),
        .field_selector = kr_bytes_str(p->field_selector),
        .keep = lists + LISTS_MAX,
        .keep_count = bare ? 0 : fill(lists + LISTS_MAX, &p->keep),
        .drop = lists + 2 * (size_t)LISTS_MAX,
        .drop_count = bare ? 0 : fill(lists + 2 * (size_t)LISTS_MAX, &p->drop),
        .metadata_only = bare,
        .priority = p->priority,
    };
}

static int encode(const struct hub_sync_config *cfg, const struct kr_sync_open *open,
                  struct kr_buf *out)
{
    struct kr_bytes *lists = calloc(3 * (size_t)LISTS_MAX, sizeof *lists);
    struct kr_sync_open full = *open;
    struct kr_sync_control control = {.open = &full};
    int rc = KR_ENOMEM;

    if (lists != NULL) {
        describe(cfg->shelf->type, cfg->profile, cfg->metadata_only, lists, &full.subscription);
        full.subscription.id = cfg->number;
        rc = kr_sync_control_encode(&control, out);
    }
    free(lists);
    return rc;
}

int hub_sync_opening(const struct hub_type *type, const struct hub_profile *profile,
                     bool metadata_only, struct kr_buf *out)
{
    struct hub_shelf shelf = {.type = (struct hub_type *)type};
    struct hub_sync_config cfg = {
        .shelf = &shelf, .profile = profile, .metadata_only = metadata_only};
    struct kr_sync_open open = {.holds = false};

    return encode(&cfg, &open, out);
}

static int send_opening(struct hub_sync_in *s)
{
    struct hub_shelf *shelf = s->cfg.shelf;
    struct kr_buf message = {.max = KR_SYNC_MESSAGE_MAX};
    struct kr_sync_open open = {
        .holds = shelf->objects != 0,
        .version = kr_bytes_str(shelf->origin_version),
        .dictionaries = kr_dictionaries_all(s->cfg.desk->dictionaries),
    };
    int rc;

    while (open.dictionaries[open.dictionary_count] != 0)
        open.dictionary_count++;
    if (open.holds)
        hub_held_digest(shelf, &open.digest);
    rc = encode(&s->cfg, &open, &message);
    if (rc == 0)
        rc = kr_grpc_send(&s->call, kr_buf_bytes(&message));
    kr_buf_deinit(&message);
    return rc;
}

struct hub_sync_in *hub_sync_in_open(const struct hub_sync_config *cfg)
{
    struct kr_grpc_limits limits = {.message = KR_SYNC_MESSAGE_MAX, .queue = QUEUE_MAX};
    struct hub_sync_in *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->cfg = *cfg;
    kr_list_init(&s->inbox);
    hub_job_init(&s->job, step);
    if (kr_grpc_open(&s->call, cfg->conn, KR_LIT("agent"), KR_LIT(KR_GRPC_SYNC), limits, &call_user,
                     s) == 0 &&
        send_opening(s) == 0)
        return s;
    hub_sync_in_close(s);
    return NULL;
}
