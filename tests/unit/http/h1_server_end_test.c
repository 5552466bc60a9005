/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_conn.h"

#include "h1_server_world.h"
#include "http/reply.h"

/* ---- refusals ---- */

static void test_bad_request_when_refused_then_answered_and_nothing_is_parsed_after(void **state)
{
    static const struct {
        const char *text;
        const char *start;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n" GET "\r\n", "HTTP/1.1 400 Bad Request\r\n"},
        {POST "Transfer-Encoding: gzip\r\n\r\n" GET "\r\n", "HTTP/1.1 501 Not Implemented\r\n"},
        {POST "Expect: x\r\n\r\n" GET "\r\n", "HTTP/1.1 417 Expectation Failed\r\n"},
        {"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\n"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;

        setup(&w);
        say(&w, cases[i].text);
        assert_int_equal(w.server.n, 0);
        hear_start(&w, cases[i].start);
        say(&w, GET "\r\n");
        assert_int_equal(w.server.n, 0);
        hear(&w, "");
        assert_int_equal(w.server.closed, 1);
        assert_int_equal(w.server.rc, KR_EPROTO);
        assert_true(w.peer.eof);
        teardown(&w);
    }
}

static void test_bad_request_when_answered_then_the_owner_fills_it(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    say(&w, "GET /\r\n\r\n");
    hear(&w, "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n" DATE
             "content-length: 33\r\nconnection: close\r\n\r\n400 the request line is malformed");
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void test_bad_body_when_not_answered_yet_then_400_and_eproto(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    say(&w, POST "Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n");
    assert_int_equal(w.server.recs[0].rc, KR_EPROTO);
    assert_false(w.server.recs[0].ended);
    hear_start(&w, "HTTP/1.1 400 Bad Request\r\n");
    teardown(&w);
    setup(&w);
    say(&w, POST "Transfer-Encoding: chunked\r\n\r\n1\r\n");
    kr_rec_answer(&w.server.recs[0], 200, "", NULL);
    w.server.recs[0].out_end = false;
    run(&w, 0);
    say(&w, "xx\r\n"); /* the answer is under way: it is cut */
    assert_int_equal(w.server.recs[0].rc, KR_EPROTO);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void test_bad_request_when_client_floods_and_reads_nothing_then_closed(void **state)
{
    static uint8_t block[200 * 1024];
    struct world w;

    (void)state;
    setup(&w);
    kr_mem_pair_capacity(w.pair, 0, 0, 1024);
    say(&w, "GET /\r\n\r\n");
    kr_mem_peer_send(&w.peer, kr_bytes_of(block, sizeof block));
    run(&w, 0);
    assert_true(kr_mem_pair_waiting(w.pair, 1) > 0);
    assert_int_equal(w.server.closed, 0); /* the pipe flushes; its deadline is its own */
    teardown(&w);
}

/* ---- time ---- */

static void test_head_when_too_slow_then_408(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    say(&w, "GET / HT");
    run(&w, 9000);
    say(&w, "TP/1.1\r\n"); /* progress does not move the deadline */
    hear(&w, "");
    run(&w, 1000);
    hear_start(&w, "HTTP/1.1 408 Request Timeout\r\n");
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void test_connection_when_idle_then_closed(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    w.server.on_request = answer_hello;
    say(&w, GET "\r\n");
    w.peer.in.n = 0;
    run(&w, 89999);
    assert_int_equal(w.server.closed, 0);
    run(&w, 1);
    assert_int_equal(w.server.closed, 1);
    hear(&w, "");
    assert_true(w.peer.eof);
    teardown(&w);
}

static void test_connection_when_an_answer_takes_long_then_it_is_not_idle(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    say(&w, GET "\r\n");
    run(&w, 1000000);
    assert_int_equal(w.server.closed, 0);
    kr_rec_answer(&w.server.recs[0], 200, "late", NULL);
    run(&w, 0);
    assert_int_equal(w.server.recs[0].rc, 0);
    teardown(&w);
}

/* ---- ends ---- */

static void test_client_when_gone_then_the_exchange_ends_with_econnlost(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct world w;

        setup(&w);
        say(&w, how == 2 ? POST "Content-Length: 9\r\n\r\nx" : GET "\r\n");
        if (how == 0)
            kr_mem_pair_cut(w.pair, KR_EIO);
        else
            kr_mem_peer_close(&w.peer, KR_PIPE_FLUSH);
        run(&w, 0);
        assert_int_equal(w.server.recs[0].done, 1);
        assert_int_equal(w.server.recs[0].rc, KR_ECONNLOST);
        assert_int_equal(w.server.closed, 1);
        teardown(&w);
    }
}

static void test_client_when_gone_between_requests_then_a_clean_close(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    kr_mem_peer_close(&w.peer, KR_PIPE_FLUSH);
    run(&w, 0);
    assert_int_equal(w.server.closed, 1);
    assert_int_equal(w.server.rc, 0);
    teardown(&w);
}

static void test_drain_when_idle_then_closed_else_after_the_answer(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    kr_conn_drain(w.server.conn);
    run(&w, 0);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
    setup(&w);
    say(&w, GET "\r\n");
    kr_conn_drain(w.server.conn);
    run(&w, 0);
    assert_int_equal(w.server.closed, 0);
    kr_rec_answer(&w.server.recs[0], 200, NULL, NULL);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "content-length: 0\r\nconnection: close\r\n\r\n");
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void test_connection_when_client_or_answer_says_close_then_closed(void **state)
{
    const char *const fields[] = {"connection", "close", NULL};
    struct world w;

    (void)state;
    setup(&w);
    w.server.on_request = answer_hello;
    say(&w, GET "Connection: close\r\n\r\n");
    assert_int_equal(w.server.closed, 1);
    hear_start(&w,
               "HTTP/1.1 200 OK\r\n" DATE "transfer-encoding: chunked\r\nconnection: close\r\n");
    teardown(&w);
    setup(&w);
    say(&w, GET "\r\n" GET "\r\n");
    kr_rec_answer(&w.server.recs[0], 200, NULL, fields);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "content-length: 0\r\nconnection: close\r\n\r\n");
    assert_int_equal(w.server.n, 1); /* the pipelined one is never parsed */
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void abort_it(struct kr_rec *r)
{
    kr_rec_abort(r);
}

static void abort_request(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    kr_rec_abort(r);
}

static void close_request(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)r;
    kr_conn_close(c->conn);
}

static void test_user_when_it_aborts_in_any_callback_then_nothing_is_called_any_more(void **state)
{
    (void)state;
    for (int where = 0; where < 5; where++) {
        struct world w;

        setup(&w);
        if (where == 0)
            w.server.on_request = abort_request;
        else if (where == 1)
            w.server.recs[0].on_body = abort_it;
        else if (where == 2)
            w.server.recs[0].on_end = abort_it;
        else if (where == 3)
            w.server.recs[0].on_take = abort_it;
        else
            w.server.on_request = close_request;
        say(&w, POST "Content-Length: 2\r\n\r\nab" GET "\r\n");
        if (w.server.conn != NULL && w.server.recs[0].ex != NULL)
            kr_rec_answer(&w.server.recs[0], 200, "hello", NULL);
        run(&w, 0);
        assert_int_equal(w.server.closed, 1);
        assert_int_equal(w.server.recs[0].done, where == 4);
        assert_int_equal(w.server.n, 1);
        teardown(&w);
    }
}

static void echo_take(struct kr_rec *r)
{
    kr_rec_release(r); /* from inside fill: consumed may have to read on */
    kr_exchange_ready(r->ex);
}

static void echo_body(struct kr_rec *r)
{
    kr_buf_append(&r->out, kr_buf_bytes(&r->in));
    r->in.n = 0;
    kr_exchange_ready(r->ex);
}

static void echo_end(struct kr_rec *r)
{
    r->out_end = true;
    kr_exchange_ready(r->ex);
}

static void test_echo_when_both_bodies_run_then_all_comes_back(void **state)
{
    static uint8_t block[500000];
    struct world w;

    (void)state;
    setup_with(&w, 3000);
    w.server.recs[0].hold = true;
    w.server.recs[0].on_body = echo_body;
    w.server.recs[0].on_take = echo_take;
    w.server.recs[0].on_end = echo_end;
    say(&w, POST "Content-Length: 500000\r\n\r\n");
    kr_rec_answer(&w.server.recs[0], 200, "",
                  (const char *const[]){"content-length", "500000", NULL});
    w.server.recs[0].out_end = false;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * 7 + (i >> 8));
    kr_mem_peer_send(&w.peer, kr_bytes_of(block, sizeof block));
    run(&w, 0);
    assert_int_equal(w.server.recs[0].done, 1);
    assert_int_equal(w.server.recs[0].rc, 0);
    assert_true(w.peer.in.n > sizeof block);
    assert_memory_equal(w.peer.in.p + w.peer.in.n - sizeof block, block, sizeof block);
    teardown(&w);
}

static void reply_403(struct kr_rec_conn *c, struct kr_rec *r)
{
    struct kr_head head;

    (void)c;
    kr_head_init(&head, 4096);
    head.status = 403;
    assert_int_equal(kr_head_add_str(&head, "content-type", "a/b"), 0);
    assert_int_equal(kr_reply(r->ex, &head, KR_LIT("no")), 0);
    r->ex = NULL; /* it is the reply's now */
    kr_head_deinit(&head);
}

static void test_reply_when_sent_then_head_and_body_come_and_the_request_is_discarded(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    w.server.on_request = reply_403;
    say(&w, POST "Content-Length: 3\r\n\r\nabc");
    hear(&w, "HTTP/1.1 403 Forbidden\r\ncontent-type: a/b\r\ncontent-length: 2\r\n" DATE "\r\nno");
    say(&w, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(&w, "HTTP/1.1 403 Forbidden\r\ncontent-type: a/b\r\ncontent-length: 2\r\n" DATE "\r\n");
    assert_int_equal(w.server.closed, 0);
    say(&w, POST "Content-Length: 3\r\n\r\n");
    hear_start(&w, "HTTP/1.1 403 Forbidden\r\n");
    kr_mem_pair_cut(w.pair, KR_EIO);
    run(&w, 0);
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_request_when_refused_then_answered_and_nothing_is_parsed_after),
        cmocka_unit_test(test_bad_request_when_answered_then_the_owner_fills_it),
        cmocka_unit_test(test_bad_body_when_not_answered_yet_then_400_and_eproto),
        cmocka_unit_test(test_bad_request_when_client_floods_and_reads_nothing_then_closed),
        cmocka_unit_test(test_head_when_too_slow_then_408),
        cmocka_unit_test(test_connection_when_idle_then_closed),
        cmocka_unit_test(test_connection_when_an_answer_takes_long_then_it_is_not_idle),
        cmocka_unit_test(test_client_when_gone_then_the_exchange_ends_with_econnlost),
        cmocka_unit_test(test_client_when_gone_between_requests_then_a_clean_close),
        cmocka_unit_test(test_drain_when_idle_then_closed_else_after_the_answer),
        cmocka_unit_test(test_connection_when_client_or_answer_says_close_then_closed),
        cmocka_unit_test(test_user_when_it_aborts_in_any_callback_then_nothing_is_called_any_more),
        cmocka_unit_test(test_echo_when_both_bodies_run_then_all_comes_back),
        cmocka_unit_test(test_reply_when_sent_then_head_and_body_come_and_the_request_is_discarded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
