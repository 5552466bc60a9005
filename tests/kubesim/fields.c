/* SPDX-License-Identifier: Apache-2.0 */
/* Recursion here follows trees that sim_json_parse bounded in depth. */
#include "fields.h"

#include <stdio.h>

static struct json_object *leaf(void)
{
    return json_object_new_object();
}

static bool is_leaf(struct json_object *set)
{
    return json_object_object_length(set) == 0;
}

/* The key of a set for a list item: k:{"name":"x"}. */
static void item_key(const char *key, struct json_object *item, struct kr_buf *out)
{
    out->n = 0;
    (void)kr_buf_printf(out, "k:{\"%s\":", key);
    (void)sim_json_print(sim_json_get(item, key), out);
    (void)kr_buf_append(out, kr_bytes_of("}", 2));
}

static struct json_object *set_of(const char *field, struct json_object *v);

static struct json_object *set_of_list(const char *field, struct json_object *list)
{
    struct json_object *set = leaf();
    const char *key =
        sim_merge_key(field, sim_json_len(list) != 0 ? json_object_array_get_idx(list, 0) : NULL);
    struct kr_buf name;

    kr_buf_init(&name, 4096);
    for (size_t i = 0; i < sim_json_len(list); i++) {
        struct json_object *item = json_object_array_get_idx(list, i), *inner;

        if (key != NULL && sim_json_get(item, key) != NULL) {
            item_key(key, item, &name);
            inner = set_of("", item);
            sim_json_set(inner, ".", leaf());
            sim_json_set(set, (const char *)name.p, inner);
        } else if (sim_is_set(field)) {
            name.n = 0;
            (void)kr_buf_append_str(&name, "v:");
            (void)sim_json_print(item, &name);
            (void)kr_buf_append(&name, kr_bytes_of("", 1));
            sim_json_set(set, (const char *)name.p, leaf());
        }
    }
    kr_buf_deinit(&name);
    return set;
}

static struct json_object *set_of(const char *field, struct json_object *v)
{
    struct json_object *set;
    char name[300];

    if (sim_json_is_array(v))
        return set_of_list(field, v);
    set = leaf();
    if (!sim_json_is_object(v))
        return set;
    json_object_object_foreach(v, key, value)
    {
        snprintf(name, sizeof name, "f:%s", key);
        sim_json_set(set, name, set_of(key, value));
    }
    return set;
}

struct json_object *sim_fields_of(struct json_object *v)
{
    static const char *const top[] = {"kind", "apiVersion", NULL};
    static const char *const meta[] = {"name",
                                       "namespace",
                                       "uid",
                                       "generateName",
                                       "resourceVersion",
                                       "generation",
                                       "managedFields",
                                       "creationTimestamp",
                                       "deletionTimestamp",
                                       "selfLink",
                                       NULL};
    struct json_object *copy = sim_json_copy(v), *set;

    for (size_t i = 0; top[i] != NULL; i++)
        json_object_object_del(copy, top[i]);
    for (size_t i = 0; meta[i] != NULL; i++)
        json_object_object_del(sim_json_child(copy, "metadata"), meta[i]);
    if (is_leaf(sim_json_child(copy, "metadata")))
        json_object_object_del(copy, "metadata");
    set = set_of("", copy);
    json_object_put(copy);
    return set;
}

struct json_object *sim_fields_minus(struct json_object *set, struct json_object *minus)
{
    struct json_object *out = leaf();

    json_object_object_foreach(set, key, child)
    {
        struct json_object *other = sim_json_get(minus, key), *rest;

        if (other == NULL) {
            sim_json_set(out, key, sim_json_copy(child));
        } else if (!is_leaf(child)) {
            rest = sim_fields_minus(child, other);
            if (is_leaf(rest))
                json_object_put(rest);
            else
                sim_json_set(out, key, rest);
        }
    }
    return out;
}

struct json_object *sim_fields_both(struct json_object *a, struct json_object *b)
{
    struct json_object *out = leaf();

    json_object_object_foreach(a, key, child)
    {
        struct json_object *other = sim_json_get(b, key), *common;

        if (other == NULL)
            continue;
        common = sim_fields_both(child, other);
        if (is_leaf(child) || !is_leaf(common))
            sim_json_set(out, key, common);
        else
            json_object_put(common);
    }
    return out;
}

static void add_all(struct json_object *into, struct json_object *more)
{
    json_object_object_foreach(more, key, child)
    {
        struct json_object *have = sim_json_get(into, key);

        if (have == NULL)
            sim_json_set(into, key, sim_json_copy(child));
        else
            add_all(have, child);
    }
}

/* The value that a set's key names inside `v`; NULL if there is none. */
static struct json_object *step(struct json_object *v, const char *key)
{
    struct json_object *like, *found = NULL;

    if (key[0] == 'f')
        return sim_json_get(v, key + 2);
    like = sim_json_parse(kr_bytes_str(key + 2));
    for (size_t i = 0; found == NULL && i < sim_json_len(v); i++) {
        struct json_object *item = json_object_array_get_idx(v, i);

        if (key[0] == 'v' && sim_json_equal(item, like))
            found = item;
        if (key[0] != 'k' || !sim_json_is_object(like))
            continue;
        json_object_object_foreach(like, name, value)
        {
            if (sim_json_equal(sim_json_get(item, name), value))
                found = item;
        }
    }
    json_object_put(like);
    return found;
}

struct json_object *sim_fields_differing(struct json_object *set, struct json_object *a,
                                         struct json_object *b)
{
    struct json_object *out = leaf();

    json_object_object_foreach(set, key, child)
    {
        struct json_object *va, *vb, *inner;

        if (strcmp(key, ".") == 0) {
            if ((a == NULL) != (b == NULL))
                sim_json_set(out, key, leaf());
            continue;
        }
        va = step(a, key);
        vb = step(b, key);
        if (is_leaf(child)) {
            if (!sim_json_equal(va, vb))
                sim_json_set(out, key, leaf());
            continue;
        }
        inner = sim_fields_differing(child, va, vb);
        if (is_leaf(inner))
            json_object_put(inner);
        else
            sim_json_set(out, key, inner);
    }
    return out;
}

static void remove_item(struct json_object *list, struct json_object *item)
{
    for (size_t i = 0; i < sim_json_len(list); i++)
        if (json_object_array_get_idx(list, i) == item) {
            json_object_array_del_idx(list, i, 1);
            return;
        }
}

void sim_fields_remove(struct json_object *v, struct json_object *set)
{
    json_object_object_foreach(set, key, child)
    {
        struct json_object *value = strcmp(key, ".") != 0 ? step(v, key) : NULL;

        if (value == NULL)
            continue;
        if (key[0] != 'f' && (is_leaf(child) || sim_json_get(child, ".") != NULL))
            remove_item(v, value);
        else if (is_leaf(child))
            json_object_object_del(v, key + 2);
        else
            sim_fields_remove(value, child);
    }
}

/* ---- managedFields */

static struct json_object *entries_of(struct json_object *v)
{
    return sim_json_at(v, "metadata.managedFields");
}

struct json_object *sim_fields_entry(struct json_object *v, const char *manager, const char *op,
                                     const char *sub)
{
    struct json_object *all = entries_of(v);

    for (size_t i = 0; i < sim_json_len(all); i++) {
        struct json_object *e = json_object_array_get_idx(all, i);

        if (strcmp(sim_json_str(e, "manager"), manager) == 0 &&
            strcmp(sim_json_str(e, "operation"), op) == 0 &&
            strcmp(sim_json_str(e, "subresource"), sub) == 0)
            return e;
    }
    return NULL;
}

/* The call's subresource as managedFields names it: only status is one of its own. */
static const char *sub_of(const struct sim_call *call)
{
    return strcmp(call->route.sub, "status") == 0 ? "status" : "";
}

void sim_fields_own(struct sim_call *call, struct json_object *v, const char *manager,
                    const char *op, struct json_object *set)
{
    struct json_object *all = entries_of(v), *e;
    char api[64], when[32];

    e = sim_fields_entry(v, manager, op, sub_of(call));
    if (is_leaf(set)) {
        if (e != NULL)
            remove_item(all, e);
        json_object_put(set);
        return;
    }
    if (!sim_json_is_array(all)) {
        all = json_object_new_array();
        sim_json_set(sim_json_child(v, "metadata"), "managedFields", all);
    }
    if (e == NULL) {
        e = json_object_new_object();
        json_object_array_add(all, e);
    }
    sim_kind_api_version(sim_call_kind(call), api);
    sim_time(call->c->sched->now_wall_ms, when);
    sim_json_set_str(e, "manager", manager);
    sim_json_set_str(e, "operation", op);
    sim_json_set_str(e, "apiVersion", api);
    sim_json_set_str(e, "time", when);
    sim_json_set_str(e, "fieldsType", "FieldsV1");
    sim_json_set(e, "fieldsV1", set);
    if (sub_of(call)[0] != '\0')
        sim_json_set_str(e, "subresource", sub_of(call));
}

void sim_fields_disown(struct json_object *v, const char *manager, const char *op,
                       struct json_object *set)
{
    struct json_object *all = entries_of(v);

    for (size_t i = sim_json_len(all); i-- > 0;) {
        struct json_object *e = json_object_array_get_idx(all, i), *rest;

        if (strcmp(sim_json_str(e, "manager"), manager) == 0 &&
            strcmp(sim_json_str(e, "operation"), op) == 0)
            continue;
        rest = sim_fields_minus(sim_json_child(e, "fieldsV1"), set);
        if (is_leaf(rest)) {
            json_object_put(rest);
            json_object_array_del_idx(all, i, 1);
        } else {
            sim_json_set(e, "fieldsV1", rest);
        }
    }
}

/* Nobody owns what is no longer there. */
static void forget_gone(struct json_object *v, struct json_object *present)
{
    struct json_object *all = entries_of(v);

    for (size_t i = sim_json_len(all); i-- > 0;) {
        struct json_object *e = json_object_array_get_idx(all, i);
        struct json_object *left = sim_fields_both(sim_json_child(e, "fieldsV1"), present);

        if (is_leaf(left)) {
            json_object_put(left);
            json_object_array_del_idx(all, i, 1);
        } else {
            sim_json_set(e, "fieldsV1", left);
        }
    }
}

void sim_fields_record(struct sim_call *call, struct json_object *old, struct json_object *v,
                       enum sim_manage how)
{
    struct json_object *before = old != NULL ? entries_of(old) : NULL, *present, *changed, *e;
    const char *op = how == SIM_MANAGE_APPLY ? "Apply" : "Update";
    char manager[128];

    sim_manager_of(call, manager);
    json_object_object_del(sim_json_child(v, "metadata"), "managedFields");
    if (before != NULL)
        sim_json_set(sim_json_child(v, "metadata"), "managedFields", sim_json_copy(before));
    present = sim_fields_of(v);
    changed = sim_fields_differing(present, v, old);
    if (sub_of(call)[0] == '\0') /* status belongs to who writes it through its subresource */
        json_object_object_del(changed, "f:status");
    sim_fields_disown(v, manager, op, changed);
    e = sim_fields_entry(v, manager, op, sub_of(call));
    if (e != NULL)
        add_all(changed, sim_json_child(e, "fieldsV1"));
    sim_fields_own(call, v, manager, op, changed);
    forget_gone(v, present);
    json_object_put(present);
}

bool sim_fields_same_owners(struct json_object *a, struct json_object *b)
{
    struct json_object *x = entries_of(a), *y = entries_of(b);

    if (sim_json_len(x) != sim_json_len(y))
        return false;
    for (size_t i = 0; i < sim_json_len(x); i++)
        if (!sim_json_equal(sim_json_get(json_object_array_get_idx(x, i), "fieldsV1"),
                            sim_json_get(json_object_array_get_idx(y, i), "fieldsV1")))
            return false;
    return true;
}
