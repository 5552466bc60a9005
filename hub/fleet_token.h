/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_token: `continue` of a list: where the next page begins, and in which content (a pin).
 * base64url of a MAC and the JSON that it covers, together with who asks and what was asked, so
 * that a token serves nobody else and no other query. The key is of one start of the hub: pins do
 * not survive it either.
 * Memory: what is read lives in the arena. Errors: KR_EDENIED (damaged, foreign, of another query
 * or start: answer 410), KR_ENOMEM. Pure. */
#ifndef HUB_FLEET_TOKEN_H
#define HUB_FLEET_TOKEN_H

#include "base/arena.h"
#include "base/buf.h"
#include "certs/hmac.h"

#define HUB_LEFT_UNKNOWN (-1)

struct hub_token {
    uint64_t revision; /* of the pin */
    struct kr_bytes ns;
    struct kr_bytes name;
    struct kr_bytes cluster;
    int64_t left; /* objects behind it; HUB_LEFT_UNKNOWN */
};

/* `bound`: a text of user and query. */
int hub_token_write(const uint8_t key[KR_HMAC_SIZE], struct kr_bytes bound,
                    const struct hub_token *t, struct kr_buf *out);
int hub_token_read(const uint8_t key[KR_HMAC_SIZE], struct kr_bytes bound, struct kr_bytes text,
                   struct kr_arena *arena, struct hub_token *out);

#endif
