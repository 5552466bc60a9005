/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 connections under arbitrary input and arbitrary users. The first three bytes choose the
 * role and the size of the pieces, the seed of what the user does in its callbacks, and how the
 * peer ends; the rest is what the peer sends. Invariants: those that recorder checks (order of
 * calls, one end each), no request behind an upgrade, on_close exactly once, nothing left behind.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "fakes/mem_pipe.h"
#include "fakes/recorder.h"
#include "http/h1_conn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    struct kr_sched sched;
    struct kr_mem_pair *pair;
    struct kr_mem_peer peer;
    struct kr_rec_conn ours;
    uint32_t seed;
    bool client;
    bool upgrades; /* the client asks for nothing else */
    int64_t now_ms;
};

static unsigned dice(struct world *w)
{
    uint32_t z = w->seed += 0x9e3779b9u;

    z = (z ^ z >> 16) * 0x85ebca6bu;
    z = (z ^ z >> 13) * 0xc2b2ae35u;
    return (z ^ z >> 16) & 31;
}

static void answer(struct world *w, struct kr_rec *r)
{
    static const char *const length[] = {"content-length", "5", NULL};
    static const char *const upgrade[] = {"upgrade", "x", NULL};
    unsigned d = dice(w);

    if (r->aux != NULL) /* answered already */
        return;
    r->aux = w;
    if (r->upgrade && d & 8) {
        kr_rec_answer(r, 101, "raw", upgrade);
        r->out_end = d & 1;
        return;
    }
    kr_rec_answer(r, d & 1 ? 200 : 204, d & 2 ? "hello" : NULL, d & 4 ? length : NULL);
}

static struct world *current; /* the recorder's hooks carry no owner */

static void step(struct kr_rec *r)
{
    struct world *w = current;
    unsigned d = dice(w);

    if (r->ex == NULL)
        return;
    if (d < 8 && !w->client)
        answer(w, r);
    else if (d == 8 && dice(w) < 8)
        kr_rec_abort(r);
    else if (d == 9 && dice(w) < 8 && w->ours.conn != NULL)
        kr_conn_close(w->ours.conn);
    else if (d == 10 && w->ours.conn != NULL)
        kr_conn_drain(w->ours.conn);
    else if (d == 11)
        kr_exchange_ready(r->ex);
    else if (d == 12)
        kr_exchange_drop_head(r->ex);
    else if (d == 13 && !w->client)
        kr_exchange_send_continue(r->ex);
    else if (d == 14)
        r->hold = !r->hold;
    else if (d == 15)
        kr_rec_release(r);
    else if (d == 16 && (w->client || r->aux != NULL))
        kr_rec_send(r, "raw", r->out_end || dice(w) < 4);
}

static void hook(struct kr_rec *r)
{
    r->on_head = r->on_body = r->on_end = r->on_take = step;
}

static void on_request(struct kr_rec_conn *c, struct kr_rec *r)
{
    KR_ASSERT(c->n < 2 || !c->recs[c->n - 2].upgrade); /* behind one is never a request */
    hook(r);
    step(r);
    if (c->n == KR_REC_MAX && r->ex != NULL) /* the recorder is full */
        kr_rec_abort(r);
}

static void open_some(struct world *w)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT"};
    struct kr_rec *r;
    bool end = dice(w) & 1;
    bool upgrade = w->upgrades || dice(w) < 8;

    if (w->ours.conn == NULL || w->ours.n >= KR_REC_MAX)
        return;
    if (upgrade)
        r = kr_rec_open_upgrade(&w->ours, methods[dice(w) & 3], "/x", "SPDY/3.1", NULL);
    else
        r = kr_rec_open(&w->ours, methods[dice(w) & 3], "/x", end, NULL);
    if (r == NULL)
        return;
    hook(r);
    if (upgrade || !end)
        kr_rec_send(r, "some body", dice(w) < 8);
}

static void run(struct world *w, int64_t ms)
{
    w->now_ms += ms;
    kr_sched_run(&w->sched, w->now_ms, w->now_ms);
}

/* What every live exchange does between two pieces of input. */
static void poke(struct world *w)
{
    for (size_t i = 0; i < w->ours.n; i++) {
        if (w->ours.recs[i].ex != NULL)
            step(&w->ours.recs[i]);
    }
    if (w->client)
        open_some(w);
    run(w, dice(w) == 0 ? 20000 : 1);
}

static void begin(struct world *w, uint8_t mode, uint8_t seed)
{
    struct kr_h1_config cfg = {
        .sched = &w->sched,
        .user_ops = &kr_rec_conn_ops,
        .owner = &w->ours,
        .max_head = 8192,
        .head_timeout_ms = 10000,
        .idle_timeout_ms = 60000,
    };
    struct kr_pipe *pipe;

    *w = (struct world){.seed = seed, .client = mode & 1, .upgrades = mode & 128};
    kr_sched_init(&w->sched, 0, 0);
    w->pair = kr_mem_pair_create(&w->sched);
    kr_mem_pair_step(w->pair, 1, mode >> 1 & 63);
    kr_rec_conn_init(&w->ours);
    w->ours.on_request = on_request;
    kr_mem_peer_init(&w->peer, kr_mem_pair_end(w->pair, 0));
    pipe = kr_mem_pair_end(w->pair, 1);
    w->ours.conn = mode & 1 ? kr_h1_client_create(&cfg, pipe) : kr_h1_server_create(&cfg, pipe);
    KR_ASSERT(w->ours.conn != NULL);
}

static void end(struct world *w, uint8_t how)
{
    if (how & 2) { /* one direction first */
        kr_mem_peer_end(&w->peer);
        run(w, 0);
        poke(w);
    }
    if (w->peer.pipe != NULL && how & 1)
        kr_mem_pair_cut(w->pair, KR_EIO);
    else
        kr_mem_peer_close(&w->peer, how & 2 ? KR_PIPE_FLUSH : KR_PIPE_ABORT);
    run(w, 0);
    run(w, 100000);
    if (w->ours.conn != NULL)
        kr_conn_close(w->ours.conn);
    run(w, 0);
    KR_ASSERT(w->ours.closed == 1 && w->peer.closed);
    kr_mem_peer_deinit(&w->peer);
    kr_rec_conn_deinit(&w->ours);
    KR_ASSERT(w->sched.count == 0); /* no timer is left */
    kr_sched_deinit(&w->sched);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w;
    size_t piece;

    if (size < 3 || size > 65536)
        return 0;
    current = &w;
    begin(&w, data[0], data[1]);
    piece = (data[2] >> 2) * 4u + 1;
    for (size_t at = 3; at < size; at += piece) {
        w.seed += data[at] * 2654435761u; /* so that the input steers the user too */
        poke(&w);
        kr_mem_peer_send(&w.peer, kr_bytes_of(data + at, piece < size - at ? piece : size - at));
        run(&w, 0);
    }
    poke(&w);
    end(&w, data[2]);
    return 0;
}
