/* SPDX-License-Identifier: Apache-2.0 */
/* What a server may do to the client role: raw frames. Above all: an answer that is not whole never
 * ends well. */
#include "h2_raw.h"

#define OK "\x88" /* :status 200 */
#define EARLY_HINTS                                                                                \
    "\x08\x03"                                                                                     \
    "103"
#define LENGTH_5                                                                                   \
    "\x0f\x0d\x01"                                                                                 \
    "5"

enum { PUSH_PROMISE = 5 };

static void ask(struct raw *r, int n)
{
    start_client(r);
    for (int i = 0; i < n; i++)
        assert_non_null(kr_rec_open(&r->w.client, "GET", "/", true, NULL));
    run(&r->w, 0);
}

static void stop(struct raw *r)
{
    if (r->w.client.conn != NULL)
        kr_conn_close(r->w.client.conn);
    run(&r->w, 0);
    kr_mem_peer_close(&r->peer, KR_PIPE_ABORT);
    run(&r->w, 0);
    kr_mem_peer_deinit(&r->peer);
    r->w.server.closed = 1;
    finish(&r->w);
}

static void test_answer_when_behind_interim_ones_then_only_the_final_one_is_told(void **state)
{
    struct raw r;

    (void)state;
    ask(&r, 1);
    frame(&r, HEADERS, END_HEADERS, 1,
          KR_LIT(EARLY_HINTS "\x40\x01"
                             "x"
                             "\x01"
                             "1"));
    frame(&r, HEADERS, END_HEADERS, 1, KR_LIT(EARLY_HINTS));
    run(&r.w, 0);
    assert_false(r.w.client.recs[0].headed);
    frame(&r, HEADERS, END_HEADERS, 1,
          KR_LIT(OK "\x40\x01"
                    "y"
                    "\x01"
                    "2"));
    frame(&r, DATA, END_STREAM, 1, KR_LIT("body"));
    run(&r.w, 0);
    assert_int_equal(r.w.client.recs[0].status, 200);
    assert_text(&r.w.client.recs[0].fields, "y=2;");
    assert_text(&r.w.client.recs[0].in, "body");
    assert_int_equal(r.w.client.recs[0].rc, 0);
    stop(&r);
}

struct piece {
    int type;
    int flags;
    struct kr_bytes payload;
};

static const struct {
    const char *what;
    struct piece pieces[3];
    int rc;
    bool headed;
} broken[] = {
    {"reset without an error, too early",
     {{HEADERS, END_HEADERS, {(const uint8_t *)OK, 1}},
      {DATA, 0, {(const uint8_t *)"ab", 2}},
      {RST_STREAM, 0, {(const uint8_t *)"\0\0\0\0", 4}}},
     KR_ERESET,
     true},
    {"reset before the head",
     {{RST_STREAM, 0, {(const uint8_t *)"\0\0\0\x02", 4}}},
     KR_ERESET,
     false},
    {"refused", {{RST_STREAM, 0, {(const uint8_t *)"\0\0\0\x07", 4}}}, KR_EREFUSED, false},
    {"body shorter than its length",
     {{HEADERS, END_HEADERS, {(const uint8_t *)OK LENGTH_5, 5}},
      {DATA, END_STREAM, {(const uint8_t *)"abc", 3}}},
     KR_EPROTO,
     true},
    {"no body where the length says one",
     {{HEADERS, END_HEADERS | END_STREAM, {(const uint8_t *)OK LENGTH_5, 5}}},
     KR_EPROTO,
     false},
    {"body longer than its length",
     {{HEADERS, END_HEADERS, {(const uint8_t *)OK LENGTH_5, 5}},
      {DATA, 0, {(const uint8_t *)"abcdefgh", 8}}},
     KR_EPROTO,
     true},
    {"no status",
     {{HEADERS,
       END_HEADERS,
       {(const uint8_t *)"\x40\x01"
                         "y"
                         "\x01"
                         "2",
        5}}},
     KR_EPROTO,
     false},
    {"an interim answer that ends the stream",
     {{HEADERS, END_HEADERS | END_STREAM, {(const uint8_t *)EARLY_HINTS, 5}}},
     KR_EPROTO,
     false},
    {"trailers that do not end the stream",
     {{HEADERS, END_HEADERS, {(const uint8_t *)OK, 1}},
      {HEADERS,
       END_HEADERS,
       {(const uint8_t *)"\x40\x01"
                         "y"
                         "\x01"
                         "2",
        5}}},
     KR_EPROTO,
     true},
};

static void test_answer_when_broken_then_never_a_good_end_and_others_go_on(void **state)
{
    struct raw r;

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        const struct kr_rec *rec = &r.w.client.recs[0];

        ask(&r, 2);
        for (size_t k = 0; k < 3 && broken[i].pieces[k].payload.p != NULL; k++)
            frame(&r, broken[i].pieces[k].type, broken[i].pieces[k].flags, 1,
                  broken[i].pieces[k].payload);
        run(&r.w, 0);
        if (rec->done != 1 || rec->rc != broken[i].rc || rec->ended)
            print_message("%s: done %d rc %d ended %d\n", broken[i].what, rec->done, rec->rc,
                          rec->ended);
        assert_int_equal(rec->done, 1);
        assert_int_equal(rec->rc, broken[i].rc);
        assert_false(rec->ended);
        assert_int_equal(rec->headed, broken[i].headed);
        assert_int_equal(r.w.client.closed, 0);
        frame(&r, HEADERS, END_HEADERS | END_STREAM, 3, KR_LIT(OK));
        run(&r.w, 0);
        assert_int_equal(r.w.client.recs[1].rc, 0);
        assert_int_equal(r.w.client.recs[1].done, 1);
        stop(&r);
    }
}

static void test_body_when_beyond_the_window_then_broken(void **state)
{
    static uint8_t zeros[16384];
    struct raw r;

    (void)state;
    ask(&r, 1);
    r.w.client.recs[0].hold = true;
    frame(&r, HEADERS, END_HEADERS, 1, KR_LIT(OK));
    for (int i = 0; i < 5; i++)
        frame(&r, DATA, 0, 1, kr_bytes_of(zeros, sizeof zeros));
    run(&r.w, 0);
    assert_true(r.w.client.recs[0].in.n <= 65536); /* no more was queued than was granted */
    assert_int_equal(r.w.client.recs[0].done, 1);
    assert_true(r.w.client.recs[0].rc == KR_EPROTO || r.w.client.recs[0].rc == KR_ECONNLOST);
    stop(&r);
}

static void test_body_when_before_the_head_then_connection_ends(void **state)
{
    struct raw r;

    (void)state;
    ask(&r, 1);
    frame(&r, DATA, 0, 1, KR_LIT("ab"));
    run(&r.w, 0);
    assert_int_equal(r.w.client.rc, KR_EPROTO);
    assert_int_equal(r.w.client.recs[0].rc, KR_ECONNLOST);
    assert_int_equal(r.w.client.recs[0].in.n, 0);
    stop(&r);
}

static void test_push_when_sent_all_the_same_then_connection_ends(void **state)
{
    struct raw r;

    (void)state;
    ask(&r, 1);
    frame(&r, SETTINGS, 1, 0, KR_LIT("")); /* it has read ours, which forbid it */
    frame(&r, PUSH_PROMISE, END_HEADERS, 1, KR_LIT("\0\0\0\x02\x82\x87\x84\x41\x01h"));
    run(&r.w, 0);
    assert_int_equal(r.w.client.closed, 1);
    assert_int_equal(r.w.client.rc, KR_EPROTO);
    assert_int_equal(r.w.client.recs[0].rc, KR_ECONNLOST);
    assert_int_equal(code_of_last(&r, GOAWAY), 1);
    stop(&r);
}

static void test_goaway_when_last_id_is_lower_then_later_ones_are_refused(void **state)
{
    struct raw r;

    (void)state;
    ask(&r, 3);
    frame(&r, GOAWAY, 0, 0, KR_LIT("\0\0\0\x03\0\0\0\0"));
    run(&r.w, 0);
    assert_int_equal(r.w.client.drained, 1);
    assert_int_equal(r.w.client.recs[0].done, 0);
    assert_int_equal(r.w.client.recs[1].done, 0);
    assert_int_equal(r.w.client.recs[2].rc, KR_EREFUSED);
    assert_null(kr_rec_open(&r.w.client, "GET", "/", true, NULL));
    frame(&r, HEADERS, END_HEADERS | END_STREAM, 1, KR_LIT(OK));
    frame(&r, HEADERS, END_HEADERS | END_STREAM, 3, KR_LIT(OK));
    run(&r.w, 0);
    assert_int_equal(r.w.client.recs[0].rc, 0);
    assert_int_equal(r.w.client.recs[1].rc, 0);
    run(&r.w, 0);
    assert_int_equal(r.w.client.closed, 1); /* after the last one, by itself */
    assert_int_equal(r.w.client.rc, 0);
    stop(&r);
}

static void test_eof_when_answer_is_not_whole_then_lost(void **state)
{
    struct raw r;

    (void)state;
    ask(&r, 1);
    frame(&r, HEADERS, END_HEADERS, 1, KR_LIT(OK));
    frame(&r, DATA, 0, 1, KR_LIT("part"));
    kr_mem_peer_close(&r.peer, KR_PIPE_FLUSH); /* no END_STREAM, no GOAWAY */
    run(&r.w, 0);
    assert_text(&r.w.client.recs[0].in, "part");
    assert_false(r.w.client.recs[0].ended);
    assert_int_equal(r.w.client.recs[0].rc, KR_ECONNLOST);
    assert_int_equal(r.w.client.rc, KR_ECONNLOST);
    stop(&r);
}

/* nghttp2 takes them for final ones; nothing would ever follow. */
static void test_answer_when_status_is_below_100_then_broken(void **state)
{
    struct raw r;

    (void)state;
    ask(&r, 2);
    frame(&r, HEADERS, END_HEADERS | END_STREAM, 1,
          KR_LIT("\x08\x03"
                 "099"));
    frame(&r, HEADERS, END_HEADERS, 3,
          KR_LIT("\x08\x03"
                 "000"));
    frame(&r, DATA, END_STREAM, 3, KR_LIT("body"));
    run(&r.w, 0);
    for (int i = 0; i < 2; i++) {
        assert_false(r.w.client.recs[i].headed);
        assert_int_equal(r.w.client.recs[i].rc, KR_EPROTO);
    }
    assert_int_equal(r.w.client.closed, 0);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_when_behind_interim_ones_then_only_the_final_one_is_told),
        cmocka_unit_test(test_answer_when_broken_then_never_a_good_end_and_others_go_on),
        cmocka_unit_test(test_answer_when_status_is_below_100_then_broken),
        cmocka_unit_test(test_body_when_beyond_the_window_then_broken),
        cmocka_unit_test(test_body_when_before_the_head_then_connection_ends),
        cmocka_unit_test(test_push_when_sent_all_the_same_then_connection_ends),
        cmocka_unit_test(test_goaway_when_last_id_is_lower_then_later_ones_are_refused),
        cmocka_unit_test(test_eof_when_answer_is_not_whole_then_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
