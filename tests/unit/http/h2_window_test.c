/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control: credit for what was delivered and nothing else, windows that grow on a shared
 * budget, nothing taken from a user beyond what its peer granted. */
#include "h2_world.h"

enum { WINDOW = 64 * 1024 };

static void hold(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    r->hold = true;
}

static void test_upload_when_not_delivered_then_stops_at_the_window(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w, 0);
    w.server.on_request = hold;
    r = kr_rec_open(&w.client, "POST", "/", false, NULL);
    send_pattern(r, 300000, true);
    run(&w, 0);
    assert_int_equal(w.server.recs[0].in.n, WINDOW);
    assert_int_equal(r->out.n, 300000 - WINDOW); /* nothing was taken beyond the window */
    run(&w, 60000);
    assert_int_equal(w.server.recs[0].in.n, WINDOW);
    w.server.recs[0].hold = false;
    kr_rec_release(&w.server.recs[0]);
    run(&w, 0);
    assert_pattern(&w.server.recs[0].in, 300000);
    kr_rec_answer(&w.server.recs[0], 200, NULL, NULL);
    run(&w, 0);
    assert_int_equal(r->rc, 0);
    finish(&w);
}

static void test_download_when_not_delivered_then_stops_at_the_window(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w, 0);
    r = kr_rec_open(&w.client, "GET", "/", true, NULL);
    r->hold = true;
    run(&w, 0);
    begin_answer(&w.server.recs[0], 200);
    send_pattern(&w.server.recs[0], 300000, true);
    run(&w, 0);
    assert_int_equal(r->in.n, WINDOW);
    assert_int_equal(w.server.recs[0].out.n, 300000 - WINDOW);
    r->hold = false;
    kr_rec_release(r);
    run(&w, 0);
    assert_pattern(&r->in, 300000);
    assert_int_equal(r->rc, 0);
    finish(&w);
}

/* One reader that takes nothing slows only itself: connection credit comes back on receipt. */
static void test_streams_when_many_are_slow_then_another_one_flows(void **state)
{
    struct world w;
    struct kr_rec *fast;

    (void)state;
    setup(&w, 0);
    for (int i = 0; i < 40; i++) {
        kr_rec_open(&w.client, "GET", "/", true, NULL)->hold = true;
        run(&w, 0);
        begin_answer(&w.server.recs[i], 200);
        send_pattern(&w.server.recs[i], 100000, true);
    }
    run(&w, 0);
    fast = kr_rec_open(&w.client, "GET", "/", true, NULL);
    run(&w, 0);
    begin_answer(&w.server.recs[40], 200);
    send_pattern(&w.server.recs[40], 20 << 20, true); /* more than the connection's window */
    run(&w, 0);
    assert_pattern(&fast->in, 20 << 20);
    assert_int_equal(fast->rc, 0);
    assert_int_equal(w.client.recs[0].in.n, WINDOW);
    finish(&w);
}

static void start_download(struct world *w, size_t n)
{
    kr_rec_open(&w->client, "GET", "/", true, NULL);
    run(w, 0);
    begin_answer(&w->server.recs[w->server.n - 1], 200);
    send_pattern(&w->server.recs[w->server.n - 1], n, false);
    run(w, 0);
}

static void test_window_when_drained_fast_then_grows_to_its_maximum_and_returns(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.client_cfg.window_max = 1 << 20;
    join(&w);
    start_download(&w, 8 << 20);
    assert_int_equal(w.client.recs[0].in.n, 8 << 20);
    assert_int_equal(w.shared.window_left, BUDGET - ((1 << 20) - WINDOW));
    w.client.recs[0].hold = true; /* now the whole of it is used before the source stops */
    send_pattern(&w.server.recs[0], 3 << 20, false);
    run(&w, 0);
    assert_in_range(w.client.recs[0].owed, 7 << 17, 1 << 20);
    kr_rec_abort(&w.client.recs[0]);
    run(&w, 0);
    assert_int_equal(w.shared.window_left, BUDGET);
    finish(&w);
}

static void test_window_when_budget_is_short_then_does_not_grow(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 0);
    w.shared.window_left = 1000;
    start_download(&w, 8 << 20);
    assert_int_equal(w.client.recs[0].in.n, 8 << 20);
    assert_int_equal(w.shared.window_left, 1000);
    w.shared.window_left = BUDGET;
    finish(&w);
}

static void test_window_when_drained_slowly_then_does_not_grow(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w, 0);
    r = kr_rec_open(&w.client, "GET", "/", true, NULL);
    r->hold = true;
    run(&w, 0);
    begin_answer(&w.server.recs[0], 200);
    send_pattern(&w.server.recs[0], 1 << 20, true);
    for (int i = 0; i < 40 && r->done == 0; i++) {
        run(&w, 300);
        assert_true(r->owed <= WINDOW);
        if (r->ex != NULL)
            kr_rec_release(r);
    }
    assert_int_equal(w.shared.window_left, BUDGET);
    assert_pattern(&r->in, 1 << 20);
    finish(&w);
}

static void test_window_when_connection_ends_then_budget_returns(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 0);
    start_download(&w, 4 << 20);
    assert_true(w.shared.window_left < BUDGET);
    kr_mem_pair_cut(w.pair, KR_ECONNLOST);
    run(&w, 0);
    assert_int_equal(w.client.recs[0].rc, KR_ECONNLOST);
    finish(&w);
}

/* Bytes that a user drops from what waits (a watch that ends early) were never promised. */
static void test_body_when_shortened_while_waiting_for_room_then_ends_well(void **state)
{
    struct world w;

    (void)state;
    for (size_t n = 1; n < 1400; n += 13) {
        setup(&w, 0);
        kr_rec_open(&w.client, "GET", "/a", true, NULL);
        kr_rec_open(&w.client, "GET", "/b", true, NULL);
        run(&w, 0);
        kr_mem_pair_stall(w.pair, 0, true);
        kr_mem_pair_capacity(w.pair, 0, 1, 1024); /* the sender stops after one run */
        for (int i = 0; i < 2; i++) {
            begin_answer(&w.server.recs[i], 200);
            send_pattern(&w.server.recs[i], i == 0 ? n : 700, false);
        }
        run(&w, 0);
        for (int i = 0; i < 2; i++) {
            w.server.recs[i].out.n = 0;
            w.server.recs[i].out_end = true;
            kr_exchange_ready(w.server.recs[i].ex);
        }
        kr_mem_pair_stall(w.pair, 0, false);
        run(&w, 0);
        for (int i = 0; i < 2; i++) {
            assert_true(w.client.recs[i].ended);
            assert_int_equal(w.client.recs[i].rc, 0);
            assert_int_equal(w.server.recs[i].rc, 0);
        }
        finish(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upload_when_not_delivered_then_stops_at_the_window),
        cmocka_unit_test(test_download_when_not_delivered_then_stops_at_the_window),
        cmocka_unit_test(test_streams_when_many_are_slow_then_another_one_flows),
        cmocka_unit_test(test_window_when_drained_fast_then_grows_to_its_maximum_and_returns),
        cmocka_unit_test(test_window_when_budget_is_short_then_does_not_grow),
        cmocka_unit_test(test_window_when_drained_slowly_then_does_not_grow),
        cmocka_unit_test(test_window_when_connection_ends_then_budget_returns),
        cmocka_unit_test(test_body_when_shortened_while_waiting_for_room_then_ends_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
