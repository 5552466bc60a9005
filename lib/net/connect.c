/* SPDX-License-Identifier: Apache-2.0 */
#include "net/connect.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/socket.h"

enum { NEXT_AFTER_MS = 250 };

static void note_failure(struct kr_connect *c, const struct kr_addr *to, int err)
{
    char text[KR_ADDR_TEXT];

    kr_addr_text(to, text);
    c->rc = err == ETIMEDOUT ? KR_ETIMEDOUT : KR_ECONNREFUSED;
    kr_note_set(&c->why, c->rc, "connect to %s: %s", text, strerror(err));
}

static void close_attempt(struct kr_attempt *a)
{
    if (a->fd.fd < 0)
        return;
    kr_fd_stop(&a->fd);
    close(a->fd.fd);
    a->fd.fd = -1;
    a->all->live--;
}

static void finish(struct kr_connect *c, int rc, int fd, const struct kr_addr *to)
{
    kr_connect_stop(c);
    c->done(c, rc, fd, to);
}

static void go_on(struct kr_connect *c);

static void on_writable(struct kr_fd *f, unsigned events)
{
    struct kr_attempt *a = KR_CONTAINER_OF(f, struct kr_attempt, fd);
    struct kr_connect *c = a->all;
    int err = 0;
    socklen_t len = sizeof err;
    int fd = f->fd;

    (void)events;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
        err = errno;
    if (err != 0) {
        note_failure(c, a->to, err);
        close_attempt(a);
        go_on(c);
        return;
    }
    kr_fd_stop(f);
    f->fd = -1; /* the owner's now */
    c->live--;
    finish(c, 0, fd, a->to);
}

/* false: it failed at once. */
static bool try_next(struct kr_connect *c)
{
    struct kr_attempt *a = &c->attempts[c->next];
    const struct kr_addr *to = &c->addrs[c->next];
    int fd = kr_socket_open(to);

    c->next++;
    if (fd < 0 || (connect(fd, &to->u.sa, to->len) != 0 && errno != EINPROGRESS)) {
        note_failure(c, to, errno);
        if (fd >= 0)
            close(fd);
        return false;
    }
    a->all = c;
    a->to = to;
    kr_fd_init(&a->fd, c->loop, fd, on_writable);
    kr_fd_set(&a->fd, KR_FD_WRITE);
    c->live++;
    return true;
}

/* Starts the next attempt that can be started; the end, if there is nothing left to wait for. */
static void go_on(struct kr_connect *c)
{
    bool started = false;

    while (!started && c->next < c->count)
        started = try_next(c);
    if (c->live == 0)
        finish(c, c->rc, -1, NULL);
    else if (c->next < c->count)
        (void)kr_timer_start(kr_loop_sched(c->loop), &c->next_timer, NEXT_AFTER_MS);
    else
        kr_timer_stop(kr_loop_sched(c->loop), &c->next_timer);
}

static void on_next_timer(struct kr_timer *t)
{
    go_on(KR_CONTAINER_OF(t, struct kr_connect, next_timer));
}

int kr_connect_start(struct kr_connect *c, struct kr_loop *loop, const struct kr_addr *addrs,
                     size_t count,
                     void (*done)(struct kr_connect *c, int rc, int fd, const struct kr_addr *to))
{
    *c = (struct kr_connect){.loop = loop, .done = done, .count = count, .rc = KR_ERESOLVE};
    KR_ASSERT(count <= KR_RESOLVE_MAX);
    memcpy(c->addrs, addrs, count * sizeof *addrs);
    for (size_t i = 0; i < KR_RESOLVE_MAX; i++)
        c->attempts[i].fd.fd = -1;
    kr_note_set(&c->why, c->rc, "no address");
    kr_timer_init(&c->next_timer, on_next_timer);
    return kr_timer_start(kr_loop_sched(loop), &c->next_timer, 0);
}

void kr_connect_stop(struct kr_connect *c)
{
    if (c->loop == NULL)
        return;
    kr_timer_stop(kr_loop_sched(c->loop), &c->next_timer);
    for (size_t i = 0; i < KR_RESOLVE_MAX; i++)
        close_attempt(&c->attempts[i]);
}
