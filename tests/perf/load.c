/* SPDX-License-Identifier: Apache-2.0 */
/* load: a closed-loop HTTP/2 load generator with client certificates, one thread.
 *
 * Opens --connections, keeps --streams GETs of one URL running on each until --requests or
 * --seconds are over, and prints one line of JSON. With --hold every stream is opened once and
 * counted when the first byte of its body is here; "open N" is printed when all are, and the
 * program stays until standard input ends or a signal comes (idle watches). With --cancels RATE
 * bodies may be endless: so many random streams are reset each second, and new ones take their
 * place, until --seconds are over; RATE may be 0. SIGINT: starts nothing more, then reports. */
#include "h2_client.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS = 256, SAMPLES_MAX = 4000000, TICK_MS = 10 };

struct stream {
    uint64_t start_ns;
    uint64_t bytes;
    int status;
    bool counted; /* --hold: its first byte is here */
    bool cancelled;
    unsigned slot; /* in the client's table */
    int32_t id;
};

struct client {
    struct h2_peer peer;
    struct load *load;
    struct stream **streams; /* --streams of them, NULL where none runs */
    unsigned live;
    bool closed;
};

struct load {
    struct h2_target target;
    const char *path;
    const char *server_name;
    struct tls_files tls;
    unsigned connections, streams;
    uint64_t requests; /* 0: no limit */
    uint64_t duration_ns;
    int32_t window;
    bool hold;
    bool storm; /* --cancels */
    double cancel_rate;

    int epoll_fd;
    int timer_fd;
    unsigned seed;
    uint64_t cancelled;
    SSL_CTX *ctx;
    struct client *clients;
    unsigned ready;   /* connections that shook hands */
    unsigned running; /* connections not yet closed */
    uint64_t start_ns, end_ns, last_ns;
    uint64_t started, done, failed, bytes, opened;
    uint32_t *samples; /* microseconds, one per request */
    size_t sample_count;
    int first_bad_status;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- requests ---- */

static bool may_start(const struct load *l)
{
    if (interrupted || (l->requests > 0 && l->started >= l->requests))
        return false;
    return l->hold || l->duration_ns == 0 || h2_now_ns() < l->end_ns;
}

static void request_start(struct client *c)
{
    struct load *l = c->load;
    struct stream *s = calloc(1, sizeof(*s));

    if (!s)
        die("calloc");
    s->start_ns = h2_now_ns();
    s->id = h2_client_get(&c->peer, l->target.authority, l->path, "application/json", s);
    if (s->id < 0)
        die("request");
    while (c->streams[s->slot])
        s->slot++; /* there is one: never more than --streams run */
    c->streams[s->slot] = s;
    l->started++;
    c->live++;
}

static void sample(struct load *l, uint64_t ns)
{
    if (l->sample_count < SAMPLES_MAX)
        l->samples[l->sample_count++] = (uint32_t)(ns / 1000U);
}

static void request_end(struct client *c, struct stream *s, uint32_t error)
{
    struct load *l = c->load;

    l->last_ns = h2_now_ns();
    c->streams[s->slot] = NULL;
    if (s->cancelled) {
        l->cancelled++;
    } else if (error != NGHTTP2_NO_ERROR || s->status != 200) {
        l->failed++;
        if (l->first_bad_status == 0)
            l->first_bad_status = s->status > 0 ? s->status : -1;
    } else {
        l->done++;
        l->bytes += s->bytes;
        sample(l, l->last_ns - s->start_ns);
    }
    free(s);
    c->live--;
}

static void on_first_byte(struct load *l, struct stream *s)
{
    if (!l->hold || s->counted || s->status != 200)
        return;
    s->counted = true;
    if (++l->opened == (uint64_t)l->connections * l->streams) {
        printf("open %llu\n", (unsigned long long)l->opened);
        fflush(stdout);
    }
}

/* ---- nghttp2's callbacks ---- */

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *owner)
{
    struct stream *s = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    int status = h2_status(name, name_len, value, value_len);

    (void)flags;
    (void)owner;
    if (s && status != 0)
        s->status = status;
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                   void *owner)
{
    struct client *c = owner;
    struct stream *s = nghttp2_session_get_stream_user_data(ng, id);

    (void)flags;
    (void)data;
    if (s) {
        s->bytes += len;
        on_first_byte(c->load, s);
    }
    return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t error, void *owner)
{
    struct client *c = owner;
    struct stream *s = nghttp2_session_get_stream_user_data(ng, id);

    if (!s)
        return 0;
    request_end(c, s, error);
    if (!c->load->hold && may_start(c->load))
        request_start(c);
    return 0;
}

/* ---- connections ---- */

static void client_close(struct client *c)
{
    if (c->closed)
        return;
    c->closed = true;
    c->load->running--;
    c->load->failed += c->live;
    peer_deinit(&c->peer);
}

static void session_start(struct client *c)
{
    static const struct h2_client_callbacks callbacks = {
        .on_header = on_header, .on_data = on_data, .on_stream_close = on_stream_close};

    if (h2_client_start(&c->peer, &callbacks, c->load->window, c) < 0)
        die("session");
}

static void client_open(struct load *l, struct client *c)
{
    c->load = l;
    c->streams = calloc(l->streams, sizeof(*c->streams));
    if (!c->streams)
        die("calloc");
    if (h2_client_dial(&c->peer, l->ctx, l->epoll_fd, &l->target, l->server_name, c) < 0)
        die("connect");
    l->running++;
}

/* The clock starts when all connections are ready; then each gets its streams. */
static void all_ready(struct load *l)
{
    l->start_ns = h2_now_ns();
    l->end_ns = l->start_ns + l->duration_ns;
    for (unsigned i = 0; i < l->connections; i++) {
        struct client *c = &l->clients[i];

        for (unsigned j = 0; !c->closed && j < l->streams && may_start(l); j++)
            request_start(c);
        if (!c->closed && peer_send(&c->peer, c) < 0)
            client_close(c);
    }
}

/* ---- cancels ---- */

static void cancel_one(struct load *l)
{
    struct client *c = &l->clients[(unsigned)rand_r(&l->seed) % l->connections];
    struct stream *s = c->streams[(unsigned)rand_r(&l->seed) % l->streams];

    if (c->closed || !s || s->cancelled)
        return;
    s->cancelled = true;
    if (nghttp2_submit_rst_stream(c->peer.session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL) < 0)
        die("nghttp2_submit_rst_stream");
    if (peer_send(&c->peer, c) < 0)
        client_close(c);
}

/* Catches up when it was late. False when the time is over. */
static bool storm_tick(struct load *l)
{
    const uint64_t now = h2_now_ns();
    uint64_t ticks, due;

    if (read(l->timer_fd, &ticks, sizeof(ticks)) < 0 || l->start_ns == 0)
        return true;
    due = (uint64_t)((double)(now - l->start_ns) / 1e9 * l->cancel_rate);
    for (uint64_t tries = 0; l->cancelled < due && tries < 100; tries++)
        cancel_one(l);
    l->last_ns = now;
    return now < l->end_ns;
}

static void storm_start(struct load *l)
{
    const struct itimerspec every = {.it_interval.tv_nsec = TICK_MS * 1000000L,
                                     .it_value.tv_nsec = TICK_MS * 1000000L};
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = l};

    if (!l->storm)
        return;
    l->seed = (unsigned)h2_now_ns();
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->timer_fd < 0 || timerfd_settime(l->timer_fd, 0, &every, NULL) < 0 ||
        epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->timer_fd, &ev) < 0)
        die("timer");
}

static int client_step(struct client *c)
{
    struct load *l = c->load;

    if (!c->peer.ready) {
        if (peer_handshake(&c->peer) < 0)
            return -1;
        if (!c->peer.ready)
            return 0;
        session_start(c);
        if (++l->ready == l->connections)
            all_ready(l);
    }
    if (c->closed)
        return 0;
    if (peer_receive(&c->peer) < 0 || peer_send(&c->peer, c) < 0)
        return -1;
    return l->ready == l->connections && c->live == 0 && !l->hold ? -1 : 0;
}

static void run(struct load *l)
{
    struct epoll_event ev[EVENTS];

    while (l->running > 0) {
        int n = epoll_wait(l->epoll_fd, ev, EVENTS, -1);

        if (n < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < n; i++) {
            struct client *c = ev[i].data.ptr;

            if (!c)
                return; /* standard input has ended */
            if (ev[i].data.ptr == l) {
                if (!storm_tick(l))
                    return;
                continue;
            }
            if (!c->closed && client_step(c) < 0)
                client_close(c);
        }
        if (l->hold && l->failed > 0)
            return; /* they will never all be open */
    }
}

/* ---- result ---- */

static void report(struct load *l)
{
    double seconds = l->last_ns > l->start_ns ? (double)(l->last_ns - l->start_ns) / 1e9 : 0;

    h2_sort(l->samples, l->sample_count);
    printf("{\"done\":%llu,\"failed\":%llu,\"bad_status\":%d,\"bytes\":%llu,\"seconds\":%.6f,"
           "\"p50_us\":%u,\"p99_us\":%u,\"max_us\":%u,\"cancelled\":%llu}\n",
           (unsigned long long)l->done, (unsigned long long)l->failed, l->first_bad_status,
           (unsigned long long)l->bytes, seconds, h2_quantile(l->samples, l->sample_count, 0.5),
           h2_quantile(l->samples, l->sample_count, 0.99),
           h2_quantile(l->samples, l->sample_count, 1), (unsigned long long)l->cancelled);
}

/* ---- start ---- */

static void usage(void)
{
    fputs("usage: load --to IPV4:PORT --path PATH --ca FILE [--server-name NAME]\n"
          "       [--cert FILE --key FILE] [--connections N] [--streams N]\n"
          "       [--requests N] [--seconds S] [--window BYTES] [--hold]\n"
          "       [--cancels PER-SECOND]\n",
          stderr);
    exit(2);
}

static double number(const char *text, double max)
{
    char *end;
    double n = strtod(text, &end);

    if (*end != '\0' || end == text || !(n > 0 && n <= max))
        usage();
    return n;
}

static void parse_number(struct load *l, int key)
{
    if (key == 'c')
        l->connections = (unsigned)number(optarg, 10000);
    else if (key == 'm')
        l->streams = (unsigned)number(optarg, 10000);
    else if (key == 'n')
        l->requests = (uint64_t)number(optarg, 1e9);
    else if (key == 'D')
        l->duration_ns = (uint64_t)(number(optarg, 3600) * 1e9);
    else if (key == 'w')
        l->window = (int32_t)number(optarg, 1 << 30);
    else if (key == 'C')
        l->cancel_rate = strcmp(optarg, "0") == 0 ? 0 : number(optarg, 1e6);
    else
        usage();
}

static void parse_one(struct load *l, int key)
{
    if (key == 't' && h2_target_parse(&l->target, optarg) < 0)
        usage();
    if (key == 't')
        return;
    if (key == 'p')
        l->path = optarg;
    else if (key == 's')
        l->server_name = optarg;
    else if (key == 'a')
        l->tls.ca = optarg;
    else if (key == 'e')
        l->tls.cert = optarg;
    else if (key == 'k')
        l->tls.key = optarg;
    else if (key == 'h')
        l->hold = true;
    else
        parse_number(l, key);
}

static void parse(struct load *l, int argc, char **argv)
{
    static const struct option names[] = {
        {"to", required_argument, NULL, 't'},          {"path", required_argument, NULL, 'p'},
        {"server-name", required_argument, NULL, 's'}, {"ca", required_argument, NULL, 'a'},
        {"cert", required_argument, NULL, 'e'},        {"key", required_argument, NULL, 'k'},
        {"connections", required_argument, NULL, 'c'}, {"streams", required_argument, NULL, 'm'},
        {"requests", required_argument, NULL, 'n'},    {"seconds", required_argument, NULL, 'D'},
        {"window", required_argument, NULL, 'w'},      {"hold", no_argument, NULL, 'h'},
        {"cancels", required_argument, NULL, 'C'},     {NULL, 0, NULL, 0}};
    int key;

    l->connections = l->streams = 1;
    l->window = 16 * 1024 * 1024;
    l->cancel_rate = -1;
    l->server_name = "localhost";
    while ((key = getopt_long(argc, argv, "", names, NULL)) != -1)
        parse_one(l, key);
    if (!l->target.authority || !l->path || !l->tls.ca || optind != argc)
        usage();
    l->storm = l->cancel_rate >= 0;
    if (l->requests == 0 && l->duration_ns == 0 && !l->hold)
        usage();
}

static void watch_stdin(struct load *l)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

    if (l->hold && epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &ev) < 0)
        die("standard input");
}

int main(int argc, char **argv)
{
    static struct load l;

    parse(&l, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, on_interrupt);
    l.ctx = peer_tls_context(false, &l.tls);
    l.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l.clients = calloc(l.connections, sizeof(*l.clients));
    l.samples = calloc(SAMPLES_MAX, sizeof(*l.samples));
    if (l.epoll_fd < 0 || !l.clients || !l.samples)
        die("start");
    watch_stdin(&l);
    storm_start(&l);
    for (unsigned i = 0; i < l.connections; i++)
        client_open(&l, &l.clients[i]);
    for (unsigned i = 0; i < l.connections; i++) {
        if (client_step(&l.clients[i]) < 0)
            client_close(&l.clients[i]);
    }
    run(&l);
    report(&l);
    return l.failed > 0 || (l.done + l.opened == 0 && !l.storm);
}
