/* SPDX-License-Identifier: Apache-2.0 */
/* object: what happens to an object on its way into the store: read from a body, checked, given
 * the defaults and the metadata that the API server gives, committed. */
#ifndef SIM_OBJECT_H
#define SIM_OBJECT_H

#include "api.h"

/* The body as a tree (JSON or YAML by content type); NULL and the answer (400, 415). */
struct json_object *sim_object_read(struct sim_call *call);
/* Kind, apiVersion and namespace: filled in if absent, 400 if they differ from the path. */
int sim_object_check(struct sim_call *call, struct json_object *v);
/* 0 or the answer (422): a name that the API server would not take. */
int sim_object_check_name(struct sim_call *call, const char *name);
/* 0 or the answer (400, 422): unknown fields, labels, empty pods; validate.c. */
int sim_object_validate(struct sim_call *call, struct json_object *v);
/* Defaults of the kinds that need some to look right. */
void sim_object_defaults(struct sim_call *call, struct json_object *v);
/* The keys in the order of the API server: kind, apiVersion, metadata, spec, status, others last.
 * Takes `v`, returns a new tree. */
struct json_object *sim_object_order(struct json_object *v);

enum sim_manage { SIM_MANAGE_UPDATE, SIM_MANAGE_APPLY };

/* Makes `v` (taken) the new object. Creates if nothing is stored under its name. */
void sim_object_create(struct sim_call *call, struct json_object *v, enum sim_manage how);
/* Replaces `old` (lent) by `v` (taken): immutable metadata kept, conflict checked, status or spec
 * protected as the subresource says, generation counted; nothing is written if nothing changed. */
void sim_object_replace(struct sim_call *call, struct json_object *old, struct json_object *v,
                        enum sim_manage how);
bool sim_is_dry_run(const struct sim_call *call);
/* fieldManager, or the first part of the user agent. */
void sim_manager_of(const struct sim_call *call, char out[128]);

/* YAML (one document) to a tree; NULL if it is none. yaml.c. */
struct json_object *sim_yaml_parse(struct kr_bytes text);

/* patch.c and strategic.c: `target` is changed in place or replaced. 0, KR_EINVAL with words in
 * `why`, KR_ENOENT for a failed "test" or a missing path. */
int sim_patch_json(struct json_object **target, struct json_object *patch, char why[256]);
struct json_object *sim_patch_merge(struct json_object *target, struct json_object *patch);
struct json_object *sim_patch_strategic(struct json_object *target, struct json_object *patch);
/* The key by which items of the list under `field` are matched; NULL: the list is one value. */
const char *sim_merge_key(const char *field, struct json_object *item);
/* Whether a list of plain values under `field` is a set ("finalizers"). */
bool sim_is_set(const char *field);
/* The item whose `key` equals that of `like`; SIZE_MAX if there is none. */
size_t sim_find_item(struct json_object *list, const char *key, struct json_object *like);

#endif
