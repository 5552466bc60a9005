/* SPDX-License-Identifier: Apache-2.0 */
/* enroll_messages: the messages of the service Enrollment (proto/kuberelay/v1/kuberelay.proto), as
 * plain structs and as protobuf bytes.
 * Decoding never trusts: texts are words of a bounded length, the rest is bounded by the message.
 * Memory: decoded text and bytes borrow `in`. Errors: KR_EPROTO, KR_ETOOBIG, with a note; encoding:
 * those of kr_buf. Pure. */
#ifndef KR_WIRE_ENROLL_MESSAGES_H
#define KR_WIRE_ENROLL_MESSAGES_H

#include "base/buf.h"
#include "base/note.h"

#define KR_GRPC_JOIN "/kuberelay.v1.Enrollment/Join"
#define KR_GRPC_RENEW "/kuberelay.v1.Enrollment/Renew"
#define KR_ENROLL_REQUEST_MAX (16u * 1024)
#define KR_ENROLL_ANSWER_MAX (256u * 1024)

struct kr_join_request {
    struct kr_bytes token;
    struct kr_bytes csr;
    struct kr_bytes instance; /* may be empty */
};

struct kr_renew_request {
    struct kr_bytes csr;
    uint64_t generation;
};

struct kr_enroll_answer { /* JoinResponse and RenewResponse */
    struct kr_bytes chain;
    struct kr_bytes bundle;
    uint64_t bundle_generation;
    uint64_t generation;
    bool pending; /* of JoinResponse only */
};

int kr_join_request_encode(const struct kr_join_request *m, struct kr_buf *out);
int kr_join_request_decode(struct kr_join_request *m, struct kr_bytes in, struct kr_note *why);
int kr_renew_request_encode(const struct kr_renew_request *m, struct kr_buf *out);
int kr_renew_request_decode(struct kr_renew_request *m, struct kr_bytes in, struct kr_note *why);
int kr_enroll_answer_encode(const struct kr_enroll_answer *m, struct kr_buf *out);
int kr_enroll_answer_decode(struct kr_enroll_answer *m, struct kr_bytes in, struct kr_note *why);

#endif
