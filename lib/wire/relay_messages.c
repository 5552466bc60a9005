/* SPDX-License-Identifier: Apache-2.0 */
/* RelayRequest and RelayResponse, once per relayed request at each end: written and read straight
 * from the wire format. tests/unit/wire/relay_messages_test.c holds them against protobuf-c. */
#include "base/err.h"
#include "wire/messages.h"
#include "wire/proto_scan.h"

enum request_field { /* numbers of kuberelay.proto */
                     REQUEST_ID = 1,
                     USER = 2,
                     GROUPS = 3,
                     UID = 4,
                     EXTRA = 5,
                     DEADLINE_MS = 6,
                     ATTEMPT = 7,
                     METHOD = 8,
                     UPGRADE_TOKEN = 9,
                     REBASE = 10,
                     MEMBER_TOKEN = 11,
                     USER_TOKEN = 12,
};
enum extra_field {
    EXTRA_KEY = 1,
    EXTRA_VALUES = 2,
};
enum rebase_field {
    REBASE_SUBSCRIPTION = 1,
    REBASE_UID = 2,
    REBASE_HASH = 3,
    REBASE_OFFSETS = 4,
};
enum response_field {
    ORIGIN = 1,
    QUEUE_US = 2,
    SERVER_US = 3,
    LEG = 4,
    NOT_SENT = 5,
};

static size_t extra_size(const struct kr_extra *e)
{
    size_t n = e->key.n != 0 ? kr_proto_element_size(EXTRA_KEY, e->key.n) : 0;

    for (size_t i = 0; i < e->value_count; i++)
        n += kr_proto_element_size(EXTRA_VALUES, e->values[i].n);
    return n;
}

static int put_extra(const struct kr_extra *e, struct kr_buf *out)
{
    int rc = kr_proto_put_length(out, EXTRA, extra_size(e));

    if (rc == 0)
        rc = kr_proto_put_bytes(out, EXTRA_KEY, e->key);
    for (size_t i = 0; i < e->value_count && rc == 0; i++)
        rc = kr_proto_put_element(out, EXTRA_VALUES, e->values[i]);
    return rc;
}

static int put_rebase(const struct kr_rebase *r, struct kr_buf *out)
{
    size_t start = out->n;
    int rc;

    if (r->subscription == 0)
        return 0;
    if (r->offset_count > KR_REBASE_OFFSETS_MAX)
        return KR_EINVAL;
    rc = kr_proto_put_varint(out, REBASE_SUBSCRIPTION, r->subscription);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, REBASE_UID, r->uid);
    if (rc == 0)
        rc = kr_proto_put_fixed64(out, REBASE_HASH, r->hash);
    if (rc == 0)
        rc = kr_proto_put_varints(out, REBASE_OFFSETS, r->offsets, r->offset_count);
    return rc == 0 ? kr_proto_wrap(out, REBASE, start) : rc;
}

int kr_relay_request_encode(const struct kr_relay_request *m, struct kr_buf *out)
{
    int rc;

    if (m->user.n == 0)
        return KR_EINVAL;
    rc = kr_proto_put_element(out, REQUEST_ID, kr_bytes_of(m->request_id, sizeof m->request_id));
    if (rc == 0)
        rc = kr_proto_put_bytes(out, USER, m->user);
    for (size_t i = 0; i < m->group_count && rc == 0; i++)
        rc = kr_proto_put_element(out, GROUPS, m->groups[i]);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, UID, m->uid);
    for (size_t i = 0; i < m->extra_count && rc == 0; i++)
        rc = put_extra(&m->extra[i], out);
    if (rc == 0)
        rc = kr_proto_put_varint(out, DEADLINE_MS, m->deadline_ms);
    if (rc == 0)
        rc = kr_proto_put_varint(out, ATTEMPT, m->attempt);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, METHOD, m->method);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, UPGRADE_TOKEN, m->upgrade_token);
    if (rc == 0)
        rc = put_rebase(&m->rebase, out);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, MEMBER_TOKEN, m->member_token);
    return rc == 0 ? kr_proto_put_bytes(out, USER_TOKEN, m->user_token) : rc;
}

/* These texts end up in header fields: no control bytes. */
static bool is_text(struct kr_bytes b)
{
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] < 0x20 || b.p[i] == 0x7F)
            return false;
    }
    return b.n <= KR_TEXT_MAX && kr_bytes_is_utf8(b);
}

static int take_text(const struct kr_proto_field *f, struct kr_bytes *out, const char *name,
                     struct kr_note *why)
{
    if (f->type != KR_PROTO_BYTES || !is_text(f->bytes))
        return kr_note_set(why, KR_EPROTO, "%s is no text", name);
    *out = f->bytes;
    return 0;
}

/* It ends up in a header field: visible ASCII. */
static int take_token(const struct kr_proto_field *f, struct kr_bytes *out, struct kr_note *why)
{
    bool good = f->type == KR_PROTO_BYTES && f->bytes.n <= KR_TOKEN_MAX;

    for (size_t i = 0; good && i < f->bytes.n; i++)
        good = f->bytes.p[i] > ' ' && f->bytes.p[i] < 0x7F;
    if (!good)
        return kr_note_set(why, KR_EPROTO, "a token that is none");
    *out = f->bytes;
    return 0;
}

static int take_number(const struct kr_proto_field *f, uint32_t *out, const char *name,
                       struct kr_note *why)
{
    if (f->type != KR_PROTO_VARINT)
        return kr_note_set(why, KR_EPROTO, "%s is no number", name);
    *out = (uint32_t)f->varint;
    return 0;
}

/* How often a field is there; KR_ETOOBIG beyond `max`. */
static int count(struct kr_bytes in, uint32_t number, size_t max, size_t *n, struct kr_note *why)
{
    *n = 0;
    while (in.n != 0) {
        struct kr_proto_field f;

        if (kr_proto_next(&in, &f) != 0)
            return kr_note_set(why, KR_EPROTO, "malformed protobuf");
        *n += f.number == number;
    }
    return *n > max ? kr_note_set(why, KR_ETOOBIG, "more than %zu entries in field %u", max, number)
                    : 0;
}

static void *alloc(struct kr_arena *arena, size_t count, size_t size)
{
    return kr_arena_alloc(arena, count != 0 ? count * size : 1);
}

static int take_extra(struct kr_bytes in, struct kr_extra *e, struct kr_arena *arena,
                      struct kr_note *why)
{
    struct kr_bytes *values;
    int rc = count(in, EXTRA_VALUES, KR_EXTRA_VALUES_MAX, &e->value_count, why);

    if (rc != 0)
        return rc;
    values = alloc(arena, e->value_count, sizeof *values);
    if (values == NULL)
        return kr_note_set(why, KR_ENOMEM, "no memory for extra");
    e->values = values;
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        if (f.number == EXTRA_KEY)
            rc = take_text(&f, &e->key, "extra.key", why);
        else if (f.number == EXTRA_VALUES)
            rc = take_text(&f, values++, "extra.values", why);
    }
    if (rc == 0 && e->key.n == 0)
        return kr_note_set(why, KR_EPROTO, "extra without a key");
    return rc;
}

static int take_hash(const struct kr_proto_field *f, uint64_t *out, struct kr_note *why)
{
    if (f->type != KR_PROTO_FIXED64)
        return kr_note_set(why, KR_EPROTO, "rebase.hash is no fixed64");
    *out = 0;
    for (size_t i = 8; i-- > 0;)
        *out = *out << 8 | f->bytes.p[i];
    return 0;
}

static int add_offset(struct kr_rebase *r, uint64_t offset, struct kr_note *why)
{
    bool ascends = r->offset_count == 0 || offset > r->offsets[r->offset_count - 1];

    if (r->offset_count == KR_REBASE_OFFSETS_MAX)
        return kr_note_set(why, KR_ETOOBIG, "more than %d offsets", KR_REBASE_OFFSETS_MAX);
    if (offset > UINT32_MAX || !ascends)
        return kr_note_set(why, KR_EPROTO, "rebase.offsets do not ascend");
    r->offsets[r->offset_count++] = (uint32_t)offset;
    return 0;
}

/* Packed, or one by one. */
static int take_offsets(const struct kr_proto_field *f, struct kr_rebase *r, struct kr_note *why)
{
    struct kr_bytes rest = f->bytes;
    int rc = 0;

    if (f->type == KR_PROTO_VARINT)
        return add_offset(r, f->varint, why);
    if (f->type != KR_PROTO_BYTES)
        return kr_note_set(why, KR_EPROTO, "rebase.offsets are no numbers");
    while (rest.n != 0 && rc == 0) {
        uint64_t offset;

        if (kr_proto_take_varint(&rest, &offset) != 0)
            return kr_note_set(why, KR_EPROTO, "malformed protobuf");
        rc = add_offset(r, offset, why);
    }
    return rc;
}

static int take_rebase_field(const struct kr_proto_field *f, struct kr_rebase *r,
                             struct kr_note *why)
{
    switch (f->number) {
    case REBASE_SUBSCRIPTION:
        if (f->type != KR_PROTO_VARINT)
            return kr_note_set(why, KR_EPROTO, "rebase.subscription is no number");
        r->subscription = f->varint;
        return 0;
    case REBASE_UID:
        return take_text(f, &r->uid, "rebase.uid", why);
    case REBASE_HASH:
        return take_hash(f, &r->hash, why);
    case REBASE_OFFSETS:
        return take_offsets(f, r, why);
    default:
        return 0;
    }
}

/* A body whose versions are missing must never pass for one that asks for nothing. */
static int take_rebase(const struct kr_proto_field *f, struct kr_rebase *r, struct kr_note *why)
{
    struct kr_bytes in = f->bytes;
    int rc = 0;

    if (f->type != KR_PROTO_BYTES || r->subscription != 0)
        return kr_note_set(why, KR_EPROTO, "not exactly one rebase message");
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field inner;

        if (kr_proto_next(&in, &inner) != 0)
            return kr_note_set(why, KR_EPROTO, "malformed protobuf");
        rc = take_rebase_field(&inner, r, why);
    }
    if (rc == 0 && (r->subscription == 0 || r->uid.n == 0 || r->offset_count == 0))
        return kr_note_set(why, KR_EPROTO, "a rebase without subscription, uid or offsets");
    return rc;
}

struct lists { /* where the next element goes */
    struct kr_bytes *group;
    struct kr_extra *extra;
};

static int take_id(struct kr_relay_request *m, const struct kr_proto_field *f, struct kr_note *why)
{
    if (f->type != KR_PROTO_BYTES || f->bytes.n != sizeof m->request_id)
        return kr_note_set(why, KR_EPROTO, "request_id is not 16 bytes");
    memcpy(m->request_id, f->bytes.p, sizeof m->request_id);
    return 0;
}

static int take_field(struct kr_relay_request *m, const struct kr_proto_field *f, struct lists *to,
                      struct kr_arena *arena, struct kr_note *why)
{
    switch (f->number) {
    case REQUEST_ID:
        return take_id(m, f, why);
    case USER:
        return take_text(f, &m->user, "user", why);
    case GROUPS:
        if (f->bytes.n == 0)
            return kr_note_set(why, KR_EPROTO, "an empty group");
        return take_text(f, to->group++, "groups", why);
    case UID:
        return take_text(f, &m->uid, "uid", why);
    case EXTRA:
        if (f->type != KR_PROTO_BYTES)
            return kr_note_set(why, KR_EPROTO, "extra is no message");
        return take_extra(f->bytes, to->extra++, arena, why);
    case DEADLINE_MS:
        return take_number(f, &m->deadline_ms, "deadline_ms", why);
    case ATTEMPT:
        return take_number(f, &m->attempt, "attempt", why);
    case METHOD:
        return take_text(f, &m->method, "method", why);
    case UPGRADE_TOKEN:
        return take_text(f, &m->upgrade_token, "upgrade_token", why);
    case REBASE:
        return take_rebase(f, &m->rebase, why);
    case MEMBER_TOKEN:
        return take_token(f, &m->member_token, why);
    case USER_TOKEN:
        return take_token(f, &m->user_token, why);
    default:
        return 0; /* of a newer version */
    }
}

static int make_lists(struct kr_relay_request *m, struct kr_bytes in, struct lists *to,
                      struct kr_arena *arena, struct kr_note *why)
{
    int rc = count(in, GROUPS, KR_GROUPS_MAX, &m->group_count, why);

    if (rc == 0)
        rc = count(in, EXTRA, KR_EXTRA_MAX, &m->extra_count, why);
    if (rc != 0)
        return rc;
    to->group = alloc(arena, m->group_count, sizeof *to->group);
    to->extra = alloc(arena, m->extra_count, sizeof *to->extra);
    if (to->group == NULL || to->extra == NULL)
        return kr_note_set(why, KR_ENOMEM, "no memory for the request's identity");
    memset(to->extra, 0, m->extra_count * sizeof *to->extra);
    m->groups = to->group;
    m->extra = to->extra;
    return 0;
}

int kr_relay_request_decode(struct kr_relay_request *m, struct kr_bytes in, struct kr_arena *arena,
                            struct kr_note *why)
{
    struct lists to = {NULL, NULL};
    bool has_id = false;
    int rc;

    *m = (struct kr_relay_request){.deadline_ms = 0};
    rc = make_lists(m, in, &to, arena, why);
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        has_id = has_id || f.number == REQUEST_ID;
        rc = take_field(m, &f, &to, arena, why);
    }
    if (rc == 0 && (!has_id || m->user.n == 0))
        rc = kr_note_set(why, KR_EPROTO, "a relayed request without id or user");
    if (rc != 0)
        *m = (struct kr_relay_request){.deadline_ms = 0};
    return rc;
}

int kr_relay_response_encode(const struct kr_relay_response *m, struct kr_buf *out)
{
    int rc = kr_proto_put_varint(out, ORIGIN, (uint64_t)m->origin);

    if (rc == 0)
        rc = kr_proto_put_varint(out, QUEUE_US, m->queue_us);
    if (rc == 0)
        rc = kr_proto_put_varint(out, SERVER_US, m->server_us);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, LEG, m->leg);
    return rc == 0 ? kr_proto_put_varint(out, NOT_SENT, m->not_sent) : rc;
}

static int take_answer_field(struct kr_relay_response *m, const struct kr_proto_field *f,
                             struct kr_note *why)
{
    uint32_t v = 0;
    int rc;

    switch (f->number) {
    case ORIGIN:
        rc = take_number(f, &v, "origin", why);
        m->origin = v <= KR_ORIGIN_AGENT ? (enum kr_origin)v : KR_ORIGIN_UNSPECIFIED;
        return rc;
    case QUEUE_US:
        return take_number(f, &m->queue_us, "queue_us", why);
    case SERVER_US:
        return take_number(f, &m->server_us, "server_us", why);
    case LEG:
        return take_text(f, &m->leg, "leg", why);
    case NOT_SENT:
        if (f->type != KR_PROTO_VARINT)
            return kr_note_set(why, KR_EPROTO, "not_sent is no bool");
        m->not_sent = f->varint != 0;
        return 0;
    default:
        return 0;
    }
}

int kr_relay_response_decode(struct kr_relay_response *m, struct kr_bytes in, struct kr_note *why)
{
    int rc = 0;

    *m = (struct kr_relay_response){.origin = KR_ORIGIN_UNSPECIFIED};
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        if (kr_proto_next(&in, &f) != 0)
            rc = kr_note_set(why, KR_EPROTO, "malformed protobuf");
        else
            rc = take_answer_field(m, &f, why);
    }
    if (rc != 0)
        *m = (struct kr_relay_response){.origin = KR_ORIGIN_UNSPECIFIED};
    return rc;
}
