/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's pool of connections to its scripted API server: what agent/apiserver.h promises,
 * without sockets, TLS and credentials. What the server answers is each world's own. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/apiserver.h"
#include "base/assert.h"
#include "base/err.h"
#include "http/h1_conn.h"
#include "world.h"

enum { CONNS = 24, STREAMS = 6 };

struct link { /* one connection: the agent's end and the server's */
    struct agent_apiserver *s;
    struct kr_mem_pair *pair;
    struct kr_conn *agent;
    struct kr_conn *server;
};

struct agent_apiserver {
    struct world *w;
    struct agent_core *c;
    struct link links[CONNS];
    struct kr_list waiting; /* agent_waiter.link */
    struct kr_timer serve;
    struct kr_timer wake;   /* a stalled connection goes on */
    struct kr_h2_shared h2; /* of the server's ends */
    void (*answer)(struct agent_core *c, struct kr_exchange *ex);
    bool down;
    bool h1; /* it speaks HTTP/1.1 */
};

/* ---- connections ---- */

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct agent_apiserver *s = ((struct link *)owner)->s;

    s->answer(s->c, ex);
}

static void wake_waiters(struct agent_apiserver *s)
{
    if (!kr_list_empty(&s->waiting) && !kr_timer_running(&s->serve))
        kr_timer_start(&s->w->sched, &s->serve, kr_rand_ms(&s->w->rand, 1, 20));
}

static void on_agent_close(void *owner, int rc, const struct kr_note *why)
{
    struct link *l = owner;

    (void)rc, (void)why;
    l->agent = NULL;
    wake_waiters(l->s);
}

static void on_server_close(void *owner, int rc, const struct kr_note *why)
{
    (void)rc, (void)why;
    ((struct link *)owner)->server = NULL;
}

static const struct kr_conn_user agent_user = {NULL, NULL, NULL, on_agent_close};
static const struct kr_conn_user server_user = {on_request, NULL, NULL, on_server_close};

static void dial(struct agent_apiserver *s, struct link *l)
{
    struct kr_h2_config agent = {.sched = &s->w->sched,
                                 .user_ops = &agent_user,
                                 .owner = l,
                                 .shared = &s->c->h2,
                                 .ping_after_ms = 15000,
                                 .ping_timeout_ms = 10000};
    struct kr_h2_config server = {.server = true,
                                  .sched = &s->w->sched,
                                  .user_ops = &server_user,
                                  .owner = l,
                                  .shared = &s->h2,
                                  .max_streams = STREAMS};
    struct kr_h1_config agent1 = {.sched = &s->w->sched, .user_ops = &agent_user, .owner = l};
    struct kr_h1_config server1 = {.sched = &s->w->sched, .user_ops = &server_user, .owner = l};

    l->s = s;
    l->pair = kr_mem_pair_create(&s->w->sched);
    for (int end = 0; end < 2; end++) {
        kr_mem_pair_step(l->pair, end,
                         world_one_in(s->w, 2) ? 1 + kr_rand_below(&s->w->rand, 5000) : 0);
        if (world_breaks(s->w) && world_one_in(s->w, 4))
            kr_mem_pair_cut_after(l->pair, end, 1 + kr_rand_below(&s->w->rand, 100000));
    }
    l->agent = s->h1 ? kr_h1_client_create(&agent1, kr_mem_pair_end(l->pair, 0))
                     : kr_h2_create(&agent, kr_mem_pair_end(l->pair, 0));
    l->server = s->h1 ? kr_h1_server_create(&server1, kr_mem_pair_end(l->pair, 1))
                      : kr_h2_create(&server, kr_mem_pair_end(l->pair, 1));
    KR_ASSERT(l->agent != NULL && l->server != NULL);
}

static struct kr_conn *pick(struct agent_apiserver *s)
{
    struct kr_conn *best = NULL;

    for (size_t i = 0; i < CONNS; i++) {
        struct kr_conn *c = s->links[i].agent;

        if (c == NULL || c->draining || (!c->is_h2 && c->exchanges != 0))
            continue;
        if (best == NULL || c->exchanges < best->exchanges)
            best = c;
    }
    return best;
}

static void serve(struct kr_timer *timer)
{
    struct agent_apiserver *s = KR_CONTAINER_OF(timer, struct agent_apiserver, serve);
    struct kr_note down = {"connection refused"};
    struct kr_list now;
    struct kr_list *node;

    kr_list_init(&now);
    while ((node = kr_list_pop(&s->waiting)) != NULL)
        kr_list_append(&now, node);
    for (size_t i = 0; i < CONNS && !s->down && (pick(s) == NULL || pick(s)->exchanges > 3); i++) {
        if (s->links[i].agent == NULL && s->links[i].server == NULL)
            dial(s, &s->links[i]);
    }
    while ((node = kr_list_pop(&now)) != NULL) {
        struct agent_waiter *w = KR_CONTAINER_OF(node, struct agent_waiter, link);
        struct kr_conn *conn = pick(s);

        if (conn != NULL)
            w->on_conn(w, conn, 0, NULL);
        else if (s->down)
            w->on_conn(w, NULL, KR_ECONNREFUSED, &down);
        else
            agent_apiserver_wait(s, w);
    }
}

void agent_apiserver_wait(struct agent_apiserver *s, struct agent_waiter *w)
{
    kr_list_append(&s->waiting, &w->link);
    wake_waiters(s);
}

struct kr_conn *agent_apiserver_get(struct agent_apiserver *s, struct agent_waiter *w)
{
    struct kr_conn *conn = kr_list_empty(&s->waiting) ? pick(s) : NULL;

    if (conn == NULL)
        agent_apiserver_wait(s, w);
    return conn;
}

int agent_apiserver_dial_alone(struct agent_apiserver *s, struct agent_waiter *w)
{
    (void)s, (void)w; /* nobody upgrades here */
    return KR_EFULL;
}

bool agent_apiserver_has_certificate(const struct agent_apiserver *s)
{
    (void)s;
    return false;
}

struct kr_bytes agent_apiserver_authority(const struct agent_apiserver *s)
{
    (void)s;
    return KR_LIT("kubernetes.default:443");
}

struct kr_bytes agent_apiserver_prefix(const struct agent_apiserver *s)
{
    (void)s;
    return (struct kr_bytes){NULL, 0};
}

struct kr_bytes agent_apiserver_authorization(struct agent_apiserver *s, uint32_t *generation)
{
    (void)s;
    *generation = 1;
    return KR_LIT("Bearer sim");
}

bool agent_apiserver_token_refused(struct agent_apiserver *s, uint32_t generation)
{
    (void)s, (void)generation;
    return false;
}

/* ---- faults ---- */

static struct link *some_link(struct agent_apiserver *s)
{
    struct link *l = &s->links[kr_rand_below(&s->w->rand, CONNS)];

    return l->agent != NULL && l->server != NULL ? l : NULL;
}

static void on_wake(struct kr_timer *t)
{
    struct agent_apiserver *s = KR_CONTAINER_OF(t, struct agent_apiserver, wake);

    for (size_t i = 0; i < CONNS; i++) {
        for (int end = 0; end < 2; end++) {
            if (s->links[i].agent != NULL && s->links[i].server != NULL)
                kr_mem_pair_stall(s->links[i].pair, end, false);
        }
    }
    s->down = false;
}

void api_fault(struct agent_apiserver *s)
{
    struct link *l = some_link(s);

    if (!kr_timer_running(&s->wake))
        kr_timer_start(&s->w->sched, &s->wake, kr_rand_ms(&s->w->rand, 1, 4000));
    switch (kr_rand_below(&s->w->rand, 4)) {
    case 0:
        s->down = true;
        break;
    case 1:
        if (l != NULL)
            kr_mem_pair_cut(l->pair, KR_ECONNLOST);
        break;
    case 2:
        if (l != NULL)
            kr_conn_drain(l->server);
        break;
    default:
        if (l != NULL)
            kr_mem_pair_stall(l->pair, (int)kr_rand_below(&s->w->rand, 2), true);
    }
}

void api_heal(struct agent_apiserver *s)
{
    kr_timer_stop(&s->w->sched, &s->wake);
    on_wake(&s->wake);
}

void api_cut(struct agent_apiserver *s)
{
    for (size_t i = 0; i < CONNS; i++) {
        if (s->links[i].agent != NULL && s->links[i].server != NULL)
            kr_mem_pair_cut(s->links[i].pair, KR_ECONNLOST);
    }
}

struct agent_apiserver *api_create(struct world *w, struct agent_core *c, bool h1,
                                   void (*answer)(struct agent_core *c, struct kr_exchange *ex))
{
    struct agent_apiserver *s = calloc(1, sizeof *s);

    KR_ASSERT(s != NULL && kr_h2_shared_init(&s->h2, AGENT_BUDGET) == 0);
    s->w = w;
    s->c = c;
    s->h1 = h1;
    s->answer = answer;
    kr_list_init(&s->waiting);
    kr_timer_init(&s->serve, serve);
    kr_timer_init(&s->wake, on_wake);
    return s;
}

void api_close(struct agent_apiserver *s)
{
    kr_timer_stop(&s->w->sched, &s->wake);
    for (size_t i = 0; i < CONNS; i++) {
        if (s->links[i].agent != NULL)
            kr_conn_close(s->links[i].agent);
        if (s->links[i].server != NULL)
            kr_conn_close(s->links[i].server);
    }
}

void api_destroy(struct agent_apiserver *s)
{
    world_check(s->w, kr_list_empty(&s->waiting), "somebody still waits for the API server");
    world_check(s->w, s->h2.window_left == AGENT_BUDGET, "the API server's windows did not return");
    kr_timer_stop(&s->w->sched, &s->serve);
    kr_h2_shared_deinit(&s->h2);
    free(s);
}
