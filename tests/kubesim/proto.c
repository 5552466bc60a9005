/* SPDX-License-Identifier: Apache-2.0 */
#include "proto.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static int put_varint(struct kr_buf *out, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;

    do {
        bytes[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v != 0);
    return kr_buf_append(out, kr_bytes_of(bytes, n));
}

int sim_proto_bytes(struct kr_buf *out, unsigned field, struct kr_bytes value)
{
    int rc = put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);

    if (rc == 0)
        rc = put_varint(out, value.n);
    return rc != 0 ? rc : kr_buf_append(out, value);
}

int sim_proto_str(struct kr_buf *out, unsigned field, const char *value)
{
    return sim_proto_bytes(out, field, kr_bytes_str(value));
}

int sim_proto_bool(struct kr_buf *out, unsigned field, bool value)
{
    int rc = put_varint(out, (uint64_t)field << 3 | WIRE_VARINT);

    return rc != 0 ? rc : put_varint(out, value);
}

static bool get_varint(struct kr_bytes *in, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; in->n != 0 && shift < 64; shift += 7) {
        uint8_t b = in->p[0];

        *in = kr_bytes_skip(*in, 1);
        *v |= (uint64_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0)
            return true;
    }
    return false;
}

struct kr_bytes sim_proto_find(struct kr_bytes message, unsigned field)
{
    uint64_t tag, n;

    while (message.n != 0 && get_varint(&message, &tag)) {
        size_t fixed = (tag & 7) == WIRE_64 ? 8 : 4;

        if ((tag & 7) == WIRE_VARINT) {
            if (!get_varint(&message, &n))
                break;
            continue;
        }
        if ((tag & 7) == WIRE_BYTES) {
            if (!get_varint(&message, &n) || n > message.n)
                break;
            if (tag >> 3 == field)
                return kr_bytes_of(message.p, (size_t)n);
            fixed = (size_t)n;
        } else if ((tag & 7) != WIRE_64 && (tag & 7) != WIRE_32) {
            break;
        }
        if (fixed > message.n)
            break;
        message = kr_bytes_skip(message, fixed);
    }
    return kr_bytes_of(NULL, 0);
}
