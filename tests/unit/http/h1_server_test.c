/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_conn.h"

#include "h1_server_world.h"

/* ---- answers ---- */

static void test_answer_when_nothing_is_known_then_it_is_chunked(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    w.server.on_request = answer_hello;
    say(&w, GET "\r\n");
    hear(&w,
         "HTTP/1.1 200 OK\r\n" DATE "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    assert_string_equal(w.server.recs[0].line, "GET h /");
    assert_true(w.server.recs[0].whole_at_head);
    assert_int_equal(w.server.recs[0].done, 1);
    assert_int_equal(w.server.recs[0].rc, 0);
    assert_int_equal(w.server.conn->exchanges, 0);
    say(&w, GET "\r\n");
    hear_start(&w, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(w.server.n, 2);
    teardown(&w);
}

static void test_answer_when_its_length_is_known_then_no_chunks(void **state)
{
    const char *const fields[] = {"content-length", "5", "date", "never", NULL};
    struct world w;

    (void)state;
    setup(&w);
    say(&w, GET "\r\n");
    kr_rec_answer(&w.server.recs[0], 201, "hello", fields);
    run(&w, 0);
    hear(&w, "HTTP/1.1 201 Created\r\ncontent-length: 5\r\ndate: never\r\n\r\nhello");
    say(&w, POST "Content-Length: 0\r\n\r\n");
    assert_true(w.server.recs[1].whole_at_head);
    kr_rec_answer(&w.server.recs[1], 200, NULL, NULL);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "content-length: 0\r\n\r\n");
    teardown(&w);
}

static void test_answer_when_it_can_have_no_body_then_none_is_sent(void **state)
{
    const char *const fields[] = {"content-length", "99", NULL};
    struct world w;

    (void)state;
    setup(&w);
    say(&w, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    kr_rec_answer(&w.server.recs[0], 200, NULL, fields);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n" DATE "\r\n");
    say(&w, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    kr_rec_answer(&w.server.recs[1], 200, "is dropped", NULL);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "\r\n");
    say(&w, GET "\r\n");
    kr_rec_answer(&w.server.recs[2], 204, NULL, fields);
    run(&w, 0);
    hear(&w, "HTTP/1.1 204 No Content\r\n" DATE "\r\n");
    say(&w, GET "\r\n");
    kr_rec_answer(&w.server.recs[3], 304, NULL, fields);
    run(&w, 0);
    hear(&w, "HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n" DATE "\r\n");
    assert_int_equal(w.server.recs[3].rc, 0);
    teardown(&w);
}

static void test_answer_when_client_speaks_10_then_body_until_close(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    w.server.on_request = answer_hello;
    say(&w, "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n");
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "connection: close\r\n\r\nhello");
    assert_true(w.peer.eof);
    assert_int_equal(w.server.closed, 1);
    assert_int_equal(w.server.rc, 0);
    teardown(&w);
}

static void test_answer_when_it_has_trailers_then_they_follow_the_last_chunk(void **state)
{
    struct kr_head trailers;
    struct world w;

    (void)state;
    setup(&w);
    say(&w, GET "\r\n");
    kr_rec_answer(&w.server.recs[0], 200, NULL, NULL);
    run(&w, 0);
    w.peer.in.n = 0;
    say(&w, GET "\r\n");
    kr_head_init(&trailers, 4096);
    trailers.status = 0;
    assert_int_equal(kr_head_add_str(&trailers, "grpc-status", "0"), 0);
    w.server.recs[1].out_end = false;
    {
        struct kr_head head;

        kr_head_init(&head, 4096);
        head.status = 200;
        assert_int_equal(kr_exchange_send_head(w.server.recs[1].ex, &head, false), 0);
        kr_head_deinit(&head);
    }
    assert_int_equal(kr_exchange_send_trailers(w.server.recs[1].ex, &trailers), 0);
    kr_head_deinit(&trailers);
    kr_rec_send(&w.server.recs[1], "x", false);
    run(&w, 0);
    kr_rec_send(&w.server.recs[1], "", true);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
             "grpc-status: 0\r\n\r\n");
    teardown(&w);
}

static void test_answer_when_aborted_then_no_last_chunk(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    w.server.recs[0].out_end = false;
    say(&w, GET "\r\n");
    kr_rec_answer(&w.server.recs[0], 200, "", NULL);
    w.server.recs[0].out_end = false;
    kr_rec_send(&w.server.recs[0], "part", false);
    run(&w, 0);
    kr_rec_abort(&w.server.recs[0]);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "transfer-encoding: chunked\r\n\r\n4\r\npart\r\n");
    assert_int_equal(w.server.recs[0].done, 0);
    assert_int_equal(w.peer.rc, KR_ECONNLOST);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void test_answer_when_shorter_or_longer_than_promised_then_it_looks_cut(void **state)
{
    static const char *const bodies[] = {"abc", "abcdef", NULL};
    const char *const fields[] = {"content-length", "5", NULL};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world w;

        setup(&w);
        say(&w, GET "\r\n");
        kr_rec_answer(&w.server.recs[0], 200, bodies[i], fields);
        run(&w, 0);
        assert_int_equal(w.server.recs[0].rc, KR_EPROTO);
        assert_int_equal(w.server.closed, 1);
        assert_int_equal(w.peer.rc, KR_ECONNLOST);
        teardown(&w);
    }
}

static void test_answer_when_large_then_memory_stays_small_and_bytes_arrive(void **state)
{
    struct kr_buf big;
    struct world w;
    size_t total = 0;

    (void)state;
    kr_buf_init(&big, 4 << 20);
    while (big.n < 2 << 20)
        kr_buf_printf(&big, "%07zu ", big.n);
    kr_buf_append(&big, kr_bytes_of("", 1));
    setup(&w);
    kr_mem_pair_capacity(w.pair, 0, 5000, 1024);
    say(&w, GET "\r\n");
    kr_mem_pair_stall(w.pair, 0, true);
    kr_rec_answer(&w.server.recs[0], 200, (const char *)big.p, NULL);
    run(&w, 0);
    assert_true(kr_mem_pair_waiting(w.pair, 0) < 5000 + 1024); /* the rest is not even taken */
    kr_mem_pair_stall(w.pair, 0, false);
    run(&w, 0);
    for (size_t i = 0; i + 6 < w.peer.in.n; i++)
        total += w.peer.in.p[i] == ' ' && w.peer.in.p[i - 1] != ':';
    assert_true(total >= (2 << 20) / 8);
    assert_memory_equal(w.peer.in.p + w.peer.in.n - 7, "\r\n0\r\n\r\n", 7);
    assert_int_equal(w.server.recs[0].rc, 0);
    kr_buf_deinit(&big);
    teardown(&w);
}

/* ---- requests ---- */

static void test_request_when_it_has_a_body_then_the_user_gets_all_of_it(void **state)
{
    static const size_t steps[] = {0, 1, 3};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct world w;

        setup_with(&w, steps[i]);
        say(&w, POST "Content-Length: 5\r\n\r\nhello");
        assert_false(w.server.recs[0].whole_at_head);
        assert_true(w.server.recs[0].ended);
        assert_int_equal(w.server.recs[0].in.n, 5);
        kr_rec_answer(&w.server.recs[0], 200, "ok", NULL);
        say(&w, POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n");
        kr_buf_append(&w.server.recs[1].trailers, kr_bytes_of("", 1));
        assert_string_equal((char *)w.server.recs[1].trailers.p, "x=y;");
        assert_memory_equal(w.server.recs[1].in.p, "abc", 3);
        kr_rec_answer(&w.server.recs[1], 200, "ok", NULL);
        run(&w, 0);
        assert_int_equal(w.server.recs[1].rc, 0);
        assert_int_equal(w.server.closed, 0);
        teardown(&w);
    }
}

static void test_requests_when_pipelined_then_one_after_the_other(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    say(&w, POST "Content-Length: 1\r\n\r\nx" GET "\r\n" POST "Content-Length: 1\r\n\r\ny");
    assert_int_equal(w.server.n, 1);
    kr_rec_answer(&w.server.recs[0], 200, "1", NULL);
    run(&w, 0);
    assert_int_equal(w.server.n, 2);
    kr_rec_answer(&w.server.recs[1], 200, "2", NULL);
    run(&w, 0);
    assert_int_equal(w.server.n, 3);
    assert_memory_equal(w.server.recs[2].in.p, "y", 1);
    kr_rec_answer(&w.server.recs[2], 200, "3", NULL);
    run(&w, 0);
    assert_int_equal(w.server.recs[2].rc, 0);
    assert_int_equal(w.server.conn->exchanges, 0);
    teardown(&w);
}

static void test_requests_when_pipelined_without_end_then_reading_stops(void **state)
{
    static const char one[] = GET "\r\n";
    static char many[200 * 1024];
    struct world w;

    (void)state;
    for (size_t i = 0; i + sizeof one < sizeof many; i += sizeof one - 1)
        memcpy(many + i, one, sizeof one - 1);
    setup(&w);
    say(&w, many);
    assert_int_equal(w.server.n, 1);
    assert_false(kr_mem_pair_reading(w.pair, 1));
    assert_true(kr_mem_pair_waiting(w.pair, 1) > 0);
    for (size_t i = 0; i < KR_REC_MAX - 1; i++) {
        kr_rec_answer(&w.server.recs[i], 200, NULL, NULL);
        run(&w, 0);
    }
    assert_int_equal(w.server.n, KR_REC_MAX);
    teardown(&w);
}

static void test_request_body_when_not_consumed_then_reading_stops(void **state)
{
    static uint8_t block[100 * 1024];
    struct world w;

    (void)state;
    setup_with(&w, 10000);
    kr_rec_init(&w.server.recs[0]);
    w.server.recs[0].hold = true;
    say(&w, POST "Content-Length: 1000000\r\n\r\n");
    for (int i = 0; i < 10; i++)
        kr_mem_peer_send(&w.peer, kr_bytes_of(block, sizeof block));
    run(&w, 0);
    assert_false(kr_mem_pair_reading(w.pair, 1));
    assert_true(w.server.recs[0].in.n >= 64 * 1024 && w.server.recs[0].in.n <= 80 * 1024);
    kr_rec_release(&w.server.recs[0]);
    w.server.recs[0].hold = false;
    run(&w, 0);
    assert_int_equal(w.server.recs[0].in.n, 1000000);
    assert_true(w.server.recs[0].ended);
    teardown(&w);
}

static void test_expect_when_asked_then_100_comes_before_the_answer(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    say(&w, POST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_true(w.server.recs[0].expected_continue);
    hear(&w, "");
    kr_exchange_send_continue(w.server.recs[0].ex);
    kr_exchange_send_continue(w.server.recs[0].ex);
    run(&w, 0);
    hear(&w, "HTTP/1.1 100 Continue\r\n\r\n");
    say(&w, "ab");
    kr_rec_answer(&w.server.recs[0], 200, NULL, NULL);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "content-length: 0\r\n\r\n");
    say(&w, POST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\nab"); /* does not wait */
    kr_exchange_send_continue(w.server.recs[1].ex);
    kr_rec_answer(&w.server.recs[1], 200, NULL, NULL);
    run(&w, 0);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "content-length: 0\r\n\r\n");
    teardown(&w);
}

/* ---- early answers ---- */

static void test_answer_when_early_then_it_says_close_and_the_connection_ends(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    say(&w, POST "Content-Length: 1000000\r\n\r\npart");
    kr_rec_answer(&w.server.recs[0], 413, "too big", NULL);
    say(&w, "more");
    hear(&w, "HTTP/1.1 413 Content Too Large\r\n" DATE "transfer-encoding: chunked\r\n"
             "connection: close\r\n\r\n7\r\ntoo big\r\n0\r\n\r\n");
    assert_int_equal(w.server.recs[0].done, 1);
    assert_int_equal(w.server.recs[0].rc, 0);
    assert_int_equal(w.server.closed, 1);
    assert_true(w.peer.eof);
    teardown(&w);
}

static void test_answer_when_early_but_body_was_there_then_the_connection_stays(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    w.server.on_request = answer_hello;
    say(&w, POST "Content-Length: 5\r\n\r\nhello" GET "\r\n");
    assert_int_equal(w.server.n, 2);
    assert_int_equal(w.server.recs[1].rc, 0);
    assert_int_equal(w.server.closed, 0);
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_when_nothing_is_known_then_it_is_chunked),
        cmocka_unit_test(test_answer_when_its_length_is_known_then_no_chunks),
        cmocka_unit_test(test_answer_when_it_can_have_no_body_then_none_is_sent),
        cmocka_unit_test(test_answer_when_client_speaks_10_then_body_until_close),
        cmocka_unit_test(test_answer_when_it_has_trailers_then_they_follow_the_last_chunk),
        cmocka_unit_test(test_answer_when_aborted_then_no_last_chunk),
        cmocka_unit_test(test_answer_when_shorter_or_longer_than_promised_then_it_looks_cut),
        cmocka_unit_test(test_answer_when_large_then_memory_stays_small_and_bytes_arrive),
        cmocka_unit_test(test_request_when_it_has_a_body_then_the_user_gets_all_of_it),
        cmocka_unit_test(test_requests_when_pipelined_then_one_after_the_other),
        cmocka_unit_test(test_requests_when_pipelined_without_end_then_reading_stops),
        cmocka_unit_test(test_request_body_when_not_consumed_then_reading_stops),
        cmocka_unit_test(test_expect_when_asked_then_100_comes_before_the_answer),
        cmocka_unit_test(test_answer_when_early_then_it_says_close_and_the_connection_ends),
        cmocka_unit_test(test_answer_when_early_but_body_was_there_then_the_connection_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
