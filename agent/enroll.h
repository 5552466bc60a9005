/* SPDX-License-Identifier: Apache-2.0 */
/* enroll: one call of Join or Renew at one hub: dials its agent port with ALPN h2, sends, and hands
 * over the answer.
 * Errors: to on_done: those of dialling and TLS, KR_EDENIED (the hub refuses), KR_EFULL (too many
 * tries), KR_EPROTO (no gRPC, no answer, this hub does not enroll), KR_ETIMEDOUT.
 * Limits: 15 s in all. Threads: the agent's. */
#ifndef AGENT_ENROLL_H
#define AGENT_ENROLL_H

#include "agent/core.h"
#include "net/proxy.h"
#include "wire/enroll_messages.h"

struct agent_enroll;

struct agent_enroll_config {
    struct agent_core *c;
    const char *hub; /* "host:port", borrowed */
    const struct kr_proxy *proxy;
    const char *path;        /* KR_GRPC_JOIN or KR_GRPC_RENEW */
    struct kr_bytes message; /* copied */
    bool with_cert;          /* shows the certificate that is in use */
    /* Once, never from inside the start, and the last. `answer` is lent; NULL on failure. */
    void (*on_done)(void *owner, int rc, const struct kr_enroll_answer *answer,
                    const struct kr_note *why);
    void *owner;
};

/* NULL: see *why; no callback then. */
struct agent_enroll *agent_enroll_start(const struct agent_enroll_config *cfg, struct kr_note *why);
/* No callback comes any more. What is left of it goes by itself. NULL is fine. */
void agent_enroll_cancel(struct agent_enroll *e);

#endif
