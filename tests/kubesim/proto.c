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

bool sim_proto_next(struct kr_bytes *message, struct sim_proto_field *out)
{
    uint64_t tag, n;

    *out = (struct sim_proto_field){0};
    if (message->n == 0 || !get_varint(message, &tag) || tag >> 3 > UINT32_MAX)
        return false;
    out->number = (unsigned)(tag >> 3);
    switch (tag & 7) {
    case WIRE_VARINT:
        return get_varint(message, &out->varint);
    case WIRE_64:
        n = 8;
        break;
    case WIRE_32:
        n = 4;
        break;
    case WIRE_BYTES:
        if (!get_varint(message, &n))
            return false;
        break;
    default:
        return false;
    }
    if (n > message->n)
        return false;
    if ((tag & 7) == WIRE_BYTES)
        out->bytes = kr_bytes_of(message->p, (size_t)n);
    *message = kr_bytes_skip(*message, (size_t)n);
    return true;
}

struct kr_bytes sim_proto_find(struct kr_bytes message, unsigned field)
{
    struct sim_proto_field f;

    while (sim_proto_next(&message, &f))
        if (f.number == field && f.bytes.p != NULL)
            return f.bytes;
    return kr_bytes_of(NULL, 0);
}
