/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/enroll_messages.h"

#include "base/err.h"
#include "wire/proto_read.h"

#define TOKEN_MAX 128
#define INSTANCE_MAX 255

enum join_field { /* numbers of kuberelay.proto */
                  JOIN_TOKEN = 1,
                  JOIN_CSR = 2,
                  JOIN_INSTANCE = 3,
};
enum renew_field {
    RENEW_CSR = 1,
    RENEW_GENERATION = 2,
};
enum answer_field {
    ANSWER_CHAIN = 1,
    ANSWER_BUNDLE = 2,
    ANSWER_BUNDLE_GENERATION = 3,
    ANSWER_GENERATION = 4,
    ANSWER_PENDING = 5,
};

/* Calls `take` for each field. */
static int walk(struct kr_bytes in, size_t max,
                int (*take)(void *m, const struct kr_proto_field *f, struct kr_note *why), void *m,
                struct kr_note *why)
{
    int rc = 0;

    if (in.n > max)
        return kr_note_set(why, KR_ETOOBIG, "a message of %zu bytes", in.n);
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        if (kr_proto_next(&in, &f) != 0)
            return kr_note_set(why, KR_EPROTO, "malformed message");
        rc = take(m, &f, why);
    }
    return rc;
}

int kr_join_request_encode(const struct kr_join_request *m, struct kr_buf *out)
{
    int rc = kr_proto_put_bytes(out, JOIN_TOKEN, m->token);

    if (rc == 0)
        rc = kr_proto_put_bytes(out, JOIN_CSR, m->csr);
    return rc == 0 ? kr_proto_put_bytes(out, JOIN_INSTANCE, m->instance) : rc;
}

static int take_join(void *to, const struct kr_proto_field *f, struct kr_note *why)
{
    struct kr_join_request *m = to;

    switch (f->number) {
    case JOIN_TOKEN:
        return kr_proto_word(f, TOKEN_MAX, &m->token, "token", why);
    case JOIN_CSR:
        return kr_proto_raw(f, &m->csr, "csr", why);
    case JOIN_INSTANCE:
        return f->bytes.n != 0 ? kr_proto_word(f, INSTANCE_MAX, &m->instance, "instance", why)
                               : kr_proto_raw(f, &m->instance, "instance", why);
    default:
        return 0; /* of a newer version */
    }
}

int kr_join_request_decode(struct kr_join_request *m, struct kr_bytes in, struct kr_note *why)
{
    *m = (struct kr_join_request){.token = {NULL, 0}};
    return walk(in, KR_ENROLL_REQUEST_MAX, take_join, m, why);
}

int kr_renew_request_encode(const struct kr_renew_request *m, struct kr_buf *out)
{
    int rc = kr_proto_put_bytes(out, RENEW_CSR, m->csr);

    return rc == 0 ? kr_proto_put_varint(out, RENEW_GENERATION, m->generation) : rc;
}

static int take_renew(void *to, const struct kr_proto_field *f, struct kr_note *why)
{
    struct kr_renew_request *m = to;

    switch (f->number) {
    case RENEW_CSR:
        return kr_proto_raw(f, &m->csr, "csr", why);
    case RENEW_GENERATION:
        return kr_proto_u64(f, &m->generation, "generation", why);
    default:
        return 0;
    }
}

int kr_renew_request_decode(struct kr_renew_request *m, struct kr_bytes in, struct kr_note *why)
{
    *m = (struct kr_renew_request){.generation = 0};
    return walk(in, KR_ENROLL_REQUEST_MAX, take_renew, m, why);
}

int kr_enroll_answer_encode(const struct kr_enroll_answer *m, struct kr_buf *out)
{
    int rc = kr_proto_put_bytes(out, ANSWER_CHAIN, m->chain);

    if (rc == 0)
        rc = kr_proto_put_bytes(out, ANSWER_BUNDLE, m->bundle);
    if (rc == 0)
        rc = kr_proto_put_varint(out, ANSWER_BUNDLE_GENERATION, m->bundle_generation);
    if (rc == 0)
        rc = kr_proto_put_varint(out, ANSWER_GENERATION, m->generation);
    return rc == 0 ? kr_proto_put_varint(out, ANSWER_PENDING, m->pending) : rc;
}

static int take_answer(void *to, const struct kr_proto_field *f, struct kr_note *why)
{
    struct kr_enroll_answer *m = to;

    switch (f->number) {
    case ANSWER_CHAIN:
        return kr_proto_raw(f, &m->chain, "chain", why);
    case ANSWER_BUNDLE:
        return kr_proto_raw(f, &m->bundle, "bundle", why);
    case ANSWER_BUNDLE_GENERATION:
        return kr_proto_u64(f, &m->bundle_generation, "bundle_generation", why);
    case ANSWER_GENERATION:
        return kr_proto_u64(f, &m->generation, "generation", why);
    case ANSWER_PENDING:
        return kr_proto_bool(f, &m->pending, "pending", why);
    default:
        return 0;
    }
}

int kr_enroll_answer_decode(struct kr_enroll_answer *m, struct kr_bytes in, struct kr_note *why)
{
    *m = (struct kr_enroll_answer){.pending = false};
    return walk(in, KR_ENROLL_ANSWER_MAX, take_answer, m, why);
}
