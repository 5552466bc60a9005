/* SPDX-License-Identifier: Apache-2.0 */
/* label_names: whether a label's key and value are well formed, in the words of kube-apiserver
 * (apimachinery util/validation: IsQualifiedName, IsValidLabelValue).
 * Errors: KR_EINVAL with the reason. Pure. */
#ifndef KR_KUBE_LABEL_NAMES_H
#define KR_KUBE_LABEL_NAMES_H

#include "base/bytes.h"
#include "base/note.h"

int kr_label_key_check(struct kr_bytes key, struct kr_note *why);
int kr_label_value_check(struct kr_bytes value, struct kr_note *why);

#endif
