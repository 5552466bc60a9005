/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: hub_list_start pins the content and sends the head; `available` renders a chunk when
 * there is none, `take` copies it out; after the last one the read ends. metadata comes first,
 * where all of it is known; with a limit it comes last, as only then it is known whether and where
 * the list goes on. What is longer than one chunk is packed, if the client takes that. It fails if
 * the client goes, a pin breaks, an object does not unpack or the reader stops: answer cut. */
#include "hub/fleet_list.h"

#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/fleet_row.h"
#include "hub/fleet_token.h"
#include "hub/gzip.h"

#define CHUNK (128u * 1024)
#define WORK_MAX (4u * CHUNK) /* bytes looked at in one turn, shown or not */
#define CHUNK_MAX (64u << 20) /* one object of the largest size, escaped */
#define STALE_MAX 32

struct stale { /* a shelf whose cluster is away */
    char cluster[64];
    char since[STALE_MAX];
};

struct hub_list {
    struct hub_read *rd;
    struct hub_pin *pin;
    struct hub_walk *walk;
    uint64_t revision;
    struct hub_columns *columns; /* of a Table */
    struct hub_row row;
    struct stale *stale; /* ordered by cluster */
    size_t stale_count;
    struct kr_buf chunk;
    struct hub_gzip *gzip; /* NULL: the chunk goes out as it is */
    struct kr_buf packed;
    size_t at;     /* taken of what goes out */
    int64_t limit; /* objects that may still be shown; -1: any number */
    int64_t left;  /* objects behind what was shown; HUB_LEFT_UNKNOWN */
    uint64_t shown;
    bool counted; /* `left` can be told */
    bool more;
    struct hub_token next; /* with `more` */
    struct kr_buf next_key;
    bool begun;
    bool walked; /* nothing more comes out of the walk */
    bool ended;  /* the chunk is the last one */
    bool pause;  /* until the loop has turned */
    bool failed;
    uint64_t taken;
    uint64_t seen; /* taken when progress was last looked at */
    struct kr_timer turn;
};

/* ---- end ---- */

static void list_free(struct hub_list *l)
{
    struct hub_fleet *f = l->rd->f;

    kr_timer_stop(f->w->sched, &l->turn);
    hub_walk_destroy(l->walk);
    if (l->pin != NULL)
        hub_pin_release(l->pin, l->more && !l->failed);
    hub_columns_unref(l->columns);
    kr_metric_add(f->m_list_bytes, (int64_t)l->taken);
    kr_buf_deinit(&l->chunk);
    hub_gzip_destroy(l->gzip);
    kr_buf_deinit(&l->packed);
    kr_buf_deinit(&l->next_key);
    free(l->stale);
    free(l);
}

static void end(struct hub_list *l)
{
    struct hub_read *rd = l->rd;

    list_free(l);
    hub_read_end(rd);
}

/* The reader must see that this is not the whole list. */
static void cut(struct hub_list *l)
{
    struct hub_read *rd = l->rd;

    l->failed = true;
    KR_LOG_AT(rd->f->w->log, KR_LOG_WARN, "answer-cut", KR_S("cluster", "*"),
              KR_S("reason", hub_pin_broken(l->pin) ? "the list took too long" : "no progress"),
              KR_U("bytes", l->taken), KR_S("id", rd->r->audit_id));
    kr_exchange_abort(rd->ex, KR_ABORT_INTERNAL);
    end(l);
}

/* ---- one object ---- */

static int by_cluster(const void *key, const void *stale)
{
    return strcmp(key, ((const struct stale *)stale)->cluster);
}

static struct kr_bytes stale_since(const struct hub_list *l, const char *cluster)
{
    const struct stale *s = NULL;

    if (l->stale_count != 0)
        s = bsearch(cluster, l->stale, l->stale_count, sizeof *s, by_cluster);
    return kr_bytes_str(s != NULL ? s->since : NULL);
}

static int show(struct hub_list *l, struct hub_object *o, const char *cluster,
                const struct hub_plain *text)
{
    const struct hub_read *rd = l->rd;
    struct hub_face face = {
        .cluster = cluster,
        .revision = o->revision,
        .origin = hub_object_version(o),
        .lossy = o->lossy,
        .stale_since = stale_since(l, cluster),
    };
    struct hub_spots spots;
    int rc = l->shown != 0 ? kr_buf_append(&l->chunk, KR_LIT(",")) : 0;

    if (rc != 0)
        return rc;
    if (l->columns != NULL)
        return hub_row_write(&l->chunk, &l->row, text->cells, text->slim, hub_object_name(o),
                             &face);
    if (!hub_read_is_partial(rd))
        return hub_render_object(&l->chunk, &rd->kind, text->slim, &face);
    rc = hub_spots_find(text->slim, true, &spots);
    return rc != 0 ? rc
                   : hub_render_partial(&l->chunk, hub_read_meta_version(rd), text->slim, &spots,
                                        &face);
}

/* The place behind the last one that was shown, for the next page. */
static int note_place(struct hub_list *l, struct hub_object *o, const char *cluster)
{
    const struct kr_bytes parts[] = {hub_object_ns(o), hub_object_name(o), kr_bytes_str(cluster)};
    int rc = 0;

    l->next_key.n = 0;
    for (size_t i = 0; rc == 0 && i < 3; i++)
        rc = kr_buf_append(&l->next_key, parts[i]);
    if (rc != 0)
        return rc;
    l->next.ns = kr_bytes_of(l->next_key.p, parts[0].n);
    l->next.name = kr_bytes_of(l->next.ns.p + parts[0].n, parts[1].n);
    l->next.cluster = kr_bytes_of(l->next.name.p + parts[1].n, parts[2].n);
    return 0;
}

/* 1: shown; 0: not selected. `*work` grows by what was looked at. */
static int consider(struct hub_list *l, struct hub_object *o, const char *cluster, size_t *work)
{
    struct hub_read *rd = l->rd;
    const struct kr_field_selector *fields = &rd->options.fields;
    struct hub_plain text = {{NULL, 0}, {NULL, 0}};
    int rc = 0;

    *work += 64;
    if (fields->n != 0 && !kr_field_selector_needs_object(fields) &&
        !kr_field_selector_matches(fields, hub_object_ns(o), hub_object_name(o), text.slim))
        return 0;
    rc = hub_fleet_plain(rd->f, o, &text);
    *work += o->size;
    if (rc != 0)
        return rc;
    if (fields->n != 0 && kr_field_selector_needs_object(fields) &&
        !kr_field_selector_matches(fields, hub_object_ns(o), hub_object_name(o), text.slim))
        return 0;
    rc = show(l, o, cluster, &text);
    if (rc != 0)
        return rc;
    l->shown++;
    return 1;
}

/* ---- what stands around them ---- */

static int put_metadata(struct hub_list *l)
{
    struct kr_buf *out = &l->chunk;
    int rc = kr_buf_append_str(out, "\"metadata\":{\"resourceVersion\":\"");

    if (rc == 0)
        rc = hub_render_u64(out, l->revision);
    if (rc == 0)
        rc = kr_buf_append_str(out, "\"");
    if (rc == 0 && l->more) {
        l->next.revision = l->revision;
        l->next.left = l->left;
        rc = kr_buf_append_str(out, ",\"continue\":\"");
        if (rc == 0)
            rc = hub_token_write(l->rd->f->token_key, l->rd->bound, &l->next, out);
        if (rc == 0)
            rc = kr_buf_append_str(out, "\"");
        if (rc == 0 && l->left > 0)
            rc = kr_buf_printf(out, ",\"remainingItemCount\":%lld", (long long)l->left);
    }
    return rc != 0 ? rc : kr_buf_append_str(out, "}");
}

static int put_type_meta(struct hub_list *l)
{
    const struct hub_read *rd = l->rd;
    struct kr_buf *out = &l->chunk;

    if (hub_read_is_table(rd))
        return kr_buf_printf(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",",
                             hub_read_meta_version(rd));
    if (hub_read_is_partial(rd))
        return kr_buf_printf(out,
                             "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta."
                             "k8s.io/%s\",",
                             hub_read_meta_version(rd));
    return kr_buf_printf(out, "{\"kind\":\"%.*sList\",\"apiVersion\":\"%.*s\",",
                         (int)rd->kind.kind.n, (const char *)rd->kind.kind.p,
                         (int)rd->kind.api_version.n, (const char *)rd->kind.api_version.p);
}

static int put_opening(struct hub_list *l)
{
    struct kr_buf *out = &l->chunk;
    int rc = put_type_meta(l);

    if (rc == 0 && l->limit < 0) {
        rc = put_metadata(l);
        if (rc == 0)
            rc = kr_buf_append_str(out, ",");
    }
    if (rc == 0 && l->columns != NULL) {
        rc = kr_buf_append_str(out, "\"columnDefinitions\":");
        if (rc == 0)
            rc = kr_buf_append(out, kr_buf_bytes(&l->columns->text));
        if (rc == 0)
            rc = kr_buf_append_str(out, ",");
    }
    if (rc == 0)
        rc = kr_buf_append_str(out, l->columns != NULL ? "\"rows\":[" : "\"items\":[");
    l->begun = true;
    return rc;
}

static int put_closing(struct hub_list *l)
{
    int rc = kr_buf_append_str(&l->chunk, "]");

    if (rc == 0 && l->limit >= 0) {
        rc = kr_buf_append_str(&l->chunk, ",");
        if (rc == 0)
            rc = put_metadata(l);
    }
    l->ended = true;
    return rc != 0 ? rc : kr_buf_append_str(&l->chunk, "}\n");
}

/* ---- chunks ---- */

/* The limit is reached: only whether anything comes behind it is still of interest. */
static void look_ahead(struct hub_list *l)
{
    const char *cluster;

    l->more = hub_walk_next(l->walk, &cluster) != NULL;
    if (!l->more || !l->counted)
        l->left = HUB_LEFT_UNKNOWN;
    l->walked = true;
}

static int render(struct hub_list *l)
{
    size_t work = 0;
    int rc = l->begun ? 0 : put_opening(l);

    while (rc == 0 && !l->walked && l->chunk.n < CHUNK && work < WORK_MAX) {
        const char *cluster = NULL;
        struct hub_object *o = hub_walk_next(l->walk, &cluster);

        if (o == NULL) {
            l->walked = true;
            break;
        }
        rc = consider(l, o, cluster, &work);
        if (rc <= 0)
            continue;
        rc = 0;
        if (l->left > 0)
            l->left--;
        if (l->limit > 0 && l->shown == (uint64_t)l->limit) {
            rc = note_place(l, o, cluster);
            look_ahead(l);
        }
    }
    if (rc == 0 && hub_pin_broken(l->pin))
        rc = KR_ENOENT;
    if (rc == 0 && l->walked && !l->ended)
        rc = put_closing(l);
    return rc;
}

static void on_turn(struct kr_timer *t)
{
    struct hub_list *l = KR_CONTAINER_OF(t, struct hub_list, turn);

    if (l->failed) {
        cut(l);
        return;
    }
    l->pause = false;
    kr_exchange_ready(l->rd->ex);
}

/* Nothing more in this turn of the loop (without memory for the timer: on at once). */
static void pause_list(struct hub_list *l)
{
    l->pause = kr_timer_start(l->rd->f->w->sched, &l->turn, 0) == 0;
}

static struct kr_buf *outgoing(struct hub_list *l)
{
    return l->gzip != NULL ? &l->packed : &l->chunk;
}

static int pack(struct hub_list *l)
{
    int rc = hub_gzip_put(l->gzip, kr_buf_bytes(&l->chunk), l->ended, &l->packed);

    l->chunk.n = 0;
    return rc;
}

static int render_next(struct hub_list *l)
{
    int rc = render(l);

    return rc == 0 && l->gzip != NULL ? pack(l) : rc;
}

static void next_chunk(struct hub_list *l)
{
    struct kr_buf *out = outgoing(l);

    l->chunk.n = l->packed.n = l->at = 0;
    while (out->n == 0 && !l->ended && !l->pause && !l->failed) {
        /* The exchange is not to be ended from within its own call. */
        l->failed = render_next(l) != 0;
        if (l->failed)
            out->n = 0;
        if (out->n == 0)
            pause_list(l);
    }
}

static size_t available(void *user, bool *end_of_list)
{
    struct hub_list *l = user;

    *end_of_list = false;
    if (l->pause || l->failed)
        return 0;
    if (l->at == outgoing(l)->n && !l->ended)
        next_chunk(l);
    *end_of_list = l->ended && !l->failed;
    return outgoing(l)->n - l->at;
}

static void take(void *user, uint8_t *out, size_t n)
{
    struct hub_list *l = user;

    memcpy(out, outgoing(l)->p + l->at, n);
    l->at += n;
    l->taken += n;
    l->rd->r->own_bytes += n;
    if (l->at == outgoing(l)->n && !l->ended)
        pause_list(l);
}

static void on_body(void *user, struct kr_bytes in)
{
    struct hub_list *l = user;

    kr_exchange_consumed(l->rd->ex, in.n);
}

static void on_request_end(void *user, const struct kr_head *trailers)
{
    (void)user, (void)trailers;
}

static void on_done(void *user, int rc)
{
    (void)rc;
    end(user);
}

static const struct kr_exchange_user list_ops = {
    NULL, on_body, on_request_end, available, take, on_done,
};

/* A reader that takes nothing for long (over HTTP/2 the session has noticed that before). */
static void on_progress(struct kr_timer *t)
{
    struct hub_read *rd = KR_CONTAINER_OF(t, struct hub_read, timer);
    struct hub_list *l = rd->list;

    if (l->taken == l->seen && rd->f->w->options->stall_timeout_ms != 0) {
        cut(l);
        return;
    }
    l->seen = l->taken;
    kr_timer_start(rd->f->w->sched, t, rd->f->w->options->request_timeout_ms);
}

/* ---- begin ---- */

static void write_time(int64_t wall_ms, char out[STALE_MAX])
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;

    if (gmtime_r(&s, &tm) == NULL || strftime(out, STALE_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        out[0] = '\0';
}

/* Which clusters are away, as of now: the shelves are ordered by cluster, and so is the list. */
static int note_stale(struct hub_list *l)
{
    const struct hub_type *type = l->rd->type;
    size_t n = 0;

    KR_LIST_FOREACH(node, &type->shelves)
    n += KR_CONTAINER_OF(node, struct hub_shelf, in_type)->stale_since_wall_ms != 0;
    if (n == 0)
        return 0;
    l->stale = calloc(n, sizeof *l->stale);
    if (l->stale == NULL)
        return KR_ENOMEM;
    KR_LIST_FOREACH(node, &type->shelves)
    {
        const struct hub_shelf *s = KR_CONTAINER_OF(node, struct hub_shelf, in_type);

        if (s->stale_since_wall_ms == 0)
            continue;
        memcpy(l->stale[l->stale_count].cluster, s->cluster, sizeof s->cluster);
        write_time(s->stale_since_wall_ms, l->stale[l->stale_count++].since);
    }
    return 0;
}

/* Whether they see every object of the type, still: only then can be told how many remain. */
static bool sees_everything(const struct hub_read *rd)
{
    if (rd->labels.n != 0 || rd->options.fields.n != 0 || rd->ns.n != 0)
        return false;
    KR_LIST_FOREACH(node, &rd->type->shelves)
    {
        const struct hub_shelf *s = KR_CONTAINER_OF(node, struct hub_shelf, in_type);

        if (rd->sight.ops.cluster(&rd->sight, s) != 1)
            return false;
    }
    return true;
}

static int prepare(struct hub_list *l, const struct hub_token *from)
{
    struct hub_read *rd = l->rd;
    struct hub_walk_query q = {
        .type = rd->type,
        .pin = l->pin,
        .sight = &rd->sight.ops,
        .ns = rd->ns,
        .labels = &rd->labels,
        .after_ns = from->ns,
        .after_name = from->name,
        .after_cluster = from->cluster,
    };

    l->walk = hub_walk_create(&q);
    if (l->walk == NULL || note_stale(l) != 0)
        return KR_ENOMEM;
    if (!hub_read_is_table(rd))
        return 0;
    l->columns = hub_fleet_columns(rd->f, rd->type);
    l->row = (struct hub_row){
        .columns = l->columns,
        .kind = &rd->kind,
        .meta_version = hub_read_meta_version(rd),
        .include = rd->options.include,
        .now_wall_s = rd->f->w->sched->now_wall_ms / 1000,
    };
    return l->columns != NULL ? 0 : KR_ENOMEM;
}

/* Which content: what is there, or what a page before this one or an exact version names. */
static int take_pin(struct hub_list *l, struct hub_token *from)
{
    struct hub_read *rd = l->rd;
    const struct kr_list_options *o = &rd->options;
    bool exact = o->match == KR_MATCH_EXACT || (o->match == KR_MATCH_UNSET && o->limit != 0 &&
                                                o->has_version && !o->version_zero);
    uint64_t wanted = o->version;
    int rc = 0;

    *from = (struct hub_token){.left = HUB_LEFT_UNKNOWN};
    if (o->cont.n != 0) {
        rc = hub_token_read(rd->f->token_key, rd->bound, o->cont, &rd->r->arena, from);
        exact = true;
        wanted = from->revision;
    }
    if (rc != 0)
        return rc == KR_EDENIED ? KR_ENOENT : rc;
    l->counted = sees_everything(rd) && (o->cont.n == 0 || from->left != HUB_LEFT_UNKNOWN);
    if (exact && (o->cont.n != 0 || wanted < rd->type->revision)) {
        l->pin = hub_pin_find(rd->type, wanted);
        if (l->pin == NULL || hub_pin_broken(l->pin))
            return KR_ENOENT;
    } else {
        l->pin = hub_pin_take(rd->type);
        if (l->pin == NULL)
            return KR_ENOMEM;
        from->left = l->counted ? (int64_t)rd->type->objects : HUB_LEFT_UNKNOWN;
    }
    l->revision = hub_pin_revision(l->pin);
    l->left = l->counted ? from->left : HUB_LEFT_UNKNOWN;
    return 0;
}

/* The first chunk is made before the head: only what is longer is worth packing, as for
 * kube-apiserver. Without memory for it the list goes out as it is. */
static int begin_packing(struct hub_list *l)
{
    const struct kr_head *head = &l->rd->ex->head;
    int rc;

    if (!kr_accept_gzip(kr_head_get(head, KR_LIT("accept-encoding"))) ||
        kr_bytes_is(head->method, "HEAD"))
        return 0;
    rc = render(l);
    if (rc == 0 && !l->ended)
        l->gzip = hub_gzip_create();
    return rc == 0 && l->gzip != NULL ? pack(l) : rc;
}

static int begin(struct hub_list *l)
{
    struct hub_read *rd = l->rd;
    struct hub_token from;
    int rc = take_pin(l, &from);

    if (rc == 0)
        rc = prepare(l, &from);
    if (rc != 0)
        return rc;
    l->limit = rd->options.limit != 0 && !(rd->options.has_version && rd->options.version_zero)
                   ? rd->options.limit
                   : -1;
    rc = begin_packing(l);
    return rc != 0 ? rc : hub_read_send_head(rd, l->gzip != NULL);
}

void hub_list_start(struct hub_read *rd)
{
    struct hub_list *l = calloc(1, sizeof *l);
    int rc = KR_ENOMEM;

    if (l != NULL) {
        l->rd = rd;
        l->chunk.max = l->packed.max = CHUNK_MAX;
        l->next_key.max = CHUNK;
        kr_timer_init(&l->turn, on_turn);
        rc = begin(l);
    }
    if (rc != 0) {
        if (l != NULL)
            list_free(l);
        if (rc == KR_ENOENT)
            hub_read_refuse(rd, 410, "Expired",
                            "The provided continue parameter or resource version is too old to "
                            "display a consistent list result. Start a new list without it.");
        else
            hub_read_refuse(rd, 500, "InternalError", "Internal error occurred: out of memory");
        return;
    }
    rd->list = l;
    kr_metric_add(rd->f->m_lists, 1);
    kr_timer_init(&rd->timer, on_progress);
    kr_timer_start(rd->f->w->sched, &rd->timer, rd->f->w->options->request_timeout_ms);
    kr_exchange_attach(rd->ex, &list_ops, l);
    kr_exchange_ready(rd->ex);
}
