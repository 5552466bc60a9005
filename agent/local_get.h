/* SPDX-License-Identifier: Apache-2.0 */
/* local_get: one GET (or a POST that may be sent twice, such as a review) to the local API server
 * as the agent itself, its body handed on as it comes. Happy path: start -> a connection -> on_head
 * -> on_body ... -> on_done(0), the body is whole. What can go wrong: no connection, a reset, a cut
 * body, silence: on_done with a code. A 401 is asked once more if there is a newer token; a request
 * that the server provably did not look at is sent again, too. Back-pressure: bytes that came are
 * owed; what is not given back by agent_get_consumed stops the server at the end of its window, and
 * silence does not count meanwhile. Life:    on_done comes once and last; from then on, or after
 * agent_get_abort, it is idle and may be started again (also from within on_done). No call makes a
 * callback. Memory:  embedded. Threads: the agent's. */
#ifndef AGENT_LOCAL_GET_H
#define AGENT_LOCAL_GET_H

#include "agent/apiserver.h"

struct agent_get_ops {
    /* The final head; lent until on_done. */
    void (*on_head)(void *user, const struct kr_head *head);
    void (*on_body)(void *user, struct kr_bytes in);
    /* 0, or KR_ETIMEDOUT (silence), KR_ECONNLOST, KR_ERESET, ... `why` is for people. */
    void (*on_done)(void *user, int rc, const char *why);
    /* More fields of the request, added last; called for each attempt. May be NULL. */
    int (*add_fields)(void *user, struct kr_head *head);
};

struct agent_get_request {
    struct kr_bytes path; /* and query, without the prefix of the kubeconfig */
    const char *accept;   /* static */
    struct kr_bytes etag; /* If-None-Match; empty: none */
    int64_t silence_ms;   /* at most so long without a byte */
    struct kr_bytes body; /* JSON: then it is a POST; empty: none */
};

struct agent_get { /* embed it; the fields belong to local_get.c */
    struct agent_core *c;
    const struct agent_get_ops *ops;
    void *user;
    struct agent_waiter waiter;
    struct kr_exchange *ex;
    struct kr_timer timer;
    struct kr_buf path;
    struct kr_buf etag;
    struct kr_buf body;
    size_t body_sent;
    const char *accept;
    int64_t silence_ms;
    int64_t heard_ms; /* when a byte came or was given back */
    size_t owed;
    uint32_t token_generation;
    unsigned attempts; /* that went out */
    unsigned opens;
    bool headed; /* on_head was called */
    bool active;
};

void agent_get_init(struct agent_get *g, struct agent_core *c, const struct agent_get_ops *ops,
                    void *user);
void agent_get_deinit(struct agent_get *g); /* aborts; zeroed is fine */
/* KR_ENOMEM: nothing was started. */
int agent_get_start(struct agent_get *g, const struct agent_get_request *rq);
void agent_get_consumed(struct agent_get *g, size_t n);
/* From now on at most so long without a byte. */
void agent_get_silence(struct agent_get *g, int64_t silence_ms);
void agent_get_abort(struct agent_get *g);
static inline bool agent_get_active(const struct agent_get *g)
{
    return g->active;
}

#endif
