/* SPDX-License-Identifier: Apache-2.0 */
/* authn: who asks, at the API port. In this order: the client certificate that TLS verified; else
 * the bearer token: of the token file, of an issuer (issuers.h), or, if memberTokens says so and
 * the request is for one member cluster, whatever JWT is of none of our issuers: that cluster's
 * agent judges it. A credential that is there and no good is refused: nobody falls through. Files
 * are read again within 2 s of a change, and on SIGHUP; bad new ones are not taken. Limits: 10,000
 * verified tokens are remembered, until they expire. Threads: the worker's. */
#ifndef HUB_AUTHN_H
#define HUB_AUTHN_H

#include "http/head.h"
#include "hub/caller.h"
#include "hub/front.h"

struct hub_authn;

/* For when one of its files was read anew. */
struct hub_authn_owner {
    void (*on_change)(void *owner);
    void *owner;
};

int hub_authn_create(struct hub_worker *w, const struct hub_authn_owner *owner,
                     struct hub_authn **out, struct kr_note *why);
void hub_authn_destroy(struct hub_authn *a);
/* Reads all its files anew. */
void hub_authn_reload(struct hub_authn *a);
/* What --check-config finds. */
int hub_authn_check(const struct hub_options *o, struct kr_note *why);

/* Whether a credential that was found good is still (but for its expiry, which the caller knows).
 */
bool hub_authn_still(struct hub_authn *a, const struct hub_caller *caller);

struct hub_authn_question {
    const struct hub_peer *peer;
    const struct kr_head *head;
    bool for_member; /* the request is for one member cluster */
    struct kr_arena *arena;
};

/* 0: *out has a reference. KR_ENOENT: no credential; KR_EDENIED: a bad one, with the reason for the
 * log; KR_ENOMEM. `a` may be NULL: then there are certificates only. */
int hub_authn_judge(struct hub_authn *a, const struct hub_authn_question *q,
                    struct hub_caller **out, struct kr_note *why);

#endif
