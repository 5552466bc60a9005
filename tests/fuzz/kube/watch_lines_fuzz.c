/* SPDX-License-Identifier: Apache-2.0 */
/* Input: framing byte, size of the pieces, body: whatever the pieces, the same boundary. */
#include "base/assert.h"
#include "kube/watch_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_watch_lines whole;
    struct kr_watch_lines cut;
    enum kr_watch_framing framing;
    struct kr_bytes body;

    if (n < 2)
        return 0;
    framing = (enum kr_watch_framing)(data[0] % 3);
    body = kr_bytes_of(data + 2, n - 2);
    kr_watch_lines_init(&whole, framing);
    kr_watch_lines_init(&cut, framing);
    KR_ASSERT(kr_watch_lines_feed(&whole, body) == kr_watch_lines_whole(&whole));
    while (body.n != 0) {
        size_t k = (size_t)data[1] + 1 < body.n ? (size_t)data[1] + 1 : body.n;

        kr_watch_lines_feed(&cut, kr_bytes_of(body.p, k));
        body = kr_bytes_skip(body, k);
    }
    KR_ASSERT(kr_watch_lines_whole(&cut) == kr_watch_lines_whole(&whole));
    KR_ASSERT(kr_watch_lines_whole(&cut) <= n - 2);
    kr_watch_framing_of(kr_bytes_of(data + 2, n - 2), kr_bytes_of(data, data[1] & 1));
    return 0;
}
