/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/mem_pipe.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

enum { TRAVEL_MAX = 64 << 20, ROOM_MAX = 65536 };

struct end {
    struct kr_pipe pipe;
    struct kr_mem_pair *pair;
    struct kr_task task;
    struct kr_buf travelling; /* to this end */
    size_t step;
    size_t cut_after; /* bytes until the link is gone; 0: it stays */
    size_t capacity;
    size_t room; /* of the other end's fill */
    bool stalled;
    bool reading;
    bool want;     /* fill is to be called */
    bool ended;    /* its direction ends behind what fill still has */
    bool flushing; /* closing, what fill still has goes first */
    bool closing;  /* on_close comes next */
    bool closed;
    bool eof_comes; /* the other end closed well */
    bool eof_told;
    int rc;
};

struct kr_mem_pair {
    struct kr_sched *sched;
    struct end ends[2];
};

static struct end *other(struct end *e)
{
    return e == &e->pair->ends[0] ? &e->pair->ends[1] : &e->pair->ends[0];
}

static void wake(struct end *e)
{
    if (!e->closed && (e->pipe.user_ops != NULL || e->closing))
        kr_task_post(e->pair->sched, &e->task);
}

static void on_want_fill(struct kr_pipe *p)
{
    struct end *e = KR_CONTAINER_OF(p, struct end, pipe);

    e->want = true;
    wake(e);
}

static void on_set_reading(struct kr_pipe *p, bool on)
{
    struct end *e = KR_CONTAINER_OF(p, struct end, pipe);

    e->reading = on;
    wake(e);
}

static void on_close(struct kr_pipe *p, enum kr_pipe_close how)
{
    struct end *e = KR_CONTAINER_OF(p, struct end, pipe);

    if (e->closing || e->flushing)
        return;
    e->flushing = how == KR_PIPE_FLUSH && p->user_ops != NULL;
    e->closing = !e->flushing;
    wake(e);
}

static const struct kr_pipe_ops pipe_ops = {on_want_fill, on_set_reading, on_close};

static void free_pair(struct kr_mem_pair *m)
{
    for (int i = 0; i < 2; i++) {
        kr_task_cancel(&m->ends[i].task);
        kr_buf_deinit(&m->ends[i].travelling);
    }
    free(m);
}

static void finish(struct end *e)
{
    struct end *o = other(e);
    bool aborted = !e->flushing;
    struct kr_note note = {"closed"};

    e->closed = true;
    kr_task_cancel(&e->task);
    kr_buf_deinit(&e->travelling);
    if (aborted && !o->closed && !o->closing) {
        o->closing = true;
        o->flushing = false;
        o->rc = KR_ECONNLOST;
    }
    o->eof_comes = true;
    wake(o);
    if (e->pipe.user_ops != NULL)
        e->pipe.user_ops->on_close(e->pipe.user, e->rc, &note);
    if (o->closed)
        free_pair(e->pair);
}

static bool may_push(const struct end *e)
{
    return e->reading && !e->stalled && !e->closing && !e->flushing;
}

/* Asks for bytes while the other side has room; false: something is left to ask for. */
static bool pull(struct end *e)
{
    static uint8_t out[ROOM_MAX];
    struct end *o = other(e);

    while (e->want && !e->closing && (o->closed || o->travelling.n < o->capacity)) {
        size_t n = e->pipe.user_ops->fill(e->pipe.user, out, o->room);

        KR_ASSERT(n <= o->room);
        if (n == 0)
            e->want = false;
        else if (!o->closed && kr_buf_append(&o->travelling, kr_bytes_of(out, n)) != 0)
            abort();
    }
    if (o->travelling.n != 0 && may_push(o))
        wake(o); /* two stalled ends must not wake each other for ever */
    return !e->want;
}

static void push(struct end *e)
{
    size_t n = e->step != 0 && e->step < e->travelling.n ? e->step : e->travelling.n;
    bool cut = e->cut_after != 0 && e->cut_after <= n;
    uint8_t *copy; /* its own block, so that a sanitizer sees an overrun */

    n = cut ? e->cut_after : n;
    e->cut_after -= e->cut_after != 0 ? n : 0;
    copy = malloc(n + 1);
    KR_ASSERT(copy != NULL);
    memcpy(copy, e->travelling.p, n);
    kr_buf_drop(&e->travelling, n);
    e->pipe.user_ops->on_bytes(e->pipe.user, kr_bytes_of(copy, n));
    free(copy);
    if (cut)
        kr_mem_pair_cut(e->pair, KR_ECONNLOST);
    wake(other(e));
    wake(e);
}

static void run(struct kr_task *t)
{
    struct end *e = KR_CONTAINER_OF(t, struct end, task);

    if (!e->closing) {
        bool dry;

        e->want |= e->flushing;
        dry = pull(e);
        e->closing |= dry && e->flushing;
        if (dry && e->ended && !other(e)->eof_comes) {
            other(e)->eof_comes = true;
            wake(other(e));
        }
    }
    if (e->closing) {
        finish(e);
    } else if (may_push(e) && e->travelling.n != 0) {
        push(e);
    } else if (may_push(e) && e->eof_comes && !e->eof_told) {
        e->eof_told = true;
        e->pipe.user_ops->on_eof(e->pipe.user);
    }
}

struct kr_mem_pair *kr_mem_pair_create(struct kr_sched *sched)
{
    struct kr_mem_pair *m = calloc(1, sizeof *m);

    KR_ASSERT(m != NULL);
    m->sched = sched;
    for (int i = 0; i < 2; i++) {
        struct end *e = &m->ends[i];

        e->pipe.ops = &pipe_ops;
        e->pair = m;
        e->capacity = 65536;
        e->room = 16384;
        kr_buf_init(&e->travelling, TRAVEL_MAX);
        kr_task_init(&e->task, run);
    }
    return m;
}

void kr_mem_pair_destroy(struct kr_mem_pair *m)
{
    if (m != NULL)
        free_pair(m);
}

struct kr_pipe *kr_mem_pair_end(struct kr_mem_pair *m, int end)
{
    return &m->ends[end].pipe;
}

void kr_mem_pair_step(struct kr_mem_pair *m, int end, size_t n)
{
    m->ends[end].step = n;
}

void kr_mem_pair_stall(struct kr_mem_pair *m, int end, bool stalled)
{
    m->ends[end].stalled = stalled;
    wake(&m->ends[end]);
}

void kr_mem_pair_capacity(struct kr_mem_pair *m, int end, size_t capacity, size_t room)
{
    KR_ASSERT(room >= 1024 && room <= ROOM_MAX);
    m->ends[end].capacity = capacity;
    m->ends[end].room = room;
}

void kr_mem_pair_cut(struct kr_mem_pair *m, int rc)
{
    for (int i = 0; i < 2; i++) {
        struct end *e = &m->ends[i];

        if (e->closed)
            continue;
        e->closing = true;
        e->flushing = false;
        e->rc = rc;
        wake(e);
    }
}

void kr_mem_pair_cut_after(struct kr_mem_pair *m, int end, size_t n)
{
    m->ends[end].cut_after = n;
}

bool kr_mem_pair_reading(const struct kr_mem_pair *m, int end)
{
    return m->ends[end].reading;
}

size_t kr_mem_pair_waiting(const struct kr_mem_pair *m, int end)
{
    return m->ends[end].travelling.n;
}

/* ---- the plain peer ---- */

static void peer_bytes(void *user, struct kr_bytes in)
{
    struct kr_mem_peer *p = user;

    KR_ASSERT(kr_buf_append(&p->in, in) == 0);
}

static size_t peer_fill(void *user, uint8_t *out, size_t room)
{
    struct kr_mem_peer *p = user;
    size_t n = p->out.n < room ? p->out.n : room;

    if (n != 0)
        memcpy(out, p->out.p, n);
    kr_buf_drop(&p->out, n);
    return n;
}

static void peer_eof(void *user)
{
    struct kr_mem_peer *p = user;

    p->eof = true;
}

static void peer_close(void *user, int rc, const struct kr_note *why)
{
    struct kr_mem_peer *p = user;

    (void)why;
    p->closed = true;
    p->rc = rc;
    p->pipe = NULL;
}

static const struct kr_pipe_user peer_ops = {peer_bytes, peer_fill, peer_eof, peer_close};

void kr_mem_peer_init(struct kr_mem_peer *p, struct kr_pipe *pipe)
{
    *p = (struct kr_mem_peer){.pipe = pipe};
    kr_buf_init(&p->in, TRAVEL_MAX);
    kr_buf_init(&p->out, TRAVEL_MAX);
    kr_pipe_attach(pipe, &peer_ops, p);
}

void kr_mem_peer_deinit(struct kr_mem_peer *p)
{
    kr_buf_deinit(&p->in);
    kr_buf_deinit(&p->out);
}

void kr_mem_peer_send(struct kr_mem_peer *p, struct kr_bytes bytes)
{
    if (p->pipe == NULL)
        return;
    KR_ASSERT(kr_buf_append(&p->out, bytes) == 0);
    kr_pipe_want_fill(p->pipe);
}

void kr_mem_peer_end(struct kr_mem_peer *p)
{
    struct end *e;

    if (p->pipe == NULL)
        return;
    e = KR_CONTAINER_OF(p->pipe, struct end, pipe);
    e->ended = e->want = true;
    wake(e);
}

void kr_mem_peer_close(struct kr_mem_peer *p, enum kr_pipe_close how)
{
    if (p->pipe != NULL)
        kr_pipe_close(p->pipe, how);
}
