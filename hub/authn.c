/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/authn.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "certs/hmac.h"
#include "hub/bearer.h"
#include "hub/issuers.h"
#include "hub/jwks_fetch.h"
#include "hub/token_file.h"

#define LOOK_MS 2000
#define SEEN_MAX 10000

/* A token that was found good. */
struct seen {
    uint8_t hash[KR_HMAC_SIZE]; /* the key in the map */
    struct hub_caller *caller;
};

struct hub_authn {
    struct hub_worker *w;
    struct hub_authn_owner owner;
    struct hub_token_file *tokens;
    struct hub_issuers *issuers;
    struct hub_jwks_fetch *fetch; /* for issuers with a URL */
    struct kr_map seen;
    uint8_t secret[KR_HMAC_SIZE];
    struct kr_timer look;
    struct hub_file_mark tokens_mark;
    struct hub_file_mark issuers_mark;
};

/* ---- what was seen before ---- */

static void forget_all(struct hub_authn *a)
{
    struct seen *s;
    size_t pos = 0;

    while ((s = kr_map_next(&a->seen, &pos, NULL)) != NULL) {
        hub_caller_unref(s->caller);
        free(s);
    }
    kr_map_deinit(&a->seen);
    kr_map_init(&a->seen, SEEN_MAX);
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

static void remember(struct hub_authn *a, const uint8_t hash[KR_HMAC_SIZE],
                     struct hub_caller *caller)
{
    struct seen *s;

    if (a->seen.count == SEEN_MAX)
        forget_all(a);
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return;
    memcpy(s->hash, hash, KR_HMAC_SIZE);
    s->caller = hub_caller_ref(caller);
    if (kr_map_put(&a->seen, kr_bytes_of(s->hash, KR_HMAC_SIZE), s) != 0) {
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
        hub_jwks_fetch_want(a->fetch, i);
        rc = KR_EDENIED;
    }
    return rc;
}

static int judge_token(struct hub_authn *a, const struct hub_authn_question *q,
                       struct kr_bytes token, struct hub_caller **out, struct kr_note *why)
{
    uint8_t hash[KR_HMAC_SIZE];
    struct kr_jwt jwt;
    int rc;

    *out = a->tokens != NULL ? hub_token_file_find(a->tokens, token) : NULL;
    if (*out == NULL && a->issuers == NULL && !a->w->options->member_tokens)
        return *out != NULL ? 0 : kr_note_set(why, KR_EDENIED, "the token is not known");
    if (*out == NULL && kr_hmac(a->secret, token, hash) == 0)
        *out = recall(a, hash);
    if (*out != NULL) {
        hub_caller_ref(*out);
        return 0;
    }
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

/* ---- files ---- */

static int load_tokens(struct hub_authn *a, struct kr_note *why)
{
    const char *file = a->w->options->token_file;
    struct hub_token_file *tokens = NULL;
    int rc;

    if (file == NULL)
        return 0;
    a->tokens_mark = hub_file_mark_of(file);
    rc = hub_token_file_load(&tokens, file, why);
    if (rc != 0)
        return rc;
    hub_token_file_revoke(a->tokens, tokens);
    hub_token_file_destroy(a->tokens);
    a->tokens = tokens;
    return 0;
}

/* Keys that were fetched stay good when the file was read anew. */
static void keep_keys(struct hub_issuers *from, struct hub_issuers *to)
{
    for (size_t i = 0; i < to->n; i++) {
        struct hub_issuer *n = &to->all[i];
        struct hub_issuer *o = hub_issuers_find(from, kr_bytes_str(n->url));

        if (o != NULL && n->jwks_url != NULL && o->jwks_url != NULL &&
            strcmp(n->jwks_url, o->jwks_url) == 0) {
            n->keys = o->keys;
            o->keys = NULL;
        }
    }
}

static int load_issuers(struct hub_authn *a, struct kr_note *why)
{
    const char *file = a->w->options->authentication_file;
    struct hub_issuers *issuers = NULL;
    struct hub_jwks_fetch *fetch = NULL;
    int rc;

    if (file == NULL)
        return 0;
    a->issuers_mark = hub_file_mark_of(file);
    rc = hub_issuers_load(&issuers, file, why);
    if (rc == 0)
        rc = hub_jwks_fetch_create(a->w, issuers, &fetch, why);
    if (rc != 0) {
        hub_issuers_destroy(issuers);
        return rc;
    }
    hub_jwks_fetch_destroy(a->fetch);
    if (a->issuers != NULL)
        keep_keys(a->issuers, issuers);
    hub_issuers_destroy(a->issuers);
    a->issuers = issuers;
    a->fetch = fetch;
    forget_all(a);
    return 0;
}

static void say(struct hub_authn *a, int rc, const char *file, const struct kr_note *why)
{
    if (file == NULL)
        return;
    if (rc == 0)
        KR_LOG_AT(a->w->log, KR_LOG_INFO, "reloaded", KR_S("file", file));
    else
        KR_LOG_AT(a->w->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why->text),
                  KR_S("effect", "what was loaded before stays in use"));
}

static void reload_tokens(struct hub_authn *a)
{
    struct kr_note why = {""};

    say(a, load_tokens(a, &why), a->w->options->token_file, &why);
}

static void reload_issuers(struct hub_authn *a)
{
    struct kr_note why = {""};

    say(a, load_issuers(a, &why), a->w->options->authentication_file, &why);
}

void hub_authn_reload(struct hub_authn *a)
{
    if (a == NULL)
        return;
    reload_tokens(a);
    reload_issuers(a);
    a->owner.on_change(a->owner.owner);
}

static bool look_at_keys(struct hub_authn *a)
{
    bool changed = false;

    for (size_t i = 0; a->issuers != NULL && i < a->issuers->n; i++) {
        struct hub_issuer *issuer = &a->issuers->all[i];
        struct hub_file_mark now = hub_file_mark_of(issuer->jwks_file);
        struct kr_note why = {""};

        if (issuer->jwks_file == NULL || hub_file_mark_same(&now, &issuer->mark))
            continue;
        say(a, hub_issuer_read_keys(issuer, &why), issuer->jwks_file, &why);
        changed = true;
    }
    return changed;
}

static void on_look(struct kr_timer *t)
{
    struct hub_authn *a = KR_CONTAINER_OF(t, struct hub_authn, look);
    struct hub_file_mark tokens = hub_file_mark_of(a->w->options->token_file);
    struct hub_file_mark issuers = hub_file_mark_of(a->w->options->authentication_file);
    bool changed = false;

    kr_timer_start(a->w->sched, &a->look, LOOK_MS);
    if (!hub_file_mark_same(&tokens, &a->tokens_mark)) {
        reload_tokens(a);
        changed = true;
    }
    if (!hub_file_mark_same(&issuers, &a->issuers_mark)) {
        reload_issuers(a);
        changed = true;
    }
    if (look_at_keys(a)) {
        forget_all(a); /* a key that is gone must not live on in what was found good */
        changed = true;
    }
    if (changed)
        a->owner.on_change(a->owner.owner);
}

int hub_authn_create(struct hub_worker *w, const struct hub_authn_owner *owner,
                     struct hub_authn **out, struct kr_note *why)
{
    struct hub_authn *a = calloc(1, sizeof *a);
    int rc;

    *out = NULL;
    if (a == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    a->w = w;
    a->owner = *owner;
    kr_map_init(&a->seen, SEEN_MAX);
    kr_rand_secret(a->secret, sizeof a->secret);
    kr_timer_init(&a->look, on_look);
    rc = load_tokens(a, why);
    if (rc == 0)
        rc = load_issuers(a, why);
    if (rc != 0) {
        hub_authn_destroy(a);
        return rc;
    }
    if (a->tokens != NULL)
        KR_LOG_AT(w->log, KR_LOG_WARN, "token-file",
                  KR_U("tokens", hub_token_file_count(a->tokens)),
                  KR_S("effect", "tokens that never expire: for labs, not for production"));
    if (a->tokens != NULL || a->issuers != NULL)
        kr_timer_start(w->sched, &a->look, LOOK_MS);
    *out = a;
    return 0;
}

void hub_authn_destroy(struct hub_authn *a)
{
    if (a == NULL)
        return;
    kr_timer_stop(a->w->sched, &a->look);
    forget_all(a);
    kr_map_deinit(&a->seen);
    hub_jwks_fetch_destroy(a->fetch);
    hub_issuers_destroy(a->issuers);
    hub_token_file_destroy(a->tokens);
    free(a);
}

int hub_authn_check(const struct hub_options *o, struct kr_note *why)
{
    struct hub_token_file *tokens = NULL;
    struct hub_issuers *issuers = NULL;
    int rc = 0;

    if (o->token_file != NULL)
        rc = hub_token_file_load(&tokens, o->token_file, why);
    if (rc == 0 && o->authentication_file != NULL)
        rc = hub_issuers_load(&issuers, o->authentication_file, why);
    hub_token_file_destroy(tokens);
    hub_issuers_destroy(issuers);
    return rc;
}
