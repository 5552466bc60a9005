/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/keeper.h"

#include <stdio.h>

#include "agent/counters.h"
#include "agent/state.h"
#include "base/assert.h"

#define REFUSED_MAX_MS 60000

/* Whoever mounts a Secret of cert-manager renews it by swapping a link. What does not fit together
 * is not used; a later look may find it whole. */
static void on_timer(struct kr_timer *t)
{
    struct agent_keeper *k = KR_CONTAINER_OF(t, struct agent_keeper, timer);
    struct agent_core *c = k->c;
    struct kr_note why = {""};

    kr_timer_start(c->sched, &k->timer, KR_FILE_WATCH_MS);
    if (!kr_file_watch_look(&k->files))
        return;
    if (agent_trust_reload(c, &why) != 0) {
        kr_metric_add(kr_metrics_get(c->metrics, AGENT_RENEWALS, "file-refused"), 1);
        KR_LOG_AT(c->log, KR_LOG_ERROR, "files-refused", KR_S("reason", why.text),
                  KR_S("effect", "what was loaded before stays in use"));
        return;
    }
    kr_metric_add(kr_metrics_get(c->metrics, AGENT_RENEWALS, "file-taken"), 1);
    KR_LOG_AT(c->log, KR_LOG_INFO, "files-taken", KR_S("cluster", c->self.name),
              KR_S("serial", c->self.serial), KR_I("not-after-ms", c->self.not_after_wall_ms));
    k->ops->on_pair(k->owner);
}

static void on_pair(void *owner)
{
    struct agent_keeper *k = owner;

    k->ops->on_pair(k->owner);
}

static void on_hub_state(void *owner, const struct kr_hub_state *s)
{
    struct agent_keeper *k = owner;
    struct agent_core *c = k->c;
    struct kr_note why = {""};
    uint64_t before = c->bundle_generation;

    agent_renew_accepted(&k->renew);
    if (c->options->state_dir == NULL)
        return;
    if (c->options->cert_file == NULL && agent_state_accept_pair(c->options->state_dir))
        k->renew.backs = 0;
    if (agent_trust_take_bundle(c, s->bundle, s->bundle_generation, &why) != 0)
        KR_LOG_AT(c->log, KR_LOG_ERROR, "bundle-refused", KR_S("reason", why.text),
                  KR_U("generation", s->bundle_generation));
    if (c->bundle_generation == before)
        return;
    KR_LOG_AT(c->log, KR_LOG_INFO, "bundle", KR_U("generation", c->bundle_generation));
    k->ops->on_bundle(k->owner);
}

/* One hub may be late where another one accepts: whoever goes back too early shows an old key to
 * that one, as a thief would. Twice the longest wait between two dials is time for all. */
static void on_refused(void *owner, const char *reason)
{
    struct agent_keeper *k = owner;
    struct agent_core *c = k->c;
    const struct agent_options *o = c->options;
    int64_t wait_ms = 2 * o->reconnect_max_ms;

    agent_renew_refused(&k->renew);
    if (o->state_dir == NULL || o->cert_file != NULL || kr_timer_running(&k->refused) ||
        c->draining || !agent_state_has_previous(o->state_dir))
        return;
    snprintf(k->reason, sizeof k->reason, "%s", reason);
    kr_timer_start(c->sched, &k->refused, wait_ms < REFUSED_MAX_MS ? wait_ms : REFUSED_MAX_MS);
}

static void on_refused_end(struct kr_timer *t)
{
    struct agent_keeper *k = KR_CONTAINER_OF(t, struct agent_keeper, refused);
    struct agent_core *c = k->c;
    struct kr_note why = {""};

    if (c->draining || agent_trust_go_back(c, k->reason) != 0)
        return; /* a hub has accepted it meanwhile */
    if (agent_trust_load(c, &why) != 0) {
        KR_LOG_AT(c->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "what was loaded before stays in use"));
        return;
    }
    kr_metric_add(kr_metrics_get(c->metrics, AGENT_RENEWALS, "went-back"), 1);
    agent_renew_went_back(&k->renew);
    k->ops->on_pair(k->owner);
}

void agent_keeper_init(struct agent_keeper *k, struct agent_core *c, const struct kr_proxy *proxy,
                       const struct agent_keeper_owner *ops, void *owner)
{
    *k = (struct agent_keeper){.c = c, .ops = ops, .owner = owner};
    kr_timer_init(&k->timer, on_timer);
    kr_timer_init(&k->refused, on_refused_end);
    agent_renew_init(&k->renew, c, on_pair, k);
    k->renew.proxy = proxy;
    c->on_hub_state = on_hub_state;
    c->on_refused = on_refused;
    c->owner = k;
}

void agent_keeper_start(struct agent_keeper *k)
{
    const struct agent_options *o = k->c->options;
    const char *paths[] = {o->cert_file, o->key_file, o->ca_file};

    agent_renew_start(&k->renew);
    kr_file_watch_init(&k->files, paths, sizeof paths / sizeof paths[0]);
    kr_timer_start(k->c->sched, &k->timer, KR_FILE_WATCH_MS);
}

void agent_keeper_stop(struct agent_keeper *k)
{
    if (k->c == NULL)
        return;
    agent_renew_stop(&k->renew);
    kr_timer_stop(k->c->sched, &k->timer);
    kr_timer_stop(k->c->sched, &k->refused);
}
