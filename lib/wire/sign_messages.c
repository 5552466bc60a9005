/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sign_messages.h"

#include "base/err.h"
#include "wire/proto_read.h"

#define URI_MAX 255

enum request_field { /* numbers of kuberelay.proto */
                     REQUEST_URI = 1,
                     REQUEST_CSR = 2,
                     REQUEST_LIFETIME = 3,
};
enum answer_field { ANSWER_CHAIN = 1 };

int kr_sign_request_encode(const struct kr_sign_request *m, struct kr_buf *out)
{
    int rc = kr_proto_put_bytes(out, REQUEST_URI, m->uri);

    if (rc == 0)
        rc = kr_proto_put_bytes(out, REQUEST_CSR, m->csr);
    return rc == 0 ? kr_proto_put_varint(out, REQUEST_LIFETIME, m->lifetime_s) : rc;
}

int kr_sign_request_decode(struct kr_sign_request *m, struct kr_bytes in, struct kr_note *why)
{
    int rc = 0;

    *m = (struct kr_sign_request){.lifetime_s = 0};
    if (in.n > KR_SIGN_REQUEST_MAX)
        return kr_note_set(why, KR_ETOOBIG, "a message of %zu bytes", in.n);
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        if (kr_proto_next(&in, &f) != 0)
            return kr_note_set(why, KR_EPROTO, "malformed message");
        if (f.number == REQUEST_URI)
            rc = kr_proto_word(&f, URI_MAX, &m->uri, "uri", why);
        else if (f.number == REQUEST_CSR)
            rc = kr_proto_raw(&f, &m->csr, "csr", why);
        else if (f.number == REQUEST_LIFETIME)
            rc = kr_proto_u64(&f, &m->lifetime_s, "lifetime_s", why);
    }
    return rc;
}

int kr_sign_answer_encode(const struct kr_sign_answer *m, struct kr_buf *out)
{
    return kr_proto_put_bytes(out, ANSWER_CHAIN, m->chain);
}

int kr_sign_answer_decode(struct kr_sign_answer *m, struct kr_bytes in, struct kr_note *why)
{
    int rc = 0;

    *m = (struct kr_sign_answer){.chain = {NULL, 0}};
    if (in.n > KR_SIGN_ANSWER_MAX)
        return kr_note_set(why, KR_ETOOBIG, "a message of %zu bytes", in.n);
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        if (kr_proto_next(&in, &f) != 0)
            return kr_note_set(why, KR_EPROTO, "malformed message");
        if (f.number == ANSWER_CHAIN)
            rc = kr_proto_raw(&f, &m->chain, "chain", why);
    }
    return rc;
}
