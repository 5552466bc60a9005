/* SPDX-License-Identifier: Apache-2.0 */
/* A pipe whose handshake ran on one thread and whose life is on another (the thread sanitizer's
 * presets make this one worth its while). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "tls_world.h"

enum { MOVES = 20, BYTES = 300 * 1000 };

struct worker {
    struct kr_loop *loop;
    struct kr_tls_io *io;
    struct kr_wake wake;
    pthread_mutex_t lock;
    struct kr_pipe *mailbox[MOVES]; /* under lock */
    size_t mails;                   /* under lock */
    size_t taken;
    struct world_end ends[MOVES];
};

struct door { /* where handshakes run */
    struct world w;
    struct worker *worker;
    struct world_end clients[MOVES];
};

static void on_wake(struct kr_wake *wake)
{
    struct worker *k = KR_CONTAINER_OF(wake, struct worker, wake);

    pthread_mutex_lock(&k->lock);
    while (k->taken < k->mails) {
        struct world_end *e = &k->ends[k->taken];

        world_end_init(e);
        e->pipe = k->mailbox[k->taken++];
        e->send_left = BYTES;
        kr_tls_pipe_adopt(e->pipe, k->io);
        kr_pipe_attach(e->pipe, &world_pipe_user, e);
        kr_pipe_want_fill(e->pipe);
        kr_pipe_close(e->pipe, KR_PIPE_FLUSH);
    }
    pthread_mutex_unlock(&k->lock);
}

static void *run_worker(void *arg)
{
    struct worker *k = arg;

    while (k->taken < MOVES || kr_tls_io_pipes(k->io) != 0)
        kr_loop_turn(k->loop, 100);
    return NULL;
}

static int on_server_handshake(void *owner, int rc, struct kr_pipe *pipe,
                               const struct kr_tls_info *info, const struct kr_note *why)
{
    struct door *d = owner;
    struct worker *k = d->worker;

    (void)why;
    assert_int_equal(rc, 0);
    assert_string_equal(info->sni, "localhost");
    kr_tls_pipe_release(pipe);
    pthread_mutex_lock(&k->lock);
    k->mailbox[k->mails++] = pipe;
    pthread_mutex_unlock(&k->lock);
    kr_wake_send(&k->wake);
    return 0;
}

static const struct kr_tls_user door_user = {.on_handshake = on_server_handshake};

static void start_pair(struct door *d, struct kr_tls_context *client, struct kr_tls_context *server,
                       struct world_end *end)
{
    int fds[2];

    world_pair(fds);
    world_end_init(end);
    assert_non_null(kr_tls_accept(
        d->w.io,
        &(struct kr_tls_start){.ctx = server, .fd = fds[1], .user_ops = &door_user, .owner = d},
        NULL));
    assert_non_null(kr_tls_connect(d->w.io,
                                   &(struct kr_tls_start){.ctx = client,
                                                          .fd = fds[0],
                                                          .user_ops = &world_tls_user,
                                                          .owner = end,
                                                          .server_name = "localhost"},
                                   NULL));
}

static struct kr_tls_context *context(struct world *w, bool server)
{
    struct kr_tls_config cfg = {.server = server, .peer_cert = KR_TLS_CERT_REQUIRED};

    world_config(&cfg, server ? &w->hub : &w->agent, &w->ca);
    return world_context(&cfg);
}

static void test_pipe_moved_to_another_thread_then_it_works_there(void **state)
{
    static struct worker k;
    static struct door d;
    struct kr_tls_context *client;
    struct kr_tls_context *server;
    pthread_t thread;
    size_t done = 0;

    (void)state;
    world_init(&d.w);
    d.worker = &k;
    k.loop = kr_loop_create(NULL);
    k.io = kr_tls_io_create(k.loop);
    pthread_mutex_init(&k.lock, NULL);
    kr_wake_start(&k.wake, k.loop, on_wake);
    client = context(&d.w, false);
    server = context(&d.w, true);
    for (int i = 0; i < MOVES; i++)
        start_pair(&d, client, server, &d.clients[i]);
    assert_int_equal(pthread_create(&thread, NULL, run_worker, &k), 0);
    while (done < MOVES) {
        kr_loop_turn(d.w.loop, 20);
        done = 0;
        for (int i = 0; i < MOVES; i++)
            done += d.clients[i].got == BYTES && d.clients[i].eofs == 1;
    }
    for (int i = 0; i < MOVES; i++)
        kr_pipe_close(d.clients[i].pipe, KR_PIPE_FLUSH);
    pthread_join(thread, NULL);
    kr_wake_stop(&k.wake);
    kr_tls_io_destroy(k.io);
    kr_loop_destroy(k.loop);
    kr_tls_context_unref(client);
    kr_tls_context_unref(server);
    world_deinit(&d.w);
}

static int keep(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                const struct kr_note *why)
{
    (void)info, (void)why;
    assert_int_equal(rc, 0);
    kr_tls_pipe_release(pipe);
    *(struct kr_pipe **)owner = pipe;
    return 0;
}

static void test_released_pipe_that_nobody_wants_then_discarded(void **state)
{
    static const struct kr_tls_user keeper = {.on_handshake = keep};
    struct kr_tls_context *client;
    struct kr_tls_context *server;
    struct kr_pipe *kept = NULL;
    struct world w;
    int fds[2];

    (void)state;
    world_init(&w);
    client = context(&w, false);
    server = context(&w, true);
    world_pair(fds);
    assert_non_null(kr_tls_accept(
        w.io,
        &(struct kr_tls_start){.ctx = server, .fd = fds[1], .user_ops = &keeper, .owner = &kept},
        NULL));
    assert_non_null(kr_tls_connect(
        w.io,
        &(struct kr_tls_start){
            .ctx = client, .fd = fds[0], .user_ops = &world_tls_user, .owner = &w.client},
        NULL));
    while (kept == NULL)
        kr_loop_turn(w.loop, 20);
    kr_tls_pipe_discard(kept);
    assert_true(world_run(&w, world_closed));
    assert_int_equal(w.client.closed, KR_ECONNLOST);
    kr_tls_context_unref(client);
    kr_tls_context_unref(server);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe_moved_to_another_thread_then_it_works_there),
        cmocka_unit_test(test_released_pipe_that_nobody_wants_then_discarded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
