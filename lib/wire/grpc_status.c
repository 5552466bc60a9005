/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/grpc_status.h"

#include "base/err.h"

int kr_grpc_status_of_http(int http)
{
    switch (http) {
    case 400:
        return KR_GRPC_INTERNAL;
    case 401:
        return KR_GRPC_UNAUTHENTICATED;
    case 403:
        return KR_GRPC_PERMISSION_DENIED;
    case 404:
        return KR_GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return KR_GRPC_UNAVAILABLE;
    default:
        return KR_GRPC_UNKNOWN;
    }
}

int kr_grpc_status_of_end(int rc, uint32_t reset_code)
{
    if (rc != KR_ERESET)
        return kr_err_grpc_status(rc);
    switch (reset_code) { /* RFC 9113 section 7 */
    case 7:               /* REFUSED_STREAM */
        return KR_GRPC_UNAVAILABLE;
    case 8: /* CANCEL */
        return KR_GRPC_CANCELLED;
    case 11: /* ENHANCE_YOUR_CALM */
        return KR_GRPC_RESOURCE_EXHAUSTED;
    case 12: /* INADEQUATE_SECURITY */
        return KR_GRPC_PERMISSION_DENIED;
    default:
        return KR_GRPC_INTERNAL;
    }
}

int kr_grpc_message_encode(struct kr_bytes text, struct kr_buf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    int rc = kr_buf_reserve(out, 3 * text.n);

    if (rc != 0)
        return rc;
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];

        if (c >= 0x20 && c <= 0x7E && c != '%') {
            out->p[out->n++] = c;
            continue;
        }
        out->p[out->n++] = '%';
        out->p[out->n++] = (uint8_t)hex[c >> 4];
        out->p[out->n++] = (uint8_t)hex[c & 15];
    }
    return 0;
}

int kr_grpc_message_decode(struct kr_bytes value, struct kr_buf *out)
{
    int rc;

    if (value.n > out->max - out->n)
        value.n = out->max - out->n;
    rc = kr_buf_reserve(out, value.n);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < value.n; i++) {
        uint8_t c = value.p[i];

        if (c == '%' && i + 2 < value.n && kr_hex_digit(value.p[i + 1]) >= 0 &&
            kr_hex_digit(value.p[i + 2]) >= 0) {
            c = (uint8_t)(kr_hex_digit(value.p[i + 1]) << 4 | kr_hex_digit(value.p[i + 2]));
            i += 2;
        }
        out->p[out->n++] = c;
    }
    return 0;
}
