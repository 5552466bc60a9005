/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/grpc_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake_exchange.h"

static const struct kr_grpc_limits limits = {.message = 1000, .queue = 2000};

struct side { /* one user of a stream, who notes what came */
    struct kr_grpc_stream s;
    size_t messages;
    size_t bytes;
    uint8_t last;
    int peer_done;
    int ends;
    int status;
    char text[128];
    int answer;         /* on_message returns this */
    bool abort_at_once; /* on_message aborts */
    int rooms;
    bool refill;        /* on_room sends one more, once */
    bool abort_in_room; /* on_room aborts */
    bool echo;
};

struct world {
    struct fake_wire wire;
    struct side client;
    struct side server;
    int accept_rc;
    bool reject;
};

static int on_message(void *user, struct kr_bytes m)
{
    struct side *x = user;

    assert_int_equal(x->ends, 0);
    x->messages++;
    x->bytes += m.n;
    x->last = m.n != 0 ? m.p[m.n - 1] : 0;
    if (x->echo)
        assert_int_equal(kr_grpc_send(&x->s, m), 0);
    if (x->abort_at_once)
        kr_grpc_abort(&x->s);
    return x->answer;
}

static void on_peer_done(void *user)
{
    struct side *x = user;

    x->peer_done++;
    if (kr_grpc_is_open(&x->s))
        assert_int_equal(kr_grpc_finish(&x->s, KR_GRPC_OK, KR_LIT("")), 0);
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    struct side *x = user;

    x->ends++;
    x->status = status;
    snprintf(x->text, sizeof x->text, "%.*s", (int)message.n, (const char *)message.p);
    kr_grpc_deinit(&x->s); /* allowed in there */
}

static void on_room(void *user)
{
    struct side *x = user;

    assert_int_equal(x->ends, 0);
    x->rooms++;
    if (x->refill)
        assert_int_equal(kr_grpc_send(&x->s, KR_LIT("\7")), 0);
    x->refill = false;
    if (x->abort_in_room)
        kr_grpc_deinit(&x->s);
}

static const struct kr_grpc_user user_ops = {
    .on_message = on_message,
    .on_peer_done = on_peer_done,
    .on_end = on_end,
    .on_room = on_room,
};

static void on_request(struct fake_wire *wire)
{
    struct world *w = wire->owner;

    if (w->reject)
        kr_grpc_reject(&wire->server.ex, KR_GRPC_UNIMPLEMENTED, "no such method: 100% sure");
    else
        w->accept_rc =
            kr_grpc_accept(&w->server.s, &wire->server.ex, limits, &user_ops, &w->server);
}

static void start(struct world *w)
{
    *w = (struct world){.accept_rc = 1};
    fake_wire_init(&w->wire, on_request, w);
    assert_int_equal(kr_grpc_open(&w->client.s, &w->wire.conn, KR_LIT("agent"),
                                  KR_LIT(KR_GRPC_ATTACH), limits, &user_ops, &w->client),
                     0);
}

static void stop(struct world *w)
{
    kr_grpc_deinit(&w->client.s);
    kr_grpc_deinit(&w->server.s);
    fake_wire_deinit(&w->wire);
}

static void test_call_when_both_sides_talk_then_messages_and_status_arrive(void **state)
{
    static const size_t windows[] = {1, 3, 7, 4096};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct world w;

        start(&w);
        fake_pump(&w.wire, windows[i]);
        assert_int_equal(w.accept_rc, 0);
        assert_true(kr_bytes_is(w.wire.server.ex.head.path, KR_GRPC_ATTACH));
        assert_true(kr_bytes_is(w.wire.server.ex.head.method, "POST"));
        assert_true(kr_bytes_is(kr_head_get(&w.wire.server.ex.head, KR_LIT("te")), "trailers"));
        w.server.echo = true;
        assert_int_equal(kr_grpc_send(&w.client.s, KR_LIT("hello")), 0);
        assert_int_equal(kr_grpc_send(&w.client.s, KR_LIT("")), 0);
        fake_pump(&w.wire, windows[i]);
        assert_int_equal(w.server.messages, 2);
        assert_int_equal(w.client.messages, 2);
        assert_int_equal(w.client.bytes, 5);
        assert_int_equal(w.client.ends, 0);
        assert_int_equal(kr_grpc_finish(&w.client.s, 0, KR_LIT("")), 0);
        fake_pump(&w.wire, windows[i]);
        assert_int_equal(w.server.peer_done, 1);
        assert_int_equal(w.client.ends, 1);
        assert_int_equal(w.client.status, KR_GRPC_OK);
        assert_int_equal(w.server.ends, 1);
        assert_int_equal(w.server.status, KR_GRPC_OK);
        assert_int_equal(kr_grpc_send(&w.client.s, KR_LIT("x")), KR_ECANCELED);
        stop(&w);
    }
}

static void test_call_when_server_finishes_first_then_client_ends_too(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    assert_int_equal(kr_grpc_send(&w.server.s, KR_LIT("bye")), 0);
    assert_int_equal(kr_grpc_finish(&w.server.s, KR_GRPC_FAILED_PRECONDITION,
                                    KR_LIT("too old: caf\xC3\xA9 100%\n")),
                     0);
    assert_int_equal(kr_grpc_send(&w.server.s, KR_LIT("late")), KR_ECANCELED);
    assert_int_equal(kr_grpc_send(&w.client.s, KR_LIT("never read")), 0);
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.messages, 1);
    assert_int_equal(w.client.ends, 1);
    assert_int_equal(w.client.status, KR_GRPC_FAILED_PRECONDITION);
    assert_string_equal(w.client.text, "too old: caf\xC3\xA9 100%\n");
    assert_int_equal(w.server.ends, 1);
    assert_int_equal(w.server.status, KR_GRPC_FAILED_PRECONDITION);
    stop(&w);
}

static void test_call_when_server_only_answers_status_then_head_is_all(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    assert_int_equal(kr_grpc_finish(&w.server.s, KR_GRPC_UNAVAILABLE, KR_LIT("draining")), 0);
    assert_true(w.wire.server.head_is_all);
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.status, KR_GRPC_UNAVAILABLE);
    assert_string_equal(w.client.text, "draining");
    assert_int_equal(w.client.ends + w.server.ends, 2);
    stop(&w);
}

static void test_call_when_rejected_then_status_of_the_rejection(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    w.reject = true;
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.ends, 1);
    assert_int_equal(w.client.status, KR_GRPC_UNIMPLEMENTED);
    assert_string_equal(w.client.text, "no such method: 100% sure");
    stop(&w);
}

static void test_accept_when_not_grpc_then_plain_http_answer(void **state)
{
    static const struct {
        const char *method;
        const char *type;
        int status;
    } cases[] = {
        {"GET", "application/grpc", 405},
        {"POST", "application/json", 415},
        {"POST", "application/grpcx", 415},
        {"POST", "", 415},
    };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct world w;

        start(&w);
        kr_head_deinit(&w.wire.client.out);
        w.wire.client.out.method = kr_bytes_str(cases[i].method);
        kr_head_add_str(&w.wire.client.out, "content-type", cases[i].type);
        fake_pump(&w.wire, 100);
        assert_int_equal(w.accept_rc, KR_EPROTO);
        assert_int_equal(w.wire.client.ex.head.status, cases[i].status);
        assert_int_equal(w.client.ends, 1);
        assert_int_equal(w.client.status, KR_GRPC_UNKNOWN);
        assert_false(kr_grpc_is_open(&w.server.s));
        stop(&w);
    }
}

static void test_send_when_queue_is_full_then_efull_until_taken(void **state)
{
    static uint8_t big[2000];
    struct world w;

    (void)state;
    start(&w);
    assert_int_equal(kr_grpc_send(&w.client.s, kr_bytes_of(big, sizeof big)), KR_ETOOBIG);
    assert_int_equal(kr_grpc_send(&w.client.s, kr_bytes_of(big, 990)), 0);
    assert_int_equal(kr_grpc_send(&w.client.s, kr_bytes_of(big, 990)), 0);
    assert_int_equal(kr_grpc_send(&w.client.s, kr_bytes_of(big, 990)), KR_EFULL);
    assert_int_equal(kr_grpc_waiting(&w.client.s), 1990);
    fake_step(&w.wire, &w.wire.client, 500); /* the head */
    fake_step(&w.wire, &w.wire.client, 1000);
    assert_int_equal(kr_grpc_send(&w.client.s, kr_bytes_of(big, 990)), 0);
    fake_pump(&w.wire, 300);
    assert_int_equal(w.server.messages, 3);
    assert_int_equal(w.server.bytes, 2970);
    assert_int_equal(kr_grpc_waiting(&w.client.s), 0);
    stop(&w);
}

static void test_call_when_client_sends_too_large_then_status_8(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    kr_grpc_reader_init(&w.server.s.reader, 3);
    kr_grpc_send(&w.client.s, KR_LIT("four"));
    kr_grpc_send(&w.client.s, KR_LIT("x"));
    fake_pump(&w.wire, 100);
    assert_int_equal(w.server.messages, 0);
    assert_int_equal(w.client.ends, 1);
    assert_int_equal(w.client.status, KR_GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(w.server.ends, 1);
    stop(&w);
}

static void test_call_when_server_sends_too_large_then_client_resets(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    kr_grpc_reader_init(&w.client.s.reader, 3);
    kr_grpc_send(&w.server.s, KR_LIT("four"));
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.ends, 1);
    assert_int_equal(w.client.status, KR_GRPC_RESOURCE_EXHAUSTED);
    assert_true(w.wire.client.aborted);
    assert_int_equal(w.server.ends, 1);
    assert_int_equal(w.server.status, KR_GRPC_CANCELLED);
    stop(&w);
}

static void test_call_when_user_refuses_a_message_then_its_status(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    w.server.answer = KR_EDENIED;
    kr_grpc_send(&w.client.s, KR_LIT("a"));
    kr_grpc_send(&w.client.s, KR_LIT("b"));
    fake_pump(&w.wire, 100);
    assert_int_equal(w.server.messages, 1);
    assert_int_equal(w.client.status, KR_GRPC_PERMISSION_DENIED);
    stop(&w);
}

static void test_call_when_aborted_within_message_then_no_callback_follows(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    w.client.abort_at_once = true;
    kr_grpc_send(&w.server.s, KR_LIT("a"));
    kr_grpc_send(&w.server.s, KR_LIT("b"));
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.messages, 1);
    assert_int_equal(w.client.ends, 0);
    assert_int_equal(w.server.status, KR_GRPC_CANCELLED);
    stop(&w);
}

static void test_call_when_connection_is_lost_then_unavailable_on_both_sides(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    kr_grpc_send(&w.client.s, KR_LIT("waiting"));
    fake_finish(&w.wire.client, KR_ECONNLOST, 0);
    fake_finish(&w.wire.server, KR_ECONNLOST, 0);
    assert_int_equal(w.client.status, KR_GRPC_UNAVAILABLE);
    assert_int_equal(w.server.status, KR_GRPC_UNAVAILABLE);
    assert_int_equal(w.client.ends + w.server.ends, 2);
    stop(&w);
}

static void test_call_when_message_is_cut_then_internal(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    kr_grpc_send(&w.server.s, KR_LIT("hello"));
    w.server.s.out.n -= 2; /* a server that cuts its own message */
    kr_grpc_finish(&w.server.s, KR_GRPC_OK, KR_LIT(""));
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.ends, 1);
    assert_int_equal(w.client.status, KR_GRPC_INTERNAL);
    stop(&w);
}

static void test_call_when_no_grpc_status_comes_then_internal(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    kr_grpc_send(&w.server.s, KR_LIT("a"));
    kr_grpc_finish(&w.server.s, KR_GRPC_OK, KR_LIT(""));
    w.wire.server.has_trailers = false;
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.ends, 1);
    assert_int_equal(w.client.status, KR_GRPC_INTERNAL);
    stop(&w);
}

static void test_open_when_connection_takes_nothing_then_unavailable(void **state)
{
    struct world w = {.accept_rc = 1};

    (void)state;
    fake_wire_init(&w.wire, on_request, &w);
    w.wire.refuses = true;
    assert_int_equal(kr_grpc_open(&w.client.s, &w.wire.conn, KR_LIT("agent"),
                                  KR_LIT(KR_GRPC_ATTACH), limits, &user_ops, &w.client),
                     KR_EUNAVAILABLE);
    assert_false(kr_grpc_is_open(&w.client.s));
    assert_int_equal(w.client.ends, 0);
    stop(&w);
}

static void test_status_when_http_or_reset_then_by_the_tables(void **state)
{
    (void)state;
    assert_int_equal(kr_grpc_status_of_http(400), KR_GRPC_INTERNAL);
    assert_int_equal(kr_grpc_status_of_http(401), KR_GRPC_UNAUTHENTICATED);
    assert_int_equal(kr_grpc_status_of_http(403), KR_GRPC_PERMISSION_DENIED);
    assert_int_equal(kr_grpc_status_of_http(404), KR_GRPC_UNIMPLEMENTED);
    assert_int_equal(kr_grpc_status_of_http(503), KR_GRPC_UNAVAILABLE);
    assert_int_equal(kr_grpc_status_of_http(302), KR_GRPC_UNKNOWN);
    assert_int_equal(kr_grpc_status_of_end(KR_ERESET, 7), KR_GRPC_UNAVAILABLE);
    assert_int_equal(kr_grpc_status_of_end(KR_ERESET, 8), KR_GRPC_CANCELLED);
    assert_int_equal(kr_grpc_status_of_end(KR_ERESET, 11), KR_GRPC_RESOURCE_EXHAUSTED);
    assert_int_equal(kr_grpc_status_of_end(KR_ERESET, 2), KR_GRPC_INTERNAL);
    assert_int_equal(kr_grpc_status_of_end(KR_EREFUSED, 8), KR_GRPC_UNAVAILABLE);
}

static void test_call_when_paused_then_credit_waits_for_the_release(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    w.wire.client.may_owe = true;
    kr_grpc_pause(&w.client.s);
    assert_int_equal(kr_grpc_send(&w.server.s, KR_LIT("first")), 0);
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.messages, 1);
    assert_int_equal(w.wire.client.owed, 5 + KR_GRPC_PREFIX);
    assert_int_equal(kr_grpc_send(&w.server.s, KR_LIT("second")), 0);
    fake_pump(&w.wire, 100);
    assert_int_equal(w.wire.client.owed, 11 + 2 * KR_GRPC_PREFIX);
    kr_grpc_resume(&w.client.s);
    assert_int_equal(w.wire.client.owed, 0);
    assert_int_equal(kr_grpc_send(&w.server.s, KR_LIT("third")), 0);
    fake_pump(&w.wire, 100);
    assert_int_equal(w.wire.client.owed, 0);
    assert_int_equal(w.client.messages, 3);
    kr_grpc_pause(&w.client.s);
    assert_int_equal(kr_grpc_finish(&w.server.s, KR_GRPC_OK, KR_LIT("")), 0);
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.ends, 1);
    kr_grpc_resume(&w.client.s); /* idle: nothing to return */
    stop(&w);
}

static void test_send_when_bytes_went_out_then_told_of_room(void **state)
{
    uint8_t message[900] = {0};
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    w.server.rooms = w.client.rooms = 0;
    assert_int_equal(kr_grpc_send(&w.server.s, kr_bytes_of(message, 900)), 0);
    assert_int_equal(kr_grpc_send(&w.server.s, kr_bytes_of(message, 900)), 0);
    assert_int_equal(kr_grpc_send(&w.server.s, kr_bytes_of(message, 900)), KR_EFULL);
    assert_int_equal(w.server.rooms, 0); /* never from within a call */
    for (size_t waiting = 2 * 905; waiting >= limits.queue / 2; waiting -= 100) {
        assert_int_equal(w.server.rooms, 0);
        while (kr_grpc_waiting(&w.server.s) == waiting)
            fake_step(&w.wire, &w.wire.server, 100);
    }
    assert_int_equal(w.server.rooms, 1);
    /* More may be sent from in there; it arrives behind the rest. */
    w.server.refill = true;
    fake_pump(&w.wire, 100);
    assert_int_equal(w.client.messages, 3);
    assert_int_equal(w.client.last, 7);
    assert_int_equal(w.client.rooms, 0);
    /* What ends needs no more. */
    w.server.rooms = 0;
    assert_int_equal(kr_grpc_send(&w.server.s, KR_LIT("last")), 0);
    assert_int_equal(kr_grpc_finish(&w.server.s, KR_GRPC_OK, KR_LIT("")), 0);
    fake_pump(&w.wire, 100);
    assert_int_equal(w.server.rooms, 0);
    assert_int_equal(w.client.ends, 1);
    stop(&w);
}

static void test_stream_when_aborted_as_it_is_told_of_room_then_over(void **state)
{
    struct world w;

    (void)state;
    start(&w);
    fake_pump(&w.wire, 100);
    assert_int_equal(kr_grpc_send(&w.server.s, KR_LIT("first")), 0);
    w.server.abort_in_room = true;
    fake_pump(&w.wire, 100);
    assert_false(kr_grpc_is_open(&w.server.s));
    assert_int_equal(w.server.ends, 0);
    assert_int_equal(w.client.ends, 1);
    stop(&w);
}

static void test_message_text_when_odd_then_round_trip_and_lenient(void **state)
{
    struct kr_buf enc;
    struct kr_buf dec;
    uint8_t all[256];

    (void)state;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)i;
    kr_buf_init(&enc, 2000);
    kr_buf_init(&dec, 2000);
    assert_int_equal(kr_grpc_message_encode(kr_bytes_of(all, sizeof all), &enc), 0);
    for (size_t i = 0; i < enc.n; i++)
        assert_in_range(enc.p[i], 0x20, 0x7E);
    assert_int_equal(kr_grpc_message_decode(kr_buf_bytes(&enc), &dec), 0);
    assert_int_equal(dec.n, sizeof all);
    assert_memory_equal(dec.p, all, sizeof all);
    dec.n = 0;
    assert_int_equal(kr_grpc_message_decode(KR_LIT("100% %4 %zz%41%"), &dec), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&dec), "100% %4 %zzA%"));
    kr_buf_deinit(&enc);
    kr_buf_deinit(&dec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_when_both_sides_talk_then_messages_and_status_arrive),
        cmocka_unit_test(test_call_when_server_finishes_first_then_client_ends_too),
        cmocka_unit_test(test_call_when_server_only_answers_status_then_head_is_all),
        cmocka_unit_test(test_call_when_rejected_then_status_of_the_rejection),
        cmocka_unit_test(test_accept_when_not_grpc_then_plain_http_answer),
        cmocka_unit_test(test_send_when_queue_is_full_then_efull_until_taken),
        cmocka_unit_test(test_call_when_client_sends_too_large_then_status_8),
        cmocka_unit_test(test_call_when_server_sends_too_large_then_client_resets),
        cmocka_unit_test(test_call_when_user_refuses_a_message_then_its_status),
        cmocka_unit_test(test_call_when_aborted_within_message_then_no_callback_follows),
        cmocka_unit_test(test_call_when_connection_is_lost_then_unavailable_on_both_sides),
        cmocka_unit_test(test_call_when_message_is_cut_then_internal),
        cmocka_unit_test(test_call_when_no_grpc_status_comes_then_internal),
        cmocka_unit_test(test_open_when_connection_takes_nothing_then_unavailable),
        cmocka_unit_test(test_status_when_http_or_reset_then_by_the_tables),
        cmocka_unit_test(test_call_when_paused_then_credit_waits_for_the_release),
        cmocka_unit_test(test_send_when_bytes_went_out_then_told_of_room),
        cmocka_unit_test(test_stream_when_aborted_as_it_is_told_of_room_then_over),
        cmocka_unit_test(test_message_text_when_odd_then_round_trip_and_lenient),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
