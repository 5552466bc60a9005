/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/authn_parts.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/bearer.h"

/* A token that was found good. */
struct seen {
    uint8_t hash[KR_HMAC_SIZE]; /* the key in the map */
    struct hub_caller *caller;
};

/* ---- what was seen before ---- */

void hub_authn_forget(struct hub_authn *a)
{
    struct seen *s;
    size_t pos = 0;

    while ((s = kr_map_next(&a->seen, &pos, NULL)) != NULL) {
        hub_caller_unref(s->caller);
        free(s);
    }
    kr_map_deinit(&a->seen);
    kr_map_init(&a->seen, HUB_AUTHN_SEEN_MAX);
}

static struct hub_caller *recall(struct hub_authn *a, const uint8_t hash[KR_HMAC_SIZE])
{
    struct seen *s = kr_map_get(&a->seen, kr_bytes_of(hash, KR_HMAC_SIZE));

    if (s == NULL)
        return NULL;
    if (!hub_caller_expired(s->caller, a->w->sched->now_wall_ms))
        return s->caller;
    kr_map_erase(&a->seen, kr_bytes_of(hash, KR_HMAC_SIZE));
    hub_caller_unref(s->caller);
    free(s);
    return NULL;
}

/* Without the token: it is whose hash this is. */
static void remember(struct hub_authn *a, const uint8_t hash[KR_HMAC_SIZE],
                     const struct hub_caller *caller)
{
    struct hub_caller known = *caller;
    struct seen *s;

    if (a->seen.count == HUB_AUTHN_SEEN_MAX)
        hub_authn_forget(a);
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return;
    memcpy(s->hash, hash, KR_HMAC_SIZE);
    known.token = (struct kr_bytes){NULL, 0};
    s->caller = hub_caller_create(&known);
    if (s->caller == NULL || kr_map_put(&a->seen, kr_bytes_of(s->hash, KR_HMAC_SIZE), s) != 0) {
        hub_caller_unref(s->caller);
        free(s);
    }
}

/* ---- tokens ---- */

/* Its name is the agent's to find out. */
static int member_token(const struct kr_jwt *jwt, struct kr_bytes token, struct hub_caller **out,
                        struct kr_note *why)
{
    struct hub_caller from = {
        .by = HUB_BY_MEMBER_TOKEN,
        .user = KR_LIT(HUB_MEMBER_TOKEN_USER),
        .token = token,
        .expires_wall_ms = jwt->expires_wall_ms /* not verified; it can only end it sooner */};

    *out = hub_caller_create(&from);
    return *out != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "out of memory");
}

static int judge_jwt(struct hub_authn *a, const struct hub_authn_question *q,
                     const struct kr_jwt *jwt, struct kr_bytes token, struct hub_caller **out,
                     struct kr_note *why)
{
    struct hub_issuer *i = hub_issuers_find(a->issuers, jwt->issuer);
    int rc;

    if (i == NULL && a->w->options->member_tokens && q->for_member)
        return member_token(jwt, token, out, why);
    if (i == NULL)
        return kr_note_set(why, KR_EDENIED, "the token is of no issuer that is known");
    rc = hub_issuer_judge(i, jwt, token, a->w->sched->now_wall_ms, out, why);
    if (rc == KR_ENOENT) {
        if (a->want_keys != NULL)
            a->want_keys(a, i);
        rc = KR_EDENIED;
    }
    return rc;
}

/* Who was seen before, with the token that they bring again. */
static int known_again(const struct hub_caller *seen, struct kr_bytes token,
                       struct hub_caller **out, struct kr_note *why)
{
    struct hub_caller from = *seen;

    from.token = token;
    *out = hub_caller_create(&from);
    return *out != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "out of memory");
}

static int judge_token(struct hub_authn *a, const struct hub_authn_question *q,
                       struct kr_bytes token, struct hub_caller **out, struct kr_note *why)
{
    const struct hub_caller *seen = NULL;
    uint8_t hash[KR_HMAC_SIZE];
    struct kr_jwt jwt;
    int rc;

    *out = a->tokens != NULL ? hub_token_file_find(a->tokens, token) : NULL;
    if (*out == NULL && a->issuers == NULL && !a->w->options->member_tokens)
        return *out != NULL ? 0 : kr_note_set(why, KR_EDENIED, "the token is not known");
    if (*out != NULL) {
        hub_caller_ref(*out);
        return 0;
    }
    if (kr_hmac(a->secret, token, hash) == 0)
        seen = recall(a, hash);
    if (seen != NULL)
        return known_again(seen, token, out, why);
    if (kr_jwt_read(&jwt, token, why) != 0)
        return kr_note_set(why, KR_EDENIED, "the token is not known");
    rc = judge_jwt(a, q, &jwt, token, out, why);
    kr_jwt_deinit(&jwt);
    if (rc == 0 && (*out)->by == HUB_BY_OIDC)
        remember(a, hash, *out);
    return rc;
}

static int by_certificate(const struct hub_peer *peer, int64_t now_wall_ms, struct hub_caller **out,
                          struct kr_note *why)
{
    *out = peer->caller != NULL ? hub_caller_ref(peer->caller) : hub_caller_of_identity(&peer->id);
    if (*out == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    if (!hub_caller_expired(*out, now_wall_ms))
        return 0;
    hub_caller_unref(*out);
    *out = NULL;
    return kr_note_set(why, KR_EDENIED, "the certificate has expired");
}

int hub_authn_judge(struct hub_authn *a, const struct hub_authn_question *q,
                    struct hub_caller **out, struct kr_note *why)
{
    struct kr_bytes token;
    int rc;

    *out = NULL;
    if (q->peer->known)
        return by_certificate(q->peer, a != NULL ? a->w->sched->now_wall_ms : 0, out, why);
    rc = hub_bearer_find(q->head, q->arena, &token, why);
    if (rc != 0)
        return rc;
    if (a == NULL)
        return kr_note_set(why, KR_EDENIED, "bearer tokens are not accepted");
    return judge_token(a, q, token, out, why);
}

/* The token is verified again, with the keys of now. */
static bool still_from_issuer(struct hub_authn *a, const struct hub_caller *caller)
{
    struct hub_caller *again = NULL;
    struct kr_jwt jwt;
    struct hub_issuer *i;
    bool good = false;

    if (kr_jwt_read(&jwt, caller->token, NULL) != 0)
        return false;
    i = hub_issuers_find(a->issuers, jwt.issuer);
    if (i != NULL)
        good =
            hub_issuer_judge(i, &jwt, caller->token, a->w->sched->now_wall_ms, &again, NULL) == 0 &&
            kr_bytes_eq(again->user, caller->user);
    hub_caller_unref(again);
    kr_jwt_deinit(&jwt);
    return good;
}

bool hub_authn_still(struct hub_authn *a, const struct hub_caller *caller)
{
    if (a == NULL || caller->by == HUB_BY_CERTIFICATE || caller->by == HUB_BY_MEMBER_TOKEN)
        return true;
    return caller->by == HUB_BY_OIDC ? still_from_issuer(a, caller) : !caller->revoked;
}
