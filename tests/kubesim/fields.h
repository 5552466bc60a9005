/* SPDX-License-Identifier: Apache-2.0 */
/* fields: who set what: metadata.managedFields in a simple form, and server-side apply by it.
 * Sets of fields are trees in the FieldsV1 form: "f:name", "k:{...}" for list items with a key.
 * https://kubernetes.io/docs/reference/using-api/server-side-apply/ */
#ifndef SIM_FIELDS_H
#define SIM_FIELDS_H

#include "object.h"

/* What an object sets, without identity and bookkeeping. A new tree. */
struct json_object *sim_fields_of(struct json_object *v);
/* The part of `set` that is not in `minus`; the part that is in both. New trees. */
struct json_object *sim_fields_minus(struct json_object *set, struct json_object *minus);
struct json_object *sim_fields_both(struct json_object *a, struct json_object *b);
/* The leaves of `set` whose values differ in the two objects. A new tree. */
struct json_object *sim_fields_differing(struct json_object *set, struct json_object *a,
                                         struct json_object *b);
/* Removes the leaves of `set` from an object. */
void sim_fields_remove(struct json_object *v, struct json_object *set);
/* The managedFields entry of a manager; NULL if there is none. */
struct json_object *sim_fields_entry(struct json_object *v, const char *manager, const char *op,
                                     const char *sub);
/* Records a create (old NULL) or an update by the call's manager. */
void sim_fields_record(struct sim_call *call, struct json_object *old, struct json_object *v,
                       enum sim_manage how);
/* Puts `set` (taken) as the manager's entry; an empty set removes the entry. */
void sim_fields_own(struct sim_call *call, struct json_object *v, const char *manager,
                    const char *op, struct json_object *set);
/* Takes `set` (lent) from all entries but that of the manager and operation. */
void sim_fields_disown(struct json_object *v, const char *manager, const char *op,
                       struct json_object *set);
bool sim_fields_same_owners(struct json_object *a, struct json_object *b);

/* apply.c: PATCH with application/apply-patch+yaml. */
void sim_api_apply(struct sim_call *call);

#endif
