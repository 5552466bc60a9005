/* SPDX-License-Identifier: Apache-2.0 */
/* caller: who asks, however that was found out: by a client certificate or by a bearer token.
 * Memory: one block, counted: requests, connections and the token file share it. Immutable but for
 *         `revoked`. A token in it is wiped with it.
 * Threads: the worker's. */
#ifndef HUB_CALLER_H
#define HUB_CALLER_H

#include "certs/identity.h"

enum hub_caller_by {
    HUB_BY_CERTIFICATE,
    HUB_BY_TOKEN_FILE,
    HUB_BY_OIDC,
    HUB_BY_MEMBER_TOKEN, /* of the member cluster's own: its agent judges it; no name yet */
};

/* Until the agent has judged the token. */
#define HUB_MEMBER_TOKEN_USER "kuberelay:member-token"

struct hub_caller {
    unsigned refs;
    enum hub_caller_by by;
    struct kr_bytes user; /* with a NUL behind it */
    struct kr_bytes uid;  /* of the token file; for the audit */
    const struct kr_bytes *groups;
    size_t group_count;
    int64_t expires_wall_ms; /* 0: never */
    bool revoked;            /* its token is not in the file any more */
    struct kr_bytes token;   /* what the edge judges itself (OIDC, member token); else empty */
};

/* A copy of what `from` says, with one reference. NULL when memory is short. */
struct hub_caller *hub_caller_create(const struct hub_caller *from);
struct hub_caller *hub_caller_of_identity(const struct kr_identity *id);
struct hub_caller *hub_caller_ref(struct hub_caller *c);
void hub_caller_unref(struct hub_caller *c); /* NULL is fine */
/* "" for NULL. */
const char *hub_caller_name(const struct hub_caller *c);
bool hub_caller_expired(const struct hub_caller *c, int64_t now_wall_ms);

/* Whether the names can be anybody's: texts without control bytes or outer spaces, at most
 * KR_NAME_MAX bytes, at most KR_GROUPS_MAX groups, and none that begins with "system:": those
 * belong to a cluster's own components. KR_EDENIED. */
int hub_caller_check(const struct hub_caller *c, struct kr_note *why);

#endif
