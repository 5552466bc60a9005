/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/worker.h"

#include "base/err.h"
#include "hub/counters.h"

static const struct kr_tls_alpn api_alpn[] = {
    {"h2", KR_TLS_CERT_OPTIONAL},
    {"http/1.1", KR_TLS_CERT_OPTIONAL},
};
static const struct kr_tls_alpn agent_alpn[] = {
    {"kuberelay/1", KR_TLS_CERT_REQUIRED},
    {"h2", KR_TLS_CERT_OPTIONAL}, /* Enrollment, if this hub certifies agents */
};

static struct kr_tls_context *make_api_tls(const struct hub_options *o, int *rc,
                                           struct kr_note *why)
{
    struct kr_tls_config cfg = {
        .server = true,
        .tls12 = o->tls12,
        .cert.file = o->cert_file,
        .key.file = o->key_file,
        .ca.file = o->client_ca_file != NULL ? o->client_ca_file : o->ca_file,
        .crl.file = o->crl_file,
        .alpn = api_alpn,
        .alpn_count = sizeof api_alpn / sizeof api_alpn[0],
        .peer_cert = KR_TLS_CERT_OPTIONAL, /* kubectl's upgrades send no ALPN: HTTP/1.1 */
        .lax_key_mode = o->lax_key_mode,
    };

    return kr_tls_context_create(&cfg, rc, why);
}

static struct kr_tls_context *make_agent_tls(const struct hub_options *o, int *rc,
                                             struct kr_note *why)
{
    struct kr_tls_config cfg = {
        .server = true,
        .cert.file = o->cert_file,
        .key.file = o->key_file,
        .ca.file = o->ca_file,
        .crl.file = o->crl_file,
        .alpn = agent_alpn,
        .alpn_count = o->signer_cert_file != NULL ? 2 : 1,
        .alpn_required = true,
        .peer_cert = KR_TLS_CERT_REQUIRED,
        .lax_key_mode = o->lax_key_mode,
    };

    return kr_tls_context_create(&cfg, rc, why);
}

int hub_worker_load_tls(struct hub_worker *w, struct kr_note *why)
{
    struct kr_identity self = {0};
    struct kr_tls_context *api = NULL;
    struct kr_tls_context *agent = NULL;
    /* Our own certificate must be a hub's; it says which trust domain this is. */
    struct kr_identity_rules rules = {KR_ROLE_HUB, NULL};
    int rc = kr_identity_judge_file(&self, w->options->cert_file, &rules, why);

    if (rc == 0)
        api = make_api_tls(w->options, &rc, why);
    if (api != NULL)
        agent = make_agent_tls(w->options, &rc, why);
    if (agent == NULL) {
        kr_tls_context_unref(api);
        kr_identity_deinit(&self);
        return rc;
    }
    kr_tls_context_unref(w->api_tls);
    kr_tls_context_unref(w->agent_tls);
    kr_identity_deinit(&w->self);
    w->api_tls = api;
    w->agent_tls = agent;
    w->self = self;
    return 0;
}

static void find_metrics(struct hub_worker *w)
{
    kr_metric_set(kr_metrics_get(w->metrics, HUB_BUILD_INFO, KR_VERSION), 1);
    w->m_requests_live = kr_metrics_get(w->metrics, HUB_EXCHANGES, "all");
    w->m_long_live = kr_metrics_get(w->metrics, HUB_EXCHANGES, "long-running");
    w->m_bytes_up = kr_metrics_series(w->metrics, HUB_BYTES_UP, NULL, 0);
    w->m_bytes_down = kr_metrics_series(w->metrics, HUB_BYTES_DOWN, NULL, 0);
    w->m_seconds = kr_metrics_series(w->metrics, HUB_REQUEST_SECONDS, NULL, 0);
}

int hub_worker_init(struct hub_worker *w, const struct hub_options *options, struct kr_log *log,
                    struct kr_note *why)
{
    *w = (struct hub_worker){.options = options, .log = log};
    kr_list_init(&w->live);
    kr_rand_init(&w->rand);
    w->loop = kr_loop_create(why);
    if (w->loop == NULL)
        return KR_ENOMEM;
    w->sched = kr_loop_sched(w->loop);
    w->started_ms = w->sched->now_ms;
    w->io = kr_tls_io_create(w->loop);
    w->metrics = kr_metrics_create(hub_counters, HUB_COUNTERS_N);
    if (w->io == NULL || w->metrics == NULL ||
        kr_h2_shared_init(&w->h2, options->window_budget) != 0)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    hub_clusters_init(&w->clusters, w->sched, w->metrics, (size_t)options->max_clusters);
    find_metrics(w);
    return hub_worker_load_tls(w, why);
}

void hub_worker_deinit(struct hub_worker *w)
{
    hub_clusters_deinit(&w->clusters);
    kr_tls_context_unref(w->api_tls);
    kr_tls_context_unref(w->agent_tls);
    kr_identity_deinit(&w->self);
    if (w->io != NULL)
        kr_tls_io_destroy(w->io);
    kr_h2_shared_deinit(&w->h2);
    kr_metrics_destroy(w->metrics);
    if (w->loop != NULL)
        kr_loop_destroy(w->loop);
    *w = (struct hub_worker){0};
}
