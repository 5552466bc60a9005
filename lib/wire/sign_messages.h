/* SPDX-License-Identifier: Apache-2.0 */
/* sign_messages: the messages of the service Signer (proto/kuberelay/v1/kuberelay.proto), as plain
 * structs and as protobuf bytes. Decoding never trusts.
 * Memory: decoded bytes borrow `in`. Errors: KR_EPROTO, KR_ETOOBIG, with a note; encoding: those of
 * kr_buf. Pure. */
#ifndef KR_WIRE_SIGN_MESSAGES_H
#define KR_WIRE_SIGN_MESSAGES_H

#include "base/buf.h"
#include "base/note.h"

#define KR_GRPC_SIGN "/kuberelay.v1.Signer/Sign"
#define KR_SIGN_REQUEST_MAX (16u * 1024)
#define KR_SIGN_ANSWER_MAX (64u * 1024)

struct kr_sign_request {
    struct kr_bytes uri;
    struct kr_bytes csr;
    uint64_t lifetime_s;
};

struct kr_sign_answer {
    struct kr_bytes chain; /* PEM */
};

int kr_sign_request_encode(const struct kr_sign_request *m, struct kr_buf *out);
int kr_sign_request_decode(struct kr_sign_request *m, struct kr_bytes in, struct kr_note *why);
int kr_sign_answer_encode(const struct kr_sign_answer *m, struct kr_buf *out);
int kr_sign_answer_decode(struct kr_sign_answer *m, struct kr_bytes in, struct kr_note *why);

#endif
