/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_conn.h"

#include "h1_client_world.h"

static void test_request_when_opened_then_head_and_body_are_framed(void **state)
{
    const char *const fields[] = {"accept", "a/b", "content-length", "3", "te", "trailers", NULL};
    const char *const plain[] = {"accept", "a/b", NULL};
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = kr_rec_open(&w.client, "GET", "/x?y", true, plain);
    assert_false(r->ex->head_sent);
    assert_null(kr_rec_open(&w.client, "GET", "/", true, NULL)); /* one at a time */
    hear(&w, "GET /x?y HTTP/1.1\r\nhost: origin:443\r\naccept: a/b\r\n\r\n");
    assert_true(r->ex->head_sent);
    say(&w, OK);
    assert_int_equal(r->rc, 0);
    r = kr_rec_open(&w.client, "PUT", "/", false, fields);
    kr_rec_send(r, "abc", true);
    hear(&w, "PUT / HTTP/1.1\r\nhost: origin:443\r\naccept: a/b\r\ncontent-length: 3\r\n\r\nabc");
    say(&w, OK);
    r = kr_rec_open(&w.client, "POST", "/", false, NULL);
    hear(&w, "POST / HTTP/1.1\r\nhost: origin:443\r\ntransfer-encoding: chunked\r\n\r\n");
    kr_rec_send(r, "ab", false);
    hear(&w, "2\r\nab\r\n");
    kr_rec_send(r, "", true);
    hear(&w, "0\r\n\r\n");
    say(&w, OK);
    r = kr_rec_open(&w.client, "POST", "/", true, NULL);
    hear(&w, "POST / HTTP/1.1\r\nhost: origin:443\r\ncontent-length: 0\r\n\r\n");
    say(&w, OK);
    assert_int_equal(r->done, 1);
    assert_int_equal(w.client.closed, 0);
    teardown(&w);
}

static void test_answer_when_it_comes_in_any_framing_then_it_is_read(void **state)
{
    static const struct {
        const char *text;
        const char *body;
        int status;
    } cases[] = {
        {OK, "ok", 200},
        {"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc",
         404},
        {"HTTP/1.1 204 No Content\r\n\r\n", "", 204},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", 304},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK, "ok", 200},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", 200},
    };

    (void)state;
    for (size_t i = 0; i < 3 * sizeof cases / sizeof cases[0]; i++) {
        static const size_t steps[] = {0, 1, 5};
        const size_t k = i / 3;
        struct kr_rec *r;
        struct world w;

        setup_with(&w, steps[i % 3]);
        r = get(&w);
        say(&w, cases[k].text);
        assert_int_equal(r->status, cases[k].status);
        assert_int_equal(r->whole_at_head, cases[k].body[0] == '\0');
        assert_true(r->ended);
        assert_int_equal(r->done, 1);
        assert_int_equal(r->rc, 0);
        body_is(r, cases[k].body);
        get(&w); /* the connection is free again */
        say(&w, OK);
        assert_int_equal(w.client.recs[1].rc, 0);
        teardown(&w);
    }
}

static void test_answer_when_to_head_then_it_has_no_body(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = kr_rec_open(&w.client, "HEAD", "/", true, NULL);
    run(&w, 0);
    say(&w, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
    assert_true(r->ended);
    assert_int_equal(r->rc, 0);
    get(&w);
    teardown(&w);
}

static void test_answer_when_body_lasts_until_close_then_eof_ends_it(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = get(&w);
    say(&w, "HTTP/1.1 200 OK\r\n\r\nall ");
    assert_int_equal(w.client.drained, 1);
    say(&w, "of it");
    assert_false(r->ended);
    kr_mem_peer_close(&w.peer, KR_PIPE_FLUSH);
    run(&w, 0);
    assert_true(r->ended);
    assert_int_equal(r->rc, 0);
    body_is(r, "all of it");
    assert_int_equal(w.client.closed, 1);
    teardown(&w);
    setup(&w);
    r = get(&w);
    say(&w, "HTTP/1.1 200 OK\r\n\r\nall ");
    kr_mem_pair_cut(w.pair, KR_EIO); /* no close_notify: it may be cut */
    run(&w, 0);
    assert_false(r->ended);
    assert_int_equal(r->rc, KR_ECONNLOST);
    teardown(&w);
}

static void test_answer_when_it_says_close_then_the_connection_is_not_reused(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK "HTTP/1.1 200 OK\r\n",
        OK "\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct world w;
        struct kr_rec *r;

        setup(&w);
        r = get(&w);
        say(&w, answers[i]);
        assert_int_equal(r->rc, 0);
        body_is(r, "ok");
        assert_int_equal(w.client.drained, 1);
        assert_int_equal(w.client.closed, 1);
        teardown(&w);
    }
}

static void test_answer_when_malformed_then_eproto(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", KR_EPROTO},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", KR_EPROTO},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx", KR_EPROTO},
        {"nonsense\r\n", KR_EPROTO},
        {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", KR_EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        struct kr_rec *r;

        setup(&w);
        r = get(&w);
        say(&w, cases[i].text);
        assert_int_equal(r->done, 1);
        assert_int_equal(r->rc, cases[i].rc);
        assert_false(r->ended);
        assert_int_equal(w.client.closed, 1);
        assert_int_equal(w.client.rc, cases[i].rc);
        teardown(&w);
    }
}

static void test_answer_when_informational_without_end_then_eproto(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = get(&w);
    for (int i = 0; i < 33; i++)
        say(&w, "HTTP/1.1 102 Processing\r\n\r\n");
    assert_int_equal(r->rc, KR_EPROTO);
    teardown(&w);
}

static void test_bytes_when_no_request_asked_for_them_then_closed(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    say(&w, OK);
    assert_int_equal(w.client.closed, 1);
    assert_int_equal(w.client.rc, KR_EPROTO);
    teardown(&w);
    setup(&w);
    kr_mem_pair_capacity(w.pair, 1, 0, 1024); /* the request cannot leave */
    kr_mem_peer_send(&w.peer, KR_LIT("HTTP/1.1 408 Request Timeout\r\n\r\n"));
    r = kr_rec_open(&w.client, "POST", "/", true, NULL);
    run(&w, 0);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, KR_EREFUSED);
    assert_int_equal(w.client.closed, 1);
    teardown(&w);
}

static void
test_connection_when_lost_then_the_code_says_whether_the_request_may_have_run(void **state)
{
    (void)state;
    for (int how = 0; how < 6; how++) {
        bool sent = how >= 2;
        struct world w;
        struct kr_rec *r;

        setup(&w);
        kr_mem_pair_capacity(w.pair, 1, sent ? 65536 : 0, 1024);
        r = kr_rec_open(&w.client, "GET", "/", true, NULL);
        run(&w, 0);
        if (how >= 4)
            say(&w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
        if (how % 2 == 0)
            kr_mem_pair_cut(w.pair, KR_EIO);
        else
            kr_mem_peer_close(&w.peer, sent ? KR_PIPE_FLUSH : KR_PIPE_ABORT);
        run(&w, 0);
        assert_int_equal(r->done, 1);
        assert_int_equal(r->rc, sent ? KR_ECONNLOST : KR_EREFUSED);
        assert_false(r->ended);
        assert_int_equal(w.client.closed, 1);
        teardown(&w);
    }
}

static void test_answer_when_early_then_it_is_whole_and_the_connection_closes(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = kr_rec_open(&w.client, "POST", "/", false, NULL);
    kr_rec_send(r, "part", false);
    run(&w, 0);
    say(&w, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    assert_int_equal(r->status, 413);
    assert_true(r->ended);
    assert_int_equal(r->rc, 0);
    body_is(r, "no");
    assert_int_equal(w.client.closed, 1);
    kr_buf_append(&w.peer.in, kr_bytes_of("", 1));
    assert_null(strstr((char *)w.peer.in.p, "0\r\n\r\n")); /* the request looks cut */
    teardown(&w);
}

static void test_answer_when_the_length_is_sent_but_not_ended_then_reused(void **state)
{
    const char *const fields[] = {"content-length", "3", NULL};
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = kr_rec_open(&w.client, "POST", "/", false, fields);
    kr_rec_send(r, "abc", false);
    run(&w, 0);
    say(&w, OK);
    assert_int_equal(r->rc, 0);
    assert_int_equal(w.client.closed, 0);
    get(&w);
    say(&w, OK);
    assert_int_equal(w.client.recs[1].rc, 0);
    teardown(&w);
}

static void test_request_when_body_breaks_its_length_then_eproto(void **state)
{
    const char *const fields[] = {"content-length", "3", NULL};
    static const char *const bodies[] = {"ab", "abcd"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct kr_rec *r;

        setup(&w);
        r = kr_rec_open(&w.client, "POST", "/", false, fields);
        kr_rec_send(r, bodies[i], true);
        run(&w, 0);
        assert_int_equal(r->rc, KR_EPROTO);
        assert_int_equal(w.client.closed, 1);
        teardown(&w);
    }
}

static void test_abort_when_nothing_was_sent_then_the_connection_stays(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = kr_rec_open(&w.client, "GET", "/aborted", true, NULL);
    kr_rec_abort(r);
    assert_non_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    hear(&w, "GET / HTTP/1.1\r\nhost: origin:443\r\n\r\n");
    say(&w, OK);
    assert_int_equal(w.client.recs[1].rc, 0);
    r = get(&w);
    kr_rec_abort(r);
    assert_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    run(&w, 0);
    assert_int_equal(r->done, 0);
    assert_int_equal(w.client.closed, 1);
    assert_int_equal(w.peer.rc, KR_ECONNLOST);
    teardown(&w);
}

static void abort_it(struct kr_rec *r)
{
    kr_rec_abort(r);
}

static void test_user_when_it_aborts_in_any_callback_then_nothing_is_called_any_more(void **state)
{
    (void)state;
    for (int where = 0; where < 4; where++) {
        struct world w;
        struct kr_rec *r;

        setup(&w);
        r = kr_rec_open(&w.client, "POST", "/", false, NULL);
        r->on_head = where == 0 ? abort_it : NULL;
        r->on_body = where == 1 ? abort_it : NULL;
        r->on_end = where == 2 ? abort_it : NULL;
        r->on_take = where == 3 ? abort_it : NULL;
        kr_rec_send(r, "abc", true);
        run(&w, 0);
        say(&w, OK);
        assert_int_equal(r->done, 0);
        assert_int_equal(w.client.closed, 1);
        teardown(&w);
    }
}

static void open_next(struct kr_rec *r)
{
    struct kr_rec_conn *c = r->aux;

    assert_non_null(kr_rec_open(c, "GET", "/next", true, NULL));
}

static void test_done_when_the_user_opens_the_next_at_once_then_it_runs(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = get(&w);
    r->aux = &w.client;
    r->on_done = open_next;
    say(&w, OK);
    hear(&w, "GET /next HTTP/1.1\r\nhost: origin:443\r\n\r\n");
    say(&w, OK);
    assert_int_equal(w.client.recs[1].rc, 0);
    assert_int_equal(w.client.closed, 0);
    teardown(&w);
}

static void test_body_when_not_consumed_then_reading_stops(void **state)
{
    static char block[300001];
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup_with(&w, 10000);
    r = get(&w);
    r->hold = true;
    memset(block, 'b', sizeof block - 1);
    say(&w, "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
    say(&w, block);
    assert_false(kr_mem_pair_reading(w.pair, 0));
    assert_true(r->in.n >= 64 * 1024 && r->in.n < 80 * 1024);
    r->hold = false;
    kr_rec_release(r);
    run(&w, 0);
    assert_int_equal(r->in.n, 300000);
    assert_int_equal(r->rc, 0);
    get(&w); /* what was owed is forgotten with its exchange */
    teardown(&w);
}

static void test_connection_when_unused_or_drained_then_closed(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = get(&w);
    run(&w, 100000);
    assert_int_equal(w.client.closed, 0);
    say(&w, OK);
    assert_int_equal(r->rc, 0);
    run(&w, 60000);
    assert_int_equal(w.client.closed, 1);
    teardown(&w);
    setup(&w);
    r = get(&w);
    kr_conn_drain(w.client.conn);
    run(&w, 0);
    assert_int_equal(w.client.closed, 0);
    say(&w, OK);
    assert_int_equal(r->rc, 0);
    assert_int_equal(w.client.closed, 1);
    teardown(&w);
    setup(&w);
    kr_mem_peer_close(&w.peer, KR_PIPE_FLUSH); /* an unused one that the server closes */
    run(&w, 0);
    assert_int_equal(w.client.drained, 1);
    assert_int_equal(w.client.closed, 1);
    assert_int_equal(w.client.rc, 0);
    teardown(&w);
}

static void test_close_when_an_exchange_runs_then_econnlost(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w);
    r = get(&w);
    kr_conn_close(w.client.conn);
    assert_int_equal(r->done, 0); /* never from inside the call */
    run(&w, 0);
    assert_int_equal(r->rc, KR_ECONNLOST);
    assert_int_equal(w.client.closed, 1);
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_when_opened_then_head_and_body_are_framed),
        cmocka_unit_test(test_answer_when_it_comes_in_any_framing_then_it_is_read),
        cmocka_unit_test(test_answer_when_to_head_then_it_has_no_body),
        cmocka_unit_test(test_answer_when_body_lasts_until_close_then_eof_ends_it),
        cmocka_unit_test(test_answer_when_it_says_close_then_the_connection_is_not_reused),
        cmocka_unit_test(test_answer_when_malformed_then_eproto),
        cmocka_unit_test(test_answer_when_informational_without_end_then_eproto),
        cmocka_unit_test(test_bytes_when_no_request_asked_for_them_then_closed),
        cmocka_unit_test(
            test_connection_when_lost_then_the_code_says_whether_the_request_may_have_run),
        cmocka_unit_test(test_answer_when_early_then_it_is_whole_and_the_connection_closes),
        cmocka_unit_test(test_answer_when_the_length_is_sent_but_not_ended_then_reused),
        cmocka_unit_test(test_request_when_body_breaks_its_length_then_eproto),
        cmocka_unit_test(test_abort_when_nothing_was_sent_then_the_connection_stays),
        cmocka_unit_test(test_user_when_it_aborts_in_any_callback_then_nothing_is_called_any_more),
        cmocka_unit_test(test_done_when_the_user_opens_the_next_at_once_then_it_runs),
        cmocka_unit_test(test_body_when_not_consumed_then_reading_stops),
        cmocka_unit_test(test_connection_when_unused_or_drained_then_closed),
        cmocka_unit_test(test_close_when_an_exchange_runs_then_econnlost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
