/* SPDX-License-Identifier: Apache-2.0 */
/* Draining: SIGTERM -> hubs are told, tunnels take no new requests -> the last request has ended,
 * or drainTimeout has passed -> everything is closed -> exit. A second SIGTERM closes at once. */
#include "agent/agent.h"

#include <signal.h>
#include <stdlib.h>

#include "agent/admin.h"
#include "agent/apiserver.h"
#include "agent/audit.h"
#include "agent/catalog.h"
#include "agent/counters.h"
#include "agent/link.h"
#include "agent/member_tokens.h"
#include "agent/probe.h"
#include "agent/renew.h"
#include "agent/state.h"
#include "agent/sync_out.h"
#include "agent/trust.h"
#include "base/assert.h"
#include "base/err.h"
#include "certs/file_watch.h"

#define LINKS_MAX 512
#define DRAIN_LOOK_MS 50
#define CHANGE_LOOK_MS 250
#define CHANGE_MS 50000 /* tunnels with the old certificate, once the new one is accepted */

struct agent {
    struct agent_core c;
    struct agent_probe probe;
    struct agent_admin *admin;
    struct agent_link *links[LINKS_MAX];
    size_t link_count;
    struct agent_link *old[LINKS_MAX]; /* with the certificate before; NULL: gone */
    size_t old_count;
    int64_t old_until_ms; /* 0: the new certificate is not accepted yet */
    struct kr_timer change;
    struct kr_file_watch files; /* certFile, keyFile, caFile: others renew them */
    struct kr_timer files_timer;
    struct agent_renew renew;
    struct kr_proxy proxy;
    bool has_proxy;
    struct kr_timer drain; /* looks whether the last request has ended */
    int64_t drain_until_ms;
    bool closing;
};

static bool is_attached(void *owner)
{
    struct agent *a = owner;

    for (size_t i = 0; i < a->link_count; i++) {
        if (agent_link_attached(a->links[i]))
            return true;
    }
    return false;
}

static void on_health(void *owner)
{
    struct agent *a = owner;

    for (size_t i = 0; i < a->link_count; i++)
        agent_link_tell(a->links[i]);
}

static void close_all(struct agent *a)
{
    a->closing = true;
    agent_renew_stop(&a->renew);
    kr_timer_stop(a->c.sched, &a->change);
    kr_timer_stop(a->c.sched, &a->files_timer);
    for (size_t i = 0; i < a->old_count; i++) {
        if (a->old[i] != NULL)
            agent_link_close(a->old[i]);
    }
    for (size_t i = 0; i < a->link_count; i++)
        agent_link_close(a->links[i]);
    agent_admin_close(a->admin);
    kr_timer_start(a->c.sched, &a->drain, 100); /* for the last bytes */
}

static void on_drain_look(struct kr_timer *t)
{
    struct agent *a = KR_CONTAINER_OF(t, struct agent, drain);

    if (a->closing)
        kr_loop_stop(a->c.loop);
    else if (a->c.requests == 0 || a->c.sched->now_ms >= a->drain_until_ms)
        close_all(a);
    else
        kr_timer_start(a->c.sched, &a->drain, DRAIN_LOOK_MS);
}

static void on_term(void *owner, int signum)
{
    struct agent *a = owner;

    agent_audit_reopen(&a->c);
    (void)signum;
    if (a->c.draining) {
        close_all(a);
        return;
    }
    a->c.draining = true;
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "draining", KR_U("requests", a->c.requests));
    for (size_t i = 0; i < a->link_count; i++)
        agent_link_drain(a->links[i]);
    a->drain_until_ms = a->c.sched->now_ms + a->c.options->drain_timeout_ms;
    kr_timer_start(a->c.sched, &a->drain, DRAIN_LOOK_MS);
}

static void on_hup(void *owner, int signum)
{
    struct agent *a = owner;
    struct kr_note why = {""};

    (void)signum;
    if (agent_core_load_policy(&a->c, &why) != 0 || agent_trust_load(&a->c, &why) != 0) {
        KR_LOG_AT(a->c.log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "what was loaded before stays in use"));
        return;
    }
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "reloaded", KR_S("cluster", a->c.self.name));
    agent_renew_retry(&a->renew);
    for (size_t i = 0; i < a->link_count; i++)
        (void)agent_link_retry(a->links[i]);
}

static const char *first_env(const char *a, const char *b)
{
    const char *v = getenv(a);

    return v != NULL && v[0] != '\0' ? v : getenv(b);
}

static int find_proxy(struct agent *a, struct kr_note *why)
{
    const struct agent_options *o = a->c.options;
    const char *url = o->proxy != NULL ? o->proxy : first_env("HTTPS_PROXY", "https_proxy");
    const char *direct = o->no_proxy != NULL ? o->no_proxy : first_env("NO_PROXY", "no_proxy");
    int rc;

    if (url == NULL || url[0] == '\0')
        return 0;
    rc = kr_proxy_parse(url, direct != NULL ? direct : "", &a->proxy, why);
    if (rc != 0)
        return kr_note_wrap(why, rc, "proxy");
    a->has_proxy = true;
    return 0;
}

static int make_links(struct agent *a, struct kr_note *why)
{
    const struct agent_options *o = a->c.options;

    if (o->hubs.n * (size_t)o->lanes > LINKS_MAX)
        return kr_note_set(why, KR_EINVAL, "hubs times lanes is more than %d", LINKS_MAX);
    for (size_t i = 0; i < o->hubs.n; i++) {
        for (int64_t lane = 0; lane < o->lanes; lane++) {
            struct agent_link_config cfg = {
                .c = &a->c,
                .hub = o->hubs.v[i],
                .lane = lane == 0 ? KR_LANE_INTERACTIVE : KR_LANE_BULK,
                .proxy = a->has_proxy ? &a->proxy : NULL,
            };

            a->links[a->link_count] = agent_link_create(&cfg, why);
            if (a->links[a->link_count] == NULL)
                return kr_note_wrap(why, KR_EINVAL, "hubs");
            a->link_count++;
        }
    }
    return 0;
}

static void start_links(struct agent *a)
{
    for (size_t i = 0; i < a->link_count; i++)
        agent_link_start(a->links[i]);
}

/* Tunnels with the new certificate come first; when one is accepted, those with the old one take
 * nothing new, and end. */
static void on_change_look(struct kr_timer *t)
{
    struct agent *a = KR_CONTAINER_OF(t, struct agent, change);
    bool accepted = is_attached(a);
    size_t left = 0;

    if (accepted && a->old_until_ms == 0) {
        a->old_until_ms = a->c.sched->now_ms + CHANGE_MS;
        for (size_t i = 0; i < a->old_count; i++)
            agent_link_drain(a->old[i]);
    }
    for (size_t i = 0; i < a->old_count; i++) {
        if (a->old[i] == NULL)
            continue;
        if (a->old_until_ms != 0 &&
            (a->c.sched->now_ms >= a->old_until_ms || agent_link_is_idle(a->old[i])) &&
            agent_link_close(a->old[i])) {
            agent_link_destroy(a->old[i]);
            a->old[i] = NULL;
        }
        left += a->old[i] != NULL;
    }
    if (left == 0)
        a->old_count = 0;
    else
        kr_timer_start(a->c.sched, &a->change, CHANGE_LOOK_MS);
}

/* Renewed while links of the certificate before that are still ending: they end now. */
static void close_old(struct agent *a)
{
    size_t kept = 0;

    for (size_t i = 0; i < a->old_count; i++) {
        if (a->old[i] != NULL && agent_link_close(a->old[i]))
            agent_link_destroy(a->old[i]);
        else if (a->old[i] != NULL)
            a->old[kept++] = a->old[i];
    }
    a->old_count = kept;
}

static void on_pair(void *owner)
{
    struct agent *a = owner;
    struct kr_note why = {""};

    if (is_attached(a)) {
        close_old(a);
        while (a->link_count != 0 && a->old_count < LINKS_MAX)
            a->old[a->old_count++] = a->links[--a->link_count];
        a->old_until_ms = 0;
        kr_timer_start(a->c.sched, &a->change, CHANGE_LOOK_MS);
        if (make_links(a, &why) != 0)
            KR_LOG_AT(a->c.log, KR_LOG_ERROR, "no-links", KR_S("reason", why.text));
        start_links(a);
        return;
    }
    for (size_t i = 0; i < a->link_count; i++) {
        if (!agent_link_retry(a->links[i]))
            agent_link_start(a->links[i]);
    }
}

/* Whoever mounts a Secret of cert-manager renews it by swapping a link. What does not fit together
 * is not used; a later look may find it whole. */
static void on_files_look(struct kr_timer *t)
{
    struct agent *a = KR_CONTAINER_OF(t, struct agent, files_timer);
    struct kr_note why = {""};

    kr_timer_start(a->c.sched, &a->files_timer, KR_FILE_WATCH_MS);
    if (!kr_file_watch_look(&a->files))
        return;
    if (agent_trust_reload(&a->c, &why) != 0) {
        kr_metric_add(kr_metrics_get(a->c.metrics, AGENT_RENEWALS, "file-refused"), 1);
        KR_LOG_AT(a->c.log, KR_LOG_ERROR, "files-refused", KR_S("reason", why.text),
                  KR_S("effect", "what was loaded before stays in use"));
        return;
    }
    kr_metric_add(kr_metrics_get(a->c.metrics, AGENT_RENEWALS, "file-taken"), 1);
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "files-taken", KR_S("cluster", a->c.self.name),
              KR_S("serial", a->c.self.serial), KR_I("not-after-ms", a->c.self.not_after_wall_ms));
    on_pair(a);
}

static void watch_files(struct agent *a)
{
    const struct agent_options *o = a->c.options;
    const char *paths[] = {o->cert_file, o->key_file, o->ca_file};

    kr_file_watch_init(&a->files, paths, sizeof paths / sizeof paths[0]);
    kr_timer_start(a->c.sched, &a->files_timer, KR_FILE_WATCH_MS);
}

static void on_hub_state(void *owner, const struct kr_hub_state *s)
{
    struct agent *a = owner;
    struct kr_note why = {""};
    uint64_t before = a->c.bundle_generation;

    if (a->c.options->state_dir == NULL)
        return;
    if (a->c.options->cert_file == NULL)
        agent_state_accept_pair(a->c.options->state_dir);
    if (agent_trust_take_bundle(&a->c, s->bundle, s->bundle_generation, &why) != 0)
        KR_LOG_AT(a->c.log, KR_LOG_ERROR, "bundle-refused", KR_S("reason", why.text),
                  KR_U("generation", s->bundle_generation));
    if (a->c.bundle_generation == before)
        return;
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "bundle", KR_U("generation", a->c.bundle_generation));
    on_health(a); /* every hub hears of it */
}

static int start(struct agent *a, const struct agent_options *options, struct kr_log *log,
                 struct kr_note *why)
{
    int rc = agent_core_init(&a->c, options, log, why);

    if (rc == 0)
        rc = agent_trust_load(&a->c, why);
    if (rc == 0)
        rc = find_proxy(a, why);
    if (rc != 0)
        return rc;
    rc = agent_audit_open(&a->c, why);
    if (rc != 0)
        return rc;
    kr_timer_init(&a->change, on_change_look);
    kr_timer_init(&a->files_timer, on_files_look);
    agent_renew_init(&a->renew, &a->c, on_pair, a);
    a->renew.proxy = a->has_proxy ? &a->proxy : NULL;
    a->c.on_hub_state = on_hub_state;
    a->c.owner = a;
    kr_timer_init(&a->drain, on_drain_look);
    agent_probe_init(&a->probe, &a->c, on_health, a);
    a->c.api = agent_apiserver_create(&a->c, why);
    if (a->c.api == NULL)
        return KR_EINVAL;
    a->c.catalog = agent_catalog_create(&a->c);
    if (a->c.catalog == NULL || agent_sync_create(&a->c) != 0)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    a->admin = agent_admin_create(&a->c, is_attached, a, why);
    if (a->admin == NULL)
        return KR_EIO;
    rc = make_links(a, why);
    if (rc != 0)
        return rc;
    kr_loop_on_signal(a->c.loop, SIGTERM, on_term, a);
    kr_loop_on_signal(a->c.loop, SIGINT, on_term, a);
    kr_loop_on_signal(a->c.loop, SIGHUP, on_hup, a);
    return 0;
}

static void run(struct agent *a)
{
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "started", KR_S("version", KR_VERSION),
              KR_S("cluster", a->c.self.name), KR_S("instance", a->c.self.instance),
              KR_B("api-server", agent_apiserver_authority(a->c.api)));
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "listening", KR_S("port", "admin"),
              KR_S("address", agent_admin_address(a->admin)));
    agent_probe_start(&a->probe);
    agent_catalog_start(a->c.catalog);
    if (a->c.hub_tls != NULL)
        start_links(a);
    agent_renew_start(&a->renew);
    watch_files(a);
    kr_loop_run(a->c.loop);
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "stopped", KR_S("cluster", a->c.self.name));
}

static void stop(struct agent *a)
{
    if (a->probe.c != NULL)
        agent_probe_stop(&a->probe);
    if (a->c.catalog != NULL)
        agent_catalog_stop(a->c.catalog);
    if (a->c.sched != NULL)
        kr_timer_stop(a->c.sched, &a->drain);
    if (a->c.sched != NULL)
        kr_timer_stop(a->c.sched, &a->change);
    if (a->c.sched != NULL)
        kr_timer_stop(a->c.sched, &a->files_timer);
    agent_renew_stop(&a->renew);
    for (size_t i = 0; i < a->link_count; i++)
        agent_link_close(a->links[i]);
    for (size_t i = 0; i < a->old_count; i++) {
        if (a->old[i] != NULL)
            agent_link_close(a->old[i]);
    }
    if (a->c.api != NULL)
        agent_apiserver_close(a->c.api);
    if (a->c.io != NULL)
        kr_tls_io_destroy(a->c.io); /* what is left ends now */
    a->c.io = NULL;
    for (size_t i = 0; i < a->link_count; i++)
        agent_link_destroy(a->links[i]);
    for (size_t i = 0; i < a->old_count; i++)
        agent_link_destroy(a->old[i]);
    agent_sync_destroy(&a->c);
    agent_catalog_destroy(a->c.catalog);
    agent_member_tokens_destroy(a->c.member_tokens);
    agent_apiserver_destroy(a->c.api);
    agent_admin_destroy(a->admin);
    agent_audit_close(&a->c);
    kr_proxy_deinit(&a->proxy);
    agent_core_deinit(&a->c);
}

int agent_run(const struct agent_options *options, struct kr_log *log)
{
    struct agent *a = calloc(1, sizeof *a);
    struct kr_note why = {"out of memory"};
    int rc = KR_ENOMEM;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error of write() */
    if (a != NULL)
        rc = start(a, options, log, &why);
    if (rc == 0)
        run(a);
    else
        KR_LOG_AT(log, KR_LOG_ERROR, "start-failed", KR_S("reason", why.text));
    if (a != NULL)
        stop(a);
    free(a);
    return rc == 0 ? 0 : 1;
}
