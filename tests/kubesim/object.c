/* SPDX-License-Identifier: Apache-2.0 */
#include "object.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "fields.h"
#include "lifecycle.h"
#include "proto_schema.h"

bool sim_is_dry_run(const struct sim_call *call)
{
    const char *value = sim_param(&call->q, "dryRun");

    return value != NULL && strcmp(value, "All") == 0;
}

void sim_manager_of(const struct sim_call *call, char out[128])
{
    const char *given = sim_param_or(&call->q, "fieldManager", "");
    struct kr_bytes agent = kr_head_get(call->req->head, KR_LIT("user-agent"));

    if (given[0] != '\0') {
        snprintf(out, 128, "%s", given);
        return;
    }
    snprintf(out, 128, "%.*s", (int)kr_bytes_find(agent, '/'), (const char *)agent.p);
    if (out[0] == '\0')
        snprintf(out, 128, "unknown");
}

static struct kr_bytes content_type(const struct sim_call *call)
{
    struct kr_bytes value = kr_head_get(call->req->head, KR_LIT("content-type"));

    value.n = kr_bytes_find(value, ';');
    return value;
}

struct json_object *sim_object_read(struct sim_call *call)
{
    struct kr_bytes type = content_type(call);
    bool yaml =
        kr_bytes_is(type, "application/yaml") || kr_bytes_is(type, "application/apply-patch+yaml");
    struct json_object *v = NULL;

    if (kr_bytes_is(type, "application/vnd.kubernetes.protobuf") &&
        sim_proto_is_body(call->req->body) && (v = sim_proto_object(call->req->body)) != NULL)
        return v;
    if (type.n != 0 && !yaml && kr_bytes_find(kr_bytes_of(type.p, type.n), '/') < type.n &&
        (type.n < 4 || memcmp(type.p + type.n - 4, "json", 4) != 0)) {
        sim_fail(call->out, &(struct sim_failure){.code = 415, .reason = "UnsupportedMediaType"},
                 "the body of the request was in an unknown format - accepted media types include: "
                 "application/json, application/yaml, application/vnd.kubernetes.protobuf");
        return NULL;
    }
    v = sim_json_parse(call->req->body);
    if (v == NULL && yaml)
        v = sim_yaml_parse(call->req->body);
    if (v == NULL)
        sim_fail_bad_request(call->out,
                             "the object provided is unrecognized (must be of type %s): couldn't "
                             "get version/kind; json parse error: the body is not one JSON value",
                             sim_call_kind(call)->kind);
    return v;
}

static int check_type(struct sim_call *call, struct json_object *v)
{
    const struct sim_kind *k = sim_call_kind(call);
    const char *kind = sim_json_str(v, "kind"), *version = sim_json_str(v, "apiVersion");
    char api[64];

    sim_kind_api_version(k, api);
    if (kind[0] != '\0' && strcmp(kind, k->kind) != 0) {
        sim_fail_bad_request(call->out,
                             "%s in version \"%s\" cannot be handled as a %s: converting (%s) to "
                             "(%s): unknown conversion",
                             kind, version[0] != '\0' ? version : api, k->kind, kind, k->kind);
        return KR_EINVAL;
    }
    if (version[0] != '\0' && strcmp(version, api) != 0) {
        sim_fail_bad_request(call->out,
                             "%s in version \"%s\" cannot be handled as a %s: no kind \"%s\" is "
                             "registered for version \"%s\" in scheme "
                             "\"pkg/runtime/scheme.go:110\"",
                             k->kind, version, k->kind, k->kind, version);
        return KR_EINVAL;
    }
    sim_json_set_str(v, "kind", k->kind);
    sim_json_set_str(v, "apiVersion", api);
    return 0;
}

/* Maps from text to text hold nothing else. */
static int check_texts(struct sim_call *call, struct json_object *v)
{
    static const struct {
        const char *path, *word;
    } maps[] = {{"metadata.labels", "ObjectMeta.metadata.labels"},
                {"metadata.annotations", "ObjectMeta.metadata.annotations"},
                {"data", NULL}};
    const char *kind = sim_call_kind(call)->kind;

    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        struct json_object *map = sim_json_at(v, maps[i].path);

        if (!sim_json_is_object(map) || (maps[i].word == NULL && strcmp(kind, "ConfigMap") != 0))
            continue;
        json_object_object_foreach(map, key, value)
        {
            (void)key;
            if (value == NULL || json_object_is_type(value, json_type_string))
                continue;
            sim_fail_bad_request(call->out,
                                 "%s in version \"v1\" cannot be handled as a %s: json: cannot "
                                 "unmarshal %s into Go struct field %s of type string",
                                 kind, kind,
                                 json_object_is_type(value, json_type_int)
                                     ? "number"
                                     : json_type_to_name(json_object_get_type(value)),
                                 maps[i].word != NULL ? maps[i].word : "ConfigMap.data");
            return KR_EINVAL;
        }
    }
    return 0;
}

int sim_object_check(struct sim_call *call, struct json_object *v)
{
    const char *ns;

    if (!sim_json_is_object(v)) {
        sim_fail_bad_request(call->out, "the body of the request is not an object");
        return KR_EINVAL;
    }
    if (check_type(call, v) != 0 || check_texts(call, v) != 0)
        return KR_EINVAL;
    ns = sim_json_str(sim_json_child(v, "metadata"), "namespace");
    if (strcmp(ns, call->route.ns) == 0)
        return 0;
    if (ns[0] != '\0' && (sim_call_kind(call)->flags & SIM_NAMESPACED) != 0) {
        sim_fail_bad_request(call->out, "the namespace of the provided object does not match the "
                                        "namespace sent on the request");
        return KR_EINVAL;
    }
    if (call->route.ns[0] != '\0')
        sim_json_set_str(sim_json_child(v, "metadata"), "namespace", call->route.ns);
    else
        json_object_object_del(sim_json_child(v, "metadata"), "namespace");
    return 0;
}

int sim_object_check_name(struct sim_call *call, const char *name)
{
    bool rbac = strncmp(sim_call_kind(call)->group, "rbac.", 5) == 0;
    size_t n = strlen(name);
    bool ok = n != 0 && n <= 253;
    char message[1024];

    for (size_t i = 0; ok && i < n; i++) {
        unsigned char ch = (unsigned char)name[i];
        bool edge = i == 0 || i == n - 1 || name[i - 1] == '.';

        ok = rbac ? ch != '/' && ch != '%'
                  : islower(ch) || isdigit(ch) || (!edge && (ch == '-' || ch == '.'));
    }
    if (ok)
        return 0;
    if (n == 0)
        sim_fail_invalid(call->out, sim_call_kind(call), "", "FieldValueRequired", "metadata.name",
                         "Required value: name or generateName is required");
    else {
        snprintf(message, sizeof message,
                 "Invalid value: \"%.300s\": a lowercase RFC 1123 subdomain must consist of lower "
                 "case alphanumeric characters, '-' or '.', and must start and end with an "
                 "alphanumeric character (e.g. 'example.com', regex used for validation is "
                 "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                 name);
        sim_fail_invalid(call->out, sim_call_kind(call), name, "FieldValueInvalid", "metadata.name",
                         message);
    }
    return KR_EINVAL;
}

static void move_keys(struct json_object *from, struct json_object *to, const char *const *order,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct json_object *value = NULL;

        if (json_object_object_get_ex(from, order[i], &value))
            json_object_object_add(to, order[i], json_object_get(value));
    }
    json_object_object_foreach(from, key, rest)
    {
        if (!json_object_object_get_ex(to, key, NULL))
            json_object_object_add(to, key, json_object_get(rest));
    }
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Go prints maps by key. */
static void sort_keys(struct json_object *v, const char *parent, const char *key)
{
    struct json_object *box = sim_json_at(v, parent), *map = sim_json_get(box, key), *out;
    const char **names;
    size_t n = 0;

    if (!sim_json_is_object(map) || json_object_object_length(map) < 2)
        return;
    names = calloc((size_t)json_object_object_length(map), sizeof *names);
    if (names == NULL)
        return;
    json_object_object_foreach(map, name, value)
    {
        (void)value;
        names[n++] = name;
    }
    qsort(names, n, sizeof *names, compare_keys);
    out = json_object_new_object();
    for (size_t i = 0; i < n; i++)
        json_object_object_add(out, names[i], json_object_get(sim_json_get(map, names[i])));
    free(names);
    sim_json_set(box, key, out);
}

struct json_object *sim_object_order(struct json_object *v)
{
    static const char *const top[] = {"kind", "apiVersion", "metadata"};
    static const char *const meta[] = {"name",
                                       "generateName",
                                       "namespace",
                                       "uid",
                                       "resourceVersion",
                                       "generation",
                                       "creationTimestamp",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       "labels",
                                       "annotations",
                                       "ownerReferences",
                                       "finalizers",
                                       "managedFields"};
    static const struct {
        const char *parent, *key;
    } maps[] = {
        {"metadata", "labels"}, {"metadata", "annotations"}, {"", "data"}, {"", "binaryData"}};
    struct json_object *out = json_object_new_object(), *ordered = json_object_new_object();

    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        sort_keys(v, maps[i].parent, maps[i].key);
    move_keys(sim_json_child(v, "metadata"), ordered, meta, sizeof meta / sizeof *meta);
    sim_json_set(v, "metadata", ordered);
    move_keys(v, out, top, sizeof top / sizeof *top);
    json_object_put(v);
    return out;
}

/* ---- create */

static int check_namespace(struct sim_call *call)
{
    static const struct sim_kind *ns_kind = &sim_kinds[SIM_KIND_NAMESPACE];
    struct sim_obj *o;
    struct json_object *ns;
    bool going;

    if (call->route.ns[0] == '\0')
        return 0;
    o = sim_store_get(call->c, SIM_KIND_NAMESPACE, call->route.ns);
    if (o == NULL) {
        sim_fail_not_found(call->out, ns_kind, call->route.ns);
        return KR_ENOENT;
    }
    ns = sim_rev_tree(call->c, SIM_KIND_NAMESPACE, &o->rev);
    going = sim_json_at(ns, "metadata.deletionTimestamp") != NULL;
    json_object_put(ns);
    if (!going)
        return 0;
    sim_fail(call->out,
             &(struct sim_failure){.code = 403,
                                   .reason = "Forbidden",
                                   .kind = sim_call_kind(call),
                                   .cause_reason = "NamespaceTerminating",
                                   .cause_field = "metadata.namespace",
                                   .cause_message = "the namespace is being terminated"},
             "unable to create new content in namespace %s because it is being terminated",
             call->route.ns);
    return KR_EDENIED;
}

static int find_name(struct sim_call *call, struct json_object *v)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    struct json_object *meta = sim_json_child(v, "metadata");
    const char *prefix = sim_json_str(meta, "generateName");
    char name[260];

    if (sim_json_str(meta, "name")[0] == '\0' && prefix[0] != '\0') {
        int n = snprintf(name, sizeof name, "%.248s", prefix);
        uint64_t r = sim_random(call->c);

        for (int i = 0; i < 5; i++, r /= 27)
            name[n++] = letters[r % 27];
        name[n] = '\0';
        sim_json_set_str(meta, "name", name);
    }
    return sim_object_check_name(call, sim_json_str(meta, "name"));
}

static void new_metadata(struct sim_call *call, struct json_object *v)
{
    struct json_object *meta = sim_json_child(v, "metadata");
    char uid[40], when[32];

    sim_uuid(sim_random(call->c), uid);
    sim_time(call->c->sched->now_wall_ms, when);
    sim_json_set_str(meta, "uid", uid);
    sim_json_set_str(meta, "creationTimestamp", when);
    sim_json_set_str(meta, "resourceVersion", ""); /* its place; the store fills it in */
    json_object_object_del(meta, "deletionTimestamp");
    json_object_object_del(meta, "deletionGracePeriodSeconds");
    json_object_object_del(meta, "selfLink");
    if ((sim_call_kind(call)->flags & SIM_GENERATION) != 0)
        sim_json_set_int(meta, "generation", 1);
    if ((sim_call_kind(call)->flags & SIM_STATUS) != 0)
        json_object_object_del(v, "status");
}

static void store_and_answer(struct sim_call *call, struct json_object *v, int status)
{
    const struct sim_obj *o;

    if (sim_is_dry_run(call)) {
        if (sim_json_str(v, "metadata.resourceVersion")[0] == '\0')
            json_object_object_del(sim_json_child(v, "metadata"), "resourceVersion");
        sim_answer_tree(call, status, v);
        return;
    }
    if (sim_store_put(call->c, call->route.kind, call->route.key, v) != 0) {
        sim_fail_no_memory(call->out);
        return;
    }
    sim_lifecycle_written(call->c, call->route.kind, call->route.key, v);
    o = sim_store_get(call->c, call->route.kind, call->route.key);
    if (o != NULL)
        sim_answer_rev(call, status, &o->rev);
    else /* its last finalizer went: the object went with it */
        sim_answer_tree(call, status, v);
}

void sim_object_create(struct sim_call *call, struct json_object *v, enum sim_manage how)
{
    const char *name;

    if (check_namespace(call) != 0 || find_name(call, v) != 0) {
        json_object_put(v);
        return;
    }
    name = sim_json_str(v, "metadata.name");
    snprintf(call->route.name, sizeof call->route.name, "%s", name);
    sim_route_key(&call->route);
    if (sim_json_str(v, "metadata.resourceVersion")[0] != '\0') {
        sim_fail(call->out, &(struct sim_failure){.code = 500},
                 "resourceVersion should not be set on objects to be created");
        json_object_put(v);
        return;
    }
    if (sim_store_get(call->c, call->route.kind, call->route.key) != NULL) {
        sim_fail_exists(call->out, sim_call_kind(call), name);
        json_object_put(v);
        return;
    }
    if (sim_object_validate(call, v) != 0) {
        json_object_put(v);
        return;
    }
    new_metadata(call, v);
    /* What is applied is owned as it came, what is created with its defaults. */
    if (how == SIM_MANAGE_APPLY)
        sim_fields_record(call, NULL, v, how);
    sim_object_defaults(call, v);
    if (how == SIM_MANAGE_UPDATE)
        sim_fields_record(call, NULL, v, how);
    v = sim_object_order(v);
    store_and_answer(call, v, 201);
    json_object_put(v);
}

/* ---- replace */

static void keep(struct json_object *old, struct json_object *v, const char *key)
{
    struct json_object *value = sim_json_get(sim_json_get(old, "metadata"), key);

    if (value != NULL)
        sim_json_set(sim_json_child(v, "metadata"), key, json_object_get(value));
    else
        json_object_object_del(sim_json_child(v, "metadata"), key);
}

static int check_version(struct sim_call *call, struct json_object *old, struct json_object *v)
{
    const char *rv = sim_json_str(v, "metadata.resourceVersion");
    const char *uid = sim_json_str(v, "metadata.uid"), *have = sim_json_str(old, "metadata.uid");
    char resource[128];

    if (rv[0] != '\0' && strcmp(rv, "0") != 0 &&
        strcmp(rv, sim_json_str(old, "metadata.resourceVersion")) != 0) {
        sim_fail_conflict(call->out, sim_call_kind(call), call->route.name);
        return KR_EEXIST;
    }
    if (uid[0] != '\0' && strcmp(uid, have) != 0) {
        sim_resource_name(sim_call_kind(call), resource);
        sim_fail(
            call->out,
            &(struct sim_failure){.code = 409,
                                  .reason = "Conflict",
                                  .kind = sim_call_kind(call),
                                  .name = call->route.name},
            "Operation cannot be fulfilled on %s \"%s\": StorageError: invalid object, Code: 4, "
            "Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
            "failed: UID in precondition: %s, UID in object meta: %s",
            resource, call->route.name, sim_call_kind(call)->plural, call->route.key, uid, have);
        return KR_EEXIST;
    }
    return 0;
}

/* A write to /status changes only status, one to the object never does. */
static struct json_object *protect(struct sim_call *call, struct json_object *old,
                                   struct json_object *v)
{
    struct json_object *status = sim_json_get(v, "status"), *base;

    if ((sim_call_kind(call)->flags & SIM_STATUS) == 0)
        return v;
    if (strcmp(call->route.sub, "status") != 0) {
        status = sim_json_get(old, "status");
        if (status != NULL)
            sim_json_set(v, "status", json_object_get(status));
        else
            json_object_object_del(v, "status");
        return v;
    }
    base = sim_json_copy(old);
    if (status != NULL)
        sim_json_set(base, "status", json_object_get(status));
    else
        json_object_object_del(base, "status");
    json_object_put(v);
    return base;
}

static void count_generation(struct sim_call *call, struct json_object *old, struct json_object *v)
{
    int64_t generation = sim_json_int(old, "metadata.generation", 1);

    if ((sim_call_kind(call)->flags & SIM_GENERATION) == 0)
        return;
    if (!sim_json_equal(sim_json_get(old, "spec"), sim_json_get(v, "spec")))
        generation++;
    sim_json_set_int(sim_json_child(v, "metadata"), "generation", generation);
}

/* Equal but for managedFields' times. */
static bool unchanged(struct json_object *old, struct json_object *v)
{
    struct json_object *a = sim_json_copy(old), *b = sim_json_copy(v);
    bool same;

    json_object_object_del(sim_json_child(a, "metadata"), "managedFields");
    json_object_object_del(sim_json_child(b, "metadata"), "managedFields");
    same = sim_json_equal(a, b);
    json_object_put(a);
    json_object_put(b);
    return same;
}

void sim_object_replace(struct sim_call *call, struct json_object *old, struct json_object *v,
                        enum sim_manage how)
{
    static const char *const kept[] = {"uid",          "creationTimestamp",
                                       "generation",   "deletionTimestamp",
                                       "selfLink",     "deletionGracePeriodSeconds",
                                       "name",         "namespace",
                                       "generateName", "resourceVersion"};
    bool same;

    if (check_version(call, old, v) != 0 || sim_object_validate(call, v) != 0) {
        json_object_put(v);
        return;
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        keep(old, v, kept[i]);
    v = protect(call, old, v);
    sim_object_defaults(call, v);
    count_generation(call, old, v);
    same = unchanged(old, v);
    if (how == SIM_MANAGE_UPDATE && !same)
        sim_fields_record(call, old, v, how);
    else if (how == SIM_MANAGE_UPDATE)
        keep(old, v, "managedFields");
    v = sim_object_order(v);
    if (same && (how != SIM_MANAGE_APPLY || sim_fields_same_owners(old, v)))
        sim_answer_tree(call, 200, old);
    else
        store_and_answer(call, v, 200);
    json_object_put(v);
}

/* ---- the two plain writes */

void sim_api_create(struct sim_call *call)
{
    struct json_object *v;

    if ((sim_call_kind(call)->flags & SIM_NAMESPACED) != 0 && call->route.ns[0] == '\0') {
        sim_fail_method(call->out);
        return;
    }
    v = sim_object_read(call);
    if (v == NULL)
        return;
    if (sim_object_check(call, v) != 0) {
        json_object_put(v);
        return;
    }
    sim_object_create(call, v, SIM_MANAGE_UPDATE);
}

void sim_api_update(struct sim_call *call)
{
    struct sim_obj *o;
    struct json_object *v = sim_object_read(call), *old;
    const char *name;

    if (v == NULL || sim_object_check(call, v) != 0) {
        json_object_put(v);
        return;
    }
    name = sim_json_str(v, "metadata.name");
    if (strcmp(name, call->route.name) != 0) {
        sim_fail_bad_request(call->out,
                             "the name of the object (%s) does not match the name on the URL (%s)",
                             name, call->route.name);
        json_object_put(v);
        return;
    }
    o = sim_store_get(call->c, call->route.kind, call->route.key);
    if (o == NULL) {
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
        json_object_put(v);
        return;
    }
    old = sim_rev_tree(call->c, call->route.kind, &o->rev);
    sim_object_replace(call, old, v, SIM_MANAGE_UPDATE);
    json_object_put(old);
}
