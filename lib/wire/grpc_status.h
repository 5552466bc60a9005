/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_status: gRPC's status numbers, what HTTP answers and broken streams mean in them, and how
 * their text is written in a header field (gRPC over HTTP/2, "Responses", "Errors").
 * Errors: those of kr_buf. Pure. */
#ifndef KR_WIRE_GRPC_STATUS_H
#define KR_WIRE_GRPC_STATUS_H

#include "base/buf.h"
#include "base/bytes.h"

enum kr_grpc_status { /* https://grpc.io/docs/guides/status-codes/ */
                      KR_GRPC_OK = 0,
                      KR_GRPC_CANCELLED = 1,
                      KR_GRPC_UNKNOWN = 2,
                      KR_GRPC_INVALID_ARGUMENT = 3,
                      KR_GRPC_PERMISSION_DENIED = 7,
                      KR_GRPC_RESOURCE_EXHAUSTED = 8,
                      KR_GRPC_FAILED_PRECONDITION = 9,
                      KR_GRPC_UNIMPLEMENTED = 12,
                      KR_GRPC_INTERNAL = 13,
                      KR_GRPC_UNAVAILABLE = 14,
                      KR_GRPC_UNAUTHENTICATED = 16,
};

/* For an HTTP status that is not 200. */
int kr_grpc_status_of_http(int http);
/* For an exchange that ended with rc (base/err.h); `reset_code` counts with KR_ERESET. */
int kr_grpc_status_of_end(int rc, uint32_t reset_code);

/* grpc-message: percent-encoding of everything but 0x20-0x7E without '%'. */
int kr_grpc_message_encode(struct kr_bytes text, struct kr_buf *out);
/* The other way; a broken escape stays as it is. */
int kr_grpc_message_decode(struct kr_bytes value, struct kr_buf *out);

#endif
