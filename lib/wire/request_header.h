/* SPDX-License-Identifier: Apache-2.0 */
/* request_header: the header fields kuberelay-request-bin and kuberelay-response-bin: the base64 of
 * a RelayRequest or RelayResponse, as gRPC writes binary metadata (standard alphabet; sent without
 * padding, read with or without).
 * Limits: KR_REQUEST_HEADER_MAX bytes of base64 (nghttp2 takes no field above 60 KiB).
 * Memory: decoded text lives in the arena. Errors: KR_EPROTO, KR_ETOOBIG, KR_ENOMEM. Pure. */
#ifndef KR_WIRE_REQUEST_HEADER_H
#define KR_WIRE_REQUEST_HEADER_H

#include "wire/messages.h"

#define KR_REQUEST_HEADER "kuberelay-request-bin"
#define KR_RESPONSE_HEADER "kuberelay-response-bin"
#define KR_REQUEST_HEADER_MAX (48u * 1024)

/* Append the header's value to `out`. */
int kr_request_header_write(const struct kr_relay_request *m, struct kr_buf *out);
int kr_response_header_write(const struct kr_relay_response *m, struct kr_buf *out);

int kr_request_header_read(struct kr_relay_request *m, struct kr_bytes value,
                           struct kr_arena *arena, struct kr_note *why);
int kr_response_header_read(struct kr_relay_response *m, struct kr_bytes value,
                            struct kr_arena *arena, struct kr_note *why);

#endif
