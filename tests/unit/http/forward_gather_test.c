/* SPDX-License-Identifier: Apache-2.0 */
/* A request body that is collected before the request goes out. */
#include "forward_world.h"

static const size_t steps[] = {0, 1};

static void test_gather_when_larger_than_the_window_then_whole_and_sent_on(void **state)
{
    struct relay r;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t n = i == 0 ? 1000000 : 100000;
        struct kr_rec *c;

        begin(&r, steps[i] * 50);
        r.gather_max = 2000000;
        c = kr_rec_open(&r.client, "PUT", "/", false, NULL);
        send_pattern(c, n, true);
        turn(&r, 0);
        assert_int_equal(r.gathered, 1);
        assert_pattern(&r.origin.recs[0].in, n);
        assert_true(r.origin.recs[0].ended);
        kr_rec_answer(&r.origin.recs[0], 200, "done", NULL);
        turn(&r, 0);
        assert_text(&c->in, "done");
        assert_true(c->rc == 0 && r.failed == 0 && r.finished == 1);
        end(&r);
    }
}

static void test_gather_when_not_whole_then_nothing_goes_out(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    begin(&r, 0);
    r.gather_max = 2000000;
    c = kr_rec_open(&r.client, "PUT", "/", false, NULL);
    send_pattern(c, 300000, false);
    turn(&r, 0);
    assert_int_equal(r.gathered, 0);
    assert_int_equal(r.fw.up.size, 300000); /* more than the window */
    assert_int_equal(r.origin.n, 0);
    kr_rec_abort(c);
    turn(&r, 0);
    assert_true(r.finished == 1 && r.failed == 0 && r.gathered == 0);
    end(&r);
}

static void test_gather_when_there_is_no_body_then_called_all_the_same(void **state)
{
    struct relay r;

    (void)state;
    begin(&r, 0);
    r.gather_max = 1000;
    kr_rec_open(&r.client, "DELETE", "/", true, NULL);
    turn(&r, 0);
    assert_int_equal(r.gathered, 1);
    assert_true(r.origin.recs[0].ended);
    assert_int_equal(r.origin.recs[0].in.n, 0);
    kr_rec_answer(&r.origin.recs[0], 200, "", NULL);
    turn(&r, 0);
    assert_int_equal(r.finished, 1);
    end(&r);
}

static void test_gather_when_too_long_then_failed(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    begin(&r, 0);
    r.gather_max = 100000;
    r.after = SAY_502;
    c = kr_rec_open(&r.client, "PUT", "/", false, NULL);
    send_pattern(c, 100001, true);
    turn(&r, 0);
    assert_int_equal(r.failed_rc, KR_ETOOBIG);
    assert_int_equal(r.gathered, 0);
    assert_int_equal(c->status, 502);
    end(&r);
}

static void
test_gather_when_the_body_is_replaced_then_the_new_one_also_on_a_second_try(void **state)
{
    struct relay r;
    struct kr_rec *c;

    (void)state;
    begin(&r, 0);
    r.gather_max = 100000;
    r.instead = "something else";
    r.after = WAIT;
    c = kr_rec_open(&r.client, "PUT", "/", false, NULL);
    send_pattern(c, 50000, true);
    turn(&r, 0);
    assert_text(&r.origin.recs[0].in, "something else");
    kr_exchange_abort(r.origin.recs[0].ex, KR_ABORT_REFUSED);
    r.origin.recs[0].ex = NULL;
    turn(&r, 0);
    assert_int_equal(r.failed_rc, KR_EREFUSED);
    assert_false(r.fw.up_taken);
    assert_int_equal(open_out(&r), 0);
    turn(&r, 0);
    assert_text(&r.origin.recs[1].in, "something else");
    kr_rec_answer(&r.origin.recs[1], 200, "done", NULL);
    turn(&r, 0);
    assert_text(&c->in, "done");
    assert_int_equal(r.finished, 1);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather_when_larger_than_the_window_then_whole_and_sent_on),
        cmocka_unit_test(test_gather_when_not_whole_then_nothing_goes_out),
        cmocka_unit_test(test_gather_when_there_is_no_body_then_called_all_the_same),
        cmocka_unit_test(test_gather_when_too_long_then_failed),
        cmocka_unit_test(
            test_gather_when_the_body_is_replaced_then_the_new_one_also_on_a_second_try),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
