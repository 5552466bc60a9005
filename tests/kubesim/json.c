/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <stdio.h>

struct json_object *sim_json_parse(struct kr_bytes text)
{
    struct json_tokener *tok = json_tokener_new_ex(SIM_JSON_DEPTH);
    struct json_object *v;
    size_t end;

    if (tok == NULL || text.n > INT32_MAX)
        return NULL;
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    v = json_tokener_parse_ex(tok, (const char *)text.p, (int)text.n);
    /* A lone number or literal ends only with the byte behind it. */
    if (v == NULL && json_tokener_get_error(tok) == json_tokener_continue)
        v = json_tokener_parse_ex(tok, "", 1);
    end = json_tokener_get_parse_end(tok);
    if (json_tokener_get_error(tok) != json_tokener_success) {
        json_object_put(v);
        v = NULL;
    }
    while (v != NULL && end < text.n && strchr(" \t\r\n", text.p[end]) != NULL && text.p[end] != 0)
        end++;
    if (v != NULL && end < text.n) {
        json_object_put(v);
        v = NULL;
    }
    json_tokener_free(tok);
    return v;
}

struct json_object *sim_json_copy(struct json_object *v)
{
    struct json_object *copy = NULL;

    if (v == NULL || json_object_deep_copy(v, &copy, NULL) != 0)
        return NULL;
    return copy;
}

int sim_json_print(struct json_object *v, struct kr_buf *out)
{
    size_t n = 0;
    const char *text = json_object_to_json_string_length(
        v, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &n);

    return kr_buf_append(out, kr_bytes_of(text, n));
}

struct json_object *sim_json_get(struct json_object *v, const char *key)
{
    struct json_object *found = NULL;

    if (json_object_is_type(v, json_type_object))
        json_object_object_get_ex(v, key, &found);
    return found;
}

struct json_object *sim_json_at(struct json_object *v, const char *path)
{
    char key[64];

    while (v != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");

        snprintf(key, sizeof key, "%.*s", (int)n, path);
        v = sim_json_get(v, key);
        path += n + (path[n] == '.');
    }
    return v;
}

const char *sim_json_str(struct json_object *v, const char *path)
{
    struct json_object *found = sim_json_at(v, path);

    return json_object_is_type(found, json_type_string) ? json_object_get_string(found) : "";
}

int64_t sim_json_int(struct json_object *v, const char *path, int64_t otherwise)
{
    struct json_object *found = sim_json_at(v, path);

    return json_object_is_type(found, json_type_int) ? json_object_get_int64(found) : otherwise;
}

bool sim_json_bool(struct json_object *v, const char *path)
{
    struct json_object *found = sim_json_at(v, path);

    return json_object_is_type(found, json_type_boolean) && json_object_get_boolean(found);
}

size_t sim_json_len(struct json_object *array)
{
    return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

bool sim_json_is_object(struct json_object *v)
{
    return v != NULL && json_object_is_type(v, json_type_object);
}

bool sim_json_is_array(struct json_object *v)
{
    return v != NULL && json_object_is_type(v, json_type_array);
}

bool sim_json_equal(struct json_object *a, struct json_object *b)
{
    return a == b || (a != NULL && b != NULL && json_object_equal(a, b));
}

void sim_json_set(struct json_object *v, const char *key, struct json_object *value)
{
    json_object_object_add(v, key, value);
}

void sim_json_set_str(struct json_object *v, const char *key, const char *value)
{
    json_object_object_add(v, key, json_object_new_string(value));
}

void sim_json_set_int(struct json_object *v, const char *key, int64_t value)
{
    json_object_object_add(v, key, json_object_new_int64(value));
}

struct json_object *sim_json_child(struct json_object *v, const char *key)
{
    struct json_object *child = sim_json_get(v, key);

    if (sim_json_is_object(child))
        return child;
    child = json_object_new_object();
    json_object_object_add(v, key, child);
    return child;
}

int sim_json_quote(struct kr_buf *out, struct kr_bytes text)
{
    struct json_object *s = json_object_new_string_len((const char *)text.p, (int)text.n);
    int rc = sim_json_print(s, out);

    json_object_put(s);
    return rc;
}
