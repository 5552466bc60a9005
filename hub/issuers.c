/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/issuers.h"

#include <stdlib.h>

#include "base/err.h"
#include "certs/store_file.h"

#define TEXTS_MAX (256u * 1024) /* more than the claims of any token */

void hub_issuers_destroy(struct hub_issuers *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++)
        kr_jwks_destroy(s->all[i].keys);
    kr_arena_deinit(&s->arena);
    free(s);
}

struct hub_issuer *hub_issuers_find(const struct hub_issuers *s, struct kr_bytes url)
{
    for (size_t i = 0; s != NULL && i < s->n; i++) {
        if (kr_bytes_is(url, s->all[i].url))
            return &s->all[i];
    }
    return NULL;
}

int hub_issuer_take_keys(struct hub_issuer *i, struct kr_bytes text, struct kr_note *why)
{
    struct kr_jwks *keys;
    int rc = kr_jwks_parse(&keys, text, why);

    if (rc != 0)
        return rc;
    kr_jwks_destroy(i->keys);
    i->keys = keys;
    return 0;
}

int hub_issuer_read_keys(struct hub_issuer *i, struct kr_note *why)
{
    struct kr_buf text = {.max = KR_JWKS_MAX};
    struct kr_note cause = {""};
    int rc;

    i->mark = hub_file_mark_of(i->jwks_file);
    rc = kr_file_read(&text, i->jwks_file, KR_JWKS_MAX, why);
    if (rc == 0) {
        rc = hub_issuer_take_keys(i, kr_buf_bytes(&text), &cause);
        if (rc != 0)
            kr_note_set(why, rc, "%.100s: %.120s", i->jwks_file, cause.text);
    }
    kr_buf_deinit(&text);
    return rc;
}

static int make_caller(const struct hub_issuer *i, const struct kr_jwt *jwt, struct kr_bytes token,
                       struct hub_caller **out, struct kr_note *why)
{
    struct kr_claim_user who;
    struct kr_arena arena;
    int rc;

    kr_arena_init(&arena, 1024, TEXTS_MAX);
    rc = kr_claims_user(&who, jwt->claims, &i->claims, &arena, why);
    if (rc == 0) {
        struct hub_caller from = {
            .by = HUB_BY_OIDC,
            .user = who.user,
            .groups = who.groups,
            .group_count = who.group_count,
            .expires_wall_ms = jwt->expires_wall_ms,
            .token = token,
        };

        rc = hub_caller_check(&from, why);
        if (rc == 0) {
            *out = hub_caller_create(&from);
            rc = *out != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "out of memory");
        }
    }
    kr_arena_deinit(&arena);
    return rc;
}

int hub_issuer_judge(const struct hub_issuer *i, const struct kr_jwt *jwt, struct kr_bytes token,
                     int64_t now_wall_ms, struct hub_caller **out, struct kr_note *why)
{
    struct kr_jwt_rules rules = {
        .issuer = i->url,
        .audiences = i->audiences.v,
        .audience_count = i->audiences.n,
        .algs = i->algs,
        .keys = i->keys,
        .now_wall_ms = now_wall_ms,
    };
    int rc = kr_jwt_verify(jwt, &rules, why);

    return rc == 0 ? make_caller(i, jwt, token, out, why) : rc;
}
