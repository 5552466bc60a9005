/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews: questions that are answered and not stored. The simulator allows everything, and says
 * so in the reason. Also the token of a service account, which is a word and no credential. */
#include <stdio.h>

#include "base/err.h"
#include "object.h"

static const char reason[] = "the simulator allows everything";

static struct json_object *read_review(struct sim_call *call)
{
    struct json_object *v = sim_object_read(call);

    if (v != NULL && sim_object_check(call, v) == 0)
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
        sim_fail_method(call->out);
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
