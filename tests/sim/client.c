/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of the hub and what they may rely on. */
#include <stdio.h>

#include "base/assert.h"
#include "base/err.h"
#include "world.h"

/* ---- one call ---- */

static struct call *started(void *user)
{
    struct call *c = user;

    world_check(c->w, c->ex != NULL && c->done == 0, "call %u: called back after its end", c->id);
    return c;
}

static void on_head(void *user)
{
    struct call *c = started(user);

    world_check(c->w, !c->headed, "call %u: two heads", c->id);
    c->headed = true;
    c->status = c->ex->head.status;
    c->from_api = kr_head_find(&c->ex->head, KR_LIT("warning")) == NULL;
}

static void sip(struct kr_timer *t)
{
    struct call *c = KR_CONTAINER_OF(t, struct call, sip);
    size_t n = c->owed;

    c->owed = 0;
    if (c->ex != NULL)
        kr_exchange_consumed(c->ex, n);
}

static void on_body(void *user, struct kr_bytes in)
{
    struct call *c = started(user);

    world_check(c->w, c->headed && !c->ended, "call %u: body out of place", c->id);
    for (size_t i = 0; i < in.n && c->from_api; i++) {
        c->last = in.p[i];
        world_check(c->w, c->last == world_byte(c, false, c->down_got),
                    "call %u: byte %llu of the answer is wrong", c->id,
                    (unsigned long long)c->down_got);
        c->down_got++;
    }
    if (c->slow_read) {
        c->owed += in.n;
        if (!kr_timer_running(&c->sip))
            kr_timer_start(&c->w->sched, &c->sip, kr_rand_ms(&c->w->rand, 1, 800));
    } else {
        kr_exchange_consumed(c->ex, in.n);
    }
}

static void on_end(void *user, const struct kr_head *trailers)
{
    struct call *c = started(user);

    (void)trailers;
    world_check(c->w, c->headed && !c->ended, "call %u: a second end", c->id);
    c->ended = true;
}

static size_t available(void *user, bool *end)
{
    struct call *c = started(user);

    *end = c->up_ready == c->up_size;
    return (size_t)(c->up_ready - c->up_taken);
}

static void take(void *user, uint8_t *out, size_t n)
{
    struct call *c = started(user);

    for (size_t i = 0; i < n; i++)
        out[i] = world_byte(c, true, c->up_taken++);
}

static void stop_timers(struct call *c)
{
    if (c->own.client != NULL)
        kr_conn_close(c->own.client);
    kr_timer_stop(&c->w->sched, &c->start);
    kr_timer_stop(&c->w->sched, &c->leave);
    kr_timer_stop(&c->w->sched, &c->sip);
    kr_timer_stop(&c->w->sched, &c->pour);
}

static void on_done(void *user, int rc)
{
    struct call *c = started(user);

    c->done++;
    c->rc = rc;
    c->ex = NULL;
    stop_timers(c);
    world_trace(c->w, "call %u kind %d: %d, rc %d, %llu of %llu bytes, executed %d", c->id, c->kind,
                c->status, rc, (unsigned long long)c->down_got, (unsigned long long)c->down_size,
                c->executed);
}

static const struct kr_exchange_user call_ops = {
    on_head, on_body, on_end, available, take, on_done,
};

static void pour(struct kr_timer *t)
{
    struct call *c = KR_CONTAINER_OF(t, struct call, pour);
    uint64_t left = c->up_size - c->up_ready;
    uint64_t n = c->slow_write ? kr_rand_below(&c->w->rand, 40000) : left;

    c->up_ready += n < left ? n : left;
    if (c->up_ready != c->up_size)
        kr_timer_start(&c->w->sched, &c->pour, kr_rand_ms(&c->w->rand, 1, 400));
    if (c->ex != NULL)
        kr_exchange_ready(c->ex);
}

static void make_head(const struct call *c, struct kr_head *h, char path[128])
{
    static const char *const methods[] = {"GET", "POST", "GET", "DELETE", "PUT"};

    snprintf(path, 128, "/clusters/edge-%u/api/v1/namespaces/default/configmaps%s?%ssim=%u",
             c->id % CLUSTERS, c->kind == KIND_POST || c->kind == KIND_WATCH ? "" : "/x",
             c->kind == KIND_WATCH ? "watch=true&" : "", c->id);
    kr_head_init(h, KR_HEAD_MAX);
    h->method = kr_bytes_str(methods[c->kind]);
    h->scheme = KR_LIT("https");
    h->authority = KR_LIT("hub:6443");
    h->path = kr_bytes_str(path);
}

static void begin(struct kr_timer *t)
{
    struct call *c = KR_CONTAINER_OF(t, struct call, start);
    struct user *u = c->h1 ? &c->own : &c->w->users[c->id % USERS];
    bool bodiless = c->kind != KIND_POST && c->kind != KIND_EARLY;
    struct kr_head head;
    char path[128];

    if (c->h1)
        user_start(u, c->w, true);
    if (u->client == NULL)
        return;
    c->started_ms = c->w->sched.now_ms;
    make_head(c, &head, path);
    c->ex = kr_conn_open(u->client, &head, bodiless, &call_ops, c);
    kr_head_deinit(&head);
    c->opened = c->ex != NULL;
    if (c->opened && !bodiless)
        pour(&c->pour);
}

void call_give_up(struct call *c)
{
    struct kr_exchange *ex = c->ex;

    stop_timers(c);
    if (ex == NULL)
        return;
    world_trace(c->w, "call %u: the client leaves", c->id);
    c->ex = NULL;
    c->left = true;
    kr_exchange_abort(ex, KR_ABORT_CANCEL);
}

static void leave(struct kr_timer *t)
{
    call_give_up(KR_CONTAINER_OF(t, struct call, leave));
}

void call_plan(struct call *c, struct world *w, unsigned id)
{
    int64_t at = kr_rand_ms(&w->rand, 500, FAULTS_END_MS - 2000);
    uint64_t most = world_one_in(w, 4) ? 250000 : 3000;

    *c = (struct call){.w = w, .id = id, .h1 = world_one_in(w, 4)};
    c->kind = (enum kind)kr_rand_below(&w->rand, KINDS);
    c->slow_read = world_one_in(w, 4);
    c->slow_write = world_one_in(w, 3);
    c->down_size = kr_rand_below(&w->rand, most);
    if (c->kind == KIND_POST || c->kind == KIND_EARLY)
        c->up_size = kr_rand_below(&w->rand, most);
    kr_timer_init(&c->start, begin);
    kr_timer_init(&c->leave, leave);
    kr_timer_init(&c->sip, sip);
    kr_timer_init(&c->pour, pour);
    kr_timer_start(&w->sched, &c->start, at);
    if (!w->calm && world_one_in(w, 6))
        kr_timer_start(&w->sched, &c->leave, at + kr_rand_ms(&w->rand, 0, 3000));
}

/* ---- what must hold at the end ---- */

static void judge_own_answer(const struct call *c)
{
    const struct world *w = c->w;
    bool write = c->kind != KIND_GET && c->kind != KIND_WATCH;

    world_check(w, !w->calm, "call %u: %d though nothing was broken", c->id, c->status);
    world_check(w, c->status == 429 || c->status == 503 || c->status == 504,
                "call %u: status %d of our own", c->id, c->status);
    if (c->status == 429)
        world_check(w, c->kind == KIND_WATCH, "call %u: 429 for no watch", c->id);
    if (c->status == 503)
        world_check(w, !write || c->executed == 0, "call %u: 503 for a write that ran", c->id);
    if (c->status == 504)
        world_check(w, write, "call %u: outcome unknown for a read", c->id);
}

static void judge_api_answer(const struct call *c)
{
    const struct world *w = c->w;

    if (c->kind == KIND_POST || c->kind == KIND_DELETE)
        world_check(w, c->status == (c->kind == KIND_POST ? 201 : 200) && c->executed == 1,
                    "call %u: status %d, executed %d", c->id, c->status, c->executed);
    if (c->kind == KIND_EARLY)
        world_check(w, c->status == 413 && c->executed == 0, "call %u: status %d", c->id,
                    c->status);
    if (c->kind == KIND_WATCH) {
        world_check(w, c->down_got == 0 || c->last == '\n',
                    "call %u: a watch ended well within an event, after %llu bytes", c->id,
                    (unsigned long long)c->down_got);
        if (w->calm)
            world_check(w, c->down_got == c->whole_down, "call %u: events are missing", c->id);
    } else {
        world_check(w, c->down_got == c->down_size, "call %u: %llu of %llu bytes, ended well",
                    c->id, (unsigned long long)c->down_got, (unsigned long long)c->down_size);
    }
}

void call_judge(const struct call *c)
{
    const struct world *w = c->w;

    world_check(w, c->ex == NULL, "call %u: never ended", c->id);
    world_check(w, c->executed <= 1, "call %u: a write ran %d times", c->id, c->executed);
    if (!c->opened || c->left)
        return;
    world_check(w, c->done == 1, "call %u: %d ends", c->id, c->done);
    world_check(w, !w->calm || c->rc == 0, "call %u: rc %d though nothing was broken", c->id,
                c->rc);
    if (c->rc != 0)
        return;
    world_check(w, c->headed && c->ended, "call %u: a good end without an answer", c->id);
    if (c->from_api)
        judge_api_answer(c);
    else
        judge_own_answer(c);
}
