/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews: questions that are answered and not stored. The simulator allows everything, and says
 * so in the reason. Also the token of a service account, which is a word and no credential. */
#include <stdio.h>

#include "base/err.h"
#include "object.h"
#include "proto.h"

static const char reason[] = "the simulator allows everything";

/* Typed clients send reviews in protobuf, whatever they accept as an answer: "k8s\0", then
 * runtime.Unknown, whose field 2 is the object; field 2 of that is the spec. */
static struct kr_bytes proto_spec(struct kr_bytes body)
{
    if (!kr_bytes_starts(body, kr_bytes_of("k8s\0", 4)))
        return kr_bytes_of(NULL, 0);
    return sim_proto_find(sim_proto_find(kr_bytes_skip(body, 4), 2), 2);
}

static void copy_text(struct json_object *to, const char *key, struct kr_bytes message,
                      unsigned field)
{
    struct kr_bytes text = sim_proto_find(message, field);

    if (text.n != 0)
        sim_json_set(to, key, json_object_new_string_len((const char *)text.p, (int)text.n));
}

/* The attributes of authorization/v1 generated.proto. */
static struct json_object *access_spec(struct kr_bytes spec)
{
    static const char *const names[] = {"namespace", "verb",        "group", "version",
                                        "resource",  "subresource", "name"};
    struct kr_bytes resource = sim_proto_find(spec, 1), path = sim_proto_find(spec, 2);
    struct json_object *v = json_object_new_object();

    for (unsigned i = 0; resource.p != NULL && i < 7; i++)
        copy_text(sim_json_child(v, "resourceAttributes"), names[i], resource, i + 1);
    if (path.p != NULL) {
        copy_text(sim_json_child(v, "nonResourceAttributes"), "path", path, 1);
        copy_text(sim_json_child(v, "nonResourceAttributes"), "verb", path, 2);
    }
    return v;
}

static struct json_object *read_review(struct sim_call *call)
{
    struct json_object *v;

    if (!kr_bytes_starts(call->req->body, KR_LIT("k8s"))) {
        v = sim_object_read(call);
        if (v != NULL && sim_object_check(call, v) == 0)
            return v;
        json_object_put(v);
        return NULL;
    }
    v = json_object_new_object();
    sim_json_set(v, "spec", access_spec(proto_spec(call->req->body)));
    if (sim_object_check(call, v) == 0)
        return v;
    json_object_put(v);
    return NULL;
}

static void answer_rules(struct json_object *status)
{
    struct json_object *all = sim_json_parse(
        KR_LIT("{\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]"
               "}],\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}],"
               "\"incomplete\":false}"));

    json_object_object_foreach(all, key, value)
    {
        sim_json_set(status, key, json_object_get(value));
    }
    json_object_put(all);
}

void sim_api_review(struct sim_call *call)
{
    const char *kind = sim_call_kind(call)->kind;
    struct json_object *v = read_review(call), *status;

    if (v == NULL)
        return;
    sim_json_set(sim_json_child(v, "metadata"), "creationTimestamp", NULL);
    status = sim_json_child(v, "status");
    if (strcmp(kind, "SelfSubjectReview") == 0) {
        json_object_object_del(v, "spec");
        sim_json_set(status, "userInfo", json_object_get(call->user));
    } else if (strcmp(kind, "SelfSubjectRulesReview") == 0) {
        answer_rules(status);
    } else if (strcmp(kind, "TokenReview") == 0) {
        sim_json_set(status, "authenticated", json_object_new_boolean(false));
        sim_json_set_str(status, "error", "the simulator knows no tokens");
    } else {
        sim_json_set(status, "allowed", json_object_new_boolean(true));
        sim_json_set_str(status, "reason", reason);
    }
    v = sim_object_order(v);
    sim_answer_json(call, 201, v);
    json_object_put(v);
}

void sim_api_token(struct sim_call *call)
{
    struct json_object *v;
    char when[32];

    if (!kr_bytes_is(call->req->method, "POST")) {
        sim_fail(call->out, &(struct sim_failure){.code = 405, .reason = "MethodNotAllowed"},
                 "the server does not allow this method on the requested resource");
        return;
    }
    if (sim_store_get(call->c, call->route.kind, call->route.key) == NULL) {
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
        return;
    }
    v = json_object_new_object();
    sim_time(call->c->sched->now_wall_ms + 3600 * 1000, when);
    sim_json_set_str(v, "kind", "TokenRequest");
    sim_json_set_str(v, "apiVersion", "authentication.k8s.io/v1");
    sim_json_set_str(sim_json_child(v, "metadata"), "name", call->route.name);
    sim_json_set_str(sim_json_child(v, "metadata"), "namespace", call->route.ns);
    sim_json_set_int(sim_json_child(v, "spec"), "expirationSeconds", 3600);
    sim_json_set_str(sim_json_child(v, "status"), "token", "simulated-token-without-value");
    sim_json_set_str(sim_json_child(v, "status"), "expirationTimestamp", when);
    sim_answer_json(call, 201, v);
    json_object_put(v);
}
