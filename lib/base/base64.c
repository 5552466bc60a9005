/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include "base/err.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int kr_base64_encode(struct kr_buf *out, struct kr_bytes in, bool padded)
{
    int rc = kr_buf_reserve(out, (in.n + 2) / 3 * 4);
    size_t i = 0;

    if (rc != 0)
        return rc;
    for (; i < in.n; i += 3) {
        size_t k = in.n - i < 3 ? in.n - i : 3;
        uint32_t v = (uint32_t)in.p[i] << 16 | (k > 1 ? (uint32_t)in.p[i + 1] << 8 : 0) |
                     (k > 2 ? in.p[i + 2] : 0);

        for (size_t j = 0; j < 4; j++) {
            if (j <= k)
                out->p[out->n++] = (uint8_t)alphabet[v >> (18 - 6 * j) & 63];
            else if (padded)
                out->p[out->n++] = '=';
        }
    }
    return 0;
}

static int value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Appends whole bytes; *rest: the bits behind the last of them. */
static int decode(struct kr_buf *out, struct kr_bytes in, int (*value)(uint8_t), uint32_t *rest)
{
    uint32_t v = 0;
    unsigned bits = 0;
    int rc;

    if (in.n % 4 == 1)
        return KR_EINVAL;
    rc = kr_buf_reserve(out, in.n / 4 * 3 + 3);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < in.n; i++) {
        int d = value(in.p[i]);

        if (d < 0)
            return KR_EINVAL;
        v = v << 6 | (uint32_t)d;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out->p[out->n++] = (uint8_t)(v >> bits);
        }
    }
    *rest = v & ((1u << bits) - 1);
    return 0;
}

int kr_base64_decode(struct kr_buf *out, struct kr_bytes in)
{
    uint32_t rest;

    if (in.n % 4 == 0 && in.n != 0) {
        in.n -= in.p[in.n - 1] == '=';
        in.n -= in.n % 4 == 3 && in.p[in.n - 1] == '=';
    }
    return decode(out, in, value_of, &rest);
}

static int url_value_of(uint8_t c)
{
    if (c == '-' || c == '_')
        return c == '-' ? 62 : 63;
    return c == '+' || c == '/' ? -1 : value_of(c);
}

int kr_base64url_decode(struct kr_buf *out, struct kr_bytes in)
{
    uint32_t rest;
    int rc = decode(out, in, url_value_of, &rest);

    return rc == 0 && rest != 0 ? KR_EINVAL : rc;
}
