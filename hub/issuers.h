/* SPDX-License-Identifier: Apache-2.0 */
/* issuers: whose ID tokens (OpenID Connect) the hub believes: the file that option
 * authenticationFile names (YAML).
 *
 *   issuers:
 *   - url: https://login.example.com   # iss, exactly
 *     audiences: [kuberelay]           # one of them must be in aud
 *     jwksFile: keys.json              # the issuer's keys, or
 *     jwksUrl: https://login.example.com/keys
 *     caFile: login-ca.crt             # whom to trust there; needed with jwksUrl
 *     usernameClaim: sub
 *     usernamePrefix: "acme:"          # default: the URL and #; "-" for none
 *     groupsClaim: groups              # default: no groups
 *     groupsPrefix: "acme:"            # as usernamePrefix
 *     algorithms: [RS256, ES256]       # the default; nothing else is possible
 *
 * Memory: a set owns its texts and keys. Limits: 32 issuers, 1 MiB of file.
 * Errors: KR_EINVAL and those of files, with "FILE:LINE: what". Threads: the worker's. */
#ifndef HUB_ISSUERS_H
#define HUB_ISSUERS_H

#include "base/arena.h"
#include "base/options.h"
#include "certs/claims.h"
#include "certs/jwt.h"
#include "hub/caller.h"
#include "hub/file_mark.h"

#define HUB_ISSUERS_MAX 32

struct hub_issuer { /* read it */
    const char *url;
    struct kr_strings audiences;
    const char *jwks_file; /* one of the two */
    const char *jwks_url;
    const char *ca_file;
    struct kr_claim_rules claims;
    unsigned algs;
    struct kr_jwks *keys; /* owned; NULL: not known yet */
    struct hub_file_mark mark;
};

struct hub_issuers {
    struct kr_arena arena;
    struct hub_issuer *all;
    size_t n;
};

int hub_issuers_load(struct hub_issuers **out, const char *file, struct kr_note *why);
int hub_issuers_parse(struct hub_issuers **out, const char *name, struct kr_bytes text,
                      struct kr_note *why);
void hub_issuers_destroy(struct hub_issuers *s); /* NULL is fine */
struct hub_issuer *hub_issuers_find(const struct hub_issuers *s, struct kr_bytes url);

/* Reads jwksFile; on failure the keys stay. */
int hub_issuer_read_keys(struct hub_issuer *i, struct kr_note *why);
/* Takes a key set as it came from the issuer; on failure the keys stay. */
int hub_issuer_take_keys(struct hub_issuer *i, struct kr_bytes text, struct kr_note *why);
/* Who the token is from: *out has a reference. KR_EDENIED; KR_ENOENT: its key is not known. */
int hub_issuer_judge(const struct hub_issuer *i, const struct kr_jwt *jwt, struct kr_bytes token,
                     int64_t now_wall_ms, struct hub_caller **out, struct kr_note *why);

#endif
