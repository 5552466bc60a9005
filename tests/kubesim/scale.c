/* SPDX-License-Identifier: Apache-2.0 */
/* The scale subresource: a small object of its own that stands for spec.replicas. */
#include <stdio.h>

#include "base/err.h"
#include "object.h"

/* matchLabels as the text of a selector. */
static void selector_text(struct json_object *v, char out[256])
{
    struct json_object *labels = sim_json_at(v, "spec.selector.matchLabels");
    size_t n = 0;

    out[0] = '\0';
    if (!sim_json_is_object(labels))
        return;
    json_object_object_foreach(labels, key, value)
    {
        if (n < 200)
            n += (size_t)snprintf(out + n, 256 - n, "%s%.60s=%.60s", n != 0 ? "," : "", key,
                                  json_object_get_string(value));
        n = n > 255 ? 255 : n;
    }
}

static struct json_object *scale_of(struct json_object *v)
{
    static const char *const kept[] = {"name", "namespace", "uid", "resourceVersion",
                                       "creationTimestamp"};
    struct json_object *s = json_object_new_object(), *meta, *status;
    char selector[256];

    selector_text(v, selector);
    sim_json_set_str(s, "kind", "Scale");
    sim_json_set_str(s, "apiVersion", "autoscaling/v1");
    meta = sim_json_child(s, "metadata");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        sim_json_set_str(meta, kept[i], sim_json_str(sim_json_get(v, "metadata"), kept[i]));
    sim_json_set_int(sim_json_child(s, "spec"), "replicas", sim_json_int(v, "spec.replicas", 0));
    status = sim_json_child(s, "status");
    sim_json_set_int(status, "replicas", sim_json_int(v, "status.replicas", 0));
    sim_json_set_str(status, "selector", selector);
    return s;
}

/* The scale after the write that the call asks for; NULL and the answer. */
static struct json_object *changed_scale(struct sim_call *call, struct json_object *scale)
{
    struct kr_bytes type = kr_head_get(call->req->head, KR_LIT("content-type"));
    struct json_object *body = sim_json_parse(call->req->body), *next;
    char why[256];

    if (body == NULL) {
        sim_fail_bad_request(call->out, "the body of the request is not one JSON value");
        return NULL;
    }
    if (kr_bytes_is(call->req->method, "PUT"))
        return body;
    next = sim_json_copy(scale);
    if (kr_bytes_starts(type, KR_LIT("application/json-patch+json"))) {
        if (sim_patch_json(&next, body, why) != 0) {
            sim_fail_bad_request(call->out, "%s", why);
            json_object_put(next);
            next = NULL;
        }
    } else {
        next = sim_patch_merge(next, body);
    }
    json_object_put(body);
    return next;
}

/* Takes `scale`. */
static void write_scale(struct sim_call *call, struct json_object *old, struct json_object *scale)
{
    struct json_object *v = sim_json_copy(old);
    const char *rv = sim_json_str(scale, "metadata.resourceVersion");

    sim_json_set_int(sim_json_child(v, "spec"), "replicas",
                     sim_json_int(scale, "spec.replicas", 0));
    if (rv[0] != '\0')
        sim_json_set_str(sim_json_child(v, "metadata"), "resourceVersion", rv);
    json_object_put(scale);
    call->route.sub[0] = '\0'; /* from here on it is a write to the object */
    sim_object_replace(call, old, v, SIM_MANAGE_UPDATE);
}

void sim_api_scale(struct sim_call *call)
{
    struct sim_obj *o = sim_store_get(call->c, call->route.kind, call->route.key);
    bool read = kr_bytes_is(call->req->method, "GET") || kr_bytes_is(call->req->method, "HEAD");
    struct json_object *v, *scale;

    if (o == NULL) {
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
        return;
    }
    v = sim_rev_tree(call->c, call->route.kind, &o->rev);
    scale = scale_of(v);
    if (!read) {
        struct json_object *next = changed_scale(call, scale);

        json_object_put(scale);
        scale = NULL;
        if (next != NULL)
            write_scale(call, v, next);
        json_object_put(v);
        o = sim_store_get(call->c, call->route.kind, call->route.key);
        if (next == NULL || call->out->status >= 300 || o == NULL)
            return;
        v = sim_rev_tree(call->c, call->route.kind, &o->rev);
        scale = scale_of(v);
    }
    sim_answer_json(call, 200, scale);
    json_object_put(scale);
    json_object_put(v);
}
