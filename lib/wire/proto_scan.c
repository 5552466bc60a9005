/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/proto_scan.h"

#include "base/err.h"

#define NUMBER_MAX ((1u << 29) - 1)

int kr_proto_take_varint(struct kr_bytes *in, uint64_t *v)
{
    *v = 0;
    for (unsigned i = 0; i < 10 && i < in->n; i++) {
        uint8_t c = in->p[i];

        if (i == 9 && c > 1)
            return KR_EPROTO; /* more than 64 bits */
        *v |= (uint64_t)(c & 0x7F) << (7 * i);
        if ((c & 0x80) == 0) {
            *in = kr_bytes_skip(*in, i + 1);
            return 0;
        }
    }
    return KR_EPROTO;
}

static int take_run(struct kr_bytes *in, uint64_t n, struct kr_bytes *run)
{
    if (n > in->n)
        return KR_EPROTO;
    *run = kr_bytes_of(in->p, (size_t)n);
    *in = kr_bytes_skip(*in, (size_t)n);
    return 0;
}

int kr_proto_next(struct kr_bytes *in, struct kr_proto_field *field)
{
    uint64_t key;
    int rc = kr_proto_take_varint(in, &key);

    *field = (struct kr_proto_field){.number = 0};
    if (rc != 0 || key >> 3 == 0 || key >> 3 > NUMBER_MAX)
        return KR_EPROTO;
    field->number = (uint32_t)(key >> 3);
    field->type = (enum kr_proto_type)(key & 7);
    switch (key & 7) {
    case KR_PROTO_VARINT:
        return kr_proto_take_varint(in, &field->varint);
    case KR_PROTO_FIXED64:
        return take_run(in, 8, &field->bytes);
    case KR_PROTO_FIXED32:
        return take_run(in, 4, &field->bytes);
    case KR_PROTO_BYTES:
        rc = kr_proto_take_varint(in, &field->varint);
        return rc == 0 ? take_run(in, field->varint, &field->bytes) : rc;
    default:
        return KR_EPROTO;
    }
}

size_t kr_proto_varint_size(uint64_t v)
{
    size_t n = 1;

    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static void put_raw(struct kr_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        out->p[out->n++] = (uint8_t)(v | 0x80);
    out->p[out->n++] = (uint8_t)v;
}

static uint64_t key_of(uint32_t number, enum kr_proto_type type)
{
    return (uint64_t)number << 3 | (uint64_t)type;
}

int kr_proto_put_varint(struct kr_buf *out, uint32_t number, uint64_t v)
{
    int rc;

    if (v == 0)
        return 0;
    rc = kr_buf_reserve(out, 15);
    if (rc != 0)
        return rc;
    put_raw(out, key_of(number, KR_PROTO_VARINT));
    put_raw(out, v);
    return 0;
}

int kr_proto_put_length(struct kr_buf *out, uint32_t number, size_t n)
{
    int rc = kr_buf_reserve(out, 15);

    if (rc != 0)
        return rc;
    put_raw(out, key_of(number, KR_PROTO_BYTES));
    put_raw(out, n);
    return 0;
}

int kr_proto_put_element(struct kr_buf *out, uint32_t number, struct kr_bytes v)
{
    int rc = kr_proto_put_length(out, number, v.n);

    return rc == 0 ? kr_buf_append(out, v) : rc;
}

int kr_proto_wrap(struct kr_buf *out, uint32_t number, size_t start)
{
    size_t n = out->n - start;
    size_t head = kr_proto_element_size(number, n) - n;
    int rc = kr_buf_reserve(out, head);

    if (rc != 0)
        return rc;
    memmove(out->p + start + head, out->p + start, n);
    out->n = start;
    put_raw(out, key_of(number, KR_PROTO_BYTES));
    put_raw(out, n);
    out->n += n;
    return 0;
}

int kr_proto_put_bytes(struct kr_buf *out, uint32_t number, struct kr_bytes v)
{
    return v.n == 0 ? 0 : kr_proto_put_element(out, number, v);
}

size_t kr_proto_element_size(uint32_t number, size_t n)
{
    return kr_proto_varint_size(key_of(number, KR_PROTO_BYTES)) + kr_proto_varint_size(n) + n;
}

static void put_le64(struct kr_buf *out, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        out->p[out->n++] = (uint8_t)(v >> (8 * i));
}

int kr_proto_put_fixed64(struct kr_buf *out, uint32_t number, uint64_t v)
{
    int rc = kr_buf_reserve(out, 5 + 8);

    if (rc != 0)
        return rc;
    put_raw(out, key_of(number, KR_PROTO_FIXED64));
    put_le64(out, v);
    return 0;
}

int kr_proto_put_fixed64s(struct kr_buf *out, uint32_t number, const uint64_t *v, size_t n)
{
    int rc = n != 0 ? kr_proto_put_length(out, number, 8 * n) : 0;

    if (rc == 0)
        rc = kr_buf_reserve(out, 8 * n);
    for (size_t i = 0; i < n && rc == 0; i++)
        put_le64(out, v[i]);
    return rc;
}

int kr_proto_put_varints(struct kr_buf *out, uint32_t number, const uint32_t *v, size_t n)
{
    size_t size = 0;
    int rc;

    for (size_t i = 0; i < n; i++)
        size += kr_proto_varint_size(v[i]);
    rc = n != 0 ? kr_proto_put_length(out, number, size) : 0;
    if (rc == 0)
        rc = kr_buf_reserve(out, size);
    for (size_t i = 0; i < n && rc == 0; i++)
        put_raw(out, v[i]);
    return rc;
}
