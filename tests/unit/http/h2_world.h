/* SPDX-License-Identifier: Apache-2.0 */
/* h2_world: an HTTP/2 client and an HTTP/2 server joined in memory under virtual time. */
#ifndef H2_WORLD_H
#define H2_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "fakes/mem_pipe.h"
#include "fakes/recorder.h"
#include "http/h2_session.h"

enum { BUDGET = 8 << 20 };

struct world {
    struct kr_sched sched;
    struct kr_h2_shared shared;
    struct kr_mem_pair *pair; /* end 0 is the client's, end 1 the server's */
    struct kr_rec_conn client;
    struct kr_rec_conn server;
    struct kr_h2_config client_cfg; /* a test changes them before join() */
    struct kr_h2_config server_cfg;
    int64_t now_ms;
};

static inline void run(struct world *w, int64_t ms)
{
    w->now_ms += ms;
    kr_sched_run(&w->sched, w->now_ms, w->now_ms);
}

static inline void prepare(struct world *w)
{
    *w = (struct world){.now_ms = 1000};
    kr_sched_init(&w->sched, w->now_ms, w->now_ms);
    assert_int_equal(kr_h2_shared_init(&w->shared, BUDGET), 0);
    w->pair = kr_mem_pair_create(&w->sched);
    kr_rec_conn_init(&w->client);
    kr_rec_conn_init(&w->server);
    w->client_cfg = (struct kr_h2_config){.sched = &w->sched,
                                          .user_ops = &kr_rec_conn_ops,
                                          .owner = &w->client,
                                          .shared = &w->shared};
    w->server_cfg = w->client_cfg;
    w->server_cfg.server = true;
    w->server_cfg.owner = &w->server;
}

static inline void join(struct world *w)
{
    w->client.conn = kr_h2_create(&w->client_cfg, kr_mem_pair_end(w->pair, 0));
    w->server.conn = kr_h2_create(&w->server_cfg, kr_mem_pair_end(w->pair, 1));
    assert_non_null(w->client.conn);
    assert_non_null(w->server.conn);
    run(w, 0);
    assert_int_equal(w->client.ready, 1);
    assert_int_equal(w->server.ready, 1);
}

/* Bytes are handed over `step` at a time in both directions; 0: as they come. */
static inline void setup(struct world *w, size_t step)
{
    prepare(w);
    kr_mem_pair_step(w->pair, 0, step);
    kr_mem_pair_step(w->pair, 1, step);
    join(w);
}

static inline void finish(struct world *w)
{
    if (w->client.conn != NULL)
        kr_conn_close(w->client.conn);
    if (w->server.conn != NULL)
        kr_conn_close(w->server.conn);
    run(w, 0);
    assert_int_equal(w->client.closed, 1);
    assert_int_equal(w->server.closed, 1);
    assert_int_equal(w->shared.window_left, BUDGET); /* what was lent came back */
    kr_rec_conn_deinit(&w->client);
    kr_rec_conn_deinit(&w->server);
    kr_h2_shared_deinit(&w->shared);
    kr_sched_deinit(&w->sched);
}

static inline void assert_text(const struct kr_buf *b, const char *text)
{
    assert_int_equal(b->n, strlen(text));
    if (b->n != 0)
        assert_memory_equal(b->p, text, b->n);
}

/* Bytes of a pattern in which a lost, doubled or moved run shows. */
static inline void append_pattern(struct kr_buf *b, size_t from, size_t n)
{
    assert_int_equal(kr_buf_reserve(b, n), 0);
    for (size_t i = from; i < from + n; i++)
        b->p[b->n++] = (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16));
}

static inline void assert_pattern(const struct kr_buf *b, size_t n)
{
    struct kr_buf want = {.max = SIZE_MAX};

    assert_int_equal(b->n, n);
    append_pattern(&want, 0, n);
    if (n != 0)
        assert_memory_equal(b->p, want.p, n);
    kr_buf_deinit(&want);
}

static inline void send_pattern(struct kr_rec *r, size_t n, bool end)
{
    append_pattern(&r->out, 0, n);
    r->out_end = end;
    kr_exchange_ready(r->ex);
}

static inline void begin_answer(struct kr_rec *r, int status)
{
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    head.status = status;
    assert_int_equal(kr_exchange_send_head(r->ex, &head, false), 0);
    kr_head_deinit(&head);
}

#endif
