/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tcp_pipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "tls_world.h"

static void attach(struct world_end *e, struct kr_tls_io *io, int fd)
{
    world_end_init(e);
    e->pipe = kr_tcp_pipe_create(io, fd);
    assert_non_null(e->pipe);
    kr_pipe_attach(e->pipe, &world_pipe_user, e);
}

static void connect_pair(struct world *w)
{
    int fds[2];

    world_init(w);
    world_pair(fds);
    attach(&w->client, w->io, fds[0]);
    attach(&w->server, w->io, fds[1]);
}

static bool all_arrived(struct world *w)
{
    return w->client.send_left == 0 && w->server.send_left == 0 &&
           w->client.got_hash == w->server.sent_hash && w->server.got_hash == w->client.sent_hash;
}

static void test_transfer_both_ways_then_bytes_are_equal(void **state)
{
    struct world w;

    (void)state;
    connect_pair(&w);
    w.client.send_left = 5 * 1000 * 1000 + 1;
    w.client.chunk = 777;
    w.server.send_left = 5 * 1000 * 1000 + 3;
    kr_pipe_want_fill(w.client.pipe);
    kr_pipe_want_fill(w.server.pipe);
    assert_true(world_run(&w, all_arrived));
    kr_pipe_close(w.client.pipe, KR_PIPE_FLUSH);
    kr_pipe_close(w.server.pipe, KR_PIPE_FLUSH);
    assert_true(world_run(&w, world_closed));
    assert_int_equal(w.client.closed, 0);
    assert_int_equal(w.server.closes, 1);
    world_deinit(&w);
}

static bool server_eof(struct world *w)
{
    return w->server.eofs != 0;
}

static void test_peer_ends_its_direction_then_eof_and_the_other_one_works(void **state)
{
    struct world w;
    int fds[2];
    char in[4096];
    size_t got = 0;

    (void)state;
    world_init(&w);
    world_pair(fds);
    attach(&w.server, w.io, fds[1]);
    assert_int_equal(write(fds[0], "hello", 5), 5);
    assert_int_equal(shutdown(fds[0], SHUT_WR), 0);
    assert_true(world_run(&w, server_eof));
    assert_int_equal(w.server.got, 5);
    w.server.send_left = 100000;
    kr_pipe_want_fill(w.server.pipe);
    kr_pipe_close(w.server.pipe, KR_PIPE_FLUSH);
    while (got < 100000) {
        ssize_t n = read(fds[0], in, sizeof in);

        got += n > 0 ? (size_t)n : 0;
        kr_loop_turn(w.loop, 0);
    }
    assert_true(world_run(&w, world_closed));
    assert_int_equal(w.server.closed, 0);
    assert_int_equal(read(fds[0], in, sizeof in), 0);
    close(fds[0]);
    world_deinit(&w);
}

static void test_flush_while_peer_still_sends_then_it_gets_the_answer_and_no_reset(void **state)
{
    char in[4096];
    struct world w;
    int fds[2];
    ssize_t n;

    (void)state;
    world_init(&w);
    world_pair(fds);
    attach(&w.server, w.io, fds[1]);
    assert_int_equal(write(fds[0], "request", 7), 7);
    w.server.send_left = 10;
    kr_pipe_close(w.server.pipe, KR_PIPE_FLUSH);
    assert_int_equal(write(fds[0], "more of it", 10), 10);
    assert_true(world_run(&w, world_closed));
    assert_int_equal(write(fds[0], "and more", 8), 8); /* the descriptor lingers */
    n = read(fds[0], in, sizeof in);
    assert_int_equal(n, 10);
    assert_int_equal(read(fds[0], in, sizeof in), 0);
    close(fds[0]);
    kr_loop_turn(w.loop, 10);
    world_deinit(&w);
}

static void test_peer_that_takes_nothing_then_flush_ends_at_its_deadline(void **state)
{
    struct world w;
    int fds[2];

    (void)state;
    world_init(&w);
    world_pair(fds);
    attach(&w.server, w.io, fds[1]);
    w.server.send_left = 50 * 1000 * 1000;
    kr_pipe_close(w.server.pipe, KR_PIPE_FLUSH);
    assert_true(world_run(&w, world_closed));
    assert_int_equal(w.server.closed, KR_ETIMEDOUT);
    assert_true(w.server.send_left > 0);
    close(fds[0]);
    world_deinit(&w);
}

static bool server_closed(struct world *w)
{
    return w->server.closes != 0;
}

static void test_peer_gone_while_sending_then_connection_lost(void **state)
{
    struct world w;
    int fds[2];

    (void)state;
    world_init(&w);
    world_pair(fds);
    attach(&w.server, w.io, fds[1]);
    kr_pipe_set_reading(w.server.pipe, false);
    w.server.send_left = 50 * 1000 * 1000;
    kr_pipe_want_fill(w.server.pipe);
    kr_loop_turn(w.loop, 0);
    close(fds[0]);
    assert_true(world_run(&w, server_closed));
    assert_int_equal(w.server.closed, KR_ECONNLOST);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfer_both_ways_then_bytes_are_equal),
        cmocka_unit_test(test_peer_ends_its_direction_then_eof_and_the_other_one_works),
        cmocka_unit_test(test_flush_while_peer_still_sends_then_it_gets_the_answer_and_no_reset),
        cmocka_unit_test(test_peer_that_takes_nothing_then_flush_ends_at_its_deadline),
        cmocka_unit_test(test_peer_gone_while_sending_then_connection_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
