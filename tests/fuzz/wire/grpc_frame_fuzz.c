/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a gRPC body. Fed whole and byte by byte it gives the same messages and the same end; what
 * was read is written again as it came. */
#include "base/assert.h"
#include "base/err.h"
#include "wire/grpc_frame.h"
#include "wire/grpc_status.h"

#define LIMIT 4096

static int keep(void *owner, struct kr_bytes message)
{
    KR_ASSERT(message.n <= LIMIT);
    return kr_grpc_write(owner, message);
}

static int feed(struct kr_bytes in, size_t piece, struct kr_buf *out, bool *clean)
{
    struct kr_grpc_reader r;
    int rc = 0;

    kr_grpc_reader_init(&r, LIMIT);
    while (in.n != 0 && rc == 0) {
        size_t k = piece < in.n ? piece : in.n;

        rc = kr_grpc_reader_feed(&r, kr_bytes_of(in.p, k), keep, out);
        in = kr_bytes_skip(in, k);
    }
    *clean = kr_grpc_reader_clean(&r);
    kr_grpc_reader_deinit(&r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_buf whole;
    struct kr_buf cut;
    struct kr_buf text;
    bool clean[2];
    int rc;

    if (n > 100000)
        return 0;
    kr_buf_init(&whole, 1 << 20);
    kr_buf_init(&cut, 1 << 20);
    kr_buf_init(&text, 1 << 20);
    rc = feed(kr_bytes_of(data, n), n, &whole, &clean[0]);
    KR_ASSERT(feed(kr_bytes_of(data, n), 1, &cut, &clean[1]) == rc && clean[0] == clean[1]);
    KR_ASSERT(kr_bytes_eq(kr_buf_bytes(&whole), kr_buf_bytes(&cut)));
    KR_ASSERT(kr_bytes_starts(kr_bytes_of(data, n), kr_buf_bytes(&whole)));
    KR_ASSERT(!clean[0] || whole.n == n);
    kr_grpc_message_decode(kr_bytes_of(data, n), &text);
    kr_buf_deinit(&whole);
    kr_buf_deinit(&cut);
    kr_buf_deinit(&text);
    return 0;
}
