/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396), and the PATCH verb. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "fields.h"

#define OPERATIONS_MAX 10000 /* the API server's limit */

/* ---- JSON pointer */

/* Unescapes one reference token ("~1" is "/", "~0" is "~") and moves *at behind it. */
static void next_token(const char **at, char out[300])
{
    const char *p = *at + 1;
    size_t n = 0;

    for (; *p != '\0' && *p != '/' && n < 299; p++) {
        if (p[0] == '~' && (p[1] == '0' || p[1] == '1'))
            out[n++] = *++p == '1' ? '/' : '~';
        else
            out[n++] = *p;
    }
    out[n] = '\0';
    *at = p;
}

/* The index that a token means in an array of n; n for "-". -1: none. */
static int64_t index_of(const char *token, size_t n)
{
    uint64_t i;

    if (strcmp(token, "-") == 0)
        return (int64_t)n;
    return kr_bytes_to_u64(kr_bytes_str(token), n, &i) ? (int64_t)i : -1;
}

static struct json_object *child_of(struct json_object *v, const char *token)
{
    int64_t i;

    if (sim_json_is_object(v))
        return sim_json_get(v, token);
    i = sim_json_is_array(v) ? index_of(token, sim_json_len(v)) : -1;
    return i >= 0 ? json_object_array_get_idx(v, (size_t)i) : NULL;
}

/* The container of the last token; NULL if the path leads nowhere. */
static struct json_object *container_of_path(struct json_object *root, const char *path,
                                             char last[300])
{
    while (*path == '/') {
        next_token(&path, last);
        if (*path == '\0')
            return root;
        root = child_of(root, last);
    }
    return NULL;
}

static struct json_object *value_at(struct json_object *root, const char *path, bool *found)
{
    char last[300];
    struct json_object *box;

    *found = true;
    if (*path == '\0')
        return root;
    box = container_of_path(root, path, last);
    if (sim_json_is_object(box))
        *found = json_object_object_get_ex(box, last, NULL);
    else
        *found = sim_json_is_array(box) && index_of(last, sim_json_len(box)) >= 0 &&
                 index_of(last, sim_json_len(box)) < (int64_t)sim_json_len(box);
    return *found ? child_of(box, last) : NULL;
}

/* ---- JSON Patch */

static void insert_item(struct json_object *list, size_t at, struct json_object *value)
{
    size_t n = sim_json_len(list);

    json_object_array_add(list, NULL);
    for (size_t i = n; i > at; i--)
        json_object_array_put_idx(list, i, json_object_get(json_object_array_get_idx(list, i - 1)));
    json_object_array_put_idx(list, at, value);
}

/* Takes `value`. */
static int add(struct json_object **root, const char *path, struct json_object *value, bool replace)
{
    char last[300];
    struct json_object *box;
    int64_t i;

    if (*path == '\0') {
        json_object_put(*root);
        *root = value;
        return 0;
    }
    box = container_of_path(*root, path, last);
    if (sim_json_is_object(box)) {
        sim_json_set(box, last, value);
        return 0;
    }
    i = sim_json_is_array(box) ? index_of(last, sim_json_len(box)) : -1;
    if (i < 0) {
        json_object_put(value);
        return KR_ENOENT;
    }
    if (replace)
        json_object_array_put_idx(box, (size_t)i, value);
    else
        insert_item(box, (size_t)i, value);
    return 0;
}

static int remove_at(struct json_object *root, const char *path)
{
    char last[300];
    struct json_object *box = container_of_path(root, path, last);
    bool found;

    (void)value_at(root, path, &found);
    if (!found || box == NULL)
        return KR_ENOENT;
    if (sim_json_is_object(box))
        json_object_object_del(box, last);
    else
        json_object_array_del_idx(box, (size_t)index_of(last, sim_json_len(box)), 1);
    return 0;
}

static int move_or_copy(struct json_object **root, const char *path, const char *from, bool move)
{
    bool found;
    struct json_object *value = value_at(*root, from, &found), *copy;

    if (!found)
        return KR_ENOENT;
    copy = sim_json_copy(value);
    if (move && remove_at(*root, from) != 0) {
        json_object_put(copy);
        return KR_ENOENT;
    }
    return add(root, path, copy, false);
}

static int run_operation(struct json_object **root, struct json_object *op)
{
    const char *name = sim_json_str(op, "op"), *path = sim_json_str(op, "path");
    struct json_object *value = sim_json_get(op, "value"), *have;
    bool found;

    if (strcmp(name, "move") == 0 || strcmp(name, "copy") == 0)
        return move_or_copy(root, path, sim_json_str(op, "from"), name[0] == 'm');
    have = value_at(*root, path, &found);
    if (strcmp(name, "add") == 0)
        return add(root, path, sim_json_copy(value), false);
    if (strcmp(name, "replace") == 0)
        return found ? add(root, path, sim_json_copy(value), true) : KR_ENOENT;
    if (strcmp(name, "remove") == 0)
        return remove_at(*root, path);
    if (strcmp(name, "test") == 0)
        return sim_json_equal(have, value) ? 0 : KR_EDENIED;
    return KR_EINVAL;
}

int sim_patch_json(struct json_object **target, struct json_object *patch, char why[256])
{
    if (!sim_json_is_array(patch) || sim_json_len(patch) > OPERATIONS_MAX) {
        snprintf(why, 256,
                 "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp");
        return KR_EINVAL;
    }
    for (size_t i = 0; i < sim_json_len(patch); i++) {
        struct json_object *op = json_object_array_get_idx(patch, i);
        const char *name = sim_json_str(op, "op"), *path = sim_json_str(op, "path");
        int rc = run_operation(target, op);

        if (rc == KR_EINVAL)
            snprintf(why, 256, "Unexpected kind: %.100s", name);
        else if (rc == KR_EDENIED)
            snprintf(why, 256, "testing value %.200s failed: test failed", path);
        else if (rc != 0)
            snprintf(why, 256,
                     "%.20s operation does not apply: doc is missing path: \"%.150s\": "
                     "missing value",
                     name, path);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- JSON Merge Patch */

/* Takes `target`, returns what it became. Recursion: see strategic.c. */
struct json_object *sim_patch_merge(struct json_object *target, struct json_object *patch)
{
    if (!sim_json_is_object(patch)) {
        json_object_put(target);
        return sim_json_copy(patch);
    }
    if (!sim_json_is_object(target)) {
        json_object_put(target);
        target = json_object_new_object();
    }
    json_object_object_foreach(patch, key, value)
    {
        if (value == NULL)
            json_object_object_del(target, key);
        else
            sim_json_set(target, key,
                         sim_patch_merge(json_object_get(sim_json_get(target, key)), value));
    }
    return target;
}

/* ---- the verb */

enum patch_type { PATCH_JSON, PATCH_MERGE, PATCH_STRATEGIC, PATCH_APPLY, PATCH_UNKNOWN };

static enum patch_type type_of(const struct sim_call *call)
{
    struct kr_bytes type = kr_head_get(call->req->head, KR_LIT("content-type"));

    type.n = kr_bytes_find(type, ';');
    if (kr_bytes_is(type, "application/json-patch+json"))
        return PATCH_JSON;
    if (kr_bytes_is(type, "application/merge-patch+json"))
        return PATCH_MERGE;
    if (kr_bytes_is(type, "application/strategic-merge-patch+json"))
        return PATCH_STRATEGIC;
    if (kr_bytes_is(type, "application/apply-patch+yaml"))
        return PATCH_APPLY;
    return PATCH_UNKNOWN;
}

static void fail_patch(struct sim_call *call, int rc, const char *why)
{
    if (rc == KR_EINVAL)
        sim_fail_bad_request(call->out, "error decoding patch: %s", why);
    else
        sim_fail(call->out,
                 &(struct sim_failure){.code = 422, .reason = "Invalid", .empty_details = true},
                 "the server rejected our request due to an error in our request");
}

static void patch_object(struct sim_call *call, enum patch_type type, struct json_object *old,
                         struct json_object *patch)
{
    struct json_object *next = sim_json_copy(old);
    char why[256] = "";
    int rc = 0;

    if (type == PATCH_JSON) {
        rc = sim_patch_json(&next, patch, why);
    } else if (!sim_json_is_object(patch)) {
        rc = KR_EINVAL;
        snprintf(why, sizeof why,
                 "json: cannot unmarshal into Go value of type map[string]"
                 "interface {}");
    } else if (type == PATCH_MERGE) {
        next = sim_patch_merge(next, patch);
    } else {
        next = sim_patch_strategic(next, patch);
    }
    if (rc == 0 && (!sim_json_is_object(next) ||
                    strcmp(sim_json_str(next, "metadata.name"), call->route.name) != 0)) {
        rc = KR_EINVAL;
        snprintf(why, sizeof why,
                 "the name of the object does not match the name on the URL (%.180s)",
                 call->route.name);
    }
    if (rc != 0) {
        fail_patch(call, rc, why);
        json_object_put(next);
        return;
    }
    sim_object_replace(call, old, next, SIM_MANAGE_UPDATE);
}

void sim_api_patch(struct sim_call *call)
{
    enum patch_type type = type_of(call);
    struct sim_obj *o;
    struct json_object *patch, *old;

    if (type == PATCH_UNKNOWN) {
        sim_fail(call->out,
                 &(struct sim_failure){
                     .code = 415, .reason = "UnsupportedMediaType", .empty_details = true},
                 "the body of the request was in an unknown format - accepted media types include: "
                 "application/json-patch+json, application/merge-patch+json, "
                 "application/strategic-merge-patch+json, application/apply-patch+yaml");
        return;
    }
    if (type == PATCH_APPLY) {
        sim_api_apply(call);
        return;
    }
    o = sim_store_get(call->c, call->route.kind, call->route.key);
    if (o == NULL) {
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
        return;
    }
    patch = sim_json_parse(call->req->body);
    if (patch == NULL) {
        sim_fail_bad_request(call->out, "error decoding patch: the body is not one JSON value");
        return;
    }
    old = sim_rev_tree(call->c, call->route.kind, &o->rev);
    patch_object(call, type, old, patch);
    json_object_put(old);
    json_object_put(patch);
}
