/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"

static struct kr_stream *of_pipe(struct kr_pipe *p)
{
    return KR_CONTAINER_OF(p, struct kr_stream, pipe);
}

/* The shared part. */

struct kr_tls_io *kr_tls_io_create(struct kr_loop *loop)
{
    struct kr_tls_io *io = malloc(sizeof *io);

    if (io == NULL)
        return NULL;
    *io = (struct kr_tls_io){.loop = loop, .sched = kr_loop_sched(loop)};
    kr_list_init(&io->streams);
    kr_lingers_init(&io->lingers, loop);
    return io;
}

struct kr_loop *kr_tls_io_loop(const struct kr_tls_io *io)
{
    return io->loop;
}

size_t kr_tls_io_pipes(const struct kr_tls_io *io)
{
    return io->count;
}

/* What the loop is asked to watch, from what the stream is ready for. */

bool kr_stream_wants_more(const struct kr_stream *s)
{
    return !s->ending && !s->flushing && !s->eof_told && (s->hold || s->reading);
}

static bool wants_recv(const struct kr_stream *s)
{
    return kr_stream_wants_more(s) && !s->peer_closed && s->rest_in.p == NULL;
}

static void watch(struct kr_stream *s)
{
    unsigned interest = 0;

    if (wants_recv(s))
        interest |= KR_FD_READ;
    if (s->rest_out.p != NULL && !s->ending && s->send_errno == 0)
        interest |= KR_FD_WRITE;
    kr_fd_set(&s->fd, interest);
}

/* The end. */

static void end(struct kr_stream *s)
{
    if (s->ending)
        return;
    s->ending = true;
    kr_fd_stop(&s->fd);
    kr_task_post(s->io->sched, &s->end_task);
}

void kr_stream_fail(struct kr_stream *s, int rc, const char *fmt, ...)
{
    va_list ap;

    if (s->ending)
        return;
    s->rc = rc;
    if (s->why == NULL)
        s->why = malloc(sizeof *s->why);
    if (s->why != NULL) {
        va_start(ap, fmt);
        vsnprintf(s->why->text, sizeof s->why->text, fmt, ap);
        va_end(ap);
    }
    end(s);
}

static void close_fd(struct kr_stream *s)
{
    static const struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (s->reset)
        setsockopt(s->fd.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    if (s->linger && !s->reset && !s->peer_closed)
        kr_linger_close(&s->io->lingers, s->fd.fd);
    else
        close(s->fd.fd);
    s->fd.fd = -1;
}

static void finish(struct kr_stream *s)
{
    struct kr_note none = {""};
    struct kr_tls_io *io = s->io;

    s->ending = true;
    kr_stream_detach(s);
    s->io = io; /* for close_fd and the codec's last words */
    close_fd(s);
    if (s->why == NULL && s->rc != 0)
        kr_note_set(&none, s->rc, "%s", kr_err_text(s->rc));
    s->codec->tell(s, s->rc, s->why != NULL ? s->why : &none);
    s->codec->destroy(s);
}

static void on_end_task(struct kr_task *t)
{
    finish(KR_CONTAINER_OF(t, struct kr_stream, end_task));
}

void kr_tls_io_destroy(struct kr_tls_io *io)
{
    if (io == NULL)
        return;
    while (!kr_list_empty(&io->streams)) {
        struct kr_stream *s = KR_CONTAINER_OF(io->streams.next, struct kr_stream, link);

        if (!s->ending)
            s->rc = KR_ECANCELED;
        finish(s);
    }
    kr_lingers_deinit(&io->lingers);
    if (io->idle_ctx != NULL)
        io->idle_free(io->idle_ctx);
    free(io);
}

/* Writing. */

bool kr_stream_put(struct kr_stream *s, const uint8_t *p, size_t n)
{
    struct kr_tls_io *io = s->io;

    if (n > sizeof io->out - io->out_n)
        return false;
    memcpy(io->out + io->out_n, p, n);
    io->out_n += n;
    return true;
}

/* Returns how many bytes the socket took. A failed send is not the end yet: what the peer said
 * before it left (an alert, a last answer) may still be there to read. */
static size_t send_bytes(struct kr_stream *s, const uint8_t *p, size_t n)
{
    ssize_t sent = send(s->fd.fd, p, n, MSG_NOSIGNAL);

    if (sent >= 0)
        return (size_t)sent;
    if (errno != EAGAIN && errno != EINTR && s->send_errno == 0) {
        s->send_errno = errno;
        kr_task_post(s->io->sched, &s->read_task);
    }
    return 0;
}

static void keep_out(struct kr_stream *s, const uint8_t *p, size_t n)
{
    struct kr_run *r = &s->rest_out;
    size_t old = r->n - r->at;
    uint8_t *all;

    /* Beyond one buffer come only answers to key updates, which are counted. */
    all = old + n <= 2 * (size_t)KR_STREAM_OUT ? malloc(old + n) : NULL;
    if (all == NULL) {
        kr_stream_fail(s, KR_ENOMEM, "no memory for what the peer does not take");
        return;
    }
    if (r->p != NULL)
        memcpy(all, r->p + r->at, old);
    memcpy(all + old, p, n);
    free(r->p);
    *r = (struct kr_run){.p = all, .n = old + n};
}

void kr_stream_flush(struct kr_stream *s)
{
    struct kr_tls_io *io = s->io;
    size_t n = io->out_n;
    size_t sent = 0;

    io->out_n = 0;
    if (n == 0 || s->send_errno != 0)
        return;
    if (s->rest_out.p == NULL)
        sent = send_bytes(s, io->out, n);
    if (sent < n && !s->ending && s->send_errno == 0)
        keep_out(s, io->out + sent, n - sent);
}

/* Returns whether nothing is left. */
static bool send_rest(struct kr_stream *s)
{
    struct kr_run *r = &s->rest_out;

    r->at += send_bytes(s, r->p + r->at, r->n - r->at);
    if (r->at < r->n)
        return false;
    free(r->p);
    *r = (struct kr_run){0};
    return true;
}

static void encode_record(struct kr_stream *s, uint8_t *p, size_t n)
{
    s->codec->encode(s, p, n);
    if (s->secret_out)
        explicit_bzero(p, n);
}

/* Encodes the full records among io->plain[0..have), or all of it; returns what is left there. */
static size_t encode(struct kr_stream *s, size_t have, bool all)
{
    uint8_t *plain = s->io->plain;
    size_t at = 0;

    while (have - at >= KR_STREAM_RECORD && !s->ending) {
        encode_record(s, plain + at, KR_STREAM_RECORD);
        at += KR_STREAM_RECORD;
    }
    if (all && have > at && !s->ending) {
        encode_record(s, plain + at, have - at);
        at = have;
    }
    if (at != 0)
        memmove(plain, plain + at, have - at);
    return have - at;
}

/* Asks the user until it has nothing or the shared buffer is nearly full; the latter is false. */
static bool gather(struct kr_stream *s)
{
    const struct kr_pipe_user *user = s->pipe.user_ops;
    struct kr_tls_io *io = s->io;
    size_t have = 0;
    size_t n = 1;

    while (user != NULL && n != 0 && io->out_n < KR_STREAM_OUT_STOP && !s->ending) {
        size_t room = sizeof io->plain - have;

        n = user->fill(s->pipe.user, io->plain + have, room);
        KR_ASSERT(n <= room);
        have = encode(s, have + n, false);
    }
    encode(s, have, true);
    return user == NULL || n == 0;
}

static void pump(struct kr_stream *s)
{
    bool dry;

    if (s->ending || s->hold || s->rest_out.p != NULL || s->send_errno != 0)
        return;
    dry = gather(s);
    if (dry && s->flushing && !s->said_bye && !s->ending) {
        s->said_bye = true;
        if (s->codec->bye != NULL)
            s->codec->bye(s);
    }
    kr_stream_flush(s);
    if (s->ending || s->rest_out.p != NULL || s->send_errno != 0)
        return;
    if (s->said_bye)
        end(s);
    else if (!dry)
        kr_loop_post_next(s->io->loop, &s->write_task);
}

static void on_write_task(struct kr_task *t)
{
    struct kr_stream *s = KR_CONTAINER_OF(t, struct kr_stream, write_task);

    pump(s);
    watch(s);
}

static void on_writable(struct kr_stream *s)
{
    if (s->rest_out.p == NULL || !send_rest(s))
        return;
    if (s->said_bye)
        end(s);
    else
        pump(s);
}

/* Reading. */

void kr_stream_deliver(struct kr_stream *s, const uint8_t *p, size_t n)
{
    if (n != 0 && s->pipe.user_ops != NULL && !s->ending && !s->flushing)
        s->pipe.user_ops->on_bytes(s->pipe.user, (struct kr_bytes){p, n});
}

void kr_stream_deliver_eof(struct kr_stream *s)
{
    if (s->eof_told || s->ending || s->flushing)
        return;
    s->eof_told = true;
    if (s->pipe.user_ops != NULL)
        s->pipe.user_ops->on_eof(s->pipe.user);
}

static void keep_in(struct kr_stream *s)
{
    struct kr_tls_io *io = s->io;
    size_t n = io->in_n - io->in_at;

    if (n != 0 && !s->ending && !s->flushing && !s->eof_told) {
        s->rest_in = (struct kr_run){.p = malloc(n), .n = n};
        if (s->rest_in.p != NULL)
            memcpy(s->rest_in.p, io->in + io->in_at, n);
        else
            kr_stream_fail(s, KR_ENOMEM, "no memory for what was received");
    }
    io->in_n = io->in_at = 0;
}

/* Decodes what is in io->in. */
static void work(struct kr_stream *s)
{
    s->codec->decode(s);
    keep_in(s);
    kr_stream_flush(s); /* what the codec had to answer */
}

/* A storm of handshakes must not keep the others waiting: what is not read now is still readable in
 * the next turn. */
static bool may_read(struct kr_stream *s)
{
    struct kr_tls_io *io = s->io;
    uint64_t turn = kr_loop_turns(io->loop);

    if (!s->hold)
        return true;
    if (io->shake_turn != turn) {
        io->shakes = 0;
        io->shake_us = 0;
    }
    io->shake_turn = turn;
    return io->shakes++ < KR_STREAM_SHAKES && io->shake_us < KR_STREAM_SHAKE_US;
}

static void receive(struct kr_stream *s)
{
    struct kr_tls_io *io = s->io;
    size_t total = 0;

    while (wants_recv(s) && total < KR_STREAM_TURN) {
        ssize_t n = recv(s->fd.fd, io->in, sizeof io->in, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            kr_stream_fail(s, KR_ECONNLOST, "%s", strerror(errno));
            return;
        }
        s->peer_closed = n == 0;
        io->in_n = (size_t)n;
        io->in_at = 0;
        work(s);
        total += (size_t)n;
        if ((size_t)n < sizeof io->in)
            return; /* the socket is most likely empty; the loop knows better */
    }
}

static void on_read_task(struct kr_task *t)
{
    struct kr_stream *s = KR_CONTAINER_OF(t, struct kr_stream, read_task);
    struct kr_tls_io *io = s->io;

    if (kr_stream_wants_more(s) && (s->rest_in.p != NULL || s->peer_closed || s->kicked)) {
        s->kicked = false;
        io->in_n = s->rest_in.n;
        io->in_at = 0;
        if (s->rest_in.p != NULL)
            memcpy(io->in, s->rest_in.p, s->rest_in.n);
        free(s->rest_in.p);
        s->rest_in = (struct kr_run){0};
        work(s);
    }
    if (s->send_errno != 0) {
        receive(s);
        kr_stream_fail(s, KR_ECONNLOST, "%s", strerror(s->send_errno));
    }
    watch(s);
}

static void on_ready(struct kr_fd *f, unsigned events)
{
    struct kr_stream *s = KR_CONTAINER_OF(f, struct kr_stream, fd);

    if (events & KR_FD_WRITE)
        on_writable(s);
    if (events & KR_FD_READ && s->hold)
        kr_loop_post_next(s->io->loop, &s->shake_task);
    else if (events & KR_FD_READ)
        receive(s);
    watch(s);
}

/* First come, first served: libev begins with the newest event, so that under a steady storm the
 * oldest handshakes would get no turn for seconds. */
static void on_shake_task(struct kr_task *t)
{
    struct kr_stream *s = KR_CONTAINER_OF(t, struct kr_stream, shake_task);
    struct kr_tls_io *io = s->io;
    int64_t begun_us;

    if (!may_read(s)) {
        kr_loop_post_next(io->loop, &s->shake_task);
        return;
    }
    begun_us = kr_loop_clock_us();
    receive(s);
    io->shake_us += kr_loop_clock_us() - begun_us;
    watch(s);
}

/* Life. */

static void on_deadline(struct kr_timer *t)
{
    struct kr_stream *s = KR_CONTAINER_OF(t, struct kr_stream, deadline);

    if (s->flushing)
        kr_stream_fail(s, KR_ETIMEDOUT, "the peer did not take the last bytes in %d s",
                       KR_STREAM_FLUSH_MS / 1000);
    else
        s->codec->on_deadline(s);
}

void kr_stream_init(struct kr_stream *s, const struct kr_stream_codec *codec, struct kr_tls_io *io,
                    int fd)
{
    s->pipe.ops = &kr_stream_pipe_ops;
    s->codec = codec;
    kr_task_init(&s->write_task, on_write_task);
    kr_task_init(&s->read_task, on_read_task);
    kr_task_init(&s->shake_task, on_shake_task);
    kr_task_init(&s->end_task, on_end_task);
    kr_timer_init(&s->deadline, on_deadline);
    s->fd.fd = fd;
    kr_stream_adopt(s, io);
}

void kr_stream_adopt(struct kr_stream *s, struct kr_tls_io *io)
{
    s->io = io;
    kr_fd_init(&s->fd, io->loop, s->fd.fd, on_ready);
    kr_list_append(&io->streams, &s->link);
    io->count++;
    watch(s);
}

void kr_stream_detach(struct kr_stream *s)
{
    kr_fd_stop(&s->fd);
    kr_timer_stop(s->io->sched, &s->deadline);
    kr_task_cancel(&s->write_task);
    kr_task_cancel(&s->read_task);
    kr_task_cancel(&s->shake_task);
    kr_task_cancel(&s->end_task);
    kr_list_remove(&s->link);
    s->io->count--;
    s->io = NULL;
}

void kr_stream_deinit(struct kr_stream *s)
{
    if (s->fd.fd >= 0)
        close(s->fd.fd);
    free(s->rest_in.p);
    free(s->rest_out.p);
    free(s->why);
}

void kr_stream_hold(struct kr_stream *s, bool hold)
{
    s->hold = hold;
    watch(s);
}

void kr_stream_kick(struct kr_stream *s)
{
    s->kicked = true;
    kr_task_post(s->io->sched, &s->read_task);
}

int kr_stream_deadline(struct kr_stream *s, int64_t after_ms)
{
    if (after_ms != 0)
        return kr_timer_start(s->io->sched, &s->deadline, after_ms);
    kr_timer_stop(s->io->sched, &s->deadline);
    return 0;
}

static void want_fill(struct kr_pipe *p)
{
    struct kr_stream *s = of_pipe(p);

    if (!s->ending && s->rest_out.p == NULL)
        kr_task_post_last(s->io->sched, &s->write_task);
}

static void set_reading(struct kr_pipe *p, bool on)
{
    struct kr_stream *s = of_pipe(p);

    if (s->ending || s->reading == on)
        return;
    s->reading = on;
    if (on && (s->rest_in.p != NULL || s->peer_closed))
        kr_task_post(s->io->sched, &s->read_task);
    watch(s);
}

void kr_stream_close(struct kr_stream *s, enum kr_pipe_close how)
{
    if (s->ending || (s->flushing && how == KR_PIPE_FLUSH))
        return;
    if (how == KR_PIPE_ABORT || s->hold) {
        s->reset = true;
        end(s);
        return;
    }
    s->flushing = true;
    s->linger = true;
    if (kr_stream_deadline(s, KR_STREAM_FLUSH_MS) != 0) {
        kr_stream_fail(s, KR_ENOMEM, "no memory for a timer");
        return;
    }
    if (s->rest_out.p == NULL)
        kr_task_post_last(s->io->sched, &s->write_task);
    watch(s);
}

static void close_pipe(struct kr_pipe *p, enum kr_pipe_close how)
{
    kr_stream_close(of_pipe(p), how);
}

const struct kr_pipe_ops kr_stream_pipe_ops = {
    .want_fill = want_fill,
    .set_reading = set_reading,
    .close = close_pipe,
};
