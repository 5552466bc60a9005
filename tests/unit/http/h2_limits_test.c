/* SPDX-License-Identifier: Apache-2.0 */
/* Heads beyond the limits, and peers that spend our time: raw frames (RFC 9113, RFC 7541) against
 * the server role. */
#include "h2_raw.h"

/* Requests are answered at once, so that the recorder's table does not fill. */
static void answer(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)r;
    c->n--; /* the same one again */
    kr_exchange_abort(r->ex, KR_ABORT_CANCEL);
    r->ex = NULL;
    kr_rec_deinit(r);
    kr_rec_init(r);
}

static void stop(struct raw *r)
{
    if (r->w.server.conn != NULL)
        kr_conn_close(r->w.server.conn);
    run(&r->w, 0);
    kr_mem_peer_close(&r->peer, KR_PIPE_ABORT);
    run(&r->w, 0);
    kr_mem_peer_deinit(&r->peer);
    r->w.client.closed = 1;
    finish(&r->w);
}

static void assert_calmed(struct raw *r, const char *why)
{
    run(&r->w, 0);
    assert_int_equal(r->w.server.closed, 1);
    assert_int_equal(r->w.server.rc, KR_EPROTO);
    assert_non_null(strstr(r->w.server.why, why));
    assert_int_equal(code_of_last(r, GOAWAY), 11); /* ENHANCE_YOUR_CALM */
    stop(r);
}

static void assert_alive(struct raw *r)
{
    run(&r->w, 0);
    if (r->w.server.closed)
        print_message("%s\n", r->w.server.why);
    assert_int_equal(r->w.server.closed, 0);
}

/* ---- floods ---- */

static void reset_cycles(struct raw *r, int n)
{
    for (int i = 0; i < n; i++)
        frame(r, RST_STREAM, 0, get(r), KR_LIT("\0\0\0\x08"));
}

static void test_rapid_reset_when_beyond_the_bucket_then_goaway(void **state)
{
    struct raw r;

    (void)state;
    start(&r);
    r.w.server.on_request = answer;
    reset_cycles(&r, 400);
    assert_alive(&r);
    reset_cycles(&r, 200);
    assert_calmed(&r, "RESET_RECEIVED");
}

static void test_rapid_reset_when_slow_then_left_alone(void **state)
{
    struct raw r;

    (void)state;
    start(&r);
    r.w.server.on_request = answer;
    for (int i = 0; i < 45; i++) { /* below nghttp2's own limit, which counts by the real clock */
        reset_cycles(&r, 20);
        run(&r.w, 1000);
    }
    assert_alive(&r);
    stop(&r);
}

/* "Made you reset" (CVE-2025-8671): the peer makes us send the RST_STREAM. */
static void window_overflow(struct raw *r)
{
    frame(r, WINDOW_UPDATE, 0, post(r), KR_LIT("\x7f\xff\xff\xff"));
}

static void too_much_body(struct raw *r)
{
    uint32_t id = r->next_id;

    r->next_id += 2;
    frame(r, HEADERS, END_HEADERS, id,
          KR_LIT(POST_BLOCK "\x0f\x0d\x01"
                            "1")); /* length 1 */
    frame(r, DATA, END_STREAM, id, KR_LIT("22"));
}

static void recycle(struct kr_rec *r)
{
    struct kr_rec_conn *c = r->aux;

    /* We reset it, for what the peer did; the last one ends with the connection. */
    assert_true(r->rc == KR_EPROTO || r->rc == KR_ECONNLOST);
    c->n--;
    kr_rec_deinit(r);
    kr_rec_init(r);
}

static void expect_reset(struct kr_rec_conn *c, struct kr_rec *r)
{
    r->aux = c;
    r->on_done = recycle;
}

static void test_made_you_reset_when_beyond_the_bucket_then_goaway(void **state)
{
    static void (*const tricks[])(struct raw * r) = {window_overflow, too_much_body};
    struct raw r;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        start(&r);
        r.w.server.on_request = expect_reset;
        for (int k = 0; k < 90; k++) {
            tricks[i](&r);
            run(&r.w, 0);
        }
        assert_alive(&r);
        assert_true(code_of_last(&r, RST_STREAM) > 0);
        for (int k = 0; k < 20; k++) {
            tricks[i](&r);
            run(&r.w, 0);
        }
        assert_calmed(&r, "RESET_CAUSED");
    }
}

static void test_pings_when_beyond_the_bucket_then_goaway(void **state)
{
    struct raw r;

    (void)state;
    start(&r);
    for (int i = 0; i < 20; i++)
        frame(&r, PING, 0, 0, KR_LIT("12345678"));
    assert_alive(&r);
    for (int i = 0; i < 5; i++)
        frame(&r, PING, 0, 0, KR_LIT("12345678"));
    assert_calmed(&r, "PING");
}

static void test_settings_when_beyond_the_bucket_then_goaway(void **state)
{
    struct raw r;

    (void)state;
    start(&r);
    for (int i = 0; i < 12; i++)
        frame(&r, SETTINGS, 0, 0, KR_LIT(""));
    assert_calmed(&r, "SETTINGS");
}

static void test_empty_data_when_beyond_the_bucket_then_goaway(void **state)
{
    struct raw r;
    uint32_t id;

    (void)state;
    start(&r);
    id = post(&r);
    for (int i = 0; i < 90; i++)
        frame(&r, DATA, 0, id, KR_LIT(""));
    assert_alive(&r);
    for (int i = 0; i < 20; i++)
        frame(&r, DATA, 0, id, KR_LIT(""));
    assert_calmed(&r, "EMPTY_DATA");
}

static void test_priority_when_beyond_the_bucket_then_goaway(void **state)
{
    struct raw r;

    (void)state;
    start(&r);
    for (int i = 0; i < 210; i++)
        frame(&r, PRIORITY, 0, 1, KR_LIT("\0\0\0\0\x10"));
    assert_calmed(&r, "OTHER");
}

static void test_window_updates_when_beyond_the_bucket_then_goaway(void **state)
{
    struct raw r;

    (void)state;
    start(&r);
    for (int i = 0; i < 990; i++)
        frame(&r, WINDOW_UPDATE, 0, 0, KR_LIT("\0\0\0\x01"));
    assert_alive(&r);
    for (int i = 0; i < 20; i++)
        frame(&r, WINDOW_UPDATE, 0, 0, KR_LIT("\0\0\0\x01"));
    assert_calmed(&r, "WINDOW_UPDATE");
}

/* A field of 4,000 bytes goes into the table; each further byte of the block repeats it. */
static void test_hpack_bomb_when_sent_then_refused_and_soon_goaway(void **state)
{
    struct raw r;
    struct kr_buf block = {.max = 1 << 20};

    (void)state;
    start(&r);
    for (int i = 0; i < 12; i++) {
        block.n = 0;
        kr_buf_append(&block, KR_LIT(GET_BLOCK));
        kr_buf_append(&block, KR_LIT("\x40\x01"
                                     "x"
                                     "\x7f\xa1\x1e")); /* x: 127 + 3873 bytes */
        kr_buf_reserve(&block, 12000);
        memset(block.p + block.n, 'v', 4000);
        block.n += 4000;
        memset(block.p + block.n, 0xbe, 2000); /* index 62, the newest entry */
        block.n += 2000;
        frame(&r, HEADERS, END_HEADERS | END_STREAM, r.next_id, kr_buf_bytes(&block));
        r.next_id += 2;
        run(&r.w, 0);
    }
    kr_buf_deinit(&block);
    assert_calmed(&r, "BAD_HEAD");
}

static void test_continuations_when_endless_then_goaway(void **state)
{
    struct raw r;

    (void)state;
    start(&r);
    frame(&r, HEADERS, END_STREAM, 1, KR_LIT(GET_BLOCK));
    for (int i = 0; i < 10000; i++)
        frame(&r, CONTINUATION, 0, 1, KR_LIT(""));
    run(&r.w, 0);
    assert_int_equal(r.w.server.closed, 1);
    assert_int_equal(r.w.server.n, 0);
    stop(&r);
}

/* ---- fields that are not allowed ---- */

static void test_invalid_field_when_single_then_only_its_stream_is_reset(void **state)
{
    static const struct kr_bytes bad[] = {
        {(const uint8_t *)GET_BLOCK "\x40\x01"
                                    "X"
                                    "\x01"
                                    "1",
         11}, /* upper case */
        {(const uint8_t *)GET_BLOCK "\x40\x0a"
                                    "connection"
                                    "\x01"
                                    "x",
         20}, /* hop by hop */
        {(const uint8_t *)GET_BLOCK "\x40\x02"
                                    "te"
                                    "\x01"
                                    "x",
         12},
        {(const uint8_t *)GET_BLOCK "\x40\x01"
                                    "x"
                                    "\x01"
                                    "\n",
         11},                                      /* in a value */
        {(const uint8_t *)GET_BLOCK "\x84", 7},    /* :path twice */
        {(const uint8_t *)"\x82\x87\x41\x01h", 5}, /* no :path */
    };
    struct raw r;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        start(&r);
        frame(&r, HEADERS, END_HEADERS | END_STREAM, 1, bad[i]);
        assert_alive(&r);
        assert_int_equal(r.w.server.n, 0);
        assert_true(code_of_last(&r, RST_STREAM) > 0);
        r.next_id = 3;
        get(&r);
        assert_alive(&r);
        assert_int_equal(r.w.server.n, 1);
        stop(&r);
    }
}

static void test_broken_frames_when_sent_then_connection_ends(void **state)
{
    struct raw r;

    (void)state;
    for (int i = 0; i < 5; i++) {
        start(&r);
        if (i == 4)
            frame(&r, WINDOW_UPDATE, 0, post(&r), KR_LIT("\0\0\0\0"));
        else if (i == 0)
            frame(&r, HEADERS, END_HEADERS | END_STREAM, 2, KR_LIT(GET_BLOCK)); /* even id */
        else if (i == 1)
            frame(&r, PING, 0, 0, KR_LIT("short"));
        else if (i == 2)
            frame(&r, HEADERS, END_HEADERS, 1, KR_LIT("\xff\xff\xff\xff\xff")); /* no HPACK */
        else
            frame(&r, DATA, 0, 0, KR_LIT("x"));
        run(&r.w, 0);
        assert_int_equal(r.w.server.closed, 1);
        assert_int_equal(r.w.server.rc, KR_EPROTO);
        assert_true(code_of_last(&r, GOAWAY) > 0);
        stop(&r);
    }
}

/* ---- heads beyond the limits ---- */

static void answer_refusal(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    kr_rec_answer(r, r->ex->refuse_status != 0 ? r->ex->refuse_status : 200, NULL, NULL);
}

static void test_head_when_beyond_a_limit_then_refusable_and_connection_lives(void **state)
{
    struct world w;
    char *big = malloc(61 * 1024 + 1);
    struct kr_head head;

    (void)state;
    memset(big, '/', 61 * 1024);
    big[61 * 1024] = '\0';
    prepare(&w);
    w.server_cfg.abuse = true;
    join(&w);
    w.server.on_request = answer_refusal;
    kr_head_init(&head, KR_HEAD_MAX); /* past the recorder, which keeps to the limits itself */
    for (int i = 0; i < 3; i++) {
        struct kr_rec *r = &w.client.recs[w.client.n++];
        struct kr_field f = {KR_LIT("x-a"), kr_bytes_str(big), false};

        head.method = KR_LIT("GET");
        head.authority = KR_LIT("h");
        head.path = i == 0 ? kr_bytes_str(big) : KR_LIT("/");
        head.fields = &f;
        head.n = i == 1;
        r->ex = kr_conn_open(w.client.conn, &head, true, &kr_rec_ops, r);
        assert_non_null(r->ex);
        run(&w, 0);
        assert_int_equal(r->status, i == 0 ? 414 : i == 1 ? 431 : 200);
        assert_int_equal(r->rc, 0);
    }
    big[58 * 1024] = '\0';
    assert_non_null(kr_rec_open(&w.client, "GET", "/", true, NULL));
    run(&w, 0);
    memset(big, '\\', 58 * 1024); /* a byte that Huffman makes longer */
    for (int i = 4; i < 6; i++) {
        struct kr_rec *r = &w.client.recs[w.client.n++];
        struct kr_field f = {KR_LIT("x-a"), kr_bytes_str(big), true};
        struct kr_field many[5] = {f, f, f, f, f};

        head.fields = many;
        head.n = i; /* 232 KiB, 290 KiB */
        r->ex = kr_conn_open(w.client.conn, &head, true, &kr_rec_ops, r);
        run(&w, 0);
        assert_int_equal(r->status, i == 4 ? 200 : 431);
        assert_int_equal(r->rc, 0);
    }
    assert_int_equal(w.server.closed, 0);
    free(big);
    finish(&w);
}

static void test_answer_head_when_beyond_the_limit_then_bad_peer(void **state)
{
    struct world w;
    char *big = malloc(50 * 1024 + 1);
    const char *fields[] = {"x-a", big, "x-b", big, NULL};

    (void)state;
    memset(big, 'v', 50 * 1024);
    big[50 * 1024] = '\0';
    prepare(&w);
    w.client_cfg.max_head = 64 * 1024;
    join(&w);
    kr_rec_open(&w.client, "GET", "/", true, NULL);
    run(&w, 0);
    kr_rec_answer(&w.server.recs[0], 200, "x", fields);
    run(&w, 0);
    assert_false(w.client.recs[0].headed);
    assert_int_equal(w.client.recs[0].rc, KR_EPROTO);
    assert_int_equal(w.client.closed, 0);
    free(big);
    finish(&w);
}

/* HEADERS without END_HEADERS, then a byte now and then: neither silence nor an idle connection. */
static void test_head_when_it_drips_in_then_connection_ends(void **state)
{
    struct raw r;

    (void)state;
    start_with(&r, 20000);
    frame(&r, HEADERS, END_STREAM, 1, KR_LIT(GET_BLOCK));
    for (int i = 0; i < 9; i++)
        run(&r.w, 1000);
    assert_int_equal(r.w.server.conn->exchanges, 1);
    kr_mem_peer_send(&r.peer, KR_LIT("\x00\x10\x00\x09\x00\x00\x00\x00\x01"));
    for (int i = 0; i < 2; i++)
        run(&r.w, 1000);
    assert_int_equal(code_of_last(&r, RST_STREAM), 8);
    assert_int_equal(r.w.server.conn->exchanges, 0);
    for (int i = 0; i < 21; i++) {
        kr_mem_peer_send(&r.peer, KR_LIT("\x00"));
        run(&r.w, 1000);
    }
    assert_int_equal(r.w.server.closed, 1);
    assert_int_equal(r.w.server.n, 0);
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rapid_reset_when_beyond_the_bucket_then_goaway),
        cmocka_unit_test(test_rapid_reset_when_slow_then_left_alone),
        cmocka_unit_test(test_made_you_reset_when_beyond_the_bucket_then_goaway),
        cmocka_unit_test(test_pings_when_beyond_the_bucket_then_goaway),
        cmocka_unit_test(test_settings_when_beyond_the_bucket_then_goaway),
        cmocka_unit_test(test_empty_data_when_beyond_the_bucket_then_goaway),
        cmocka_unit_test(test_priority_when_beyond_the_bucket_then_goaway),
        cmocka_unit_test(test_window_updates_when_beyond_the_bucket_then_goaway),
        cmocka_unit_test(test_hpack_bomb_when_sent_then_refused_and_soon_goaway),
        cmocka_unit_test(test_continuations_when_endless_then_goaway),
        cmocka_unit_test(test_invalid_field_when_single_then_only_its_stream_is_reset),
        cmocka_unit_test(test_broken_frames_when_sent_then_connection_ends),
        cmocka_unit_test(test_head_when_beyond_a_limit_then_refusable_and_connection_lives),
        cmocka_unit_test(test_answer_head_when_beyond_the_limit_then_bad_peer),
        cmocka_unit_test(test_head_when_it_drips_in_then_connection_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
