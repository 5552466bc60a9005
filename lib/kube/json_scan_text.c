/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: what they mean. */
#include "base/err.h"
#include "kube/json_scan.h"

#define REPLACEMENT 0xFFFD /* for half of a surrogate pair, as encoding/json does it */

/* The four digits of \uXXXX at the front of `in`; -1 if they are not. */
static int32_t hex4(struct kr_bytes in)
{
    int32_t v = 0;

    if (in.n < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = kr_hex_digit(in.p[i]);

        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* Behind "\u": takes the digits, and those of the other half if there is one. -1: malformed. */
static int32_t take_code(struct kr_bytes *in)
{
    int32_t code = hex4(*in);
    int32_t low;

    if (code < 0)
        return -1;
    *in = kr_bytes_skip(*in, 4);
    if (code < 0xD800 || code > 0xDFFF)
        return code;
    if (code > 0xDBFF || in->n < 6 || in->p[0] != '\\' || in->p[1] != 'u')
        return REPLACEMENT;
    low = hex4(kr_bytes_skip(*in, 2));
    if (low < 0xDC00 || low > 0xDFFF)
        return REPLACEMENT;
    *in = kr_bytes_skip(*in, 6);
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
}

static size_t put_utf8(int32_t code, uint8_t out[4])
{
    uint32_t c = (uint32_t)code;

    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

/* Takes an escape (behind its backslash) off `in`; the bytes that it means, 0 if it is malformed.
 */
static size_t take_escape(struct kr_bytes *in, uint8_t out[4])
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *at;
    uint8_t c;

    if (in->n == 0 || in->p[0] == 0)
        return 0;
    c = in->p[0];
    *in = kr_bytes_skip(*in, 1);
    if (c == 'u') {
        int32_t code = take_code(in);

        return code < 0 ? 0 : put_utf8(code, out);
    }
    at = strchr(from, c);
    if (at == NULL)
        return 0;
    out[0] = (uint8_t)to[at - from];
    return 1;
}

bool kr_scan_key_is(struct kr_bytes key, const char *name)
{
    struct kr_bytes want = kr_bytes_str(name);

    if (kr_bytes_eq(key, want))
        return kr_bytes_find(key, '\\') == key.n;
    if (key.n <= want.n || kr_bytes_find(key, '\\') == key.n)
        return false; /* an escape is longer than what it means */
    while (key.n != 0) {
        uint8_t part[4] = {key.p[0]};
        bool escaped = key.p[0] == '\\';
        size_t n = 1;

        key = kr_bytes_skip(key, 1);
        if (escaped)
            n = take_escape(&key, part);
        if (n == 0 || !kr_bytes_starts(want, kr_bytes_of(part, n)))
            return false;
        want = kr_bytes_skip(want, n);
    }
    return want.n == 0;
}

/* What stands between the quotes. */
static bool inside(struct kr_bytes value, struct kr_bytes *out)
{
    if (!kr_scan_is_string(value) || value.p[value.n - 1] != '"')
        return false;
    *out = kr_bytes_of(value.p + 1, value.n - 2);
    return true;
}

bool kr_scan_plain(struct kr_bytes value, struct kr_bytes *out)
{
    struct kr_bytes text;

    if (!inside(value, &text) || kr_bytes_find(text, '\\') != text.n)
        return false;
    *out = text;
    return true;
}

int kr_scan_string(struct kr_bytes value, struct kr_buf *out)
{
    struct kr_bytes text;
    size_t before = out->n;
    int rc = 0;

    if (!inside(value, &text))
        return KR_EPROTO;
    while (rc == 0 && text.n != 0) {
        size_t plain = kr_bytes_find(text, '\\');
        uint8_t part[4];
        size_t n;

        rc = kr_buf_append(out, kr_bytes_of(text.p, plain));
        text = kr_bytes_skip(text, plain);
        if (rc != 0 || text.n == 0)
            break;
        text = kr_bytes_skip(text, 1);
        n = take_escape(&text, part);
        rc = n == 0 ? KR_EPROTO : kr_buf_append(out, kr_bytes_of(part, n));
    }
    if (rc != 0)
        out->n = before;
    return rc;
}

bool kr_scan_string_place(struct kr_bytes value, size_t decoded, size_t *at)
{
    struct kr_bytes text;

    if (!inside(value, &text))
        return false;
    while (decoded != 0 && text.n != 0) {
        size_t plain = kr_bytes_find(text, '\\');
        uint8_t part[4];
        size_t n = plain < decoded ? plain : decoded;

        text = kr_bytes_skip(text, n);
        decoded -= n;
        if (decoded == 0 || text.n == 0)
            break;
        text = kr_bytes_skip(text, 1);
        n = take_escape(&text, part);
        if (n == 0 || n > decoded)
            return false;
        decoded -= n;
    }
    *at = (size_t)(text.p - value.p);
    return decoded == 0;
}
