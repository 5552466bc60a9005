/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_conn.h"

#include <stdio.h>

#include "h1_upgrade_world.h"

/* Upgrades that are refused, or never answered (CVE-2018-1002105). */

static void test_upgrade_when_refused_then_nothing_behind_it_is_ever_parsed(void **state)
{
    static const int statuses[] = {200, 302, 400, 403, 503};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof statuses / sizeof statuses[0]; i++) {
        char want[64];
        struct kr_rec *r;
        struct world w;

        setup(&w);
        r = &w.server.recs[0];
        if (i % 2 == 0)
            say(&w, UPGRADE SECRETS SECRETS);
        else
            say(&w, UPGRADE);
        say(&w, SECRETS);
        kr_rec_answer(r, statuses[i / 2], "", NULL);
        r->out_end = false; /* the answer hangs */
        run(&w, 0);
        say(&w, SECRETS);
        say(&w, UPGRADE);
        snprintf(want, sizeof want, "HTTP/1.1 %d ", statuses[i / 2]);
        assert_memory_equal(w.peer.in.p, want, strlen(want));
        kr_buf_append(&w.peer.in, kr_bytes_of("", 1));
        assert_non_null(strstr((const char *)w.peer.in.p, "\r\nconnection: close\r\n"));
        assert_null(strstr((const char *)w.peer.in.p, "connection: Upgrade"));
        w.peer.in.n = 0;
        kr_rec_send(r, "no", true);
        run(&w, 0);
        hear(&w, "2\r\nno\r\n0\r\n\r\n");
        say(&w, SECRETS);
        assert_int_equal(r->in.n, 0);
        assert_false(r->ended);
        assert_int_equal(r->done, 1);
        assert_int_equal(r->rc, 0);
        assert_int_equal(w.server.n, 1);
        assert_int_equal(w.server.closed, 1);
        assert_true(w.peer.eof);
        teardown(&w);
    }
}

static void refuse_request(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    kr_rec_answer(r, 403, "no", NULL);
}

static void
test_upgrade_when_refused_at_once_then_the_rest_of_the_write_is_thrown_away(void **state)
{
    static const char text[] = UPGRADE SECRETS SECRETS;

    (void)state;
    for (size_t step = 0; step < sizeof text; step++) {
        struct world w;

        setup_with(&w, step);
        w.server.on_request = refuse_request;
        say(&w, text);
        hear_start(&w, "HTTP/1.1 403 Forbidden\r\n");
        assert_int_equal(w.server.n, 1);
        assert_int_equal(w.server.recs[0].in.n, 0);
        assert_int_equal(w.server.recs[0].rc, 0);
        assert_int_equal(w.server.closed, 1);
        teardown(&w);
    }
}

static void
test_upgrade_when_refused_then_what_comes_is_not_kept_and_a_lost_client_is_seen(void **state)
{
    static char flood[300000];
    struct kr_rec *r;
    struct world w;

    (void)state;
    memset(flood, 'x', sizeof flood - 1);
    setup(&w);
    r = &w.server.recs[0];
    say(&w, UPGRADE);
    say(&w, flood);
    assert_false(kr_mem_pair_reading(w.pair, 1));
    kr_rec_answer(r, 403, "", NULL);
    r->out_end = false; /* the answer hangs */
    run(&w, 0);
    assert_true(kr_mem_pair_reading(w.pair, 1));
    assert_int_equal(w.peer.out.n + kr_mem_pair_waiting(w.pair, 1), 0);
    assert_int_equal(r->in.n, 0);
    kr_mem_peer_end(&w.peer);
    run(&w, 0);
    assert_int_equal(r->rc, KR_ECONNLOST);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void test_upgrade_when_pipelined_behind_a_request_then_it_is_served_in_turn(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    say(&w, GET "\r\n" UPGRADE "early" SECRETS);
    assert_int_equal(w.server.n, 1);
    kr_rec_answer(&w.server.recs[0], 200, NULL, NULL);
    run(&w, 0);
    assert_int_equal(w.server.n, 2);
    hear(&w, "HTTP/1.1 200 OK\r\n" DATE "content-length: 0\r\n\r\n");
    assert_true(w.server.recs[1].upgrade);
    switch_it(&w.server.recs[1]);
    run(&w, 0);
    came(&w.server.recs[1], "early" SECRETS);
    teardown(&w);
    setup(&w); /* refused within on_request, read from what was pipelined */
    say(&w, GET "\r\n" UPGRADE "early" SECRETS);
    w.server.on_request = refuse_request;
    kr_rec_answer(&w.server.recs[0], 200, NULL, NULL);
    run(&w, 0);
    assert_int_equal(w.server.n, 2);
    assert_int_equal(w.server.recs[1].rc, 0);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

static void
test_upgrade_when_never_answered_then_nothing_is_parsed_and_a_lost_client_ends_it(void **state)
{
    struct kr_rec *r;
    struct world w;

    (void)state;
    setup(&w);
    r = &w.server.recs[0];
    say(&w, UPGRADE SECRETS);
    run(&w, 3600 * 1000);
    say(&w, SECRETS);
    assert_int_equal(w.server.n, 1);
    assert_int_equal(r->in.n, 0);
    kr_conn_drain(w.server.conn);
    run(&w, 0);
    assert_int_equal(w.server.closed, 0);
    kr_mem_peer_end(&w.peer);
    run(&w, 0);
    assert_int_equal(r->done, 1);
    assert_int_equal(r->rc, KR_ECONNLOST);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
    assert_int_equal(r->in.n, 0);
    setup(&w);
    say(&w, UPGRADE SECRETS);
    kr_rec_abort(&w.server.recs[0]);
    run(&w, 0);
    hear(&w, "");
    assert_int_equal(w.server.n, 1);
    assert_int_equal(w.server.closed, 1);
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upgrade_when_refused_then_nothing_behind_it_is_ever_parsed),
        cmocka_unit_test(
            test_upgrade_when_refused_at_once_then_the_rest_of_the_write_is_thrown_away),
        cmocka_unit_test(
            test_upgrade_when_refused_then_what_comes_is_not_kept_and_a_lost_client_is_seen),
        cmocka_unit_test(test_upgrade_when_pipelined_behind_a_request_then_it_is_served_in_turn),
        cmocka_unit_test(
            test_upgrade_when_never_answered_then_nothing_is_parsed_and_a_lost_client_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
