/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"

#include <stdio.h>

#include "base/err.h"
#include "faults.h"
#include "view.h"

const struct sim_kind *sim_call_kind(const struct sim_call *call)
{
    return &sim_kinds[call->route.kind];
}

/* ---- answers */

void sim_answer_json(struct sim_call *call, int status, struct json_object *v)
{
    call->out->status = status;
    call->out->body.n = 0;
    if (sim_json_print(v, &call->out->body) != 0 || kr_buf_append_str(&call->out->body, "\n") != 0)
        sim_fail_no_memory(call->out);
}

void sim_answer_tree(struct sim_call *call, int status, struct json_object *v)
{
    struct sim_viewer viewer;

    sim_viewer_init(&viewer, call);
    call->out->status = status;
    if (sim_view_one(&viewer, v, &call->out->body) != 0)
        sim_fail_no_memory(call->out);
}

void sim_answer_rev(struct sim_call *call, int status, const struct sim_rev *rev)
{
    struct json_object *v;

    if (call->view == SIM_VIEW_OBJECT) { /* text as it is stored */
        call->out->status = status;
        if (sim_rev_text(call->c, call->route.kind, rev, &call->out->body) != 0 ||
            kr_buf_append_str(&call->out->body, "\n") != 0)
            sim_fail_no_memory(call->out);
        return;
    }
    v = sim_rev_tree(call->c, call->route.kind, rev);
    if (v == NULL)
        sim_fail_no_memory(call->out);
    else
        sim_answer_tree(call, status, v);
    json_object_put(v);
}

void sim_api_get(struct sim_call *call)
{
    struct sim_obj *o = sim_store_get(call->c, call->route.kind, call->route.key);

    if (o == NULL)
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
    else
        sim_answer_rev(call, 200, &o->rev);
}

/* ---- the way there */

struct segments {
    char text[8][260];
    size_t n;
};

/* The path is decoded first and then cut, as the API server does: %2F is a slash. */
static int split(struct kr_bytes path, struct segments *s)
{
    char whole[2048];
    const char *p = whole;

    s->n = 0;
    if (sim_decode(path, false, whole, sizeof whole) != 0)
        return KR_EINVAL;
    for (p += strspn(p, "/"); *p != '\0'; p += *p == '/') {
        size_t n = strcspn(p, "/");

        if (s->n == 8 || n >= sizeof s->text[0])
            return KR_EINVAL;
        memcpy(s->text[s->n], p, n);
        s->text[s->n++][n] = '\0';
        p += n;
    }
    return 0;
}

void sim_route_key(struct sim_route *r)
{
    snprintf(r->prefix, sizeof r->prefix, "%.63s%s", r->ns, r->ns[0] != '\0' ? "/" : "");
    snprintf(r->key, sizeof r->key, "%.64s%s", r->prefix, r->name);
}

static int find_resource(const struct segments *s, size_t at, struct sim_route *r)
{
    bool core = strcmp(s->text[0], "api") == 0;
    const char *group = core ? "" : s->text[1];
    const char *version = s->text[core ? 1 : 2];

    r->kind = sim_kind_find(kr_bytes_str(group), kr_bytes_str(version), kr_bytes_str(s->text[at]));
    return r->kind < 0 ? KR_ENOENT : 0;
}

/* Whether group and version of a path are ours: KR_ENOENT is no API at all. */
static int check_group(const struct segments *s, size_t *at)
{
    bool core = strcmp(s->text[0], "api") == 0;
    struct kr_bytes group, version;

    if (s->n < 3 || (!core && (strcmp(s->text[0], "apis") != 0 || s->n < 4)))
        return KR_ENOENT;
    *at = core ? 2 : 3;
    group = kr_bytes_str(core ? "" : s->text[1]);
    version = kr_bytes_str(s->text[*at - 1]);
    return sim_group_exists(group, &version) ? 0 : KR_ENOENT;
}

/* 0 if the path is one of a resource that exists; KR_EINVAL: of none in a group that does. */
static int route(struct kr_bytes path, struct sim_route *r)
{
    struct segments s;
    size_t at;

    *r = (struct sim_route){.kind = -1};
    if (split(path, &s) != 0 || check_group(&s, &at) != 0)
        return KR_ENOENT;
    r->watch_prefix = strcmp(s.text[at], "watch") == 0 && s.n > at + 1;
    at += r->watch_prefix;
    if (strcmp(s.text[at], "namespaces") == 0 && s.n > at + 2 &&
        strcmp(s.text[at + 2], "status") != 0 && strcmp(s.text[at + 2], "finalize") != 0) {
        snprintf(r->ns, sizeof r->ns, "%s", s.text[at + 1]);
        at += 2;
    }
    if (s.n <= at || find_resource(&s, at, r) != 0 || s.n > at + 3)
        return KR_EINVAL;
    if (s.n > at + 1)
        snprintf(r->name, sizeof r->name, "%s", s.text[at + 1]);
    if (s.n > at + 2)
        snprintf(r->sub, sizeof r->sub, "%.63s", s.text[at + 2]);
    if (r->ns[0] != '\0' && (sim_kinds[r->kind].flags & SIM_NAMESPACED) == 0)
        return KR_EINVAL;
    sim_route_key(r);
    return 0;
}

static bool is_method(const struct sim_call *call, const char *method)
{
    return kr_bytes_is(call->req->method, method);
}

static bool is_read(const struct sim_call *call)
{
    return is_method(call, "GET"); /* HEAD is answered 405 by the API server too */
}

static bool needs_upgrade(const char *sub)
{
    return strcmp(sub, "exec") == 0 || strcmp(sub, "attach") == 0 ||
           strcmp(sub, "portforward") == 0 || strcmp(sub, "proxy") == 0;
}

/* There is nobody to talk to in a simulated pod. */
static void fail_upgrade(struct sim_call *call)
{
    struct sim_obj *o = sim_store_get(call->c, call->route.kind, call->route.key);
    struct json_object *v;

    if (o == NULL) {
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
        return;
    }
    v = sim_rev_tree(call->c, call->route.kind, &o->rev);
    if (call->route.kind == SIM_KIND_POD && sim_json_str(v, "spec.nodeName")[0] == '\0')
        sim_fail_bad_request(call->out, "pod %s does not have a host assigned", call->route.name);
    else
        sim_fail_bad_request(call->out, "Upgrade request required");
    json_object_put(v);
}

/* Subresources with a handler of their own. False: treat it as a write to the object. */
static bool dispatch_sub(struct sim_call *call)
{
    const char *sub = call->route.sub, *plural = sim_call_kind(call)->plural;
    unsigned flags = sim_call_kind(call)->flags;
    bool pod = strcmp(plural, "pods") == 0;

    if (strcmp(sub, "scale") == 0 && (flags & SIM_SCALE) != 0)
        sim_api_scale(call);
    else if (strcmp(sub, "log") == 0 && pod && is_read(call))
        sim_api_log(call);
    else if (strcmp(sub, "eviction") == 0 && pod && is_method(call, "POST"))
        sim_api_delete(call);
    else if (strcmp(sub, "token") == 0 && strcmp(plural, "serviceaccounts") == 0)
        sim_api_token(call);
    else if (needs_upgrade(sub))
        fail_upgrade(call);
    else if (!(strcmp(sub, "status") == 0 && (flags & SIM_STATUS) != 0) &&
             !(strcmp(sub, "finalize") == 0 && strcmp(plural, "namespaces") == 0) &&
             !(strcmp(sub, "ephemeralcontainers") == 0 && pod))
        sim_fail_no_resource(call->out);
    else
        return false;
    return true;
}

static void dispatch_object(struct sim_call *call)
{
    if (call->route.sub[0] != '\0' && dispatch_sub(call))
        return;
    if (is_read(call) && call->route.watch_prefix)
        sim_api_watch(call); /* ?watch on one name is a plain GET, only the old path watches */
    else if (is_read(call))
        sim_api_get(call);
    else if (is_method(call, "PUT"))
        sim_api_update(call);
    else if (is_method(call, "PATCH"))
        sim_api_patch(call);
    else if (is_method(call, "DELETE") && call->route.sub[0] == '\0')
        sim_api_delete(call);
    else
        sim_fail_method(call->out);
}

static void dispatch_collection(struct sim_call *call)
{
    bool review = (sim_call_kind(call)->flags & SIM_CREATE_ONLY) != 0;

    if (review && is_method(call, "POST"))
        sim_api_review(call);
    else if (review)
        sim_fail_method(call->out);
    else if (is_read(call) && (sim_param_true(&call->q, "watch") || call->route.watch_prefix))
        sim_api_watch(call);
    else if (is_read(call))
        sim_api_list(call);
    else if (is_method(call, "POST"))
        sim_api_create(call);
    else if (is_method(call, "DELETE"))
        sim_api_delete_collection(call);
    else
        sim_fail_method(call->out);
}

static void dispatch(struct sim_call *call, struct kr_bytes path)
{
    int rc;

    if (sim_api_misc(call, path) || sim_api_discovery(call, path) || sim_api_openapi(call, path))
        return;
    rc = route(path, &call->route);
    if (rc != 0) {
        if (rc == KR_EINVAL)
            sim_fail_no_resource(call->out);
        else
            sim_fail_no_path(call->out);
        return;
    }
    if (!sim_negotiate(call) || !sim_check_params(call))
        return;
    if (call->route.name[0] != '\0')
        dispatch_object(call);
    else
        dispatch_collection(call);
}

void sim_handle(struct sim_cluster *c, const struct sim_request *req, struct sim_response *out)
{
    struct sim_call call = {.c = c, .req = req, .out = out, .route.kind = -1};
    size_t end = kr_bytes_find(req->target, '?');
    struct kr_bytes path = {req->target.p, end};
    struct kr_bytes query =
        end < req->target.n ? kr_bytes_skip(req->target, end + 1) : kr_bytes_of(NULL, 0);

    c->requests++;
    if (sim_api_identify(&call) == 0) {
        sim_seen_add(c, req, call.user);
        if (sim_params_parse(&call.q, query) != 0)
            sim_fail_bad_request(out, "the query of the request cannot be read");
        else
            dispatch(&call, path);
        sim_params_deinit(&call.q);
    }
    json_object_put(call.user);
}
