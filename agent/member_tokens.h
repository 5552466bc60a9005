/* SPDX-License-Identifier: Apache-2.0 */
/* member_tokens: bearer tokens of this cluster's own service accounts, which clients send through a
 * hub (as Argo CD does with `argocd cluster add`). The API server judges them (TokenReview), asked
 * with the agent's own credential; a token that it knows goes on as it is, and nobody is
 * impersonated.
 * Limits: 1,000 tokens at once; what was said of one is believed for 60 s; 10 s for an answer.
 * Memory: keeps hashes, never tokens. Threads: the agent's. */
#ifndef AGENT_MEMBER_TOKENS_H
#define AGENT_MEMBER_TOKENS_H

#include "agent/core.h"

struct agent_member_tokens;

/* Somebody who waits for a verdict; embedded. Remove the link to leave. */
struct agent_member_wait {
    struct kr_list link;
    /* 0: the token is good, and `user` is whose (lent). KR_EDENIED: it is not. Else the API server
     * could not be asked. */
    void (*on_verdict)(struct agent_member_wait *w, int rc, struct kr_bytes user);
};

struct agent_member_tokens *agent_member_tokens_create(struct agent_core *c);
/* Nobody may wait any more. NULL is fine. */
void agent_member_tokens_destroy(struct agent_member_tokens *m);
/* Calls on_verdict, once, now or later. */
void agent_member_tokens_judge(struct agent_member_tokens *m, struct kr_bytes token,
                               struct agent_member_wait *w);

#endif
