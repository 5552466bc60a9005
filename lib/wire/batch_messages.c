/* SPDX-License-Identifier: Apache-2.0 */
/* SyncBatch: a message of the hot path, written and read straight from the wire format.
 * tests/unit/wire/sync_messages_test.c holds it against protobuf-c. */
#include "base/err.h"
#include "wire/proto_read.h"
#include "wire/sync_messages.h"

enum batch_field { /* numbers of kuberelay.proto */
                   COLUMNS = 1,
                   WANT_BUCKETS = 2,
                   UPSERTS = 3,
                   DELETES = 4,
                   SNAPSHOT_END = 5,
                   PROGRESS = 6,
                   PROBLEM = 7,
                   PROBLEM_TEXT = 8,
                   HAS_PROBLEM = 9,
                   SKIPPED = 10,
                   RAW_BYTES = 11,
};
enum upsert_field {
    NAMESPACE = 1,
    NAME = 2,
    UID = 3,
    VERSION = 4,
    HASH = 5,
    LOSSY = 6,
    DICTIONARY = 7,
    SIZE = 8,
    PACKED = 9,
};

/* A shorter one lacks something: a name (3 bytes), a size (2) or bytes (3). So a hostile message
 * cannot make the list of upserts many times larger than itself. */
#define UPSERT_MIN 8

/* --- writing ------------------------------------------------------------------------------- */

static size_t bytes_size(uint32_t number, struct kr_bytes v)
{
    return v.n != 0 ? kr_proto_element_size(number, v.n) : 0;
}

static size_t varint_size(uint64_t v) /* with the key, which has one byte here */
{
    return v != 0 ? 1 + kr_proto_varint_size(v) : 0;
}

static size_t inner_size(const struct kr_upsert *u)
{
    return bytes_size(NAMESPACE, u->ns) + bytes_size(NAME, u->name) + bytes_size(UID, u->uid) +
           bytes_size(VERSION, u->version) + 9 + varint_size(u->lossy) +
           varint_size(u->dictionary) + varint_size(u->size) + bytes_size(PACKED, u->packed);
}

size_t kr_upsert_size(const struct kr_upsert *u)
{
    return kr_proto_element_size(UPSERTS, inner_size(u));
}

static bool is_word(struct kr_bytes b)
{
    return b.n <= KR_SYNC_TEXT_MAX && kr_proto_is_word(b);
}

/* What both ends ask of an upsert. */
static bool is_sound(const struct kr_upsert *u)
{
    return u->name.n != 0 && is_word(u->ns) && is_word(u->name) && is_word(u->uid) &&
           is_word(u->version) && u->size != 0 && u->size <= KR_PLAIN_MAX && u->packed.n != 0 &&
           (u->dictionary != 0 || u->packed.n == u->size);
}

int kr_upsert_encode(const struct kr_upsert *u, struct kr_buf *out)
{
    int rc = is_sound(u) ? kr_buf_reserve(out, kr_upsert_size(u) + KR_UPSERT_SLACK) : KR_EINVAL;

    if (rc == 0)
        rc = kr_proto_put_length(out, UPSERTS, inner_size(u));
    if (rc == 0)
        rc = kr_proto_put_bytes(out, NAMESPACE, u->ns);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, NAME, u->name);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, UID, u->uid);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, VERSION, u->version);
    if (rc == 0)
        rc = kr_proto_put_fixed64(out, HASH, u->hash);
    if (rc == 0)
        rc = kr_proto_put_varint(out, LOSSY, u->lossy);
    if (rc == 0)
        rc = kr_proto_put_varint(out, DICTIONARY, u->dictionary);
    if (rc == 0)
        rc = kr_proto_put_varint(out, SIZE, u->size);
    return rc == 0 ? kr_proto_put_bytes(out, PACKED, u->packed) : rc;
}

static int put_problem(const struct kr_sync_batch *m, struct kr_buf *out)
{
    int rc = kr_proto_put_varint(out, PROBLEM, (uint64_t)m->problem);

    if (rc == 0)
        rc = kr_proto_put_bytes(out, PROBLEM_TEXT, m->problem_text);
    return rc == 0 ? kr_proto_put_varint(out, HAS_PROBLEM, true) : rc;
}

int kr_sync_batch_encode(const struct kr_sync_batch *m, struct kr_buf *out)
{
    int rc = kr_proto_put_bytes(out, COLUMNS, m->columns);

    if (rc == 0)
        rc = kr_proto_put_varints(out, WANT_BUCKETS, m->want_buckets, m->want_count);
    for (size_t i = 0; i < m->upsert_count && rc == 0; i++)
        rc = kr_upsert_encode(&m->upserts[i], out);
    if (rc == 0)
        rc = kr_proto_put_fixed64s(out, DELETES, m->deletes, m->delete_count);
    if (rc == 0)
        rc = kr_proto_put_varint(out, SNAPSHOT_END, m->snapshot_end);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, PROGRESS, m->progress);
    if (rc == 0 && m->has_problem)
        rc = put_problem(m, out);
    if (rc == 0)
        rc = kr_proto_put_varint(out, SKIPPED, m->skipped);
    return rc == 0 ? kr_proto_put_varint(out, RAW_BYTES, m->raw_bytes) : rc;
}

/* --- reading ------------------------------------------------------------------------------- */

static int take_upsert_field(struct kr_upsert *u, const struct kr_proto_field *f,
                             struct kr_note *why)
{
    switch (f->number) {
    case NAMESPACE:
        return kr_proto_raw(f, &u->ns, "namespace", why);
    case NAME:
        return kr_proto_raw(f, &u->name, "name", why);
    case UID:
        return kr_proto_raw(f, &u->uid, "uid", why);
    case VERSION:
        return kr_proto_raw(f, &u->version, "version", why);
    case HASH:
        return kr_proto_fixed64(f, &u->hash, "hash", why);
    case LOSSY:
        return kr_proto_bool(f, &u->lossy, "lossy", why);
    case DICTIONARY:
        return kr_proto_u32(f, &u->dictionary, "dictionary", why);
    case SIZE:
        return kr_proto_u32(f, &u->size, "size", why);
    case PACKED:
        return kr_proto_raw(f, &u->packed, "packed", why);
    default:
        return 0; /* of a newer version */
    }
}

static int take_upsert(struct kr_bytes in, struct kr_upsert *u, struct kr_note *why)
{
    *u = (struct kr_upsert){.hash = 0};
    if (in.n < UPSERT_MIN)
        return kr_note_set(why, KR_EPROTO, "an upsert of %zu bytes", in.n);
    while (in.n != 0) {
        struct kr_proto_field f;
        int rc = kr_proto_next(&in, &f);

        if (rc != 0)
            return kr_note_set(why, rc, "malformed upsert");
        rc = take_upsert_field(u, &f, why);
        if (rc != 0)
            return rc;
    }
    return is_sound(u) ? 0 : kr_note_set(why, KR_EPROTO, "an upsert that cannot be");
}

/* What is behind the lists. */
struct todo {
    uint32_t *want;
    struct kr_upsert *upsert;
    uint64_t *delete;
    uint64_t plain; /* bytes of plain text so far */
};

static int take_next_upsert(const struct kr_proto_field *f, struct todo *to, struct kr_note *why)
{
    struct kr_bytes in;
    int rc = kr_proto_raw(f, &in, "upserts", why);

    if (rc == 0)
        rc = take_upsert(in, to->upsert, why);
    if (rc != 0)
        return rc;
    to->plain += to->upsert++->size;
    return to->plain <= KR_SYNC_PLAIN_MAX
               ? 0
               : kr_note_set(why, KR_ETOOBIG, "a batch of more than %u plain bytes",
                             KR_SYNC_PLAIN_MAX);
}

/* A problem that this version does not know is one that may pass. */
static int take_problem(struct kr_sync_batch *m, const struct kr_proto_field *f,
                        struct kr_note *why)
{
    uint32_t v = 0;
    int rc = kr_proto_u32(f, &v, "problem", why);

    m->problem = v <= KR_SYNC_BAD_PROFILE ? (enum kr_sync_problem)v : KR_SYNC_FAILING;
    return rc;
}

static int take_field(struct kr_sync_batch *m, const struct kr_proto_field *f, struct todo *to,
                      struct kr_note *why)
{
    switch (f->number) {
    case COLUMNS:
        return kr_proto_text(f, KR_SYNC_COLUMNS_MAX, &m->columns, "columns", why);
    case WANT_BUCKETS:
        return kr_proto_take_varints(f, &to->want, "want_buckets", why);
    case UPSERTS:
        return take_next_upsert(f, to, why);
    case DELETES:
        return kr_proto_take_fixed64(f, &to->delete, "deletes", why);
    case SNAPSHOT_END:
        return kr_proto_bool(f, &m->snapshot_end, "snapshot_end", why);
    case PROGRESS:
        return kr_proto_word(f, KR_SYNC_TEXT_MAX, &m->progress, "progress", why);
    case PROBLEM:
        return take_problem(m, f, why);
    case PROBLEM_TEXT:
        return kr_proto_text(f, KR_SYNC_TEXT_MAX, &m->problem_text, "problem_text", why);
    case HAS_PROBLEM:
        return kr_proto_bool(f, &m->has_problem, "has_problem", why);
    case SKIPPED:
        return kr_proto_u32(f, &m->skipped, "skipped", why);
    case RAW_BYTES:
        return kr_proto_u64(f, &m->raw_bytes, "raw_bytes", why);
    default:
        return 0;
    }
}

static int make_lists(struct kr_sync_batch *m, struct kr_bytes in, struct todo *to,
                      struct kr_arena *arena, struct kr_note *why)
{
    int rc = kr_proto_count_varints(in, WANT_BUCKETS, KR_BUCKETS, &m->want_count, "buckets", why);

    if (rc == 0)
        rc = kr_proto_count(in, UPSERTS, KR_SYNC_UPSERTS_MAX, &m->upsert_count, "upserts", why);
    if (rc == 0)
        rc = kr_proto_count_fixed64(in, DELETES, KR_SYNC_UPSERTS_MAX, &m->delete_count, "deletes",
                                    why);
    if (rc == 0 && m->upsert_count * UPSERT_MIN > in.n)
        rc = kr_note_set(why, KR_EPROTO, "upserts that are too short");
    if (rc != 0)
        return rc;
    to->want = kr_proto_list(arena, m->want_count, sizeof *to->want);
    to->upsert = kr_proto_list(arena, m->upsert_count, sizeof *to->upsert);
    to->delete = kr_proto_list(arena, m->delete_count, sizeof *to->delete);
    if (to->want == NULL || to->upsert == NULL || to->delete == NULL)
        return kr_note_set(why, KR_ENOMEM, "no memory for a batch");
    m->want_buckets = to->want;
    m->upserts = to->upsert;
    m->deletes = to->delete;
    return 0;
}

static int check(const struct kr_sync_batch *m, struct kr_note *why)
{
    for (size_t i = 0; i < m->want_count; i++) {
        if (m->want_buckets[i] >= KR_BUCKETS)
            return kr_note_set(why, KR_EPROTO, "bucket %u is wanted", m->want_buckets[i]);
    }
    return 0;
}

int kr_sync_batch_decode(struct kr_sync_batch *m, struct kr_bytes in, struct kr_arena *arena,
                         struct kr_note *why)
{
    struct todo to = {.plain = 0};
    int rc;

    *m = (struct kr_sync_batch){.skipped = 0};
    if (in.n > KR_SYNC_MESSAGE_MAX)
        return kr_note_set(why, KR_ETOOBIG, "a batch of %zu bytes", in.n);
    rc = make_lists(m, in, &to, arena, why);
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        rc = take_field(m, &f, &to, why);
    }
    if (rc == 0)
        rc = check(m, why);
    if (rc != 0)
        *m = (struct kr_sync_batch){.skipped = 0};
    else if (!m->has_problem)
        m->problem = KR_SYNC_OK, m->problem_text = KR_LIT("");
    return rc;
}
