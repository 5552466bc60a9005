/* SPDX-License-Identifier: Apache-2.0 */
/* Input: which message, its bytes. What decodes is encoded, decodes again, and then encodes to the
 * same bytes; memory stays within the promised bound. */
#include "base/assert.h"
#include "base/err.h"
#include "wire/messages.h"
#include "wire/request_header.h"

static int recode(unsigned which, struct kr_bytes in, struct kr_arena *arena, struct kr_buf *out)
{
    union {
        struct kr_agent_state agent;
        struct kr_hub_state hub;
        struct kr_relay_request request;
        struct kr_relay_response response;
    } m;
    struct kr_note why;
    int rc;

    switch (which) {
    case 0:
        rc = kr_agent_state_decode(&m.agent, in, arena, &why);
        return rc != 0 ? rc : kr_agent_state_encode(&m.agent, out);
    case 1:
        rc = kr_hub_state_decode(&m.hub, in, arena, &why);
        return rc != 0 ? rc : kr_hub_state_encode(&m.hub, out);
    case 2:
        rc = kr_relay_request_decode(&m.request, in, arena, &why);
        return rc != 0 ? rc : kr_relay_request_encode(&m.request, out);
    case 3:
        rc = kr_relay_response_decode(&m.response, in, &why);
        return rc != 0 ? rc : kr_relay_response_encode(&m.response, out);
    case 4:
        rc = kr_request_header_read(&m.request, in, arena, &why);
        return rc != 0 ? rc : kr_relay_request_encode(&m.request, out);
    default:
        rc = kr_response_header_read(&m.response, in, arena, &why);
        return rc != 0 ? rc : kr_relay_response_encode(&m.response, out);
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
    which = data[0] % 6;
    kr_buf_init(&first, 1 << 20);
    kr_buf_init(&second, 1 << 20);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(n));
    if (recode(which, kr_bytes_of(data + 1, n - 1), &arena, &first) == 0) {
        kr_arena_deinit(&arena);
        which = which < 4 ? which : which - 2; /* without base64 the second time */
        KR_ASSERT(recode(which, kr_buf_bytes(&first), &arena, &second) == 0);
        KR_ASSERT(kr_bytes_eq(kr_buf_bytes(&first), kr_buf_bytes(&second)));
    }
    kr_arena_deinit(&arena);
    kr_buf_deinit(&first);
    kr_buf_deinit(&second);
    return 0;
}
