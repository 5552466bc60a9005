/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_side.h"

#include "base/err.h"

#define OWED_MAX ((size_t)64 * 1024) /* then reading stops */

int kr_h1_side_init(struct kr_h1_side *s, const struct kr_h1_config *cfg, struct kr_pipe *pipe,
                    const struct kr_conn_ops *ops, bool client)
{
    s->conn = (struct kr_conn){
        .ops = ops, .user_ops = cfg->user_ops, .owner = cfg->owner, .peer = cfg->peer};
    s->cfg = *cfg;
    if (s->cfg.max_head == 0)
        s->cfg.max_head = KR_HEAD_MAX;
    s->pipe = pipe;
    kr_h1_reader_init(&s->reader, client, s->cfg.max_head);
    kr_h1_out_init(&s->out);
    s->reading = true;
    return cfg->idle_timeout_ms > 0 ? kr_timer_start(cfg->sched, &s->timer, cfg->idle_timeout_ms)
                                    : 0;
}

void kr_h1_side_deinit(struct kr_h1_side *s)
{
    kr_task_cancel(&s->step);
    kr_h1_reader_deinit(&s->reader);
    kr_h1_out_deinit(&s->out);
    kr_head_deinit(&s->ex.head);
}

void kr_h1_side_shut(struct kr_h1_side *s, enum kr_pipe_close how, int rc, const char *why)
{
    s->conn.draining = true;
    if (s->closing)
        return;
    s->closing = true;
    s->rc = rc;
    s->why = why;
    kr_timer_stop(s->cfg.sched, &s->timer);
    if (how == KR_PIPE_ABORT)
        kr_h1_out_cancel(&s->out);
    kr_pipe_close(s->pipe, how);
}

void kr_h1_side_set_timer(struct kr_h1_side *s, int64_t after_ms)
{
    if (s->closing)
        return;
    if (after_ms <= 0)
        kr_timer_stop(s->cfg.sched, &s->timer);
    else if (kr_timer_start(s->cfg.sched, &s->timer, after_ms) != 0)
        kr_h1_side_shut(s, KR_PIPE_ABORT, KR_ENOMEM, "no memory for a timer");
}

void kr_h1_side_update_reading(struct kr_h1_side *s, bool room)
{
    bool want = room && s->owed < OWED_MAX;

    if (s->in_fill) {
        kr_task_post(s->cfg.sched, &s->step);
        return;
    }
    if (s->closing || want == s->reading)
        return;
    s->reading = want;
    kr_pipe_set_reading(s->pipe, want);
}

void kr_h1_side_want_fill(struct kr_h1_side *s)
{
    if (s->in_fill)
        kr_task_post(s->cfg.sched, &s->step);
    else if (!s->closing && kr_h1_out_pending(&s->out))
        kr_pipe_want_fill(s->pipe);
}

/* ---- the exchange ---- */

void kr_h1_side_on_body(struct kr_h1_side *s, struct kr_bytes body)
{
    s->owed += body.n;
    s->ex.user_ops->on_body(s->ex.user, body);
}

void kr_h1_side_on_end(struct kr_h1_side *s)
{
    const struct kr_head *trailers = s->reader.trailers.n != 0 ? &s->reader.trailers : NULL;

    s->ex.in_ended = true;
    s->ex.user_ops->on_end(s->ex.user, trailers);
}

bool kr_h1_side_no_body(const struct kr_h1_side *s)
{
    return s->reader.framing == KR_H1_NONE ||
           (s->reader.framing == KR_H1_LENGTH && s->reader.left == 0);
}

void kr_h1_side_forget(struct kr_h1_side *s)
{
    s->live = false;
    s->conn.exchanges = 0;
    s->owed = 0;
    kr_head_deinit(&s->ex.head);
}

void kr_h1_side_end_exchange(struct kr_h1_side *s, int rc)
{
    const struct kr_exchange_user *ops = s->ex.user_ops;
    void *user = s->ex.user;

    if (!s->live)
        return;
    kr_h1_side_forget(s);
    ops->on_done(user, rc);
}

void kr_h1_side_closed(struct kr_h1_side *s, int ex_rc, int rc, const struct kr_note *why)
{
    struct kr_note note = *why;

    s->closing = s->conn.draining = true;
    kr_timer_stop(s->cfg.sched, &s->timer);
    kr_h1_side_end_exchange(s, ex_rc);
    if (s->why != NULL)
        kr_note_set(&note, 0, "%s", s->why);
    s->conn.user_ops->on_close(s->conn.owner, s->rc != 0 ? s->rc : rc, &note);
}

/* ---- operations ---- */

int kr_h1_side_send_trailers(struct kr_exchange *ex, const struct kr_head *trailers)
{
    return kr_h1_out_trailers(&kr_h1_side_of(ex)->out, trailers);
}

void kr_h1_side_ready(struct kr_exchange *ex)
{
    kr_h1_side_want_fill(kr_h1_side_of(ex));
}

void kr_h1_side_close(struct kr_conn *conn)
{
    kr_h1_side_shut(KR_CONTAINER_OF(conn, struct kr_h1_side, conn), KR_PIPE_ABORT, 0, NULL);
}

void kr_h1_side_consumed(struct kr_h1_side *s, size_t n, bool room)
{
    KR_ASSERT(n <= s->owed);
    s->owed -= n;
    if (!s->reading)
        kr_h1_side_update_reading(s, room);
}
