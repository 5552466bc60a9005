/* SPDX-License-Identifier: Apache-2.0 */
/* claims: whom the claims of a verified token name, as kube-apiserver reads them: a user with a
 * prefix, and groups (a text or a list of texts) with theirs. The claim `email` names nobody unless
 * it is verified (email_verified, if it is there, must be true).
 * Memory: texts live in the arena. Errors: KR_EDENIED (no such user), KR_ENOMEM. Pure. */
#ifndef KR_CERTS_CLAIMS_H
#define KR_CERTS_CLAIMS_H

#include "base/arena.h"
#include "base/json.h"

#define KR_CLAIM_GROUPS_MAX 256

struct kr_claim_rules {
    const char *username_claim;
    const char *username_prefix; /* may be "" */
    const char *groups_claim;    /* NULL: no groups */
    const char *groups_prefix;
};

struct kr_claim_user {
    struct kr_bytes user;
    struct kr_bytes *groups;
    size_t group_count;
};

int kr_claims_user(struct kr_claim_user *out, const struct kr_json *claims,
                   const struct kr_claim_rules *rules, struct kr_arena *arena, struct kr_note *why);

#endif
