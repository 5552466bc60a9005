/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/worker.h"

#include "base/err.h"
#include "certs/store_file.h"
#include "hub/counters.h"

#define CHAIN_FILE_MAX (1u << 18)
#define ROOTS_FILE_MAX (1u << 20)

static const struct kr_tls_alpn api_alpn[] = {
    {"h2", KR_TLS_CERT_OPTIONAL},
    {"http/1.1", KR_TLS_CERT_OPTIONAL},
};
static const struct kr_tls_alpn agent_alpn[] = {
    {"kuberelay/1", KR_TLS_CERT_REQUIRED},
    {"h2", KR_TLS_CERT_OPTIONAL, true}, /* Enrollment, if this hub certifies agents */
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
        .secret_in = true,
    };

    return kr_tls_context_create(&cfg, rc, why);
}

/* Agents that join may know no more than the pin of our root: it must be in the chain for them.
 * What is no chain of caFile is shown as it is, as before. */
static int read_chain(const struct hub_options *o, struct kr_buf *chain, char pin[KR_PIN_TEXT],
                      struct kr_note *why)
{
    struct kr_buf roots = {0};
    int rc = kr_file_read(chain, o->cert_file, CHAIN_FILE_MAX, why);

    pin[0] = '\0';
    if (rc == 0)
        rc = kr_file_read(&roots, o->ca_file, ROOTS_FILE_MAX, why);
    if (rc == 0 && kr_pin_of_chain(kr_buf_bytes(chain), kr_buf_bytes(&roots), pin, NULL) == 0) {
        chain->max = 2 * CHAIN_FILE_MAX;
        if (o->signer_cert_file != NULL)
            rc = kr_pin_complete_chain(chain, kr_buf_bytes(&roots), why);
    }
    kr_buf_deinit(&roots);
    return rc;
}

static struct kr_tls_context *make_agent_tls(const struct hub_options *o, struct kr_bytes chain,
                                             int *rc, struct kr_note *why)
{
    struct kr_tls_config cfg = {
        .server = true,
        .cert.bytes = chain,
        .key.file = o->key_file,
        .ca.file = o->ca_file,
        .crl.file = o->crl_file,
        .alpn = agent_alpn,
        .alpn_count = o->signer_cert_file != NULL ? 2 : 1,
        .alpn_required = true,
        .peer_cert = KR_TLS_CERT_REQUIRED,
        .lax_key_mode = o->lax_key_mode,
        .secret_out = true,
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
    struct kr_buf chain = {0};
    char pin[KR_PIN_TEXT] = "";
    int rc = kr_identity_judge_file(&self, w->options->cert_file, &rules, why);

    if (rc == 0)
        api = make_api_tls(w->options, &rc, why);
    if (api != NULL)
        rc = read_chain(w->options, &chain, pin, why);
    if (api != NULL && rc == 0)
        agent = make_agent_tls(w->options, kr_buf_bytes(&chain), &rc, why);
    kr_buf_deinit(&chain);
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
    memcpy(w->root_pin, pin, sizeof w->root_pin);
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
