/* SPDX-License-Identifier: Apache-2.0 */
/* json_apply: JSON Patch (RFC 6902) by json-c, to hold what kr_json_diff writes against. Objects
 * are trees here, so it is slow and recursive, and has nothing in common with what it checks. */
#ifndef TESTS_JSON_APPLY_H
#define TESTS_JSON_APPLY_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

static inline struct json_object *tree_of(struct kr_bytes text)
{
    struct json_tokener *t = json_tokener_new_ex(128);
    struct json_object *o = json_tokener_parse_ex(t, (const char *)text.p, (int)text.n);

    json_tokener_free(t);
    return o;
}

/* The next step of a pointer, unescaped (RFC 6901); false at the end. */
static inline bool pointer_step(const char **at, char *out, size_t max)
{
    size_t n = 0;

    if (**at != '/')
        return false;
    for (++*at; **at != '\0' && **at != '/'; ++*at) {
        char c = **at;

        if (c == '~') {
            ++*at;
            c = **at == '0' ? '~' : '/';
        }
        if (n + 1 < max)
            out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

/* The container that the pointer's last step is in; NULL if there is none. */
static inline struct json_object *pointer_parent(struct json_object *root, const char *path,
                                                 char *last, size_t max)
{
    struct json_object *o = root;

    if (!pointer_step(&path, last, max))
        return NULL;
    while (*path != '\0') {
        if (json_object_is_type(o, json_type_array))
            o = json_object_array_get_idx(o, strtoul(last, NULL, 10));
        else if (!json_object_object_get_ex(o, last, &o))
            return NULL;
        if (o == NULL || !pointer_step(&path, last, max))
            return NULL;
    }
    return o;
}

static inline bool array_insert(struct json_object *array, size_t at, struct json_object *value)
{
    size_t n = json_object_array_length(array);

    if (at > n)
        return false;
    json_object_array_add(array, NULL);
    for (size_t i = n; i > at; i--)
        json_object_array_put_idx(array, i,
                                  json_object_get(json_object_array_get_idx(array, i - 1)));
    json_object_array_put_idx(array, at, value);
    return true;
}

static inline bool apply_add(struct json_object *in, const char *last, struct json_object *value)
{
    if (json_object_is_type(in, json_type_array))
        return array_insert(in, strtoul(last, NULL, 10), value);
    return json_object_is_type(in, json_type_object) &&
           json_object_object_add(in, last, value) == 0;
}

/* Removes; *out (may be NULL) gets what was there. */
static inline bool apply_remove(struct json_object *in, const char *last, struct json_object **out)
{
    struct json_object *old = NULL;

    if (json_object_is_type(in, json_type_array)) {
        size_t i = strtoul(last, NULL, 10);

        if (i >= json_object_array_length(in))
            return false;
        old = json_object_get(json_object_array_get_idx(in, i));
        json_object_array_del_idx(in, i, 1);
    } else {
        if (!json_object_object_get_ex(in, last, &old))
            return false;
        json_object_get(old);
        json_object_object_del(in, last);
    }
    if (out != NULL)
        *out = old;
    else
        json_object_put(old);
    return true;
}

static inline const char *text_member(struct json_object *o, const char *name)
{
    struct json_object *v;

    return json_object_object_get_ex(o, name, &v) ? json_object_get_string(v) : "";
}

static inline bool apply_one(struct json_object *root, struct json_object *op)
{
    char last[4096];
    char from[4096];
    const char *what = text_member(op, "op");
    struct json_object *in = pointer_parent(root, text_member(op, "path"), last, sizeof last);
    struct json_object *value = NULL;

    if (in == NULL)
        return false;
    json_object_object_get_ex(op, "value", &value);
    if (strcmp(what, "remove") == 0)
        return apply_remove(in, last, NULL);
    if (strcmp(what, "add") == 0)
        return apply_add(in, last, json_object_get(value));
    if (strcmp(what, "replace") == 0)
        return apply_remove(in, last, NULL) && apply_add(in, last, json_object_get(value));
    if (strcmp(what, "move") == 0) {
        struct json_object *parent =
            pointer_parent(root, text_member(op, "from"), from, sizeof from);

        return parent != NULL && apply_remove(parent, from, &value) && apply_add(in, last, value);
    }
    return false;
}

/* Index of the operation that failed, or -1. */
static inline int apply_patch(struct json_object *root, struct json_object *patch)
{
    for (size_t i = 0; i < json_object_array_length(patch); i++) {
        if (!apply_one(root, json_object_array_get_idx(patch, i)))
            return (int)i;
    }
    return -1;
}

#endif
