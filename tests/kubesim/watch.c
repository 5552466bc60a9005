/* SPDX-License-Identifier: Apache-2.0 */
/* The watch: a cursor into the cluster's history. Nothing is queued for a watcher: it is woken,
 * asks, and gets what lies behind its cursor; one whose cursor fell out of the history is ended
 * without an error, as the API server does with watchers that cannot keep up. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "list.h"

#define CHUNK (64u * 1024)
#define BOOKMARK_MS 60000
#define LAST_BOOKMARK_MS 2000

struct watch {
    struct sim_source source;
    struct sim_listener listener;
    struct sim_cluster *c;
    struct sim_viewer viewer;
    struct sim_selector selector;
    char prefix[SIM_KEY_MAX];
    uint64_t rv; /* the cursor: all up to here was sent */
    struct sim_snap initial;
    size_t initial_pos;
    bool initial_end_due; /* the bookmark that ends the initial events */
    bool bookmarks;
    bool bookmark_due;
    bool columns; /* the first event of a Table stream carries the columns */
    bool over;    /* the time is up */
    char *error;  /* an ERROR event to end with */
    int64_t deadline_ms;
    struct kr_timer timer;
};

static const char *const type_names[] = {"ADDED", "MODIFIED", "DELETED"};

static int print_tree(struct watch *w, const char *type, struct json_object *v, struct kr_buf *out)
{
    int rc;

    kr_buf_printf(out, "{\"type\":\"%s\",\"object\":", type);
    rc = sim_view_event(&w->viewer, v, w->columns, out);
    w->columns = false;
    kr_buf_append_str(out, "}\n");
    return rc;
}

static int print_rev(struct watch *w, enum sim_event_type type, const struct sim_rev *rev,
                     struct kr_buf *out)
{
    size_t start = out->n;
    struct json_object *v;
    int rc = 0;

    kr_buf_printf(out, "{\"type\":\"%s\",\"object\":", type_names[type]);
    if (w->viewer.view == SIM_VIEW_OBJECT) { /* text as it is stored */
        rc = sim_rev_text(w->c, w->viewer.kind, rev, out);
        kr_buf_append_str(out, "}\n");
        return rc;
    }
    if (sim_view_plain_event(&w->viewer, rev, w->columns, out, &rc)) {
        w->columns = false;
        kr_buf_append_str(out, "}\n");
        return rc;
    }
    out->n = start;
    v = sim_rev_tree(w->c, w->viewer.kind, rev);
    if (v == NULL)
        return KR_ENOMEM;
    rc = print_tree(w, type_names[type], v, out);
    json_object_put(v);
    return rc;
}

static bool matches(const struct watch *w, const struct sim_rev *rev)
{
    struct json_object *v;
    bool yes;

    if (rev->rv == 0)
        return false;
    if (w->selector.n == 0)
        return true;
    v = sim_rev_tree(w->c, w->viewer.kind, rev);
    yes = v != NULL && sim_selector_matches(&w->selector, v);
    json_object_put(v);
    return yes;
}

/* It left the selection: the state before, with the version of the event. */
static int print_left(struct watch *w, const struct sim_event *e, struct kr_buf *out)
{
    struct json_object *v = sim_rev_tree(w->c, w->viewer.kind, &e->prev);
    char rv[24];
    int rc;

    if (v == NULL)
        return KR_ENOMEM;
    snprintf(rv, sizeof rv, "%llu", (unsigned long long)e->rv);
    sim_json_set_str(sim_json_child(v, "metadata"), "resourceVersion", rv);
    rc = print_tree(w, "DELETED", v, out);
    json_object_put(v);
    return rc;
}

static int print_event(struct watch *w, const struct sim_event *e, struct kr_buf *out)
{
    bool before, after;

    if (e->kind != w->viewer.kind || strncmp(e->key, w->prefix, strlen(w->prefix)) != 0)
        return 0;
    before = matches(w, &e->prev);
    after = e->type != SIM_DELETED && matches(w, &e->now);
    if (after)
        return print_rev(w, before ? SIM_MODIFIED : SIM_ADDED, &e->now, out);
    if (!before)
        return 0;
    if (e->type == SIM_DELETED)
        return print_rev(w, SIM_DELETED, &e->now, out);
    return print_left(w, e, out);
}

static int print_bookmark(struct watch *w, bool initial_end, struct kr_buf *out)
{
    const struct sim_kind *k = &sim_kinds[w->viewer.kind];
    struct json_object *v = json_object_new_object(), *meta;
    char api[64], rv[24];
    int rc;

    sim_kind_api_version(k, api);
    snprintf(rv, sizeof rv, "%llu", (unsigned long long)w->rv);
    sim_json_set_str(v, "kind", k->kind);
    sim_json_set_str(v, "apiVersion", api);
    meta = sim_json_child(v, "metadata");
    sim_json_set_str(meta, "resourceVersion", rv);
    sim_json_set(meta, "creationTimestamp", NULL);
    if (initial_end)
        sim_json_set_str(sim_json_child(meta, "annotations"), "k8s.io/initial-events-end", "true");
    rc = print_tree(w, "BOOKMARK", v, out);
    json_object_put(v);
    return rc;
}

static int fill_initial(struct watch *w, struct kr_buf *out, size_t stop)
{
    while (w->initial_pos < w->initial.n && out->n < stop) {
        int rc = print_rev(w, SIM_ADDED, &w->initial.items[w->initial_pos].rev, out);

        if (rc != 0)
            return rc;
        w->initial_pos++;
    }
    if (w->initial_pos < w->initial.n)
        return 0;
    sim_snap_deinit(&w->initial);
    w->initial_pos = 0;
    if (!w->initial_end_due)
        return 0;
    w->initial_end_due = false;
    return print_bookmark(w, true, out);
}

static enum sim_fill watch_fill(struct sim_source *s, struct kr_buf *out)
{
    struct watch *w = KR_CONTAINER_OF(s, struct watch, source);
    size_t stop = out->n + CHUNK;
    const struct sim_event *e;

    if (w->error != NULL)
        return kr_buf_append_str(out, w->error) == 0 ? SIM_FILL_END : SIM_FILL_BREAK;
    if (fill_initial(w, out, stop) != 0)
        return SIM_FILL_BREAK;
    if (w->initial.n != 0)
        return SIM_FILL_MORE;
    if (w->rv < w->c->compacted) /* too slow */
        return SIM_FILL_END;
    while (out->n < stop && (e = sim_store_event_after(w->c, w->rv)) != NULL) {
        w->rv = e->rv;
        if (print_event(w, e, out) != 0)
            return SIM_FILL_BREAK;
    }
    if (out->n >= stop)
        return SIM_FILL_MORE;
    if (w->bookmark_due && print_bookmark(w, false, out) != 0)
        return SIM_FILL_BREAK;
    w->bookmark_due = false;
    return w->over ? SIM_FILL_END : SIM_FILL_WAIT;
}

static void watch_destroy(struct sim_source *s)
{
    struct watch *w = KR_CONTAINER_OF(s, struct watch, source);

    kr_timer_stop(w->c->sched, &w->timer);
    kr_list_remove(&w->listener.link);
    w->c->watches--;
    sim_snap_deinit(&w->initial);
    sim_selector_deinit(&w->selector);
    free(w->error);
    free(w);
}

static const struct sim_source_ops watch_ops = {watch_fill, watch_destroy};

static void on_news(struct sim_listener *l)
{
    sim_source_wake(&KR_CONTAINER_OF(l, struct watch, listener)->source);
}

/* The next of: a bookmark every minute, one shortly before the end, the end. */
static void arm(struct watch *w)
{
    int64_t left = w->deadline_ms - w->c->sched->now_ms, wait = left;

    if (w->bookmarks && left > LAST_BOOKMARK_MS)
        wait = left - LAST_BOOKMARK_MS < BOOKMARK_MS ? left - LAST_BOOKMARK_MS : BOOKMARK_MS;
    (void)kr_timer_start(w->c->sched, &w->timer, wait > 0 ? wait : 0);
}

static void on_timer(struct kr_timer *t)
{
    struct watch *w = KR_CONTAINER_OF(t, struct watch, timer);

    if (w->c->sched->now_ms >= w->deadline_ms)
        w->over = true;
    else
        w->bookmark_due = w->bookmarks;
    if (!w->over)
        arm(w);
    sim_source_wake(&w->source);
}

static int start(struct watch *w, struct sim_call *call, const struct sim_list_options *o)
{
    bool initial =
        sim_param(&call->q, "sendInitialEvents") != NULL ? o->initial_events : o->rv <= 0;
    int64_t seconds = sim_param_int(&call->q, "timeoutSeconds", 0);

    if (seconds <= 0)
        seconds = 1800 + (int64_t)(sim_random(w->c) % 1800);
    w->deadline_ms = w->c->sched->now_ms + seconds * 1000;
    w->bookmarks = sim_param_true(&call->q, "allowWatchBookmarks");
    w->initial_end_due = o->initial_events && w->bookmarks;
    w->rv = initial || o->rv < 0 ? w->c->rv : (uint64_t)o->rv;
    arm(w);
    if (initial)
        return sim_snap_take(w->c, w->viewer.kind, w->prefix, "", w->rv, &w->initial);
    if (w->rv < w->c->compacted) {
        char message[96];
        struct json_object *v;

        snprintf(message, sizeof message, "too old resource version: %llu (%llu)",
                 (unsigned long long)w->rv, (unsigned long long)w->c->compacted);
        v = sim_status_tree(&(struct sim_failure){.code = 410, .reason = "Expired"}, message);
        if (asprintf(&w->error, "{\"type\":\"ERROR\",\"object\":%s}\n",
                     json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN |
                                                           JSON_C_TO_STRING_NOSLASHESCAPE)) < 0)
            w->error = NULL;
        json_object_put(v);
        return w->error != NULL ? 0 : KR_ENOMEM;
    }
    return 0;
}

/* The initial events are a snapshot: what the selector does not want goes at once. */
static void filter_initial(struct watch *w)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->initial.n; i++) {
        struct sim_snap_item *item = &w->initial.items[i];

        if (matches(w, &item->rev)) {
            w->initial.items[kept++] = *item;
        } else {
            sim_rev_unref(&item->rev);
            free(item->key);
        }
    }
    w->initial.n = kept;
}

void sim_api_watch(struct sim_call *call)
{
    struct sim_list_options o;
    struct watch *w;

    if (sim_list_options_read(call, true, &o) != 0) {
        sim_list_options_deinit(&o);
        return;
    }
    w = calloc(1, sizeof *w);
    if (w == NULL) {
        sim_list_options_deinit(&o);
        sim_fail_no_memory(call->out);
        return;
    }
    w->source.ops = &watch_ops;
    w->c = call->c;
    w->selector = o.selector; /* now ours */
    w->columns = true;
    w->listener = (struct sim_listener){.kind = call->route.kind, .wake = on_news};
    sim_viewer_init(&w->viewer, call);
    snprintf(w->prefix, sizeof w->prefix, "%s", call->route.prefix);
    kr_timer_init(&w->timer, on_timer);
    kr_list_append(&call->c->listeners, &w->listener.link);
    call->c->watches++;
    if (start(w, call, &o) != 0) {
        watch_destroy(&w->source);
        sim_fail_no_memory(call->out);
        return;
    }
    filter_initial(w);
    call->out->content_type = "application/json";
    call->out->source = &w->source;
}
