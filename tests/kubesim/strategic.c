/* SPDX-License-Identifier: Apache-2.0 */
/* The strategic merge patch, as far as kubectl needs it: lists are merged by their keys, and the
 * directives $patch, $setElementOrder, $deleteFromPrimitiveList and $retainKeys are understood.
 * https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
 * Recursion follows trees that sim_json_parse bounded in depth. */
#include <stdio.h>

#include "object.h"

static const struct {
    const char *field;
    const char *key;
} merge_keys[] = {
    {"containers", "name"},
    {"initContainers", "name"},
    {"ephemeralContainers", "name"},
    {"volumes", "name"},
    {"env", "name"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"imagePullSecrets", "name"},
    {"secrets", "name"},
    {"hostAliases", "ip"},
    {"conditions", "type"},
    {"ownerReferences", "uid"},
    {"addresses", "type"},
    {"podIPs", "ip"},
    {"hostIPs", "ip"},
    {"topologySpreadConstraints", "topologyKey"},
    {"taints", "key"},
    {"resourceClaims", "name"},
};

const char *sim_merge_key(const char *field, struct json_object *item)
{
    if (!sim_json_is_object(item))
        return NULL;
    if (strcmp(field, "ports") == 0)
        return sim_json_get(item, "containerPort") != NULL ? "containerPort" : "port";
    for (size_t i = 0; i < sizeof merge_keys / sizeof *merge_keys; i++)
        if (strcmp(merge_keys[i].field, field) == 0)
            return merge_keys[i].key;
    return NULL;
}

bool sim_is_set(const char *field)
{
    return strcmp(field, "finalizers") == 0;
}

size_t sim_find_item(struct json_object *list, const char *key, struct json_object *like)
{
    struct json_object *wanted = sim_json_get(like, key);

    for (size_t i = 0; wanted != NULL && i < sim_json_len(list); i++)
        if (sim_json_equal(sim_json_get(json_object_array_get_idx(list, i), key), wanted))
            return i;
    return SIZE_MAX;
}

static bool is_directive(const char *key)
{
    return key[0] == '$';
}

/* A copy without directives and nulls: what a patch means where nothing was before. */
static struct json_object *fresh(struct json_object *patch)
{
    if (!sim_json_is_object(patch))
        return sim_json_copy(patch);
    return sim_patch_strategic(json_object_new_object(), patch);
}

static void merge_item(struct json_object *list, const char *key, struct json_object *item)
{
    size_t at = sim_find_item(list, key, item);
    const char *directive = sim_json_str(item, "$patch");

    if (strcmp(directive, "delete") == 0) {
        if (at != SIZE_MAX)
            json_object_array_del_idx(list, at, 1);
    } else if (at == SIZE_MAX) {
        json_object_array_add(list, fresh(item));
    } else if (strcmp(directive, "replace") == 0) {
        json_object_array_put_idx(list, at, fresh(item));
    } else {
        struct json_object *have = json_object_array_get_idx(list, at);

        json_object_array_put_idx(list, at, sim_patch_strategic(json_object_get(have), item));
    }
}

static bool replaces_list(struct json_object *patch)
{
    for (size_t i = 0; i < sim_json_len(patch); i++)
        if (strcmp(sim_json_str(json_object_array_get_idx(patch, i), "$patch"), "replace") == 0)
            return true;
    return false;
}

static struct json_object *without_directives(struct json_object *patch)
{
    struct json_object *out = json_object_new_array();

    for (size_t i = 0; i < sim_json_len(patch); i++) {
        struct json_object *item = json_object_array_get_idx(patch, i);

        if (sim_json_str(item, "$patch")[0] == '\0')
            json_object_array_add(out, fresh(item));
    }
    return out;
}

static bool contains(struct json_object *list, struct json_object *v)
{
    for (size_t i = 0; i < sim_json_len(list); i++)
        if (sim_json_equal(json_object_array_get_idx(list, i), v))
            return true;
    return false;
}

/* A new list of what `have` (may be NULL) becomes. */
static struct json_object *merge_list(const char *field, struct json_object *have,
                                      struct json_object *patch)
{
    const char *key =
        sim_merge_key(field, sim_json_len(patch) != 0 ? json_object_array_get_idx(patch, 0) : NULL);
    struct json_object *out;

    if (replaces_list(patch) || !sim_json_is_array(have) || (key == NULL && !sim_is_set(field)))
        return without_directives(patch);
    out = sim_json_copy(have);
    for (size_t i = 0; i < sim_json_len(patch); i++) {
        struct json_object *item = json_object_array_get_idx(patch, i);

        if (key != NULL)
            merge_item(out, key, item);
        else if (!contains(out, item))
            json_object_array_add(out, sim_json_copy(item));
    }
    return out;
}

static void delete_from_list(struct json_object *list, struct json_object *gone)
{
    for (size_t i = sim_json_len(list); i-- > 0;)
        if (contains(gone, json_object_array_get_idx(list, i)))
            json_object_array_del_idx(list, i, 1);
}

/* The items that `order` names come in its order, before all others. */
static void set_order(const char *field, struct json_object *target, struct json_object *order)
{
    struct json_object *list = sim_json_get(target, field), *out;
    const char *key =
        sim_merge_key(field, sim_json_len(order) != 0 ? json_object_array_get_idx(order, 0) : NULL);

    if (!sim_json_is_array(list))
        return;
    out = json_object_new_array();
    for (size_t i = 0; i < sim_json_len(order); i++) {
        struct json_object *like = json_object_array_get_idx(order, i);
        size_t at = key != NULL ? sim_find_item(list, key, like) : SIZE_MAX;

        if (at != SIZE_MAX)
            json_object_array_add(out, json_object_get(json_object_array_get_idx(list, at)));
        else if (key == NULL && contains(list, like))
            json_object_array_add(out, json_object_get(like));
    }
    for (size_t i = 0; i < sim_json_len(list); i++)
        if (!contains(out, json_object_array_get_idx(list, i)))
            json_object_array_add(out, json_object_get(json_object_array_get_idx(list, i)));
    sim_json_set(target, field, out);
}

static void retain_keys(struct json_object *target, struct json_object *keys)
{
    struct json_object *copy = sim_json_copy(target);

    json_object_object_foreach(copy, key, value)
    {
        struct json_object *name = json_object_new_string(key);

        (void)value;
        if (!contains(keys, name))
            json_object_object_del(target, key);
        json_object_put(name);
    }
    json_object_put(copy);
}

static void run_directive(struct json_object *target, const char *key, struct json_object *value)
{
    if (strncmp(key, "$deleteFromPrimitiveList/", 25) == 0)
        delete_from_list(sim_json_get(target, key + 25), value);
    else if (strncmp(key, "$setElementOrder/", 17) == 0)
        set_order(key + 17, target, value);
    else if (strcmp(key, "$retainKeys") == 0)
        retain_keys(target, value);
}

static void merge_key(struct json_object *target, const char *key, struct json_object *value)
{
    struct json_object *have = sim_json_get(target, key);

    if (value == NULL)
        json_object_object_del(target, key);
    else if (sim_json_is_array(value))
        sim_json_set(target, key, merge_list(key, have, value));
    else if (sim_json_is_object(value) && sim_json_is_object(have))
        sim_json_set(target, key, sim_patch_strategic(json_object_get(have), value));
    else
        sim_json_set(target, key, fresh(value));
}

/* Takes `target`, returns what it became. */
struct json_object *sim_patch_strategic(struct json_object *target, struct json_object *patch)
{
    const char *directive = sim_json_str(patch, "$patch");

    if (strcmp(directive, "replace") == 0 || strcmp(directive, "delete") == 0) {
        struct json_object *copy = sim_json_copy(patch);

        json_object_object_del(copy, "$patch");
        json_object_put(target);
        if (strcmp(directive, "delete") == 0) {
            json_object_put(copy);
            copy = json_object_new_object();
        }
        return copy;
    }
    json_object_object_foreach(patch, key, value)
    {
        if (!is_directive(key))
            merge_key(target, key, value);
    }
    /* Orders and deletions go last: they speak of the merged lists. */
    json_object_object_foreach(patch, name, more)
    {
        if (is_directive(name))
            run_directive(target, name, more);
    }
    return target;
}
