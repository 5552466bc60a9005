/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/local_get.h"

#include "base/assert.h"
#include "base/err.h"
#include "certs/store_file.h"

#define ATTEMPTS_MAX 3
#define OPENS_MAX 16 /* a head that no connection takes must not go round for ever */
#define PATH_LIMIT (32u * 1024)
#define ETAG_MAX 1024
#define BODY_MAX (64u * 1024)

static void go(struct agent_get *g);

static void stop(struct agent_get *g)
{
    kr_timer_stop(g->c->sched, &g->timer);
    kr_list_remove(&g->waiter.link);
    g->ex = NULL;
    g->active = false;
    g->owed = 0;
    kr_buf_deinit(&g->path);
    kr_buf_deinit(&g->etag);
    kr_buf_cleanse(&g->body); /* it may hold a token */
}

static void done(struct agent_get *g, int rc, const char *why)
{
    stop(g);
    g->ops->on_done(g->user, rc, why);
}

/* Asks again, if it may: the connection that is given next may be another one. */
static bool again(struct agent_get *g)
{
    g->ex = NULL;
    if (g->headed || g->attempts >= ATTEMPTS_MAX)
        return false;
    go(g);
    return true;
}

/* ---- the answer ---- */

static void on_head(void *user)
{
    struct agent_get *g = user;

    g->heard_ms = g->c->sched->now_ms;
    if (g->ex->head.status == 401 && g->attempts < ATTEMPTS_MAX &&
        agent_apiserver_token_refused(g->c->api, g->token_generation)) {
        kr_exchange_abort(g->ex, KR_ABORT_CANCEL);
        again(g);
        return;
    }
    g->headed = true;
    g->ops->on_head(g->user, &g->ex->head);
}

static void on_body(void *user, struct kr_bytes in)
{
    struct agent_get *g = user;

    g->heard_ms = g->c->sched->now_ms;
    g->owed += in.n;
    g->ops->on_body(g->user, in);
}

static void on_end(void *user, const struct kr_head *trailers)
{
    (void)user, (void)trailers;
}

static size_t available(void *user, bool *end)
{
    struct agent_get *g = user;

    *end = true;
    return g->body.n - g->body_sent;
}

static void take(void *user, uint8_t *out, size_t n)
{
    struct agent_get *g = user;

    memcpy(out, g->body.p + g->body_sent, n);
    g->body_sent += n;
}

static void on_done(void *user, int rc)
{
    struct agent_get *g = user;

    if ((rc == KR_EREFUSED || (rc == KR_ECONNLOST && !g->ex->head_sent)) && again(g))
        return;
    done(g, rc, kr_err_text(rc));
}

static const struct kr_exchange_user exchange_user = {on_head,   on_body, on_end,
                                                      available, take,    on_done};

/* ---- the request ---- */

static int build_head(struct agent_get *g, struct kr_head *head)
{
    struct kr_bytes auth = agent_apiserver_authorization(g->c->api, &g->token_generation);
    int rc;

    head->method = g->body.n != 0 ? KR_LIT("POST") : KR_LIT("GET");
    head->scheme = KR_LIT("https");
    head->authority = agent_apiserver_authority(g->c->api);
    head->path = kr_buf_bytes(&g->path);
    rc = kr_head_add_str(head, "accept", g->accept);
    if (rc == 0)
        rc = kr_head_add_str(head, "user-agent", "kuberelay-agent/" KR_VERSION);
    if (rc == 0 && g->body.n != 0)
        rc = kr_head_add_str(head, "content-type", "application/json");
    if (rc == 0 && g->body.n != 0)
        rc = kr_head_add_u64(head, "content-length", g->body.n);
    if (rc == 0 && g->etag.n != 0)
        rc = kr_head_add(head, KR_LIT("if-none-match"), kr_buf_bytes(&g->etag));
    if (rc == 0 && auth.n != 0)
        rc = kr_head_add(head, KR_LIT("authorization"), auth);
    if (rc == 0 && g->ops->add_fields != NULL)
        rc = g->ops->add_fields(g->user, head);
    return rc;
}

static void open_on(struct agent_get *g, struct kr_conn *conn)
{
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    if (build_head(g, &head) == 0) {
        g->body_sent = 0;
        g->ex = kr_conn_open(conn, &head, g->body.n == 0, &exchange_user, g);
        if (g->ex != NULL) {
            g->ex->patient = true; /* a watch that is quiet is well */
            g->attempts++;
        }
    }
    kr_head_deinit(&head);
    if (g->ex == NULL)
        agent_apiserver_wait(g->c->api, &g->waiter);
}

static void on_conn(struct agent_waiter *w, struct kr_conn *conn, int rc, const struct kr_note *why)
{
    struct agent_get *g = KR_CONTAINER_OF(w, struct agent_get, waiter);

    if (conn == NULL)
        done(g, rc, why->text);
    else if (g->opens++ < OPENS_MAX)
        open_on(g, conn);
    else
        done(g, KR_EFULL, "no connection takes the request");
}

static void go(struct agent_get *g)
{
    struct kr_conn *conn = agent_apiserver_get(g->c->api, &g->waiter);

    if (conn != NULL)
        open_on(g, conn);
}

/* Looked at now and then instead of with every byte. While we owe bytes it is we who are silent. */
static void on_timer(struct kr_timer *t)
{
    struct agent_get *g = KR_CONTAINER_OF(t, struct agent_get, timer);
    int64_t quiet_ms = g->c->sched->now_ms - g->heard_ms;

    if (g->owed != 0)
        quiet_ms = 0;
    if (quiet_ms < g->silence_ms) {
        kr_timer_start(g->c->sched, &g->timer, g->silence_ms - quiet_ms);
        return;
    }
    if (g->ex != NULL)
        kr_exchange_abort(g->ex, KR_ABORT_CANCEL);
    done(g, KR_ETIMEDOUT, "the API server is silent");
}

void agent_get_init(struct agent_get *g, struct agent_core *c, const struct agent_get_ops *ops,
                    void *user)
{
    *g = (struct agent_get){.c = c, .ops = ops, .user = user};
    g->waiter.on_conn = on_conn;
    kr_timer_init(&g->timer, on_timer);
}

void agent_get_deinit(struct agent_get *g)
{
    if (g->c != NULL)
        agent_get_abort(g);
}

int agent_get_start(struct agent_get *g, const struct agent_get_request *rq)
{
    int rc;

    KR_ASSERT(!g->active);
    kr_buf_init(&g->path, PATH_LIMIT);
    kr_buf_init(&g->etag, ETAG_MAX);
    kr_buf_init(&g->body, BODY_MAX);
    rc = kr_buf_append(&g->path, agent_apiserver_prefix(g->c->api));
    if (rc == 0)
        rc = kr_buf_append(&g->path, rq->path);
    if (rc == 0 && rq->etag.n <= ETAG_MAX)
        rc = kr_buf_append(&g->etag, rq->etag);
    if (rc == 0)
        rc = kr_buf_append(&g->body, rq->body);
    if (rc == 0)
        rc = kr_timer_start(g->c->sched, &g->timer, rq->silence_ms);
    if (rc != 0) {
        stop(g);
        return rc;
    }
    g->accept = rq->accept;
    g->silence_ms = rq->silence_ms;
    g->heard_ms = g->c->sched->now_ms;
    g->attempts = g->opens = 0;
    g->headed = false;
    g->active = true;
    go(g);
    return 0;
}

void agent_get_consumed(struct agent_get *g, size_t n)
{
    if (g->ex == NULL)
        return;
    KR_ASSERT(n <= g->owed);
    g->owed -= n;
    g->heard_ms = g->c->sched->now_ms;
    kr_exchange_consumed(g->ex, n);
}

void agent_get_silence(struct agent_get *g, int64_t silence_ms)
{
    g->silence_ms = silence_ms;
    if (g->active)
        kr_timer_start(g->c->sched, &g->timer, silence_ms);
}

void agent_get_abort(struct agent_get *g)
{
    struct kr_exchange *ex = g->ex;

    if (!g->active)
        return;
    stop(g);
    if (ex != NULL)
        kr_exchange_abort(ex, KR_ABORT_CANCEL);
}
