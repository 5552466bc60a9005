/* SPDX-License-Identifier: Apache-2.0 */
/* Draining: SIGTERM -> hubs are told, tunnels take no new requests -> the last request has ended,
 * or drainTimeout has passed -> everything is closed -> exit. A second SIGTERM closes at once. */
#include "agent/agent.h"

#include <signal.h>
#include <stdlib.h>

#include "admin/admin.h"
#include "agent/apiserver.h"
#include "agent/counters.h"
#include "agent/keeper.h"
#include "agent/links.h"
#include "agent/parts.h"
#include "agent/probe.h"
#include "base/assert.h"
#include "base/err.h"

#define DRAIN_LOOK_MS 50

struct agent {
    struct agent_core c;
    struct agent_probe probe;
    struct kr_admin admin;
    struct agent_links links;
    struct agent_keeper keeper;
    struct kr_proxy proxy;
    bool has_proxy;
    struct kr_timer drain; /* looks whether the last request has ended */
    int64_t drain_until_ms;
    bool closing;
};

static void measure(void *owner)
{
    struct agent_core *c = &((struct agent *)owner)->c;

    kr_metric_set(kr_metrics_series(c->metrics, AGENT_WINDOW_LEFT, NULL, 0), c->h2.window_left);
}

static const char *unready(void *owner)
{
    struct agent *a = owner;

    if (a->c.draining)
        return "shutting down\n";
    return agent_links_attached(&a->links) ? NULL : "no hub has accepted a tunnel\n";
}

static int open_admin(struct agent *a, struct kr_note *why)
{
    struct kr_admin_config cfg = {
        .io = a->c.io,
        .listen = a->c.options->admin_listen,
        .metrics = a->c.metrics,
        .measure = measure,
        .unready = unready,
        .owner = a,
    };
    int rc = kr_admin_open(&a->admin, &cfg, why);

    return rc == 0 ? 0 : kr_note_wrap(why, rc, "adminListen");
}

static void on_health(void *owner)
{
    struct agent *a = owner;

    agent_links_tell(&a->links);
}

static void on_pair(void *owner)
{
    struct agent *a = owner;

    agent_links_change(&a->links);
}

static const struct agent_keeper_owner keeper_owner = {on_pair, on_health};

static void close_all(struct agent *a)
{
    a->closing = true;
    agent_keeper_stop(&a->keeper);
    agent_links_close(&a->links);
    kr_admin_close(&a->admin);
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

    (void)signum;
    if (a->c.draining) {
        close_all(a);
        return;
    }
    a->c.draining = true;
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "draining", KR_U("requests", a->c.requests));
    agent_links_drain(&a->links);
    a->drain_until_ms = a->c.sched->now_ms + a->c.options->drain_timeout_ms;
    kr_timer_start(a->c.sched, &a->drain, DRAIN_LOOK_MS);
}

/* Each part for itself: one that is faulty keeps what it had, and holds up no other. */
static bool told(struct agent *a, int rc, const struct kr_note *why)
{
    if (rc != 0)
        KR_LOG_AT(a->c.log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why->text),
                  KR_S("effect", "what was loaded before stays in use"));
    return rc == 0;
}

static void on_hup(void *owner, int signum)
{
    struct agent *a = owner;
    struct kr_note why = {""};
    bool other_policy = false;
    bool whole = told(a, agent_core_load_policy(&a->c, &other_policy, &why), &why);

    (void)signum;
    whole = told(a, agent_trust_load(&a->c, &why), &why) && whole;
    if (whole)
        KR_LOG_AT(a->c.log, KR_LOG_INFO, "reloaded", KR_S("cluster", a->c.self.name));
    agent_parts_reopen(&a->c);
    agent_renew_retry(&a->keeper.renew);
    agent_links_retry(&a->links);
    if (other_policy)
        agent_links_replace(&a->links);
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

static const struct kr_proxy *proxy_of(const struct agent *a)
{
    return a->has_proxy ? &a->proxy : NULL;
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
    agent_keeper_init(&a->keeper, &a->c, proxy_of(a), &keeper_owner, a);
    kr_timer_init(&a->drain, on_drain_look);
    agent_probe_init(&a->probe, &a->c, on_health, a);
    rc = agent_parts_create(&a->c, why);
    if (rc == 0)
        rc = open_admin(a, why);
    if (rc == 0)
        rc = agent_links_init(&a->links, &a->c, proxy_of(a), why);
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
              KR_S("address", kr_admin_address(&a->admin)));
    agent_probe_start(&a->probe);
    agent_parts_start(&a->c);
    if (a->c.hub_tls != NULL)
        agent_links_start(&a->links);
    agent_keeper_start(&a->keeper);
    kr_loop_run(a->c.loop);
    KR_LOG_AT(a->c.log, KR_LOG_INFO, "stopped", KR_S("cluster", a->c.self.name));
}

static void stop(struct agent *a)
{
    if (a->probe.c != NULL)
        agent_probe_stop(&a->probe);
    if (a->c.sched != NULL)
        kr_timer_stop(a->c.sched, &a->drain);
    agent_keeper_stop(&a->keeper);
    agent_links_close(&a->links);
    agent_parts_stop(&a->c);
    if (a->c.io != NULL)
        kr_tls_io_destroy(a->c.io); /* what is left ends now */
    a->c.io = NULL;
    agent_links_deinit(&a->links);
    agent_parts_destroy(&a->c);
    kr_admin_deinit(&a->admin);
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
