/* SPDX-License-Identifier: Apache-2.0 */
/* Input: size of the pieces, then frames: whatever the pieces, the same ends; and a Close frame of
 * ours behind a whole frame is read as one. */
#include "base/assert.h"
#include "http/ws_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_ws_frames whole = {0};
    struct kr_ws_frames cut = {0};
    uint8_t close[KR_WS_CLOSE_MAX];
    struct kr_bytes in;
    size_t size;

    if (n == 0)
        return 0;
    in = kr_bytes_of(data + 1, n - 1);
    kr_ws_frames_feed(&whole, in);
    KR_ASSERT(whole.whole <= whole.fed && whole.fed <= in.n);
    KR_ASSERT(whole.lost || whole.fed == in.n);
    size = kr_ws_close_write(close, KR_WS_POLICY_VIOLATION, in);
    KR_ASSERT(size <= sizeof close);
    while (in.n != 0) {
        size_t k = (size_t)data[0] + 1 < in.n ? (size_t)data[0] + 1 : in.n;

        kr_ws_frames_feed(&cut, kr_bytes_of(in.p, k));
        in = kr_bytes_skip(in, k);
    }
    KR_ASSERT(cut.whole == whole.whole && cut.lost == whole.lost && cut.closed == whole.closed);
    if (!whole.lost && whole.whole == whole.fed) {
        kr_ws_frames_feed(&whole, kr_bytes_of(close, size));
        KR_ASSERT(whole.closed && whole.whole == whole.fed);
    }
    return 0;
}
