/* SPDX-License-Identifier: Apache-2.0 */
/* field_types: the fields that a field selector may ask of each kind, and where in the object they
 * stand (kubernetes pkg/apis/.../conversion.go AddFieldLabelConversionFunc, and the strategies'
 * ToSelectableFields). Static tables; pure. */
#ifndef KR_KUBE_FIELD_TYPES_H
#define KR_KUBE_FIELD_TYPES_H

#include "base/bytes.h"

/* Whether the resource may be asked for it; metadata.name and metadata.namespace of all. */
bool kr_field_is_known(struct kr_bytes group, struct kr_bytes resource, struct kr_bytes field);
/* Where it stands (dots between members); the field itself if that is its path. */
struct kr_bytes kr_field_path(struct kr_bytes field);
/* What it means that it is absent: "", "0" of counts, "false" of booleans. */
const char *kr_field_absent(struct kr_bytes field);

#endif
