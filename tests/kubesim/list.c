/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "token.h"

#define CHUNK (64u * 1024)

struct list_source { /* the items that are still to be sent */
    struct sim_source source;
    struct sim_viewer viewer;
    struct sim_snap snap;
    size_t pos;
};

static enum sim_fill list_fill(struct sim_source *s, struct kr_buf *out)
{
    struct list_source *l = KR_CONTAINER_OF(s, struct list_source, source);
    size_t start = out->n;

    while (l->pos < l->snap.n && out->n - start < CHUNK) {
        if (l->pos != 0)
            kr_buf_append_str(out, ",");
        if (sim_view_list_item(&l->viewer, &l->snap.items[l->pos].rev, out) != 0)
            return SIM_FILL_BREAK;
        l->pos++;
    }
    if (l->pos < l->snap.n)
        return SIM_FILL_MORE;
    return sim_view_list_close(&l->viewer, out) == 0 ? SIM_FILL_END : SIM_FILL_BREAK;
}

static void list_destroy(struct sim_source *s)
{
    struct list_source *l = KR_CONTAINER_OF(s, struct list_source, source);

    sim_snap_deinit(&l->snap);
    free(l);
}

static const struct sim_source_ops list_ops = {list_fill, list_destroy};

/* ---- which version, from which key */

struct span {
    uint64_t at;
    char from[SIM_KEY_MAX + 2];
};

static void fail_too_large(struct sim_call *call, uint64_t rv)
{
    sim_fail(call->out,
             &(struct sim_failure){.code = 504,
                                   .reason = "Timeout",
                                   .cause_reason = "ResourceVersionTooLarge",
                                   .cause_message = "Too large resource version",
                                   .retry_after = 1},
             "Timeout: Too large resource version: %llu, current: %llu", (unsigned long long)rv,
             (unsigned long long)call->c->rv);
}

static void fail_continue_expired(struct sim_call *call, const char *key)
{
    char token[SIM_TOKEN_MAX];
    struct json_object *v = sim_status_tree(
        &(struct sim_failure){.code = 410, .reason = "Expired"},
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted "
        "between the time the first chunk was returned and now may show up in the list.");

    sim_token_write(-1, key, token);
    sim_json_set_str(sim_json_child(v, "metadata"), "continue", token);
    sim_answer_json(call, 410, v);
    json_object_put(v);
}

static int read_continue(struct sim_call *call, const struct sim_list_options *o, const char *token,
                         struct span *span)
{
    char key[SIM_KEY_MAX];
    int64_t rv;

    if (o->rv > 0) {
        sim_fail_bad_request(call->out,
                             "specifying resource version is not allowed when using continue");
        return KR_EINVAL;
    }
    if (sim_token_read(token, &rv, key) != 0) {
        sim_fail_bad_request(
            call->out, "invalid continue token: continue key is not valid: it cannot be decoded");
        return KR_EINVAL;
    }
    if (rv >= 0 && (uint64_t)rv < call->c->compacted) {
        fail_continue_expired(call, key);
        return KR_EINVAL;
    }
    span->at = rv < 0 || (uint64_t)rv > call->c->rv ? call->c->rv : (uint64_t)rv;
    /* Behind the last key: no key holds a byte below \002. */
    snprintf(span->from, sizeof span->from, "%s\001", key);
    return 0;
}

static int find_span(struct sim_call *call, struct sim_list_options *o, struct span *span)
{
    const char *token = sim_param_or(&call->q, "continue", "");
    bool exact =
        strcmp(o->match, "Exact") == 0 || (o->match[0] == '\0' && o->limit > 0 && o->rv > 0);

    span->at = call->c->rv;
    span->from[0] = '\0';
    if (token[0] != '\0')
        return read_continue(call, o, token, span);
    if (o->rv == 0) /* served from the watch cache, which knows no pages */
        o->limit = 0;
    if (o->rv > 0 && (uint64_t)o->rv > call->c->rv) {
        fail_too_large(call, (uint64_t)o->rv);
        return KR_EINVAL;
    }
    if (exact && (uint64_t)o->rv < call->c->compacted) {
        char message[128];

        snprintf(message, sizeof message, "The resourceVersion for the provided list is too old.");
        sim_fail_expired(call->out, message);
        return KR_EINVAL;
    }
    if (exact)
        span->at = (uint64_t)o->rv;
    return 0;
}

/* ---- the list itself */

/* Drops what the selector does not want and what is beyond the limit; *left counts the latter. */
static int cut(const struct sim_call *call, const struct sim_list_options *o, struct sim_snap *snap,
               size_t *left)
{
    size_t kept = 0, limit = o->limit > 0 ? (size_t)o->limit : SIZE_MAX;

    *left = 0;
    for (size_t i = 0; i < snap->n; i++) {
        struct sim_snap_item *item = &snap->items[i];
        struct json_object *v = NULL;
        bool wanted = o->selector.n == 0;

        if (!wanted) {
            v = sim_rev_tree(call->c, call->route.kind, &item->rev);
            if (v == NULL)
                return KR_ENOMEM;
            wanted = sim_selector_matches(&o->selector, v);
            json_object_put(v);
        }
        if (wanted && kept < limit) {
            struct sim_snap_item swap = snap->items[kept];

            snap->items[kept++] = *item;
            snap->items[i] = swap;
        } else if (wanted) {
            ++*left;
        }
    }
    while (snap->n > kept) {
        struct sim_snap_item *item = &snap->items[--snap->n];

        sim_rev_unref(&item->rev);
        free(item->key);
    }
    return 0;
}

static int open_list(const struct sim_call *call, const struct sim_list_options *o,
                     const struct span *span, struct list_source *l, size_t left)
{
    char metadata[SIM_TOKEN_MAX + 128], token[SIM_TOKEN_MAX];
    int n = snprintf(metadata, sizeof metadata, "{\"resourceVersion\":\"%llu\"",
                     (unsigned long long)span->at);

    if (left != 0) {
        sim_token_write((int64_t)span->at, l->snap.items[l->snap.n - 1].key, token);
        n += snprintf(metadata + n, sizeof metadata - (size_t)n, ",\"continue\":\"%s\"", token);
        if (o->selector.n == 0)
            n += snprintf(metadata + n, sizeof metadata - (size_t)n, ",\"remainingItemCount\":%zu",
                          left);
    }
    snprintf(metadata + n, sizeof metadata - (size_t)n, "}");
    return sim_view_list_open(&l->viewer, metadata, &call->out->body);
}

static void answer_list(struct sim_call *call, const struct sim_list_options *o,
                        const struct span *span)
{
    struct list_source *l = calloc(1, sizeof *l);
    enum sim_fill state;
    size_t left;

    if (l == NULL) {
        sim_fail_no_memory(call->out);
        return;
    }
    l->source.ops = &list_ops;
    sim_viewer_init(&l->viewer, call);
    if (sim_snap_take(call->c, call->route.kind, call->route.prefix, span->from, span->at,
                      &l->snap) != 0 ||
        cut(call, o, &l->snap, &left) != 0 || open_list(call, o, span, l, left) != 0) {
        list_destroy(&l->source);
        sim_fail_no_memory(call->out);
        return;
    }
    state = list_fill(&l->source, &call->out->body);
    if (state == SIM_FILL_MORE) {
        call->out->source = &l->source;
        return;
    }
    list_destroy(&l->source);
    if (state != SIM_FILL_END)
        sim_fail_no_memory(call->out);
}

void sim_api_list(struct sim_call *call)
{
    struct sim_list_options o;
    struct span span;

    if (sim_list_options_read(call, false, &o) == 0 && find_span(call, &o, &span) == 0)
        answer_list(call, &o, &span);
    sim_list_options_deinit(&o);
}
