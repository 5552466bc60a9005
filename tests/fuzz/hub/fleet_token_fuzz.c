/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a text that somebody sends as `continue`; then the same bytes as the names of a token that
 * we made ourselves. No foreign text is taken, and what is ours comes back. */
#include "base/assert.h"
#include "base/err.h"
#include "hub/fleet_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const uint8_t key[KR_HMAC_SIZE] = {7};
    const struct kr_bytes in = {data, n};
    struct hub_token own = {.revision = n, .name = in, .left = HUB_LEFT_UNKNOWN};
    struct hub_token got;
    struct kr_arena arena;
    struct kr_buf text;

    kr_arena_init(&arena, 512, 65536);
    kr_buf_init(&text, 16384);
    KR_ASSERT(hub_token_read(key, KR_LIT("who"), in, &arena, &got) == KR_EDENIED);
    if (n <= 253 && hub_token_write(key, in, &own, &text) == 0) {
        KR_ASSERT(hub_token_read(key, in, kr_buf_bytes(&text), &arena, &got) == 0);
        KR_ASSERT(got.revision == n && got.left == HUB_LEFT_UNKNOWN);
        KR_ASSERT(!kr_bytes_is_utf8(in) || kr_bytes_eq(got.name, in));
        KR_ASSERT(hub_token_read(key, KR_LIT("who else"), kr_buf_bytes(&text), &arena, &got) ==
                  KR_EDENIED);
    }
    kr_buf_deinit(&text);
    kr_arena_deinit(&arena);
    return 0;
}
