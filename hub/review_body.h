/* SPDX-License-Identifier: Apache-2.0 */
/* review_body: a SelfSubjectAccessReview in Kubernetes' protobuf, as kubectl sends it from 1.32 on,
 * as the JSON that it stands for; only what is asked, `spec`. Selectors are left out.
 * Source of the numbers: k8s.io/api, authorization/v1/generated.proto, and
 * k8s.io/apimachinery, pkg/runtime/generated.proto.
 * Errors: KR_EPROTO, KR_ENOMEM, KR_ETOOBIG. Pure. */
#ifndef HUB_REVIEW_BODY_H
#define HUB_REVIEW_BODY_H

#include "base/buf.h"
#include "base/bytes.h"

/* Appends to *json. */
int hub_review_body_to_json(struct kr_bytes body, struct kr_buf *json);
/* The same for a SelfSubjectRulesReview. */
int hub_rules_body_to_json(struct kr_bytes body, struct kr_buf *json);

#endif
