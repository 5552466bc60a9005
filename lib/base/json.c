/* SPDX-License-Identifier: Apache-2.0 */
/* json-c builds the tree, but it is lenient in places and keeps the last of equal keys without a
 * word. So json_check.c checks the text against RFC 8259 first and counts the members; a tree with
 * fewer members than the text had lost some to equal keys. */
#include "base/json.h"

#include <limits.h>

#include <json-c/json.h>
#include <json-c/json_visit.h>

#include "base/err.h"

static struct json_object *from(const struct kr_json *v)
{
    return (struct json_object *)(uintptr_t)v;
}

static const struct kr_json *to(struct json_object *v)
{
    return (const struct kr_json *)v;
}

static int count_members(json_object *v, int flags, json_object *parent, const char *key,
                         size_t *index, void *owner)
{
    size_t *members = owner;

    (void)parent;
    (void)key;
    (void)index;
    if ((flags & JSON_C_VISIT_SECOND) == 0 && json_object_is_type(v, json_type_object))
        *members += (size_t)json_object_object_length(v);
    return JSON_C_VISIT_RETURN_CONTINUE;
}

static int build(struct kr_bytes text, struct json_object **out)
{
    struct json_tokener *tok = json_tokener_new_ex(KR_JSON_DEPTH + 1);
    enum json_tokener_error error;

    if (tok == NULL)
        return KR_ENOMEM;
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    *out = json_tokener_parse_ex(tok, (const char *)text.p, (int)text.n);
    error = json_tokener_get_error(tok);
    if (error == json_tokener_continue) { /* a number that ends with the text */
        *out = json_tokener_parse_ex(tok, " ", 1);
        error = json_tokener_get_error(tok);
    }
    json_tokener_free(tok);
    return error == json_tokener_success ? 0 : KR_EPROTO;
}

int kr_json_parse(struct kr_bytes text, struct kr_json **out, struct kr_note *why)
{
    struct json_object *tree = NULL;
    size_t in_text = 0;
    size_t in_tree = 0;
    int rc;

    *out = NULL;
    rc = kr_json_check(text, &in_text, why);
    if (rc != 0)
        return rc;
    rc = build(text, &tree);
    if (rc != 0)
        return kr_note_set(why, rc, "JSON: %s", kr_err_text(rc));
    if (tree == NULL)
        return kr_note_set(why, KR_EPROTO, "JSON: the document is null");
    json_c_visit(tree, 0, count_members, &in_tree);
    if (in_tree != in_text) {
        json_object_put(tree);
        return kr_note_set(why, KR_EPROTO, "JSON: a key stands twice in one object");
    }
    *out = (struct kr_json *)tree;
    return 0;
}

void kr_json_destroy(struct kr_json *doc)
{
    json_object_put(from(doc));
}

bool kr_json_is_object(const struct kr_json *v)
{
    return v != NULL && json_object_is_type(from(v), json_type_object);
}

bool kr_json_is_array(const struct kr_json *v)
{
    return v != NULL && json_object_is_type(from(v), json_type_array);
}

const struct kr_json *kr_json_get(const struct kr_json *object, const char *key)
{
    struct json_object *v = NULL;

    if (!kr_json_is_object(object) || !json_object_object_get_ex(from(object), key, &v))
        return NULL;
    return to(v);
}

size_t kr_json_len(const struct kr_json *array)
{
    return kr_json_is_array(array) ? json_object_array_length(from(array)) : 0;
}

const struct kr_json *kr_json_at(const struct kr_json *array, size_t i)
{
    return i < kr_json_len(array) ? to(json_object_array_get_idx(from(array), i)) : NULL;
}

bool kr_json_string(const struct kr_json *v, struct kr_bytes *out)
{
    if (v == NULL || !json_object_is_type(from(v), json_type_string))
        return false;
    *out =
        kr_bytes_of(json_object_get_string(from(v)), (size_t)json_object_get_string_len(from(v)));
    return true;
}

bool kr_json_int(const struct kr_json *v, int64_t *out)
{
    int64_t i;

    if (v == NULL || !json_object_is_type(from(v), json_type_int))
        return false;
    i = json_object_get_int64(from(v));
    /* json-c holds what does not fit at the ends of its range. */
    if (i == INT64_MIN || (i == INT64_MAX && json_object_get_uint64(from(v)) > INT64_MAX))
        return false;
    *out = i;
    return true;
}

bool kr_json_bool(const struct kr_json *v, bool *out)
{
    if (v == NULL || !json_object_is_type(from(v), json_type_boolean))
        return false;
    *out = json_object_get_boolean(from(v)) != 0;
    return true;
}

const char *kr_json_text(const struct kr_json *object, const char *key)
{
    struct kr_bytes v;

    if (!kr_json_string(kr_json_get(object, key), &v) || memchr(v.p, '\0', v.n) != NULL)
        return NULL;
    return (const char *)v.p;
}
