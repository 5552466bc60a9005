/* SPDX-License-Identifier: Apache-2.0 */
/* delay_relay: a TCP relay that behaves like a long, thin or broken link, for tests.
 *
 * Every byte read from one side is put on a "wire" with the time at which it reaches the other
 * side; two wires (up: towards --to, down: back) are shared by all connections, so --rate-kbps is
 * the rate of the link and not of one connection. An end of file travels the wire like a byte, so
 * half-closed connections work. A connection that is reset on one side is reset on the other.
 *
 * Signals: SIGUSR1 starts what --drop names and the next one heals it: while a way is dropped,
 *          nothing arrives there, and what was sent arrives after healing, as TCP would do it.
 *          (The relay still acknowledges, so only --buffer-kib limits the sender.)
 *          SIGUSR2 cuts all connections with RST. SIGTERM and SIGINT end the relay.
 * Memory:  at most --buffer-kib per connection and way, then the source is not read.
 * Output:  "listening HOST:PORT"; for each signal that was heard "drops", "heals" or "cut" (two of
 *          the same in a row would be one). Exit: 0, or 2 for bad usage, or 1. */
#include "delay_relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

void delay_die(const char *what)
{
    fprintf(stderr, "delay_relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void queue_init(struct queue *q)
{
    q->head = NULL;
    q->tail = &q->head;
}

static void queue_put(struct queue *q, struct chunk *c)
{
    c->next = NULL;
    *q->tail = c;
    q->tail = &c->next;
}

static struct chunk *queue_take(struct queue *q)
{
    struct chunk *c = q->head;

    q->head = c->next;
    if (!q->head)
        q->tail = &q->head;
    return c;
}

/* ---- the life of a connection ---- */

static void watch(struct relay *r, struct side *s, uint32_t mask)
{
    struct epoll_event ev = {.events = mask, .data.ptr = s};

    if (s->mask == mask || s->fd < 0 || s->lost)
        return;
    if (epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev) < 0)
        delay_die("epoll_ctl");
    s->mask = mask;
}

void delay_watch_start(struct relay *r, struct side *s, uint32_t mask)
{
    struct epoll_event ev = {.events = mask, .data.ptr = s};

    s->mask = mask;
    if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, s->fd, &ev) < 0)
        delay_die("epoll_ctl");
}

static void watch_update(struct relay *r, struct conn *c)
{
    for (int i = 0; i < 2; i++) {
        const struct lane *in = &c->lane[i], *out = &c->lane[1 - i];
        uint32_t mask = 0;

        if (!in->ended && in->queued < r->opt.buffer)
            mask |= EPOLLIN;
        if (out->ready.head)
            mask |= EPOLLOUT;
        watch(r, &c->side[i], mask);
    }
}

static void side_close(struct side *s, bool reset)
{
    const struct linger hard = {.l_onoff = 1, .l_linger = 0};

    if (s->fd < 0)
        return;
    if (reset)
        (void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(s->fd);
    s->fd = -1;
}

/* Chunks on the wire still point here, so the memory stays until the last of them is gone. */
static void conn_close(struct relay *r, struct conn *c, bool reset)
{
    if (c->dead)
        return;
    c->dead = true;
    side_close(&c->side[0], reset);
    side_close(&c->side[1], reset);
    for (int i = 0; i < WAYS; i++) {
        while (c->lane[i].ready.head)
            free(queue_take(&c->lane[i].ready));
    }
    if (c->prev)
        c->prev->next = c->next;
    else
        r->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->next = r->dead;
    r->dead = c;
}

static void free_dead(struct relay *r)
{
    struct conn **at = &r->dead;

    while (*at) {
        struct conn *c = *at;

        if (c->lane[UP].on_wire + c->lane[DOWN].on_wire > 0) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        free(c);
    }
}

static void no_delay(int fd)
{
    const int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static struct conn *conn_create(int client, int target)
{
    struct conn *c = calloc(1, sizeof(*c));

    if (!c)
        delay_die("calloc");
    for (int i = 0; i < WAYS; i++) {
        c->side[i] = (struct side){.conn = c, .fd = i == 0 ? client : target};
        c->lane[i].conn = c;
        c->lane[i].way = i;
        c->lane[i].from = &c->side[i];
        c->lane[i].to = &c->side[1 - i];
        queue_init(&c->lane[i].ready);
        no_delay(c->side[i].fd);
    }
    return c;
}

static void conn_open(struct relay *r, int client)
{
    int target = socket(r->target.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct conn *c;

    if (target < 0)
        delay_die("socket");
    if (connect(target, (struct sockaddr *)&r->target, r->target_len) < 0 && errno != EINPROGRESS) {
        close(target);
        close(client);
        return;
    }
    c = conn_create(client, target);
    c->next = r->conns;
    if (c->next)
        c->next->prev = c;
    r->conns = c;
    delay_watch_start(r, &c->side[0], EPOLLIN);
    delay_watch_start(r, &c->side[1], EPOLLIN);
}

static void on_listener(struct relay *r)
{
    for (;;) {
        int fd = accept4(r->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0)
            conn_open(r, fd);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR && errno != ECONNABORTED)
            delay_die("accept");
    }
}

/* ---- bytes: read, travel, arrive, written ---- */

static void put_on_wire(struct relay *r, struct lane *l, enum chunk_kind kind, size_t len)
{
    struct wire *w = &r->wire[l->way];
    struct chunk *c = malloc(sizeof(*c) + len);
    uint64_t now = now_ns();

    if (!c)
        delay_die("malloc");
    memcpy(c->data, r->buf, len);
    if (w->free_ns < now)
        w->free_ns = now;
    if (r->opt.rate_kbps > 0)
        w->free_ns += len * 8U * 1000000U / r->opt.rate_kbps;
    c->lane = l;
    c->kind = kind;
    c->len = len;
    c->sent = 0;
    c->due_ns = w->free_ns + r->opt.delay_ns;
    l->queued += len;
    l->on_wire++;
    if (kind != CHUNK_DATA)
        l->ended = true;
    queue_put(&w->queue, c);
}

/* False when there is nothing more to read for now. */
static bool lane_read_once(struct relay *r, struct lane *l)
{
    ssize_t n = read(l->from->fd, r->buf, r->read_size);

    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n > 0)
        put_on_wire(r, l, CHUNK_DATA, (size_t)n);
    else
        put_on_wire(r, l, n == 0 ? CHUNK_EOF : CHUNK_RESET, 0);
    return !l->ended;
}

static void lane_read(struct relay *r, struct lane *l)
{
    for (int i = 0; i < READS_PER_EVENT && !l->ended && l->queued < r->opt.buffer; i++) {
        if (!lane_read_once(r, l))
            return;
    }
}

/* False when the socket takes no more, or when the connection is gone. */
static bool write_data(struct relay *r, struct lane *l, struct chunk *c)
{
    size_t len = c->len - c->sent;
    ssize_t n;

    if (r->opt.cut_after > 0 && len > r->opt.cut_after - l->conn->passed)
        len = (size_t)(r->opt.cut_after - l->conn->passed);
    n = send(l->to->fd, c->data + c->sent, len, MSG_NOSIGNAL);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            conn_close(r, l->conn, true);
        return false;
    }
    c->sent += (size_t)n;
    l->queued -= (size_t)n;
    l->conn->passed += (uint64_t)n;
    if (r->opt.cut_after > 0 && l->conn->passed >= r->opt.cut_after) {
        conn_close(r, l->conn, true);
        return false;
    }
    return c->sent == c->len;
}

static void write_eof(struct relay *r, struct lane *l)
{
    l->done = true;
    (void)shutdown(l->to->fd, SHUT_WR);
    if (l->conn->lane[UP].done && l->conn->lane[DOWN].done)
        conn_close(r, l->conn, false);
}

static void lane_write(struct relay *r, struct lane *l)
{
    while (l->ready.head) {
        struct chunk *c = l->ready.head;

        if (c->kind == CHUNK_DATA && !write_data(r, l, c))
            return;
        queue_take(&l->ready);
        if (c->kind == CHUNK_EOF)
            write_eof(r, l);
        if (c->kind == CHUNK_RESET)
            conn_close(r, l->conn, true);
        free(c);
        if (l->conn->dead)
            return;
    }
}

static void chunk_arrives(struct relay *r, struct chunk *c)
{
    struct lane *l = c->lane;
    bool idle = !l->ready.head;

    l->on_wire--;
    if (l->conn->dead) {
        free(c);
        return;
    }
    queue_put(&l->ready, c);
    if (idle)
        lane_write(r, l);
    if (!l->conn->dead)
        watch_update(r, l->conn);
}

static void wires_advance(struct relay *r)
{
    uint64_t now = now_ns();

    for (int i = 0; i < WAYS; i++) {
        struct wire *w = &r->wire[i];

        while (!w->dropped && w->queue.head && w->queue.head->due_ns <= now)
            chunk_arrives(r, queue_take(&w->queue));
    }
}

static void timer_update(struct relay *r)
{
    struct itimerspec at = {0};
    uint64_t due = 0;

    for (int i = 0; i < WAYS; i++) {
        const struct wire *w = &r->wire[i];

        if (!w->dropped && w->queue.head && (due == 0 || w->queue.head->due_ns < due))
            due = w->queue.head->due_ns;
    }
    if (due == r->timer_ns)
        return;
    at.it_value.tv_sec = (time_t)(due / 1000000000U);
    at.it_value.tv_nsec = (long)(due % 1000000000U);
    if (timerfd_settime(r->timer.fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
        delay_die("timerfd_settime");
    r->timer_ns = due;
}

/* ---- the loop ---- */

/* What the kernel still holds (a bounded rest) is read past the limit, then the side is left. */
static void side_lost(struct relay *r, struct side *s, struct lane *in)
{
    while (!in->ended && lane_read_once(r, in))
        ;
    if (!in->ended)
        put_on_wire(r, in, CHUNK_RESET, 0);
    (void)epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    s->lost = true;
}

static void on_side(struct relay *r, struct side *s, uint32_t events)
{
    struct conn *c = s->conn;
    struct lane *in = s == &c->side[0] ? &c->lane[UP] : &c->lane[DOWN];
    struct lane *out = s == &c->side[0] ? &c->lane[DOWN] : &c->lane[UP];

    if (c->dead)
        return;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        lane_read(r, in);
    if ((events & EPOLLOUT) && !c->dead)
        lane_write(r, out);
    if (!c->dead && (events & (EPOLLERR | EPOLLHUP)))
        side_lost(r, s, in);
    if (!c->dead)
        watch_update(r, c);
}

static void say(const char *what)
{
    puts(what);
    fflush(stdout);
}

static void toggle_drop(struct relay *r)
{
    bool drops = false;

    for (int i = 0; i < WAYS; i++) {
        if (r->opt.drop[i])
            r->wire[i].dropped = !r->wire[i].dropped;
        drops |= r->wire[i].dropped;
    }
    say(drops ? "drops" : "heals");
}

static void cut(struct relay *r)
{
    while (r->conns)
        conn_close(r, r->conns, true);
    say("cut");
}

static void on_signals(struct relay *r)
{
    struct signalfd_siginfo info;

    while (read(r->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGUSR1)
            toggle_drop(r);
        else if (info.ssi_signo == SIGUSR2)
            cut(r);
        else
            r->stop = true;
    }
}

static void on_timer(struct relay *r)
{
    uint64_t count;

    r->timer_ns = 0;
    if (read(r->timer.fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        delay_die("timerfd");
}

static void on_event(struct relay *r, const struct epoll_event *ev)
{
    struct side *s = ev->data.ptr;

    if (s == &r->listener)
        on_listener(r);
    else if (s == &r->signals)
        on_signals(r);
    else if (s == &r->timer)
        on_timer(r);
    else
        on_side(r, s, ev->events);
}

void delay_run(struct relay *r)
{
    struct epoll_event ev[EVENTS];

    while (!r->stop) {
        int n = epoll_wait(r->epoll_fd, ev, EVENTS, -1);

        if (n < 0 && errno != EINTR)
            delay_die("epoll_wait");
        for (int i = 0; i < n; i++)
            on_event(r, &ev[i]);
        wires_advance(r);
        timer_update(r);
        free_dead(r);
    }
}

int main(int argc, char **argv)
{
    static struct relay r;

    delay_parse(&r.opt, argc, argv);
    queue_init(&r.wire[UP].queue);
    queue_init(&r.wire[DOWN].queue);
    delay_start(&r);
    delay_run(&r);
    return 0;
}
