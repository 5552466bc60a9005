/* SPDX-License-Identifier: Apache-2.0 */
/* DELETE of an object and of a collection, and eviction. */
#include <stdio.h>

#include "base/err.h"
#include "lifecycle.h"
#include "list.h"
#include "object.h"
#include "proto_schema.h"

struct delete_options {
    const char *propagation; /* "Background", "Foreground", "Orphan" or "" */
    const char *uid;         /* preconditions */
    const char *rv;
    int64_t grace; /* -1: the default */
    bool dry_run;
    struct json_object *body; /* owned; NULL if there was none */
};

static int read_options(struct sim_call *call, struct delete_options *o)
{
    struct json_object *dry, *v = NULL;

    if (call->req->body.n != 0) {
        v = sim_proto_is_body(call->req->body) ? sim_proto_object(call->req->body)
                                               : sim_json_parse(call->req->body);
        if (v == NULL) {
            sim_fail(call->out, &(struct sim_failure){.code = 500},
                     "couldn't get version/kind; json parse error: the body is not JSON");
            return KR_EINVAL;
        }
    }
    *o = (struct delete_options){.body = v};
    if (strcmp(sim_json_str(v, "kind"), "Eviction") == 0)
        v = sim_json_get(v, "deleteOptions");
    o->propagation = sim_json_str(v, "propagationPolicy");
    if (o->propagation[0] == '\0')
        o->propagation = sim_param_or(&call->q, "propagationPolicy", "");
    o->uid = sim_json_str(v, "preconditions.uid");
    o->rv = sim_json_str(v, "preconditions.resourceVersion");
    o->grace =
        sim_json_int(v, "gracePeriodSeconds", sim_param_int(&call->q, "gracePeriodSeconds", -1));
    dry = sim_json_get(v, "dryRun");
    o->dry_run = sim_is_dry_run(call) || sim_json_len(dry) != 0;
    return 0;
}

static int check_preconditions(struct sim_call *call, struct json_object *v,
                               const struct delete_options *o)
{
    const char *uid = sim_json_str(v, "metadata.uid");
    const char *rv = sim_json_str(v, "metadata.resourceVersion");
    bool uid_differs = o->uid[0] != '\0' && strcmp(o->uid, uid) != 0;

    if (!uid_differs && (o->rv[0] == '\0' || strcmp(o->rv, rv) == 0))
        return 0;
    sim_fail(call->out,
             &(struct sim_failure){.code = 409,
                                   .reason = "Conflict",
                                   .kind = sim_call_kind(call),
                                   .name = call->route.name,
                                   .kind_name = true},
             "Operation cannot be fulfilled on %s \"%s\": the %s in the precondition (%s) does not "
             "match the %s in record (%s). The object might have been %s",
             sim_call_kind(call)->kind, call->route.name, uid_differs ? "UID" : "ResourceVersion",
             uid_differs ? o->uid : o->rv, uid_differs ? "UID" : "ResourceVersion",
             uid_differs ? uid : rv, uid_differs ? "deleted and then recreated" : "modified");
    return KR_EEXIST;
}

static void add_finalizer(struct json_object *v, const char *name)
{
    struct json_object *meta = sim_json_child(v, "metadata");
    struct json_object *list = sim_json_get(meta, "finalizers");

    if (!sim_json_is_array(list))
        sim_json_set(meta, "finalizers", list = json_object_new_array());
    json_object_array_add(list, json_object_new_string(name));
}

/* Marks the object as going; it stays until someone (or the simulated kubelet) finishes it. */
static void mark(struct sim_call *call, struct json_object *v, int64_t grace)
{
    struct json_object *meta = sim_json_child(v, "metadata");
    char when[32];

    if (sim_json_get(meta, "deletionTimestamp") != NULL)
        return;
    sim_time(call->c->sched->now_wall_ms + grace * 1000, when);
    sim_json_set_str(meta, "deletionTimestamp", when);
    if (sim_json_get(meta, "generation") != NULL)
        sim_json_set_int(meta, "generation", sim_json_int(meta, "generation", 0) + 1);
    if (call->route.kind == SIM_KIND_NAMESPACE)
        sim_json_set_str(sim_json_child(v, "status"), "phase", "Terminating");
    else
        sim_json_set_int(meta, "deletionGracePeriodSeconds", grace);
}

/* Whether it goes later than now, and if so who will finish it. */
static bool stays(const struct sim_call *call, struct json_object *v,
                  const struct delete_options *o, int64_t *grace, bool *finished_by_us)
{
    bool pod = call->route.kind == SIM_KIND_POD;

    *grace = 0;
    *finished_by_us = true;
    if (strcmp(o->propagation, "Foreground") == 0)
        add_finalizer(v, "foregroundDeletion");
    else if (strcmp(o->propagation, "Orphan") == 0)
        add_finalizer(v, "orphan");
    else if (sim_json_len(sim_json_at(v, "metadata.finalizers")) != 0) {
        *finished_by_us = false;
        return true;
    } else if (call->route.kind == SIM_KIND_NAMESPACE) {
        return true;
    } else {
        *grace =
            o->grace >= 0 ? o->grace : sim_json_int(v, "spec.terminationGracePeriodSeconds", 30);
        return pod && *grace != 0 && sim_json_str(v, "spec.nodeName")[0] != '\0';
    }
    return true;
}

static bool answers_object(const struct sim_call *call)
{
    static const char *const plurals[] = {
        "pods",         "services",       "serviceaccounts",        "persistentvolumes",
        "podtemplates", "resourcequotas", "persistentvolumeclaims",
    };

    for (size_t i = 0; i < sizeof plurals / sizeof *plurals; i++)
        if (strcmp(sim_call_kind(call)->plural, plurals[i]) == 0)
            return true;
    return false;
}

static void answer_gone(struct sim_call *call, struct json_object *v)
{
    const struct sim_kind *k = sim_call_kind(call);
    struct json_object *status, *details;

    if (answers_object(call)) {
        sim_answer_tree(call, 200, v);
        return;
    }
    status = json_object_new_object();
    sim_json_set_str(status, "kind", "Status");
    sim_json_set_str(status, "apiVersion", "v1");
    sim_json_child(status, "metadata");
    sim_json_set_str(status, "status", "Success");
    details = sim_json_child(status, "details");
    sim_json_set_str(details, "name", call->route.name);
    if (k->group[0] != '\0')
        sim_json_set_str(details, "group", k->group);
    sim_json_set_str(details, "kind", k->plural);
    sim_json_set_str(details, "uid", sim_json_str(v, "metadata.uid"));
    sim_answer_json(call, 200, status);
    json_object_put(status);
}

/* Takes `v`. */
static void delete_object(struct sim_call *call, struct json_object *v,
                          const struct delete_options *o)
{
    bool ours;
    int64_t grace;

    if (check_preconditions(call, v, o) != 0) {
        json_object_put(v);
        return;
    }
    if (stays(call, v, o, &grace, &ours)) {
        bool already = sim_json_at(v, "metadata.deletionTimestamp") != NULL;

        mark(call, v, grace);
        v = sim_object_order(v);
        if (!o->dry_run && !already &&
            sim_store_put(call->c, call->route.kind, call->route.key, v) == 0 && ours)
            sim_lifecycle_finish_later(call->c, call->route.kind, call->route.key);
        sim_answer_tree(call, 200, v);
    } else {
        if (!o->dry_run)
            (void)sim_store_delete(call->c, call->route.kind, call->route.key, NULL);
        if (call->route.kind == SIM_KIND_POD) {
            mark(call, v, 0);
            v = sim_object_order(v);
        }
        answer_gone(call, v);
    }
    json_object_put(v);
}

static void answer_evicted(struct sim_call *call)
{
    struct json_object *v;

    if (call->out->status >= 300)
        return;
    v = sim_json_parse(KR_LIT("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                              "\"status\":\"Success\",\"code\":201}"));
    sim_answer_json(call, 201, v);
    json_object_put(v);
}

void sim_api_delete(struct sim_call *call)
{
    struct sim_obj *found = sim_store_get(call->c, call->route.kind, call->route.key);
    struct delete_options o;

    if (found == NULL) {
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
        return;
    }
    if (read_options(call, &o) != 0)
        return;
    delete_object(call, sim_rev_tree(call->c, call->route.kind, &found->rev), &o);
    if (strcmp(call->route.sub, "eviction") == 0)
        answer_evicted(call);
    json_object_put(o.body);
}

void sim_api_delete_collection(struct sim_call *call)
{
    struct sim_list_options o;
    struct delete_options d;
    struct sim_snap snap;
    struct sim_response *out = call->out;

    if (sim_list_options_read(call, false, &o) != 0 || read_options(call, &d) != 0) {
        sim_list_options_deinit(&o);
        return;
    }
    if (sim_snap_take(call->c, call->route.kind, call->route.prefix, "", call->c->rv, &snap) != 0)
        snap = (struct sim_snap){0};
    sim_api_list(call); /* the answer: what is deleted, as it was */
    for (size_t i = 0; i < snap.n; i++) {
        struct json_object *v = sim_rev_tree(call->c, call->route.kind, &snap.items[i].rev);
        struct sim_response one;

        if (v == NULL || !sim_selector_matches(&o.selector, v)) {
            json_object_put(v);
            continue;
        }
        sim_response_init(&one);
        call->out = &one;
        snprintf(call->route.key, sizeof call->route.key, "%s", snap.items[i].key);
        snprintf(call->route.name, sizeof call->route.name, "%s", sim_json_str(v, "metadata.name"));
        delete_object(call, v, &d);
        sim_response_deinit(&one);
    }
    call->out = out;
    sim_snap_deinit(&snap);
    json_object_put(d.body);
    sim_list_options_deinit(&o);
}
