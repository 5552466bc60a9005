/* SPDX-License-Identifier: Apache-2.0 */
/* c-ares tells which descriptors it watches (on_state) and is told when they are ready or when its
 * own time is up (tick). Its callback only stores the answer: the owner is called from a task,
 * outside of c-ares, so that it may cancel and start at will. */
#include "net/resolve.h"

#include <ares.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"

enum { DEADLINE_MS = 5000, TRY_MS = 2000, TRIES = 2, FDS_MAX = 16 };

struct watched {
    struct kr_fd fd;
    struct kr_resolve *resolve; /* NULL: the slot is free */
};

struct kr_resolve {
    struct kr_loop *loop;
    kr_resolve_done *done;
    void *owner;
    ares_channel channel; /* NULL: numeric */
    struct watched fds[FDS_MAX];
    struct kr_task answer;
    struct kr_timer tick;     /* c-ares' retries */
    struct kr_timer deadline; /* ours */
    uint16_t port;
    int rc;
    size_t count;
    struct kr_addr addrs[KR_RESOLVE_MAX];
    struct kr_note why;
    char host[KR_HOST_MAX + 1];
};

static void destroy(struct kr_resolve *r)
{
    struct kr_sched *sched = kr_loop_sched(r->loop);

    r->done = NULL; /* on_answer may still come, from ares_destroy */
    if (r->channel != NULL)
        ares_destroy(r->channel);
    kr_task_cancel(&r->answer);
    kr_timer_stop(sched, &r->tick);
    kr_timer_stop(sched, &r->deadline);
    for (int i = 0; i < FDS_MAX; i++) {
        if (r->fds[i].resolve != NULL)
            kr_fd_stop(&r->fds[i].fd);
    }
    free(r);
}

static void on_answer_task(struct kr_task *t)
{
    struct kr_resolve *r = KR_CONTAINER_OF(t, struct kr_resolve, answer);

    r->done(r->owner, r->rc, r->addrs, r->count, &r->why);
    destroy(r);
}

static void answer(struct kr_resolve *r, int rc)
{
    r->rc = rc;
    kr_task_post(kr_loop_sched(r->loop), &r->answer);
}

static void take(struct kr_resolve *r, const struct ares_addrinfo *info)
{
    for (struct ares_addrinfo_node *n = info->nodes; n != NULL; n = n->ai_next) {
        struct kr_addr *a = &r->addrs[r->count];

        if (r->count == KR_RESOLVE_MAX || (size_t)n->ai_addrlen > sizeof a->u)
            break;
        if (n->ai_family != AF_INET && n->ai_family != AF_INET6)
            continue;
        memcpy(&a->u, n->ai_addr, n->ai_addrlen);
        a->len = n->ai_addrlen;
        kr_addr_set_port(a, r->port);
        r->count++;
    }
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
    struct kr_resolve *r = arg;
    int rc = 0;

    (void)timeouts;
    if (r->done != NULL && status == ARES_SUCCESS && info != NULL)
        take(r, info);
    if (info != NULL)
        ares_freeaddrinfo(info);
    if (r->done == NULL || kr_list_linked(&r->answer.link))
        return; /* canceled, or the deadline was first */
    if (status == ARES_ENOMEM)
        rc = KR_ENOMEM;
    else if (status == ARES_ETIMEOUT)
        rc = KR_ETIMEDOUT;
    else if (r->count == 0)
        rc = KR_ERESOLVE;
    if (rc != 0)
        kr_note_set(&r->why, rc, "resolve %.100s: %s", r->host,
                    status == ARES_SUCCESS ? "no address" : ares_strerror(status));
    answer(r, rc);
}

static void on_deadline(struct kr_timer *t)
{
    struct kr_resolve *r = KR_CONTAINER_OF(t, struct kr_resolve, deadline);

    if (kr_list_linked(&r->answer.link))
        return;
    kr_note_set(&r->why, KR_ETIMEDOUT, "resolve %.100s: no answer in time", r->host);
    answer(r, KR_ETIMEDOUT);
}

/* When c-ares wants to be called again. */
static void set_tick(struct kr_resolve *r)
{
    struct timeval most = {.tv_sec = 1};
    struct timeval room;
    struct timeval *wait = ares_timeout(r->channel, &most, &room);

    (void)kr_timer_start(kr_loop_sched(r->loop), &r->tick,
                         (int64_t)wait->tv_sec * 1000 + wait->tv_usec / 1000 + 1);
}

static void on_tick(struct kr_timer *t)
{
    struct kr_resolve *r = KR_CONTAINER_OF(t, struct kr_resolve, tick);

    ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_tick(r);
}

static void on_ready(struct kr_fd *f, unsigned events)
{
    struct watched *w = KR_CONTAINER_OF(f, struct watched, fd);
    struct kr_resolve *r = w->resolve;
    ares_socket_t fd = f->fd;

    ares_process_fd(r->channel, events & KR_FD_READ ? fd : ARES_SOCKET_BAD,
                    events & KR_FD_WRITE ? fd : ARES_SOCKET_BAD);
    set_tick(r);
}

static struct watched *slot_of(struct kr_resolve *r, int fd)
{
    struct watched *free_slot = NULL;

    for (int i = 0; i < FDS_MAX; i++) {
        if (r->fds[i].resolve != NULL && r->fds[i].fd.fd == fd)
            return &r->fds[i];
        if (r->fds[i].resolve == NULL)
            free_slot = &r->fds[i];
    }
    return free_slot;
}

/* c-ares opens few sockets for one question; one more than we watch would just time out. */
static void on_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct kr_resolve *r = arg;
    struct watched *w = slot_of(r, fd);
    unsigned interest = 0;

    if (w == NULL)
        return;
    if (w->resolve == NULL) {
        kr_fd_init(&w->fd, r->loop, fd, on_ready);
        w->resolve = r;
    }
    if (readable)
        interest |= KR_FD_READ;
    if (writable)
        interest |= KR_FD_WRITE;
    kr_fd_set(&w->fd, interest);
    if (interest == 0)
        w->resolve = NULL;
}

static int ask(struct kr_resolve *r)
{
    struct ares_options options = {
        .timeout = TRY_MS,
        .tries = TRIES,
        .lookups = (char *)"fb", /* the hosts file, then DNS */
        .sock_state_cb = on_state,
        .sock_state_cb_data = r,
    };
    struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
    int status = ares_init_options(&r->channel, &options, mask);

    if (status != ARES_SUCCESS) {
        r->channel = NULL;
        return kr_note_set(&r->why, status == ARES_ENOMEM ? KR_ENOMEM : KR_ERESOLVE,
                           "resolve %.100s: %s", r->host, ares_strerror(status));
    }
    ares_getaddrinfo(r->channel, r->host, NULL, &hints, on_answer, r);
    set_tick(r);
    return 0;
}

struct kr_resolve *kr_resolve_start(struct kr_loop *loop, const char *host, uint16_t port,
                                    int64_t timeout_ms, kr_resolve_done *done, void *owner)
{
    struct kr_resolve *r;
    size_t n = strlen(host);
    int rc;

    if (n > KR_HOST_MAX || (r = calloc(1, sizeof *r)) == NULL)
        return NULL;
    *r = (struct kr_resolve){.loop = loop, .done = done, .owner = owner, .port = port};
    memcpy(r->host, host, n);
    kr_task_init(&r->answer, on_answer_task);
    kr_timer_init(&r->tick, on_tick);
    kr_timer_init(&r->deadline, on_deadline);
    if (kr_addr_parse(host, port, &r->addrs[0])) {
        r->count = 1;
        answer(r, 0);
        return r;
    }
    if (kr_timer_start(kr_loop_sched(loop), &r->deadline,
                       timeout_ms > 0 ? timeout_ms : DEADLINE_MS) != 0) {
        destroy(r);
        return NULL;
    }
    rc = ask(r);
    if (rc != 0)
        answer(r, rc);
    return r;
}

void kr_resolve_cancel(struct kr_resolve *r)
{
    if (r != NULL)
        destroy(r);
}
