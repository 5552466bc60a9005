/* SPDX-License-Identifier: Apache-2.0 */
/* json: short words for json-c trees.
 * Memory: sim_json_get and friends lend; sim_json_parse, sim_json_copy give a reference away.
 * Limits: a document nests at most SIM_JSON_DEPTH deep, which bounds every recursion over a tree.
 */
#ifndef SIM_JSON_H
#define SIM_JSON_H

#include <json-c/json.h>

#include "base/buf.h"

#define SIM_JSON_DEPTH 64

/* NULL: not one JSON value of acceptable depth. */
struct json_object *sim_json_parse(struct kr_bytes text);
struct json_object *sim_json_copy(struct json_object *v);
/* Appends the compact text. */
int sim_json_print(struct json_object *v, struct kr_buf *out);

/* The value at a dotted path of object keys ("metadata.name"); NULL if there is none. */
struct json_object *sim_json_at(struct json_object *v, const char *path);
/* A key that may hold dots. */
struct json_object *sim_json_get(struct json_object *v, const char *key);
/* The text at a path; "" if there is none or it is not a string. */
const char *sim_json_str(struct json_object *v, const char *path);
int64_t sim_json_int(struct json_object *v, const char *path, int64_t otherwise);
bool sim_json_bool(struct json_object *v, const char *path);
size_t sim_json_len(struct json_object *array); /* 0 if it is no array */
bool sim_json_is_object(struct json_object *v);
bool sim_json_is_array(struct json_object *v);
bool sim_json_equal(struct json_object *a, struct json_object *b);

/* Sets a key; takes the reference. */
void sim_json_set(struct json_object *v, const char *key, struct json_object *value);
void sim_json_set_str(struct json_object *v, const char *key, const char *value);
void sim_json_set_int(struct json_object *v, const char *key, int64_t value);
/* The object under `key`, made if it is not there (or is no object). */
struct json_object *sim_json_child(struct json_object *v, const char *key);
/* Appends a quoted JSON string. */
int sim_json_quote(struct kr_buf *out, struct kr_bytes text);

#endif
