/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_conn.h"

#include "h1_client_world.h"

#define SWITCHED                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n"

static struct kr_rec *ask(struct world *w)
{
    struct kr_rec *r = kr_rec_open_upgrade(&w->client, "POST", "/x", "SPDY/3.1", NULL);

    assert_non_null(r);
    run(w, 0);
    w->peer.in.n = 0;
    return r;
}

static struct kr_rec *switched(struct world *w)
{
    struct kr_rec *r;

    setup(w);
    r = ask(w);
    say(w, SWITCHED);
    assert_int_equal(r->status, 101);
    return r;
}

/* ---- asking ---- */

static void test_upgrade_when_asked_then_the_head_says_so_and_has_no_body(void **state)
{
    const char *const fields[] = {
        "connection", "x", "upgrade", "y", "content-length", "0", "transfer-encoding",
        "chunked",    "x", "z",       NULL};
    static const char start[] = "POST /x HTTP/1.1\r\nhost: origin:443\r\nx: z\r\n"
                                "connection: Upgrade\r\nupgrade: SPDY/3.1\r\n"
                                "content-length: 0\r\n\r\n";
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = kr_rec_open_upgrade(&w.client, "POST", "/x", "SPDY/3.1", fields);
    kr_rec_send(r, "kept back", false);
    hear(&w, start);
    assert_true(r->ex->head_sent);
    assert_int_equal(r->out.n, strlen("kept back"));
    assert_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    say(&w, SWITCHED);
    hear(&w, "kept back");
    teardown(&w);
    setup(&w);
    kr_rec_open_upgrade(&w.client, "GET", "/x", "websocket", NULL);
    hear(&w, "GET /x HTTP/1.1\r\nhost: origin:443\r\nconnection: Upgrade\r\n"
             "upgrade: websocket\r\n\r\n");
    teardown(&w);
}

static void test_upgrade_when_it_cannot_be_asked_for_safely_then_null(void **state)
{
    static const char *const tokens[] = {
        "a b", "a\r\nx: y", "a,b",
        "0123456789012345678901234567890123456789012345678901234567890123456789"};
    const char *const fields[] = {"content-length", "1", NULL};
    struct world w;

    (void)state;
    setup(&w);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
        assert_null(kr_rec_open_upgrade(&w.client, "GET", "/", tokens[i], NULL));
    assert_null(kr_rec_open_upgrade(&w.client, "POST", "/", "a", fields));
    get(&w); /* the connection is as it was */
    say(&w, OK);
    assert_int_equal(w.client.recs[0].rc, 0);
    get(&w);
    teardown(&w);
}

/* ---- 101 ---- */

/* What is behind the head comes in the same piece or not (F001). */
static void test_upgrade_when_accepted_and_split_at_any_byte_then_all_comes_in_order(void **state)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n" SWITCHED "\x80\x01\0\0HTTP/1.1 2";
    const size_t n = sizeof text - 1;
    const size_t bytes = strlen("\x80\x01xxHTTP/1.1 2");

    (void)state;
    for (size_t cut = 0; cut < n; cut++) {
        struct world w;
        struct kr_rec *r;

        setup(&w);
        r = ask(&w);
        kr_mem_peer_send(&w.peer, kr_bytes_of(text, cut));
        run(&w, 0);
        kr_mem_peer_send(&w.peer, kr_bytes_of(text + cut, n - cut));
        run(&w, 0);
        assert_int_equal(r->status, 101);
        assert_false(r->whole_at_head);
        assert_string_equal(
            kr_buf_append(&r->fields, kr_bytes_of("", 1)) == 0 ? (const char *)r->fields.p : "",
            "connection=Upgrade;upgrade=spdy/3.1;");
        assert_int_equal(r->in.n, bytes);
        assert_memory_equal(r->in.p, text + n - bytes, bytes);
        kr_rec_send(r, "k", false);
        hear(&w, "k");
        kr_rec_send(r, "HTTP/1.1", false);
        hear(&w, "HTTP/1.1");
        assert_int_equal(w.client.drained, 1);
        teardown(&w);
        assert_int_equal(r->rc, KR_ECONNLOST);
    }
    for (size_t step = 1; step < 9; step++) {
        struct world w;
        struct kr_rec *r;

        setup_with(&w, step);
        r = ask(&w);
        kr_mem_peer_send(&w.peer, kr_bytes_of(text, n));
        run(&w, 0);
        assert_int_equal(r->in.n, bytes);
        assert_memory_equal(r->in.p, text + n - bytes, bytes);
        teardown(&w);
    }
}

static void test_101_when_not_asked_for_or_to_another_protocol_then_eproto(void **state)
{
#define HEAD "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
    static const struct {
        bool ask;
        const char *text;
    } cases[] = {
        {false, SWITCHED},
        {false, HEAD "Upgrade:\r\n\r\n"},
        {true, HEAD "\r\n"},
        {true, HEAD "Upgrade: websocket\r\n\r\n"},
        {true, HEAD "Upgrade: SPDY/3.1\r\nUpgrade: websocket\r\n\r\n"},
        {true, HEAD "Upgrade: SPDY/3.1, websocket\r\n\r\n"},
        {true, HEAD "Upgrade: SPDY/3.10\r\n\r\n"},
        {true, HEAD "Upgrade:\r\n\r\n"},
    };
#undef HEAD

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        struct kr_rec *r;

        setup(&w);
        r = cases[i].ask ? ask(&w) : get(&w);
        kr_rec_send(r, "never", false);
        kr_mem_peer_send(&w.peer, kr_bytes_str(cases[i].text));
        say(&w, "stream bytes");
        assert_false(r->headed);
        assert_int_equal(r->in.n, 0);
        assert_int_equal(r->rc, KR_EPROTO);
        assert_int_equal(w.client.closed, 1);
        assert_int_equal(w.client.rc, KR_EPROTO);
        assert_int_equal(w.peer.in.n, 0);
        teardown(&w);
    }
}

/* ---- other answers ---- */

static void test_upgrade_when_refused_then_an_ordinary_answer_and_never_reused(void **state)
{
    static const struct {
        const char *text;
        const char *body;
        int status;
    } cases[] = {
        {OK, "ok", 200},
        {"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nwhat",
         "what", 400},
        {"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "a",
         403},
        {"HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", "", 302},
        {"HTTP/1.1 200 OK\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\nContent-Length: "
         "1\r\n\r\nx",
         "x", 200},
    };

    (void)state;
    for (size_t i = 0; i < 4 * sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        struct kr_rec *r;

        setup_with(&w, i & 1);
        r = ask(&w);
        kr_rec_send(r, "GET /secrets HTTP/1.1\r\n\r\n", false);
        kr_mem_peer_send(&w.peer, kr_bytes_str(cases[i / 4].text));
        if (i & 2) /* an answer behind the answer */
            kr_mem_peer_send(&w.peer, kr_bytes_str(OK));
        run(&w, 0);
        assert_int_equal(r->status, cases[i / 4].status);
        body_is(r, cases[i / 4].body);
        assert_true(r->ended);
        assert_int_equal(r->done, 1);
        assert_int_equal(r->rc, 0);
        assert_int_equal(w.client.drained, 1);
        assert_int_equal(w.client.closed, 1);
        hear(&w, ""); /* no byte of the user left */
        teardown(&w);
    }
}

static void test_upgrade_when_the_refusal_hangs_then_the_users_bytes_stay_back(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = ask(&w);
    say(&w, "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    assert_int_equal(r->status, 403);
    assert_int_equal(w.client.drained, 1); /* said as soon as it is known */
    kr_rec_send(r, "GET /secrets HTTP/1.1\r\n\r\n", false);
    run(&w, 1000);
    assert_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    kr_exchange_ready(r->ex);
    hear(&w, "");
    say(&w, "0\r\n\r\n");
    assert_int_equal(r->rc, 0);
    assert_int_equal(w.client.closed, 1);
    hear(&w, "");
    teardown(&w);
}

static void test_upgrade_when_the_server_goes_before_an_answer_then_econnlost(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    for (int i = 0; i < 2; i++) {
        setup(&w);
        r = ask(&w);
        if (i == 1)
            say(&w, "HTTP/1.1 101 Switching Protocols\r\nUpgr");
        kr_mem_peer_end(&w.peer);
        run(&w, 0);
        assert_int_equal(r->rc, KR_ECONNLOST);
        assert_int_equal(w.client.closed, 1);
        teardown(&w);
    }
}

/* ---- raw ---- */

static uint8_t block[300000];

static void fill_block(void)
{
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * 7 + (i >> 8) + (i >> 16));
}

static void test_raw_bytes_when_not_consumed_then_reading_stops_at_64k(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    fill_block();
    setup_with(&w, 1000);
    r = ask(&w);
    r->hold = true;
    kr_mem_peer_send(&w.peer, KR_LIT(SWITCHED));
    kr_mem_peer_send(&w.peer, kr_bytes_of(block, sizeof block));
    run(&w, 0);
    assert_true(r->owed >= 65536 && r->owed < 65536 + 1000);
    assert_false(kr_mem_pair_reading(w.pair, 0));
    kr_rec_send(r, "the other way is free", false);
    hear(&w, "the other way is free");
    run(&w, 3600 * 1000);
    r->hold = false;
    kr_rec_release(r);
    run(&w, 0);
    assert_int_equal(r->in.n, sizeof block);
    assert_memory_equal(r->in.p, block, sizeof block);
    teardown(&w);
}

static void test_raw_when_our_direction_ends_then_all_is_sent_and_the_pipe_flushed(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    fill_block();
    r = switched(&w);
    kr_rec_send_bytes(r, kr_bytes_of(block, sizeof block), true);
    run(&w, 0);
    assert_int_equal(w.peer.in.n, sizeof block);
    assert_memory_equal(w.peer.in.p, block, sizeof block);
    assert_true(w.peer.eof);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, 0);
    assert_false(r->ended);
    assert_int_equal(w.client.closed, 1);
    assert_int_equal(w.client.rc, 0);
    teardown(&w);
}

static void test_raw_when_the_server_ends_then_we_go_on_until_our_end_or_10_seconds(void **state)
{
    (void)state;
    for (int end = 0; end < 2; end++) {
        struct kr_rec *r;
        struct world w;

        r = switched(&w);
        kr_mem_peer_send(&w.peer, KR_LIT("last words"));
        kr_mem_peer_end(&w.peer);
        run(&w, 0);
        body_is(r, "last words");
        assert_true(r->ended);
        assert_int_equal(r->done, 0);
        kr_rec_send(r, "more", false);
        run(&w, KR_UPGRADE_LINGER_MS - 1);
        hear(&w, "more");
        assert_int_equal(r->done, 0);
        if (end)
            kr_rec_send(r, "end", true);
        run(&w, end ? 0 : 1);
        hear(&w, end ? "end" : "");
        assert_int_equal(r->done, 1);
        assert_int_equal(r->rc, 0);
        assert_int_equal(w.client.closed, 1);
        assert_true(w.peer.eof);
        teardown(&w);
    }
}

static void test_raw_when_the_ended_server_takes_nothing_then_the_user_is_told_in_time(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    r = switched(&w);
    kr_mem_peer_end(&w.peer);
    kr_mem_pair_stall(w.pair, 1, true);
    kr_rec_send_bytes(r, kr_bytes_of(block, sizeof block), false);
    run(&w, 0);
    run(&w, KR_UPGRADE_LINGER_MS - 1);
    assert_int_equal(r->done, 0);
    run(&w, 1);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, 0);
    teardown(&w);
}

static void test_raw_when_lost_behind_the_servers_end_then_0_else_econnlost(void **state)
{
    (void)state;
    for (int how = 0; how < 8; how++) {
        struct kr_rec *r;
        struct world w;

        r = switched(&w);
        if (how & 1)
            kr_mem_peer_end(&w.peer);
        run(&w, 0);
        kr_mem_pair_stall(w.pair, 1, true);
        kr_rec_send(r, "never seen", false);
        if (how / 2 == 0)
            kr_rec_abort(r);
        else if (how / 2 == 1)
            kr_conn_close(w.client.conn);
        else if (how / 2 == 2)
            kr_mem_pair_cut(w.pair, KR_EIO);
        else
            kr_mem_peer_close(&w.peer, KR_PIPE_ABORT);
        run(&w, 0);
        assert_int_equal(w.client.closed, 1);
        assert_int_equal(r->done, how / 2 != 0);
        if (how / 2 != 0)
            assert_int_equal(r->rc, how & 1 ? 0 : KR_ECONNLOST);
        teardown(&w);
    }
}

static void test_raw_when_drained_or_silent_for_hours_then_it_goes_on(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    r = switched(&w);
    kr_conn_drain(w.client.conn);
    run(&w, 4 * 3600 * 1000);
    say(&w, "still there?");
    body_is(r, "still there?");
    kr_rec_send(r, "yes", true);
    hear(&w, "yes");
    assert_int_equal(r->rc, 0);
    teardown(&w);
}

static void test_upgrade_when_aborted_before_it_left_then_the_connection_closes(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    setup(&w);
    r = kr_rec_open_upgrade(&w.client, "GET", "/", "websocket", NULL);
    kr_rec_abort(r);
    run(&w, 0);
    hear(&w, "");
    assert_int_equal(w.client.closed, 1);
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

        setup(&w);
        r = ask(&w);
        r->aux = w.client.conn;
        *(void (**[])(struct kr_rec *)){&r->on_head, &r->on_body, &r->on_take, &r->on_end}[i / 3] =
            hows[i % 3];
        kr_rec_send(r, "hello", false);
        kr_mem_peer_send(&w.peer, KR_LIT(SWITCHED "bytes"));
        kr_mem_peer_end(&w.peer);
        run(&w, 0);
        assert_int_equal(w.client.closed, 1);
        assert_int_equal(r->done, i % 3 != 0);
        if (i % 3 == 2) {
            body_is(r, "bytes");
            assert_int_equal(r->rc, 0);
        }
        teardown(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upgrade_when_asked_then_the_head_says_so_and_has_no_body),
        cmocka_unit_test(test_upgrade_when_it_cannot_be_asked_for_safely_then_null),
        cmocka_unit_test(test_upgrade_when_accepted_and_split_at_any_byte_then_all_comes_in_order),
        cmocka_unit_test(test_101_when_not_asked_for_or_to_another_protocol_then_eproto),
        cmocka_unit_test(test_upgrade_when_refused_then_an_ordinary_answer_and_never_reused),
        cmocka_unit_test(test_upgrade_when_the_refusal_hangs_then_the_users_bytes_stay_back),
        cmocka_unit_test(test_upgrade_when_the_server_goes_before_an_answer_then_econnlost),
        cmocka_unit_test(test_raw_bytes_when_not_consumed_then_reading_stops_at_64k),
        cmocka_unit_test(test_raw_when_our_direction_ends_then_all_is_sent_and_the_pipe_flushed),
        cmocka_unit_test(test_raw_when_the_server_ends_then_we_go_on_until_our_end_or_10_seconds),
        cmocka_unit_test(
            test_raw_when_the_ended_server_takes_nothing_then_the_user_is_told_in_time),
        cmocka_unit_test(test_raw_when_lost_behind_the_servers_end_then_0_else_econnlost),
        cmocka_unit_test(test_raw_when_drained_or_silent_for_hours_then_it_goes_on),
        cmocka_unit_test(test_upgrade_when_aborted_before_it_left_then_the_connection_closes),
        cmocka_unit_test(test_raw_when_the_user_ends_it_in_any_callback_then_nothing_follows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
