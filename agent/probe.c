/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/probe.h"

#include <stdio.h>
#include <string.h>

#include "agent/counters.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/json.h"

#define PERIOD_MS 30000
#define PERIOD_DOWN_MS 5000
#define ANSWER_MS 10000
#define BODY_MAX (256u * 1024)

static void ask(struct agent_probe *p);

/* ---- what the answers say ---- */

static void keep_text(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text != NULL ? text : "");
}

static void take_version(struct agent_probe *p, int status, const struct kr_json *doc)
{
    p->next.health = status == 200   ? KR_API_OK
                     : status == 401 ? KR_API_UNAUTHORIZED
                                     : KR_API_UNREACHABLE;
    keep_text(p->next.version, sizeof p->next.version, kr_json_text(doc, "gitVersion"));
}

static void take_uid(struct agent_probe *p, int status, const struct kr_json *doc)
{
    if (status == 200)
        keep_text(p->next.cluster_uid, sizeof p->next.cluster_uid,
                  kr_json_text(kr_json_get(doc, "metadata"), "uid"));
}

static void take_nodes(struct agent_probe *p, int status, const struct kr_json *doc)
{
    int64_t more = 0;

    if (status != 200)
        return;
    kr_json_int(kr_json_get(kr_json_get(doc, "metadata"), "remainingItemCount"), &more);
    p->next.nodes = (uint32_t)((int64_t)kr_json_len(kr_json_get(doc, "items")) + more);
}

static const struct {
    const char *path;
    const char *accept;
    void (*take)(struct agent_probe *p, int status, const struct kr_json *doc);
} steps[] = {
    {"/version", "application/json", take_version},
    {"/api/v1/namespaces/kube-system", "application/json", take_uid},
    {"/api/v1/nodes?limit=1",
     "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
     take_nodes},
};

/* ---- asking ---- */

static void finish_round(struct agent_probe *p)
{
    struct agent_core *c = p->c;
    bool changed = memcmp(&c->health, &p->next, sizeof c->health) != 0;

    p->asking = false;
    p->step = 0;
    kr_timer_start(c->sched, &p->timer, p->next.health == KR_API_OK ? PERIOD_MS : PERIOD_DOWN_MS);
    kr_metric_set(kr_metrics_series(c->metrics, AGENT_API_UP, NULL, 0),
                  p->next.health == KR_API_OK);
    if (!changed)
        return;
    KR_LOG_AT(c->log, p->next.health == KR_API_OK ? KR_LOG_INFO : KR_LOG_WARN, "api-server",
              KR_T("ok", p->next.health == KR_API_OK), KR_S("version", p->next.version),
              KR_S("cluster-uid", p->next.cluster_uid), KR_U("nodes", p->next.nodes));
    c->health = p->next;
    p->on_change(p->owner);
}

static void next_step(struct agent_probe *p)
{
    p->ex = NULL;
    kr_buf_deinit(&p->body);
    if (p->next.health == KR_API_OK && ++p->step < sizeof steps / sizeof steps[0])
        ask(p);
    else
        finish_round(p);
}

static void unreachable(struct agent_probe *p)
{
    p->ex = NULL;
    p->next.health = KR_API_UNREACHABLE;
    kr_buf_deinit(&p->body);
    finish_round(p);
}

static void on_head(void *user)
{
    (void)user; /* the status is looked at with the body */
}

static void on_body(void *user, struct kr_bytes in)
{
    struct agent_probe *p = user;

    kr_exchange_consumed(p->ex, in.n);
    kr_buf_append(&p->body, in); /* what does not fit is no document of ours: it will not parse */
}

static void on_end(void *user, const struct kr_head *trailers)
{
    (void)user, (void)trailers;
}

static size_t available(void *user, bool *end)
{
    (void)user;
    *end = true;
    return 0;
}

static void on_done(void *user, int rc)
{
    struct agent_probe *p = user;
    struct kr_json *doc = NULL;

    if (rc != 0) {
        unreachable(p);
        return;
    }
    kr_json_parse(kr_buf_bytes(&p->body), &doc, NULL);
    steps[p->step].take(p, p->ex->head.status, doc);
    kr_json_destroy(doc);
    next_step(p);
}

static const struct kr_exchange_user exchange_user = {on_head,   on_body, on_end,
                                                      available, NULL,    on_done};

static void send(struct agent_probe *p, struct kr_conn *conn)
{
    struct kr_head head;
    uint32_t generation;
    struct kr_bytes auth = agent_apiserver_authorization(p->c->api, &generation);
    char path[256];

    snprintf(path, sizeof path, "%s%s", (const char *)agent_apiserver_prefix(p->c->api).p,
             steps[p->step].path);
    kr_head_init(&head, KR_HEAD_MAX);
    head.method = KR_LIT("GET");
    head.authority = agent_apiserver_authority(p->c->api);
    head.path = kr_bytes_str(path);
    kr_head_add_str(&head, "accept", steps[p->step].accept);
    kr_head_add_str(&head, "user-agent", "kuberelay-agent/" KR_VERSION);
    if (auth.n != 0)
        kr_head_add(&head, KR_LIT("authorization"), auth);
    p->ex = kr_conn_open(conn, &head, true, &exchange_user, p);
    kr_head_deinit(&head);
    if (p->ex == NULL)
        agent_apiserver_wait(p->c->api, &p->waiter);
}

static void on_conn(struct agent_waiter *w, struct kr_conn *conn, int rc, const struct kr_note *why)
{
    struct agent_probe *p = KR_CONTAINER_OF(w, struct agent_probe, waiter);

    (void)rc, (void)why; /* apiserver.c has logged it */
    if (conn != NULL)
        send(p, conn);
    else
        unreachable(p);
}

static void ask(struct agent_probe *p)
{
    struct kr_conn *conn;

    kr_timer_start(p->c->sched, &p->timer, ANSWER_MS);
    kr_buf_init(&p->body, BODY_MAX);
    conn = agent_apiserver_get(p->c->api, &p->waiter);
    if (conn != NULL)
        send(p, conn);
}

static void on_timer(struct kr_timer *t)
{
    struct agent_probe *p = KR_CONTAINER_OF(t, struct agent_probe, timer);

    if (p->asking) {
        kr_list_remove(&p->waiter.link);
        if (p->ex != NULL)
            kr_exchange_abort(p->ex, KR_ABORT_CANCEL);
        unreachable(p);
        return;
    }
    agent_probe_start(p);
}

void agent_probe_init(struct agent_probe *p, struct agent_core *c, void (*on_change)(void *owner),
                      void *owner)
{
    *p = (struct agent_probe){.c = c, .on_change = on_change, .owner = owner};
    p->waiter.on_conn = on_conn;
    kr_timer_init(&p->timer, on_timer);
}

void agent_probe_start(struct agent_probe *p)
{
    p->asking = true;
    p->step = 0;
    memset(&p->next, 0, sizeof p->next);
    ask(p);
}

void agent_probe_stop(struct agent_probe *p)
{
    kr_timer_stop(p->c->sched, &p->timer);
    kr_list_remove(&p->waiter.link);
    if (p->ex != NULL)
        kr_exchange_abort(p->ex, KR_ABORT_CANCEL);
    p->ex = NULL;
    kr_buf_deinit(&p->body);
}
