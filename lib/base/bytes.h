/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: a borrowed run of bytes with its length; text that need not end in NUL.
 * Memory: never owns. Threads: pure. */
#ifndef KR_BASE_BYTES_H
#define KR_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kr_bytes {
    const uint8_t *p; /* may be NULL only if n is 0 */
    size_t n;
};

#define KR_LIT(s) ((struct kr_bytes){(const uint8_t *)(s), sizeof(s) - 1})

static inline struct kr_bytes kr_bytes_of(const void *p, size_t n)
{
    return (struct kr_bytes){p, n};
}

static inline struct kr_bytes kr_bytes_str(const char *s)
{
    return (struct kr_bytes){(const uint8_t *)s, s != NULL ? strlen(s) : 0};
}

static inline bool kr_bytes_eq(struct kr_bytes a, struct kr_bytes b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool kr_bytes_is(struct kr_bytes a, const char *s)
{
    return kr_bytes_eq(a, kr_bytes_str(s));
}

static inline bool kr_bytes_starts(struct kr_bytes a, struct kr_bytes prefix)
{
    return a.n >= prefix.n && (prefix.n == 0 || memcmp(a.p, prefix.p, prefix.n) == 0);
}

/* Drops the first n bytes (n <= b.n). */
static inline struct kr_bytes kr_bytes_skip(struct kr_bytes b, size_t n)
{
    return (struct kr_bytes){b.p + n, b.n - n};
}

/* Byte by byte; of two that begin alike, the shorter one comes first. <0, 0 or >0. */
static inline int kr_bytes_compare(struct kr_bytes a, struct kr_bytes b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n != 0 ? memcmp(a.p, b.p, n) : 0;

    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* The value of a hexadecimal digit in either case; -1 if it is none. */
static inline int kr_hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Without the spaces and tabs at both ends (OWS of RFC 9110 section 5.6.3). */
struct kr_bytes kr_bytes_trim(struct kr_bytes b);
/* ASCII case is folded; other bytes compare as they are. */
bool kr_bytes_eq_fold(struct kr_bytes a, struct kr_bytes b);
/* Index of the first `c`, or b.n. */
size_t kr_bytes_find(struct kr_bytes b, uint8_t c);
/* Strict decimal without sign or spaces; false if empty, not a number or above max. */
bool kr_bytes_to_u64(struct kr_bytes b, uint64_t max, uint64_t *out);
/* Moves up to n bytes from the front of *in to out; returns how many. */
size_t kr_bytes_take(struct kr_bytes *in, uint8_t *out, size_t n);
/* Whether the bytes are well-formed UTF-8 (RFC 3629) without NUL. */
bool kr_bytes_is_utf8(struct kr_bytes b);
/* Whether it is an RFC 1123 label: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 bytes. */
bool kr_is_dns_label(struct kr_bytes b);
/* malloc'd NUL-terminated copy, or NULL; the caller frees. */
char *kr_bytes_dup(struct kr_bytes b);

#endif
