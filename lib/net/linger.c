/* SPDX-License-Identifier: Apache-2.0 */
#include "net/linger.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

enum { LINGER_MS = 1000, LINGER_BYTES = 1024 * 1024, LINGERS_MAX = 1024 };

struct lingering {
    struct kr_lingers *all;
    struct kr_list link;
    struct kr_fd fd;
    struct kr_timer timer;
    size_t bytes; /* thrown away so far */
};

static void finish(struct lingering *g)
{
    kr_fd_stop(&g->fd);
    kr_timer_stop(kr_loop_sched(g->all->loop), &g->timer);
    kr_list_remove(&g->link);
    g->all->count--;
    close(g->fd.fd);
    free(g);
}

static void on_ready(struct kr_fd *f, unsigned events)
{
    struct lingering *g = KR_CONTAINER_OF(f, struct lingering, fd);
    char waste[16 * 1024];
    ssize_t n = recv(f->fd, waste, sizeof waste, 0);

    (void)events;
    if (n > 0 && (g->bytes += (size_t)n) < LINGER_BYTES)
        return;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    finish(g);
}

static void on_timer(struct kr_timer *t)
{
    finish(KR_CONTAINER_OF(t, struct lingering, timer));
}

void kr_lingers_init(struct kr_lingers *l, struct kr_loop *loop)
{
    *l = (struct kr_lingers){.loop = loop};
    kr_list_init(&l->list);
}

void kr_lingers_deinit(struct kr_lingers *l)
{
    KR_LIST_FOREACH_SAFE(node, &l->list)
    finish(KR_CONTAINER_OF(node, struct lingering, link));
}

void kr_linger_close(struct kr_lingers *l, int fd)
{
    struct lingering *g = NULL;

    if (shutdown(fd, SHUT_WR) == 0 && l->count < LINGERS_MAX)
        g = calloc(1, sizeof *g);
    if (g == NULL) {
        close(fd);
        return;
    }
    g->all = l;
    kr_list_append(&l->list, &g->link);
    l->count++;
    kr_timer_init(&g->timer, on_timer);
    kr_fd_init(&g->fd, l->loop, fd, on_ready);
    if (kr_timer_start(kr_loop_sched(l->loop), &g->timer, LINGER_MS) != 0)
        finish(g);
    else
        kr_fd_set(&g->fd, KR_FD_READ);
}
