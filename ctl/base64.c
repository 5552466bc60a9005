/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int ctl_base64_append(struct kr_buf *out, struct kr_bytes in)
{
    int rc = kr_buf_reserve(out, (in.n + 2) / 3 * 4);

    for (size_t i = 0; rc == 0 && i < in.n; i += 3) {
        size_t left = in.n - i;
        uint32_t v = (uint32_t)in.p[i] << 16;
        uint8_t quad[4];

        if (left > 1)
            v |= (uint32_t)in.p[i + 1] << 8;
        if (left > 2)
            v |= in.p[i + 2];
        quad[0] = (uint8_t)alphabet[v >> 18];
        quad[1] = (uint8_t)alphabet[v >> 12 & 63];
        quad[2] = left > 1 ? (uint8_t)alphabet[v >> 6 & 63] : '=';
        quad[3] = left > 2 ? (uint8_t)alphabet[v & 63] : '=';
        rc = kr_buf_append(out, kr_bytes_of(quad, sizeof quad));
    }
    return rc;
}
