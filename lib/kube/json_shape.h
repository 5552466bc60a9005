/* SPDX-License-Identifier: Apache-2.0 */
/* json_shape: what kind of value a JSON text is, and whether there is anything in it. The text is
 * checked JSON without white space around it. Pure. */
#ifndef KR_KUBE_JSON_SHAPE_H
#define KR_KUBE_JSON_SHAPE_H

#include "base/bytes.h"

enum kr_shape { KR_SHAPE_OBJECT, KR_SHAPE_ARRAY, KR_SHAPE_STRING, KR_SHAPE_NULL, KR_SHAPE_OTHER };

enum kr_shape kr_shape_of(struct kr_bytes value);
static inline bool kr_shape_holds(enum kr_shape s) /* it can have something below it */
{
    return s == KR_SHAPE_OBJECT || s == KR_SHAPE_ARRAY;
}
/* Whether there is nothing but null, and objects and arrays around it. */
bool kr_is_hollow(struct kr_bytes value);
/* The same, and "", 0 and false count as nothing: what a program writes for a field of its type
 * that was never set. */
bool kr_is_vacant(struct kr_bytes value);

#endif
