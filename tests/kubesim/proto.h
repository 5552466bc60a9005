/* SPDX-License-Identifier: Apache-2.0 */
/* proto: as much of the protocol buffers encoding as the simulator needs: writing messages from
 * the inside out, and reading fields of known numbers.
 * https://protobuf.dev/programming-guides/encoding/ */
#ifndef SIM_PROTO_H
#define SIM_PROTO_H

#include "base/buf.h"

int sim_proto_bytes(struct kr_buf *out, unsigned field, struct kr_bytes value);
int sim_proto_str(struct kr_buf *out, unsigned field, const char *value);
int sim_proto_bool(struct kr_buf *out, unsigned field, bool value);
/* The first length-delimited field of that number; .p NULL: none (or the message is malformed). */
struct kr_bytes sim_proto_find(struct kr_bytes message, unsigned field);

struct sim_proto_field {
    unsigned number;
    uint64_t varint;       /* of a varint field */
    struct kr_bytes bytes; /* of a length-delimited field */
};

/* Takes the next field off the front; false at the end, or where the message is malformed. Fields
 * of fixed width are passed with neither value. */
bool sim_proto_next(struct kr_bytes *message, struct sim_proto_field *out);

#endif
