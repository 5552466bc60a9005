/* SPDX-License-Identifier: Apache-2.0 */
#include "fakes/recorder.h"

#include <stdio.h>

#include "base/assert.h"

enum { BODY_MAX = 64 << 20 };

static void tell_fields(struct kr_buf *text, const struct kr_head *h)
{
    for (size_t i = 0; i < h->n; i++) {
        kr_buf_append(text, h->fields[i].name);
        kr_buf_append_str(text, "=");
        kr_buf_append(text, h->fields[i].value);
        kr_buf_append_str(text, ";");
    }
}

static void record_head(struct kr_rec *r)
{
    const struct kr_head *h = &r->ex->head;

    KR_ASSERT(!r->headed);
    r->headed = true;
    r->status = h->status;
    r->whole_at_head = r->ex->in_ended;
    r->upgrade = r->ex->upgrade;
    r->expected_continue = r->ex->expects_continue;
    snprintf(r->line, sizeof r->line, "%.*s %.*s %.*s", (int)h->method.n, (const char *)h->method.p,
             (int)h->authority.n, (const char *)h->authority.p, (int)h->path.n,
             (const char *)h->path.p);
    tell_fields(&r->fields, h);
}

static void on_head(void *user)
{
    struct kr_rec *r = user;

    record_head(r);
    if (r->on_head != NULL)
        r->on_head(r);
}

static void on_body(void *user, struct kr_bytes in)
{
    struct kr_rec *r = user;

    KR_ASSERT(r->headed && !r->ended && r->done == 0 && in.n != 0 && !r->ex->in_ended);
    KR_ASSERT(kr_buf_append(&r->in, in) == 0);
    r->owed += in.n;
    if (!r->hold)
        kr_rec_release(r);
    if (r->on_body != NULL)
        r->on_body(r);
}

static void on_end(void *user, const struct kr_head *trailers)
{
    struct kr_rec *r = user;

    KR_ASSERT(r->headed && !r->ended && r->done == 0 && r->ex->in_ended);
    r->ended = true;
    if (trailers != NULL)
        tell_fields(&r->trailers, trailers);
    if (r->on_end != NULL)
        r->on_end(r);
}

static size_t available(void *user, bool *end)
{
    struct kr_rec *r = user;

    KR_ASSERT(r->done == 0 && r->ex != NULL);
    *end = r->out_end;
    return r->out.n;
}

static void take(void *user, uint8_t *out, size_t n)
{
    struct kr_rec *r = user;

    KR_ASSERT(n <= r->out.n && r->done == 0);
    if (n != 0)
        memcpy(out, r->out.p, n);
    kr_buf_drop(&r->out, n);
    if (r->on_take != NULL)
        r->on_take(r);
}

static void on_done(void *user, int rc)
{
    struct kr_rec *r = user;

    KR_ASSERT(r->done == 0 && r->ex != NULL);
    r->done++;
    r->rc = rc;
    r->ex = NULL;
    if (r->on_done != NULL)
        r->on_done(r);
}

const struct kr_exchange_user kr_rec_ops = {on_head, on_body, on_end, available, take, on_done};

void kr_rec_init(struct kr_rec *r)
{
    *r = (struct kr_rec){0};
    kr_buf_init(&r->fields, 1 << 20);
    kr_buf_init(&r->trailers, 1 << 20);
    kr_buf_init(&r->in, BODY_MAX);
    kr_buf_init(&r->out, BODY_MAX);
}

void kr_rec_deinit(struct kr_rec *r)
{
    kr_buf_deinit(&r->fields);
    kr_buf_deinit(&r->trailers);
    kr_buf_deinit(&r->in);
    kr_buf_deinit(&r->out);
}

void kr_rec_send(struct kr_rec *r, const char *text, bool end)
{
    kr_rec_send_bytes(r, kr_bytes_str(text), end);
}

void kr_rec_send_bytes(struct kr_rec *r, struct kr_bytes bytes, bool end)
{
    KR_ASSERT(kr_buf_append(&r->out, bytes) == 0);
    r->out_end = end;
    kr_exchange_ready(r->ex);
}

void kr_rec_abort(struct kr_rec *r)
{
    struct kr_exchange *ex = r->ex;

    r->ex = NULL;
    kr_exchange_abort(ex, KR_ABORT_CANCEL);
}

void kr_rec_release(struct kr_rec *r)
{
    size_t n = r->owed;

    r->owed = 0;
    kr_exchange_consumed(r->ex, n);
}

static void add_fields(struct kr_head *head, const char *const *fields)
{
    for (; fields != NULL && fields[0] != NULL; fields += 2)
        KR_ASSERT(kr_head_add_str(head, fields[0], fields[1]) == 0);
}

void kr_rec_answer(struct kr_rec *r, int status, const char *body, const char *const *fields)
{
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    head.status = status;
    add_fields(&head, fields);
    KR_ASSERT(kr_exchange_send_head(r->ex, &head, body == NULL) == 0);
    kr_head_deinit(&head);
    if (body != NULL)
        kr_rec_send(r, body, true);
}

static void conn_request(void *owner, struct kr_exchange *ex)
{
    struct kr_rec_conn *c = owner;
    struct kr_rec *r = &c->recs[c->n++];

    KR_ASSERT(c->n <= KR_REC_MAX && c->closed == 0);
    r->ex = ex;
    record_head(r);
    kr_exchange_attach(ex, &kr_rec_ops, r);
    if (c->on_request != NULL)
        c->on_request(c, r);
}

static void conn_drain(void *owner)
{
    struct kr_rec_conn *c = owner;

    c->drained++;
}

static void conn_ready(void *owner)
{
    struct kr_rec_conn *c = owner;

    c->ready++;
}

static void conn_close(void *owner, int rc, const struct kr_note *why)
{
    struct kr_rec_conn *c = owner;

    for (size_t i = 0; i < c->n; i++)
        KR_ASSERT(c->recs[i].ex == NULL); /* every exchange ends before its connection */
    c->closed++;
    c->rc = rc;
    snprintf(c->why, sizeof c->why, "%s", why->text);
    c->conn = NULL;
}

const struct kr_conn_user kr_rec_conn_ops = {conn_request, conn_drain, conn_ready, conn_close};

void kr_rec_conn_init(struct kr_rec_conn *c)
{
    *c = (struct kr_rec_conn){0};
    for (size_t i = 0; i < KR_REC_MAX; i++)
        kr_rec_init(&c->recs[i]);
}

void kr_rec_conn_deinit(struct kr_rec_conn *c)
{
    for (size_t i = 0; i < KR_REC_MAX; i++)
        kr_rec_deinit(&c->recs[i]);
}

static struct kr_rec *open_any(struct kr_rec_conn *c, const char *method, const char *path,
                               const char *token, bool end, const char *const *fields)
{
    struct kr_rec *r = &c->recs[c->n];
    struct kr_head head;

    KR_ASSERT(c->n < KR_REC_MAX);
    kr_head_init(&head, KR_HEAD_MAX);
    head.method = kr_bytes_str(method);
    head.scheme = KR_LIT("https");
    head.authority = KR_LIT("origin:443");
    head.path = kr_bytes_str(path);
    if (token != NULL)
        head.protocol = kr_bytes_str(token);
    add_fields(&head, fields);
    r->ex = kr_conn_open(c->conn, &head, end, &kr_rec_ops, r);
    kr_head_deinit(&head);
    if (r->ex == NULL)
        return NULL;
    c->n++;
    return r;
}

struct kr_rec *kr_rec_open(struct kr_rec_conn *c, const char *method, const char *path, bool end,
                           const char *const *fields)
{
    return open_any(c, method, path, NULL, end, fields);
}

struct kr_rec *kr_rec_open_upgrade(struct kr_rec_conn *c, const char *method, const char *path,
                                   const char *token, const char *const *fields)
{
    return open_any(c, method, path, token, false, fields);
}
