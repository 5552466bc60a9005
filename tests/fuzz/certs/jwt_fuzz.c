/* SPDX-License-Identifier: Apache-2.0 */
/* Key sets and tokens: the input is a key set, a NUL, and a token that is judged by it. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "certs/claims.h"
#include "certs/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const struct kr_jwks *keys, struct kr_bytes token)
{
    static const char *const audiences[] = {"kuberelay"};
    const struct kr_jwt_rules rules = {
        .issuer = "https://login.example.test",
        .audiences = audiences,
        .audience_count = 1,
        .algs = KR_JWT_RS256 | KR_JWT_ES256,
        .keys = keys,
        .now_wall_ms = INT64_C(1700000000000),
    };
    const struct kr_claim_rules names = {"sub", "p:", "groups", "g:"};
    struct kr_claim_user user;
    struct kr_arena arena;
    struct kr_note why = {""};
    struct kr_jwt jwt;

    if (kr_jwt_read(&jwt, token, &why) != 0)
        return;
    if (kr_jwt_verify(&jwt, &rules, &why) == 0) {
        KR_ASSERT(keys != NULL && jwt.alg != 0 && jwt.expires_wall_ms > rules.now_wall_ms);
        KR_ASSERT(kr_jwks_has(keys, jwt.kid));
    }
    kr_arena_init(&arena, 256, 1 << 20);
    if (kr_claims_user(&user, jwt.claims, &names, &arena, &why) == 0) {
        KR_ASSERT(user.user.n > 2 && kr_bytes_is_utf8(user.user));
        KR_ASSERT(user.group_count <= KR_CLAIM_GROUPS_MAX);
    }
    kr_arena_deinit(&arena);
    kr_jwt_deinit(&jwt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kr_bytes in = {data, size};
    size_t at = kr_bytes_find(in, 0);
    struct kr_jwks *keys = NULL;
    struct kr_note why = {""};

    if (kr_jwks_parse(&keys, kr_bytes_of(data, at), &why) != 0)
        KR_ASSERT(keys == NULL);
    judge(keys, kr_bytes_skip(in, at < size ? at + 1 : at));
    kr_jwks_destroy(keys);
    return 0;
}
