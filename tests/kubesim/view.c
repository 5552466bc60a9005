/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"

#include <stdio.h>
#include <strings.h>

#include "base/err.h"

/* The next comma separated item of *rest, without spaces around it. */
static struct kr_bytes next_item(struct kr_bytes *rest)
{
    size_t end = kr_bytes_find(*rest, ',');
    struct kr_bytes item = {rest->p, end};

    *rest = kr_bytes_skip(*rest, end < rest->n ? end + 1 : end);
    while (item.n != 0 && item.p[0] == ' ')
        item = kr_bytes_skip(item, 1);
    while (item.n != 0 && item.p[item.n - 1] == ' ')
        item.n--;
    return item;
}

/* The value of a media type's parameter; .n 0: none. */
static struct kr_bytes param_of(struct kr_bytes item, const char *name)
{
    size_t n = strlen(name);

    while (item.n != 0) {
        size_t end = kr_bytes_find(item, ';');
        struct kr_bytes one = {item.p, end};

        while (one.n != 0 && one.p[0] == ' ')
            one = kr_bytes_skip(one, 1);
        if (one.n > n && one.p[n] == '=' && memcmp(one.p, name, n) == 0)
            return kr_bytes_skip(one, n + 1);
        item = kr_bytes_skip(item, end < item.n ? end + 1 : end);
    }
    return kr_bytes_of(NULL, 0);
}

static struct kr_bytes media_of(struct kr_bytes item)
{
    return kr_bytes_of(item.p, kr_bytes_find(item, ';'));
}

static bool is_json(struct kr_bytes media)
{
    return kr_bytes_is(media, "application/json") || kr_bytes_is(media, "*/*") ||
           kr_bytes_is(media, "application/*");
}

bool sim_accepts(const struct sim_call *call, const char *media)
{
    struct kr_bytes rest = kr_head_get(call->req->head, KR_LIT("accept"));

    while (rest.n != 0)
        if (kr_bytes_is(media_of(next_item(&rest)), media))
            return true;
    return false;
}

/* Whether this item of Accept can be served, and as what. */
static bool try_item(struct kr_bytes item, enum sim_view *view)
{
    struct kr_bytes as = param_of(item, "as"), group = param_of(item, "g"),
                    version = param_of(item, "v");

    *view = SIM_VIEW_OBJECT;
    if (as.n == 0 && kr_bytes_is(media_of(item), "application/yaml"))
        return true;
    if (!is_json(media_of(item)))
        return false;
    if (as.n == 0)
        return true;
    if (!kr_bytes_is(group, "meta.k8s.io") ||
        (!kr_bytes_is(version, "v1") && !kr_bytes_is(version, "v1beta1")))
        return false;
    *view = kr_bytes_is(as, "Table") ? SIM_VIEW_TABLE : SIM_VIEW_META;
    return kr_bytes_is(as, "Table") || kr_bytes_is(as, "PartialObjectMetadata") ||
           kr_bytes_is(as, "PartialObjectMetadataList");
}

/* PartialObjectMetadata is of one object (and of watches), its List of plain lists. */
static bool fits(struct sim_call *call, struct kr_bytes as)
{
    const struct sim_kind *k = sim_call_kind(call);
    bool list = call->route.name[0] == '\0' && kr_bytes_is(call->req->method, "GET") &&
                !call->route.watch_prefix && !sim_param_true(&call->q, "watch");
    const char *group = k->group[0] != '\0' ? k->group : "core";

    if (!kr_bytes_starts(as, KR_LIT("PartialObjectMetadata")) ||
        list == kr_bytes_is(as, "PartialObjectMetadataList"))
        return true;
    sim_fail(call->out, &(struct sim_failure){.code = 406, .reason = "NotAcceptable"},
             "you requested %.*s, but the requested object is %s list (*%.*s.%s%s)", (int)as.n,
             (const char *)as.p, list ? "a" : "not a", (int)strcspn(group, "."), group, k->kind,
             list ? "List" : "");
    return false;
}

bool sim_negotiate(struct sim_call *call)
{
    struct kr_bytes rest = kr_head_get(call->req->head, KR_LIT("accept"));

    call->view = SIM_VIEW_OBJECT;
    if (rest.n == 0)
        return true;
    while (rest.n != 0) {
        struct kr_bytes item = next_item(&rest);

        if (!try_item(item, &call->view))
            continue;
        if (kr_bytes_is(media_of(item), "application/yaml")) /* JSON is YAML, too */
            call->out->content_type = "application/yaml";
        return fits(call, param_of(item, "as"));
    }
    sim_fail(call->out,
             &(struct sim_failure){.code = 406, .reason = "NotAcceptable", .empty_details = true},
             "406: Not Acceptable\n\nAvailable representations: application/json, "
             "application/yaml");
    return false;
}

void sim_viewer_init(struct sim_viewer *v, const struct sim_call *call)
{
    const char *include = sim_param_or(&call->q, "includeObject", "Metadata");

    *v = (struct sim_viewer){call->c, call->route.kind, call->view, SIM_INCLUDE_METADATA};
    if (strcmp(include, "None") == 0)
        v->include = SIM_INCLUDE_NONE;
    else if (strcmp(include, "Object") == 0)
        v->include = SIM_INCLUDE_OBJECT;
}

static int print_meta(struct json_object *object, struct kr_buf *out)
{
    struct json_object *meta = sim_json_get(object, "metadata");
    int rc;

    kr_buf_append_str(out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                           "\"metadata\":");
    rc = meta != NULL ? sim_json_print(meta, out) : kr_buf_append_str(out, "{}");
    kr_buf_append_str(out, "}");
    return rc;
}

static int print_row(const struct sim_viewer *v, struct json_object *object, struct kr_buf *out)
{
    struct json_object *cells = sim_table_cells(v->kind, object, v->c->sched->now_wall_ms);
    int rc;

    kr_buf_append_str(out, "{\"cells\":");
    rc = sim_json_print(cells, out);
    json_object_put(cells);
    kr_buf_append_str(out, ",\"object\":");
    if (rc != 0)
        return rc;
    if (v->include == SIM_INCLUDE_NONE)
        rc = kr_buf_append_str(out, "null");
    else if (v->include == SIM_INCLUDE_OBJECT)
        rc = sim_json_print(object, out);
    else
        rc = print_meta(object, out);
    kr_buf_append_str(out, "}");
    return rc;
}

/* Whether the row of a generated object needs no tree: with the whole object or none. */
static bool is_plain_row(const struct sim_viewer *v, const struct sim_rev *rev)
{
    return v->view == SIM_VIEW_TABLE && rev->blob == NULL && v->include != SIM_INCLUDE_METADATA;
}

/* False: nothing was appended, take the way over the tree. */
static bool print_plain_row(const struct sim_viewer *v, const struct sim_rev *rev,
                            struct kr_buf *out, int *rc)
{
    size_t start = out->n;

    kr_buf_append_str(out, "{\"cells\":");
    if (!sim_gen_cells(&v->c->world, v->kind, rev->gen, v->c->sched->now_wall_ms, out)) {
        out->n = start;
        return false;
    }
    kr_buf_append_str(out, ",\"object\":");
    *rc = v->include == SIM_INCLUDE_NONE ? kr_buf_append_str(out, "null")
                                         : sim_rev_text(v->c, v->kind, rev, out);
    kr_buf_append_str(out, "}");
    return true;
}

static int open_table(const struct sim_viewer *v, const char *rv, bool columns, struct kr_buf *out)
{
    int rc = kr_buf_printf(out,
                           "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
                           "\"resourceVersion\":\"%s\"},\"columnDefinitions\":",
                           rv);

    if (rc == 0)
        rc = columns ? sim_table_columns(v->kind, out) : kr_buf_append_str(out, "null");
    kr_buf_append_str(out, ",\"rows\":[");
    return rc;
}

bool sim_view_plain_event(const struct sim_viewer *v, const struct sim_rev *rev, bool columns,
                          struct kr_buf *out, int *rc)
{
    size_t start = out->n;
    char text[24];

    if (!is_plain_row(v, rev))
        return false;
    snprintf(text, sizeof text, "%llu", (unsigned long long)rev->rv);
    *rc = open_table(v, text, columns, out);
    if (*rc == 0 && !print_plain_row(v, rev, out, rc)) {
        out->n = start;
        return false;
    }
    kr_buf_append_str(out, "]}");
    return true;
}

static int print_table(const struct sim_viewer *v, struct json_object *object, bool columns,
                       struct kr_buf *out)
{
    int rc = open_table(v, sim_json_str(object, "metadata.resourceVersion"), columns, out);

    if (rc == 0)
        rc = print_row(v, object, out);
    kr_buf_append_str(out, "]}");
    return rc;
}

int sim_view_event(const struct sim_viewer *v, struct json_object *object, bool columns,
                   struct kr_buf *out)
{
    if (v->view == SIM_VIEW_TABLE)
        return print_table(v, object, columns, out);
    if (v->view == SIM_VIEW_META)
        return print_meta(object, out);
    return sim_json_print(object, out);
}

int sim_view_one(const struct sim_viewer *v, struct json_object *object, struct kr_buf *out)
{
    int rc = sim_view_event(v, object, true, out);

    return rc != 0 ? rc : kr_buf_append_str(out, "\n");
}

int sim_view_list_open(const struct sim_viewer *v, const char *metadata, struct kr_buf *out)
{
    const struct sim_kind *k = &sim_kinds[v->kind];
    char api[64];
    int rc;

    sim_kind_api_version(k, api);
    if (v->view == SIM_VIEW_TABLE) {
        rc = kr_buf_printf(out,
                           "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":%s,"
                           "\"columnDefinitions\":",
                           metadata);
        if (rc == 0)
            rc = sim_table_columns(v->kind, out);
        return rc != 0 ? rc : kr_buf_append_str(out, ",\"rows\":[");
    }
    if (v->view == SIM_VIEW_META)
        return kr_buf_printf(out,
                             "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":"
                             "\"meta.k8s.io/v1\",\"metadata\":%s,\"items\":[",
                             metadata);
    return kr_buf_printf(out,
                         "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":%s,\"items\":[",
                         k->kind, api, metadata);
}

/* Items of a typed list carry no kind and apiVersion of their own; stored text starts with them. */
static int print_item(const struct sim_viewer *v, const struct sim_rev *rev, struct kr_buf *out)
{
    const struct sim_kind *k = &sim_kinds[v->kind];
    size_t start = out->n, head_n;
    char head[192], api[64];
    int rc = sim_rev_text(v->c, v->kind, rev, out);

    sim_kind_api_version(k, api);
    head_n = (size_t)snprintf(head, sizeof head, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",", k->kind,
                              api);
    if (rc != 0 || out->n - start < head_n || memcmp(out->p + start, head, head_n) != 0)
        return rc;
    memmove(out->p + start + 1, out->p + start + head_n, out->n - start - head_n);
    out->n -= head_n - 1;
    return 0;
}

int sim_view_list_item(const struct sim_viewer *v, const struct sim_rev *rev, struct kr_buf *out)
{
    struct json_object *object;
    int rc = 0;

    if (v->view == SIM_VIEW_OBJECT)
        return print_item(v, rev, out);
    if (is_plain_row(v, rev) && print_plain_row(v, rev, out, &rc))
        return rc;
    object = sim_rev_tree(v->c, v->kind, rev);
    if (object == NULL)
        return KR_ENOMEM;
    rc = v->view == SIM_VIEW_TABLE ? print_row(v, object, out) : print_meta(object, out);
    json_object_put(object);
    return rc;
}

int sim_view_list_close(const struct sim_viewer *v, struct kr_buf *out)
{
    (void)v;
    return kr_buf_append_str(out, "]}\n");
}
