/* SPDX-License-Identifier: Apache-2.0 */
/* Input: which message, its bytes. What decodes is encoded, decodes again, and then encodes to the
 * same bytes; memory stays within the promised bound. */
#include "base/assert.h"
#include "base/err.h"
#include "wire/messages.h"
#include "wire/sync_messages.h"

static int recode(unsigned which, struct kr_bytes in, struct kr_arena *arena, struct kr_buf *out)
{
    union {
        struct kr_catalog_update catalog;
        struct kr_sync_control control;
        struct kr_sync_batch batch;
    } m;
    struct kr_note why;
    int rc;

    switch (which) {
    case 0:
        rc = kr_catalog_update_decode(&m.catalog, in, arena, &why);
        return rc != 0 ? rc : kr_catalog_update_encode(&m.catalog, out);
    case 1:
        rc = kr_sync_control_decode(&m.control, in, arena, &why);
        return rc != 0 ? rc : kr_sync_control_encode(&m.control, out);
    default:
        rc = kr_sync_batch_decode(&m.batch, in, arena, &why);
        return rc != 0 ? rc : kr_sync_batch_encode(&m.batch, out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_arena arena;
    struct kr_buf first;
    struct kr_buf second;
    unsigned which;

    if (n == 0 || n > 100000)
        return 0;
    which = data[0] % 3;
    kr_buf_init(&first, 1 << 20);
    kr_buf_init(&second, 1 << 20);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(n));
    if (recode(which, kr_bytes_of(data + 1, n - 1), &arena, &first) == 0) {
        kr_arena_deinit(&arena);
        KR_ASSERT(recode(which, kr_buf_bytes(&first), &arena, &second) == 0);
        KR_ASSERT(kr_bytes_eq(kr_buf_bytes(&first), kr_buf_bytes(&second)));
    }
    kr_arena_deinit(&arena);
    kr_buf_deinit(&first);
    kr_buf_deinit(&second);
    return 0;
}
