/* SPDX-License-Identifier: Apache-2.0 */
/* request_parts: what the files of a relayed request share.
 *
 * request.c       its life: read, checked, sent, answered
 * request_head.c  the head for the API server: an allow-list, credential, identity
 * rebase.c        a write from the fleet view: the object is read first */
#ifndef AGENT_REQUEST_PARTS_H
#define AGENT_REQUEST_PARTS_H

#include "agent/apiserver.h"
#include "agent/member_tokens.h"
#include "agent/policy.h"
#include "agent/rebase.h"
#include "http/forward.h"
#include "kube/headers.h"
#include "kube/request_info.h"
#include "kube/watch_lines.h"

struct agent_audit_entry;

struct agent_request {
    struct kr_forward fw;
    struct agent_core *c;
    struct kr_arena arena;
    struct kr_relay_request who;
    struct kr_request_info info; /* its text is gone once a long-running answer began */
    struct agent_waiter waiter;
    struct agent_member_wait member;
    struct kr_timer deadline;
    struct kr_watch_lines lines;
    uint32_t token_generation;
    size_t *counted; /* that of watches or upgrades, or NULL */
    int attempts;
    int opens;   /* that failed */
    int code;    /* that the hub got, 0 before */
    int verdict; /* enum kr_case that on_response decided, or -1 */
    bool is_watch;
    bool upgrade;
    struct agent_audit_entry *audit;                       /* NULL: nothing is logged */
    char rule[sizeof((struct agent_verdict *)NULL)->rule]; /* of the policy; for the audit */
    struct agent_rebase *rebase;                           /* NULL: the body goes on as it came */
    bool rebased;                                          /* the body has the live version in it */
    bool retry; /* the credential was refused and there is a newer one */
};

static inline unsigned agent_request_flags(const struct agent_request *r)
{
    return (r->info.proxied ? KR_HEADERS_PROXY : 0) | (r->upgrade ? KR_HEADERS_UPGRADE : 0);
}

/* request_head.c. KR_EDENIED: an identity of the system; KR_ETOOBIG, KR_ENOMEM. */
int agent_request_head(struct agent_request *r, struct kr_head *to);
/* Impersonate-*, and nothing else; to be added last. */
int agent_request_identity(struct agent_request *r, struct kr_head *to);

#endif
