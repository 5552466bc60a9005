/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/path.h"

#include "base/err.h"

/* The byte that the escape at p stands for; -1 if it is none. */
static int escaped(const uint8_t *p, size_t n)
{
    if (n < 3 || kr_hex_digit(p[1]) < 0 || kr_hex_digit(p[2]) < 0)
        return -1;
    return kr_hex_digit(p[1]) << 4 | kr_hex_digit(p[2]);
}

static bool is_control(int c)
{
    return c < 0x20 || c == 0x7F;
}

int kr_path_split(struct kr_bytes target, struct kr_bytes *path, struct kr_bytes *query,
                  struct kr_note *why)
{
    size_t at;

    if (target.n == 0 || target.p[0] != '/')
        return kr_note_set(why, KR_EINVAL, "the path does not start with '/'");
    for (size_t i = 0; i < target.n; i++) {
        uint8_t c = target.p[i];

        if (c < 0x21 || c > 0x7E)
            return kr_note_set(why, KR_EINVAL, "the path holds byte 0x%02x", c);
        if (c == '#' || c == '\\')
            return kr_note_set(why, KR_EINVAL, "the path holds '%c'", c);
    }
    at = kr_bytes_find(target, '?');
    *path = kr_bytes_of(target.p, at);
    *query = at < target.n ? kr_bytes_skip(target, at + 1) : kr_bytes_of(NULL, 0);
    return 0;
}

static int check_escape(const uint8_t *p, size_t n, struct kr_note *why)
{
    int c = escaped(p, n);

    if (c < 0)
        return kr_note_set(why, KR_EINVAL, "invalid percent escape in the path");
    if (is_control(c))
        return kr_note_set(why, KR_EINVAL, "the path holds the control byte %%%02X", c);
    return c;
}

static int decode_segment(struct kr_bytes raw, struct kr_arena *arena, struct kr_bytes *out,
                          struct kr_note *why)
{
    uint8_t *p = kr_arena_alloc(arena, raw.n);
    size_t n = 0;

    if (p == NULL)
        return kr_note_set(why, KR_ENOMEM, "no memory for the path");
    for (size_t i = 0; i < raw.n; i++) {
        int c = raw.p[i];

        if (c == '%') {
            c = check_escape(raw.p + i, raw.n - i, why);
            if (c < 0)
                return c;
            if (c == '/' || c == '\\' || c == '%')
                return kr_note_set(why, KR_EINVAL, "%%%02X inside a path segment", c);
            i += 2;
        }
        p[n++] = (uint8_t)c;
    }
    *out = kr_bytes_of(p, n);
    if (!kr_bytes_is_utf8(*out))
        return kr_note_set(why, KR_EINVAL, "a path segment is not UTF-8");
    return 0;
}

int kr_path_segment(struct kr_bytes raw, struct kr_arena *arena, struct kr_bytes *out,
                    struct kr_note *why)
{
    int rc = 0;

    *out = raw;
    if (kr_bytes_find(raw, '%') < raw.n)
        rc = decode_segment(raw, arena, out, why);
    if (rc != 0)
        return rc;
    if (out->n == 0)
        return kr_note_set(why, KR_EINVAL, "empty path segment");
    if (kr_bytes_is(*out, ".") || kr_bytes_is(*out, ".."))
        return kr_note_set(why, KR_EINVAL, "'.' or '..' as a path segment");
    return 0;
}

int kr_path_opaque(struct kr_bytes raw, struct kr_note *why)
{
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] == '%') {
            int c = check_escape(raw.p + i, raw.n - i, why);

            if (c < 0)
                return c;
        }
    }
    return 0;
}

int kr_percent_decode(struct kr_bytes in, bool plus, struct kr_arena *arena, struct kr_bytes *out)
{
    uint8_t *p;
    size_t n = 0;

    *out = in;
    if (kr_bytes_find(in, '%') == in.n && (!plus || kr_bytes_find(in, '+') == in.n))
        return 0;
    p = kr_arena_alloc(arena, in.n);
    if (p == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < in.n; i++) {
        int c = in.p[i];

        if (c == '%') {
            c = escaped(in.p + i, in.n - i);
            if (c < 0)
                return KR_EINVAL;
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        p[n++] = (uint8_t)c;
    }
    *out = kr_bytes_of(p, n);
    return 0;
}
