/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the Nth allocation, for every N, in a session: whatever fails, every
 * exchange and connection ends once, nothing leaks, nothing hangs. The allocator is replaced in
 * this program only; the pipe between the two ends is static, so that only lib/http is hit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../failing_alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "http/h2_session.h"
#include "http/reply.h"

/* ---- two ends ---- */

struct end {
    struct kr_pipe pipe;
    struct end *other;
    struct kr_conn *conn;
    uint8_t run[16384];
    bool want;
    bool closing;
    bool closed;
};

static void want_fill(struct kr_pipe *p)
{
    KR_CONTAINER_OF(p, struct end, pipe)->want = true;
}

static void set_reading(struct kr_pipe *p, bool on)
{
    (void)p, (void)on;
}

static void close_end(struct kr_pipe *p, enum kr_pipe_close how)
{
    (void)how;
    KR_CONTAINER_OF(p, struct end, pipe)->closing = true;
}

static const struct kr_pipe_ops pipe_ops = {want_fill, set_reading, close_end};

static void shut(struct end *e)
{
    struct kr_note note = {"closed"};

    e->closed = true;
    e->pipe.user_ops->on_close(e->pipe.user, 0, &note);
}

/* Moves what `e` has to say; whether anything happened. */
static bool move(struct end *e)
{
    size_t n;

    if (e->closed || e->pipe.user_ops == NULL || (!e->want && !e->closing))
        return false;
    e->want = false;
    while ((n = e->pipe.user_ops->fill(e->pipe.user, e->run, sizeof e->run)) != 0) {
        if (!e->other->closed && !e->other->closing && e->other->pipe.user_ops != NULL)
            e->other->pipe.user_ops->on_bytes(e->other->pipe.user, kr_bytes_of(e->run, n));
    }
    if (e->closing) {
        shut(e);
        if (!e->other->closed && e->other->pipe.user_ops != NULL)
            e->other->pipe.user_ops->on_eof(e->other->pipe.user);
    }
    return true;
}

/* ---- one exchange with a body in each direction ---- */

struct party {
    struct kr_sched sched;
    struct kr_h2_shared shared;
    struct end client;
    struct end server;
    struct kr_exchange *ex; /* at the client */
    size_t up;              /* of the request body, left to send */
    size_t got;
    int done;
    int rc;
    int status;
    bool ended;
    int closed;
};

static void on_head(void *user)
{
    struct party *p = user;

    p->status = p->ex->head.status;
}

static void on_body(void *user, struct kr_bytes in)
{
    struct party *p = user;

    p->got += in.n;
    kr_exchange_consumed(p->ex, in.n);
}

static void on_end(void *user, const struct kr_head *trailers)
{
    (void)trailers;
    ((struct party *)user)->ended = true;
}

static size_t available(void *user, bool *end)
{
    *end = true;
    return ((struct party *)user)->up;
}

static void take(void *user, uint8_t *out, size_t n)
{
    memset(out, 'u', n);
    ((struct party *)user)->up -= n;
}

static void on_done(void *user, int rc)
{
    struct party *p = user;

    p->done++;
    p->rc = rc;
}

static const struct kr_exchange_user ops = {on_head, on_body, on_end, available, take, on_done};

static void on_request(void *owner, struct kr_exchange *ex)
{
    static uint8_t body[100000];
    struct kr_head head;

    (void)owner;
    kr_head_init(&head, KR_HEAD_MAX);
    head.status = 200;
    kr_head_add_str(&head, "content-type", "text/plain"); /* if it fails, so be it */
    kr_reply(ex, &head, kr_bytes_of(body, sizeof body));
    kr_head_deinit(&head);
}

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct party *p = owner;

    (void)rc;
    KR_ASSERT(why != NULL);
    p->closed++;
}

static const struct kr_conn_user conn_user = {on_request, NULL, NULL, on_close};

static struct kr_conn *create(struct party *p, struct end *e, bool server)
{
    struct kr_h2_config cfg = {.server = server,
                               .sched = &p->sched,
                               .user_ops = &conn_user,
                               .owner = p,
                               .shared = &p->shared,
                               .abuse = true};

    e->pipe.ops = &pipe_ops;
    e->other = server ? &p->client : &p->server;
    return kr_h2_create(&cfg, &e->pipe);
}

static void work(struct party *p)
{
    while (move(&p->client) || move(&p->server))
        ;
}

static void open_it(struct party *p)
{
    struct kr_field fields[60];
    struct kr_head head = {.method = KR_LIT("POST"),
                           .authority = KR_LIT("h"),
                           .path = KR_LIT("/"),
                           .fields = fields,
                           .n = 60};

    for (size_t i = 0; i < 60; i++)
        fields[i] = (struct kr_field){KR_LIT("x-field"), KR_LIT("a value of some length"), false};
    p->up = 100000;
    p->ex = kr_conn_open(p->client.conn, &head, false, &ops, p);
}

/* Everything once; `fail_from` says at which of the steps allocations begin to count. */
static int once(long n)
{
    static struct party p;
    int conns;

    p = (struct party){0};
    alloc_failed = false;
    kr_sched_init(&p.sched, 1000, 1000);
    assert_int_equal(kr_h2_shared_init(&p.shared, 1 << 20), 0);
    allocs_left = n;
    p.client.conn = create(&p, &p.client, false);
    p.server.conn = create(&p, &p.server, true);
    conns = (p.client.conn != NULL) + (p.server.conn != NULL);
    if (conns == 2) {
        work(&p);
        if (!p.client.closed && !p.client.closing)
            open_it(&p);
        work(&p);
    }
    allocs_left = -1;
    assert_true(p.ex == NULL || p.done == 1); /* nobody had to close it for that */
    if (p.client.conn != NULL && !p.client.closed)
        kr_conn_close(p.client.conn);
    work(&p);
    if (p.server.conn != NULL && !p.server.closed)
        kr_conn_close(p.server.conn);
    work(&p);
    assert_int_equal(p.closed, conns);
    assert_int_equal(p.done, p.ex != NULL);
    if (p.done == 1 && p.rc == 0) { /* a good end is a whole answer, whatever failed */
        assert_true(p.ended && p.status >= 200);
        assert_true(p.status != 200 || p.got == 100000);
    }
    assert_int_equal(p.shared.window_left, 1 << 20);
    assert_int_equal(p.sched.count, 0);
    kr_h2_shared_deinit(&p.shared);
    kr_sched_deinit(&p.sched);
    return alloc_failed;
}

static void test_session_when_each_allocation_fails_once_then_all_ends(void **state)
{
    long n = 0;

    (void)state;
    once(-1); /* what is loaded on first use */
    while (once(n))
        n++;
    assert_true(n > 50);
    print_message("%ld allocations\n", n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_when_each_allocation_fails_once_then_all_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
