/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/request_header.h"

#include "base/err.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int kr_base64_encode(struct kr_bytes in, struct kr_buf *out)
{
    int rc = kr_buf_reserve(out, (in.n + 2) / 3 * 4);
    uint8_t *p;
    size_t i = 0;

    if (rc != 0)
        return rc;
    p = out->p + out->n;
    for (; i + 3 <= in.n; i += 3) {
        uint32_t v = (uint32_t)in.p[i] << 16 | (uint32_t)in.p[i + 1] << 8 | in.p[i + 2];

        *p++ = (uint8_t)alphabet[v >> 18];
        *p++ = (uint8_t)alphabet[v >> 12 & 63];
        *p++ = (uint8_t)alphabet[v >> 6 & 63];
        *p++ = (uint8_t)alphabet[v & 63];
    }
    if (i < in.n) {
        uint32_t v = (uint32_t)in.p[i] << 16 | (i + 1 < in.n ? (uint32_t)in.p[i + 1] << 8 : 0);

        *p++ = (uint8_t)alphabet[v >> 18];
        *p++ = (uint8_t)alphabet[v >> 12 & 63];
        if (i + 1 < in.n)
            *p++ = (uint8_t)alphabet[v >> 6 & 63];
    }
    out->n = (size_t)(p - out->p);
    return 0;
}

/* The six bits of a character; 64 for one that is not in the alphabet. */
static uint32_t six(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a' + 26);
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0' + 52);
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Takes padding off; false if it is not what the length asks for. */
static bool unpad(struct kr_bytes *in)
{
    size_t pads = 0;

    while (in->n != 0 && in->p[in->n - 1] == '=') {
        in->n--;
        pads++;
    }
    return in->n % 4 != 1 && (pads == 0 || (pads == 4 - in->n % 4 && in->n % 4 != 0));
}

int kr_base64_decode(struct kr_bytes in, struct kr_arena *arena, struct kr_bytes *out)
{
    uint32_t v = 0;
    uint32_t bad = 0;
    size_t n = 0;
    uint8_t *p;

    if (!unpad(&in))
        return KR_EPROTO;
    p = kr_arena_alloc(arena, in.n / 4 * 3 + 3);
    if (p == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < in.n; i++) {
        uint32_t bits = six(in.p[i]);

        bad |= bits & 64;
        v = v << 6 | (bits & 63);
        if (i % 4 == 3) {
            p[n++] = (uint8_t)(v >> 16);
            p[n++] = (uint8_t)(v >> 8);
            p[n++] = (uint8_t)v;
        }
    }
    if (in.n % 4 == 2) {
        bad |= v & 15;
        p[n++] = (uint8_t)(v >> 4);
    } else if (in.n % 4 == 3) {
        bad |= v & 3;
        p[n++] = (uint8_t)(v >> 10);
        p[n++] = (uint8_t)(v >> 2);
    }
    *out = kr_bytes_of(p, n);
    return bad != 0 ? KR_EPROTO : 0;
}

static int write_value(struct kr_buf *message, int rc, struct kr_buf *out)
{
    if (rc == 0)
        rc = kr_base64_encode(kr_buf_bytes(message), out);
    kr_buf_deinit(message);
    return rc;
}

int kr_request_header_write(const struct kr_relay_request *m, struct kr_buf *out)
{
    struct kr_buf message;

    kr_buf_init(&message, KR_REQUEST_HEADER_MAX / 4 * 3);
    return write_value(&message, kr_relay_request_encode(m, &message), out);
}

int kr_response_header_write(const struct kr_relay_response *m, struct kr_buf *out)
{
    struct kr_buf message;

    kr_buf_init(&message, KR_REQUEST_HEADER_MAX / 4 * 3);
    return write_value(&message, kr_relay_response_encode(m, &message), out);
}

static int read_value(struct kr_bytes value, struct kr_arena *arena, struct kr_bytes *message,
                      struct kr_note *why)
{
    int rc;

    if (value.n > KR_REQUEST_HEADER_MAX)
        return kr_note_set(why, KR_ETOOBIG, "the header is %zu bytes", value.n);
    rc = kr_base64_decode(value, arena, message);
    return rc != 0 ? kr_note_set(why, rc, "the header is no base64") : 0;
}

int kr_request_header_read(struct kr_relay_request *m, struct kr_bytes value,
                           struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes message;
    int rc = read_value(value, arena, &message, why);

    *m = (struct kr_relay_request){.deadline_ms = 0};
    if (rc == 0)
        rc = kr_relay_request_decode(m, message, arena, why);
    return rc != 0 ? kr_note_wrap(why, rc, KR_REQUEST_HEADER) : 0;
}

int kr_response_header_read(struct kr_relay_response *m, struct kr_bytes value,
                            struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes message;
    int rc = read_value(value, arena, &message, why);

    *m = (struct kr_relay_response){.origin = KR_ORIGIN_UNSPECIFIED};
    if (rc == 0)
        rc = kr_relay_response_decode(m, message, why);
    return rc != 0 ? kr_note_wrap(why, rc, KR_RESPONSE_HEADER) : 0;
}
