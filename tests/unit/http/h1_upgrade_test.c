/* SPDX-License-Identifier: Apache-2.0 */
/* A client and a server of ours, joined and upgraded: sessions as exec holds them. */
#include "http/h1_conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fakes/mem_pipe.h"
#include "fakes/recorder.h"

struct world {
    struct kr_sched sched;
    struct kr_mem_pair *pair;
    struct kr_rec_conn *ends; /* 0: client, 1: server */
    struct kr_rec *recs[2];
    uint32_t seed;
    int64_t now_ms;
};

static unsigned dice(struct world *w, unsigned sides)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (w->seed >> 8) % sides;
}

static void run(struct world *w)
{
    w->now_ms += dice(w, 3) * 50;
    kr_sched_run(&w->sched, w->now_ms, 0);
}

static void on_request(struct kr_rec_conn *c, struct kr_rec *r)
{
    struct kr_head head;

    (void)c;
    kr_head_init(&head, 4096);
    head.status = 101;
    assert_int_equal(kr_head_add_str(&head, "upgrade", "websocket"), 0);
    assert_int_equal(kr_exchange_send_head(r->ex, &head, false), 0);
    kr_head_deinit(&head);
}

static void setup(struct world *w, uint32_t seed)
{
    *w = (struct world){.seed = seed, .ends = calloc(2, sizeof *w->ends)};
    kr_sched_init(&w->sched, 0, 0);
    w->pair = kr_mem_pair_create(&w->sched);
    for (int e = 0; e < 2; e++) {
        struct kr_h1_config cfg = {.sched = &w->sched,
                                   .user_ops = &kr_rec_conn_ops,
                                   .owner = &w->ends[e],
                                   .head_timeout_ms = 100,
                                   .idle_timeout_ms = 100};
        struct kr_pipe *pipe = kr_mem_pair_end(w->pair, e);

        kr_mem_pair_step(w->pair, e, dice(w, 4) == 0 ? 0 : 1 + dice(w, 5000));
        kr_mem_pair_capacity(w->pair, e, 1 + dice(w, 70000), 1024 + dice(w, 30000));
        kr_rec_conn_init(&w->ends[e]);
        w->ends[e].conn =
            e == 0 ? kr_h1_client_create(&cfg, pipe) : kr_h1_server_create(&cfg, pipe);
    }
    w->ends[1].on_request = on_request;
    w->recs[0] = kr_rec_open_upgrade(&w->ends[0], "GET", "/exec", "websocket", NULL);
    w->recs[1] = &w->ends[1].recs[0];
    kr_sched_run(&w->sched, 0, 0);
    assert_true(w->recs[0]->headed);
}

static void teardown(struct world *w)
{
    for (int e = 0; e < 2; e++) {
        if (w->ends[e].conn != NULL)
            kr_conn_close(w->ends[e].conn);
    }
    run(w);
    for (int e = 0; e < 2; e++) {
        assert_int_equal(w->ends[e].closed, 1);
        assert_int_equal(w->recs[e]->done, 1);
        kr_rec_conn_deinit(&w->ends[e]);
    }
    assert_int_equal(w->sched.count, 0);
    kr_sched_deinit(&w->sched);
    free(w->ends);
}

/* Lets the receiver be slow at random, until both are at rest. */
static void settle(struct world *w, int sender)
{
    struct kr_rec *to = w->recs[1 - sender];

    for (int i = 0; i < 400 && !to->ended; i++) {
        kr_mem_pair_stall(w->pair, (int)dice(w, 2), dice(w, 3) == 0);
        to->hold = dice(w, 3) == 0;
        if (!to->hold && to->ex != NULL)
            kr_rec_release(to);
        run(w);
    }
    kr_mem_pair_stall(w->pair, 0, false);
    kr_mem_pair_stall(w->pair, 1, false);
    to->hold = false;
    if (to->ex != NULL)
        kr_rec_release(to);
    run(w);
}

#define STATUS "\x82\x2d\x03{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\"}\x88\x02\x03\xe8"

/* F003: output that is still queued, the status, the close frame and the end, all at once, while
 * the other side types. All of it arrives, then the end. */
static void session(struct world *w, int sender)
{
    static uint8_t output[200000];
    struct kr_rec *from = w->recs[sender];
    struct kr_rec *to = w->recs[1 - sender];
    size_t n = 1 + dice(w, sizeof output);

    for (size_t i = 0; i < n; i++)
        output[i] = (uint8_t)dice(w, 256);
    kr_rec_send(to, "typed before", false);
    if (dice(w, 2) == 0)
        run(w);
    kr_rec_send_bytes(from, kr_bytes_of(output, n), false);
    if (dice(w, 2) == 0)
        run(w);
    if (to->ex != NULL)
        kr_rec_send(to, " and after", false);
    kr_rec_send_bytes(from, kr_bytes_of(STATUS, sizeof STATUS - 1), true);
    settle(w, sender);
    assert_int_equal(to->in.n, n + sizeof STATUS - 1);
    assert_memory_equal(to->in.p, output, n);
    assert_memory_equal(to->in.p + n, STATUS, sizeof STATUS - 1);
    assert_true(to->ended);
    assert_int_equal(from->done, 1);
    assert_int_equal(from->rc, 0);
    assert_true(from->in.n <= strlen("typed before and after"));
    if (from->in.n != 0)
        assert_memory_equal(from->in.p, "typed before and after", from->in.n);
    if (to->ex != NULL) { /* the answer to the end */
        kr_rec_send(to, "", true);
        run(w);
    }
    assert_int_equal(to->done, 1);
}

enum { NONE = 1000 };
static uint32_t running = NONE; /* the seed of the session */

static int tell_seed(void **state)
{
    (void)state;
    if (running != NONE)
        print_message("seed %u\n", running);
    return 0;
}

static void
test_session_when_either_side_ends_with_data_in_flight_then_all_of_it_comes(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 200; seed++) {
        struct world w;

        setup(&w, seed);
        running = seed;
        session(&w, seed & 1);
        teardown(&w);
    }
    running = NONE;
}

static void test_session_when_both_sides_end_at_once_then_both_are_done(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 100; seed++) {
        struct world w;

        setup(&w, seed);
        for (int e = 0; e < 2; e++)
            kr_rec_send(w.recs[e], "over", true);
        run(&w);
        for (int e = 0; e < 2; e++) {
            assert_int_equal(w.recs[e]->done, 1);
            assert_int_equal(w.recs[e]->rc, 0);
            assert_int_equal(w.ends[e].closed, 1);
        }
        teardown(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            test_session_when_either_side_ends_with_data_in_flight_then_all_of_it_comes, tell_seed),
        cmocka_unit_test(test_session_when_both_sides_end_at_once_then_both_are_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
