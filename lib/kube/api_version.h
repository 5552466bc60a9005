/* SPDX-License-Identifier: Apache-2.0 */
/* api_version: the order of API versions, newest first: v2, v1, v1beta2, v1beta1, v1alpha1, then
 * what does not look like that, by its bytes
 * (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority).
 * Pure. */
#ifndef KR_KUBE_API_VERSION_H
#define KR_KUBE_API_VERSION_H

#include "base/bytes.h"

/* < 0: a comes before b (it is newer). */
int kr_api_version_compare(struct kr_bytes a, struct kr_bytes b);

#endif
