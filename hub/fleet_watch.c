/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: hub_watch_start finds the place in the log (and, for initial events, pins what is
 * there), sends the head at once; `available` puts whole events into the outbox when it is empty:
 * first what was there, then the log, then a bookmark that is due. Told of events, it is ready
 * again. Failure modes: the client goes; the place falls off the log, or the pin breaks (clean end:
 * the client comes back with its last version); a version that the log does not reach (ERROR 410,
 * then the end). */
#include "hub/fleet_watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/watchers.h"
#include "kube/injected.h"

#define PIECE (32u * 1024)
#define OWN_MAX (128u << 20)
#define LOOKED_MAX 2000 /* events or objects in one turn, shown or not */
#define BOOKMARK_MS 60000
#define LAST_BOOKMARK_MS 2000 /* before the end */
#define LIFE_MIN_MS (30 * 60000)
#define LIFE_MAX_MS (60 * 60000)
#define LIFE_MAX_S (7 * 86400) /* that a client can ask for */

static const char *const words[] = {
    [HUB_ADDED] = "ADDED", [HUB_MODIFIED] = "MODIFIED", [HUB_DELETED] = "DELETED"};

struct hub_watch {
    struct hub_read *rd;
    struct hub_watcher watcher;
    struct hub_place place;
    uint64_t revision;           /* everything up to it was shown, or is not selected */
    struct hub_pin *pin;         /* while initial events come */
    struct hub_walk *walk;       /* the same */
    struct hub_columns *columns; /* of a Table */
    struct hub_outbox out;
    struct kr_timer turn;
    int64_t end_ms;
    int64_t bookmark_ms; /* the next one */
    bool columns_sent;
    bool initial_end_due; /* the bookmark behind the initial events */
    bool bookmark_due;
    bool expired; /* the version asked for is too old */
    bool pause;   /* until the loop has turned */
    bool ended;
    /* Whether the cluster of the last event may be seen: most have the same one before. */
    const char *seen_cluster;
    int seen;
};

static struct hub_cache *cache_of(const struct hub_watch *w)
{
    return w->rd->f->w->cache;
}

/* ---- end ---- */

static void stop_initial(struct hub_watch *w)
{
    hub_walk_destroy(w->walk);
    w->walk = NULL;
    if (w->pin != NULL)
        hub_pin_release(w->pin, false);
    w->pin = NULL;
}

static void watch_free(struct hub_watch *w)
{
    struct hub_fleet *f = w->rd->f;

    kr_timer_stop(f->w->sched, &w->turn);
    hub_watchers_leave(&w->watcher);
    stop_initial(w);
    hub_columns_unref(w->columns);
    hub_outbox_deinit(&w->out);
    free(w);
}

/* ---- which events ---- */

static bool labels_match(const struct hub_watch *w, const struct hub_object *o, const char *cluster)
{
    const struct kr_label_selector *s = &w->rd->labels;
    const struct kr_bytes name = kr_bytes_str(cluster);
    size_t n = 0;
    const struct kr_label *labels = hub_cache_labels(cache_of(w), o->label_set, &n);

    for (size_t i = 0; i < s->n; i++) {
        const struct kr_bytes *value = NULL;

        if (kr_bytes_is(s->all[i].key, KR_LABEL_CLUSTER))
            value = &name;
        for (size_t k = 0; value == NULL && k < n; k++) {
            if (kr_bytes_eq(labels[k].key, s->all[i].key))
                value = &labels[k].value;
        }
        if (!kr_requirement_matches(&s->all[i], value))
            return false;
    }
    return true;
}

static bool fields_match(const struct hub_watch *w, struct hub_object *o)
{
    const struct kr_field_selector *s = &w->rd->options.fields;
    struct hub_plain text = {{NULL, 0}, {NULL, 0}};

    if (s->n == 0)
        return true;
    if (kr_field_selector_needs_object(s) && hub_fleet_plain(w->rd->f, o, &text) != 0)
        return false;
    return kr_field_selector_matches(s, hub_object_ns(o), hub_object_name(o), text.slim);
}

static bool selected(const struct hub_watch *w, struct hub_object *o, const char *cluster)
{
    return (w->rd->labels.n == 0 || labels_match(w, o, cluster)) && fields_match(w, o);
}

/* By cluster and namespace, which a change never changes. The shelf may be gone: who may see what
 * is decided by its name. */
static bool may_see(struct hub_watch *w, const struct hub_event *e)
{
    const struct hub_read *rd = w->rd;
    struct kr_bytes ns = hub_object_ns(e->object);
    struct hub_shelf shelf;

    if (rd->ns.n != 0 && !kr_bytes_eq(rd->ns, ns))
        return false;
    if (w->seen_cluster == e->cluster && w->seen != 2)
        return w->seen != 0;
    shelf = (struct hub_shelf){.type = rd->type};
    snprintf(shelf.cluster, sizeof shelf.cluster, "%s", e->cluster);
    w->seen_cluster = e->cluster;
    w->seen = rd->sight.ops.cluster(&rd->sight, &shelf);
    return w->seen == 2 ? rd->sight.ops.ns(&rd->sight, &shelf, ns) : w->seen != 0;
}

/* ---- the text of events ---- */

static int put_envelope(struct hub_watch *w, const char *word, uint64_t revision)
{
    struct kr_buf *out = &w->out.own;
    int rc = kr_buf_append_str(out, "{\"type\":\"");

    if (rc == 0)
        rc = kr_buf_append_str(out, word);
    if (rc == 0)
        rc = kr_buf_append_str(out, "\",\"object\":");
    if (rc != 0 || w->columns == NULL)
        return rc;
    rc = kr_buf_printf(out,
                       "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{"
                       "\"resourceVersion\":\"%llu\"},\"columnDefinitions\":",
                       hub_read_meta_version(w->rd), (unsigned long long)revision);
    if (rc == 0)
        rc = kr_buf_append(out, w->columns_sent ? KR_LIT("null") : kr_buf_bytes(&w->columns->text));
    w->columns_sent = true;
    return rc != 0 ? rc : kr_buf_append_str(out, ",");
}

static int put_bookmark_row(struct hub_watch *w)
{
    int rc = kr_buf_append_str(&w->out.own, "\"rows\":[{\"cells\":[\"\"");

    for (size_t i = 0; rc == 0 && i < w->columns->shown.n; i++)
        rc = kr_buf_append_str(&w->out.own, ",null");
    return rc != 0 ? rc : kr_buf_append_str(&w->out.own, "],\"object\":");
}

static int put_bookmark_object(struct hub_watch *w, bool initial_end)
{
    const struct hub_read *rd = w->rd;
    bool whole = !hub_read_is_table(rd) && !hub_read_is_partial(rd);
    int rc;

    if (whole)
        rc = kr_buf_printf(&w->out.own, "{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\",",
                           (int)rd->kind.kind.n, (const char *)rd->kind.kind.p,
                           (int)rd->kind.api_version.n, (const char *)rd->kind.api_version.p);
    else
        rc = kr_buf_printf(&w->out.own,
                           "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%s\",",
                           hub_read_meta_version(rd));
    if (rc == 0)
        rc = kr_buf_printf(&w->out.own,
                           "\"metadata\":{\"resourceVersion\":\"%llu\",\"creationTimestamp\":null%s"
                           "}}",
                           (unsigned long long)w->revision,
                           initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
                                       : "");
    return rc;
}

static int put_bookmark(struct hub_watch *w, bool initial_end)
{
    int rc = put_envelope(w, "BOOKMARK", w->revision);

    if (rc == 0 && w->columns != NULL)
        rc = put_bookmark_row(w);
    if (rc == 0)
        rc = put_bookmark_object(w, initial_end);
    if (rc == 0)
        rc = kr_buf_append_str(&w->out.own, w->columns != NULL ? "}]}}\n" : "}\n");
    return rc;
}

static int put_expired(struct hub_watch *w)
{
    char text[96];
    struct kr_status st = {.code = 410, .reason = "Expired"};
    int rc = kr_buf_append_str(&w->out.own, "{\"type\":\"ERROR\",\"object\":");

    snprintf(text, sizeof text, "too old resource version: %llu (%llu)",
             (unsigned long long)w->rd->options.version,
             (unsigned long long)hub_cache_now(cache_of(w)));
    st.message = kr_bytes_str(text);
    if (rc == 0)
        rc = kr_status_write(&w->out.own, &st);
    return rc != 0 ? rc : kr_buf_append_str(&w->out.own, "}\n");
}

static int put_scene(struct hub_watch *w, enum hub_change change, const struct hub_scene *scene)
{
    int rc = put_envelope(w, words[change], scene->revision);

    kr_metric_add(w->rd->f->m_events, 1);
    return rc != 0 ? rc : hub_watchers_show(&w->out.own, w->rd, w->columns, scene);
}

static int put_event(struct hub_watch *w, enum hub_change change, struct hub_event *e)
{
    int rc = put_envelope(w, words[change], e->revision);

    kr_metric_add(w->rd->f->m_events, 1);
    return rc != 0 ? rc : hub_watchers_show_event(&w->out, w->rd, w->columns, e);
}

/* What comes into the selection is added, what leaves it deleted, as it was before. */
static int show(struct hub_watch *w, struct hub_event *e)
{
    bool all = w->rd->labels.n == 0 && w->rd->options.fields.n == 0;
    bool now;
    bool before;

    if (!may_see(w, e))
        return 0;
    now = all || selected(w, e->object, e->cluster);
    if (all || e->change != HUB_MODIFIED)
        return now ? put_event(w, e->change, e) : 0;
    before = selected(w, e->before, e->cluster);
    if (now)
        return put_event(w, before ? HUB_MODIFIED : HUB_ADDED, e);
    if (before) {
        struct hub_scene scene = {e->before, e->cluster, e->revision};

        return put_scene(w, HUB_DELETED, &scene);
    }
    return 0;
}

/* ---- pieces ---- */

/* Enough for a while is not put beyond. */
static bool has_room(const struct hub_watch *w)
{
    return w->out.size < PIECE && hub_outbox_has_room(&w->out);
}

/* What was there at the start. */
static int fill_initial(struct hub_watch *w)
{
    int rc = 0;

    for (size_t n = 0; rc == 0 && n < LOOKED_MAX && has_room(w); n++) {
        struct hub_scene scene = {0};

        scene.object = hub_walk_next(w->walk, &scene.cluster);
        if (scene.object == NULL) {
            w->ended = hub_pin_broken(w->pin);
            stop_initial(w);
            return 0;
        }
        scene.revision = scene.object->revision;
        if (fields_match(w, scene.object))
            rc = put_scene(w, HUB_ADDED, &scene);
        if (rc == 0)
            rc = hub_outbox_note(&w->out);
    }
    w->pause = true;
    return rc;
}

static int fill_live(struct hub_watch *w)
{
    struct hub_event *e;
    int rc = 0;

    for (size_t n = 0; n < LOOKED_MAX && has_room(w); n++) {
        rc = hub_place_next(&w->place, &e);
        if (rc <= 0) {
            if (rc == 0 && w->revision < hub_cache_now(cache_of(w)))
                w->revision = hub_cache_now(cache_of(w));
            w->ended |= rc == KR_ENOENT;
            return 0;
        }
        rc = show(w, e);
        if (rc == 0)
            rc = hub_outbox_note(&w->out);
        if (rc != 0)
            return rc;
        w->revision = e->revision;
    }
    w->pause = has_room(w);
    return 0;
}

static int fill_bookmarks(struct hub_watch *w)
{
    int rc = 0;

    if (w->initial_end_due && w->rd->ready) {
        w->initial_end_due = false;
        rc = put_bookmark(w, true);
    } else if (w->bookmark_due && !w->initial_end_due) {
        rc = put_bookmark(w, false);
    }
    w->bookmark_due = false;
    return rc;
}

static void fill(struct hub_watch *w)
{
    int rc = 0;

    if (w->expired) {
        rc = put_expired(w);
        w->ended = true;
    }
    if (!w->ended && w->walk != NULL)
        rc = fill_initial(w);
    if (rc == 0 && !w->ended && w->walk == NULL)
        rc = fill_live(w);
    if (rc == 0 && !w->ended && w->walk == NULL)
        rc = fill_bookmarks(w);
    if (rc == 0)
        rc = hub_outbox_note(&w->out);
    if (rc == 0)
        return;
    KR_LOG_AT(w->rd->f->w->log, KR_LOG_WARN, "answer-cut", KR_S("cluster", "*"),
              KR_S("reason", kr_err_text(rc)), KR_S("id", w->rd->r->audit_id));
    w->ended = true;
    hub_outbox_deinit(&w->out); /* what is whole in it comes again with the next watch */
}

static void on_turn(struct kr_timer *t)
{
    struct hub_watch *w = KR_CONTAINER_OF(t, struct hub_watch, turn);

    w->pause = false;
    kr_exchange_ready(w->rd->ex);
}

static size_t available(void *user, bool *end)
{
    struct hub_watch *w = user;

    if (w->out.size == 0 && !w->ended && !w->pause) {
        fill(w);
        if (w->pause)
            w->pause = kr_timer_start(w->rd->f->w->sched, &w->turn, 0) == 0;
    }
    *end = w->ended;
    return w->out.size;
}

static void take(void *user, uint8_t *out, size_t n)
{
    struct hub_watch *w = user;

    hub_outbox_take(&w->out, out, n);
    w->rd->r->own_bytes += n;
}

static void on_body(void *user, struct kr_bytes in)
{
    struct hub_watch *w = user;

    kr_exchange_consumed(w->rd->ex, in.n);
}

static void on_request_end(void *user, const struct kr_head *trailers)
{
    (void)user, (void)trailers;
}

static void on_done(void *user, int rc)
{
    struct hub_watch *w = user;
    struct hub_read *rd = w->rd;

    (void)rc;
    kr_metric_add(rd->f->m_watchers, -1);
    watch_free(w);
    hub_read_end(rd);
}

static const struct kr_exchange_user watch_ops = {
    NULL, on_body, on_request_end, available, take, on_done,
};

/* ---- time ---- */

static void set_timer(struct hub_watch *w)
{
    struct kr_sched *sched = w->rd->f->w->sched;
    int64_t next = w->end_ms;

    if (w->rd->options.bookmarks && w->bookmark_ms < next)
        next = w->bookmark_ms;
    kr_timer_start(sched, &w->rd->timer, next - sched->now_ms);
}

static void on_time(struct kr_timer *t)
{
    struct hub_read *rd = KR_CONTAINER_OF(t, struct hub_read, timer);
    struct hub_watch *w = rd->watch;
    int64_t now = rd->f->w->sched->now_ms;

    if (now >= w->end_ms) {
        w->ended = true;
        kr_exchange_ready(rd->ex);
        return;
    }
    w->bookmark_due = true;
    w->bookmark_ms = now + BOOKMARK_MS;
    if (now < w->end_ms - LAST_BOOKMARK_MS && w->bookmark_ms > w->end_ms - LAST_BOOKMARK_MS)
        w->bookmark_ms = w->end_ms - LAST_BOOKMARK_MS;
    set_timer(w);
    kr_exchange_ready(rd->ex);
}

static void start_clock(struct hub_watch *w)
{
    struct hub_worker *hub = w->rd->f->w;
    int64_t now = hub->sched->now_ms;
    int64_t asked = w->rd->options.timeout_s;
    int64_t life = kr_rand_ms(&hub->rand, LIFE_MIN_MS, LIFE_MAX_MS);

    if (asked > 0)
        life = (asked < LIFE_MAX_S ? asked : LIFE_MAX_S) * 1000;
    w->end_ms = now + life;
    w->bookmark_ms = now + BOOKMARK_MS;
    if (life > LAST_BOOKMARK_MS && w->bookmark_ms > w->end_ms - LAST_BOOKMARK_MS)
        w->bookmark_ms = w->end_ms - LAST_BOOKMARK_MS;
    kr_timer_init(&w->rd->timer, on_time);
    set_timer(w);
}

void hub_watch_end(struct hub_read *rd, int64_t after_ms)
{
    int64_t end = rd->f->w->sched->now_ms + after_ms;

    if (end < rd->watch->end_ms)
        rd->watch->end_ms = end;
    set_timer(rd->watch);
}

void hub_watch_judge_again(struct hub_read *rd)
{
    rd->watch->seen_cluster = NULL;
}

void hub_watch_ready(struct hub_read *rd)
{
    if (rd->watch->initial_end_due)
        kr_exchange_ready(rd->ex);
}

static void on_events(struct hub_watcher *watcher)
{
    struct hub_watch *w = KR_CONTAINER_OF(watcher, struct hub_watch, watcher);

    kr_exchange_ready(w->rd->ex);
}

/* ---- begin ---- */

/* Pins what is there and walks it; the log goes on behind it. */
static int start_initial(struct hub_watch *w)
{
    const struct hub_read *rd = w->rd;
    struct hub_walk_query q = {
        .type = rd->type, .sight = &rd->sight.ops, .ns = rd->ns, .labels = &rd->labels};

    w->pin = hub_pin_take(rd->type);
    if (w->pin == NULL)
        return KR_ENOMEM;
    q.pin = w->pin;
    w->walk = hub_walk_create(&q);
    w->revision = hub_pin_revision(w->pin);
    hub_place_at_end(rd->type, &w->place);
    return w->walk != NULL ? 0 : KR_ENOMEM;
}

static int find_place(struct hub_watch *w)
{
    const struct kr_list_options *o = &w->rd->options;
    bool anywhere = !o->has_version || o->version_zero;

    w->initial_end_due = o->send_initial && o->bookmarks;
    if (o->send_initial || (anywhere && !o->has_send_initial))
        return start_initial(w);
    w->revision = anywhere ? hub_cache_now(cache_of(w)) : o->version;
    if (anywhere)
        hub_place_at_end(w->rd->type, &w->place);
    else if (hub_place_at(w->rd->type, o->version, &w->place) != 0)
        w->expired = true;
    return 0;
}

static int begin(struct hub_watch *w)
{
    struct hub_read *rd = w->rd;
    int rc = hub_watchers_join(rd->type, &w->watcher);

    if (rc == 0)
        rc = find_place(w);
    if (rc == 0 && hub_read_is_table(rd)) {
        w->columns = hub_fleet_columns(rd->f, rd->type);
        rc = w->columns != NULL ? 0 : KR_ENOMEM;
    }
    return rc != 0 ? rc : hub_read_send_head(rd, false);
}

/* It may live for an hour: what only its start needed goes. */
static void shrink(struct hub_read *rd)
{
    rd->r->info = (struct kr_request_info){0};
    rd->r->as = (struct hub_impersonation){0};
    kr_exchange_drop_head(rd->ex);
}

void hub_watch_start(struct hub_read *rd)
{
    struct hub_watch *w = calloc(1, sizeof *w);
    int rc = KR_ENOMEM;

    if (w != NULL) {
        w->rd = rd;
        hub_outbox_init(&w->out, OWN_MAX);
        w->watcher.on_events = on_events;
        kr_timer_init(&w->turn, on_turn);
        rc = begin(w);
    }
    if (rc != 0) {
        if (w != NULL)
            watch_free(w);
        hub_read_refuse(rd, 500, "InternalError", "Internal error occurred: out of memory");
        return;
    }
    rd->watch = w;
    kr_metric_add(rd->f->m_watchers, 1);
    start_clock(w);
    kr_exchange_attach(rd->ex, &watch_ops, w);
    shrink(rd);
    kr_exchange_ready(rd->ex);
}
