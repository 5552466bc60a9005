/* SPDX-License-Identifier: Apache-2.0 */
/* SyncControl: what the hub says on a Sync call. */
#include "wire/sync_messages.h"

#include "base/err.h"
#include "wire/proto_read.h"

enum control_field { /* numbers of kuberelay.proto */
                     OPEN = 1,
                     CONTROL_BUCKETS = 2,
};
enum open_field {
    SUBSCRIPTION = 1,
    SUMS = 2,
    OBJECTS = 3,
    OPEN_VERSION = 4,
    DICTIONARIES = 5,
};
enum subscription_field {
    ID = 1,
    GROUP = 2,
    VERSION = 3,
    RESOURCE = 4,
    NAMESPACES = 5,
    LABEL_SELECTOR = 6,
    FIELD_SELECTOR = 7,
    KEEP = 8,
    DROP = 9,
    METADATA_ONLY = 10,
    PRIORITY = 11,
};
enum pairs_field {
    BUCKET = 1,
    PAIRS = 2,
    MORE = 3,
};

#define DICTIONARIES_MAX 64

/* --- writing ------------------------------------------------------------------------------- */

static int put_list(struct kr_buf *out, uint32_t number, const struct kr_bytes *v, size_t n)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = kr_proto_put_element(out, number, v[i]);
    return rc;
}

static int put_subscription(const struct kr_subscription *s, struct kr_buf *out)
{
    size_t start = out->n;
    int rc = kr_proto_put_varint(out, ID, s->id);

    if (rc == 0)
        rc = kr_proto_put_bytes(out, GROUP, s->group);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, VERSION, s->version);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, RESOURCE, s->resource);
    if (rc == 0)
        rc = put_list(out, NAMESPACES, s->namespaces, s->namespace_count);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, LABEL_SELECTOR, s->label_selector);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, FIELD_SELECTOR, s->field_selector);
    if (rc == 0)
        rc = put_list(out, KEEP, s->keep, s->keep_count);
    if (rc == 0)
        rc = put_list(out, DROP, s->drop, s->drop_count);
    if (rc == 0)
        rc = kr_proto_put_varint(out, METADATA_ONLY, s->metadata_only);
    if (rc == 0)
        rc = kr_proto_put_varint(out, PRIORITY, s->priority);
    return rc == 0 ? kr_proto_wrap(out, SUBSCRIPTION, start) : rc;
}

static int put_open(const struct kr_sync_open *o, struct kr_buf *out)
{
    size_t start = out->n;
    int rc = put_subscription(&o->subscription, out);

    if (rc == 0 && o->holds)
        rc = kr_proto_put_fixed64s(out, SUMS, o->digest.sums, KR_BUCKETS);
    if (rc == 0 && o->holds)
        rc = kr_proto_put_varint(out, OBJECTS, o->digest.objects);
    if (rc == 0 && o->holds)
        rc = kr_proto_put_bytes(out, OPEN_VERSION, o->version);
    if (rc == 0)
        rc = kr_proto_put_varints(out, DICTIONARIES, o->dictionaries, o->dictionary_count);
    return rc == 0 ? kr_proto_wrap(out, OPEN, start) : rc;
}

static int put_pairs(const struct kr_bucket_pairs *b, struct kr_buf *out)
{
    _Static_assert(sizeof(struct kr_pair) == 2 * sizeof(uint64_t), "pairs are numbers in a row");
    size_t start = out->n;
    int rc = kr_proto_put_varint(out, BUCKET, b->bucket);

    if (rc == 0)
        rc = kr_proto_put_fixed64s(out, PAIRS, b->n != 0 ? &b->pairs->key : NULL, 2 * b->n);
    if (rc == 0)
        rc = kr_proto_put_varint(out, MORE, b->more);
    return rc == 0 ? kr_proto_wrap(out, CONTROL_BUCKETS, start) : rc;
}

int kr_sync_control_encode(const struct kr_sync_control *m, struct kr_buf *out)
{
    int rc = m->open != NULL ? put_open(m->open, out) : 0;

    for (size_t i = 0; i < m->bucket_count && rc == 0; i++)
        rc = put_pairs(&m->buckets[i], out);
    return rc;
}

/* --- reading ------------------------------------------------------------------------------- */

static int no_memory(struct kr_note *why)
{
    return kr_note_set(why, KR_ENOMEM, "no memory for SyncControl");
}

struct lists { /* where the next element goes */
    struct kr_bytes *namespace;
    struct kr_bytes *keep;
    struct kr_bytes *drop;
};

static int make_lists(struct kr_subscription *s, struct kr_bytes in, struct lists *to,
                      struct kr_arena *arena, struct kr_note *why)
{
    int rc =
        kr_proto_count(in, NAMESPACES, KR_SYNC_LIST_MAX, &s->namespace_count, "namespaces", why);

    if (rc == 0)
        rc = kr_proto_count(in, KEEP, KR_SYNC_LIST_MAX, &s->keep_count, "paths to keep", why);
    if (rc == 0)
        rc = kr_proto_count(in, DROP, KR_SYNC_LIST_MAX, &s->drop_count, "paths to drop", why);
    if (rc != 0)
        return rc;
    to->namespace = kr_proto_list(arena, s->namespace_count, sizeof *to->namespace);
    to->keep = kr_proto_list(arena, s->keep_count, sizeof *to->keep);
    to->drop = kr_proto_list(arena, s->drop_count, sizeof *to->drop);
    s->namespaces = to->namespace;
    s->keep = to->keep;
    s->drop = to->drop;
    return to->namespace != NULL && to->keep != NULL && to->drop != NULL ? 0 : no_memory(why);
}

static int take_subscription_field(struct kr_subscription *s, const struct kr_proto_field *f,
                                   struct lists *to, struct kr_note *why)
{
    switch (f->number) {
    case ID:
        return kr_proto_u64(f, &s->id, "id", why);
    case GROUP: /* the core group's name is empty */
        return f->bytes.n != 0 ? kr_proto_word(f, KR_SYNC_TEXT_MAX, &s->group, "group", why)
                               : kr_proto_raw(f, &s->group, "group", why);
    case VERSION:
        return kr_proto_word(f, KR_SYNC_TEXT_MAX, &s->version, "version", why);
    case RESOURCE:
        return kr_proto_word(f, KR_SYNC_TEXT_MAX, &s->resource, "resource", why);
    case NAMESPACES:
        return kr_proto_word(f, KR_SYNC_TEXT_MAX, to->namespace ++, "namespaces", why);
    case LABEL_SELECTOR:
        return kr_proto_text(f, KR_SYNC_TEXT_MAX, &s->label_selector, "label_selector", why);
    case FIELD_SELECTOR:
        return kr_proto_text(f, KR_SYNC_TEXT_MAX, &s->field_selector, "field_selector", why);
    case KEEP:
        return kr_proto_word(f, KR_SYNC_TEXT_MAX, to->keep++, "keep", why);
    case DROP:
        return kr_proto_word(f, KR_SYNC_TEXT_MAX, to->drop++, "drop", why);
    case METADATA_ONLY:
        return kr_proto_bool(f, &s->metadata_only, "metadata_only", why);
    case PRIORITY:
        return kr_proto_u32(f, &s->priority, "priority", why);
    default:
        return 0; /* of a newer version */
    }
}

static int take_subscription(struct kr_bytes in, struct kr_subscription *s, struct kr_arena *arena,
                             struct kr_note *why)
{
    struct lists to;
    int rc;

    *s = (struct kr_subscription){.id = 0};
    rc = make_lists(s, in, &to, arena, why);
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        rc = take_subscription_field(s, &f, &to, why);
    }
    if (rc == 0 && (s->version.n == 0 || s->resource.n == 0))
        rc = kr_note_set(why, KR_EPROTO, "a subscription without version or resource");
    return rc;
}

struct open_lists {
    uint64_t *sum;
    uint32_t *dictionary;
};

static int take_open_field(struct kr_sync_open *o, const struct kr_proto_field *f,
                           struct open_lists *to, struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes in;
    int rc;

    switch (f->number) {
    case SUBSCRIPTION:
        rc = kr_proto_raw(f, &in, "subscription", why);
        return rc == 0 ? take_subscription(in, &o->subscription, arena, why) : rc;
    case SUMS:
        return kr_proto_take_fixed64(f, &to->sum, "buckets", why);
    case OBJECTS:
        return kr_proto_u64(f, &o->digest.objects, "objects", why);
    case OPEN_VERSION:
        return kr_proto_word(f, KR_SYNC_TEXT_MAX, &o->version, "version", why);
    case DICTIONARIES:
        return kr_proto_take_varints(f, &to->dictionary, "dictionaries", why);
    default:
        return 0;
    }
}

static int take_open_fields(struct kr_bytes in, struct kr_sync_open *o, struct kr_arena *arena,
                            struct kr_note *why)
{
    struct open_lists to = {.sum = o->digest.sums};
    size_t sums;
    int rc = kr_proto_count_fixed64(in, SUMS, KR_BUCKETS, &sums, "sums", why);

    if (rc == 0 && sums != 0 && sums != KR_BUCKETS)
        rc = kr_note_set(why, KR_EPROTO, "%zu sums of buckets", sums);
    if (rc == 0)
        rc = kr_proto_count_varints(in, DICTIONARIES, DICTIONARIES_MAX, &o->dictionary_count,
                                    "dictionaries", why);
    if (rc != 0)
        return rc;
    o->holds = sums != 0;
    o->dictionaries = to.dictionary =
        kr_proto_list(arena, o->dictionary_count, sizeof *to.dictionary);
    if (to.dictionary == NULL)
        return no_memory(why);
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        rc = take_open_field(o, &f, &to, arena, why);
    }
    if (rc == 0 && o->subscription.resource.n == 0)
        rc = kr_note_set(why, KR_EPROTO, "SyncOpen without a subscription");
    if (!o->holds) {
        o->digest.objects = 0;
        o->version = KR_LIT("");
    }
    return rc;
}

static int take_open(const struct kr_proto_field *f, struct kr_sync_control *m,
                     struct kr_arena *arena, struct kr_note *why)
{
    struct kr_sync_open *o;
    struct kr_bytes in;
    int rc = kr_proto_raw(f, &in, "open", why);

    if (rc != 0)
        return rc;
    if (m->open != NULL)
        return kr_note_set(why, KR_EPROTO, "SyncControl with two opens");
    o = kr_proto_list(arena, 1, sizeof *o);
    if (o == NULL)
        return no_memory(why);
    *o = (struct kr_sync_open){.holds = false};
    m->open = o;
    return take_open_fields(in, o, arena, why);
}

static int take_pairs(struct kr_bytes in, struct kr_bucket_pairs *b, struct kr_arena *arena,
                      struct kr_note *why)
{
    uint64_t *to;
    int rc = kr_proto_count_fixed64(in, PAIRS, 2 * KR_PAIRS_MAX, &b->n, "pairs", why);

    if (rc == 0 && b->n % 2 != 0)
        rc = kr_note_set(why, KR_EPROTO, "half a pair");
    if (rc != 0)
        return rc;
    to = kr_proto_list(arena, b->n, sizeof *to);
    if (to == NULL)
        return no_memory(why);
    b->pairs = (const struct kr_pair *)(const void *)to;
    b->n /= 2;
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        if (f.number == BUCKET)
            rc = kr_proto_u32(&f, &b->bucket, "bucket", why);
        else if (f.number == PAIRS)
            rc = kr_proto_take_fixed64(&f, &to, "pairs", why);
        else if (f.number == MORE)
            rc = kr_proto_bool(&f, &b->more, "more", why);
    }
    for (size_t i = 0; i < b->n && rc == 0; i++) {
        if (kr_bucket_of(b->pairs[i].key) != b->bucket)
            rc = kr_note_set(why, KR_EPROTO, "a pair that is not of bucket %u", b->bucket);
    }
    return rc == 0 && b->bucket >= KR_BUCKETS
               ? kr_note_set(why, KR_EPROTO, "pairs of bucket %u", b->bucket)
               : rc;
}

int kr_sync_control_decode(struct kr_sync_control *m, struct kr_bytes in, struct kr_arena *arena,
                           struct kr_note *why)
{
    struct kr_bucket_pairs *to = NULL;
    int rc;

    *m = (struct kr_sync_control){.bucket_count = 0};
    if (in.n > KR_SYNC_MESSAGE_MAX)
        return kr_note_set(why, KR_ETOOBIG, "a SyncControl of %zu bytes", in.n);
    rc = kr_proto_count(in, CONTROL_BUCKETS, KR_BUCKETS, &m->bucket_count, "buckets", why);
    if (rc == 0) {
        m->buckets = to = kr_proto_list(arena, m->bucket_count, sizeof *to);
        rc = to != NULL ? 0 : no_memory(why);
    }
    if (rc == 0)
        memset(to, 0, m->bucket_count * sizeof *to);
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;
        struct kr_bytes pairs;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        if (f.number == OPEN)
            rc = take_open(&f, m, arena, why);
        else if (f.number == CONTROL_BUCKETS)
            rc = kr_proto_raw(&f, &pairs, "buckets", why);
        if (f.number == CONTROL_BUCKETS && rc == 0)
            rc = take_pairs(pairs, to++, arena, why);
    }
    if (rc != 0)
        *m = (struct kr_sync_control){.bucket_count = 0};
    return rc;
}
