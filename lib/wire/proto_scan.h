/* SPDX-License-Identifier: Apache-2.0 */
/* proto_scan: protobuf's wire format (protobuf.dev "Encoding"), field by field, one level deep.
 * Memory: values borrow the message. Pure; no recursion. */
#ifndef KR_WIRE_PROTO_SCAN_H
#define KR_WIRE_PROTO_SCAN_H

#include "base/buf.h"
#include "base/bytes.h"

enum kr_proto_type { /* wire types; groups (3 and 4) are refused */
                     KR_PROTO_VARINT = 0,
                     KR_PROTO_FIXED64 = 1,
                     KR_PROTO_BYTES = 2,
                     KR_PROTO_FIXED32 = 5,
};

struct kr_proto_field {
    uint32_t number;
    enum kr_proto_type type;
    uint64_t varint;       /* KR_PROTO_VARINT */
    struct kr_bytes bytes; /* KR_PROTO_BYTES */
};

/* Takes one field off the front of a non-empty `in`. 0 or KR_EPROTO. */
int kr_proto_next(struct kr_bytes *in, struct kr_proto_field *field);
/* Takes one varint off the front (an element of a packed list). 0 or KR_EPROTO. */
int kr_proto_take_varint(struct kr_bytes *in, uint64_t *v);

/* Appenders; a field with proto3's default value (0, empty) is left out by the first two. */
int kr_proto_put_varint(struct kr_buf *out, uint32_t number, uint64_t v);
int kr_proto_put_bytes(struct kr_buf *out, uint32_t number, struct kr_bytes v);
/* An element of a repeated field: written also when it is empty. */
int kr_proto_put_element(struct kr_buf *out, uint32_t number, struct kr_bytes v);
/* Only the key and the length: n bytes of the message follow. */
int kr_proto_put_length(struct kr_buf *out, uint32_t number, size_t n);
/* Makes what was appended since out->n was `start` an element (a message within the message). */
int kr_proto_wrap(struct kr_buf *out, uint32_t number, size_t start);
/* How long kr_proto_put_element's output is. */
size_t kr_proto_element_size(uint32_t number, size_t n);
/* Written also when it is 0. */
int kr_proto_put_fixed64(struct kr_buf *out, uint32_t number, uint64_t v);
/* Packed lists; nothing for an empty one. */
int kr_proto_put_fixed64s(struct kr_buf *out, uint32_t number, const uint64_t *v, size_t n);
int kr_proto_put_varints(struct kr_buf *out, uint32_t number, const uint32_t *v, size_t n);
size_t kr_proto_varint_size(uint64_t v);

#endif
