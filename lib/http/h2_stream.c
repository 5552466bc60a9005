/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/2 stream as an exchange. States follow nghttp2's stream; this file keeps the user's
 * view: head -> body -> end on the incoming side, head -> pulled body -> end on the outgoing side,
 * and exactly one finish, in h2_on_stream_close or when the connection goes. */
#include "http/h2_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

#define GROW_WITHIN_MS 250 /* a window that drained this fast may grow */
#define CREDIT_MIN 16384
#define GROW_FACTOR 4 /* few round trips to full size on long links */
#define MAX_FIELDS 1000
#define FRAME_HEAD 9
#define DATA_MIN 256 /* room below which a DATA frame is not begun */
#define HEAD_TIMEOUT_MS 10000
#define HEAD_ABUSE (1 << 20) /* bytes of one head after which it is an attack, not a mistake */

static struct h2_stream *of(struct kr_exchange *ex)
{
    return (struct h2_stream *)(void *)ex;
}

static bool is_gone(const struct h2_stream *st)
{
    return st->gone || st->ex.user_ops == NULL;
}

/* ---- outgoing ---- */

struct nva {
    nghttp2_nv small[48];
    nghttp2_nv *nv;
    size_t n;
};

static void nva_add(struct nva *a, struct kr_bytes name, struct kr_bytes value, bool no_index)
{
    a->nv[a->n++] =
        (nghttp2_nv){(uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.n, value.n,
                     no_index ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE};
}

static int nva_init(struct nva *a, const struct kr_head *h, char status[4])
{
    a->nv = a->small;
    a->n = 0;
    if (h->n + 5 > sizeof a->small / sizeof a->small[0])
        a->nv = malloc((h->n + 5) * sizeof *a->nv);
    if (a->nv == NULL)
        return KR_ENOMEM;
    if (h->status != 0) {
        snprintf(status, 4, "%03u", (unsigned)h->status % 1000);
        nva_add(a, KR_LIT(":status"), kr_bytes_of(status, 3), false);
    } else if (h->method.n != 0) {
        nva_add(a, KR_LIT(":method"), h->method, false);
        nva_add(a, KR_LIT(":scheme"), h->scheme.n != 0 ? h->scheme : KR_LIT("https"), false);
        nva_add(a, KR_LIT(":authority"), h->authority, false);
        nva_add(a, KR_LIT(":path"), h->path, true);
        if (h->protocol.n != 0)
            nva_add(a, KR_LIT(":protocol"), h->protocol, false);
    }
    for (size_t i = 0; i < h->n; i++)
        nva_add(a, h->fields[i].name, h->fields[i].value, h->fields[i].no_index);
    return 0;
}

static void nva_deinit(struct nva *a)
{
    if (a->nv != a->small)
        free(a->nv);
}

static int send_trailers_now(struct h2_stream *st)
{
    struct nva a;
    char status[4];
    int rc = nva_init(&a, &st->trailers, status);

    if (rc == 0)
        rc = nghttp2_submit_trailer(st->s->ng, st->id, a.nv, a.n) == 0 ? 0 : KR_ENOMEM;
    nva_deinit(&a);
    kr_head_deinit(&st->trailers);
    return rc;
}

static ssize_t on_read(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct h2_stream *st = source->ptr;
    size_t room = st->s->room;
    bool end = false;
    size_t all;
    size_t n;

    (void)ng, (void)id, (void)buf, (void)user;
    st->deferred = is_gone(st);
    if (st->deferred)
        return NGHTTP2_ERR_DEFERRED;
    all = st->ex.user_ops->available(st->ex.user, &end);
    n = all < length ? all : length;
    if (n == 0 && !(end && all == 0)) {
        st->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n + FRAME_HEAD > room) { /* no frame is promised that the run cannot take */
        if (room < DATA_MIN)
            return NGHTTP2_ERR_PAUSE; /* the next run begins with it */
        n = room - FRAME_HEAD;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (end && n == all) {
        st->out_ended = true;
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (st->has_trailers && send_trailers_now(st) == 0)
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    return (ssize_t)n;
}

/* Writes head and payload of a DATA frame itself, so that nothing of it passes nghttp2's buffer. */
int h2_on_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *framehd,
                    size_t length, nghttp2_data_source *source, void *user)
{
    struct h2_session *s = user;
    struct h2_stream *st = source->ptr;
    uint32_t id = (uint32_t)frame->hd.stream_id;
    bool end = false;
    uint8_t *p = s->out;

    (void)ng, (void)framehd;
    KR_ASSERT(s->room >= FRAME_HEAD + length);
    if (is_gone(st) || (length != 0 && st->ex.user_ops->available(st->ex.user, &end) < length))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    p[0] = (uint8_t)(length >> 16);
    p[1] = (uint8_t)(length >> 8);
    p[2] = (uint8_t)length;
    p[3] = NGHTTP2_DATA;
    p[4] = frame->hd.flags;
    p[5] = (uint8_t)(id >> 24);
    p[6] = (uint8_t)(id >> 16);
    p[7] = (uint8_t)(id >> 8);
    p[8] = (uint8_t)id;
    s->out += FRAME_HEAD + length;
    s->room -= FRAME_HEAD + length;
    st->progress_ms = s->cfg.sched->now_ms;
    if (s->cfg.abuse)
        kr_h2_budget_grant(&s->budget, KR_H2_WINDOW_UPDATE, 10);
    if (length != 0)
        st->ex.user_ops->take(st->ex.user, p + FRAME_HEAD, length);
    /* A frame is only begun where it fits: one that waits for room would look like nothing to send.
     */
    return s->room < H2_ROOM_MIN ? NGHTTP2_ERR_PAUSE : 0;
}

static int ex_send_head(struct kr_exchange *ex, const struct kr_head *head, bool end)
{
    struct h2_stream *st = of(ex);
    nghttp2_data_provider provider = {.source.ptr = st, .read_callback = on_read};
    struct nva a;
    char status[4];
    int rc = nva_init(&a, head, status);

    if (rc != 0)
        return rc;
    st->out_ended = end;
    st->body_submitted = !end;
    st->progress_ms = st->s->cfg.sched->now_ms;
    rc = nghttp2_submit_response(st->s->ng, st->id, a.nv, a.n, end ? NULL : &provider);
    nva_deinit(&a);
    h2_want_fill(st->s);
    return rc == 0 ? 0 : KR_ENOMEM;
}

static void ex_send_continue(struct kr_exchange *ex)
{
    struct h2_stream *st = of(ex);
    nghttp2_nv nv;
    struct nva a = {.nv = &nv};

    nva_add(&a, KR_LIT(":status"), KR_LIT("100"), false);
    nghttp2_submit_headers(st->s->ng, NGHTTP2_FLAG_NONE, st->id, NULL, &nv, 1, NULL);
    h2_want_fill(st->s);
}

static int ex_send_trailers(struct kr_exchange *ex, const struct kr_head *trailers)
{
    struct h2_stream *st = of(ex);

    kr_head_init(&st->trailers, KR_HEAD_MAX);
    for (size_t i = 0; i < trailers->n; i++) {
        int rc = kr_head_add(&st->trailers, trailers->fields[i].name, trailers->fields[i].value);

        if (rc != 0)
            return rc;
    }
    st->has_trailers = true;
    return 0;
}

static void ex_ready(struct kr_exchange *ex)
{
    struct h2_stream *st = of(ex);

    if (!st->deferred)
        return;
    st->deferred = false;
    st->progress_ms = st->s->cfg.sched->now_ms;
    nghttp2_session_resume_data(st->s->ng, st->id);
    h2_want_fill(st->s);
}

/* ---- receive window ---- */

static void grow_window(struct h2_stream *st)
{
    struct h2_session *s = st->s;
    uint32_t want =
        st->window > s->cfg.window_max / GROW_FACTOR ? s->cfg.window_max : st->window * GROW_FACTOR;
    uint32_t more = want > st->window ? want - st->window : 0;

    if (more == 0 || s->cfg.shared->window_left < more)
        return;
    if (nghttp2_session_set_local_window_size(s->ng, NGHTTP2_FLAG_NONE, st->id, (int32_t)want) != 0)
        return;
    s->cfg.shared->window_left -= more;
    st->grown += more;
    st->window = want;
}

/* nghttp2 would return credit by halves of the window. Pieces never match those exactly, so that up
 * to a half would be kept back all the time, and a long link be used by half. */
static size_t credit_step(const struct h2_stream *st)
{
    size_t step = st->window / 8;

    if (step < CREDIT_MIN)
        step = CREDIT_MIN;
    return step < st->window / 2 ? step : st->window / 2;
}

static void ex_consumed(struct kr_exchange *ex, size_t n)
{
    struct h2_stream *st = of(ex);
    struct h2_session *s = st->s;
    int64_t now = s->cfg.sched->now_ms;

    st->owed += n;
    if (!ex->in_ended && st->owed >= credit_step(st)) {
        nghttp2_submit_window_update(s->ng, NGHTTP2_FLAG_NONE, st->id, (int32_t)st->owed);
        st->owed = 0;
    }
    st->consumed += (uint32_t)n;
    if (st->consumed >= st->window / 2) {
        if (now - st->measured_ms <= GROW_WITHIN_MS && !ex->in_ended)
            grow_window(st);
        st->consumed = 0;
        st->measured_ms = now;
    }
    if (nghttp2_session_want_write(s->ng))
        h2_want_fill(s);
}

static void ex_abort(struct kr_exchange *ex, enum kr_abort how)
{
    static const uint32_t codes[] = {
        [KR_ABORT_CANCEL] = NGHTTP2_CANCEL,
        [KR_ABORT_INTERNAL] = NGHTTP2_INTERNAL_ERROR,
        [KR_ABORT_REFUSED] = NGHTTP2_REFUSED_STREAM,
    };
    struct h2_stream *st = of(ex);

    st->gone = true;
    st->reset_by_user = true;
    nghttp2_submit_rst_stream(st->s->ng, NGHTTP2_FLAG_NONE, st->id, codes[how]);
    h2_want_fill(st->s);
}

static const struct kr_exchange_ops exchange_ops = {
    ex_send_head, ex_send_continue, ex_send_trailers, ex_ready, ex_consumed, ex_abort,
};

/* ---- life ---- */

struct h2_stream *h2_stream_create(struct h2_session *s, int32_t id)
{
    struct h2_stream *st = calloc(1, sizeof *st);

    if (st == NULL)
        return NULL;
    st->s = s;
    st->id = id;
    st->window = s->cfg.window;
    st->measured_ms = st->progress_ms = s->cfg.sched->now_ms;
    st->ex.ops = &exchange_ops;
    st->ex.conn = &s->conn;
    kr_head_init(&st->ex.head, s->cfg.max_head);
    kr_list_append(&s->streams, &st->link);
    s->conn.exchanges++;
    return st;
}

void h2_stream_finish(struct h2_stream *st, int rc)
{
    struct h2_session *s = st->s;

    kr_list_remove(&st->link);
    s->cfg.shared->window_left += st->grown;
    if (!is_gone(st)) {
        st->gone = true;
        st->ex.user_ops->on_done(st->ex.user, rc);
    }
    kr_head_deinit(&st->ex.head);
    kr_head_deinit(&st->extra);
    kr_head_deinit(&st->trailers);
    free(st);
    h2_exchange_ended(s);
}

/* One that drips in would hold its connection for ever: without the stream that counts as idle. */
static bool head_is_late(const struct h2_stream *st, int64_t now_ms)
{
    return st->s->cfg.server && !st->head_done && now_ms - st->progress_ms >= HEAD_TIMEOUT_MS;
}

static bool is_stalled(const struct h2_stream *st, int64_t now_ms)
{
    bool end = false;

    return !is_gone(st) && !st->ex.patient && st->body_submitted && !st->out_ended &&
           !st->deferred && now_ms - st->progress_ms >= st->s->cfg.stall_timeout_ms &&
           st->ex.user_ops->available(st->ex.user, &end) != 0;
}

void h2_stream_check_stall(struct h2_stream *st, int64_t now_ms)
{
    if (st->reset_by_user || (!head_is_late(st, now_ms) && !is_stalled(st, now_ms)))
        return;
    st->reset_by_user = true;
    nghttp2_submit_rst_stream(st->s->ng, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_CANCEL);
    h2_want_fill(st->s);
}

bool h2_has_room(const struct kr_conn *c)
{
    const struct h2_session *s = (const struct h2_session *)(const void *)c;
    uint32_t max =
        nghttp2_session_get_remote_settings(s->ng, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

    return !s->closing && !s->conn.draining && !s->cfg.server && s->conn.exchanges < max &&
           nghttp2_session_check_request_allowed(s->ng);
}

struct kr_exchange *h2_stream_open(struct kr_conn *c, const struct kr_head *head, bool end,
                                   const struct kr_exchange_user *ops, void *user)
{
    struct h2_session *s = (struct h2_session *)(void *)c;
    struct h2_stream *st = h2_has_room(c) ? h2_stream_create(s, 0) : NULL;
    nghttp2_data_provider provider = {.source.ptr = st, .read_callback = on_read};
    struct nva a;
    char status[4];

    if (st == NULL)
        return NULL;
    st->gone = true; /* nobody hears of it if it fails here */
    if (nva_init(&a, head, status) == 0)
        st->id = nghttp2_submit_request(s->ng, NULL, a.nv, a.n, end ? NULL : &provider, st);
    nva_deinit(&a);
    if (st->id <= 0) {
        h2_stream_finish(st, KR_EREFUSED);
        return NULL;
    }
    st->gone = false;
    st->out_ended = end;
    st->body_submitted = !end;
    kr_exchange_attach(&st->ex, ops, user);
    h2_want_fill(s);
    return &st->ex;
}

/* ---- incoming ---- */

int h2_on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user)
{
    struct h2_session *s = user;
    struct h2_stream *st;

    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        st = h2_stream_create(s, frame->hd.stream_id);
        if (st == NULL)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        nghttp2_session_set_stream_user_data(ng, st->id, st);
        return 0;
    }
    st = h2_find(s, frame->hd.stream_id);
    if (st == NULL)
        return 0;
    if (st->head_done)
        kr_head_init(&st->extra, 16 * 1024);
    else
        kr_head_deinit(&st->ex.head); /* after a 1xx */
    return 0;
}

static int add_pseudo(struct kr_head *h, struct kr_bytes name, struct kr_bytes value)
{
    struct kr_bytes copy = kr_arena_copy(&h->arena, value);

    if (copy.p == NULL)
        return KR_ETOOBIG;
    h->size += name.n + value.n + 32;
    if (kr_bytes_is(name, ":path"))
        h->path = copy;
    else if (kr_bytes_is(name, ":method"))
        h->method = copy;
    else if (kr_bytes_is(name, ":authority"))
        h->authority = copy;
    else if (kr_bytes_is(name, ":scheme"))
        h->scheme = copy;
    else if (kr_bytes_is(name, ":protocol"))
        h->protocol = copy;
    else if (kr_bytes_is(name, ":status") && value.n == 3)
        h->status = (value.p[0] - '0') * 100 + (value.p[1] - '0') * 10 + (value.p[2] - '0');
    if (kr_bytes_is(name, ":status") && h->status < 100)
        return KR_EPROTO; /* nghttp2 takes 000 to 099 for a final answer */
    return value.n > KR_FIELD_MAX || h->size > h->max ? KR_ETOOBIG : 0;
}

int h2_on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                 size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
    struct h2_session *s = user;
    struct h2_stream *st = h2_find(s, frame->hd.stream_id);
    struct kr_bytes n = {name, name_len};
    struct kr_bytes v = {value, value_len};
    struct kr_head *h;
    int rc;

    (void)ng;
    if (st == NULL || frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    h = st->head_done ? &st->extra : &st->ex.head;
    if (st->is_request_refused) {
        h->size += n.n + v.n + 32;
        return h->size > HEAD_ABUSE ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
    }
    if (n.n != 0 && n.p[0] == ':')
        rc = add_pseudo(h, n, v);
    else
        rc = h->n < MAX_FIELDS ? kr_head_add(h, n, v) : KR_ETOOBIG;
    if (rc == 0) {
        if ((flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0 && h->n != 0 && n.p[0] != ':')
            h->fields[h->n - 1].no_index = true;
        return 0;
    }
    h2_glitch(s, KR_H2_BAD_HEAD);
    if (!s->cfg.server || st->head_done || rc == KR_ENOMEM)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    st->is_request_refused = true;
    st->ex.refuse_status = kr_bytes_is(n, ":path") ? 414 : 431;
    return 0;
}

static void on_request(struct h2_stream *st)
{
    struct h2_session *s = st->s;

    st->head_done = true;
    st->ex.expects_continue =
        kr_head_has_token(&st->ex.head, KR_LIT("expect"), KR_LIT("100-continue"));
    s->conn.user_ops->on_request(s->conn.owner, &st->ex);
}

int h2_on_headers_frame(struct h2_session *s, const nghttp2_frame *frame)
{
    struct h2_stream *st = h2_find(s, frame->hd.stream_id);
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

    if (st == NULL || st->gone)
        return 0;
    st->ex.in_ended = end; /* so that on_request and on_head know whether a body follows */
    if (!st->head_done) {
        if (s->cfg.server) {
            on_request(st);
        } else if (st->ex.head.status >= 200) {
            st->head_done = true;
            st->ex.user_ops->on_head(st->ex.user);
        }
    }
    if (end)
        h2_on_end_stream(st);
    return 0;
}

void h2_on_end_stream(struct h2_stream *st)
{
    st->ex.in_ended = true;
    if (!is_gone(st) && st->ex.user_ops->on_end != NULL)
        st->ex.user_ops->on_end(st->ex.user, st->extra.n != 0 ? &st->extra : NULL);
}

int h2_on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data,
                     size_t len, void *user)
{
    struct h2_session *s = user;
    struct h2_stream *st = h2_find(s, id);

    (void)flags;
    nghttp2_session_consume_connection(ng, len);
    if (st == NULL || is_gone(st))
        return 0;
    st->ex.user_ops->on_body(st->ex.user, kr_bytes_of(data, len));
    return 0;
}

/* What the end of a stream means to the user. */
static int end_code(struct h2_stream *st, uint32_t code)
{
    bool whole = st->ex.in_ended && (st->out_ended || !st->s->cfg.server);

    if (!st->s->cfg.server && !st->ex.head_sent)
        return KR_EREFUSED;
    if (code == NGHTTP2_NO_ERROR && (whole || (st->s->cfg.server && st->out_ended)))
        return 0;
    if (st->broke_rules)
        return KR_EPROTO;
    st->ex.reset_code = code;
    if (code == NGHTTP2_REFUSED_STREAM && !st->s->cfg.server)
        return KR_EREFUSED;
    return KR_ERESET;
}

int h2_on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *user)
{
    struct h2_session *s = user;
    struct h2_stream *st = h2_find(s, id);

    (void)ng;
    if (st != NULL) {
        nghttp2_session_set_stream_user_data(ng, id, NULL);
        h2_stream_finish(st, end_code(st, code));
    }
    return 0;
}
