/* SPDX-License-Identifier: Apache-2.0 */
/* What works on a connection whose handshake was thrown away. The peer is OpenSSL itself, so that
 * it can do what our own client never does. */
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/err.h"
#include "tls_world.h"

struct raw {
    struct world w;
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
    int tickets;
};

static int on_ticket(SSL *ssl, SSL_SESSION *session)
{
    struct raw *r = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    (void)session;
    r->tickets++;
    return 0;
}

static struct kr_tls_context *server_context(struct world *w, bool tls12)
{
    struct kr_tls_config cfg = {.server = true, .tls12 = tls12, .peer_cert = KR_TLS_CERT_REQUIRED};

    world_config(&cfg, &w->hub, &w->ca);
    return world_context(&cfg);
}

static void raw_init(struct raw *r, bool tls12, int client_max)
{
    struct kr_tls_context *ctx;
    int fds[2];

    *r = (struct raw){0};
    world_init(&r->w);
    world_pair(fds);
    r->fd = fds[0];
    ctx = server_context(&r->w, tls12);
    assert_non_null(kr_tls_accept(
        r->w.io,
        &(struct kr_tls_start){
            .ctx = ctx, .fd = fds[1], .user_ops = &world_tls_user, .owner = &r->w.server},
        NULL));
    kr_tls_context_unref(ctx);
    r->ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_app_data(r->ctx, r);
    SSL_CTX_set_session_cache_mode(r->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(r->ctx, on_ticket);
    SSL_CTX_set_max_proto_version(r->ctx, client_max);
    SSL_CTX_use_certificate(r->ctx, r->w.agent.x509);
    SSL_CTX_use_PrivateKey(r->ctx, r->w.agent.key);
    r->ssl = SSL_new(r->ctx);
    SSL_set_fd(r->ssl, r->fd);
    SSL_set_connect_state(r->ssl);
}

static void raw_deinit(struct raw *r)
{
    SSL_free(r->ssl);
    SSL_CTX_free(r->ctx);
    close(r->fd);
    world_deinit(&r->w);
}

static void turns(struct raw *r, int n)
{
    for (int i = 0; i < n; i++)
        kr_loop_turn(r->w.loop, 1);
}

/* Whether the handshake succeeded, as the client sees it. */
static bool raw_shake(struct raw *r)
{
    for (int i = 0; i < 1000; i++) {
        int n = SSL_do_handshake(r->ssl);

        if (n != 1 && SSL_get_error(r->ssl, n) != SSL_ERROR_WANT_READ)
            return false;
        turns(r, 2);
        if (n == 1)
            return true;
    }
    return false;
}

static void raw_write(struct raw *r, const char *text)
{
    size_t before = r->w.server.got;

    assert_int_equal(SSL_write(r->ssl, text, (int)strlen(text)), strlen(text));
    for (int i = 0; i < 1000 && r->w.server.got < before + strlen(text); i++)
        turns(r, 1);
    assert_int_equal(r->w.server.got, before + strlen(text));
}

static void raw_read(struct raw *r, size_t n)
{
    char in[4096];

    r->w.server.send_left = n;
    kr_pipe_want_fill(r->w.server.pipe);
    for (int i = 0; i < 10000 && n != 0; i++) {
        int got = SSL_read(r->ssl, in, sizeof in);

        if (got > 0)
            n -= (size_t)got;
        else
            assert_int_equal(SSL_get_error(r->ssl, got), SSL_ERROR_WANT_READ);
        turns(r, 1);
    }
    assert_int_equal(n, 0);
}

static bool server_closed(struct world *w)
{
    return w->server.closes != 0;
}

static void test_key_updates_after_the_session_is_gone_then_bytes_pass_both_ways(void **state)
{
    struct raw r;

    (void)state;
    raw_init(&r, false, TLS1_3_VERSION);
    assert_true(raw_shake(&r));
    raw_write(&r, "before");
    raw_read(&r, 100000);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(SSL_key_update(r.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        raw_write(&r, "updated");
        raw_read(&r, 100000);
        assert_int_equal(SSL_key_update(r.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        raw_write(&r, "again");
        raw_read(&r, 50);
    }
    assert_int_equal(r.tickets, 0);
    kr_pipe_close(r.w.server.pipe, KR_PIPE_FLUSH);
    turns(&r, 3);
    assert_int_equal(SSL_read(r.ssl, &(char){0}, 1), 0);
    assert_int_equal(SSL_get_shutdown(r.ssl), SSL_RECEIVED_SHUTDOWN);
    assert_true(world_run(&r.w, world_closed));
    assert_int_equal(r.w.server.closed, 0);
    raw_deinit(&r);
}

static void test_close_notify_from_peer_then_eof_and_we_can_still_send(void **state)
{
    struct raw r;

    (void)state;
    raw_init(&r, false, TLS1_3_VERSION);
    assert_true(raw_shake(&r));
    SSL_shutdown(r.ssl);
    turns(&r, 3);
    assert_int_equal(r.w.server.eofs, 1);
    assert_int_equal(r.w.server.closes, 0);
    raw_read(&r, 70000);
    kr_pipe_close(r.w.server.pipe, KR_PIPE_FLUSH);
    assert_true(world_run(&r.w, world_closed));
    assert_int_equal(r.w.server.closed, 0);
    raw_deinit(&r);
}

static void test_record_that_is_damaged_then_alert_and_tls_failure(void **state)
{
    static const unsigned char bad[] = {23, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8,
                                        9,  0, 1, 2, 3,  4, 5, 6, 7, 8, 9, 0};
    struct raw r;

    (void)state;
    raw_init(&r, false, TLS1_3_VERSION);
    assert_true(raw_shake(&r));
    assert_int_equal(write(r.fd, bad, sizeof bad), sizeof bad);
    assert_true(world_run(&r.w, server_closed));
    assert_int_equal(r.w.server.closed, KR_ETLS);
    assert_non_null(strstr(r.w.server.why.text, "damaged"));
    ERR_clear_error();
    assert_int_equal(SSL_read(r.ssl, &(char){0}, 1), 0);
    assert_int_equal(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
    raw_deinit(&r);
}

static void test_fatal_alert_from_peer_then_closed_with_its_words(void **state)
{
    static const unsigned char bad[] = {22, 3, 3, 0, 1, 0};
    struct raw r;

    (void)state;
    raw_init(&r, false, TLS1_3_VERSION);
    assert_true(raw_shake(&r));
    /* The client finds a record on its socket that it must answer with an alert. */
    {
        int fds[2];
        BIO *in;

        world_pair(fds);
        assert_int_equal(write(fds[1], bad, sizeof bad), sizeof bad);
        in = BIO_new_socket(fds[0], BIO_CLOSE);
        SSL_set0_rbio(r.ssl, in);
        ERR_clear_error();
        assert_int_equal(SSL_read(r.ssl, &(char){0}, 1), -1);
        close(fds[1]);
    }
    assert_true(world_run(&r.w, server_closed));
    assert_int_equal(r.w.server.closed, KR_ETLS);
    raw_deinit(&r);
}

static void test_key_update_flood_then_cut(void **state)
{
    struct raw r;

    (void)state;
    raw_init(&r, false, TLS1_3_VERSION);
    assert_true(raw_shake(&r));
    for (int i = 0; i < 40 && r.w.server.closes == 0; i++) {
        SSL_key_update(r.ssl, SSL_KEY_UPDATE_REQUESTED);
        if (SSL_write(r.ssl, "x", 1) != 1)
            break;
        turns(&r, 1);
    }
    assert_int_equal(r.w.server.closed, KR_EPROTO);
    assert_in_range(r.w.server.got, 4, 5);
    raw_deinit(&r);
}

static void test_tls12_client_then_refused_by_default(void **state)
{
    struct raw r;

    (void)state;
    raw_init(&r, false, TLS1_2_VERSION);
    assert_false(raw_shake(&r));
    assert_int_equal(r.w.server.handshake, KR_ETLS);
    assert_non_null(strstr(r.w.server.why.text, "no common TLS version"));
    raw_deinit(&r);
}

static void test_tls12_client_when_allowed_then_bytes_pass_and_no_ticket(void **state)
{
    struct raw r;

    (void)state;
    raw_init(&r, true, TLS1_2_VERSION);
    assert_true(raw_shake(&r));
    assert_string_equal(r.w.server.version, "TLSv1.2");
    raw_write(&r, "hello");
    raw_read(&r, 100000);
    assert_int_equal(SSL_SESSION_has_ticket(SSL_get0_session(r.ssl)), 0);
    kr_pipe_close(r.w.server.pipe, KR_PIPE_FLUSH);
    assert_true(world_run(&r.w, world_closed));
    raw_deinit(&r);
}

enum { IDLE = 500 };

/* The clients live in a child, so that only the server's memory is counted. */
static void hold_clients(int (*fds)[2], struct world *w)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    SSL_CTX_use_certificate(ctx, w->agent.x509);
    SSL_CTX_use_PrivateKey(ctx, w->agent.key);
    for (int i = 0; i < IDLE; i++) {
        SSL *ssl = SSL_new(ctx);
        char in[100];

        close(fds[i][1]);
        SSL_set_fd(ssl, fds[i][0]);
        if (SSL_connect(ssl) != 1 || SSL_read(ssl, in, sizeof in) != 100)
            _exit(1);
    }
    pause();
    _exit(0);
}

static void start_server(struct world *w, struct kr_tls_context *ctx, int fd, struct world_end *end)
{
    world_end_init(end);
    end->send_left = 100;
    assert_non_null(kr_tls_accept(
        w->io,
        &(struct kr_tls_start){
            .ctx = ctx, .fd = fd, .user_ops = &world_tls_user, .owner = end, .timeout_ms = 60000},
        NULL));
}

static size_t heap_in_use(void)
{
    return mallinfo2().uordblks;
}

static bool is_sanitized(void)
{
    void *p = malloc(100000);
    size_t with = heap_in_use();

    free(p);
    return with < 100000; /* the sanitizer's allocator does not count here */
}

static void test_idle_connection_then_its_memory_is_small(void **state)
{
    static struct world_end ends[IDLE];
    static int fds[IDLE][2];
    struct kr_tls_context *ctx;
    size_t before = 0;
    size_t per;
    struct world w;
    pid_t child;

    (void)state;
    world_init(&w);
    ctx = server_context(&w, false);
    for (int i = 0; i < IDLE; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]), 0);
    child = fork();
    if (child == 0)
        hold_clients(fds, &w);
    for (int i = 0; i < IDLE; i++) {
        close(fds[i][0]);
        assert_int_equal(fcntl(fds[i][1], F_SETFL, O_NONBLOCK), 0);
        if (i == 1) /* what is made once is made by now */
            before = heap_in_use();
        start_server(&w, ctx, fds[i][1], &ends[i]);
        while (ends[i].handshakes == 0)
            kr_loop_turn(w.loop, 100);
        assert_int_equal(ends[i].handshake, 0);
        kr_pipe_want_fill(ends[i].pipe);
        while (ends[i].send_left != 0)
            kr_loop_turn(w.loop, 100);
    }
    per = (heap_in_use() - before) / (IDLE - 1);
    print_message("heap per idle connection: %zu bytes\n", per);
    assert_true(is_sanitized() || per < 16 * 1024);
    kr_tls_context_unref(ctx);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_updates_after_the_session_is_gone_then_bytes_pass_both_ways),
        cmocka_unit_test(test_close_notify_from_peer_then_eof_and_we_can_still_send),
        cmocka_unit_test(test_record_that_is_damaged_then_alert_and_tls_failure),
        cmocka_unit_test(test_fatal_alert_from_peer_then_closed_with_its_words),
        cmocka_unit_test(test_key_update_flood_then_cut),
        cmocka_unit_test(test_tls12_client_then_refused_by_default),
        cmocka_unit_test(test_tls12_client_when_allowed_then_bytes_pass_and_no_ticket),
        cmocka_unit_test(test_idle_connection_then_its_memory_is_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
