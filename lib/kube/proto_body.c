/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/proto_body.h"

#include "base/err.h"
#include "kube/injected.h"

#define MAGIC_BYTES 4
#define VARINT_MAX 10
#define FIELD_MAX ((1u << 29) - 1)

enum wire_type { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
enum { UNKNOWN_RAW = 2, OBJECT_META = 1, META_VERSION = 6, META_LABELS = 11, META_NOTES = 12 };
enum { OPTIONS_PRECONDITIONS = 2, PRECONDITIONS_VERSION = 2, ENTRY_KEY = 1 };

/* Something with a length before it; all are positions in the whole text. */
struct box {
    size_t length_at;
    size_t start;
    size_t n;
};

struct field {
    uint32_t number;
    unsigned type;
    size_t at;
    struct box box; /* of BYTES */
    size_t end;
};

struct walk { /* through the fields of one message */
    struct kr_bytes text;
    size_t pos;
    size_t end;
    int rc; /* why it ended: 0 behind the last field */
};

struct reader {
    struct kr_bytes text;
    struct kr_bytes version;
    struct kr_write_body *out;
    struct kr_note *why;
};

/* ---- the wire format ---- */

static bool take_varint(struct walk *w, uint64_t *v)
{
    *v = 0;
    for (unsigned i = 0; i < VARINT_MAX && w->pos < w->end; i++) {
        uint8_t b = w->text.p[w->pos++];

        if (i == VARINT_MAX - 1 && b > 1)
            return false;
        *v |= (uint64_t)(b & 0x7F) << (7 * i);
        if (b < 0x80)
            return true;
    }
    return false;
}

static bool skip(struct walk *w, uint64_t n)
{
    if (n > w->end - w->pos)
        return false;
    w->pos += (size_t)n;
    return true;
}

static bool take_value(struct walk *w, struct field *f)
{
    uint64_t n;

    switch (f->type) {
    case VARINT:
        return take_varint(w, &n);
    case FIXED64:
        return skip(w, 8);
    case FIXED32:
        return skip(w, 4);
    case BYTES:
        f->box.length_at = w->pos;
        if (!take_varint(w, &n))
            return false;
        f->box.start = w->pos;
        f->box.n = (size_t)n;
        return skip(w, n);
    default:
        return false;
    }
}

static bool next_field(struct walk *w, struct field *f)
{
    uint64_t tag;

    if (w->rc != 0 || w->pos == w->end)
        return false;
    *f = (struct field){.at = w->pos};
    if (!take_varint(w, &tag) || tag >> 3 == 0 || tag >> 3 > FIELD_MAX) {
        w->rc = KR_EPROTO;
        return false;
    }
    f->number = (uint32_t)(tag >> 3);
    f->type = (unsigned)(tag & 7);
    if (!take_value(w, f)) {
        w->rc = KR_EPROTO;
        return false;
    }
    f->end = w->pos;
    return true;
}

static struct walk walk_into(struct kr_bytes text, const struct box *box)
{
    return (struct walk){.text = text, .pos = box->start, .end = box->start + box->n};
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;

    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static int put_varint(struct kr_buf *out, uint64_t v)
{
    uint8_t bytes[VARINT_MAX];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    return kr_buf_append(out, kr_bytes_of(bytes, n));
}

bool kr_proto_body_is(struct kr_bytes text)
{
    return text.n >= MAGIC_BYTES && memcmp(text.p, "k8s\0", MAGIC_BYTES) == 0;
}

/* All behind the magic. */
static struct box envelope_of(struct kr_bytes text)
{
    return (struct box){.start = MAGIC_BYTES, .n = text.n - MAGIC_BYTES};
}

/* ---- reading ---- */

static int not_readable(struct kr_note *why)
{
    return kr_note_set(why, KR_EPROTO, "the body is no protobuf of Kubernetes");
}

/* The one field of that number, whose value has a length. *found: there is one. */
static int find_once(struct reader *r, const struct box *in, uint32_t number, const char *name,
                     struct box *out, bool *found)
{
    struct walk w = walk_into(r->text, in);
    struct field f;

    *found = false;
    while (next_field(&w, &f)) {
        if (f.number != number)
            continue;
        if (f.type != BYTES)
            return not_readable(r->why);
        if (*found)
            return kr_note_set(r->why, KR_EPROTO, "%s is there twice", name);
        *found = true;
        *out = f.box;
    }
    return w.rc != 0 ? not_readable(r->why) : 0;
}

static struct kr_bytes content(struct kr_bytes text, const struct box *box)
{
    return kr_bytes_of(text.p + box->start, box->n);
}

static int note_version(struct reader *r, const struct box *box)
{
    struct kr_write_body *b = r->out;
    struct kr_bytes value = content(r->text, box);

    if (value.n == 0) /* "any version" */
        return 0;
    b->has_version = true;
    if (!kr_bytes_eq(value, r->version))
        b->foreign = value;
    else
        b->versions[b->version_count++] =
            (struct kr_span){box->length_at, box->start + box->n - box->length_at};
    return 0;
}

/* One label or annotation. */
static int read_entry(struct reader *r, const struct field *entry)
{
    struct kr_write_body *b = r->out;
    struct box key = {0};
    struct kr_bytes name;
    bool found;
    int rc = find_once(r, &entry->box, ENTRY_KEY, "the key of a label or annotation", &key, &found);

    if (rc != 0 || !found)
        return rc;
    name = content(r->text, &key);
    if (!kr_is_injected_name(name))
        return 0;
    if (b->cut_count == KR_BODY_CUTS_MAX)
        return kr_note_set(r->why, KR_ETOOBIG, "keys of the fleet view are there too often");
    b->cuts[b->cut_count++] = (struct kr_span){entry->at, entry->end - entry->at};
    b->injected = true;
    b->slimmed = b->slimmed || kr_bytes_is(name, KR_NOTE_SLIMMED);
    return 0;
}

static int read_entries(struct reader *r, const struct box *meta)
{
    struct walk w = walk_into(r->text, meta);
    struct field f;
    int rc = 0;

    while (rc == 0 && next_field(&w, &f)) {
        if (f.number != META_LABELS && f.number != META_NOTES)
            continue;
        rc = f.type == BYTES ? read_entry(r, &f) : not_readable(r->why);
    }
    return rc; /* it was walked before */
}

int kr_proto_body_read(enum kr_body_kind kind, struct kr_bytes text, struct kr_bytes version,
                       struct kr_write_body *out, struct kr_note *why)
{
    struct reader r = {text, version, out, why};
    bool options = kind == KR_BODY_DELETE_OPTIONS;
    struct box envelope;
    struct box raw;
    struct box inner;
    struct box at;
    bool found;
    int rc;

    *out = (struct kr_write_body){.has_version = false};
    if (!kr_proto_body_is(text) || kind == KR_BODY_JSON_PATCH)
        return not_readable(why);
    envelope = envelope_of(text);
    rc = find_once(&r, &envelope, UNKNOWN_RAW, "the object", &raw, &found);
    if (rc == 0 && found)
        rc = find_once(&r, &raw, options ? OPTIONS_PRECONDITIONS : OBJECT_META,
                       options ? "preconditions" : "metadata", &inner, &found);
    if (rc != 0 || !found)
        return rc;
    rc = find_once(&r, &inner, options ? PRECONDITIONS_VERSION : META_VERSION, "resourceVersion",
                   &at, &found);
    if (rc == 0 && found)
        rc = note_version(&r, &at);
    return rc == 0 && !options ? read_entries(&r, &inner) : rc;
}

/* ---- writing ---- */

/* The field whose value `at` lies in; its length does not count. False: none, or not readable. */
static bool enclosing(struct kr_bytes text, const struct box *in, size_t at, struct box *out)
{
    struct walk w = walk_into(text, in);
    struct field f;

    while (next_field(&w, &f)) {
        if (f.type == BYTES && at >= f.box.start && at < f.end) {
            *out = f.box;
            return true;
        }
    }
    return false;
}

/* Both messages that a change at `at` makes longer or shorter. */
static bool find_boxes(struct kr_bytes text, size_t at, struct box *raw, struct box *inner)
{
    struct box envelope = envelope_of(text);

    return enclosing(text, &envelope, at, raw) && enclosing(text, raw, at, inner);
}

/* Appends all up to what is in `inner`, which becomes new_n long. */
static int put_front(struct kr_buf *out, struct kr_bytes text, const struct box *raw,
                     const struct box *inner, size_t new_n)
{
    size_t raw_n =
        raw->n - inner->n + new_n - (inner->start - inner->length_at) + varint_size(new_n);
    int rc = kr_buf_append(out, kr_bytes_of(text.p, raw->length_at));

    if (rc == 0)
        rc = put_varint(out, raw_n);
    if (rc == 0)
        rc = kr_buf_append(out, kr_bytes_of(text.p + raw->start, inner->length_at - raw->start));
    return rc == 0 ? put_varint(out, new_n) : rc;
}

int kr_proto_body_edit(const struct kr_write_body *b, struct kr_bytes text, struct kr_buf *out,
                       uint32_t *offset)
{
    static const uint8_t zero;
    size_t start = out->n;
    size_t new_n;
    size_t cut_at = 0;
    size_t from;
    bool has_version = b->version_count != 0;
    struct box raw;
    struct box inner;
    int rc;

    if (!has_version && b->cut_count == 0)
        return kr_buf_append(out, text);
    if (!find_boxes(text, has_version ? b->versions[0].at : b->cuts[0].at, &raw, &inner))
        return KR_EPROTO;
    new_n = has_version ? inner.n - b->versions[0].n + 1 : inner.n;
    for (size_t i = 0; i < b->cut_count; i++)
        new_n -= b->cuts[i].n;
    rc = put_front(out, text, &raw, &inner, new_n);
    from = inner.start;
    while (rc == 0 && (has_version || cut_at < b->cut_count)) {
        bool is_version =
            has_version && (cut_at == b->cut_count || b->versions[0].at < b->cuts[cut_at].at);
        struct kr_span s = is_version ? b->versions[0] : b->cuts[cut_at];

        rc = kr_buf_append(out, kr_bytes_of(text.p + from, s.at - from));
        from = s.at + s.n;
        if (!is_version) {
            cut_at++;
        } else if (rc == 0) {
            *offset = (uint32_t)(out->n - start);
            rc = kr_buf_append(out, kr_bytes_of(&zero, 1));
            has_version = false;
        }
    }
    return rc == 0 ? kr_buf_append(out, kr_bytes_skip(text, from)) : rc;
}

/* Whether an empty text's length stands at `at`. */
static bool is_empty_field(struct kr_bytes text, const struct box *in, size_t at)
{
    struct walk w = walk_into(text, in);
    struct field f;

    while (next_field(&w, &f)) {
        if (f.type == BYTES && f.box.length_at == at)
            return f.box.n == 0 && f.box.start == at + 1;
    }
    return false;
}

static int put_filled(struct kr_bytes text, size_t at, struct kr_bytes version,
                      const struct box *raw, const struct box *inner, struct kr_buf *out)
{
    int rc = put_front(out, text, raw, inner, inner->n - 1 + varint_size(version.n) + version.n);

    if (rc == 0)
        rc = kr_buf_append(out, kr_bytes_of(text.p + inner->start, at - inner->start));
    if (rc == 0)
        rc = put_varint(out, version.n);
    if (rc == 0)
        rc = kr_buf_append(out, version);
    return rc == 0 ? kr_buf_append(out, kr_bytes_skip(text, at + 1)) : rc;
}

int kr_proto_body_fill(struct kr_bytes text, uint32_t offset, struct kr_bytes version,
                       struct kr_buf *out)
{
    size_t before = out->n;
    struct box raw;
    struct box inner;
    int rc;

    if (!kr_proto_body_is(text) || !kr_write_body_version_is_plain(version) ||
        !find_boxes(text, offset, &raw, &inner) || !is_empty_field(text, &inner, offset))
        return KR_EPROTO;
    rc = put_filled(text, offset, version, &raw, &inner, out);
    if (rc != 0)
        out->n = before;
    return rc;
}
