/* SPDX-License-Identifier: Apache-2.0 */
/* What the owner of a forward can do when the far side breaks. */
#include "forward_world.h"

static void start(struct relay *r, bool upload)
{
    begin(r, 0);
    kr_rec_open(&r->client, upload ? "POST" : "GET", "/", !upload, NULL);
    if (upload)
        kr_rec_send(&r->client.recs[0], "some", false);
    turn(r, 0);
}

static void test_failed_when_before_the_answer_then_owner_answers(void **state)
{
    struct relay r;

    (void)state;
    for (int how = 0; how < 2; how++) {
        start(&r, how == 1);
        if (how == 0)
            kr_mem_pair_cut(r.back, KR_ECONNLOST);
        else
            kr_rec_abort(&r.origin.recs[0]);
        turn(&r, 0);
        assert_int_equal(r.failed, 1);
        assert_int_equal(r.failed_rc, how == 0 ? KR_ECONNLOST : KR_ERESET);
        assert_true(r.fw.out_was_sent);
        assert_false(r.fw.response_begun);
        assert_false(r.fw.up_taken); /* what went out of a body is kept for another attempt */
        assert_int_equal(r.client.recs[0].status, 502);
        assert_text(&r.client.recs[0].in, "broken");
        assert_int_equal(r.client.recs[0].rc, 0);
        assert_int_equal(r.finished, 0); /* released: nothing more comes */
        end(&r);
    }
}

static void test_failed_when_reset_then_code_is_told(void **state)
{
    struct relay r;
    struct kr_exchange *ex;

    (void)state;
    start(&r, false);
    ex = r.origin.recs[0].ex;
    r.origin.recs[0].ex = NULL;
    kr_exchange_abort(ex, KR_ABORT_INTERNAL);
    turn(&r, 0);
    assert_int_equal(r.fw.out_reset_code, 2);
    end(&r);
}

static void test_failed_when_refused_then_opened_again(void **state)
{
    struct relay r;
    struct kr_exchange *ex;

    (void)state;
    start(&r, false);
    r.after = OPEN_AGAIN;
    ex = r.origin.recs[0].ex;
    r.origin.recs[0].ex = NULL;
    kr_exchange_abort(ex, KR_ABORT_REFUSED);
    turn(&r, 0);
    assert_int_equal(r.failed, 1);
    assert_int_equal(r.failed_rc, KR_EREFUSED);
    assert_int_equal(r.origin.n, 2);
    kr_rec_answer(&r.origin.recs[1], 200, "at last", NULL);
    turn(&r, 0);
    assert_text(&r.client.recs[0].in, "at last");
    assert_int_equal(r.client_rc, 0);
    end(&r);
}

/* A small body that went out already goes out again, whole and once credited; a large one cannot.
 */
static void test_failed_when_refused_after_the_body_then_sent_again_if_small(void **state)
{
    static const size_t sizes[] = {1, 4096, 30000, 60000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct relay r;
        struct kr_exchange *ex;

        begin(&r, 0);
        r.after = OPEN_AGAIN;
        kr_rec_open(&r.client, "POST", "/", false, NULL);
        send_pattern(&r.client.recs[0], sizes[i], true);
        turn(&r, 0);
        assert_pattern(&r.origin.recs[0].in, sizes[i]);
        ex = r.origin.recs[0].ex;
        r.origin.recs[0].ex = NULL;
        kr_exchange_abort(ex, KR_ABORT_REFUSED);
        turn(&r, 0);
        assert_int_equal(r.failed_rc, KR_EREFUSED);
        assert_int_equal(r.origin.n, 2);
        assert_pattern(&r.origin.recs[1].in, sizes[i]);
        kr_rec_answer(&r.origin.recs[1], 201, "made once", NULL);
        turn(&r, 0);
        assert_text(&r.client.recs[0].in, "made once");
        end(&r);
    }
}

static void test_failed_when_refused_after_a_large_body_then_not_kept(void **state)
{
    struct relay r;
    struct kr_exchange *ex;

    (void)state;
    begin(&r, 0);
    r.after = WAIT;
    kr_rec_open(&r.client, "POST", "/", false, NULL);
    send_pattern(&r.client.recs[0], 200000, true);
    turn(&r, 0);
    assert_pattern(&r.origin.recs[0].in, 200000);
    assert_true(r.fw.up_taken);
    assert_int_equal(r.fw.kept.size, 0);
    ex = r.origin.recs[0].ex;
    r.origin.recs[0].ex = NULL;
    kr_exchange_abort(ex, KR_ABORT_REFUSED);
    turn(&r, 0);
    assert_int_equal(r.failed_rc, KR_EREFUSED);
    end(&r);
}

/* The connection goes before the request left it: the waiting body goes with the next attempt. */
static void test_failed_when_not_sent_then_opened_again_with_its_body(void **state)
{
    struct relay r;

    (void)state;
    begin(&r, 0);
    r.do_not_open = true;
    r.after = WAIT;
    kr_rec_open(&r.client, "POST", "/", false, NULL);
    send_pattern(&r.client.recs[0], 30000, true);
    turn(&r, 0);
    assert_int_equal(open_out(&r), 0);
    kr_mem_pair_cut(r.back, KR_ECONNLOST);
    turn(&r, 0);
    assert_int_equal(r.failed_rc, KR_EREFUSED);
    assert_false(r.fw.out_was_sent);
    assert_false(r.fw.up_taken);
    join_back(&r, 0);
    assert_int_equal(open_out(&r), 0);
    turn(&r, 0);
    assert_pattern(&r.origin.recs[0].in, 30000);
    kr_rec_answer(&r.origin.recs[0], 200, "ok", NULL);
    turn(&r, 0);
    assert_text(&r.client.recs[0].in, "ok");
    end(&r);
}

static void test_open_when_connection_is_full_then_says_so(void **state)
{
    struct relay r;

    (void)state;
    begin(&r, 0);
    r.do_not_open = true;
    kr_rec_open(&r.client, "GET", "/", true, NULL);
    turn(&r, 0);
    kr_conn_drain(r.back_conn);
    assert_int_equal(open_out(&r), KR_EFULL);
    say_502(&r);
    turn(&r, 0);
    assert_int_equal(r.client.recs[0].status, 502);
    end(&r);
}

static void test_response_when_refused_by_owner_then_failed_and_canceled(void **state)
{
    struct relay r;

    (void)state;
    begin(&r, 0);
    r.response_rc = KR_EDENIED;
    kr_rec_open(&r.client, "GET", "/", true, NULL);
    turn(&r, 0);
    kr_rec_answer(&r.origin.recs[0], 302, "elsewhere", NULL);
    turn(&r, 0);
    assert_int_equal(r.failed_rc, KR_EDENIED);
    assert_int_equal(r.client.recs[0].status, 502);
    assert_text(&r.client.recs[0].in, "broken");
    assert_int_equal(r.back_conn->exchanges, 0);
    end(&r);
}

/* ---- the answer has begun ---- */

static void begin_down(struct relay *r, enum after_failure after, bool slow)
{
    begin(r, 0);
    r->after = after;
    kr_rec_open(&r->client, "GET", "/", true, NULL)->hold = slow;
    turn(r, 0);
    begin_answer(&r->origin.recs[0], 200);
    send_pattern(&r->origin.recs[0], 100000, false);
    turn(r, 0);
}

static void test_failed_when_cut_then_client_sees_a_reset(void **state)
{
    struct relay r;

    (void)state;
    begin_down(&r, CUT, false);
    kr_mem_pair_cut(r.back, KR_ECONNLOST);
    turn(&r, 0);
    assert_int_equal(r.failed, 1);
    assert_true(r.fw.response_begun);
    assert_false(r.client.recs[0].ended);
    assert_int_equal(r.client.recs[0].rc, KR_ERESET);
    assert_int_equal(r.finished, 0);
    end(&r);
}

static void test_finish_at_when_bytes_wait_then_ends_exactly_there(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    for (uint64_t at = 65536; at <= 100000; at += 11488) {
        begin_down(&r, FINISH_AT, true);
        c = &r.client.recs[0];
        r.finish_at = at;
        assert_int_equal(r.fw.down_bytes, 100000);
        assert_true(kr_forward_may_finish_at(&r.fw, 65536));
        assert_false(kr_forward_may_finish_at(&r.fw, 65535));
        kr_mem_pair_cut(r.back, KR_ECONNLOST);
        turn(&r, 0);
        assert_int_equal(r.finished, 0);
        c->hold = false;
        kr_rec_release(c);
        turn(&r, 0);
        assert_pattern(&c->in, at);
        assert_true(c->ended);
        assert_int_equal(c->rc, 0);
        assert_int_equal(r.finished, 1);
        assert_int_equal(r.client_rc, 0);
        end(&r);
    }
}

static void test_finish_at_when_more_is_gone_then_ends_behind_that(void **state)
{
    struct relay r;

    (void)state;
    begin_down(&r, FINISH_AT, true);
    r.finish_at = 10;
    kr_mem_pair_cut(r.back, KR_ECONNLOST);
    turn(&r, 0);
    r.client.recs[0].hold = false;
    kr_rec_release(&r.client.recs[0]);
    turn(&r, 0);
    assert_pattern(&r.client.recs[0].in, 65536);
    assert_true(r.client.recs[0].ended);
    end(&r);
}

static void test_release_when_running_then_origin_is_told_and_caller_answers(void **state)
{
    struct relay r;

    (void)state;
    start(&r, true);
    say_502(&r);
    turn(&r, 0);
    assert_int_equal(r.origin.recs[0].rc, KR_ERESET);
    assert_int_equal(r.client.recs[0].status, 502);
    assert_int_equal(r.client.recs[0].rc, 0);
    assert_true(r.finished == 0 && r.failed == 0);
    end(&r);
}

/* The origin breaks after its whole answer: the client must not notice. */
static void test_answer_when_whole_before_the_break_then_served(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    begin(&r, 0);
    c = kr_rec_open(&r.client, "GET", "/", true, NULL);
    c->hold = true;
    turn(&r, 0);
    begin_answer(&r.origin.recs[0], 200);
    send_pattern(&r.origin.recs[0], 100000, true);
    turn(&r, 0);
    kr_mem_pair_cut(r.back, KR_ECONNLOST);
    turn(&r, 0);
    c->hold = false;
    kr_rec_release(c);
    turn(&r, 0);
    assert_pattern(&c->in, 100000);
    assert_int_equal(c->rc, 0);
    assert_int_equal(r.failed, 0);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failed_when_before_the_answer_then_owner_answers),
        cmocka_unit_test(test_failed_when_reset_then_code_is_told),
        cmocka_unit_test(test_failed_when_refused_then_opened_again),
        cmocka_unit_test(test_failed_when_refused_after_the_body_then_sent_again_if_small),
        cmocka_unit_test(test_failed_when_refused_after_a_large_body_then_not_kept),
        cmocka_unit_test(test_failed_when_not_sent_then_opened_again_with_its_body),
        cmocka_unit_test(test_open_when_connection_is_full_then_says_so),
        cmocka_unit_test(test_response_when_refused_by_owner_then_failed_and_canceled),
        cmocka_unit_test(test_failed_when_cut_then_client_sees_a_reset),
        cmocka_unit_test(test_finish_at_when_bytes_wait_then_ends_exactly_there),
        cmocka_unit_test(test_finish_at_when_more_is_gone_then_ends_behind_that),
        cmocka_unit_test(test_release_when_running_then_origin_is_told_and_caller_answers),
        cmocka_unit_test(test_answer_when_whole_before_the_break_then_served),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
