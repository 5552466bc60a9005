/* SPDX-License-Identifier: Apache-2.0 */
/* keeper: keeps what the agent shows and believes fresh: renews its own certificate
 * (agent/renew.h), goes back to the one before if no hub takes the new one, takes the files that
 * others renew, and the roots that hubs tell of. Threads: the agent's. */
#ifndef AGENT_KEEPER_H
#define AGENT_KEEPER_H

#include "agent/renew.h"
#include "agent/trust.h"
#include "certs/file_watch.h"

struct agent_keeper_owner {
    void (*on_pair)(void *owner);   /* another certificate is in use */
    void (*on_bundle)(void *owner); /* other roots are: hubs want to know */
};

struct agent_keeper { /* embed it; the fields belong to keeper.c */
    struct agent_core *c;
    struct agent_renew renew;
    struct kr_file_watch files; /* certFile, keyFile, caFile */
    struct kr_timer timer;
    struct kr_timer refused; /* the new certificate was: until all hubs had time to accept it */
    char reason[128];
    const struct agent_keeper_owner *ops;
    void *owner;
};

void agent_keeper_init(struct agent_keeper *k, struct agent_core *c, const struct kr_proxy *proxy,
                       const struct agent_keeper_owner *ops, void *owner);
void agent_keeper_start(struct agent_keeper *k);
void agent_keeper_stop(struct agent_keeper *k); /* zeroed is fine */

#endif
