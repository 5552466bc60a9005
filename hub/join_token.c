/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/join_token.h"

#include <stdio.h>

#include "base/err.h"
#include "base/rand.h"
#include "certs/hmac.h"

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

static void fill(char *out, size_t n)
{
    uint8_t raw[HUB_JOIN_SECRET];

    kr_rand_secret(raw, n);
    for (size_t i = 0; i < n; i++)
        out[i] = alphabet[raw[i] & 31];
    out[n] = '\0';
}

int hub_join_token_make(char text[HUB_JOIN_TOKEN_SIZE], struct hub_token *t)
{
    char secret[HUB_JOIN_SECRET + 1];

    fill(t->id, HUB_TOKEN_ID);
    fill(secret, HUB_JOIN_SECRET);
    snprintf(text, HUB_JOIN_TOKEN_SIZE, "kr1.%s.%s", t->id, secret);
    return kr_sha256(kr_bytes_str(secret), t->secret_sha256);
}

static bool is_base32(struct kr_bytes b)
{
    for (size_t i = 0; i < b.n; i++) {
        if (!((b.p[i] >= 'a' && b.p[i] <= 'z') || (b.p[i] >= '2' && b.p[i] <= '7')))
            return false;
    }
    return true;
}

bool hub_join_token_is_id(struct kr_bytes text)
{
    return text.n == HUB_TOKEN_ID && is_base32(text);
}

bool hub_join_token_read(struct kr_bytes text, char id[HUB_TOKEN_ID + 1], uint8_t sha256[32])
{
    struct kr_bytes secret;

    if (text.n != HUB_JOIN_TOKEN_SIZE - 1 || !kr_bytes_starts(text, KR_LIT("kr1.")) ||
        text.p[4 + HUB_TOKEN_ID] != '.')
        return false;
    secret = kr_bytes_skip(text, 5 + HUB_TOKEN_ID);
    if (!hub_join_token_is_id(kr_bytes_of(text.p + 4, HUB_TOKEN_ID)) || !is_base32(secret))
        return false;
    memcpy(id, text.p + 4, HUB_TOKEN_ID);
    id[HUB_TOKEN_ID] = '\0';
    return kr_sha256(secret, sha256) == 0;
}

void hub_join_token_id(struct kr_bytes text, char id[HUB_TOKEN_ID + 1])
{
    uint8_t hash[KR_HMAC_SIZE];

    if (!hub_join_token_read(text, id, hash))
        id[0] = '\0';
}
