/* SPDX-License-Identifier: Apache-2.0 */
/* What is accepted can be written again and then reads the same. */
#include "wire/enroll_messages.h"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_join(struct kr_bytes in)
{
    struct kr_buf wire = {.max = 2 * KR_ENROLL_REQUEST_MAX};
    struct kr_join_request a;
    struct kr_join_request b;

    if (kr_join_request_decode(&a, in, NULL) == 0) {
        KR_ASSERT(kr_join_request_encode(&a, &wire) == 0);
        KR_ASSERT(kr_join_request_decode(&b, kr_buf_bytes(&wire), NULL) == 0);
        KR_ASSERT(kr_bytes_eq(a.token, b.token) && kr_bytes_eq(a.csr, b.csr) &&
                  kr_bytes_eq(a.instance, b.instance));
    }
    kr_buf_deinit(&wire);
}

static void try_answer(struct kr_bytes in)
{
    struct kr_buf wire = {.max = 2 * KR_ENROLL_ANSWER_MAX};
    struct kr_enroll_answer a;
    struct kr_enroll_answer b;

    if (kr_enroll_answer_decode(&a, in, NULL) == 0) {
        KR_ASSERT(kr_enroll_answer_encode(&a, &wire) == 0);
        KR_ASSERT(kr_enroll_answer_decode(&b, kr_buf_bytes(&wire), NULL) == 0);
        KR_ASSERT(kr_bytes_eq(a.chain, b.chain) && a.generation == b.generation &&
                  a.pending == b.pending);
    }
    kr_buf_deinit(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kr_bytes in = {data, size};
    struct kr_renew_request renew;

    try_join(in);
    try_answer(in);
    (void)kr_renew_request_decode(&renew, in, NULL);
    return 0;
}
