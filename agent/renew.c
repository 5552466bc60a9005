/* SPDX-License-Identifier: Apache-2.0 */
/* Each look decides: no pair, an expired one, or one that is refused while there is a token that
 * was not used -> Join; due -> Renew; else wait. What a hub answers is checked, then written as one
 * file, then used; the key of a request is on the disk before the request is sent, so that a crash
 * at any moment loses nothing (agent/state.h). */
#include "agent/renew.h"

#include <string.h>

#include "agent/counters.h"
#include "agent/state.h"
#include "agent/trust.h"
#include "base/assert.h"
#include "base/err.h"
#include "certs/ca.h"
#include "certs/csr.h"

#define BACKDATED_MS 300000 /* how far before its making a certificate begins */
#define LOOK_MAX_MS 3600000 /* the wall clock may jump */
#define REFUSED_MIN_MS 60000
#define REFUSED_MAX_MS 120000
#define BACKS_MAX 4         /* doublings: half an hour */
#define TOKEN_LOOK_MS 30000 /* for a new one, while the certificate or the old one is refused */

static void look(struct agent_renew *r);

static bool is_ours(const struct agent_renew *r)
{
    const struct agent_options *o = r->c->options;

    return o->state_dir != NULL && o->cert_file == NULL;
}

static bool has_pair(const struct agent_renew *r)
{
    return r->c->hub_tls != NULL;
}

static bool is_expired(const struct agent_renew *r)
{
    return r->c->sched->now_wall_ms >= r->c->self.not_after_wall_ms;
}

/* A certificate's life begins when it was made. */
static void plan(struct agent_renew *r)
{
    int64_t from = r->c->self.not_before_wall_ms + BACKDATED_MS;
    int64_t life = r->c->self.not_after_wall_ms - from;

    r->due_wall_ms = from + kr_rand_ms(&r->c->rand, life * 6 / 10, life * 8 / 10);
}

static void wait_for(struct agent_renew *r, int64_t ms)
{
    kr_timer_start(r->c->sched, &r->timer, ms < 0 ? 0 : ms < LOOK_MAX_MS ? ms : LOOK_MAX_MS);
}

static void fail(struct agent_renew *r, int rc, const char *why)
{
    struct kr_rand *rand = &r->c->rand;
    int64_t wait_ms = rc == KR_EDENIED || rc == KR_EFULL
                          ? kr_rand_ms(rand, REFUSED_MIN_MS, REFUSED_MAX_MS)
                          : kr_backoff_next(&r->backoff, rand, r->c->sched->now_ms);

    kr_metric_add(
        kr_metrics_get(r->c->metrics, AGENT_RENEWALS, r->join ? "join-failed" : "renew-failed"), 1);
    KR_LOG_AT(r->c->log, is_expired(r) ? KR_LOG_ERROR : KR_LOG_WARN,
              r->join ? "join-failed" : "renew-failed", KR_S("reason", why),
              KR_I("retry-ms", wait_ms), KR_I("clock-ms", r->c->sched->now_wall_ms),
              KR_I("not-after-ms", r->c->self.not_after_wall_ms));
    r->retry_ms = r->join ? r->c->sched->now_ms + wait_ms : 0;
    wait_for(r, r->join && wait_ms > TOKEN_LOOK_MS ? TOKEN_LOOK_MS : wait_ms);
}

/* ---- the answer ---- */

static int take(struct agent_renew *r, const struct kr_enroll_answer *a, struct kr_note *why)
{
    const char *dir = r->c->options->state_dir;
    int rc = agent_trust_check(r->c, kr_buf_bytes(&r->key), a->chain, a->bundle, why);

    if (rc == 0)
        rc = agent_state_save_pair(dir, kr_buf_bytes(&r->key), a->chain, why);
    if (rc == 0 && r->join) /* not kept: once it is refused, the token is tried in vain */
        (void)agent_state_save_token_id(dir, r->token_id, NULL);
    if (rc == 0 && a->bundle.n != 0 && a->bundle_generation > r->c->bundle_generation &&
        kr_pem_check_chain(a->chain, a->bundle, why) == 0)
        rc = agent_state_save_bundle(dir, a->bundle, a->bundle_generation, why);
    return rc == 0 ? agent_trust_load(r->c, why) : rc;
}

static void on_answer(void *owner, int rc, const struct kr_enroll_answer *a,
                      const struct kr_note *reason)
{
    struct agent_renew *r = owner;
    struct kr_note why = *reason;

    r->call = NULL;
    if (rc == 0)
        rc = take(r, a, &why);
    kr_buf_cleanse(&r->key);
    if (rc != 0) {
        if (r->join && rc == KR_EDENIED && has_pair(r))
            memcpy(r->tried, r->token_id, sizeof r->tried);
        fail(r, rc, why.text);
        return;
    }
    r->refused = false;
    kr_backoff_init(&r->backoff, r->c->options->reconnect_base_ms, r->c->options->reconnect_max_ms,
                    KR_BACKOFF_HEALTHY_MS);
    kr_metric_add(kr_metrics_get(r->c->metrics, AGENT_RENEWALS, r->join ? "joined" : "renewed"), 1);
    KR_LOG_AT(r->c->log, KR_LOG_INFO, r->join ? "joined" : "renewed",
              KR_S("cluster", r->c->self.name), KR_S("instance", r->c->self.instance),
              KR_U("generation", a->generation), KR_S("serial", r->c->self.serial),
              KR_I("not-after-ms", r->c->self.not_after_wall_ms), KR_T("pending", a->pending));
    plan(r);
    wait_for(r, r->due_wall_ms - r->c->sched->now_wall_ms);
    r->on_pair(r->owner);
}

/* ---- the request ---- */

static int call(struct agent_renew *r, const char *path, struct kr_bytes message,
                struct kr_note *why)
{
    const struct kr_strings *hubs = &r->c->options->hubs;
    struct agent_enroll_config cfg = {
        .c = r->c,
        .hub = hubs->v[r->hub++ % hubs->n],
        .proxy = r->proxy,
        .path = path,
        .message = message,
        .with_cert = !r->join,
        .on_done = on_answer,
        .owner = r,
    };

    r->call = agent_enroll_start(&cfg, why);
    return r->call != NULL ? 0 : KR_ENOMEM;
}

static int send_join(struct agent_renew *r, struct kr_bytes csr, struct kr_note *why)
{
    struct kr_buf message = {.max = KR_ENROLL_REQUEST_MAX};
    struct kr_buf token = {0};
    int rc = agent_join_token_read(r->c->options, &token, why);

    if (rc == 0) {
        struct kr_join_request q = {
            .token = kr_buf_bytes(&token),
            .csr = csr,
            .instance = kr_bytes_str(r->c->self.instance[0] != '\0' ? r->c->self.instance
                                                                    : r->c->options->instance),
        };

        agent_join_token_id(q.token, r->token_id);
        rc = kr_join_request_encode(&q, &message);
    }
    if (rc == 0)
        rc = call(r, KR_GRPC_JOIN, kr_buf_bytes(&message), why);
    kr_buf_cleanse(&token);
    kr_buf_cleanse(&message);
    return rc;
}

static int send_renew(struct agent_renew *r, struct kr_bytes csr, struct kr_note *why)
{
    struct kr_buf message = {.max = KR_ENROLL_REQUEST_MAX};
    struct kr_renew_request q = {.csr = csr};
    int rc = kr_renew_request_encode(&q, &message);

    if (rc == 0)
        rc = call(r, KR_GRPC_RENEW, kr_buf_bytes(&message), why);
    kr_buf_deinit(&message);
    return rc;
}

static void ask(struct agent_renew *r)
{
    struct kr_buf csr = {.max = KR_CSR_MAX};
    struct kr_note why = {"out of memory"};
    int rc = agent_state_pending_key(r->c->options->state_dir, &r->key, &why);

    r->retry_ms = 0;
    if (rc == 0)
        rc = kr_csr_make(&csr, kr_buf_bytes(&r->key), &why);
    if (rc == 0)
        rc = r->join ? send_join(r, kr_buf_bytes(&csr), &why)
                     : send_renew(r, kr_buf_bytes(&csr), &why);
    kr_buf_deinit(&csr);
    if (rc != 0) {
        kr_buf_cleanse(&r->key);
        fail(r, rc, why.text);
    }
}

static void look(struct agent_renew *r)
{
    int64_t left = r->due_wall_ms - r->c->sched->now_wall_ms;

    if (r->call != NULL || r->c->draining)
        return;
    r->join = !has_pair(r) || is_expired(r) ||
              (r->refused && agent_join_token_is_new(r->c->options, r->tried));
    if (r->join || left <= 0)
        ask(r);
    else
        wait_for(r, r->refused && left > TOKEN_LOOK_MS ? TOKEN_LOOK_MS : left);
}

/* A join that failed is not tried again for a while, unless there is another token. */
static void on_timer(struct kr_timer *t)
{
    struct agent_renew *r = KR_CONTAINER_OF(t, struct agent_renew, timer);
    int64_t left = r->retry_ms - r->c->sched->now_ms;

    if (left > 0 && !agent_join_token_is_new(r->c->options, r->token_id))
        wait_for(r, left < TOKEN_LOOK_MS ? left : TOKEN_LOOK_MS);
    else
        look(r);
}

void agent_renew_init(struct agent_renew *r, struct agent_core *c, void (*on_pair)(void *owner),
                      void *owner)
{
    *r = (struct agent_renew){.c = c, .on_pair = on_pair, .owner = owner};
    kr_timer_init(&r->timer, on_timer);
    kr_backoff_init(&r->backoff, c->options->reconnect_base_ms, c->options->reconnect_max_ms,
                    KR_BACKOFF_HEALTHY_MS);
}

void agent_renew_start(struct agent_renew *r)
{
    if (!is_ours(r))
        return;
    r->started = true;
    if (has_pair(r))
        plan(r);
    look(r);
}

void agent_renew_went_back(struct agent_renew *r)
{
    int64_t wait_ms = kr_rand_ms(&r->c->rand, REFUSED_MIN_MS, REFUSED_MAX_MS);

    if (!r->started)
        return;
    wait_ms <<= r->backs < BACKS_MAX ? r->backs : BACKS_MAX;
    r->backs++;
    plan(r);
    agent_enroll_cancel(r->call);
    r->call = NULL;
    kr_buf_cleanse(&r->key);
    wait_for(r, wait_ms);
}

void agent_renew_refused(struct agent_renew *r)
{
    if (!r->started || r->refused)
        return;
    r->refused = true;
    look(r);
}

void agent_renew_accepted(struct agent_renew *r)
{
    r->refused = false;
}

void agent_renew_retry(struct agent_renew *r)
{
    r->tried[0] = '\0';
    if (r->started)
        look(r);
}

void agent_renew_stop(struct agent_renew *r)
{
    if (r->c == NULL)
        return;
    kr_timer_stop(r->c->sched, &r->timer);
    agent_enroll_cancel(r->call);
    r->call = NULL;
    kr_buf_cleanse(&r->key);
}
