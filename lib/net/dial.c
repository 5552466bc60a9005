/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: start -> on_resolved -> on_connected -> (on_proxy: request, answer) -> done.
 * Every failure, and the deadline, goes to finish(), the one place that calls the owner. */
#include "net/dial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/connect.h"
#include "net/socket.h"

enum { DEADLINE_MS = 10000, RESOLVE_MS = 5000 };

struct kr_dial {
    struct kr_loop *loop;
    struct kr_dial_config cfg; /* host, proxy: not to be used, see below */
    struct kr_hostport to;
    struct kr_proxy *proxy; /* owned; NULL: direct */
    struct kr_resolve *resolve;
    struct kr_connect connect;
    struct kr_timer deadline;
    struct kr_fd fd; /* while the proxy is talked to; -1 otherwise */
    struct kr_buf request;
    size_t sent;
    struct kr_buf answer;
    const char *step; /* what is under way, for the note of the deadline */
    char peer[KR_ADDR_TEXT];
};

static void destroy(struct kr_dial *d)
{
    kr_resolve_cancel(d->resolve);
    kr_connect_stop(&d->connect);
    kr_timer_stop(kr_loop_sched(d->loop), &d->deadline);
    kr_fd_stop(&d->fd);
    if (d->fd.fd >= 0)
        close(d->fd.fd);
    if (d->request.p != NULL)
        explicit_bzero(d->request.p, d->request.n); /* the proxy's password */
    kr_buf_deinit(&d->request);
    kr_buf_deinit(&d->answer);
    if (d->proxy != NULL)
        kr_proxy_deinit(d->proxy);
    free(d->proxy);
    free(d);
}

/* The object goes first: the owner may start the next dial, or go, from its callback. */
static void finish(struct kr_dial *d, int rc, int fd, const struct kr_note *why)
{
    struct kr_dial_config cfg = d->cfg;
    struct kr_note note = *why;
    char peer[KR_ADDR_TEXT];

    memcpy(peer, d->peer, sizeof peer);
    destroy(d);
    cfg.on_done(cfg.owner, rc, fd, peer, &note);
}

static void succeed(struct kr_dial *d, int fd)
{
    static const struct kr_note none;

    finish(d, 0, fd, &none);
}

static void on_deadline(struct kr_timer *t)
{
    struct kr_dial *d = KR_CONTAINER_OF(t, struct kr_dial, deadline);
    struct kr_note why;

    kr_note_set(&why, KR_ETIMEDOUT, "%s %.100s port %u: no answer in time", d->step,
                d->proxy != NULL ? d->proxy->at.host : d->to.host,
                d->proxy != NULL ? d->proxy->at.port : d->to.port);
    finish(d, KR_ETIMEDOUT, -1, &why);
}

static void fail_proxy(struct kr_dial *d, int rc, const struct kr_note *cause)
{
    struct kr_note why = *cause;

    kr_note_wrap(&why, rc, "proxy %s to %.100s", d->peer, d->to.host);
    finish(d, rc, -1, &why);
}

static void fail_io(struct kr_dial *d, const char *what)
{
    struct kr_note why;

    kr_note_set(&why, KR_ECONNLOST, "%s", what);
    fail_proxy(d, KR_ECONNLOST, &why);
}

static void send_request(struct kr_dial *d)
{
    ssize_t n = send(d->fd.fd, d->request.p + d->sent, d->request.n - d->sent, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail_io(d, strerror(errno));
        return;
    }
    if (n > 0)
        d->sent += (size_t)n;
    if (d->sent == d->request.n)
        kr_fd_set(&d->fd, KR_FD_READ);
}

static void judge_answer(struct kr_dial *d)
{
    struct kr_note why = {""};
    size_t used = 0;
    int rc = kr_proxy_answer(kr_buf_bytes(&d->answer), &used, &why);
    int fd = d->fd.fd;

    if (rc == 0)
        return;
    /* The far end of the tunnel waits for our TLS hello: it cannot have said anything. */
    if (rc > 0 && used != d->answer.n)
        rc = kr_note_set(&why, KR_EPROTO, "bytes behind the answer's head");
    if (rc < 0) {
        fail_proxy(d, rc, &why);
        return;
    }
    kr_fd_stop(&d->fd);
    d->fd.fd = -1; /* the owner's now */
    succeed(d, fd);
}

static void read_answer(struct kr_dial *d)
{
    uint8_t in[2048];
    ssize_t n = recv(d->fd.fd, in, sizeof in, 0);
    struct kr_note why = {""};
    int rc;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        fail_io(d, n == 0 ? "it closed the connection" : strerror(errno));
        return;
    }
    rc = kr_buf_append(&d->answer, kr_bytes_of(in, (size_t)n));
    if (rc != 0) {
        kr_note_set(&why, rc, "its answer does not fit");
        fail_proxy(d, rc, &why);
        return;
    }
    judge_answer(d);
}

static void on_proxy(struct kr_fd *f, unsigned events)
{
    struct kr_dial *d = KR_CONTAINER_OF(f, struct kr_dial, fd);

    if (events & KR_FD_WRITE)
        send_request(d);
    else
        read_answer(d);
}

static void start_proxy(struct kr_dial *d, int fd)
{
    struct kr_note why = {""};
    int rc = kr_proxy_request(d->proxy, &d->to, &d->request);

    kr_fd_init(&d->fd, d->loop, fd, on_proxy);
    if (rc != 0) {
        kr_note_set(&why, rc, "%s", kr_err_text(rc));
        fail_proxy(d, rc, &why);
        return;
    }
    d->step = "wait for proxy";
    kr_fd_set(&d->fd, KR_FD_WRITE);
}

static void on_connected(struct kr_connect *c, int rc, int fd, const struct kr_addr *to)
{
    struct kr_dial *d = KR_CONTAINER_OF(c, struct kr_dial, connect);

    if (rc != 0) {
        finish(d, rc, -1, &c->why);
        return;
    }
    kr_addr_text(to, d->peer);
    kr_socket_tune(fd, d->cfg.user_timeout_ms);
    if (d->proxy != NULL)
        start_proxy(d, fd);
    else
        succeed(d, fd);
}

static void on_resolved(void *owner, int rc, const struct kr_addr *addrs, size_t count,
                        const struct kr_note *cause)
{
    struct kr_dial *d = owner;
    struct kr_note why = *cause;

    d->resolve = NULL; /* it is gone after this call */
    d->step = "connect to";
    if (rc == 0)
        rc = kr_connect_start(&d->connect, d->loop, addrs, count, on_connected);
    if (rc != 0)
        finish(d, rc, -1, &why);
}

/* Whether this dial goes through the proxy; KR_ENOMEM. */
static int copy_proxy(struct kr_dial *d, const struct kr_proxy *proxy)
{
    if (proxy == NULL || proxy->at.host[0] == '\0' ||
        kr_no_proxy_match(proxy->no_proxy, d->to.host, d->to.port))
        return 0;
    d->proxy = malloc(sizeof *d->proxy);
    if (d->proxy == NULL)
        return KR_ENOMEM;
    *d->proxy = *proxy;
    return 0;
}

static int begin(struct kr_dial *d, const struct kr_dial_config *cfg)
{
    const struct kr_hostport *first;

    if (copy_proxy(d, cfg->proxy) != 0)
        return KR_ENOMEM;
    first = d->proxy != NULL ? &d->proxy->at : &d->to;
    if (kr_timer_start(kr_loop_sched(d->loop), &d->deadline,
                       cfg->timeout_ms > 0 ? cfg->timeout_ms : DEADLINE_MS) != 0)
        return KR_ENOMEM;
    d->resolve = kr_resolve_start(d->loop, first->host, first->port, RESOLVE_MS, on_resolved, d);
    return d->resolve != NULL ? 0 : KR_ENOMEM;
}

struct kr_dial *kr_dial_start(struct kr_loop *loop, const struct kr_dial_config *cfg,
                              struct kr_note *why)
{
    struct kr_dial *d;

    if (!kr_host_valid(cfg->host) || cfg->port == 0) {
        kr_note_set(why, KR_EINVAL, "\"%.100s\" port %u cannot be dialled", cfg->host, cfg->port);
        return NULL;
    }
    d = calloc(1, sizeof *d);
    if (d == NULL) {
        kr_note_set(why, KR_ENOMEM, "out of memory");
        return NULL;
    }
    d->loop = loop;
    d->cfg = *cfg;
    d->fd.fd = -1;
    d->step = "resolve";
    d->to.port = cfg->port;
    memcpy(d->to.host, cfg->host, strlen(cfg->host));
    kr_buf_init(&d->request, KR_PROXY_HEAD_MAX);
    kr_buf_init(&d->answer, KR_PROXY_HEAD_MAX + 2048);
    kr_timer_init(&d->deadline, on_deadline);
    if (begin(d, cfg) != 0) {
        kr_note_set(why, KR_ENOMEM, "out of memory");
        destroy(d);
        return NULL;
    }
    return d;
}

void kr_dial_cancel(struct kr_dial *d)
{
    if (d != NULL)
        destroy(d);
}
