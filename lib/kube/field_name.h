/* SPDX-License-Identifier: Apache-2.0 */
/* field_name: the one object that a field selector names, as kube-apiserver finds it before it
 * authorizes (apimachinery fields/selector.go ParseSelector, RequiresExactMatch; requestinfo.go).
 * Memory: an escaped value is unescaped into the arena. Pure. */
#ifndef KR_KUBE_FIELD_NAME_H
#define KR_KUBE_FIELD_NAME_H

#include "base/arena.h"
#include "base/bytes.h"

/* KR_EINVAL if the selector does not parse, KR_ENOMEM. `name` stays empty if metadata.name is not
 * pinned, or to something that is no path segment. */
int kr_field_name(struct kr_bytes selector, struct kr_arena *arena, struct kr_bytes *name);

#endif
