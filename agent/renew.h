/* SPDX-License-Identifier: Apache-2.0 */
/* renew: how an agent with a stateDir gets its certificate and keeps it fresh: joins with a token
 * if it has none (or only an expired one, or one that a hub refuses, and the token is a new one),
 * and renews at a random point in 60 to 80 % of its life, with a new key each time. Without
 * stateDir, or with certFile, it does nothing.
 * Waits: full jitter as for tunnels; after a refusal by the hub 1 to 2 minutes.
 * Threads: the agent's. */
#ifndef AGENT_RENEW_H
#define AGENT_RENEW_H

#include "agent/core.h"
#include "agent/enroll.h"
#include "agent/join_token.h"
#include "base/backoff.h"

struct agent_renew { /* embed it; the fields belong to renew.c */
    struct agent_core *c;
    const struct kr_proxy *proxy; /* set before the start */
    struct agent_enroll *call;
    struct kr_timer timer;
    struct kr_backoff backoff;
    struct kr_buf key; /* of the request under way */
    size_t hub;        /* that is asked next */
    int64_t due_wall_ms;
    int64_t retry_ms; /* of a join that failed; 0: none */
    unsigned backs;   /* renewals in a row whose certificate no hub took */
    bool join;        /* the request under way */
    bool refused;     /* a hub does not want the certificate, and none has taken it since */
    char token_id[AGENT_TOKEN_ID + 1]; /* of the last join */
    char tried[AGENT_TOKEN_ID + 1];    /* was refused with a certificate in hand */
    bool started;
    void (*on_pair)(void *owner); /* a new pair is in use: dial with it */
    void *owner;
};

void agent_renew_init(struct agent_renew *r, struct agent_core *c, void (*on_pair)(void *owner),
                      void *owner);
void agent_renew_start(struct agent_renew *r);
void agent_renew_stop(struct agent_renew *r); /* never started is fine */
/* The certificate before the last one is in use again: it is due, but not at once. */
void agent_renew_went_back(struct agent_renew *r);
/* A hub refused the tunnel, or took it. */
void agent_renew_refused(struct agent_renew *r);
void agent_renew_accepted(struct agent_renew *r);
/* Looks at once at what is to be done (SIGHUP: there may be a new token). */
void agent_renew_retry(struct agent_renew *r);

#endif
