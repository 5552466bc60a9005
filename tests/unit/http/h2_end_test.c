/* SPDX-License-Identifier: Apache-2.0 */
/* How exchanges and connections end: resets from either side in each state, GOAWAY, lost
 * connections, limits on streams, silence and other waits. */
#include "h2_world.h"

/* ---- resets ---- */

enum moment { AT_REQUEST, IN_UPLOAD, AFTER_UPLOAD, IN_ANSWER, MOMENTS };

/* Brings one exchange to that moment. */
static void bring_to(struct world *w, enum moment m)
{
    struct kr_rec *r = kr_rec_open(&w->client, "POST", "/", false, NULL);

    if (m >= IN_UPLOAD)
        kr_rec_send(r, "some", m > IN_UPLOAD);
    run(w, 0);
    if (m == IN_ANSWER) {
        begin_answer(&w->server.recs[0], 200);
        kr_rec_send(&w->server.recs[0], "part", false);
        run(w, 0);
        assert_text(&r->in, "part");
    }
}

static void test_client_abort_when_in_each_state_then_server_is_told(void **state)
{
    struct world w;

    (void)state;
    for (enum moment m = 0; m < MOMENTS; m++) {
        setup(&w, 1);
        bring_to(&w, m);
        kr_rec_abort(&w.client.recs[0]);
        run(&w, 0);
        assert_int_equal(w.client.recs[0].done, 0); /* nothing comes after an abort */
        assert_int_equal(w.server.recs[0].done, 1);
        assert_int_equal(w.server.recs[0].rc, KR_ERESET);
        assert_int_equal(w.client.conn->exchanges, 0);
        assert_int_equal(w.server.conn->exchanges, 0);
        finish(&w);
    }
}

static const struct {
    enum kr_abort how;
    int rc;
} aborts[] = {
    {KR_ABORT_CANCEL, KR_ERESET},
    {KR_ABORT_INTERNAL, KR_ERESET},
    {KR_ABORT_REFUSED, KR_EREFUSED},
};

static void test_server_abort_when_in_each_state_then_client_gets_the_code(void **state)
{
    struct world w;

    (void)state;
    for (enum moment m = 0; m < MOMENTS; m++) {
        for (size_t i = 0; i < 3; i++) {
            struct kr_exchange *ex;

            setup(&w, 0);
            bring_to(&w, m);
            ex = w.server.recs[0].ex;
            w.server.recs[0].ex = NULL;
            kr_exchange_abort(ex, aborts[i].how);
            run(&w, 0);
            assert_int_equal(w.server.recs[0].done, 0);
            assert_int_equal(w.client.recs[0].done, 1);
            assert_int_equal(w.client.recs[0].rc, aborts[i].rc);
            finish(&w);
        }
    }
}

static void test_abort_when_head_is_not_out_yet_then_nobody_hears_of_it(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 0);
    kr_rec_open(&w.client, "GET", "/", true, NULL);
    kr_rec_abort(&w.client.recs[0]);
    run(&w, 0);
    assert_int_equal(w.client.conn->exchanges, 0);
    assert_int_equal(w.server.n, 0);
    finish(&w);
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

static void test_abort_when_inside_a_callback_then_nothing_more_comes(void **state)
{
    struct world w;

    (void)state;
    for (int where = 0; where < 4; where++) {
        struct kr_rec *r;

        setup(&w, 1);
        if (where == 0)
            w.server.on_request = abort_request;
        r = kr_rec_open(&w.client, "POST", "/", false, NULL);
        if (where == 1)
            r->on_head = abort_it;
        else if (where == 2)
            r->on_body = abort_it;
        else if (where == 3)
            r->on_end = abort_it;
        kr_rec_send(r, "x", true);
        run(&w, 0);
        if (where != 0) {
            kr_rec_answer(&w.server.recs[0], 200, "body", NULL);
            run(&w, 0);
            assert_int_equal(r->done, 0);
        }
        assert_int_equal(w.client.conn->exchanges, 0);
        assert_int_equal(w.server.conn->exchanges, 0);
        finish(&w);
    }
}

/* ---- the connection goes ---- */

static void test_cut_when_in_each_state_then_both_sides_are_told(void **state)
{
    struct world w;

    (void)state;
    for (enum moment m = 0; m < MOMENTS; m++) {
        setup(&w, 0);
        bring_to(&w, m);
        kr_mem_pair_cut(w.pair, KR_ECONNLOST);
        run(&w, 0);
        assert_int_equal(w.client.recs[0].rc, KR_ECONNLOST);
        assert_int_equal(w.server.recs[0].rc, KR_ECONNLOST);
        assert_int_equal(w.client.rc, KR_ECONNLOST);
        finish(&w);
    }
}

static void test_cut_when_head_is_not_out_yet_then_refused(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 0);
    kr_rec_open(&w.client, "POST", "/", true, NULL);
    kr_mem_pair_cut(w.pair, KR_ECONNLOST);
    run(&w, 0);
    assert_int_equal(w.client.recs[0].rc, KR_EREFUSED); /* it can be sent elsewhere */
    finish(&w);
}

/* What was begun and fits goes out; what did not end in time is lost. */
static void test_close_when_exchange_runs_then_it_ends_first(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 0);
    bring_to(&w, IN_ANSWER);
    kr_conn_close(w.server.conn);
    run(&w, 0);
    assert_int_equal(w.client.recs[0].done, 1);
    assert_int_equal(w.client.recs[0].rc, KR_ECONNLOST);
    assert_int_equal(w.server.recs[0].rc, KR_ECONNLOST);
    assert_int_equal(w.server.rc, 0);
    finish(&w);
}

/* ---- GOAWAY ---- */

static void test_drain_when_server_then_running_ends_and_connection_closes(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 0);
    bring_to(&w, AFTER_UPLOAD);
    kr_conn_drain(w.server.conn);
    run(&w, 0);
    assert_int_equal(w.client.drained, 1);
    assert_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    run(&w, 1000); /* the second GOAWAY */
    assert_int_equal(w.client.closed, 0);
    kr_rec_answer(&w.server.recs[0], 200, "done", NULL);
    run(&w, 0);
    assert_text(&w.client.recs[0].in, "done");
    assert_int_equal(w.client.recs[0].rc, 0);
    run(&w, 0);
    assert_int_equal(w.server.closed, 1);
    assert_int_equal(w.client.closed, 1);
    finish(&w);
}

static void answer_now(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    kr_rec_answer(r, 200, "ok", NULL);
}

/* A request that crosses the first GOAWAY is served: that is what the first one is for. */
static void test_drain_when_request_is_under_way_then_served(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w, 0);
    w.server.on_request = answer_now;
    kr_mem_pair_stall(w.pair, 1, true);
    r = kr_rec_open(&w.client, "GET", "/", true, NULL);
    run(&w, 0);
    kr_conn_drain(w.server.conn);
    run(&w, 0);
    kr_mem_pair_stall(w.pair, 1, false);
    run(&w, 0);
    assert_int_equal(r->status, 200);
    assert_int_equal(r->rc, 0);
    run(&w, 1000);
    assert_int_equal(w.server.closed, 1);
    finish(&w);
}

/* One that comes behind the second GOAWAY is above its last id: the client may send it again. */
static void test_drain_when_request_is_too_late_then_refused(void **state)
{
    struct world w;
    struct kr_rec *r;

    (void)state;
    setup(&w, 0);
    bring_to(&w, AFTER_UPLOAD); /* so that the connection stays */
    kr_mem_pair_stall(w.pair, 0, true);
    kr_mem_pair_stall(w.pair, 1, true);
    r = kr_rec_open(&w.client, "POST", "/", true, NULL);
    run(&w, 0);
    kr_conn_drain(w.server.conn);
    run(&w, 1000);
    kr_mem_pair_stall(w.pair, 0, false);
    run(&w, 0);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, KR_EREFUSED);
    kr_mem_pair_stall(w.pair, 1, false);
    run(&w, 0);
    assert_int_equal(w.server.n, 1);
    kr_rec_answer(&w.server.recs[0], 200, "x", NULL);
    run(&w, 0);
    assert_int_equal(w.client.recs[0].rc, 0);
    finish(&w);
}

static void test_drain_when_client_then_last_exchange_closes_it(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 0);
    bring_to(&w, AFTER_UPLOAD);
    kr_conn_drain(w.client.conn);
    kr_conn_drain(w.client.conn);
    run(&w, 5000);
    assert_int_equal(w.client.closed, 0);
    assert_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    kr_rec_answer(&w.server.recs[0], 200, "x", NULL);
    run(&w, 0);
    assert_int_equal(w.client.recs[0].rc, 0);
    run(&w, 0);
    assert_int_equal(w.client.closed, 1);
    assert_int_equal(w.client.rc, 0);
    finish(&w);
}

static void test_drain_when_idle_then_closes(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 0);
    kr_conn_drain(w.server.conn);
    run(&w, 0);
    run(&w, 1000);
    run(&w, 0);
    assert_int_equal(w.server.closed, 1);
    assert_int_equal(w.server.rc, 0);
    assert_int_equal(w.client.closed, 1);
    finish(&w);
}

/* ---- limits and waits ---- */

static void test_open_when_streams_are_used_up_then_null_until_one_ends(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.server_cfg.max_streams = 3;
    join(&w);
    for (int i = 0; i < 3; i++)
        assert_non_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    assert_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    run(&w, 0);
    kr_rec_answer(&w.server.recs[1], 200, "x", NULL);
    run(&w, 0);
    assert_non_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    run(&w, 0);
    assert_int_equal(w.server.n, 4);
    finish(&w);
}

/* Requests that left before the peer's SETTINGS came, beyond what those allow. */
static void test_open_when_before_settings_then_served_within_the_limit(void **state)
{
    struct world w;
    int served = 0;

    (void)state;
    prepare(&w);
    w.server_cfg.max_streams = 2;
    w.server.on_request = answer_now;
    w.client.conn = kr_h2_create(&w.client_cfg, kr_mem_pair_end(w.pair, 0));
    for (int i = 0; i < 6; i++)
        assert_non_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    w.server.conn = kr_h2_create(&w.server_cfg, kr_mem_pair_end(w.pair, 1));
    run(&w, 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(w.client.recs[i].done, 1);
        served += w.client.recs[i].rc == 0;
        assert_true(w.client.recs[i].rc == 0 || w.client.recs[i].rc == KR_EREFUSED);
    }
    assert_true(served >= 2);
    finish(&w);
}

static void test_ping_when_peer_is_silent_then_closed_in_time(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.client_cfg.ping_after_ms = 10000;
    w.client_cfg.ping_timeout_ms = 5000;
    join(&w);
    bring_to(&w, AFTER_UPLOAD);
    for (int i = 0; i < 60; i++)
        run(&w, 1000);
    assert_int_equal(w.client.closed, 0); /* the answers to PING are a sign of life */
    assert_true(kr_h2_rtt_us(w.client.conn) >= 0);
    kr_mem_pair_stall(w.pair, 0, true);
    for (int i = 0; i < 14; i++)
        run(&w, 1000);
    assert_int_equal(w.client.closed, 0);
    for (int i = 0; i < 4; i++)
        run(&w, 1000);
    assert_int_equal(w.client.closed, 1);
    assert_int_equal(w.client.rc, KR_ETIMEDOUT);
    assert_int_equal(w.client.recs[0].rc, KR_ECONNLOST);
    finish(&w);
}

static void test_preface_when_it_does_not_come_then_closed(void **state)
{
    struct world w;
    struct kr_mem_peer peer;

    (void)state;
    prepare(&w);
    w.server_cfg.preface_timeout_ms = 10000;
    kr_mem_peer_init(&peer, kr_mem_pair_end(w.pair, 0));
    w.server.conn = kr_h2_create(&w.server_cfg, kr_mem_pair_end(w.pair, 1));
    kr_mem_peer_send(&peer, KR_LIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    for (int i = 0; i < 9; i++)
        run(&w, 1000);
    assert_int_equal(w.server.closed, 0);
    run(&w, 1000);
    run(&w, 0);
    assert_int_equal(w.server.closed, 1);
    assert_int_equal(w.server.rc, KR_ETIMEDOUT);
    kr_mem_peer_close(&peer, KR_PIPE_ABORT);
    run(&w, 0);
    kr_mem_peer_deinit(&peer);
    w.client.closed = 1;
    finish(&w);
}

static void test_idle_when_no_exchange_then_closed_and_not_before(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.server_cfg.idle_timeout_ms = 30000;
    join(&w);
    bring_to(&w, AFTER_UPLOAD);
    for (int i = 0; i < 100; i++)
        run(&w, 1000);
    assert_int_equal(w.server.closed, 0);
    kr_rec_answer(&w.server.recs[0], 200, "x", NULL);
    for (int i = 0; i < 29; i++)
        run(&w, 1000);
    assert_int_equal(w.server.closed, 0);
    run(&w, 2000);
    run(&w, 0);
    assert_int_equal(w.server.closed, 1);
    assert_int_equal(w.server.rc, 0);
    finish(&w);
}

static void stalled_download(struct world *w, bool patient)
{
    prepare(w);
    w->server_cfg.stall_timeout_ms = 20000;
    join(w);
    kr_rec_open(&w->client, "GET", "/", true, NULL)->hold = true;
    run(w, 0);
    w->server.recs[0].ex->patient = patient;
    begin_answer(&w->server.recs[0], 200);
    send_pattern(&w->server.recs[0], 100000, true);
    for (int i = 0; i < 25; i++)
        run(w, 1000);
}

static void test_stall_when_peer_grants_nothing_then_stream_is_reset(void **state)
{
    struct world w;

    (void)state;
    stalled_download(&w, false);
    assert_int_equal(w.server.recs[0].done, 1);
    assert_int_equal(w.server.recs[0].rc, KR_ERESET);
    assert_int_equal(w.client.recs[0].rc, KR_ERESET);
    assert_int_equal(w.server.closed, 0);
    finish(&w);
    stalled_download(&w, true);
    assert_int_equal(w.server.recs[0].done, 0);
    finish(&w);
}

/* A stream that has nothing to send is not one that stalls. */
static void test_stall_when_nothing_to_send_then_left_alone(void **state)
{
    struct world w;

    (void)state;
    prepare(&w);
    w.server_cfg.stall_timeout_ms = 20000;
    join(&w);
    kr_rec_open(&w.client, "GET", "/", true, NULL);
    run(&w, 0);
    begin_answer(&w.server.recs[0], 200);
    for (int i = 0; i < 100; i++)
        run(&w, 1000);
    assert_int_equal(w.server.recs[0].done, 0);
    kr_rec_send(&w.server.recs[0], "late", true);
    run(&w, 0);
    assert_text(&w.client.recs[0].in, "late");
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_client_abort_when_in_each_state_then_server_is_told),
        cmocka_unit_test(test_server_abort_when_in_each_state_then_client_gets_the_code),
        cmocka_unit_test(test_abort_when_head_is_not_out_yet_then_nobody_hears_of_it),
        cmocka_unit_test(test_abort_when_inside_a_callback_then_nothing_more_comes),
        cmocka_unit_test(test_cut_when_in_each_state_then_both_sides_are_told),
        cmocka_unit_test(test_cut_when_head_is_not_out_yet_then_refused),
        cmocka_unit_test(test_close_when_exchange_runs_then_it_ends_first),
        cmocka_unit_test(test_drain_when_server_then_running_ends_and_connection_closes),
        cmocka_unit_test(test_drain_when_request_is_under_way_then_served),
        cmocka_unit_test(test_drain_when_request_is_too_late_then_refused),
        cmocka_unit_test(test_drain_when_client_then_last_exchange_closes_it),
        cmocka_unit_test(test_drain_when_idle_then_closes),
        cmocka_unit_test(test_open_when_streams_are_used_up_then_null_until_one_ends),
        cmocka_unit_test(test_open_when_before_settings_then_served_within_the_limit),
        cmocka_unit_test(test_ping_when_peer_is_silent_then_closed_in_time),
        cmocka_unit_test(test_preface_when_it_does_not_come_then_closed),
        cmocka_unit_test(test_idle_when_no_exchange_then_closed_and_not_before),
        cmocka_unit_test(test_stall_when_peer_grants_nothing_then_stream_is_reset),
        cmocka_unit_test(test_stall_when_nothing_to_send_then_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
