/* SPDX-License-Identifier: Apache-2.0 */
#include "http/reply.h"

#include <stdlib.h>

#include "base/err.h"

struct reply {
    struct kr_exchange *ex;
    size_t at; /* first byte of the body that was not taken yet */
    size_t n;
    uint8_t body[];
};

static void on_head(void *user)
{
    (void)user; /* only on a client connection */
}

static void on_body(void *user, struct kr_bytes in)
{
    struct reply *r = user;

    kr_exchange_consumed(r->ex, in.n);
}

static void on_end(void *user, const struct kr_head *trailers)
{
    (void)user;
    (void)trailers;
}

static size_t available(void *user, bool *end)
{
    const struct reply *r = user;

    *end = true;
    return r->n - r->at;
}

static void take(void *user, uint8_t *out, size_t n)
{
    struct reply *r = user;

    if (n != 0)
        memcpy(out, r->body + r->at, n);
    r->at += n;
}

static void on_done(void *user, int rc)
{
    (void)rc;
    free(user);
}

static const struct kr_exchange_user reply_ops = {
    on_head, on_body, on_end, available, take, on_done,
};

static int send(struct kr_exchange *ex, const struct kr_head *head, size_t n, bool end)
{
    bool bodiless = head->status == 204 || head->status == 304;
    struct kr_head to;
    int rc = 0;

    if (bodiless || kr_head_find(head, KR_LIT("content-length")) != NULL)
        return kr_exchange_send_head(ex, head, end);
    kr_head_init(&to, KR_HEAD_MAX);
    to.status = head->status;
    for (size_t i = 0; rc == 0 && i < head->n; i++)
        rc = kr_head_add_ref(&to, head->fields[i].name, head->fields[i].value);
    if (rc == 0)
        rc = kr_head_add_u64(&to, "content-length", n);
    if (rc == 0)
        rc = kr_exchange_send_head(ex, &to, end);
    kr_head_deinit(&to);
    return rc;
}

int kr_reply(struct kr_exchange *ex, const struct kr_head *head, struct kr_bytes body)
{
    bool no_body = body.n == 0 || kr_bytes_is(ex->head.method, "HEAD");
    struct reply *r = malloc(sizeof *r + (no_body ? 0 : body.n));
    int rc = KR_ENOMEM;

    if (r != NULL) {
        *r = (struct reply){.ex = ex, .n = no_body ? 0 : body.n};
        if (r->n != 0)
            memcpy(r->body, body.p, r->n);
        kr_exchange_attach(ex, &reply_ops, r);
        rc = send(ex, head, body.n, no_body);
    }
    if (rc != 0) {
        kr_exchange_abort(ex, KR_ABORT_INTERNAL);
        free(r);
        return rc;
    }
    if (r->n != 0)
        kr_exchange_ready(ex);
    return 0;
}
