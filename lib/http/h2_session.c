/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: bytes come by on_bytes into nghttp2, whose callbacks (here and in h2_stream.c) call
 * the users; whatever they submit is only queued. The pipe then asks `fill`, which packs the frames
 * of all streams that have something into one run. Failure modes: the pipe ends (every stream ends
 * with KR_ECONNLOST); the peer breaks the protocol (nghttp2 queues GOAWAY, we flush and close); a
 * bucket of the abuse budget is empty (the same with ENHANCE_YOUR_CALM); silence (PING unanswered).
 */
#include "http/h2_internal.h"

#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"
#include "http/h2_block.h"

#define FRAME_BUFFER 16394 /* nghttp2's: 16 KiB, frame head, pad length */
#define CONNECTION_WINDOW (16 << 20)
#define TICK_MS 1000
/* The largest head in frames of 16 KiB, twice; nghttp2's own 8 end a tunnel at 144 KiB. */
#define CONTINUATIONS_MAX 40

int kr_h2_shared_init(struct kr_h2_shared *sh, int64_t window_budget)
{
    sh->window_left = window_budget;
    sh->frame = malloc(FRAME_BUFFER);
    return sh->frame != NULL ? 0 : KR_ENOMEM;
}

void kr_h2_shared_deinit(struct kr_h2_shared *sh)
{
    free(sh->frame);
    sh->frame = NULL;
}

/* Only the buffer that a session allocates while it is created is lent: nothing in it outlives a
 * fill (DATA is written past it, see h2_on_send_data), so sessions of one thread can share it. */
static void *ng_malloc(size_t n, void *user)
{
    struct h2_session *s = user;

    if (n == FRAME_BUFFER && s->lend_frame) {
        s->lend_frame = false;
        return s->cfg.shared->frame;
    }
    return kr_h2_block_take(n);
}

static void *ng_calloc(size_t n, size_t size, void *user)
{
    (void)user;
    return kr_h2_block_take_zeroed(n, size);
}

static void ng_free(void *p, void *user)
{
    struct h2_session *s = user;

    if (p != s->cfg.shared->frame)
        kr_h2_block_give(p);
}

static void *ng_realloc(void *p, size_t n, void *user)
{
    struct h2_session *s = user;

    KR_ASSERT(p == NULL || p != s->cfg.shared->frame);
    return p == NULL ? ng_malloc(n, user) : kr_h2_block_grow(p, n);
}

struct h2_stream *h2_find(struct h2_session *s, int32_t id)
{
    return nghttp2_session_get_stream_user_data(s->ng, id);
}

void h2_want_fill(struct h2_session *s)
{
    kr_pipe_want_fill(s->pipe);
}

static int64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* GOAWAY, what is queued, then the end. */
static void terminate(struct h2_session *s, uint32_t code, int rc)
{
    if (s->closing)
        return;
    s->closing = true;
    s->conn.draining = true;
    s->why_rc = rc;
    nghttp2_session_terminate_session(s->ng, code);
    kr_pipe_close(s->pipe, KR_PIPE_FLUSH);
}

void h2_glitch(struct h2_session *s, enum kr_h2_glitch kind)
{
    if (!s->cfg.abuse || s->closing || kr_h2_budget_take(&s->budget, kind, s->cfg.sched->now_ms))
        return;
    kr_note_set(&s->why, KR_EPROTO, "HTTP/2 abuse budget exhausted: %s", kr_h2_glitch_name(kind));
    terminate(s, NGHTTP2_ENHANCE_YOUR_CALM, KR_EPROTO);
}

static void maybe_finish_drain(struct h2_session *s)
{
    if (s->conn.draining && s->conn.exchanges == 0 && (s->goaway_final || !s->cfg.server))
        terminate(s, NGHTTP2_NO_ERROR, 0);
}

void h2_exchange_ended(struct h2_session *s)
{
    s->conn.exchanges--;
    s->busy_ms = s->cfg.sched->now_ms;
    maybe_finish_drain(s);
}

static void count_frame(struct h2_session *s, const nghttp2_frame *frame)
{
    switch (frame->hd.type) {
    case NGHTTP2_RST_STREAM:
        h2_glitch(s, KR_H2_RESET_RECEIVED);
        break;
    case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
            h2_glitch(s, KR_H2_PING);
        break;
    case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
            h2_glitch(s, KR_H2_SETTINGS);
        break;
    case NGHTTP2_DATA:
        if (frame->hd.length == 0 && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
            h2_glitch(s, KR_H2_EMPTY_DATA);
        break;
    case NGHTTP2_WINDOW_UPDATE:
        h2_glitch(s, KR_H2_WINDOW_UPDATE);
        break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_GOAWAY:
        break;
    default:
        h2_glitch(s, KR_H2_OTHER);
    }
}

static void on_settings(struct h2_session *s)
{
    if (s->peer_ready)
        return;
    s->peer_ready = true;
    if (s->conn.user_ops->on_ready != NULL)
        s->conn.user_ops->on_ready(s->conn.owner);
}

static void on_goaway(struct h2_session *s)
{
    if (s->conn.draining)
        return;
    s->conn.draining = true;
    if (s->conn.user_ops->on_drain != NULL)
        s->conn.user_ops->on_drain(s->conn.owner);
    maybe_finish_drain(s);
}

static void on_pong(struct h2_session *s)
{
    if (s->pinged_ms != 0)
        s->rtt_us = now_us() - s->pinged_us;
    s->pinged_ms = 0;
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
    struct h2_session *s = user;

    (void)ng;
    count_frame(s, frame);
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        return h2_on_headers_frame(s, frame);
    case NGHTTP2_DATA:
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            struct h2_stream *st = h2_find(s, frame->hd.stream_id);

            if (st != NULL)
                h2_on_end_stream(st);
        }
        break;
    case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
            on_settings(s);
        break;
    case NGHTTP2_GOAWAY:
        on_goaway(s);
        break;
    case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
            on_pong(s);
        break;
    default:
        break;
    }
    return 0;
}

/* Whether no user's abort and no early answer has this code. */
static bool only_for_faults(uint32_t code)
{
    return code != NGHTTP2_NO_ERROR && code != NGHTTP2_CANCEL && code != NGHTTP2_INTERNAL_ERROR &&
           code != NGHTTP2_REFUSED_STREAM;
}

static int on_frame_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
    struct h2_session *s = user;
    struct h2_stream *st;

    (void)ng;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        st = h2_find(s, frame->hd.stream_id);
        if (st != NULL)
            st->ex.head_sent = true;
        /* fall through */
    case NGHTTP2_DATA:
        if (s->cfg.server && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            st = h2_find(s, frame->hd.stream_id);
            /* The answer is complete: the client need not send the rest (RFC 9113 8.1). */
            if (st != NULL && !st->ex.in_ended) {
                st->reset_by_user = true;
                nghttp2_submit_rst_stream(s->ng, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_NO_ERROR);
            }
        }
        break;
    case NGHTTP2_RST_STREAM:
        st = h2_find(s, frame->hd.stream_id);
        if (st != NULL ? st->reset_by_user : !only_for_faults(frame->rst_stream.error_code))
            break; /* ours; its stream may be gone, where the peer's own end crossed it */
        h2_glitch(s, KR_H2_RESET_CAUSED);
        if (st != NULL)
            st->broke_rules = true;
        break;
    case NGHTTP2_GOAWAY: /* with an error that is not ours (terminate): nghttp2 found one */
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR && s->why_rc == 0)
            s->why_rc = kr_note_set(&s->why, KR_EPROTO, "HTTP/2: the peer broke the protocol: %s",
                                    nghttp2_http2_strerror(frame->goaway.error_code));
        break;
    default:
        break;
    }
    return 0;
}

/* A field that RFC 9113 section 8.2 forbids is an error, not something to drop in silence. */
static int on_invalid_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                             size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                             void *user)
{
    (void)ng, (void)frame, (void)name, (void)name_len, (void)value, (void)value_len, (void)flags;
    h2_glitch(user, KR_H2_BAD_HEAD);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void on_bytes(void *user, struct kr_bytes in)
{
    struct h2_session *s = user;
    ssize_t n;

    if (s->closing)
        return;
    s->heard_ms = s->cfg.sched->now_ms;
    n = nghttp2_session_mem_recv(s->ng, in.p, in.n);
    if (n < 0 && !s->closing) {
        kr_note_set(&s->why, KR_EPROTO, "HTTP/2: %s", nghttp2_strerror((int)n));
        terminate(s, NGHTTP2_PROTOCOL_ERROR, KR_EPROTO);
        return;
    }
    if (nghttp2_session_want_write(s->ng))
        h2_want_fill(s);
    else if (!nghttp2_session_want_read(s->ng))
        terminate(s, NGHTTP2_NO_ERROR, s->why_rc);
}

static void copy_out(struct h2_session *s, struct kr_bytes in)
{
    size_t n = kr_bytes_take(&in, s->out, s->room);

    s->out += n;
    s->room -= n;
    if (in.n != 0 && kr_buf_append(&s->spill, in) != 0)
        terminate(s, NGHTTP2_INTERNAL_ERROR, KR_ENOMEM);
}

static void fill_spill(struct h2_session *s)
{
    struct kr_bytes rest = kr_buf_bytes(&s->spill);
    size_t n = kr_bytes_take(&rest, s->out, s->room);

    s->out += n;
    s->room -= n;
    kr_buf_drop(&s->spill, n);
    if (s->spill.n == 0)
        kr_buf_deinit(&s->spill);
}

static size_t fill(void *user, uint8_t *out, size_t room)
{
    struct h2_session *s = user;
    const uint8_t *p;
    ssize_t n = 0;

    s->out = out;
    s->room = room;
    if (s->spill.n != 0)
        fill_spill(s);
    while (s->room >= H2_ROOM_MIN && (n = nghttp2_session_mem_send(s->ng, &p)) > 0)
        copy_out(s, kr_bytes_of(p, (size_t)n));
    if (n < 0 && !s->closing) { /* out of memory: what waits would never go */
        kr_note_set(&s->why, KR_ENOMEM, "HTTP/2: %s", nghttp2_strerror((int)n));
        terminate(s, NGHTTP2_INTERNAL_ERROR, KR_ENOMEM);
    }
    if (!s->closing && !nghttp2_session_want_read(s->ng) && !nghttp2_session_want_write(s->ng))
        terminate(s, NGHTTP2_NO_ERROR, s->why_rc);
    return (size_t)(s->out - out);
}

static void on_eof(void *user)
{
    struct h2_session *s = user;

    if (!s->closing)
        kr_note_set(&s->why, KR_ECONNLOST, "the peer closed the connection");
    s->why_rc = s->why_rc != 0 ? s->why_rc : KR_ECONNLOST;
    s->closing = true;
    kr_pipe_close(s->pipe, KR_PIPE_ABORT);
}

static void on_pipe_close(void *user, int rc, const struct kr_note *why)
{
    struct h2_session *s = user;
    struct kr_list *node;

    s->closing = true;
    s->conn.draining = true;
    kr_timer_stop(s->cfg.sched, &s->tick);
    while ((node = kr_list_pop(&s->streams)) != NULL) {
        struct h2_stream *st = KR_CONTAINER_OF(node, struct h2_stream, link);

        h2_stream_finish(st, !s->cfg.server && !st->ex.head_sent ? KR_EREFUSED : KR_ECONNLOST);
    }
    s->conn.user_ops->on_close(s->conn.owner, s->why_rc != 0 ? s->why_rc : rc,
                               s->why.text[0] != '\0' ? &s->why : why);
    nghttp2_session_del(s->ng);
    kr_buf_deinit(&s->spill);
    free(s);
}

static const struct kr_pipe_user pipe_user = {on_bytes, fill, on_eof, on_pipe_close};

static void check_ping(struct h2_session *s, int64_t now)
{
    if (s->cfg.ping_after_ms == 0 || !s->peer_ready)
        return;
    if (s->pinged_ms != 0 && s->heard_ms >= s->pinged_ms) {
        s->pinged_ms = 0; /* any byte is a sign of life; the PING's answer may be lost in a queue */
    } else if (s->pinged_ms != 0 && now - s->pinged_ms >= s->cfg.ping_timeout_ms) {
        kr_note_set(&s->why, KR_ETIMEDOUT, "the peer is silent for %lld ms",
                    (long long)(now - s->heard_ms));
        s->why_rc = KR_ETIMEDOUT;
        s->closing = true;
        kr_pipe_close(s->pipe, KR_PIPE_ABORT);
        return;
    }
    if (s->pinged_ms == 0 && now - s->heard_ms >= s->cfg.ping_after_ms) {
        s->pinged_ms = now;
        s->pinged_us = now_us();
        nghttp2_submit_ping(s->ng, NGHTTP2_FLAG_NONE, NULL);
        h2_want_fill(s);
    }
}

static void drain_final(struct h2_session *s)
{
    s->goaway_final = true;
    nghttp2_submit_goaway(s->ng, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(s->ng),
                          NGHTTP2_NO_ERROR, NULL, 0);
    h2_want_fill(s);
    maybe_finish_drain(s);
}

static void on_tick(struct kr_timer *t)
{
    struct h2_session *s = KR_CONTAINER_OF(t, struct h2_session, tick);
    int64_t now = s->cfg.sched->now_ms;

    if (s->closing)
        return;
    kr_timer_start(s->cfg.sched, &s->tick, TICK_MS);
    if (s->conn.draining && s->cfg.server && !s->goaway_final)
        drain_final(s);
    if (s->cfg.preface_timeout_ms != 0 && !s->peer_ready &&
        now - s->born_ms >= s->cfg.preface_timeout_ms) {
        kr_note_set(&s->why, KR_ETIMEDOUT, "no HTTP/2 preface in time");
        terminate(s, NGHTTP2_PROTOCOL_ERROR, KR_ETIMEDOUT);
    } else if (s->cfg.idle_timeout_ms != 0 && s->conn.exchanges == 0 && !s->conn.draining &&
               now - s->busy_ms >= s->cfg.idle_timeout_ms) {
        terminate(s, NGHTTP2_NO_ERROR, 0);
    }
    if (!s->closing)
        check_ping(s, now);
    if (s->cfg.stall_timeout_ms != 0 && !s->closing) {
        KR_LIST_FOREACH_SAFE(node, &s->streams)
        h2_stream_check_stall(KR_CONTAINER_OF(node, struct h2_stream, link), now);
    }
}

static void conn_drain(struct kr_conn *c)
{
    struct h2_session *s = (struct h2_session *)(void *)c;

    if (c->draining)
        return;
    c->draining = true;
    if (s->cfg.server) { /* RFC 9113 6.8: announce, let a round trip pass, then name the last one */
        nghttp2_submit_shutdown_notice(s->ng);
        h2_want_fill(s);
    } else {
        maybe_finish_drain(s);
    }
}

static void conn_close(struct kr_conn *c)
{
    struct h2_session *s = (struct h2_session *)(void *)c;

    terminate(s, NGHTTP2_NO_ERROR, 0);
}

static const struct kr_conn_ops conn_ops = {h2_stream_open, conn_drain, conn_close, h2_has_room};

static int make_callbacks(nghttp2_session_callbacks **out)
{
    nghttp2_session_callbacks *cb;

    if (nghttp2_session_callbacks_new(&cb) != 0)
        return KR_ENOMEM;
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, h2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, h2_on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(cb, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_sent);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, h2_on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, h2_on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(cb, h2_on_send_data);
    *out = cb;
    return 0;
}

static int make_option(const struct kr_h2_config *cfg, nghttp2_option **out)
{
    nghttp2_option *o;

    if (nghttp2_option_new(&o) != 0)
        return KR_ENOMEM;
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_max_settings(o, 32);
    nghttp2_option_set_max_outbound_ack(o, 100);
    nghttp2_option_set_max_continuations(o, CONTINUATIONS_MAX);
    nghttp2_option_set_max_send_header_block_length(o, 2 * KR_HEAD_MAX);
    nghttp2_option_set_peer_max_concurrent_streams(o, 100);
    if (cfg->abuse) /* the budget answers earlier; this is the net below it */
        nghttp2_option_set_stream_reset_rate_limit(o, 1000, 33);
    else /* the hub cancels as fast as its clients do; both ends of a tunnel are ours */
        nghttp2_option_set_stream_reset_rate_limit(o, UINT64_MAX, UINT64_MAX);
    *out = o;
    return 0;
}

static int start_nghttp2(struct h2_session *s)
{
    nghttp2_mem mem = {s, ng_malloc, ng_free, ng_calloc, ng_realloc};
    nghttp2_session_callbacks *cb = NULL;
    nghttp2_option *option = NULL;
    int rc = KR_ENOMEM;

    if (make_callbacks(&cb) != 0 || make_option(&s->cfg, &option) != 0)
        goto out;
    s->lend_frame = true;
    rc = s->cfg.server ? nghttp2_session_server_new3(&s->ng, cb, s, option, &mem)
                       : nghttp2_session_client_new3(&s->ng, cb, s, option, &mem);
    s->lend_frame = false;
out:
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(cb);
    return rc == 0 ? 0 : KR_ENOMEM;
}

/* A client session is born with its preface in the frame buffer: it must be out of there before
 * another session gets the buffer. */
static int take_preface(struct h2_session *s)
{
    const uint8_t *p;
    ssize_t n;

    while ((n = nghttp2_session_mem_send(s->ng, &p)) > 0) {
        if (kr_buf_append(&s->spill, kr_bytes_of(p, (size_t)n)) != 0)
            return KR_ENOMEM;
    }
    return n == 0 ? 0 : KR_ENOMEM;
}

static int submit_settings(struct h2_session *s)
{
    nghttp2_settings_entry e[5] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, s->cfg.max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, s->cfg.window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)s->cfg.max_head},
    };
    size_t n = 3;

    if (!s->cfg.server) {
        e[0] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    } else if (s->cfg.connect_protocol) {
        e[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1};
    }
    if (nghttp2_submit_settings(s->ng, NGHTTP2_FLAG_NONE, e, n) != 0 ||
        nghttp2_session_set_local_window_size(s->ng, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW) != 0)
        return KR_ENOMEM;
    return 0;
}

static void apply_defaults(struct kr_h2_config *cfg)
{
    cfg->window = cfg->window != 0 ? cfg->window : 64 * 1024;
    cfg->window_max = cfg->window_max != 0 ? cfg->window_max : 4 << 20;
    cfg->max_streams = cfg->max_streams != 0 ? cfg->max_streams : 1000;
    cfg->max_head = cfg->max_head != 0 ? cfg->max_head : KR_HEAD_MAX;
}

struct kr_conn *kr_h2_create(const struct kr_h2_config *cfg, struct kr_pipe *pipe)
{
    struct h2_session *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->cfg = *cfg;
    apply_defaults(&s->cfg);
    s->conn = (struct kr_conn){.ops = &conn_ops,
                               .user_ops = cfg->user_ops,
                               .owner = cfg->owner,
                               .peer = cfg->peer,
                               .is_h2 = true};
    s->pipe = pipe;
    s->rtt_us = -1;
    s->born_ms = s->heard_ms = s->busy_ms = cfg->sched->now_ms;
    kr_list_init(&s->streams);
    kr_buf_init(&s->spill, 1 << 20);
    kr_h2_budget_init(&s->budget, cfg->sched->now_ms);
    kr_timer_init(&s->tick, on_tick);
    if (start_nghttp2(s) != 0 || take_preface(s) != 0 || submit_settings(s) != 0 ||
        kr_timer_start(cfg->sched, &s->tick, TICK_MS) != 0) {
        nghttp2_session_del(s->ng);
        kr_buf_deinit(&s->spill);
        free(s);
        return NULL;
    }
    kr_pipe_attach(pipe, &pipe_user, s);
    h2_want_fill(s);
    return &s->conn;
}

bool kr_h2_peer_allows_connect(const struct kr_conn *c)
{
    const struct h2_session *s = (const struct h2_session *)(const void *)c;

    return nghttp2_session_get_remote_settings(s->ng, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) ==
           1;
}

int64_t kr_h2_rtt_us(const struct kr_conn *c)
{
    return ((const struct h2_session *)(const void *)c)->rtt_us;
}
