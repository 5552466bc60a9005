/* SPDX-License-Identifier: Apache-2.0 */
/* h1_client_world: an HTTP/1.1 client, joined to a server that speaks plain bytes. */
#ifndef H1_CLIENT_WORLD_H
#define H1_CLIENT_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "fakes/mem_pipe.h"
#include "fakes/recorder.h"
#include "http/h1_conn.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

struct world {
    struct kr_sched sched;
    struct kr_mem_pair *pair;
    struct kr_mem_peer peer; /* the server, end 1; the client is end 0 */
    struct kr_rec_conn client;
    int64_t now_ms;
};

static inline void run(struct world *w, int64_t ms)
{
    w->now_ms += ms;
    kr_sched_run(&w->sched, w->now_ms, 0);
}

static inline void setup_with(struct world *w, size_t step)
{
    struct kr_h1_config cfg = {
        .sched = &w->sched,
        .user_ops = &kr_rec_conn_ops,
        .owner = &w->client,
        .idle_timeout_ms = 60000,
    };

    *w = (struct world){0};
    kr_sched_init(&w->sched, 0, 0);
    w->pair = kr_mem_pair_create(&w->sched);
    kr_mem_pair_step(w->pair, 0, step);
    kr_rec_conn_init(&w->client);
    kr_mem_peer_init(&w->peer, kr_mem_pair_end(w->pair, 1));
    w->client.conn = kr_h1_client_create(&cfg, kr_mem_pair_end(w->pair, 0));
    assert_non_null(w->client.conn);
    run(w, 0);
}

static inline void setup(struct world *w)
{
    setup_with(w, 0);
}

static inline void teardown(struct world *w)
{
    if (w->client.conn != NULL)
        kr_conn_close(w->client.conn);
    kr_mem_peer_close(&w->peer, KR_PIPE_ABORT);
    run(w, 0);
    run(w, 100000);
    assert_int_equal(w->client.closed, 1);
    assert_true(w->peer.closed);
    kr_mem_peer_deinit(&w->peer);
    kr_rec_conn_deinit(&w->client);
    kr_sched_deinit(&w->sched);
}

static inline void say(struct world *w, const char *text)
{
    kr_mem_peer_send(&w->peer, kr_bytes_str(text));
    run(w, 0);
}

static inline void hear(struct world *w, const char *want)
{
    run(w, 0);
    kr_buf_append(&w->peer.in, kr_bytes_of("", 1));
    assert_string_equal((const char *)w->peer.in.p, want);
    w->peer.in.n = 0;
}

static inline struct kr_rec *get(struct world *w)
{
    struct kr_rec *r = kr_rec_open(&w->client, "GET", "/x?y", true, NULL);

    assert_non_null(r);
    run(w, 0);
    w->peer.in.n = 0;
    return r;
}

static inline void body_is(const struct kr_rec *r, const char *want)
{
    assert_int_equal(r->in.n, strlen(want));
    assert_memory_equal(r->in.p, want, strlen(want));
}

#endif
