/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"

#include <stdlib.h>

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
}

struct kr_bytes kr_bytes_trim(struct kr_bytes b)
{
    while (b.n != 0 && (b.p[0] == ' ' || b.p[0] == '\t'))
        b = kr_bytes_skip(b, 1);
    while (b.n != 0 && (b.p[b.n - 1] == ' ' || b.p[b.n - 1] == '\t'))
        b.n--;
    return b;
}

bool kr_bytes_eq_fold(struct kr_bytes a, struct kr_bytes b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    }
    return true;
}

size_t kr_bytes_find(struct kr_bytes b, uint8_t c)
{
    const uint8_t *at = b.n != 0 ? memchr(b.p, c, b.n) : NULL;

    return at != NULL ? (size_t)(at - b.p) : b.n;
}

bool kr_bytes_to_u64(struct kr_bytes b, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;

    if (b.n == 0 || b.n > 20)
        return false;
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] < '0' || b.p[i] > '9' || __builtin_mul_overflow(v, 10U, &v) ||
            __builtin_add_overflow(v, (uint64_t)(b.p[i] - '0'), &v))
            return false;
    }
    *out = v;
    return v <= max;
}

size_t kr_bytes_take(struct kr_bytes *in, uint8_t *out, size_t n)
{
    size_t k = n < in->n ? n : in->n;

    if (k != 0)
        memcpy(out, in->p, k);
    *in = kr_bytes_skip(*in, k);
    return k;
}

/* The length of the well-formed sequence at p, or 0 (RFC 3629 section 4). */
static size_t utf8_len(const uint8_t *p, size_t n)
{
    size_t k = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;

    if (k == 0 || k > n || p[0] > 0xF4 || p[0] == 0)
        return 0;
    for (size_t i = 1; i < k; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return k;
}

bool kr_bytes_is_utf8(struct kr_bytes b)
{
    for (size_t i = 0; i < b.n;) {
        size_t k = utf8_len(b.p + i, b.n - i);

        if (k == 0)
            return false;
        i += k;
    }
    return true;
}

bool kr_is_dns_label(struct kr_bytes b)
{
    if (b.n == 0 || b.n > 63 || b.p[0] == '-' || b.p[b.n - 1] == '-')
        return false;
    for (size_t i = 0; i < b.n; i++) {
        uint8_t c = b.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
            return false;
    }
    return true;
}

char *kr_bytes_dup(struct kr_bytes b)
{
    char *s = malloc(b.n + 1);

    if (s == NULL)
        return NULL;
    if (b.n != 0)
        memcpy(s, b.p, b.n);
    s[b.n] = '\0';
    return s;
}
