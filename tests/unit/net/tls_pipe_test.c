/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls_pipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "tls_world.h"

static const struct kr_tls_alpn hub_alpn[] = {{"kuberelay/1", KR_TLS_CERT_REQUIRED},
                                              {"h2", KR_TLS_CERT_NONE}};
static const struct kr_tls_alpn agent_alpn[] = {{"kuberelay/1", 0}};
static const struct kr_tls_alpn h2_alpn[] = {{"h2", 0}};
static const struct kr_tls_alpn odd_alpn[] = {{"odd/7", 0}};

static struct kr_tls_context *hub_context(struct world *w)
{
    struct kr_tls_config cfg = {
        .server = true, .alpn = hub_alpn, .alpn_count = 2, .alpn_required = true};

    world_config(&cfg, &w->hub, &w->ca);
    return world_context(&cfg);
}

static struct kr_tls_context *agent_context(struct world *w, const struct world_cert *own,
                                            const struct world_cert *ca,
                                            const struct kr_tls_alpn *alpn)
{
    struct kr_tls_config cfg = {
        .alpn = alpn, .alpn_count = alpn != NULL ? 1 : 0, .alpn_required = alpn != NULL};

    (void)w;
    world_config(&cfg, own, ca);
    return world_context(&cfg);
}

/* Handshake between two contexts, which are given up. */
static void shake(struct world *w, struct kr_tls_context *client, struct kr_tls_context *server,
                  const char *name)
{
    world_start(w, client, server, name);
    kr_tls_context_unref(client);
    kr_tls_context_unref(server);
    assert_true(world_run(w, world_shaken));
}

static void shake_well(struct world *w)
{
    shake(w, agent_context(w, &w->agent, &w->ca, agent_alpn), hub_context(w), "localhost");
    assert_int_equal(w->client.handshake, 0);
    assert_int_equal(w->server.handshake, 0);
}

static void close_both(struct world *w)
{
    if (w->client.pipe != NULL)
        kr_pipe_close(w->client.pipe, KR_PIPE_FLUSH);
    if (w->server.pipe != NULL)
        kr_pipe_close(w->server.pipe, KR_PIPE_FLUSH);
    assert_true(world_run(w, world_closed));
}

static void test_handshake_with_good_certificates_then_both_ends_know_each_other(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    shake_well(&w);
    assert_string_equal(w.client.alpn, "kuberelay/1");
    assert_string_equal(w.server.alpn, "kuberelay/1");
    assert_string_equal(w.server.sni, "localhost");
    assert_string_equal(w.server.version, "TLSv1.3");
    assert_string_equal(w.server.cipher, "TLS_AES_128_GCM_SHA256");
    assert_true(w.server.peer_verified && w.client.peer_verified);
    assert_true(w.server.der_n > 100 && w.client.der_n > 100);
    assert_int_equal(w.server.judged, 1);
    close_both(&w);
    assert_int_equal(w.client.closed, 0);
    assert_int_equal(w.client.closes, 1);
    assert_int_equal(w.server.closes, 1);
    world_deinit(&w);
}

static bool all_arrived(struct world *w)
{
    return w->client.send_left == 0 && w->server.send_left == 0 &&
           w->client.got_hash == w->server.sent_hash && w->server.got_hash == w->client.sent_hash;
}

static void transfer(size_t n, size_t client_chunk, size_t server_chunk)
{
    struct world w;

    world_init(&w);
    shake_well(&w);
    w.client.chunk = client_chunk;
    w.server.chunk = server_chunk;
    w.server.state = 99;
    w.client.send_left = w.server.send_left = n;
    kr_pipe_want_fill(w.client.pipe);
    kr_pipe_want_fill(w.server.pipe);
    assert_true(world_run(&w, all_arrived));
    assert_int_equal(w.client.got, n);
    assert_int_equal(w.server.got, n);
    close_both(&w);
    world_deinit(&w);
}

static void test_transfer_of_50_mb_both_ways_when_sizes_are_odd_then_bytes_are_equal(void **state)
{
    (void)state;
    transfer(50 * 1000 * 1000 + 17, 0, 9001);
    transfer(1000 * 1000, 1, 777);
    transfer(3, 0, 0);
}

static bool server_got_all(struct world *w)
{
    return w->server.got_hash == w->client.sent_hash && w->client.send_left == 0;
}

static bool server_saw_eof(struct world *w)
{
    return w->server.eofs != 0;
}

static void test_close_flush_when_bytes_are_waiting_then_peer_gets_all_and_eof(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    shake_well(&w);
    w.client.send_left = 5 * 1000 * 1000;
    kr_pipe_close(w.client.pipe, KR_PIPE_FLUSH);
    assert_int_equal(w.client.closes, 0);
    assert_true(world_run(&w, server_saw_eof));
    assert_true(server_got_all(&w));
    assert_int_equal(w.server.got, 5 * 1000 * 1000);
    close_both(&w);
    assert_int_equal(w.client.closed, 0);
    world_deinit(&w);
}

static bool server_closed(struct world *w)
{
    return w->server.closes != 0;
}

static void test_close_abort_then_peer_is_told_that_the_connection_is_lost(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    shake_well(&w);
    kr_pipe_close(w.client.pipe, KR_PIPE_ABORT);
    assert_int_equal(w.client.closes, 0);
    assert_true(world_run(&w, server_closed));
    assert_int_equal(w.client.closed, 0);
    assert_int_equal(w.server.closed, KR_ECONNLOST);
    assert_int_equal(w.server.eofs, 0);
    assert_true(world_run(&w, world_closed));
    world_deinit(&w);
}

static void test_reading_stopped_then_at_most_what_was_decrypted_comes(void **state)
{
    struct world w;
    size_t got;

    (void)state;
    world_init(&w);
    shake_well(&w);
    w.server.stop_on_bytes = true;
    w.client.send_left = 2 * 1000 * 1000;
    kr_pipe_want_fill(w.client.pipe);
    for (int i = 0; i < 50; i++)
        kr_loop_turn(w.loop, 1);
    got = w.server.got;
    assert_true(got > 0 && got <= 32 * 1024);
    for (int i = 0; i < 5; i++) { /* each permission gives one more run */
        kr_pipe_set_reading(w.server.pipe, true);
        kr_loop_turn(w.loop, 1);
        kr_loop_turn(w.loop, 1);
        assert_true(w.server.got > got && w.server.got <= got + 64 * 1024);
        got = w.server.got;
    }
    assert_true(w.client.send_left > 0); /* back-pressure has reached the sender */
    w.server.stop_on_bytes = false;
    kr_pipe_set_reading(w.server.pipe, true);
    assert_true(world_run(&w, server_got_all));
    close_both(&w);
    world_deinit(&w);
}

/* A handshake that must fail: what each end says. */
static void fails(struct world *w, struct kr_tls_context *client, struct kr_tls_context *server,
                  const char *name, const char *server_says)
{
    shake(w, client, server, name);
    assert_int_not_equal(w->server.handshake, 0);
    if (strstr(w->server.why.text, server_says) == NULL)
        fail_msg("server says: %s", w->server.why.text);
}

static bool client_closed(struct world *w)
{
    return w->client.closes != 0 || w->client.handshake < 0;
}

/* A TLS 1.3 client may have believed in its success before it got the alert. */
static void client_hears(struct world *w, const char *words)
{
    assert_true(world_run(w, client_closed));
    if (strstr(w->client.why.text, words) == NULL)
        fail_msg("client says: %s", w->client.why.text);
    assert_true(world_run(w, world_closed));
    world_deinit(w);
}

static void test_client_without_certificate_then_refused_by_name(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    fails(&w, agent_context(&w, NULL, &w.ca, agent_alpn), hub_context(&w), "localhost",
          "the peer sent no certificate");
    assert_int_equal(w.server.handshake, KR_ETLS);
    client_hears(&w, "wants a certificate");
}

static void test_client_of_foreign_root_then_unknown_authority(void **state)
{
    struct world_cert cert;
    struct world w;

    (void)state;
    world_init(&w);
    world_leaf(&cert, &w.foreign_ca, "agent", "URI:spiffe://test/cluster/c1/agent/a", "clientAuth");
    fails(&w, agent_context(&w, &cert, &w.ca, agent_alpn), hub_context(&w), "localhost",
          "unable to get local issuer certificate");
    world_cert_free(&cert);
    client_hears(&w, "unknown authority");
}

static void test_expired_client_then_both_ends_say_expired(void **state)
{
    struct world_cert cert;
    struct world w;

    (void)state;
    world_init(&w);
    world_issue(&cert, &(struct world_ask){.cn = "agent",
                                           .issuer = &w.ca,
                                           .san = "URI:spiffe://test/cluster/c1/agent/a",
                                           .eku = "clientAuth",
                                           .from_s = -7200,
                                           .until_s = -3600});
    fails(&w, agent_context(&w, &cert, &w.ca, agent_alpn), hub_context(&w), "localhost",
          "certificate has expired 2");
    world_cert_free(&cert);
    client_hears(&w, "expired");
}

static void test_client_with_server_purpose_then_refused(void **state)
{
    struct world_cert cert;
    struct world w;

    (void)state;
    world_init(&w);
    world_leaf(&cert, &w.ca, "agent", "URI:spiffe://test/cluster/c1/agent/a", "serverAuth");
    fails(&w, agent_context(&w, &cert, &w.ca, agent_alpn), hub_context(&w), "localhost", "purpose");
    world_cert_free(&cert);
    client_hears(&w, "purpose");
}

static void test_judge_refuses_then_peer_gets_an_alert(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    w.server.judge = KR_EDENIED;
    fails(&w, agent_context(&w, &w.agent, &w.ca, agent_alpn), hub_context(&w), "localhost",
          "the judge says no");
    assert_int_equal(w.server.handshake, KR_EDENIED);
    client_hears(&w, "refused our certificate");
}

static void test_owner_refuses_after_handshake_then_peer_sees_a_clean_end(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    w.server.refuse = KR_EDENIED;
    shake(&w, agent_context(&w, &w.agent, &w.ca, agent_alpn), hub_context(&w), "localhost");
    while (w.client.eofs == 0)
        kr_loop_turn(w.loop, 100);
    close_both(&w);
    assert_int_equal(w.server.handshakes, 1);
    assert_int_equal(w.server.closes, 0);
    world_deinit(&w);
}

static void test_no_common_alpn_then_both_ends_say_so(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    fails(&w, agent_context(&w, &w.agent, &w.ca, odd_alpn), hub_context(&w), "localhost", "ALPN");
    client_hears(&w, "ALPN");
}

static void test_client_without_alpn_then_refused(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    fails(&w, agent_context(&w, &w.agent, &w.ca, NULL), hub_context(&w), "localhost", "ALPN");
    client_hears(&w, "ALPN");
}

static void test_server_without_alpn_then_client_refuses(void **state)
{
    struct kr_tls_config cfg = {.server = true};
    struct world w;

    (void)state;
    world_init(&w);
    world_config(&cfg, &w.hub, &w.ca);
    shake(&w, agent_context(&w, &w.agent, &w.ca, agent_alpn), world_context(&cfg), "localhost");
    assert_int_equal(w.client.handshake, KR_ETLS);
    client_hears(&w, "ALPN");
}

static void test_other_alpn_then_no_client_certificate_is_asked(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    shake(&w, agent_context(&w, NULL, &w.ca, h2_alpn), hub_context(&w), "localhost");
    assert_int_equal(w.server.handshake, 0);
    assert_string_equal(w.server.alpn, "h2");
    assert_int_equal(w.server.der_n, 0);
    assert_false(w.server.peer_verified);
    close_both(&w);
    world_deinit(&w);
}

static struct kr_tls_context *raw_tls12(struct world *w, bool server)
{
    /* Only TLS 1.2 cannot be configured here, so the other end is made to refuse it by its list. */
    struct kr_tls_config cfg = {.server = server, .tls12 = true};

    world_config(&cfg, server ? &w->hub : &w->agent, &w->ca);
    return world_context(&cfg);
}

static void test_server_name_that_is_in_no_san_then_client_refuses(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    shake(&w, agent_context(&w, &w.agent, &w.ca, agent_alpn), hub_context(&w), "other.test");
    assert_int_equal(w.client.handshake, KR_ETLS);
    client_hears(&w, "ostname mismatch");
}

static void test_server_name_by_wildcard_and_by_address_then_accepted(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    shake(&w, agent_context(&w, &w.agent, &w.ca, agent_alpn), hub_context(&w), "c1.hub.test");
    assert_int_equal(w.client.handshake, 0);
    assert_string_equal(w.server.sni, "c1.hub.test");
    close_both(&w);
    world_deinit(&w);
    world_init(&w);
    shake(&w, agent_context(&w, &w.agent, &w.ca, agent_alpn), hub_context(&w), "127.0.0.1");
    assert_int_equal(w.client.handshake, 0);
    assert_string_equal(w.server.sni, "");
    close_both(&w);
    world_deinit(&w);
    world_init(&w);
    shake(&w, agent_context(&w, &w.agent, &w.ca, agent_alpn), hub_context(&w), "127.0.0.2");
    client_hears(&w, "IP address mismatch");
}

static void test_tls12_allowed_at_both_ends_then_tls13_is_used_and_bytes_pass(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    shake(&w, raw_tls12(&w, false), raw_tls12(&w, true), "localhost");
    assert_string_equal(w.client.version, "TLSv1.3");
    close_both(&w);
    world_deinit(&w);
}

static void test_peer_that_is_silent_then_handshake_times_out(void **state)
{
    struct kr_tls_context *ctx;
    struct world w;
    int fds[2];

    (void)state;
    world_init(&w);
    ctx = hub_context(&w);
    world_pair(fds);
    assert_non_null(kr_tls_accept(w.io,
                                  &(struct kr_tls_start){.ctx = ctx,
                                                         .fd = fds[1],
                                                         .user_ops = &world_tls_user,
                                                         .owner = &w.server,
                                                         .timeout_ms = 20},
                                  NULL));
    kr_tls_context_unref(ctx);
    assert_true(world_run(&w, world_closed));
    assert_int_equal(w.server.handshake, KR_ETIMEDOUT);
    assert_int_equal(w.server.handshakes, 1);
    close(fds[0]);
    world_deinit(&w);
}

static void speaks(const char *bytes, bool hang_up, int rc, const char *words)
{
    struct kr_tls_context *ctx;
    struct world w;
    int fds[2];

    world_init(&w);
    ctx = hub_context(&w);
    world_pair(fds);
    assert_non_null(kr_tls_accept(
        w.io,
        &(struct kr_tls_start){
            .ctx = ctx, .fd = fds[1], .user_ops = &world_tls_user, .owner = &w.server},
        NULL));
    kr_tls_context_unref(ctx);
    assert_int_equal(write(fds[0], bytes, strlen(bytes)), strlen(bytes));
    if (hang_up)
        close(fds[0]);
    assert_true(world_run(&w, world_closed));
    assert_int_equal(w.server.handshake, rc);
    if (strstr(w.server.why.text, words) == NULL)
        fail_msg("server says: %s", w.server.why.text);
    if (!hang_up)
        close(fds[0]);
    world_deinit(&w);
}

static void test_peer_that_speaks_no_tls_then_told_what_it_speaks(void **state)
{
    (void)state;
    speaks("GET / HTTP/1.1\r\n\r\n", false, KR_ETLS, "HTTP without TLS");
    speaks("SSH-2.0-OpenSSH_9.2\r\n", false, KR_ETLS, "does not speak TLS");
    speaks("\x16\x03\x01", true, KR_ECONNLOST, "closed the connection during");
    speaks("", true, KR_ECONNLOST, "closed the connection during");
}

static void test_cancel_during_handshake_then_one_callback_with_canceled(void **state)
{
    struct kr_tls_context *ctx;
    struct kr_pipe *p;
    struct world w;
    int fds[2];

    (void)state;
    world_init(&w);
    ctx = hub_context(&w);
    world_pair(fds);
    p = kr_tls_accept(
        w.io,
        &(struct kr_tls_start){
            .ctx = ctx, .fd = fds[1], .user_ops = &world_tls_user, .owner = &w.server},
        NULL);
    kr_tls_context_unref(ctx);
    kr_pipe_close(p, KR_PIPE_ABORT);
    assert_int_equal(w.server.handshakes, 0);
    assert_true(world_run(&w, world_closed));
    assert_int_equal(w.server.handshake, KR_ECANCELED);
    assert_int_equal(w.server.handshakes, 1);
    close(fds[0]);
    world_deinit(&w);
}

enum { STORM = 50 };

/* How many of the ends know the outcome of their handshake. */
static int shaken(const struct world_end ends[2][STORM])
{
    int n = 0;

    for (int i = 0; i < STORM; i++)
        n += ends[0][i].handshakes + ends[1][i].handshakes;
    return n;
}

static void test_storm_of_handshakes_then_a_turn_does_a_few_and_all_succeed(void **state)
{
    static struct world_end ends[2][STORM];
    struct kr_tls_context *ctx[2];
    struct world w;
    int before = 0;

    (void)state;
    world_init(&w);
    ctx[0] = agent_context(&w, &w.agent, &w.ca, agent_alpn);
    ctx[1] = hub_context(&w);
    for (int i = 0; i < STORM; i++) {
        int fds[2];

        world_pair(fds);
        for (int side = 0; side < 2; side++) {
            struct kr_tls_start start = {.ctx = ctx[side],
                                         .fd = fds[side],
                                         .user_ops = &world_tls_user,
                                         .owner = &ends[side][i]};

            world_end_init(&ends[side][i]);
            assert_non_null(side == 0 ? kr_tls_connect(w.io, &start, NULL)
                                      : kr_tls_accept(w.io, &start, NULL));
        }
    }
    while (before < 2 * STORM) {
        int now;

        kr_loop_turn(w.loop, 100);
        now = shaken(ends);
        assert_true(now - before <= 8);
        before = now;
    }
    for (int i = 0; i < STORM; i++)
        assert_true(ends[0][i].handshake == 0 && ends[1][i].handshake == 0);
    kr_tls_context_unref(ctx[0]);
    kr_tls_context_unref(ctx[1]);
    world_deinit(&w);
}

static void test_io_destroyed_while_pipes_live_then_owners_are_told(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    shake_well(&w);
    kr_tls_io_destroy(w.io);
    w.io = NULL;
    assert_int_equal(w.client.closed, KR_ECANCELED);
    assert_int_equal(w.server.closed, KR_ECANCELED);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake_with_good_certificates_then_both_ends_know_each_other),
        cmocka_unit_test(test_transfer_of_50_mb_both_ways_when_sizes_are_odd_then_bytes_are_equal),
        cmocka_unit_test(test_close_flush_when_bytes_are_waiting_then_peer_gets_all_and_eof),
        cmocka_unit_test(test_close_abort_then_peer_is_told_that_the_connection_is_lost),
        cmocka_unit_test(test_reading_stopped_then_at_most_what_was_decrypted_comes),
        cmocka_unit_test(test_client_without_certificate_then_refused_by_name),
        cmocka_unit_test(test_client_of_foreign_root_then_unknown_authority),
        cmocka_unit_test(test_expired_client_then_both_ends_say_expired),
        cmocka_unit_test(test_client_with_server_purpose_then_refused),
        cmocka_unit_test(test_judge_refuses_then_peer_gets_an_alert),
        cmocka_unit_test(test_owner_refuses_after_handshake_then_peer_sees_a_clean_end),
        cmocka_unit_test(test_no_common_alpn_then_both_ends_say_so),
        cmocka_unit_test(test_client_without_alpn_then_refused),
        cmocka_unit_test(test_server_without_alpn_then_client_refuses),
        cmocka_unit_test(test_other_alpn_then_no_client_certificate_is_asked),
        cmocka_unit_test(test_server_name_that_is_in_no_san_then_client_refuses),
        cmocka_unit_test(test_server_name_by_wildcard_and_by_address_then_accepted),
        cmocka_unit_test(test_tls12_allowed_at_both_ends_then_tls13_is_used_and_bytes_pass),
        cmocka_unit_test(test_peer_that_is_silent_then_handshake_times_out),
        cmocka_unit_test(test_peer_that_speaks_no_tls_then_told_what_it_speaks),
        cmocka_unit_test(test_cancel_during_handshake_then_one_callback_with_canceled),
        cmocka_unit_test(test_storm_of_handshakes_then_a_turn_does_a_few_and_all_succeed),
        cmocka_unit_test(test_io_destroyed_while_pipes_live_then_owners_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
