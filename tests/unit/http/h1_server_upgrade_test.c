/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_conn.h"

#include "h1_upgrade_world.h"

static void accept_it(struct kr_rec *r)
{
    kr_rec_answer(r, 101, NULL, spdy);
}

static void switched(struct world *w)
{
    setup(w);
    w->server.on_request = switch_request;
    say(w, UPGRADE);
    hear(w, SWITCHED);
}

/* ---- which requests ask ---- */

static void test_request_when_it_asks_for_an_upgrade_then_it_is_marked_and_not_ended(void **state)
{
    static const struct {
        const char *text;
        bool upgrade;
    } cases[] = {
        {UPGRADE, true},
        {GET "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
         true},
        {GET "connection: upgrade\r\nupgrade: websocket\r\n\r\n", true},
        {GET "Connection: close\r\nConnection: x ,\tUPGRADE\r\nUpgrade: a, b\r\n\r\n", true},
        {GET "Upgrade: websocket\r\n\r\n", false},
        {GET "Connection: Upgrade\r\n\r\n", false},
        {GET "Connection: upgraded\r\nUpgrade: websocket\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false},
        {POST "Upgrade: x\r\nContent-Length: 1\r\n\r\na", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;

        setup(&w);
        say(&w, cases[i].text);
        assert_int_equal(w.server.n, 1);
        assert_int_equal(w.server.recs[0].upgrade, cases[i].upgrade);
        assert_int_equal(w.server.recs[0].ended, !cases[i].upgrade);
        if (cases[i].upgrade)
            assert_false(w.server.recs[0].whole_at_head);
        teardown(&w);
    }
}

static void test_request_when_an_upgrade_has_a_body_then_400_and_closed(void **state)
{
    static const char *const cases[] = {
        POST ASK "Content-Length: 5\r\n\r\nhello",
        POST "Content-Length: 5\r\n" ASK "\r\nhello",
        POST ASK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST "Transfer-Encoding: chunked\r\n" ASK "\r\n0\r\n\r\n",
        GET ASK "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;

        setup(&w);
        kr_mem_peer_send(&w.peer, kr_bytes_str(cases[i]));
        say(&w, SECRETS);
        hear_start(&w, "HTTP/1.1 400 Bad Request\r\n");
        assert_int_equal(w.server.n, 0);
        assert_int_equal(w.server.closed, 1);
        assert_int_equal(w.server.rc, KR_EPROTO);
        teardown(&w);
    }
}

static void test_answer_when_101_is_out_of_place_then_einval(void **state)
{
    const char *const none[] = {"x", "y", NULL};
    struct kr_head head;
    struct world w;

    (void)state;
    kr_head_init(&head, 4096);
    head.status = 101;
    setup(&w);
    say(&w, GET "\r\n");
    assert_int_equal(kr_exchange_send_head(w.server.recs[0].ex, &head, true), KR_EINVAL);
    assert_int_equal(kr_head_add_str(&head, "upgrade", "SPDY/3.1"), 0); /* nobody asked */
    assert_int_equal(kr_exchange_send_head(w.server.recs[0].ex, &head, true), KR_EINVAL);
    kr_head_deinit(&head);
    kr_rec_answer(&w.server.recs[0], 200, NULL, none);
    run(&w, 0);
    say(&w, UPGRADE);
    assert_int_equal(kr_exchange_send_head(w.server.recs[1].ex, &head, true), KR_EINVAL);
    kr_rec_answer(&w.server.recs[1], 403, "no", NULL);
    run(&w, 0);
    assert_int_equal(w.server.recs[1].rc, 0);
    assert_int_equal(w.server.closed, 1);
    kr_head_deinit(&head);
    teardown(&w);
}

/* ---- raw ---- */

static void test_upgrade_when_accepted_then_bytes_go_unframed_both_ways_at_once(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    switched(&w);
    r = &w.server.recs[0];
    assert_true(r->ex->head_sent);
    say(&w, "k");
    came(r, "k");
    say(&w, SECRETS); /* nothing is a request any more */
    came(r, SECRETS);
    assert_int_equal(w.server.n, 1);
    kr_rec_send(r, "a", false);
    run(&w, 0);
    hear(&w, "a");
    kr_rec_send(r, "HTTP/1.1 200 OK\r\n\r\n", false);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n\r\n");
    teardown(&w);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, KR_ECONNLOST);
}

/* The head, and what is behind it, cut in two at every byte, answered early or late. */
static void test_upgrade_when_split_at_any_byte_then_all_is_handed_over_in_order(void **state)
{
    static const char text[] = UPGRADE "early\r\n\r\n\0bytes";
    const size_t n = sizeof text - 1;
    const size_t head = strlen(text) - strlen("early\r\n\r\n");

    (void)state;
    for (size_t cut = 1; cut < 2 * n; cut++) {
        struct kr_rec *r;
        struct world w;

        setup(&w);
        r = &w.server.recs[0];
        if (cut >= n)
            w.server.on_request = switch_request;
        kr_mem_peer_send(&w.peer, kr_bytes_of(text, cut % n));
        run(&w, 0);
        kr_mem_peer_send(&w.peer, kr_bytes_of(text + cut % n, n - cut % n));
        run(&w, 0);
        if (cut < n) {
            assert_int_equal(r->in.n, 0);
            switch_it(r);
            assert_int_equal(r->in.n, 0); /* never from inside the call */
            run(&w, 0);
        }
        kr_mem_peer_send(&w.peer, KR_LIT("!"));
        run(&w, 0);
        assert_int_equal(r->in.n, n - head + 1);
        assert_memory_equal(r->in.p, text + head, n - head);
        assert_int_equal(r->in.p[n - head], '!');
        hear(&w, SWITCHED);
        teardown(&w);
    }
    for (size_t step = 1; step < 9; step++) {
        struct world w;

        setup_with(&w, step);
        w.server.on_request = switch_request;
        kr_mem_peer_send(&w.peer, kr_bytes_of(text, n));
        run(&w, 0);
        assert_int_equal(w.server.recs[0].in.n, n - head);
        assert_memory_equal(w.server.recs[0].in.p, text + head, n - head);
        teardown(&w);
    }
}

static uint8_t block[300000];

static void fill_block(void)
{
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * 7 + (i >> 8) + (i >> 16));
}

static void test_early_bytes_when_they_are_many_then_64k_are_held_and_none_is_lost(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    fill_block();
    setup_with(&w, 4096);
    r = &w.server.recs[0];
    kr_mem_peer_send(&w.peer, KR_LIT(UPGRADE));
    kr_mem_peer_send(&w.peer, kr_bytes_of(block, sizeof block));
    run(&w, 0);
    assert_false(kr_mem_pair_reading(w.pair, 1));
    assert_int_equal(r->in.n, 0);
    assert_true(w.peer.out.n + kr_mem_pair_waiting(w.pair, 1) >= sizeof block - 65536 - 4096);
    run(&w, 1000000); /* an open upgrade is not idle */
    switch_it(r);
    run(&w, 0);
    assert_int_equal(r->in.n, sizeof block);
    assert_memory_equal(r->in.p, block, sizeof block);
    teardown(&w);
}

static void test_raw_bytes_when_not_consumed_then_reading_stops_at_64k(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    fill_block();
    switched(&w);
    kr_mem_pair_step(w.pair, 1, 1000);
    r = &w.server.recs[0];
    r->hold = true;
    kr_mem_peer_send(&w.peer, kr_bytes_of(block, sizeof block));
    run(&w, 0);
    assert_true(r->owed >= 65536 && r->owed < 65536 + 1000);
    assert_false(kr_mem_pair_reading(w.pair, 1));
    kr_rec_send(r, "the other way is free", false);
    run(&w, 0);
    hear(&w, "the other way is free");
    r->owed -= 2000;
    kr_exchange_consumed(r->ex, 2000);
    run(&w, 0);
    assert_true(r->owed >= 65536 && r->owed < 65536 + 1000);
    r->hold = false;
    kr_rec_release(r);
    run(&w, 0);
    assert_int_equal(r->in.n, sizeof block);
    assert_memory_equal(r->in.p, block, sizeof block);
    teardown(&w);
}

static void test_raw_bytes_when_the_client_reads_nothing_then_none_is_taken(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    fill_block();
    switched(&w);
    r = &w.server.recs[0];
    kr_mem_pair_stall(w.pair, 0, true);
    kr_rec_send_bytes(r, kr_bytes_of(block, sizeof block), false);
    run(&w, 0);
    assert_true(r->out.n >= sizeof block - 65536 - 16384);
    say(&w, "x");
    came(r, "x");
    kr_mem_pair_stall(w.pair, 0, false);
    run(&w, 0);
    assert_int_equal(w.peer.in.n, sizeof block);
    assert_memory_equal(w.peer.in.p, block, sizeof block);
    teardown(&w);
}

/* ---- the end of raw ---- */

static void test_raw_when_our_direction_ends_then_all_is_sent_and_the_pipe_flushed(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    fill_block();
    switched(&w);
    r = &w.server.recs[0];
    kr_rec_send_bytes(r, kr_bytes_of(block, sizeof block), false);
    kr_rec_send(r, "bye", true);
    run(&w, 0);
    assert_int_equal(w.peer.in.n, sizeof block + 3);
    assert_memory_equal(w.peer.in.p, block, sizeof block);
    assert_memory_equal(w.peer.in.p + sizeof block, "bye", 3);
    assert_true(w.peer.eof);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, 0);
    assert_false(r->ended);
    assert_int_equal(w.server.closed, 1);
    assert_int_equal(w.server.rc, 0);
    teardown(&w);
    setup(&w); /* the end at once: early bytes come first */
    say(&w, UPGRADE "early");
    accept_it(&w.server.recs[0]);
    run(&w, 0);
    hear(&w, SWITCHED);
    came(&w.server.recs[0], "early");
    assert_int_equal(w.server.recs[0].rc, 0);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void test_raw_when_the_client_ends_then_we_go_on_until_our_end(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    switched(&w);
    r = &w.server.recs[0];
    kr_mem_peer_send(&w.peer, KR_LIT("last words"));
    kr_mem_peer_end(&w.peer);
    run(&w, 0);
    came(r, "last words");
    assert_true(r->ended);
    assert_int_equal(r->done, 0);
    kr_rec_send(r, "more", false);
    run(&w, KR_UPGRADE_LINGER_MS - 1);
    hear(&w, "more");
    kr_rec_send(r, "end", true);
    run(&w, 0);
    hear(&w, "end");
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, 0);
    assert_true(w.peer.eof);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void test_raw_when_the_client_ended_long_ago_then_closed_with_0(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    switched(&w);
    r = &w.server.recs[0];
    kr_mem_peer_end(&w.peer);
    run(&w, 0);
    assert_true(r->ended);
    run(&w, KR_UPGRADE_LINGER_MS - 1);
    assert_int_equal(r->done, 0);
    run(&w, 1);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, 0);
    assert_int_equal(w.server.closed, 1);
    assert_true(w.peer.eof);
    teardown(&w);
}

static void test_raw_when_the_end_comes_behind_held_bytes_then_they_come_first(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    fill_block();
    setup_with(&w, 4096);
    r = &w.server.recs[0];
    r->hold = true;
    kr_mem_peer_send(&w.peer, KR_LIT(UPGRADE));
    kr_mem_peer_send(&w.peer, kr_bytes_of(block, 100000));
    kr_mem_peer_end(&w.peer);
    run(&w, 0);
    switch_it(r);
    run(&w, 0);
    assert_false(r->ended);
    assert_true(r->in.n < 100000);
    run(&w, 1000000); /* slow to take is not gone */
    r->hold = false;
    kr_rec_release(r);
    run(&w, 0);
    assert_int_equal(r->in.n, 100000);
    assert_memory_equal(r->in.p, block, 100000);
    assert_true(r->ended);
    teardown(&w);
}

static void test_raw_when_aborted_closed_or_lost_then_it_ends_at_once(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        struct kr_rec *r;
        struct world w;

        switched(&w);
        r = &w.server.recs[0];
        kr_rec_send(r, "never seen", false);
        kr_mem_pair_stall(w.pair, 0, true);
        if (how == 0)
            kr_rec_abort(r);
        else if (how == 1)
            kr_conn_close(w.server.conn);
        else if (how == 2)
            kr_mem_pair_cut(w.pair, KR_EIO);
        else
            kr_mem_peer_close(&w.peer, KR_PIPE_ABORT);
        run(&w, 0);
        assert_int_equal(w.server.closed, 1);
        assert_int_equal(r->done, how != 0);
        if (how != 0)
            assert_int_equal(r->rc, KR_ECONNLOST);
        teardown(&w);
    }
}

static void test_raw_when_drained_or_silent_for_hours_then_it_goes_on(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    switched(&w);
    r = &w.server.recs[0];
    kr_conn_drain(w.server.conn);
    run(&w, 4 * 3600 * 1000);
    say(&w, "still there?");
    came(r, "still there?");
    kr_rec_send(r, "yes", true);
    run(&w, 0);
    hear(&w, "yes");
    assert_int_equal(r->rc, 0);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void abort_it(struct kr_rec *r)
{
    kr_rec_abort(r);
}

static void close_it(struct kr_rec *r)
{
    kr_conn_close(r->aux);
}

static void end_it(struct kr_rec *r)
{
    r->out_end = true;
    kr_exchange_ready(r->ex);
}

static void test_raw_when_the_user_ends_it_in_any_callback_then_nothing_follows(void **state)
{
    static void (*const hows[])(struct kr_rec *) = {abort_it, close_it, end_it};

    (void)state;
    for (int i = 0; i < 12; i++) {
        struct kr_rec *r;
        struct world w;
        int where = i / 3;

        setup(&w);
        r = &w.server.recs[0];
        r->aux = w.server.conn;
        if (where == 0 || where == 3)
            r->on_body = hows[i % 3];
        else if (where == 1)
            r->on_take = hows[i % 3];
        else
            r->on_end = hows[i % 3];
        if (where != 3)
            w.server.on_request = switch_request;
        say(&w, UPGRADE "early");
        if (where == 3)
            switch_it(r);
        if (where == 1)
            kr_rec_send(r, "hello", false);
        run(&w, 0);
        kr_mem_peer_end(&w.peer);
        run(&w, 0);
        assert_int_equal(w.server.closed, 1);
        assert_int_equal(r->done, i % 3 != 0);
        came(r, "early");
        teardown(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_when_it_asks_for_an_upgrade_then_it_is_marked_and_not_ended),
        cmocka_unit_test(test_request_when_an_upgrade_has_a_body_then_400_and_closed),
        cmocka_unit_test(test_answer_when_101_is_out_of_place_then_einval),
        cmocka_unit_test(test_upgrade_when_accepted_then_bytes_go_unframed_both_ways_at_once),
        cmocka_unit_test(test_upgrade_when_split_at_any_byte_then_all_is_handed_over_in_order),
        cmocka_unit_test(test_early_bytes_when_they_are_many_then_64k_are_held_and_none_is_lost),
        cmocka_unit_test(test_raw_bytes_when_not_consumed_then_reading_stops_at_64k),
        cmocka_unit_test(test_raw_bytes_when_the_client_reads_nothing_then_none_is_taken),
        cmocka_unit_test(test_raw_when_our_direction_ends_then_all_is_sent_and_the_pipe_flushed),
        cmocka_unit_test(test_raw_when_the_client_ends_then_we_go_on_until_our_end),
        cmocka_unit_test(test_raw_when_the_client_ended_long_ago_then_closed_with_0),
        cmocka_unit_test(test_raw_when_the_end_comes_behind_held_bytes_then_they_come_first),
        cmocka_unit_test(test_raw_when_aborted_closed_or_lost_then_it_ends_at_once),
        cmocka_unit_test(test_raw_when_drained_or_silent_for_hours_then_it_goes_on),
        cmocka_unit_test(test_raw_when_the_user_ends_it_in_any_callback_then_nothing_follows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
