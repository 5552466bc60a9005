/* SPDX-License-Identifier: Apache-2.0 */
/* Input: kind, then a protobuf body. The edited body is readable again, has nothing of the fleet
 * view in it any more, and with the version put back in it carries it as before. At an offset of
 * the input's choice nothing is put in but where an empty text stands. */
#include <stdlib.h>

#include "base/assert.h"
#include "kube/proto_body.h"

static const char version[] = "123";

static void fill_anywhere(struct kr_bytes body, uint8_t offset)
{
    struct kr_buf out = {.max = 1024 * 1024};
    int rc = kr_proto_body_fill(body, offset, kr_bytes_str(version), &out);

    KR_ASSERT(rc == 0 ? body.p[offset] == 0 && out.n >= body.n + 3 : out.n == 0);
    kr_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_buf edited = {.max = 1024 * 1024};
    struct kr_buf whole = {.max = 1024 * 1024};
    enum kr_body_kind kind;
    struct kr_write_body b;
    struct kr_write_body again;
    struct kr_bytes body;
    uint32_t offset = 0;

    if (n < 3)
        return 0;
    kind = data[0] % 2 == 0 ? KR_BODY_OBJECT : KR_BODY_DELETE_OPTIONS;
    body = kr_bytes_of(data + 2, n - 2);
    fill_anywhere(body, data[1]);
    if (kr_proto_body_read(kind, body, kr_bytes_str(version), &b, NULL) != 0)
        return 0;
    KR_ASSERT(b.has_version == (b.version_count != 0 || b.foreign.p != NULL));
    KR_ASSERT(b.injected == (b.cut_count != 0));
    KR_ASSERT(kr_proto_body_edit(&b, body, &edited, &offset) == 0);
    KR_ASSERT(edited.n <= body.n);
    KR_ASSERT(b.version_count + b.cut_count != 0 || kr_bytes_eq(kr_buf_bytes(&edited), body));
    if (b.version_count != 0)
        KR_ASSERT(
            kr_proto_body_fill(kr_buf_bytes(&edited), offset, kr_bytes_str(version), &whole) == 0);
    else
        KR_ASSERT(kr_buf_append(&whole, kr_buf_bytes(&edited)) == 0);
    KR_ASSERT(kr_proto_body_read(kind, kr_buf_bytes(&whole), kr_bytes_str(version), &again, NULL) ==
              0);
    KR_ASSERT(!again.injected && again.version_count == b.version_count);
    KR_ASSERT(kr_bytes_eq(again.foreign, b.foreign));
    kr_buf_deinit(&edited);
    kr_buf_deinit(&whole);
    return 0;
}
