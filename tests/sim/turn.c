/* SPDX-License-Identifier: Apache-2.0 */
/* What the scripted API servers of the relay's world do with a request. */
#include <stdlib.h>

#include "base/assert.h"
#include "world.h"

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

void turn_begin(struct agent_core *core, struct kr_exchange *ex)
{
    struct world *w = KR_CONTAINER_OF(core, struct edge, core)->w;
    struct turn *t = calloc(1, sizeof *t);
    struct call *c = world_call_of(w, ex->head.path);

    KR_ASSERT(t != NULL);
    world_check(w, kr_bytes_is(kr_head_get(&ex->head, KR_LIT("impersonate-user")), "sim:alice"),
                "call %u: not the caller's identity", c->id);
    *t = (struct turn){.call = c, .w = w, .ex = ex, .mood = choose_mood(w)};
    t->size = c->kind == KIND_WATCH ? whole_events(c, c->down_size) : c->down_size;
    t->stop = kr_rand_below(&w->rand, t->size); /* before its end */
    c->whole_down = t->size;
    c->arrived++;
    t->slow_read = world_one_in(w, 4);
    kr_timer_init(&t->timer, go_on);
    kr_timer_init(&t->sip, sip);
    kr_exchange_attach(ex, &turn_ops, t);
    if (t->mood == MOOD_REFUSE || c->kind == KIND_EARLY)
        kr_timer_start(&w->sched, &t->timer, kr_rand_ms(&w->rand, 0, 300));
}
