/* SPDX-License-Identifier: Apache-2.0 */
/* worker: what the parts of one event loop share. Everything that a request touches hangs off it;
 * nothing is global. Threads: one worker is one thread's. */
#ifndef HUB_WORKER_H
#define HUB_WORKER_H

#include "base/log.h"
#include "base/metrics.h"
#include "base/rand.h"
#include "certs/identity.h"
#include "certs/pin.h"
#include "http/h2_session.h"
#include "hub/clusters.h"
#include "hub/options.h"
#include "net/net_io.h"
#include "net/tls_context.h"

struct hub_bundle;
struct hub_access;
struct hub_authn;
struct hub_cache;
struct hub_catalogs;
struct hub_fleet;
struct hub_fleet_config;
struct hub_issuer;
struct hub_registry;
struct hub_revision;
struct hub_subscriptions;

struct hub_worker {
    const struct hub_options *options;
    struct kr_log *log;
    struct kr_loop *loop;
    struct kr_sched *sched;
    struct kr_tls_io *io;
    struct kr_h2_shared h2;
    struct kr_metrics *metrics;
    struct kr_rand rand;
    struct kr_identity self;    /* of our own certificate: replica and trust domain */
    char root_pin[KR_PIN_TEXT]; /* of the root that it leads to; empty: none of caFile */
    struct kr_tls_context *api_tls;
    struct kr_tls_context *agent_tls;
    struct hub_clusters clusters;
    struct hub_registry *registry;   /* NULL: no stateDir, so nobody is registered */
    const struct hub_bundle *bundle; /* set with it */
    struct hub_issuer *issuer;       /* NULL: agents cannot enroll here */
    struct hub_authn *authn;         /* NULL: certificates only */
    struct hub_access *access;       /* NULL: long streams are not judged again */
    struct kr_audit_log *audit;      /* NULL: nothing is logged */
    /* The fleet view, made by hub.c; all NULL if it is not offered. */
    struct hub_fleet_config *fleet_config;
    struct hub_revision *revision;
    struct hub_cache *cache;
    struct hub_catalogs *catalogs;
    struct hub_subscriptions *subscriptions;
    struct hub_fleet *fleet;
    int64_t started_ms;
    size_t connections;
    struct kr_list live; /* hub_request.link: requests under way */
    size_t requests;
    size_t write_bytes; /* of bodies that fleet_write.c may collect now */
    bool unready;       /* SIGTERM came: load balancers are told, requests are still served */
    bool draining;      /* nothing new is begun */
    /* Called when the last request, or the last connection, has ended while draining. */
    void (*on_quiet)(void *owner);
    void *owner;

    struct kr_metric *m_requests_live;
    struct kr_metric *m_long_live;
    struct kr_metric *m_bytes_up;
    struct kr_metric *m_bytes_down;
    struct kr_metric *m_seconds;
};

/* The loop, its shared buffers, the metrics. KR_ENOMEM, or what the files of the options are
 * refused for. `options` and `log` are borrowed. */
int hub_worker_init(struct hub_worker *w, const struct hub_options *options, struct kr_log *log,
                    struct kr_note *why);
void hub_worker_deinit(struct hub_worker *w);
/* Reads certificates, keys and roots anew; on failure the old ones stay. */
int hub_worker_load_tls(struct hub_worker *w, struct kr_note *why);
/* Whether this hub certifies agents. */
static inline bool hub_worker_enrolls(const struct hub_worker *w)
{
    return w->options->signer_cert_file != NULL;
}
static inline void hub_worker_count(struct hub_worker *w, size_t family, const char *label)
{
    kr_metric_add(kr_metrics_get(w->metrics, family, label), 1);
}

#endif
