/* SPDX-License-Identifier: Apache-2.0 */
/* impersonation: a client that acts as somebody else (kubectl --as, --as-group, --as-uid), if a
 * rule of the configuration allows every part of it; the agent never sees the client's own headers.
 * Rules:  WHO=WHAT. WHO is user:NAME or group:NAME of the client; WHAT is user:NAME, group:NAME,
 *         uid:VALUE or extra:KEY; a NAME, VALUE or KEY of WHAT may be *.
 *         As in Kubernetes (the verb impersonate on users, groups, uids, userextras) each part that
 *         is asked for needs a rule of its own.
 * Memory: what is read lives in the arena, or borrows the head. */
#ifndef HUB_IMPERSONATION_H
#define HUB_IMPERSONATION_H

#include "base/options.h"
#include "http/head.h"
#include "hub/caller.h"
#include "wire/messages.h"

#define HUB_AS_GROUPS_MAX 64
#define HUB_AS_EXTRA_MAX 64

struct hub_impersonation {
    bool asked;
    struct kr_bytes user;
    struct kr_bytes *groups;
    size_t group_count;
    struct kr_bytes uid;
    struct kr_extra *extra; /* one entry per field; keys may repeat */
    size_t extra_count;
};

/* KR_EINVAL for headers that kube-apiserver refuses too (groups, uid or extra without a user), or
 * for too many of them. */
int hub_impersonation_read(struct hub_impersonation *as, const struct kr_head *head,
                           struct kr_arena *arena, struct kr_note *why);
/* 0, or KR_EDENIED with the part that no rule allows. */
int hub_impersonation_allowed(const struct kr_strings *rules, const struct hub_caller *client,
                              const struct hub_impersonation *as, struct kr_note *why);
/* Whether every rule can be read. KR_EINVAL. */
int hub_impersonation_check(const struct kr_strings *rules, struct kr_note *why);

#endif
