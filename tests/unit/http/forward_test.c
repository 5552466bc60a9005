/* SPDX-License-Identifier: Apache-2.0 */
/* The two exchanges of a relayed request: bodies, credit, early answers, cancels. */
#include "forward_world.h"

enum { WINDOW = 64 * 1024 };

static const size_t steps[] = {0, 1};

static void test_request_when_get_then_answer_comes_through(void **state)
{
    static const char *const fields[] = {"content-type", "text/plain", NULL};
    struct relay r;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kr_rec *c;

        begin(&r, steps[i]);
        c = kr_rec_open(&r.client, "GET", "/x", true, NULL);
        turn(&r, 0);
        assert_string_equal(r.origin.recs[0].line, "GET origin /x");
        assert_true(r.origin.recs[0].whole_at_head);
        kr_rec_answer(&r.origin.recs[0], 200, "hello", fields);
        turn(&r, 0);
        assert_int_equal(c->status, 200);
        assert_text(&c->fields, "content-type=text/plain;");
        assert_text(&c->in, "hello");
        assert_int_equal(c->rc, 0);
        assert_true(c->done == 1 && r.finished == 1 && r.client_rc == 0 && r.failed == 0);
        assert_int_equal(r.tapped, 5);
        assert_int_equal(r.fw.down_bytes, 5);
        end(&r);
    }
}

static void test_bodies_when_large_then_whole_both_ways(void **state)
{
    struct relay r;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t n = i == 0 ? 1000000 : 100000;
        struct kr_rec *c;

        begin(&r, steps[i] * 50);
        c = kr_rec_open(&r.client, "POST", "/", false, NULL);
        send_pattern(c, n, true);
        turn(&r, 0);
        assert_pattern(&r.origin.recs[0].in, n);
        assert_true(r.origin.recs[0].ended);
        begin_answer(&r.origin.recs[0], 201);
        send_pattern(&r.origin.recs[0], n, true);
        turn(&r, 0);
        assert_pattern(&c->in, n);
        assert_int_equal(c->rc, 0);
        assert_int_equal(r.fw.up_bytes, n);
        assert_int_equal(r.fw.down_bytes, n);
        end(&r);
    }
}

static void test_answer_when_without_body_or_with_trailers_then_so_at_the_client(void **state)
{
    struct kr_head trailers;
    struct relay r;

    (void)state;
    begin(&r, 0);
    kr_rec_open(&r.client, "DELETE", "/", true, NULL);
    turn(&r, 0);
    kr_rec_answer(&r.origin.recs[0], 204, NULL, NULL);
    turn(&r, 0);
    assert_true(r.client.recs[0].whole_at_head && r.client.recs[0].rc == 0);
    kr_forward_deinit(&r.fw);
    kr_rec_open(&r.client, "POST", "/", true, NULL);
    turn(&r, 0);
    kr_head_init(&trailers, KR_HEAD_MAX);
    kr_head_add_str(&trailers, "x-sum", "9");
    begin_answer(&r.origin.recs[1], 200);
    assert_int_equal(kr_exchange_send_trailers(r.origin.recs[1].ex, &trailers), 0);
    kr_head_deinit(&trailers);
    kr_rec_send(&r.origin.recs[1], "b", true);
    turn(&r, 0);
    assert_text(&r.client.recs[1].trailers, "x-sum=9;");
    end(&r);
}

static void test_continue_when_expected_then_sent_once_the_request_goes_out(void **state)
{
    static const char *const fields[] = {"expect", "100-continue", NULL};
    struct relay r;

    (void)state;
    begin(&r, 0);
    r.do_not_open = true;
    kr_rec_open(&r.client, "PUT", "/", false, fields);
    turn(&r, 0);
    assert_true(r.fw.in->expects_continue);
    assert_int_equal(open_out(&r), 0);
    assert_false(r.fw.in->expects_continue);
    kr_rec_send(&r.client.recs[0], "body", true);
    turn(&r, 0);
    kr_rec_answer(&r.origin.recs[0], 200, "ok", NULL);
    turn(&r, 0);
    assert_text(&r.client.recs[0].in, "ok");
    end(&r);
}

/* ---- credit ---- */

static void test_download_when_client_is_slow_then_origin_stops(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    begin(&r, 0);
    c = kr_rec_open(&r.client, "GET", "/", true, NULL);
    c->hold = true;
    turn(&r, 0);
    begin_answer(&r.origin.recs[0], 200);
    send_pattern(&r.origin.recs[0], 1000000, true);
    turn(&r, 60000);
    assert_int_equal(c->in.n, WINDOW);
    assert_true(r.fw.down.size <= WINDOW);
    /* one window at the client, one in the relay, and what fits in neither stays */
    assert_in_range(r.origin.recs[0].out.n, 1000000 - 2 * WINDOW, 1000000 - WINDOW);
    c->hold = false;
    kr_rec_release(c);
    turn(&r, 0);
    assert_pattern(&c->in, 1000000);
    assert_int_equal(c->rc, 0);
    end(&r);
}

static void test_upload_when_origin_is_slow_then_client_stops(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    begin(&r, 0);
    c = kr_rec_open(&r.client, "POST", "/", false, NULL);
    turn(&r, 0);
    r.origin.recs[0].hold = true;
    send_pattern(c, 1000000, true);
    turn(&r, 60000);
    assert_int_equal(r.origin.recs[0].in.n, WINDOW);
    assert_true(r.fw.up.size <= WINDOW);
    assert_in_range(c->out.n, 1000000 - 2 * WINDOW, 1000000 - WINDOW);
    r.origin.recs[0].hold = false;
    kr_rec_release(&r.origin.recs[0]);
    turn(&r, 0);
    assert_pattern(&r.origin.recs[0].in, 1000000);
    kr_rec_answer(&r.origin.recs[0], 200, NULL, NULL);
    turn(&r, 0);
    assert_int_equal(c->rc, 0);
    end(&r);
}

static void test_upload_when_not_opened_yet_then_bounded_by_the_window(void **state)
{
    struct relay r;

    (void)state;
    begin(&r, 0);
    r.do_not_open = true;
    kr_rec_open(&r.client, "POST", "/", false, NULL);
    send_pattern(&r.client.recs[0], 500000, true);
    turn(&r, 0);
    assert_int_equal(r.fw.up.size, WINDOW);
    assert_int_equal(open_out(&r), 0);
    turn(&r, 0);
    assert_pattern(&r.origin.recs[0].in, 500000);
    kr_rec_answer(&r.origin.recs[0], 200, "ok", NULL);
    turn(&r, 0);
    assert_int_equal(r.client.recs[0].rc, 0);
    end(&r);
}

static void test_answer_when_early_then_upload_is_dropped(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin(&r, steps[i] * 100);
        c = kr_rec_open(&r.client, "PUT", "/", false, NULL);
        turn(&r, 0);
        r.origin.recs[0].hold = true; /* it reads nothing */
        send_pattern(c, 400000, true);
        turn(&r, 0);
        kr_rec_answer(&r.origin.recs[0], 413, "too large", NULL);
        turn(&r, 0);
        assert_int_equal(c->status, 413);
        assert_text(&c->in, "too large");
        assert_int_equal(c->rc, 0);
        assert_int_equal(c->done, 1);
        assert_true(r.finished == 1 && r.client_rc == 0 && r.failed == 0);
        assert_int_equal(r.back_conn->exchanges, 0);
        assert_int_equal(r.front_conn->exchanges, 0);
        end(&r);
    }
}

/* An origin that answers while it reads on: both directions run to their ends. */
static void test_answer_when_it_begins_during_the_upload_then_both_go_on(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    begin(&r, 0);
    c = kr_rec_open(&r.client, "POST", "/", false, NULL);
    kr_rec_send(c, "one", false);
    turn(&r, 0);
    begin_answer(&r.origin.recs[0], 200);
    kr_rec_send(&r.origin.recs[0], "eins", false);
    turn(&r, 0);
    assert_text(&c->in, "eins");
    kr_rec_send(c, "two", true);
    turn(&r, 0);
    assert_text(&r.origin.recs[0].in, "onetwo");
    kr_rec_send(&r.origin.recs[0], "zwei", true);
    turn(&r, 0);
    assert_text(&c->in, "einszwei");
    assert_int_equal(c->rc, 0);
    end(&r);
}

/* ---- cancel ---- */

static void test_client_leaves_when_in_each_state_then_origin_is_told(void **state)
{
    struct relay r;

    (void)state;
    for (int where = 0; where < 3; where++) {
        begin(&r, 1);
        kr_rec_open(&r.client, "POST", "/", false, NULL);
        kr_rec_send(&r.client.recs[0], "some", false);
        if (where > 0)
            turn(&r, 0);
        if (where > 1) {
            begin_answer(&r.origin.recs[0], 200);
            send_pattern(&r.origin.recs[0], 5000, false);
            turn(&r, 0);
        }
        kr_rec_abort(&r.client.recs[0]);
        turn(&r, 0);
        if (where > 0) {
            assert_int_equal(r.origin.recs[0].done, 1);
            assert_int_equal(r.origin.recs[0].rc, KR_ERESET);
            assert_int_equal(r.finished, 1);
            assert_int_equal(r.client_rc, KR_ERESET);
        }
        assert_int_equal(r.failed, 0);
        assert_int_equal(r.back_conn->exchanges, 0);
        end(&r);
    }
}

static void test_client_connection_lost_when_answering_then_origin_is_told(void **state)
{
    struct relay r;

    (void)state;
    begin(&r, 0);
    kr_rec_open(&r.client, "GET", "/", true, NULL);
    turn(&r, 0);
    begin_answer(&r.origin.recs[0], 200);
    turn(&r, 0);
    kr_mem_pair_cut(r.front, KR_ECONNLOST);
    turn(&r, 0);
    assert_int_equal(r.client_rc, KR_ECONNLOST);
    assert_int_equal(r.origin.recs[0].rc, KR_ERESET);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_when_get_then_answer_comes_through),
        cmocka_unit_test(test_bodies_when_large_then_whole_both_ways),
        cmocka_unit_test(test_answer_when_without_body_or_with_trailers_then_so_at_the_client),
        cmocka_unit_test(test_continue_when_expected_then_sent_once_the_request_goes_out),
        cmocka_unit_test(test_download_when_client_is_slow_then_origin_stops),
        cmocka_unit_test(test_upload_when_origin_is_slow_then_client_stops),
        cmocka_unit_test(test_upload_when_not_opened_yet_then_bounded_by_the_window),
        cmocka_unit_test(test_answer_when_early_then_upload_is_dropped),
        cmocka_unit_test(test_answer_when_it_begins_during_the_upload_then_both_go_on),
        cmocka_unit_test(test_client_leaves_when_in_each_state_then_origin_is_told),
        cmocka_unit_test(test_client_connection_lost_when_answering_then_origin_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
