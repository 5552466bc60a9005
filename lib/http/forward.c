/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: in.on_body -> up -> out.take; out.on_head -> on_response -> in; out.on_body -> down
 * -> in.take; out.on_done; in.on_done -> on_finished. Failure modes: `out` breaks (on_failed, the
 * owner decides); the client goes (out is canceled). */
#include "http/forward.h"

#include "base/assert.h"
#include "base/err.h"

/* Far above any window: a source that sends beyond what it was granted is a bug of ours. */
#define QUEUE_MAX (64u << 20)
/* So much of a request body is kept for a second attempt after a peer that provably did not process
 * the first (GOAWAY, REFUSED_STREAM, a stale credential): objects that are written are smaller. */
#define KEPT_MAX (64u << 10)

void kr_forward_init(struct kr_forward *fw, const struct kr_forward_ops *ops)
{
    *fw = (struct kr_forward){.ops = ops};
    kr_body_queue_init(&fw->up, QUEUE_MAX);
    kr_body_queue_init(&fw->down, QUEUE_MAX);
    kr_body_queue_init(&fw->kept, KEPT_MAX);
}

void kr_forward_deinit(struct kr_forward *fw)
{
    KR_ASSERT(fw->in == NULL && fw->out == NULL);
    kr_body_queue_deinit(&fw->up);
    kr_body_queue_deinit(&fw->down);
    kr_body_queue_deinit(&fw->kept);
}

static void cancel_out(struct kr_forward *fw, enum kr_abort how)
{
    struct kr_exchange *out = fw->out;

    fw->out = NULL;
    if (out == NULL)
        return;
    fw->out_was_sent = out->head_sent;
    kr_exchange_abort(out, how);
}

/* ---- the client's side ---- */

static void in_on_body(void *user, struct kr_bytes bytes)
{
    struct kr_forward *fw = user;

    fw->up_bytes += bytes.n;
    if (fw->up_max != 0 && fw->up_bytes > fw->up_max && !fw->response_begun) {
        kr_exchange_consumed(fw->in, bytes.n);
        cancel_out(fw, KR_ABORT_CANCEL);
        fw->ops->on_failed(fw, KR_ETOOBIG);
        return;
    }
    if (fw->response_begun && fw->out == NULL) { /* the answer did not need it */
        kr_exchange_consumed(fw->in, bytes.n);
        return;
    }
    if (kr_body_queue_append(&fw->up, bytes) != 0) {
        cancel_out(fw, KR_ABORT_CANCEL);
        fw->ops->on_failed(fw, KR_ENOMEM);
        return;
    }
    if (fw->gathering) {
        kr_exchange_consumed(fw->in, bytes.n);
        fw->again += bytes.n;
    }
    if (fw->out != NULL)
        kr_exchange_ready(fw->out);
}

static void in_on_end(void *user, const struct kr_head *trailers)
{
    struct kr_forward *fw = user;

    (void)trailers; /* no API server reads request trailers */
    fw->up_ended = true;
    if (fw->out != NULL)
        kr_exchange_ready(fw->out);
    if (!fw->gathering)
        return;
    fw->gathering = false;
    fw->ops->on_gathered(fw);
}

static size_t in_available(void *user, bool *end)
{
    struct kr_forward *fw = user;

    *end = fw->down_ended;
    if (fw->down_ended || fw->held > fw->down.size)
        return fw->down.size;
    return fw->down.size - fw->held;
}

static void in_take(void *user, uint8_t *out, size_t n)
{
    struct kr_forward *fw = user;

    kr_body_queue_take(&fw->down, out, n);
    if (fw->out != NULL)
        kr_exchange_consumed(fw->out, n);
}

static void in_on_done(void *user, int rc)
{
    struct kr_forward *fw = user;

    fw->in = NULL;
    cancel_out(fw, KR_ABORT_CANCEL);
    fw->ops->on_finished(fw, rc);
}

static const struct kr_exchange_user in_ops = {
    NULL, in_on_body, in_on_end, in_available, in_take, in_on_done,
};

/* ---- the far side ---- */

static void out_on_head(void *user)
{
    struct kr_forward *fw = user;
    struct kr_head to;
    int rc;

    kr_head_init(&to, KR_HEAD_MAX);
    rc = fw->ops->on_response(fw, &to);
    if (rc == 0 && fw->in != NULL) {
        rc = kr_exchange_send_head(fw->in, &to, fw->out->in_ended);
        fw->response_begun = rc == 0;
        kr_body_queue_deinit(&fw->kept);
        kr_exchange_drop_head(fw->out);
        if (rc == 0 && fw->ops->on_begun != NULL)
            fw->ops->on_begun(fw);
    }
    kr_head_deinit(&to);
    if (rc != 0) {
        cancel_out(fw, KR_ABORT_CANCEL);
        fw->ops->on_failed(fw, rc);
    }
}

static void out_on_body(void *user, struct kr_bytes bytes)
{
    struct kr_forward *fw = user;

    fw->down_bytes += bytes.n;
    if (fw->tap)
        fw->ops->on_response_body(fw, bytes);
    if (kr_body_queue_append(&fw->down, bytes) != 0) {
        cancel_out(fw, KR_ABORT_CANCEL);
        fw->ops->on_failed(fw, KR_ENOMEM);
        return;
    }
    kr_exchange_ready(fw->in);
}

static void out_on_end(void *user, const struct kr_head *trailers)
{
    struct kr_forward *fw = user;

    if (trailers != NULL && fw->trailers && fw->in != NULL)
        kr_exchange_send_trailers(fw->in, trailers);
    fw->down_ended = true;
    if (fw->in != NULL)
        kr_exchange_ready(fw->in);
}

static size_t out_available(void *user, bool *end)
{
    struct kr_forward *fw = user;

    *end = fw->up_ended;
    return fw->up.size;
}

static void keep(struct kr_forward *fw, struct kr_bytes bytes)
{
    if (fw->up_taken || fw->response_begun)
        return;
    if (kr_body_queue_append(&fw->kept, bytes) != 0) {
        fw->up_taken = true;
        kr_body_queue_deinit(&fw->kept);
    }
}

static void out_take(void *user, uint8_t *out, size_t n)
{
    struct kr_forward *fw = user;
    size_t credited = fw->again < n ? (size_t)fw->again : n; /* by the attempt before */

    kr_body_queue_take(&fw->up, out, n);
    keep(fw, kr_bytes_of(out, n));
    fw->again -= credited;
    if (fw->in != NULL)
        kr_exchange_consumed(fw->in, n - credited);
}

/* Puts what went out before in front of what still waits. */
static int take_back(struct kr_forward *fw)
{
    struct kr_body_queue rest = fw->up;
    uint8_t part[4096];
    int rc = 0;

    if (fw->kept.size == 0)
        return 0;
    fw->again += fw->kept.size;
    fw->up = fw->kept;
    fw->up.max = QUEUE_MAX;
    kr_body_queue_init(&fw->kept, KEPT_MAX);
    while (rest.size != 0 && rc == 0) {
        size_t n = rest.size < sizeof part ? rest.size : sizeof part;

        kr_body_queue_take(&rest, part, n);
        rc = kr_body_queue_append(&fw->up, kr_bytes_of(part, n));
    }
    kr_body_queue_deinit(&rest);
    return rc;
}

static void out_on_done(void *user, int rc)
{
    struct kr_forward *fw = user;

    fw->out_was_sent = fw->out->head_sent;
    fw->out_reset_code = fw->out->reset_code;
    fw->out = NULL;
    if (fw->down_ended) /* the whole answer came; how the stream ended then does not matter */
        return;
    if (rc != 0 || !fw->raw) {
        fw->ops->on_failed(fw, rc != 0 ? rc : KR_ECONNLOST);
        return;
    }
    fw->down_ended = true;
    kr_exchange_ready(fw->in);
}

static const struct kr_exchange_user out_ops = {
    out_on_head, out_on_body, out_on_end, out_available, out_take, out_on_done,
};

/* ---- the owner's side ---- */

void kr_forward_in(struct kr_forward *fw, struct kr_exchange *in)
{
    fw->in = in;
    kr_exchange_attach(in, &in_ops, fw);
}

void kr_forward_gather(struct kr_forward *fw)
{
    KR_ASSERT(fw->out == NULL && fw->up.size == 0 && fw->up_max != 0);
    fw->gathering = true;
    kr_exchange_send_continue(fw->in);
}

int kr_forward_take_body(struct kr_forward *fw, struct kr_buf *out)
{
    size_t n = fw->up.size;
    int rc = kr_buf_reserve(out, n);

    KR_ASSERT(fw->up_ended && fw->out == NULL);
    if (rc != 0)
        return rc;
    kr_body_queue_take(&fw->up, out->p + out->n, n);
    out->n += n;
    fw->again = 0;
    return 0;
}

int kr_forward_put_body(struct kr_forward *fw, struct kr_bytes body)
{
    KR_ASSERT(fw->up.size == 0 && fw->up_ended && fw->out == NULL);
    fw->again = body.n; /* none of it is owed */
    return kr_body_queue_append(&fw->up, body);
}

int kr_forward_open(struct kr_forward *fw, struct kr_conn *conn, const struct kr_head *head)
{
    int rc = take_back(fw);
    bool end = fw->in->in_ended && fw->up.size == 0;

    if (rc != 0)
        return rc;
    fw->out = kr_conn_open(conn, head, end, &out_ops, fw);
    if (fw->out == NULL)
        return KR_EFULL;
    kr_exchange_send_continue(fw->in);
    if (!end && (fw->up.size != 0 || fw->up_ended))
        kr_exchange_ready(fw->out);
    return 0;
}

struct kr_exchange *kr_forward_release(struct kr_forward *fw)
{
    struct kr_exchange *in = fw->in;

    cancel_out(fw, KR_ABORT_CANCEL);
    fw->in = NULL;
    if (in != NULL) /* what waited here is thrown away: it must not count against the client */
        kr_exchange_consumed(in, fw->up.size - (size_t)fw->again);
    kr_body_queue_deinit(&fw->up);
    kr_body_queue_deinit(&fw->kept);
    kr_body_queue_deinit(&fw->down);
    return in;
}

void kr_forward_finish_with(struct kr_forward *fw, uint64_t total, struct kr_bytes tail)
{
    uint64_t gone = fw->down_bytes - fw->down.size;

    if (total < fw->down_bytes)
        kr_body_queue_truncate(&fw->down, total > gone ? (size_t)(total - gone) : 0);
    if (tail.n != 0 && kr_body_queue_append(&fw->down, tail) == 0)
        fw->down_bytes += tail.n;
    fw->down_ended = true;
    if (fw->in != NULL)
        kr_exchange_ready(fw->in);
}

void kr_forward_finish_at(struct kr_forward *fw, uint64_t total)
{
    kr_forward_finish_with(fw, total, kr_bytes_of(NULL, 0));
}

void kr_forward_cut(struct kr_forward *fw)
{
    struct kr_exchange *in = kr_forward_release(fw);

    if (in != NULL)
        kr_exchange_abort(in, KR_ABORT_INTERNAL);
}
