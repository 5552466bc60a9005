/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers over HTTP/2, in both roles, with bytes as they come and one by one. */
#include "h2_world.h"

static const size_t steps[] = {0, 1, 7};

#define FOR_EVERY_STEP(w)                                                                          \
    for (size_t at = 0; at < sizeof steps / sizeof steps[0] && (setup((w), steps[at]), 1); at++)

static void answer_ok(struct kr_rec_conn *c, struct kr_rec *r)
{
    static const char *const fields[] = {"x-a", "1", "x-a", "2", NULL};

    (void)c;
    kr_rec_answer(r, 200, "hello", fields);
}

static void answer_empty(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    kr_rec_answer(r, 204, NULL, NULL);
}

static void echo_end(struct kr_rec *r)
{
    kr_buf_append(&r->out, kr_buf_bytes(&r->in));
    r->out_end = true;
    kr_exchange_ready(r->ex);
}

static void answer_echo(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    begin_answer(r, 200);
    r->on_end = echo_end;
}

static void test_request_when_without_body_then_answered(void **state)
{
    static const char *const fields[] = {"accept", "*/*", "cookie", "a=b", NULL};
    struct world w;

    (void)state;
    FOR_EVERY_STEP(&w)
    {
        struct kr_rec *r;

        w.server.on_request = answer_ok;
        r = kr_rec_open(&w.client, "GET", "/x?y=%20z", true, fields);
        run(&w, 0);
        assert_string_equal(w.server.recs[0].line, "GET origin:443 /x?y=%20z");
        assert_text(&w.server.recs[0].fields, "accept=*/*;cookie=a=b;");
        assert_true(w.server.recs[0].whole_at_head && w.server.recs[0].ended);
        assert_int_equal(r->status, 200);
        assert_text(&r->fields, "x-a=1;x-a=2;");
        assert_text(&r->in, "hello");
        assert_true(r->ended && r->done == 1 && r->rc == 0);
        assert_int_equal(w.server.recs[0].done, 1);
        assert_int_equal(w.server.recs[0].rc, 0);
        assert_int_equal(w.client.conn->exchanges, 0);
        assert_int_equal(w.server.conn->exchanges, 0);
        finish(&w);
    }
}

static void test_request_when_body_then_echoed_whole(void **state)
{
    struct world w;

    (void)state;
    FOR_EVERY_STEP(&w)
    {
        struct kr_rec *r;

        w.server.on_request = answer_echo;
        r = kr_rec_open(&w.client, "POST", "/", false, NULL);
        send_pattern(r, 200000, true);
        run(&w, 0);
        assert_false(w.server.recs[0].whole_at_head);
        assert_pattern(&w.server.recs[0].in, 200000);
        assert_pattern(&r->in, 200000);
        assert_int_equal(r->done, 1);
        assert_int_equal(r->rc, 0);
        finish(&w);
    }
}

static void test_answer_when_bodiless_then_ended_at_head(void **state)
{
    struct world w;

    (void)state;
    FOR_EVERY_STEP(&w)
    {
        struct kr_rec *r;

        w.server.on_request = answer_empty;
        r = kr_rec_open(&w.client, "DELETE", "/", true, NULL);
        run(&w, 0);
        assert_int_equal(r->status, 204);
        assert_true(r->whole_at_head && r->ended);
        assert_int_equal(r->rc, 0);
        finish(&w);
    }
}

static void test_answer_when_head_then_length_but_no_body(void **state)
{
    static const char *const fields[] = {"content-length", "12345", NULL};
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w, 0);
    r = kr_rec_open(&w.client, "HEAD", "/", true, NULL);
    run(&w, 0);
    kr_rec_answer(&w.server.recs[0], 200, NULL, fields);
    run(&w, 0);
    assert_text(&r->fields, "content-length=12345;");
    assert_int_equal(r->rc, 0);
    assert_int_equal(r->done, 1);
    finish(&w);
}

static void send_trailers(struct kr_rec *r)
{
    struct kr_head trailers;

    kr_head_init(&trailers, KR_HEAD_MAX);
    kr_head_add_str(&trailers, "grpc-status", "0");
    assert_int_equal(kr_exchange_send_trailers(r->ex, &trailers), 0);
    kr_head_deinit(&trailers);
}

static void test_trailers_when_after_body_then_given_with_end(void **state)
{
    struct world w;

    (void)state;
    FOR_EVERY_STEP(&w)
    {
        struct kr_rec *r = kr_rec_open(&w.client, "POST", "/", false, NULL);

        send_trailers(r);
        kr_rec_send(r, "up", true);
        run(&w, 0);
        assert_text(&w.server.recs[0].trailers, "grpc-status=0;");
        begin_answer(&w.server.recs[0], 200);
        send_trailers(&w.server.recs[0]);
        kr_rec_send(&w.server.recs[0], "down", true);
        run(&w, 0);
        assert_text(&w.server.recs[0].in, "up");
        assert_text(&r->in, "down");
        assert_text(&r->trailers, "grpc-status=0;");
        assert_true(r->ended && r->done == 1 && r->rc == 0);
        finish(&w);
    }
}

static void test_trailers_when_no_body_then_given_with_end(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w, 0);
    r = kr_rec_open(&w.client, "GET", "/", true, NULL);
    run(&w, 0);
    begin_answer(&w.server.recs[0], 200);
    run(&w, 0);
    send_trailers(&w.server.recs[0]);
    kr_rec_send(&w.server.recs[0], "", true);
    run(&w, 0);
    assert_text(&r->in, "");
    assert_text(&r->trailers, "grpc-status=0;");
    assert_int_equal(r->rc, 0);
    finish(&w);
}

static void test_continue_when_expected_then_sent_and_final_head_follows(void **state)
{
    static const char *const fields[] = {"expect", "100-Continue", NULL};
    struct world w;

    (void)state;
    FOR_EVERY_STEP(&w)
    {
        struct kr_rec *r = kr_rec_open(&w.client, "PUT", "/", false, fields);

        run(&w, 0);
        assert_true(w.server.recs[0].expected_continue);
        kr_exchange_send_continue(w.server.recs[0].ex);
        kr_exchange_send_continue(w.server.recs[0].ex); /* at most one goes out */
        run(&w, 0);
        assert_false(r->headed); /* 100 is no answer */
        kr_rec_send(r, "body", true);
        run(&w, 0);
        assert_text(&w.server.recs[0].in, "body");
        kr_rec_answer(&w.server.recs[0], 201, "made", NULL);
        run(&w, 0);
        assert_int_equal(r->status, 201);
        assert_text(&r->in, "made");
        assert_int_equal(r->rc, 0);
        finish(&w);
    }
}

static void test_answer_when_early_then_rest_of_request_is_dropped(void **state)
{
    struct world w;

    (void)state;
    FOR_EVERY_STEP(&w)
    {
        struct kr_rec *r = kr_rec_open(&w.client, "POST", "/", false, NULL);

        kr_rec_send(r, "some", false);
        run(&w, 0);
        kr_rec_answer(&w.server.recs[0], 413, "no", NULL);
        run(&w, 0);
        assert_int_equal(w.server.recs[0].done, 1);
        assert_int_equal(w.server.recs[0].rc, 0); /* the answer is whole */
        assert_int_equal(r->status, 413);
        assert_text(&r->in, "no");
        assert_true(r->ended && r->done == 1);
        assert_int_equal(r->rc, 0);
        assert_int_equal(w.client.conn->exchanges, 0);
        finish(&w);
    }
}

static void test_streams_when_many_then_each_gets_its_own(void **state)
{
    struct world w;

    (void)state;
    FOR_EVERY_STEP(&w)
    {
        w.server.on_request = answer_echo;
        for (size_t i = 0; i < KR_REC_MAX; i++) {
            struct kr_rec *r = kr_rec_open(&w.client, "POST", "/", false, NULL);
            char text[32];

            snprintf(text, sizeof text, "number %zu", i);
            kr_rec_send(r, text, true);
        }
        run(&w, 0);
        for (size_t i = 0; i < KR_REC_MAX; i++) {
            char text[32];

            snprintf(text, sizeof text, "number %zu", i);
            assert_text(&w.client.recs[i].in, text);
            assert_int_equal(w.client.recs[i].rc, 0);
            assert_int_equal(w.client.recs[i].done, 1);
        }
        finish(&w);
    }
}

static void test_large_heads_when_beyond_a_frame_then_whole(void **state)
{
    struct world w;
    char *big = malloc(50001);
    const char *fields[] = {"x-a", big, "x-b", big, "x-c", big, NULL};

    (void)state;
    memset(big, 'v', 50000);
    big[50000] = '\0';
    setup(&w, 0);
    kr_mem_pair_capacity(w.pair, 0, 4096, 1024);
    kr_mem_pair_capacity(w.pair, 1, 4096, 1024);
    assert_non_null(kr_rec_open(&w.client, "GET", "/", true, fields));
    run(&w, 0);
    assert_int_equal(w.server.recs[0].fields.n, 3 * (50000 + 5));
    kr_rec_answer(&w.server.recs[0], 200, "ok", fields);
    run(&w, 0);
    assert_int_equal(w.client.recs[0].fields.n, 3 * (50000 + 5));
    assert_int_equal(w.client.recs[0].rc, 0);
    free(big);
    finish(&w);
}

static void test_extended_connect_when_announced_then_client_sees_it(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.server_cfg.connect_protocol = true;
    join(&w);
    assert_true(kr_h2_peer_allows_connect(w.client.conn));
    finish(&w);
    setup(&w, 0);
    assert_false(kr_h2_peer_allows_connect(w.client.conn));
    finish(&w);
}

static void test_body_when_fill_has_little_room_then_whole(void **state)
{
    struct world w;

    (void)state;
    for (size_t room = 1024; room < 1100; room += 5) {
        setup(&w, 0);
        kr_mem_pair_capacity(w.pair, 0, room * 3, room);
        kr_mem_pair_capacity(w.pair, 1, room * 2, room);
        w.server.on_request = answer_echo;
        for (int i = 0; i < 5; i++)
            send_pattern(kr_rec_open(&w.client, "POST", "/", false, NULL), 30000 + i, true);
        run(&w, 0);
        for (int i = 0; i < 5; i++) {
            assert_pattern(&w.client.recs[i].in, 30000 + i);
            assert_int_equal(w.client.recs[i].rc, 0);
        }
        finish(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_when_without_body_then_answered),
        cmocka_unit_test(test_request_when_body_then_echoed_whole),
        cmocka_unit_test(test_answer_when_bodiless_then_ended_at_head),
        cmocka_unit_test(test_answer_when_head_then_length_but_no_body),
        cmocka_unit_test(test_trailers_when_after_body_then_given_with_end),
        cmocka_unit_test(test_trailers_when_no_body_then_given_with_end),
        cmocka_unit_test(test_continue_when_expected_then_sent_and_final_head_follows),
        cmocka_unit_test(test_answer_when_early_then_rest_of_request_is_dropped),
        cmocka_unit_test(test_streams_when_many_then_each_gets_its_own),
        cmocka_unit_test(test_large_heads_when_beyond_a_frame_then_whole),
        cmocka_unit_test(test_extended_connect_when_announced_then_client_sees_it),
        cmocka_unit_test(test_body_when_fill_has_little_room_then_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
