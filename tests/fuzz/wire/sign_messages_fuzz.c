/* SPDX-License-Identifier: Apache-2.0 */
/* What is accepted can be written again and then reads the same. */
#include "wire/sign_messages.h"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_request(struct kr_bytes in)
{
    struct kr_buf wire = {.max = 2 * KR_SIGN_REQUEST_MAX};
    struct kr_sign_request a;
    struct kr_sign_request b;

    if (kr_sign_request_decode(&a, in, NULL) == 0) {
        KR_ASSERT(a.uri.n <= 255);
        KR_ASSERT(kr_sign_request_encode(&a, &wire) == 0);
        KR_ASSERT(kr_sign_request_decode(&b, kr_buf_bytes(&wire), NULL) == 0);
        KR_ASSERT(kr_bytes_eq(a.uri, b.uri) && kr_bytes_eq(a.csr, b.csr) &&
                  a.lifetime_s == b.lifetime_s);
    }
    kr_buf_deinit(&wire);
}

static void try_answer(struct kr_bytes in)
{
    struct kr_buf wire = {.max = 2 * KR_SIGN_ANSWER_MAX};
    struct kr_sign_answer a;
    struct kr_sign_answer b;

    if (kr_sign_answer_decode(&a, in, NULL) == 0) {
        KR_ASSERT(kr_sign_answer_encode(&a, &wire) == 0);
        KR_ASSERT(kr_sign_answer_decode(&b, kr_buf_bytes(&wire), NULL) == 0);
        KR_ASSERT(kr_bytes_eq(a.chain, b.chain));
    }
    kr_buf_deinit(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_request(kr_bytes_of(data, size));
    try_answer(kr_bytes_of(data, size));
    return 0;
}
