/* SPDX-License-Identifier: Apache-2.0 */
/* fake_exchange: a pair of exchanges in memory: what one end sends, the other gets when the test
 * pumps, `window` bytes of body at a time. Counts what the contract of http/exchange.h demands:
 * each body byte is consumed, nothing is called after the end. */
#ifndef KR_TESTS_FAKE_EXCHANGE_H
#define KR_TESTS_FAKE_EXCHANGE_H

#include "base/err.h"
#include "http/conn.h"

struct fake_end {
    struct kr_exchange ex;
    struct fake_end *peer;
    struct kr_head out; /* head to deliver */
    struct kr_head trailers;
    bool head_pending;
    bool head_is_all;
    bool has_trailers;
    bool out_ended; /* the peer has been told */
    bool dead;      /* aborted or done */
    enum kr_abort how;
    bool aborted;
    size_t owed;  /* body bytes handed over and not consumed yet */
    bool may_owe; /* set by the test: credit is kept back on purpose */
};

struct fake_wire {
    struct kr_conn conn;
    struct fake_end client;
    struct fake_end server;
    bool refuses;
    void (*on_request)(struct fake_wire *w);
    void *owner;
};

static void fake_copy_head(struct kr_head *to, const struct kr_head *from)
{
    kr_head_deinit(to);
    to->method = kr_arena_copy(&to->arena, from->method);
    to->path = kr_arena_copy(&to->arena, from->path);
    to->authority = kr_arena_copy(&to->arena, from->authority);
    to->status = from->status;
    for (size_t i = 0; i < from->n; i++)
        assert_int_equal(kr_head_add(to, from->fields[i].name, from->fields[i].value), 0);
}

static struct fake_end *fake_of(struct kr_exchange *ex)
{
    struct fake_end *e = (struct fake_end *)(void *)ex; /* first member */

    assert_false(e->dead);
    return e;
}

static int fake_send_head(struct kr_exchange *ex, const struct kr_head *head, bool end)
{
    struct fake_end *e = fake_of(ex);

    fake_copy_head(&e->out, head);
    e->head_pending = true;
    e->head_is_all = end;
    ex->head_sent = true;
    return 0;
}

static int fake_send_trailers(struct kr_exchange *ex, const struct kr_head *trailers)
{
    struct fake_end *e = fake_of(ex);

    fake_copy_head(&e->trailers, trailers);
    e->has_trailers = true;
    return 0;
}

static void fake_send_continue(struct kr_exchange *ex)
{
    fake_of(ex);
}

static void fake_ready(struct kr_exchange *ex)
{
    fake_of(ex);
}

static void fake_consumed(struct kr_exchange *ex, size_t n)
{
    struct fake_end *e = fake_of(ex);

    assert_in_range(n, 1, e->owed);
    e->owed -= n;
}

static void fake_abort(struct kr_exchange *ex, enum kr_abort how)
{
    struct fake_end *e = fake_of(ex);

    e->dead = e->aborted = true;
    e->how = how;
}

static const struct kr_exchange_ops fake_exchange_ops = {
    .send_head = fake_send_head,
    .send_continue = fake_send_continue,
    .send_trailers = fake_send_trailers,
    .ready = fake_ready,
    .consumed = fake_consumed,
    .abort = fake_abort,
};

static struct kr_exchange *fake_open(struct kr_conn *c, const struct kr_head *head, bool end,
                                     const struct kr_exchange_user *ops, void *user)
{
    struct fake_wire *w = (struct fake_wire *)(void *)c;

    if (w->refuses)
        return NULL;
    kr_exchange_attach(&w->client.ex, ops, user);
    fake_send_head(&w->client.ex, head, end);
    return &w->client.ex;
}

static const struct kr_conn_ops fake_conn_ops = {.open = fake_open};

static void fake_end_init(struct fake_end *e, struct fake_end *peer)
{
    *e = (struct fake_end){.peer = peer};
    e->ex.ops = &fake_exchange_ops;
    kr_head_init(&e->out, 65536);
    kr_head_init(&e->trailers, 65536);
    kr_head_init(&e->ex.head, 65536);
}

static void fake_wire_init(struct fake_wire *w, void (*on_request)(struct fake_wire *), void *owner)
{
    *w = (struct fake_wire){.on_request = on_request, .owner = owner};
    w->conn.ops = &fake_conn_ops;
    fake_end_init(&w->client, &w->server);
    fake_end_init(&w->server, &w->client);
    w->server.dead = true; /* until the request came */
}

static void fake_wire_deinit(struct fake_wire *w)
{
    struct fake_end *ends[] = {&w->client, &w->server};

    for (size_t i = 0; i < 2; i++) {
        kr_head_deinit(&ends[i]->out);
        kr_head_deinit(&ends[i]->trailers);
        kr_head_deinit(&ends[i]->ex.head);
    }
}

static void fake_finish(struct fake_end *e, int rc, uint32_t reset_code)
{
    if (e->dead || e->ex.user_ops == NULL)
        return;
    e->dead = true;
    e->ex.reset_code = reset_code;
    if (!e->may_owe)
        assert_int_equal(e->owed, 0);
    e->ex.user_ops->on_done(e->ex.user, rc);
}

static void fake_body(struct fake_end *to, const uint8_t *p, size_t n)
{
    if (n == 0 || to->dead)
        return;
    to->owed += n;
    to->ex.user_ops->on_body(to->ex.user, kr_bytes_of(p, n));
    if (!to->dead && !to->may_owe)
        assert_int_equal(to->owed, 0);
}

static void fake_in_end(struct fake_end *to, const struct kr_head *trailers)
{
    to->ex.in_ended = true;
    if (!to->dead)
        to->ex.user_ops->on_end(to->ex.user, trailers);
}

/* Everything that this end has sent and may send, once. True if something moved. */
static bool fake_step(struct fake_wire *w, struct fake_end *from, size_t window)
{
    struct fake_end *to = from->peer;
    uint8_t buf[4096];
    bool last = false;
    size_t n;

    if (from->head_pending) {
        from->head_pending = false;
        fake_copy_head(&to->ex.head, &from->out);
        from->out_ended = from->head_is_all;
        if (to == &w->server) {
            to->dead = false;
            w->on_request(w);
        } else if (!to->dead) {
            to->ex.user_ops->on_head(to->ex.user);
        }
        if (from->head_is_all)
            fake_in_end(to, NULL);
        return true;
    }
    if (from->dead || !from->ex.head_sent || from->out_ended || from->ex.user_ops == NULL)
        return false;
    n = from->ex.user_ops->available(from->ex.user, &last);
    if (n > window) {
        n = window;
        last = false;
    }
    from->ex.user_ops->take(from->ex.user, buf, n);
    fake_body(to, buf, n);
    if (last && !from->dead) {
        from->out_ended = true;
        fake_in_end(to, from->has_trailers ? &from->trailers : NULL);
    }
    return n != 0 || last;
}

/* Until nothing moves any more. */
static void fake_pump(struct fake_wire *w, size_t window)
{
    assert_in_range(window, 1, 4096);
    while (fake_step(w, &w->client, window) || fake_step(w, &w->server, window)) {
    }
    if (w->client.out_ended && w->server.out_ended) {
        fake_finish(&w->client, 0, 0);
        fake_finish(&w->server, 0, 0);
    }
    if (w->client.aborted)
        fake_finish(&w->server, KR_ERESET, 8);
    if (w->server.aborted)
        fake_finish(&w->client, KR_ERESET, w->server.how == KR_ABORT_REFUSED ? 7 : 8);
}

#endif
