/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the Nth allocation of ours, for every N: everything that was started is
 * told its end exactly once, and nothing leaks. OpenSSL keeps its own memory here (it is not what
 * is tested), and libev ends the process by itself: it takes its memory by realloc, which works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/crypto.h>

#define FAILING_ALLOC_SPARES_REALLOC
#include "../failing_alloc.h"
#include "base/err.h"
#include "net/dial.h"
#include "net/tcp_pipe.h"
#include "tls_world.h"

static void *ssl_malloc(size_t n, const char *file, int line)
{
    void *p;

    (void)file, (void)line;
    alloc_spared++;
    p = malloc(n);
    alloc_spared--;
    return p;
}

static void *ssl_realloc(void *p, size_t n, const char *file, int line)
{
    (void)file, (void)line;
    return realloc(p, n);
}

static void ssl_free(void *p, const char *file, int line)
{
    (void)file, (void)line;
    free(p);
}

/* Until one run meets no failure. */
static void for_every_allocation(void (*work)(void *arg), void *arg)
{
    int runs = 0;

    do {
        alloc_failed = false;
        allocs_left = runs++;
        work(arg);
        allocs_left = -1;
    } while (alloc_failed);
    assert_true(runs > 1);
    print_message("%d allocations failed, one after the other\n", runs - 1);
}

static struct kr_tls_context *contexts[2]; /* client, server */

static void start_one(struct world *w, int server, int fd, struct world_end *end)
{
    struct kr_tls_start start = {
        .ctx = contexts[server], .fd = fd, .user_ops = &world_tls_user, .owner = end};
    struct kr_pipe *p =
        server ? kr_tls_accept(w->io, &start, NULL) : kr_tls_connect(w->io, &start, NULL);

    if (p == NULL)
        end->handshakes = 1; /* it will not be told */
}

static bool all_over(struct world *w)
{
    struct world_end *c = &w->client;
    struct world_end *s = &w->server;

    if (c->pipe != NULL && c->got == 500000)
        kr_pipe_close(c->pipe, KR_PIPE_FLUSH);
    if (s->pipe != NULL && s->eofs != 0)
        kr_pipe_close(s->pipe, KR_PIPE_FLUSH);
    return world_closed(w);
}

/* A handshake, half a megabyte to a client that stops reading now and then, closing. */
static void tls_life(void *arg)
{
    struct world *w = arg;
    int fds[2];

    world_end_init(&w->client);
    world_end_init(&w->server);
    world_pair(fds);
    start_one(w, 1, fds[1], &w->server);
    start_one(w, 0, fds[0], &w->client);
    while (!world_closed(w) && !world_shaken(w))
        kr_loop_turn(w->loop, 100);
    if (w->server.pipe != NULL) {
        w->server.send_left = 500000;
        kr_pipe_want_fill(w->server.pipe);
    }
    if (w->client.pipe != NULL) {
        kr_pipe_set_reading(w->client.pipe, false);
        w->client.stop_on_bytes = true;
    }
    for (int i = 0; i < 3 && w->client.pipe != NULL; i++) {
        kr_pipe_set_reading(w->client.pipe, true);
        kr_loop_turn(w->loop, 1);
    }
    w->client.stop_on_bytes = false;
    if (w->client.pipe != NULL)
        kr_pipe_set_reading(w->client.pipe, true);
    assert_true(world_run(w, all_over));
    assert_int_equal(w->client.handshakes, 1);
    assert_int_equal(w->server.handshakes, 1);
    assert_int_equal(w->client.closes, w->client.handshake == 0);
    assert_int_equal(w->server.closes, w->server.handshake == 0);
    if (!alloc_failed)
        assert_int_equal(w->client.got, 500000);
}

static void test_memory_fails_anywhere_in_a_tls_life_then_every_end_is_told_once(void **state)
{
    struct kr_tls_config client = {0};
    struct kr_tls_config server = {.server = true, .peer_cert = KR_TLS_CERT_REQUIRED};
    struct world w;

    (void)state;
    world_init(&w);
    world_config(&client, &w.agent, &w.ca);
    world_config(&server, &w.hub, &w.ca);
    contexts[0] = world_context(&client);
    contexts[1] = world_context(&server);
    for_every_allocation(tls_life, &w);
    kr_tls_context_unref(contexts[0]);
    kr_tls_context_unref(contexts[1]);
    world_deinit(&w);
}

static void make_context(void *arg)
{
    struct kr_note why = {""};
    int rc;
    struct kr_tls_context *ctx = kr_tls_context_create(arg, &rc, &why);

    assert_true((ctx == NULL) == (rc != 0));
    assert_true(rc == 0 || (alloc_failed && rc == KR_ENOMEM));
    kr_tls_context_unref(ctx);
}

static void test_memory_fails_while_a_context_is_made_then_enomem(void **state)
{
    struct kr_tls_config cfg = {.server = true, .peer_cert = KR_TLS_CERT_REQUIRED};
    char ca[] = "/tmp/faults_test.XXXXXX";
    struct world w;
    int fd;

    (void)state;
    world_init(&w);
    world_config(&cfg, &w.hub, &w.ca);
    fd = mkstemp(ca);
    assert_int_equal(write(fd, w.ca.cert_pem.p, w.ca.cert_pem.n), w.ca.cert_pem.n);
    close(fd);
    cfg.ca = (struct kr_tls_pem){.file = ca};
    for_every_allocation(make_context, &cfg);
    unlink(ca);
    world_deinit(&w);
}

struct call {
    struct kr_loop *loop;
    int calls;
    int rc;
};

static void on_dialled(void *owner, int rc, int fd, const char *peer, const struct kr_note *why)
{
    struct call *c = owner;

    (void)peer, (void)why;
    c->calls++;
    c->rc = rc;
    if (fd >= 0)
        close(fd);
}

static void dial_once(void *arg)
{
    struct call c = {.loop = arg};
    struct kr_dial_config cfg = {
        .host = "localhost", .port = 1, .on_done = on_dialled, .owner = &c};
    struct kr_dial *d = kr_dial_start(c.loop, &cfg, NULL);

    assert_true(d != NULL || alloc_failed);
    for (int i = 0; i < 200 && d != NULL && c.calls == 0; i++)
        kr_loop_turn(c.loop, 100);
    assert_int_equal(c.calls, d != NULL);
    assert_true(c.calls == 0 || c.rc < 0); /* nobody listens on port 1 */
}

static void test_memory_fails_while_dialling_then_one_callback(void **state)
{
    struct kr_loop *loop = kr_loop_create(NULL);

    (void)state;
    for_every_allocation(dial_once, loop);
    kr_loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_fails_anywhere_in_a_tls_life_then_every_end_is_told_once),
        cmocka_unit_test(test_memory_fails_while_a_context_is_made_then_enomem),
        cmocka_unit_test(test_memory_fails_while_dialling_then_one_callback),
    };

    CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
