/* SPDX-License-Identifier: Apache-2.0 */
/* rebase: before a write that was built on an object of the fleet view goes to the API server, the
 * object is read, as the user who writes; if it still is what the hub has served (the same uid, and
 * the same hash of what the subscription's profile leaves of it), its live resourceVersion is put
 * into the body. The API server then compares it once more, so that nothing can come in between.
 * Happy path: agent_rebase_start -> GET -> compare -> on_ready.
 * What can go wrong: another object or another state of it (409); the Sync is not open here any
 * more (503, nothing was sent); the API server does not give the object (its own answer).
 * Memory: the body and the object, up to AGENT_REBASE_MAX each, until it is over.
 * Threads: the agent's. */
#ifndef AGENT_REBASE_H
#define AGENT_REBASE_H

#include "agent/core.h"
#include "http/head.h"
#include "kube/request_info.h"
#include "kube/status.h"

#define AGENT_REBASE_MAX (8u << 20)

struct agent_rebase;

/* One of the last three comes once and last, never from inside agent_rebase_start; texts are lent.
 * The owner may destroy the rebase in it. */
struct agent_rebase_ops {
    int (*add_identity)(void *user, struct kr_head *to);
    void (*on_ready)(void *user, struct kr_bytes body);
    void (*on_refused)(void *user, enum kr_case which, struct kr_bytes detail);
    void (*on_answer)(void *user, const struct kr_head *head, struct kr_bytes body);
};

/* `rebase` and `info` are lent until the end; *body is taken. KR_ENOMEM, KR_ETOOBIG: nothing was
 * started. */
int agent_rebase_start(struct agent_rebase **out, struct agent_core *c,
                       const struct kr_rebase *rebase, const struct kr_request_info *info,
                       struct kr_buf *body, const struct agent_rebase_ops *ops, void *user);
void agent_rebase_destroy(struct agent_rebase *rb); /* stops it; NULL is fine */

#endif
