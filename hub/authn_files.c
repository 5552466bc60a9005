/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/authn_parts.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/jwks_fetch.h"

#define LOOK_MS 2000

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

static void want_keys(struct hub_authn *a, const struct hub_issuer *issuer)
{
    hub_jwks_fetch_want(a->fetch, issuer);
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
    a->want_keys = fetch != NULL ? want_keys : NULL;
    hub_authn_forget(a);
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
        hub_authn_forget(a); /* a key that is gone must not live on in what was found good */
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
    kr_map_init(&a->seen, HUB_AUTHN_SEEN_MAX);
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
    hub_authn_forget(a);
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
