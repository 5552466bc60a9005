/* SPDX-License-Identifier: Apache-2.0 */
/* api_double: a scripted API server in place of agent/apiserver.c: each GET of the agent is a turn
 * that the test answers piece by piece. Checks what the contract of http/exchange.h demands:
 * nothing is called after the end, no byte is consumed twice. Include it in one file of a test
 * program. */
#ifndef KR_TESTS_API_DOUBLE_H
#define KR_TESTS_API_DOUBLE_H

#include <stdio.h>
#include <stdlib.h>

#include "agent/apiserver.h"
#include "agent/core.h"
#include "agent/counters.h"
#include "agent/policy.h"
#include "base/err.h"

enum { TURNS_MAX = 4096 };

struct turn { /* one request of the agent */
    struct kr_exchange ex;
    char path[1024];
    char accept[256];
    char etag[80];
    char authorization[64];
    bool open;    /* neither ended nor aborted */
    bool aborted; /* by the agent */
    size_t given; /* bytes of the body */
    size_t owed;
};

struct agent_apiserver {
    struct kr_conn conn;
    struct turn *turns[TURNS_MAX];
    size_t n;
    size_t looked; /* turns that the test has seen */
    bool refuses;  /* no connection is to be had */
    struct kr_list waiting;
    uint32_t generation;
    bool has_newer_token;
};

struct api_world { /* an agent with nothing but its parts for the fleet view */
    struct kr_sched sched;
    struct agent_options options;
    struct agent_core c;
    struct agent_apiserver api;
    struct agent_policy policy; /* zeroed: reading is allowed, what is closed by default is not */
};

/* ---- the exchange */

static __attribute__((unused)) struct turn *turn_of(struct kr_exchange *ex)
{
    struct turn *t = (struct turn *)(void *)ex; /* first member */

    assert_true(t->open);
    return t;
}

static __attribute__((unused)) void turn_consumed(struct kr_exchange *ex, size_t n)
{
    struct turn *t = turn_of(ex);

    assert_in_range(n, 1, t->owed);
    t->owed -= n;
}

static __attribute__((unused)) void turn_abort(struct kr_exchange *ex, enum kr_abort how)
{
    struct turn *t = turn_of(ex);

    (void)how;
    t->open = false;
    t->aborted = true;
}

static const struct kr_exchange_ops turn_ops = {.consumed = turn_consumed, .abort = turn_abort};

static __attribute__((unused)) void keep(char *to, size_t room, struct kr_bytes v)
{
    snprintf(to, room, "%.*s", (int)v.n, (const char *)v.p);
}

static __attribute__((unused)) struct kr_exchange *turn_open(struct kr_conn *c,
                                                             const struct kr_head *head, bool end,
                                                             const struct kr_exchange_user *ops,
                                                             void *user)
{
    struct agent_apiserver *s = (struct agent_apiserver *)(void *)c;
    struct turn *t = calloc(1, sizeof *t);

    assert_non_null(t);
    assert_true(end && kr_bytes_is(head->method, "GET") && s->n < TURNS_MAX);
    assert_true(kr_bytes_is(head->authority, "kubernetes.default:443"));
    t->ex.ops = &turn_ops;
    t->ex.head_sent = true;
    kr_exchange_attach(&t->ex, ops, user);
    kr_head_init(&t->ex.head, KR_HEAD_MAX);
    keep(t->path, sizeof t->path, head->path);
    keep(t->accept, sizeof t->accept, kr_head_get(head, KR_LIT("accept")));
    keep(t->etag, sizeof t->etag, kr_head_get(head, KR_LIT("if-none-match")));
    keep(t->authorization, sizeof t->authorization, kr_head_get(head, KR_LIT("authorization")));
    t->open = true;
    s->turns[s->n++] = t;
    return &t->ex;
}

static const struct kr_conn_ops turn_conn_ops = {.open = turn_open};

/* ---- agent/apiserver.h */

void agent_apiserver_wait(struct agent_apiserver *s, struct agent_waiter *w)
{
    kr_list_append(&s->waiting, &w->link);
}

struct kr_conn *agent_apiserver_get(struct agent_apiserver *s, struct agent_waiter *w)
{
    if (!s->refuses)
        return &s->conn;
    agent_apiserver_wait(s, w);
    return NULL;
}

struct kr_bytes agent_apiserver_authority(const struct agent_apiserver *s)
{
    (void)s;
    return KR_LIT("kubernetes.default:443");
}

struct kr_bytes agent_apiserver_prefix(const struct agent_apiserver *s)
{
    (void)s;
    return KR_LIT("");
}

struct kr_bytes agent_apiserver_authorization(struct agent_apiserver *s, uint32_t *generation)
{
    *generation = s->generation;
    return s->generation == 0 ? KR_LIT("Bearer old") : KR_LIT("Bearer new");
}

bool agent_apiserver_token_refused(struct agent_apiserver *s, uint32_t generation)
{
    if (generation == s->generation && s->has_newer_token) {
        s->generation++;
        s->has_newer_token = false;
        return true;
    }
    return generation != s->generation;
}

/* ---- for the test */

static __attribute__((unused)) void api_fail_waiters(struct agent_apiserver *s)
{
    struct kr_note why = {"connection refused"};
    struct kr_list *node;

    while ((node = kr_list_pop(&s->waiting)) != NULL) {
        struct agent_waiter *w = (struct agent_waiter *)(void *)node;

        w->on_conn(w, NULL, KR_ECONNREFUSED, &why);
    }
}

/* The next request, which must be there and be the only new one. */
static __attribute__((unused)) struct turn *api_next(struct agent_apiserver *s)
{
    assert_int_equal(s->n, s->looked + 1);
    return s->turns[s->looked++];
}

static __attribute__((unused)) bool turn_asks(const struct turn *t, const char *words)
{
    return strstr(t->path, words) != NULL;
}

static __attribute__((unused)) void turn_head(struct turn *t, int status, const char *name,
                                              const char *value)
{
    assert_true(t->open);
    t->ex.head.status = status;
    if (name != NULL)
        assert_int_equal(kr_head_add_str(&t->ex.head, name, value), 0);
    t->ex.user_ops->on_head(t->ex.user);
}

static __attribute__((unused)) void turn_bytes(struct turn *t, const char *p, size_t n)
{
    if (!t->open || n == 0)
        return;
    t->given += n;
    t->owed += n;
    t->ex.user_ops->on_body(t->ex.user, kr_bytes_of(p, n));
}

static __attribute__((unused)) void turn_say(struct turn *t, const char *text)
{
    turn_bytes(t, text, strlen(text));
}

static __attribute__((unused)) void turn_done(struct turn *t, int rc)
{
    assert_true(t->open);
    if (rc == 0)
        t->ex.user_ops->on_end(t->ex.user, NULL);
    t->open = false;
    t->ex.user_ops->on_done(t->ex.user, rc);
}

/* The whole answer. */
static __attribute__((unused)) void turn_answer(struct turn *t, int status, const char *body)
{
    turn_head(t, status, "content-type", "application/json");
    turn_say(t, body);
    if (t->open) /* the agent has seen enough */
        turn_done(t, 0);
}

static __attribute__((unused)) void api_world_init(struct api_world *w)
{
    *w = (struct api_world){.options.discovery_interval_ms = 30000};
    kr_sched_init(&w->sched, 1000000, 1700000000000);
    w->api.conn.ops = &turn_conn_ops;
    kr_list_init(&w->api.waiting);
    w->c.options = &w->options;
    w->c.sched = &w->sched;
    w->c.api = &w->api;
    w->c.policy = &w->policy;
    w->c.metrics = kr_metrics_create(agent_counters, AGENT_COUNTERS_N);
    assert_non_null(w->c.metrics);
    kr_rand_seed(&w->c.rand, 1);
}

/* One turn of the loop, `ms` later. */
static __attribute__((unused)) void api_world_run(struct api_world *w, int64_t ms)
{
    kr_sched_run(&w->sched, w->sched.now_ms + ms, w->sched.now_wall_ms + ms);
}

static __attribute__((unused)) void api_world_deinit(struct api_world *w)
{
    api_world_run(w, 0);
    for (size_t i = 0; i < w->api.n; i++) {
        assert_false(w->api.turns[i]->open);
        kr_head_deinit(&w->api.turns[i]->ex.head);
        free(w->api.turns[i]);
    }
    assert_true(kr_list_empty(&w->api.waiting));
    assert_int_equal(w->sched.count, 0); /* no timer was left */
    kr_metrics_destroy(w->c.metrics);
    kr_sched_deinit(&w->sched);
}

static __attribute__((unused)) int64_t api_world_counter(struct api_world *w, size_t family,
                                                         const char *label)
{
    return kr_metric_value(kr_metrics_get(w->c.metrics, family, label));
}

#endif
