/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted API server and the agent's pool of connections to it: what agent/apiserver.h promises,
 * without sockets, TLS and credentials. */
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
    bool down;
    bool h1; /* it speaks HTTP/1.1 */
};

enum mood { /* what the server does with one request */
            MOOD_GOOD,
            MOOD_REFUSE, /* before it looked at it */
            MOOD_RESET_BEFORE,
            MOOD_RESET_AFTER, /* it ran, but the answer is lost */
            MOOD_RESET_WITHIN,
};

struct turn { /* one request at the server */
    struct call *call;
    struct world *w;
    struct kr_exchange *ex;
    struct kr_timer timer;
    struct kr_timer sip; /* a slow reader takes what it was given */
    enum mood mood;
    bool slow_read;
    size_t owed;
    uint64_t got;
    uint64_t ready; /* of the answer, may be taken */
    uint64_t taken;
    uint64_t size;
    uint64_t stop; /* MOOD_RESET_WITHIN: where */
    bool answering;
};

static void turn_free(struct turn *t)
{
    kr_timer_stop(&t->w->sched, &t->timer);
    kr_timer_stop(&t->w->sched, &t->sip);
    free(t);
}

static void reset(struct turn *t, enum kr_abort how)
{
    kr_exchange_abort(t->ex, how);
    turn_free(t);
}

static void sip(struct kr_timer *timer)
{
    struct turn *t = KR_CONTAINER_OF(timer, struct turn, sip);
    size_t n = t->owed;

    t->owed = 0;
    kr_exchange_consumed(t->ex, n);
}

static void on_body(void *user, struct kr_bytes in)
{
    struct turn *t = user;

    for (size_t i = 0; i < in.n; i++, t->got++)
        world_check(t->w, in.p[i] == world_byte(t->call, true, t->got),
                    "call %u: byte %llu of the request is wrong", t->call->id,
                    (unsigned long long)t->got);
    t->owed += in.n;
    if (!t->slow_read)
        sip(&t->sip);
    else if (!kr_timer_running(&t->sip))
        kr_timer_start(&t->w->sched, &t->sip, kr_rand_ms(&t->w->rand, 1, 500));
}

/* The request is whole: now it runs, if it does. */
static void execute(struct turn *t)
{
    struct call *c = t->call;

    world_check(t->w, t->got == c->up_size, "call %u: %llu of %llu bytes came, ended well", c->id,
                (unsigned long long)t->got, (unsigned long long)c->up_size);
    if ((c->kind == KIND_POST || c->kind == KIND_DELETE) && t->mood != MOOD_RESET_BEFORE &&
        t->mood != MOOD_REFUSE)
        c->executed++;
}

static void on_end(void *user, const struct kr_head *trailers)
{
    struct turn *t = user;

    (void)trailers;
    if (t->call->kind == KIND_EARLY)
        return;
    execute(t);
    kr_timer_start(&t->w->sched, &t->timer, kr_rand_ms(&t->w->rand, 0, 2000));
}

static size_t available(void *user, bool *end)
{
    struct turn *t = user;

    *end = t->ready == t->size;
    return (size_t)(t->ready - t->taken);
}

static void take(void *user, uint8_t *out, size_t n)
{
    struct turn *t = user;

    for (size_t i = 0; i < n; i++)
        out[i] = world_byte(t->call, false, t->taken++);
}

static void on_done(void *user, int rc)
{
    struct turn *t = user;

    world_check(t->w, !t->w->calm || rc == 0 || t->call->left, "call %u: rc %d at the server",
                t->call->id, rc);
    turn_free(t);
}

static const struct kr_exchange_user turn_ops = {NULL, on_body, on_end, available, take, on_done};

static void send_head(struct turn *t)
{
    static const int statuses[] = {200, 201, 200, 200, 413};
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    head.status = statuses[t->call->kind];
    kr_head_add_str(&head, "content-type", "application/json");
    if (t->call->kind != KIND_WATCH)
        kr_head_add_u64(&head, "content-length", t->size);
    KR_ASSERT(kr_exchange_send_head(t->ex, &head, false) == 0);
    kr_head_deinit(&head);
    t->answering = true;
}

/* A watch ends with an event; its size is cut down to that. */
static uint64_t whole_events(const struct call *c, uint64_t n)
{
    while (n != 0 && world_byte(c, false, n - 1) != '\n')
        n--;
    return n;
}

static void go_on(struct kr_timer *timer)
{
    struct turn *t = KR_CONTAINER_OF(timer, struct turn, timer);
    bool slow = t->call->kind == KIND_WATCH || world_one_in(t->w, 3);
    uint64_t n = slow ? kr_rand_below(&t->w->rand, 30000) : UINT64_MAX;

    if (t->mood == MOOD_REFUSE || t->mood == MOOD_RESET_BEFORE || t->mood == MOOD_RESET_AFTER) {
        reset(t, t->mood == MOOD_REFUSE ? KR_ABORT_REFUSED : KR_ABORT_INTERNAL);
        return;
    }
    if (!t->answering)
        send_head(t);
    if (t->mood == MOOD_RESET_WITHIN && t->ready >= t->stop) {
        reset(t, KR_ABORT_INTERNAL);
        return;
    }
    t->ready = t->size - t->ready < n ? t->size : t->ready + n;
    if (t->ready != t->size || t->mood == MOOD_RESET_WITHIN)
        kr_timer_start(&t->w->sched, &t->timer, kr_rand_ms(&t->w->rand, 1, 600));
    if (t->mood == MOOD_RESET_WITHIN && t->ready == t->size)
        t->ready = t->size - (t->size != 0 && t->taken != t->size); /* its end never comes */
    kr_exchange_ready(t->ex);
}

static enum mood choose_mood(struct world *w)
{
    if (w->calm || !world_one_in(w, 5))
        return MOOD_GOOD;
    return (enum mood)(1 + kr_rand_below(&w->rand, 4));
}

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct agent_apiserver *s = ((struct link *)owner)->s;
    struct turn *t = calloc(1, sizeof *t);
    struct call *c = world_call_of(s->w, ex->head.path);

    KR_ASSERT(t != NULL);
    world_check(s->w, kr_bytes_is(kr_head_get(&ex->head, KR_LIT("impersonate-user")), "sim:alice"),
                "call %u: not the caller's identity", c->id);
    *t = (struct turn){.call = c, .w = s->w, .ex = ex, .mood = choose_mood(s->w)};
    t->size = c->kind == KIND_WATCH ? whole_events(c, c->down_size) : c->down_size;
    t->stop = kr_rand_below(&s->w->rand, t->size); /* before its end */
    c->whole_down = t->size;
    c->arrived++;
    t->slow_read = world_one_in(s->w, 4);
    kr_timer_init(&t->timer, go_on);
    kr_timer_init(&t->sip, sip);
    kr_exchange_attach(ex, &turn_ops, t);
    if (t->mood == MOOD_REFUSE || c->kind == KIND_EARLY)
        kr_timer_start(&s->w->sched, &t->timer, kr_rand_ms(&s->w->rand, 0, 300));
}

/* ---- connections ---- */

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
        if (!s->w->calm && s->w->sched.now_ms < FAULTS_END_MS && world_one_in(s->w, 4))
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

struct agent_apiserver *api_create(struct world *w, struct agent_core *c, bool h1)
{
    struct agent_apiserver *s = calloc(1, sizeof *s);

    KR_ASSERT(s != NULL && kr_h2_shared_init(&s->h2, AGENT_BUDGET) == 0);
    s->w = w;
    s->c = c;
    s->h1 = h1;
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
