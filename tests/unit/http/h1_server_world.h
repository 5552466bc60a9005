/* SPDX-License-Identifier: Apache-2.0 */
/* h1_server_world: a client that speaks plain bytes, joined to an HTTP/1.1 server. */
#ifndef H1_SERVER_WORLD_H
#define H1_SERVER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "fakes/mem_pipe.h"
#include "fakes/recorder.h"
#include "http/h1_conn.h"

enum { WALL_MS = 784111777 }; /* Sat, 10 Jan 1970 01:48:31 GMT */

#define DATE "date: Sat, 10 Jan 1970 01:48:31 GMT\r\n"
#define GET "GET / HTTP/1.1\r\nHost: h\r\n"
#define POST "POST / HTTP/1.1\r\nHost: h\r\n"

struct world {
    struct kr_sched sched;
    struct kr_mem_pair *pair;
    struct kr_mem_peer peer; /* the client, end 0; the server is end 1 */
    struct kr_rec_conn server;
    int64_t now_ms;
};

static inline void on_bad_request(void *owner, int status, const char *why, struct kr_head *head,
                                  struct kr_buf *body)
{
    (void)owner;
    kr_head_add_str(head, "content-type", "text/plain");
    kr_buf_printf(body, "%d %s", status, why);
}

static inline void run(struct world *w, int64_t ms)
{
    w->now_ms += ms;
    kr_sched_run(&w->sched, w->now_ms, WALL_MS);
}

static inline void setup_with(struct world *w, size_t step)
{
    struct kr_h1_config cfg = {
        .sched = &w->sched,
        .user_ops = &kr_rec_conn_ops,
        .owner = &w->server,
        .head_timeout_ms = 10000,
        .idle_timeout_ms = 90000,
        .on_bad_request = on_bad_request,
    };

    *w = (struct world){0};
    kr_sched_init(&w->sched, 0, WALL_MS);
    w->pair = kr_mem_pair_create(&w->sched);
    kr_mem_pair_step(w->pair, 1, step);
    kr_rec_conn_init(&w->server);
    kr_mem_peer_init(&w->peer, kr_mem_pair_end(w->pair, 0));
    w->server.conn = kr_h1_server_create(&cfg, kr_mem_pair_end(w->pair, 1));
    assert_non_null(w->server.conn);
    run(w, 0);
}

static inline void setup(struct world *w)
{
    setup_with(w, 0);
}

/* Closes what is open and checks that everything ended exactly once. */
static inline void teardown(struct world *w)
{
    if (w->server.conn != NULL)
        kr_conn_close(w->server.conn);
    kr_mem_peer_close(&w->peer, KR_PIPE_ABORT);
    run(w, 0);
    run(w, 100000);
    assert_int_equal(w->server.closed, 1);
    assert_true(w->peer.closed);
    kr_mem_peer_deinit(&w->peer);
    kr_rec_conn_deinit(&w->server);
    kr_sched_deinit(&w->sched);
}

static inline void say(struct world *w, const char *text)
{
    kr_mem_peer_send(&w->peer, kr_bytes_str(text));
    run(w, 0);
}

/* What came to the client since the last call. */
static inline void hear(struct world *w, const char *want)
{
    kr_buf_append(&w->peer.in, kr_bytes_of("", 1));
    assert_string_equal((const char *)w->peer.in.p, want);
    w->peer.in.n = 0;
}

static inline void hear_start(struct world *w, const char *want)
{
    size_t n = strlen(want);

    kr_buf_append(&w->peer.in, kr_bytes_of("", 1));
    if (w->peer.in.n < n || memcmp(w->peer.in.p, want, n) != 0)
        assert_string_equal((const char *)w->peer.in.p, want);
    w->peer.in.n = 0;
}

static inline void answer_hello(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    kr_rec_answer(r, 200, "hello", NULL);
}

#endif
