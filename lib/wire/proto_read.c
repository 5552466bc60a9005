/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/proto_read.h"

#include "base/err.h"

static int wrong(const char *name, const char *what, struct kr_note *why)
{
    return kr_note_set(why, KR_EPROTO, "%s is no %s", name, what);
}

int kr_proto_text(const struct kr_proto_field *f, size_t max, struct kr_bytes *out,
                  const char *name, struct kr_note *why)
{
    if (f->type != KR_PROTO_BYTES || !kr_bytes_is_utf8(f->bytes))
        return wrong(name, "text", why);
    if (f->bytes.n > max)
        return kr_note_set(why, KR_ETOOBIG, "%s has more than %zu bytes", name, max);
    *out = f->bytes;
    return 0;
}

/* Nothing but printable ASCII, as nearly all names are: eight bytes at a time. */
static bool is_printable(struct kr_bytes b)
{
    const uint64_t ones = 0x0101010101010101u;
    size_t i = 0;

    for (; i + 8 <= b.n; i += 8) {
        uint64_t w;

        memcpy(&w, b.p + i, 8);
        /* The high bit of some byte is set: it is 0x80 or more, below 0x20, or 0x7F. */
        if (((w | (w - 0x20 * ones) | (w + ones)) & 0x80 * ones) != 0)
            return false;
    }
    for (; i < b.n; i++) {
        if (b.p[i] < 0x20 || b.p[i] >= 0x7F)
            return false;
    }
    return true;
}

bool kr_proto_is_word(struct kr_bytes b)
{
    if (is_printable(b))
        return true;
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] < 0x20 || b.p[i] == 0x7F)
            return false;
    }
    return kr_bytes_is_utf8(b);
}

int kr_proto_word(const struct kr_proto_field *f, size_t max, struct kr_bytes *out,
                  const char *name, struct kr_note *why)
{
    if (f->type != KR_PROTO_BYTES || f->bytes.n == 0 || !kr_proto_is_word(f->bytes))
        return wrong(name, "word", why);
    return kr_proto_text(f, max, out, name, why);
}

int kr_proto_raw(const struct kr_proto_field *f, struct kr_bytes *out, const char *name,
                 struct kr_note *why)
{
    if (f->type != KR_PROTO_BYTES)
        return wrong(name, "run of bytes", why);
    *out = f->bytes;
    return 0;
}

int kr_proto_u64(const struct kr_proto_field *f, uint64_t *out, const char *name,
                 struct kr_note *why)
{
    if (f->type != KR_PROTO_VARINT)
        return wrong(name, "number", why);
    *out = f->varint;
    return 0;
}

int kr_proto_u32(const struct kr_proto_field *f, uint32_t *out, const char *name,
                 struct kr_note *why)
{
    uint64_t v = 0;
    int rc = kr_proto_u64(f, &v, name, why);

    *out = (uint32_t)v;
    return rc;
}

int kr_proto_bool(const struct kr_proto_field *f, bool *out, const char *name, struct kr_note *why)
{
    uint64_t v = 0;
    int rc = kr_proto_u64(f, &v, name, why);

    *out = v != 0;
    return rc;
}

static uint64_t load64(const uint8_t *p)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

int kr_proto_fixed64(const struct kr_proto_field *f, uint64_t *out, const char *name,
                     struct kr_note *why)
{
    if (f->type != KR_PROTO_FIXED64)
        return wrong(name, "fixed64", why);
    *out = load64(f->bytes.p);
    return 0;
}

/* --- lists --------------------------------------------------------------------------------- */

enum element { ANY, FIXED, VARINT };

static size_t varints_in(struct kr_bytes in)
{
    size_t n = 0;

    for (size_t i = 0; i < in.n; i++)
        n += in.p[i] < 0x80;
    return n;
}

static size_t elements_of(const struct kr_proto_field *f, enum element kind)
{
    if (kind == ANY || f->type != KR_PROTO_BYTES)
        return 1;
    return kind == FIXED ? f->bytes.n / 8 : varints_in(f->bytes);
}

static int count(struct kr_bytes in, uint32_t number, enum element kind, size_t max, size_t *n,
                 const char *name, struct kr_note *why)
{
    *n = 0;
    while (in.n != 0) {
        struct kr_proto_field f;

        if (kr_proto_next(&in, &f) != 0)
            return kr_note_set(why, KR_EPROTO, "malformed protobuf");
        if (f.number == number)
            *n += elements_of(&f, kind);
        if (*n > max)
            return kr_note_set(why, KR_ETOOBIG, "more than %zu %s", max, name);
    }
    return 0;
}

int kr_proto_count(struct kr_bytes in, uint32_t number, size_t max, size_t *n, const char *name,
                   struct kr_note *why)
{
    return count(in, number, ANY, max, n, name, why);
}

int kr_proto_count_fixed64(struct kr_bytes in, uint32_t number, size_t max, size_t *n,
                           const char *name, struct kr_note *why)
{
    return count(in, number, FIXED, max, n, name, why);
}

int kr_proto_count_varints(struct kr_bytes in, uint32_t number, size_t max, size_t *n,
                           const char *name, struct kr_note *why)
{
    return count(in, number, VARINT, max, n, name, why);
}

int kr_proto_take_fixed64(const struct kr_proto_field *f, uint64_t **to, const char *name,
                          struct kr_note *why)
{
    if ((f->type != KR_PROTO_BYTES && f->type != KR_PROTO_FIXED64) || f->bytes.n % 8 != 0)
        return wrong(name, "list of fixed64", why);
    for (size_t i = 0; i < f->bytes.n; i += 8)
        *(*to)++ = load64(f->bytes.p + i);
    return 0;
}

int kr_proto_take_varints(const struct kr_proto_field *f, uint32_t **to, const char *name,
                          struct kr_note *why)
{
    struct kr_bytes in = f->bytes;

    if (f->type == KR_PROTO_VARINT) {
        *(*to)++ = (uint32_t)f->varint;
        return 0;
    }
    if (f->type != KR_PROTO_BYTES)
        return wrong(name, "list of numbers", why);
    while (in.n != 0) {
        uint64_t v;

        if (kr_proto_take_varint(&in, &v) != 0)
            return wrong(name, "list of numbers", why);
        *(*to)++ = (uint32_t)v;
    }
    return 0;
}

void *kr_proto_list(struct kr_arena *arena, size_t n, size_t size)
{
    return kr_arena_alloc(arena, n != 0 ? n * size : 1);
}
