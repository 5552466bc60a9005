/* SPDX-License-Identifier: Apache-2.0 */
/* core: what the parts of the agent share. Nothing is global. Threads: one. */
#ifndef AGENT_CORE_H
#define AGENT_CORE_H

#include "agent/options.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/rand.h"
#include "certs/identity.h"
#include "http/h2_session.h"
#include "net/net_io.h"
#include "net/tls_context.h"
#include "wire/messages.h"

struct agent_apiserver;
struct agent_catalog;
struct agent_member_tokens;
struct agent_policy;
struct agent_sync;

/* What is known of the API server; told to every hub. */
struct agent_health {
    enum kr_api_health health;
    char version[64];
    char cluster_uid[64];
    uint32_t nodes;
};

struct agent_core {
    const struct agent_options *options;
    struct kr_log *log;
    struct kr_loop *loop;
    struct kr_sched *sched;
    struct kr_tls_io *io;
    struct kr_h2_shared h2;
    struct kr_metrics *metrics;
    struct kr_rand rand;
    struct kr_identity self;
    struct kr_tls_context *hub_tls; /* NULL: it has to join first */
    unsigned pair_turn;             /* how often hub_tls was made anew */
    uint64_t bundle_generation;     /* of the roots in stateDir; 0: those of caFile */
    struct agent_apiserver *api;
    struct agent_catalog *catalog;
    struct agent_member_tokens *member_tokens; /* made with the first token */
    struct agent_policy *policy;
    struct agent_sync *sync;
    struct kr_audit_log *audit; /* NULL: nothing is logged */
    struct agent_health health;
    uint8_t boot_id[16];
    size_t requests;
    size_t watches; /* of the requests; counted for the limits of the policy */
    size_t upgrades;
    bool draining;
    struct kr_metric *m_exchanges;
    /* Set by agent.c: a hub has accepted a tunnel, or says something new. */
    void (*on_hub_state)(void *owner, const struct kr_hub_state *s);
    /* A hub has refused our certificate. */
    void (*on_refused)(void *owner, const char *reason);
    void *owner;
};

int agent_core_init(struct agent_core *c, const struct agent_options *options, struct kr_log *log,
                    struct kr_note *why);
void agent_core_deinit(struct agent_core *c);
/* Reads the policy anew; on failure the old one stays. *changed: it was another one. */
int agent_core_load_policy(struct agent_core *c, bool *changed, struct kr_note *why);

#endif
