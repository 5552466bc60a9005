/* SPDX-License-Identifier: Apache-2.0 */
/* proto_body: kube/write_body.h for bodies in Kubernetes' protobuf, which typed clients send for
 * the types that they know. No schema is needed: a body is "k8s\0" and a runtime.Unknown, in whose
 * `raw` (2) every object has its ObjectMeta as field 1, with resourceVersion (6), labels (11) and
 * annotations (12); DeleteOptions have their Preconditions as field 2, with resourceVersion (2).
 * All else stays byte for byte, but for the lengths of what encloses a change.
 * A body in which two readers could find different things is refused, as are groups and numbers of
 * fields that a reader might cut off.
 * Source of the rules: k8s.io/apimachinery, pkg/runtime/generated.proto and
 * pkg/apis/meta/v1/generated.proto; protobuf.dev "Encoding".
 * Errors: KR_EPROTO, KR_ETOOBIG, with the reason. Memory: spans of the text. Pure; no recursion. */
#ifndef KR_KUBE_PROTO_BODY_H
#define KR_KUBE_PROTO_BODY_H

#include "kube/write_body.h"

#define KR_PROTO_MEDIA_TYPE "application/vnd.kubernetes.protobuf"

/* Whether it begins as such a body does; no JSON or YAML text does. */
bool kr_proto_body_is(struct kr_bytes text);
/* `kind` is an object or DeleteOptions. A version's span takes in its length. */
int kr_proto_body_read(enum kr_body_kind kind, struct kr_bytes text, struct kr_bytes version,
                       struct kr_write_body *out, struct kr_note *why);
/* *offset is where, in what is appended, the length (0) of the emptied version stands. */
int kr_proto_body_edit(const struct kr_write_body *b, struct kr_bytes text, struct kr_buf *out,
                       uint32_t *offset);
int kr_proto_body_fill(struct kr_bytes text, uint32_t offset, struct kr_bytes version,
                       struct kr_buf *out);

#endif
