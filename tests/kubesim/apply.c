/* SPDX-License-Identifier: Apache-2.0 */
/* Server-side apply in a simple form: what the manager applied before and no longer does is
 * removed, what another manager set to another value is a conflict unless forced. */
#include <stdio.h>

#include "base/err.h"
#include "fields.h"

struct conflicts {
    struct json_object *causes;
    struct kr_buf words; /* "conflicts with WHO:" and a line a field */
    size_t n;
    char only[512]; /* the words if there is just one */
};

/* k:{"name":"x"} is [name="x"], v:"x" is [="x"]. */
static void item_words(const char *key, char out[160])
{
    struct json_object *v = key[0] == 'k' ? sim_json_parse(kr_bytes_str(key + 2)) : NULL;

    snprintf(out, 160, "[=%.120s]", key + 2);
    if (!sim_json_is_object(v)) {
        json_object_put(v);
        return;
    }
    json_object_object_foreach(v, name, value)
    {
        snprintf(out, 160, "[%.60s=%.80s]", name,
                 json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
    }
    json_object_put(v);
}

static void add_conflict(struct conflicts *c, const char *field, const char *who)
{
    struct json_object *one = json_object_new_object();
    char message[400];

    snprintf(message, sizeof message, "conflict with %.300s", who);
    sim_json_set_str(one, "reason", "FieldManagerConflict");
    sim_json_set_str(one, "message", message);
    sim_json_set_str(one, "field", field);
    json_object_array_add(c->causes, one);
    (void)kr_buf_printf(&c->words, "\n- %s", field);
    snprintf(c->only, sizeof c->only, "%.300s: %.200s", message, field);
    c->n++;
}

/* One conflict for each leaf of a set; `path` is where the set begins. */
static void list_leaves(struct conflicts *c, struct json_object *set, const char *path,
                        const char *who)
{
    json_object_object_foreach(set, key, child)
    {
        char here[512], item[160];

        if (key[0] == '.')
            continue;
        if (key[0] == 'f')
            snprintf(here, sizeof here, "%.340s.%.160s", path, key + 2);
        else {
            item_words(key, item);
            snprintf(here, sizeof here, "%.340s%.160s", path, item);
        }
        if (json_object_object_length(child) == 0)
            add_conflict(c, here, who);
        else
            list_leaves(c, child, here, who);
    }
}

/* As the API server names a manager: those that applied by name alone. */
static void manager_words(struct json_object *entry, char out[300])
{
    const char *sub = sim_json_str(entry, "subresource");
    int n = snprintf(out, 300, "\"%.150s\"", sim_json_str(entry, "manager"));

    if (sub[0] != '\0')
        n += snprintf(out + n, 300 - (size_t)n, " with subresource \"%.20s\"", sub);
    if (strcmp(sim_json_str(entry, "operation"), "Update") == 0)
        snprintf(out + n, 300 - (size_t)n, " using %.60s", sim_json_str(entry, "apiVersion"));
}

/* What other managers own and this apply would change. */
static void find_conflicts(struct conflicts *c, struct json_object *live,
                           struct json_object *applied, struct json_object *wanted,
                           const char *manager)
{
    struct json_object *all = sim_json_at(live, "metadata.managedFields");

    for (size_t i = 0; i < sim_json_len(all); i++) {
        struct json_object *e = json_object_array_get_idx(all, i), *common, *differing;
        char who[300];

        if (strcmp(sim_json_str(e, "manager"), manager) == 0 &&
            strcmp(sim_json_str(e, "operation"), "Apply") == 0)
            continue;
        manager_words(e, who);
        common = sim_fields_both(wanted, sim_json_child(e, "fieldsV1"));
        differing = sim_fields_differing(common, live, applied);
        json_object_put(common);
        if (json_object_object_length(differing) != 0)
            (void)kr_buf_printf(&c->words, "%sconflicts with %s:", c->n != 0 ? "\n" : "", who);
        list_leaves(c, differing, "", who);
        json_object_put(differing);
    }
}

static void answer_conflicts(struct sim_call *call, struct conflicts *c)
{
    struct json_object *v;
    char message[2048];

    if (c->n == 1)
        snprintf(message, sizeof message, "Apply failed with 1 conflict: %s", c->only);
    else
        snprintf(message, sizeof message, "Apply failed with %zu conflicts: %.*s", c->n,
                 (int)c->words.n, (const char *)c->words.p);
    v = sim_status_tree(&(struct sim_failure){.code = 409, .reason = "Conflict"}, message);
    json_object_object_del(v, "code");
    sim_json_set(sim_json_child(v, "details"), "causes", json_object_get(c->causes));
    sim_json_set_int(v, "code", 409);
    sim_answer_json(call, 409, v);
    json_object_put(v);
}

static int check(struct sim_call *call, struct json_object *applied)
{
    static const struct sim_kind options = {"meta.k8s.io", "v1", "", "", "PatchOptions", "", "", 0};
    const char *name;

    if (sim_param_or(&call->q, "fieldManager", "")[0] == '\0') {
        sim_fail_invalid(call->out, &options, "", "FieldValueRequired", "fieldManager",
                         "Required value: is required for apply patch");
        return KR_EINVAL;
    }
    if (sim_json_is_object(applied) && (sim_json_str(applied, "kind")[0] == '\0' ||
                                        sim_json_str(applied, "apiVersion")[0] == '\0')) {
        sim_fail_bad_request(call->out, "invalid object type: /, Kind=%s",
                             sim_json_str(applied, "kind"));
        return KR_EINVAL;
    }
    if (sim_object_check(call, applied) != 0)
        return KR_EINVAL;
    name = sim_json_str(applied, "metadata.name");
    if (name[0] != '\0' && strcmp(name, call->route.name) != 0) {
        sim_fail_bad_request(call->out,
                             "the name of the object (%s) does not match the name on the URL (%s)",
                             name, call->route.name);
        return KR_EINVAL;
    }
    sim_json_set_str(sim_json_child(applied, "metadata"), "name", call->route.name);
    if (sim_json_len(sim_json_at(applied, "metadata.managedFields")) != 0) {
        sim_fail_bad_request(call->out, "metadata.managedFields must be nil");
        return KR_EINVAL;
    }
    return 0;
}

/* What this manager applied before, no longer applies, and nobody else owns. */
static struct json_object *to_remove(struct json_object *live, struct json_object *wanted,
                                     const char *manager, const char *sub)
{
    struct json_object *entry = sim_fields_entry(live, manager, "Apply", sub);
    struct json_object *all = sim_json_at(live, "metadata.managedFields");
    struct json_object *gone;

    if (entry == NULL)
        return json_object_new_object();
    gone = sim_fields_minus(sim_json_child(entry, "fieldsV1"), wanted);
    for (size_t i = 0; i < sim_json_len(all); i++) {
        struct json_object *e = json_object_array_get_idx(all, i), *rest;

        if (e == entry)
            continue;
        rest = sim_fields_minus(gone, sim_json_child(e, "fieldsV1"));
        json_object_put(gone);
        gone = rest;
    }
    return gone;
}

/* Takes both. */
static void apply_to(struct sim_call *call, struct json_object *live, struct json_object *applied)
{
    struct json_object *wanted = sim_fields_of(applied), *next, *gone;
    struct conflicts c = {.causes = json_object_new_array()};
    const char *sub = strcmp(call->route.sub, "status") == 0 ? "status" : "";
    char manager[128];

    sim_manager_of(call, manager);
    kr_buf_init(&c.words, 1600);
    find_conflicts(&c, live, applied, wanted, manager);
    if (c.n != 0 && !sim_param_true(&call->q, "force")) {
        answer_conflicts(call, &c);
        json_object_put(wanted);
    } else {
        gone = to_remove(live, wanted, manager, sub);
        next = sim_patch_strategic(sim_json_copy(live), applied);
        sim_fields_remove(next, gone);
        json_object_put(gone);
        if (c.n != 0) { /* forced: it is ours alone now */
            struct json_object *mine = sim_fields_differing(wanted, live, next);

            sim_fields_disown(next, manager, "Apply", mine);
            json_object_put(mine);
        }
        sim_fields_own(call, next, manager, "Apply", wanted);
        sim_object_replace(call, live, next, SIM_MANAGE_APPLY);
    }
    json_object_put(c.causes);
    kr_buf_deinit(&c.words);
    json_object_put(live);
    json_object_put(applied);
}

void sim_api_apply(struct sim_call *call)
{
    struct sim_obj *o = sim_store_get(call->c, call->route.kind, call->route.key);
    struct json_object *applied = sim_object_read(call);

    if (applied == NULL || check(call, applied) != 0) {
        json_object_put(applied);
        return;
    }
    if (o == NULL && call->route.sub[0] != '\0') {
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
        json_object_put(applied);
    } else if (o == NULL) {
        sim_object_create(call, applied, SIM_MANAGE_APPLY);
    } else {
        apply_to(call, sim_rev_tree(call->c, call->route.kind, &o->rev), applied);
    }
}
