/* SPDX-License-Identifier: Apache-2.0 */
#include "turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api.h"
#include "base/assert.h"
#include "base/err.h"
#include "faults.h"

struct turn {
    struct kr_exchange *ex;
    const struct sim_peer *peer;
    struct sim_cluster *c;
    struct kr_buf body;
    struct sim_response out;
    struct sim_fault fault;
    size_t sent; /* of out.body */
    bool answered;
    bool is_head;
    bool over;   /* the source has ended */
    bool broken; /* it ended in the middle */
    struct kr_timer delay;
    struct kr_task breaker; /* resets the exchange, outside of its callbacks */
    struct kr_task asker;   /* answers a request for an upgrade, which has no end */
};

static void turn_free(struct turn *t)
{
    kr_timer_stop(t->c->sched, &t->delay);
    kr_task_cancel(&t->breaker);
    kr_task_cancel(&t->asker);
    sim_response_deinit(&t->out);
    kr_buf_deinit(&t->body);
    free(t);
}

static void break_off(struct turn *t)
{
    struct kr_exchange *ex = t->ex;

    kr_exchange_abort(ex, KR_ABORT_INTERNAL);
    turn_free(t);
}

static void on_breaker(struct kr_task *task)
{
    break_off(KR_CONTAINER_OF(task, struct turn, breaker));
}

/* ---- the answer's body */

static void on_wake(void *owner)
{
    struct turn *t = owner;

    kr_exchange_ready(t->ex);
}

/* Gets more from the source when all that came is sent. */
static void refill(struct turn *t)
{
    enum sim_fill state = SIM_FILL_MORE;

    if (t->out.source == NULL || t->over || t->sent < t->out.body.n)
        return;
    t->sent = t->out.body.n = 0;
    while (state == SIM_FILL_MORE && t->out.body.n == 0)
        state = t->out.source->ops->fill(t->out.source, &t->out.body);
    t->broken = state == SIM_FILL_BREAK;
    t->over = t->broken || state == SIM_FILL_END;
}

static size_t on_available(void *user, bool *end)
{
    struct turn *t = user;

    refill(t);
    *end = !t->broken && (t->out.source == NULL || t->over);
    if (t->broken && t->sent == t->out.body.n)
        kr_task_post_last(t->c->sched, &t->breaker);
    return t->out.body.n - t->sent;
}

static void on_take(void *user, uint8_t *out, size_t n)
{
    struct turn *t = user;

    memcpy(out, t->out.body.p + t->sent, n);
    t->sent += n;
    if (t->broken && t->sent == t->out.body.n)
        kr_task_post_last(t->c->sched, &t->breaker);
}

/* ---- the answer's head */

static bool has_field(const struct sim_response *r, const char *name)
{
    return kr_head_find(&r->more, kr_bytes_str(name)) != NULL;
}

static void add_date(struct kr_head *head, int64_t now_wall_ms)
{
    time_t s = (time_t)(now_wall_ms / 1000);
    struct tm tm;
    char text[40];

    gmtime_r(&s, &tm);
    strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    (void)kr_head_add_str(head, "date", text);
}

static void add_audit_id(struct turn *t, struct kr_head *head)
{
    struct kr_bytes given = kr_head_get(&t->ex->head, KR_LIT("audit-id"));
    char uid[40];

    sim_uuid(sim_random(t->c), uid);
    (void)kr_head_add(head, KR_LIT("audit-id"), given.n != 0 ? given : kr_bytes_str(uid));
}

static int build_head(struct turn *t, struct kr_head *head)
{
    static const char flow[] = "5a3e0c1b-51b1-4c9e-8f0e-6b7562657369";
    const struct sim_response *r = &t->out;
    int rc = 0;

    head->status = r->status;
    add_audit_id(t, head);
    if (!has_field(r, "cache-control"))
        (void)kr_head_add_str(head, "cache-control", "no-cache, private");
    if (r->status != 304 && r->status != 204)
        (void)kr_head_add_str(head, "content-type", r->content_type);
    (void)kr_head_add_str(head, "x-kubernetes-pf-flowschema-uid", flow);
    (void)kr_head_add_str(head, "x-kubernetes-pf-prioritylevel-uid", flow);
    (void)kr_head_add_str(head, "server", "kubesim (simulator)");
    for (size_t i = 0; rc == 0 && i < r->more.n; i++)
        rc = kr_head_add(head, r->more.fields[i].name, r->more.fields[i].value);
    if (r->source == NULL && r->status != 304 && r->status != 204)
        (void)kr_head_add_u64(head, "content-length", r->body.n);
    add_date(head, t->c->sched->now_wall_ms);
    return rc;
}

static void send_answer(struct turn *t)
{
    struct kr_conn *conn = t->ex->conn;
    bool drain = t->fault.action == SIM_FAULT_GOAWAY;
    bool end = t->is_head || t->out.status == 304 || (t->out.source == NULL && t->out.body.n == 0);
    struct kr_head head;
    int rc;

    kr_head_init(&head, KR_HEAD_MAX);
    rc = build_head(t, &head);
    t->answered = true;
    if (rc == 0)
        rc = kr_exchange_send_head(t->ex, &head, end);
    kr_head_deinit(&head);
    if (rc != 0) {
        kr_task_post_last(t->c->sched, &t->breaker);
        return;
    }
    if (!end)
        kr_exchange_ready(t->ex);
    if (drain)
        kr_conn_drain(conn);
}

/* ---- the question */

/* Whether an Authorization field holds our token. */
static bool token_is_ours(const struct turn *t)
{
    struct kr_bytes value = kr_head_get(&t->ex->head, KR_LIT("authorization"));

    return kr_bytes_starts(value, KR_LIT("Bearer ")) &&
           kr_bytes_is(kr_bytes_skip(value, 7), t->peer->token);
}

static void ask(struct turn *t)
{
    bool token = kr_head_find(&t->ex->head, KR_LIT("authorization")) != NULL;
    struct sim_request req = {.method = t->ex->head.method,
                              .target = t->ex->head.path,
                              .head = &t->ex->head,
                              .body = kr_buf_bytes(&t->body),
                              .groups = t->peer->groups};

    if (t->peer->user[0] != '\0') {
        req.user = t->peer->user;
    } else if (token && token_is_ours(t)) {
        req.user = "kubesim-token";
        req.groups = "system:masters";
    }
    t->fault = sim_fault_take(t->c, &req);
    sim_handle(t->c, &req, &t->out);
    sim_fault_apply(&t->fault, &t->out);
    if (t->out.source != NULL) {
        t->out.source->wake = on_wake;
        t->out.source->wake_owner = t;
    }
}

static void on_delay(struct kr_timer *timer)
{
    send_answer(KR_CONTAINER_OF(timer, struct turn, delay));
}

static void answer(struct turn *t)
{
    ask(t);
    switch (t->fault.action) {
    case SIM_FAULT_HANG:
        t->answered = true;
        return;
    case SIM_FAULT_DELAY:
        t->answered = true;
        (void)kr_timer_start(t->c->sched, &t->delay, t->fault.ms);
        return;
    case SIM_FAULT_RESET:
        break_off(t);
        return;
    case SIM_FAULT_CLOSE:
        t->answered = true;
        kr_conn_close(t->ex->conn);
        return;
    default:
        send_answer(t);
    }
}

static void on_body(void *user, struct kr_bytes in)
{
    struct turn *t = user;

    kr_exchange_consumed(t->ex, in.n);
    if (t->answered)
        return;
    if (kr_buf_append(&t->body, in) == 0)
        return;
    sim_fail(&t->out, &(struct sim_failure){.code = 413, .reason = "RequestEntityTooLarge"},
             "Request entity too large: limit is %u", SIM_BODY_MAX);
    send_answer(t);
}

static void on_end(void *user, const struct kr_head *trailers)
{
    struct turn *t = user;

    (void)trailers;
    if (!t->answered)
        answer(t);
}

static void on_done(void *user, int rc)
{
    (void)rc;
    turn_free(user);
}

static void on_asker(struct kr_task *task)
{
    answer(KR_CONTAINER_OF(task, struct turn, asker));
}

static const struct kr_exchange_user turn_ops = {
    .on_body = on_body,
    .on_end = on_end,
    .available = on_available,
    .take = on_take,
    .on_done = on_done,
};

void sim_turn_start(const struct sim_peer *peer, struct kr_exchange *ex)
{
    struct turn *t = calloc(1, sizeof *t);

    if (t == NULL) {
        kr_exchange_abort(ex, KR_ABORT_REFUSED);
        return;
    }
    t->ex = ex;
    t->peer = peer;
    t->c = peer->c;
    t->is_head = kr_bytes_is(ex->head.method, "HEAD");
    kr_buf_init(&t->body, SIM_BODY_MAX);
    sim_response_init(&t->out);
    kr_timer_init(&t->delay, on_delay);
    kr_task_init(&t->breaker, on_breaker);
    kr_task_init(&t->asker, on_asker);
    kr_exchange_attach(ex, &turn_ops, t);
    kr_exchange_send_continue(ex);
    if (ex->upgrade)
        kr_task_post(t->c->sched, &t->asker);
}
