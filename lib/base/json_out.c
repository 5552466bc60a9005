/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>

#include "base/assert.h"

void kr_json_out_init(struct kr_json_out *w, struct kr_buf *buf)
{
    *w = (struct kr_json_out){.buf = buf};
}

static void put(struct kr_json_out *w, struct kr_bytes b)
{
    if (w->rc == 0)
        w->rc = kr_buf_append(w->buf, b);
}

/* The length of the well-formed sequence at p, or 0. */
static size_t sequence_len(struct kr_bytes b)
{
    for (size_t k = 1; k <= 4 && k <= b.n; k++) {
        if (kr_bytes_is_utf8(kr_bytes_of(b.p, k)))
            return k;
    }
    return 0;
}

static int escape_one(struct kr_buf *out, uint8_t c)
{
    switch (c) {
    case '"':
        return kr_buf_append_str(out, "\\\"");
    case '\\':
        return kr_buf_append_str(out, "\\\\");
    case '\n':
        return kr_buf_append_str(out, "\\n");
    case '\r':
        return kr_buf_append_str(out, "\\r");
    case '\t':
        return kr_buf_append_str(out, "\\t");
    default:
        return kr_buf_printf(out, "\\u%04x", c);
    }
}

static bool is_plain(uint8_t c)
{
    return c >= ' ' && c < 0x7F && c != '"' && c != '\\';
}

int kr_json_escape(struct kr_buf *out, struct kr_bytes in)
{
    int rc = 0;

    while (in.n != 0 && rc == 0) {
        size_t k = 0;

        while (k < in.n && is_plain(in.p[k]))
            k++;
        if (k == 0 && in.p[0] >= 0x80) {
            k = sequence_len(in);
            if (k == 0) {
                rc = kr_buf_append_str(out, "\\ufffd");
                in = kr_bytes_skip(in, 1);
                continue;
            }
        }
        if (k == 0) {
            rc = escape_one(out, in.p[0]);
            in = kr_bytes_skip(in, 1);
            continue;
        }
        rc = kr_buf_append(out, kr_bytes_of(in.p, k));
        in = kr_bytes_skip(in, k);
    }
    return rc;
}

static void put_string(struct kr_json_out *w, struct kr_bytes v)
{
    put(w, KR_LIT("\""));
    if (w->rc == 0)
        w->rc = kr_json_escape(w->buf, v);
    put(w, KR_LIT("\""));
}

/* Comma and key, as the place asks for. */
static void lead_in(struct kr_json_out *w, const char *key)
{
    uint64_t here = (uint64_t)1 << w->depth;

    KR_ASSERT(((w->objects & here) != 0) == (key != NULL));
    if ((w->filled & here) != 0)
        put(w, KR_LIT(","));
    w->filled |= here;
    if (key != NULL) {
        put_string(w, kr_bytes_str(key));
        put(w, KR_LIT(":"));
    }
}

static void begin(struct kr_json_out *w, const char *key, bool object)
{
    uint64_t inside;

    lead_in(w, key);
    put(w, object ? KR_LIT("{") : KR_LIT("["));
    w->depth++;
    KR_ASSERT(w->depth < 64);
    inside = (uint64_t)1 << w->depth;
    w->filled &= ~inside;
    w->objects = object ? w->objects | inside : w->objects & ~inside;
}

void kr_json_out_object(struct kr_json_out *w, const char *key)
{
    begin(w, key, true);
}

void kr_json_out_array(struct kr_json_out *w, const char *key)
{
    begin(w, key, false);
}

void kr_json_out_end(struct kr_json_out *w)
{
    KR_ASSERT(w->depth != 0);
    put(w, (w->objects >> w->depth & 1) != 0 ? KR_LIT("}") : KR_LIT("]"));
    w->depth--;
}

void kr_json_out_string(struct kr_json_out *w, const char *key, struct kr_bytes v)
{
    lead_in(w, key);
    put_string(w, v);
}

void kr_json_out_text(struct kr_json_out *w, const char *key, const char *v)
{
    kr_json_out_string(w, key, kr_bytes_str(v));
}

void kr_json_out_int(struct kr_json_out *w, const char *key, int64_t v)
{
    lead_in(w, key);
    if (w->rc == 0)
        w->rc = kr_buf_printf(w->buf, "%" PRId64, v);
}

void kr_json_out_bool(struct kr_json_out *w, const char *key, bool v)
{
    lead_in(w, key);
    put(w, v ? KR_LIT("true") : KR_LIT("false"));
}

void kr_json_out_raw(struct kr_json_out *w, const char *key, struct kr_bytes v)
{
    lead_in(w, key);
    put(w, v);
}
