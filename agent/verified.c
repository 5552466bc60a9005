/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/verified.h"

#include <sys/stat.h>

#include "base/err.h"
#include "certs/claims.h"
#include "certs/jwt.h"
#include "certs/store_file.h"

#define LOOK_MS 2000

static int64_t mtime_of(const char *file)
{
    struct stat st;

    if (stat(file, &st) != 0)
        return -1;
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

int agent_verified_load(struct agent_policy *p, struct kr_note *why)
{
    const char *file = p->verified.jwks_file;
    struct kr_buf text = {.max = KR_JWKS_MAX};
    struct kr_jwks *keys = NULL;
    struct kr_note cause = {""};
    int64_t mtime = mtime_of(file);
    int rc = kr_file_read(&text, file, KR_JWKS_MAX, why);

    if (rc == 0) {
        rc = kr_jwks_parse(&keys, kr_buf_bytes(&text), &cause);
        if (rc != 0)
            kr_note_set(why, rc, "%.100s: %.120s", file, cause.text);
    }
    kr_buf_deinit(&text);
    p->keys_mtime_ns = mtime;
    if (rc != 0)
        return rc;
    kr_jwks_destroy(p->keys);
    p->keys = keys;
    return 0;
}

static void look_again(struct agent_policy *p, int64_t now_ms)
{
    if (p->keys_looked_ms != 0 && now_ms - p->keys_looked_ms < LOOK_MS)
        return;
    p->keys_looked_ms = now_ms;
    if (mtime_of(p->verified.jwks_file) != p->keys_mtime_ns)
        agent_verified_load(p, NULL); /* else the old ones stay */
}

static int verify(struct agent_policy *p, const struct agent_verified_clock *clock,
                  const struct kr_jwt *jwt, struct kr_note *why)
{
    struct kr_jwt_rules rules = {
        .issuer = p->verified.issuer,
        .audiences = &p->verified.audience,
        .audience_count = 1,
        .algs = KR_JWT_RS256 | KR_JWT_ES256,
        .keys = p->keys,
        .now_wall_ms = clock->now_wall_ms,
    };
    int rc = kr_jwt_verify(jwt, &rules, why);

    return rc == KR_ENOENT ? KR_EDENIED : rc;
}

int agent_verified_user(struct agent_policy *p, const struct agent_verified_clock *clock,
                        struct kr_relay_request *who, struct kr_arena *arena, struct kr_note *why)
{
    struct kr_claim_rules rules = {
        .username_claim = p->verified.username_claim,
        .username_prefix = "",
        .groups_claim = p->verified.groups_claim,
        .groups_prefix = "",
    };
    struct kr_claim_user user;
    struct kr_jwt jwt;
    int rc;

    if (who->user_token.n == 0)
        return kr_note_set(why, KR_EDENIED, "no token of the user came");
    look_again(p, clock->now_ms);
    rc = kr_jwt_read(&jwt, who->user_token, why);
    if (rc != 0)
        return rc == KR_ENOMEM ? rc : KR_EDENIED;
    rc = verify(p, clock, &jwt, why);
    if (rc == 0)
        rc = kr_claims_user(&user, jwt.claims, &rules, arena, why);
    kr_jwt_deinit(&jwt);
    if (rc != 0)
        return rc;
    who->user = user.user;
    who->groups = user.groups;
    who->group_count = user.group_count;
    who->uid = (struct kr_bytes){NULL, 0};
    who->extra = NULL;
    who->extra_count = 0;
    return 0;
}
