/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/link.h"

#include <stdlib.h>
#include <string.h>

#include "agent/attach.h"
#include "agent/counters.h"
#include "agent/request.h"
#include "agent/sync_out.h"
#include "base/assert.h"
#include "base/backoff.h"
#include "base/err.h"
#include "net/dial.h"
#include "net/tls_pipe.h"

#define DIAL_TIMEOUT_MS 10000
#define ATTACH_TIMEOUT_MS 10000
#define USER_TIMEOUT_MS 25000
#define PERMANENT_MIN_MS 300000
#define PERMANENT_MAX_MS 600000
#define STREAMS_MAX 4096

struct agent_link {
    struct agent_core *c;
    const char *hub;
    struct kr_hostport at;
    enum kr_lane lane;
    const struct kr_proxy *proxy;
    struct kr_backoff backoff;
    struct kr_timer timer; /* until the next dial, or until the hub must have accepted */
    struct kr_dial *dial;
    struct kr_pipe *pipe; /* during the handshake */
    struct kr_conn *conn;
    struct agent_attach attach;
    char replica[KR_NAME_MAX + 1]; /* the hub's name, as its certificate has it */
    unsigned pair_turn;            /* of the certificate that the hub saw last */
    bool attached;
    bool pending; /* the hub takes states, and sends nothing until an operator accepts */
    bool closing;
    bool denied;        /* the hub said that it does not want us */
    int64_t refused_ms; /* the hub said to stay away that long; 0: it did not */
    const char *why;    /* why we closed it ourselves */
    struct kr_metric *m_up;
    struct kr_metric *m_failures;
};

static void dial(struct agent_link *l);

/* A certificate that is not accepted today will not be accepted in a second either; but it may be
 * another one by now. */
static int64_t wait_for(struct agent_link *l, int rc)
{
    int64_t usual = kr_backoff_next(&l->backoff, &l->c->rand, l->c->sched->now_ms);

    if (l->pair_turn != l->c->pair_turn)
        return usual;
    if (l->refused_ms != 0)
        return l->refused_ms;
    if (rc == KR_ETLS || rc == KR_EDENIED)
        return kr_rand_ms(&l->c->rand, PERMANENT_MIN_MS, PERMANENT_MAX_MS);
    return usual;
}

static bool is_refusal(const struct agent_link *l, int rc, const char *reason)
{
    bool refused = l->denied || (rc == KR_ETLS &&
                                 strncmp(reason, KR_TLS_REFUSED, sizeof KR_TLS_REFUSED - 1) == 0);

    return refused && l->pair_turn == l->c->pair_turn;
}

static void again(struct agent_link *l, int rc, const char *reason)
{
    bool refused = is_refusal(l, rc, reason);
    int64_t wait_ms = wait_for(l, rc);

    kr_metric_add(l->m_failures, 1);
    if (l->attached)
        kr_metric_add(l->m_up, -1);
    KR_LOG_AT(l->c->log, l->closing ? KR_LOG_DEBUG : KR_LOG_WARN,
              l->attached ? "tunnel-down" : "tunnel-failed", KR_S("hub", l->hub),
              KR_S("lane", l->lane == KR_LANE_BULK ? "bulk" : "interactive"),
              KR_S("reason", reason), KR_I("retry-ms", l->closing ? -1 : wait_ms));
    l->attached = l->pending = false;
    l->refused_ms = 0;
    l->why = NULL;
    l->denied = false;
    if (l->closing)
        return;
    kr_timer_start(l->c->sched, &l->timer, wait_ms);
    if (refused && l->c->on_refused != NULL)
        l->c->on_refused(l->c->owner, reason);
}

static void fail(struct agent_link *l, const char *why)
{
    l->why = l->why != NULL ? l->why : why;
    if (l->conn != NULL)
        kr_conn_close(l->conn);
}

/* ---- the tunnel ---- */

static void on_hub_state(void *owner, const struct kr_hub_state *s)
{
    struct agent_link *l = owner;

    if (s->refusal != KR_REFUSAL_NONE) {
        l->refused_ms = s->retry_after_ms != 0
                            ? s->retry_after_ms
                            : kr_rand_ms(&l->c->rand, PERMANENT_MIN_MS, PERMANENT_MAX_MS);
        l->denied = s->refusal == KR_REFUSAL_DENIED;
        fail(l, "the hub refused the tunnel");
        return;
    }
    if (l->c->on_hub_state != NULL)
        l->c->on_hub_state(l->c->owner, s);
    if (s->pending != l->pending)
        KR_LOG_AT(l->c->log, KR_LOG_INFO, s->pending ? "pending" : "accepted", KR_S("hub", l->hub),
                  KR_S("cluster", l->c->self.name));
    l->pending = s->pending;
    if (l->attached)
        return;
    l->attached = true;
    kr_timer_stop(l->c->sched, &l->timer);
    kr_backoff_up(&l->backoff, l->c->sched->now_ms);
    kr_metric_add(l->m_up, 1);
    KR_LOG_AT(l->c->log, KR_LOG_INFO, "tunnel-up", KR_S("hub", l->hub), KR_B("replica", s->replica),
              KR_S("lane", l->lane == KR_LANE_BULK ? "bulk" : "interactive"),
              KR_B("version", s->version),
              KR_I("clock-ahead-ms", l->c->sched->now_wall_ms - s->hub_time_wall_ms));
}

static void on_attach_end(void *owner, const char *why)
{
    fail(owner, why);
}

static const struct agent_attach_owner attach_owner = {on_hub_state, on_attach_end};

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct agent_link *l = owner;

    if (kr_head_find(&ex->head, KR_LIT("kuberelay-request-bin")) != NULL)
        agent_request_start(l->c, ex);
    else if (kr_bytes_is(ex->head.path, KR_GRPC_ATTACH))
        agent_attach_accept(&l->attach, ex);
    else if (!agent_sync_serves(l->c, ex, l->replica))
        agent_request_start(l->c, ex);
}

static void on_conn_close(void *owner, int rc, const struct kr_note *why)
{
    struct agent_link *l = owner;
    const char *reason = l->why != NULL ? l->why : rc != 0 ? why->text : "closed";

    l->conn = NULL;
    kr_timer_stop(l->c->sched, &l->timer);
    agent_attach_deinit(&l->attach);
    again(l, rc, reason);
}

static const struct kr_conn_user conn_user = {on_request, NULL, NULL, on_conn_close};

static struct kr_conn *serve(struct agent_link *l, struct kr_pipe *pipe)
{
    int64_t silence = l->c->options->silence_ms;
    struct kr_h2_config cfg = {
        .server = true,
        .sched = l->c->sched,
        .user_ops = &conn_user,
        .owner = l,
        .shared = &l->c->h2,
        .max_streams = STREAMS_MAX,
        .max_head = KR_HEAD_MAX + 64 * 1024,
        .connect_protocol = true,
        .ping_after_ms = kr_rand_ms(&l->c->rand, silence * 3 / 10, silence * 2 / 5),
        .ping_timeout_ms = silence * 2 / 5,
        .preface_timeout_ms = ATTACH_TIMEOUT_MS,
    };

    return kr_h2_create(&cfg, pipe);
}

/* ---- getting there ---- */

static int judge(void *owner, const struct kr_tls_info *info, struct kr_note *why)
{
    struct agent_link *l = owner;
    struct kr_identity_rules rules = {KR_ROLE_HUB, l->c->self.domain};
    struct kr_identity hub = {0};
    int rc = kr_identity_judge(&hub, info->peer_der, &rules, why);

    memcpy(l->replica, hub.name, sizeof l->replica);
    kr_identity_deinit(&hub);
    return rc;
}

static int on_handshake(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                        const struct kr_note *why)
{
    struct agent_link *l = owner;

    (void)info;
    l->pipe = NULL;
    if (rc == 0) {
        agent_attach_init(&l->attach, l->c, l->lane, &attach_owner, l);
        l->conn = serve(l, pipe);
        if (l->conn != NULL) {
            kr_timer_start(l->c->sched, &l->timer, ATTACH_TIMEOUT_MS);
            return 0;
        }
        rc = KR_ENOMEM;
    }
    again(l, rc, why != NULL && why->text[0] != '\0' ? why->text : kr_err_text(rc));
    return rc;
}

static const struct kr_tls_user tls_user = {judge, on_handshake};

static void on_dial(void *owner, int rc, int fd, const char *peer, const struct kr_note *why)
{
    struct agent_link *l = owner;
    const char *name = l->c->options->hub_name != NULL ? l->c->options->hub_name : l->at.host;
    struct kr_tls_start start = {
        .ctx = l->c->hub_tls,
        .fd = fd,
        .user_ops = &tls_user,
        .owner = l,
        .server_name = name,
        .verify_host = name,
    };
    struct kr_note note = {""};

    (void)peer;
    l->dial = NULL;
    if (rc != 0) {
        again(l, rc, why->text);
        return;
    }
    l->pair_turn = l->c->pair_turn;
    l->pipe = kr_tls_connect(l->c->io, &start, &note);
    if (l->pipe == NULL)
        again(l, KR_ENOMEM, note.text);
}

static void dial(struct agent_link *l)
{
    struct kr_dial_config cfg = {
        .host = l->at.host,
        .port = l->at.port,
        .proxy = l->proxy,
        .timeout_ms = DIAL_TIMEOUT_MS,
        .user_timeout_ms = USER_TIMEOUT_MS,
        .on_done = on_dial,
        .owner = l,
    };
    struct kr_note why = {""};

    l->dial = kr_dial_start(l->c->loop, &cfg, &why);
    if (l->dial == NULL)
        again(l, KR_ENOMEM, why.text);
}

static void on_timer(struct kr_timer *t)
{
    struct agent_link *l = KR_CONTAINER_OF(t, struct agent_link, timer);

    if (l->conn != NULL)
        fail(l, "the hub did not accept the tunnel in time");
    else
        dial(l);
}

struct agent_link *agent_link_create(const struct agent_link_config *cfg, struct kr_note *why)
{
    const struct agent_options *o = cfg->c->options;
    struct agent_link *l = calloc(1, sizeof *l);

    if (l == NULL || kr_hostport_parse(cfg->hub, 8443, &l->at, why) != 0) {
        free(l);
        return NULL;
    }
    l->c = cfg->c;
    l->hub = cfg->hub;
    l->lane = cfg->lane;
    l->proxy = cfg->proxy;
    kr_backoff_init(&l->backoff, o->reconnect_base_ms, o->reconnect_max_ms, KR_BACKOFF_HEALTHY_MS);
    kr_timer_init(&l->timer, on_timer);
    l->m_up = kr_metrics_get(l->c->metrics, AGENT_LINKS, l->hub);
    l->m_failures = kr_metrics_get(l->c->metrics, AGENT_LINK_FAILURES, l->hub);
    return l;
}

void agent_link_destroy(struct agent_link *l)
{
    if (l == NULL)
        return;
    KR_ASSERT(l->conn == NULL && l->pipe == NULL && l->dial == NULL);
    kr_timer_stop(l->c->sched, &l->timer);
    free(l);
}

void agent_link_start(struct agent_link *l)
{
    dial(l);
}

bool agent_link_retry(struct agent_link *l)
{
    if (l->conn == NULL && kr_timer_running(&l->timer))
        kr_timer_start(l->c->sched, &l->timer, 0);
    return l->conn != NULL || l->pipe != NULL || l->dial != NULL || kr_timer_running(&l->timer);
}

bool agent_link_is_idle(const struct agent_link *l)
{
    return l->conn == NULL || l->conn->exchanges <= 1;
}

bool agent_link_attached(const struct agent_link *l)
{
    return l->attached;
}

void agent_link_tell(struct agent_link *l)
{
    if (l->conn != NULL)
        agent_attach_tell(&l->attach);
}

void agent_link_drain(struct agent_link *l)
{
    l->closing = true;
    agent_link_tell(l);
    if (l->conn != NULL)
        kr_conn_drain(l->conn);
    else
        agent_link_close(l);
}

bool agent_link_close(struct agent_link *l)
{
    l->closing = true;
    kr_dial_cancel(l->dial);
    l->dial = NULL;
    if (l->conn != NULL)
        kr_conn_close(l->conn);
    else if (l->pipe != NULL)
        kr_pipe_close(l->pipe, KR_PIPE_ABORT);
    else
        kr_timer_stop(l->c->sched, &l->timer);
    return l->conn == NULL && l->pipe == NULL;
}
