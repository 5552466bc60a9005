/* SPDX-License-Identifier: Apache-2.0 */
/* Input: kind, then a body. The edited body is JSON again, has nothing of the fleet view in it any
 * more, and with the version put back in, as often as it stood there, it carries it as before. */
#include <stdlib.h>

#include "base/assert.h"
#include "kube/write_body.h"

static const char version[] = "123";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_buf edited = {.max = 1024 * 1024};
    struct kr_buf whole = {.max = 1024 * 1024};
    uint32_t offsets[KR_BODY_VERSIONS_MAX];
    enum kr_body_kind kind;
    struct kr_write_body b;
    struct kr_write_body again;
    struct kr_bytes body;

    if (n < 2 || kr_scan_check(kr_bytes_of(data + 1, n - 1), 64, NULL) != 0)
        return 0;
    kind = (enum kr_body_kind)(data[0] % 3);
    body = kr_bytes_of(data + 1, n - 1);
    if (kr_write_body_read(kind, body, kr_bytes_str(version), &b, NULL) != 0)
        return 0;
    KR_ASSERT(b.has_version == (b.version_count != 0 || b.foreign.p != NULL));
    KR_ASSERT(b.injected == (b.cut_count != 0));
    KR_ASSERT(kr_write_body_edit(&b, body, &edited, offsets) == 0);
    KR_ASSERT(edited.n <= body.n);
    KR_ASSERT(b.version_count + b.cut_count != 0 || kr_bytes_eq(kr_buf_bytes(&edited), body));
    KR_ASSERT(kr_write_body_fill(kr_buf_bytes(&edited), offsets, b.version_count,
                                 kr_bytes_str(version), &whole) == 0);
    KR_ASSERT(kr_scan_check(kr_buf_bytes(&whole), 64, NULL) == 0);
    KR_ASSERT(kr_write_body_read(kind, kr_buf_bytes(&whole), kr_bytes_str(version), &again, NULL) ==
              0);
    KR_ASSERT(!again.injected && again.version_count == b.version_count);
    KR_ASSERT(kr_bytes_eq(again.foreign, b.foreign));
    kr_buf_deinit(&edited);
    kr_buf_deinit(&whole);
    return 0;
}
