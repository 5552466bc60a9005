/* SPDX-License-Identifier: Apache-2.0 */
/* attach_load: many agents in one process: each dials the hub with its own certificate, serves
 * HTTP/2 on the connection that it opened and answers Attach as an agent does (docs/protocol.md),
 * for ever.
 *
 * The pairs are PAIRS/agent-CLUSTER-a.crt and .key, with CLUSTER from PREFIX0 to PREFIX(N-1).
 * Prints "ready" when they are read, dials all at once when a line comes on standard input, tries
 * again after up to a second what was refused, prints "sent MILLISECONDS TRIES" when each tunnel's
 * state has been sent, and ends with standard input. */
#include "h2_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, TICK_MS = 50, BEAT_TICKS = 5000 / TICK_MS, RETRY_TICKS = 20, STATE_MAX = 64 };

struct agent {
    struct h2_peer peer;
    struct fleet *fleet;
    X509 *cert;
    EVP_PKEY *key;
    unsigned lane;
    unsigned beats; /* states that were sent on this connection */
    unsigned wait;  /* ticks until it dials */
    int32_t attach; /* stream id, 0 before */
    unsigned char state[STATE_MAX];
    size_t len, at; /* of the state that is being sent */
    bool open;
    bool counted;
};

struct fleet {
    struct sockaddr_in to;
    SSL_CTX *ctx;
    int epoll_fd, timer_fd;
    struct agent *agents;
    unsigned count, sent, ticks;
    unsigned long tries;
    unsigned seed;
    bool started;
    struct timespec start;
};

static void die(const char *what)
{
    fprintf(stderr, "attach_load: %s: %s\n", what, strerror(errno));
    exit(2);
}

static long since_ms(const struct timespec *t)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - t->tv_sec) * 1000 + (now.tv_nsec - t->tv_nsec) / 1000000;
}

/* ---- the state of an agent: AgentState in a gRPC frame ---- */

static void state_make(struct agent *a)
{
    static const char head[] = "\x12\x01\x61\x1a\x10"; /* instance "a"; boot_id follows */
    unsigned char *p = a->state + 5;

    a->beats++;
    memcpy(p, head, 5);
    memset(p + 5, (int)(a - a->fleet->agents) & 0x7f, 16);
    p += 21;
    memcpy(p, "\x20", 1); /* lane */
    p[1] = (unsigned char)(a->lane + 1);
    memcpy(p + 2,
           "\x2a\x05"
           "bench",
           7);
    p[9] = 0x48; /* heartbeat, two bytes of varint are enough */
    p[10] = (unsigned char)(a->beats | 0x80);
    p[11] = (unsigned char)(a->beats >> 7 & 0x7f);
    a->len = (size_t)(p + 12 - a->state);
    a->at = 0;
    memset(a->state, 0, 4);
    a->state[4] = (unsigned char)(a->len - 5);
}

static void note_sent(struct agent *a)
{
    struct fleet *f = a->fleet;

    if (a->counted)
        return;
    a->counted = true;
    if (++f->sent == f->count) {
        printf("sent %ld %lu\n", since_ms(&f->start), f->tries);
        fflush(stdout);
    }
}

static ssize_t read_state(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t max,
                          uint32_t *flags, nghttp2_data_source *source, void *owner)
{
    struct agent *a = owner;
    size_t n = a->len - a->at;

    (void)ng;
    (void)id;
    (void)flags;
    (void)source;
    if (n == 0)
        return NGHTTP2_ERR_DEFERRED;
    if (n > max)
        n = max;
    memcpy(buf, a->state + a->at, n);
    a->at += n;
    if (a->at == a->len)
        note_sent(a);
    return (ssize_t)n;
}

static int on_request(nghttp2_session *ng, const nghttp2_frame *frame, void *owner)
{
    static uint8_t status[] = ":status", ok[] = "200", type[] = "content-type",
                   grpc[] = "application/grpc";
    const nghttp2_nv nv[] = {{status, ok, 7, 3, NGHTTP2_NV_FLAG_NONE},
                             {type, grpc, 12, 16, NGHTTP2_NV_FLAG_NONE}};
    const nghttp2_data_provider body = {.read_callback = read_state};
    struct agent *a = owner;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (a->attach != 0) /* only the call of the tunnel is served here */
        return nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                         NGHTTP2_REFUSED_STREAM);
    a->attach = frame->hd.stream_id;
    state_make(a);
    return nghttp2_submit_response(ng, frame->hd.stream_id, nv, 2, &body);
}

/* ---- connections ---- */

static void session_start(struct agent *a)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}};
    nghttp2_session_callbacks *cb;

    if (nghttp2_session_callbacks_new(&cb) < 0)
        die("nghttp2");
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_request);
    if (nghttp2_session_server_new(&a->peer.session, cb, a) < 0 ||
        nghttp2_submit_settings(a->peer.session, NGHTTP2_FLAG_NONE, settings, 2) < 0)
        die("nghttp2");
    nghttp2_session_callbacks_del(cb);
}

static void lose(struct agent *a)
{
    struct fleet *f = a->fleet;

    if (a->open)
        peer_deinit(&a->peer);
    a->open = false;
    a->wait = 1 + (unsigned)rand_r(&f->seed) % RETRY_TICKS;
    if (a->counted)
        f->sent--;
    a->counted = false;
}

static void want(struct agent *a, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = a};

    a->peer.mask = events;
    if (epoll_ctl(a->fleet->epoll_fd, EPOLL_CTL_MOD, a->peer.fd, &ev) < 0)
        die("epoll_ctl");
}

static void dial(struct agent *a)
{
    struct fleet *f = a->fleet;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    f->tries++;
    a->wait = a->beats = 0;
    a->attach = 0;
    if (fd < 0)
        die("socket");
    if (connect(fd, (struct sockaddr *)&f->to, sizeof(f->to)) < 0 && errno != EINPROGRESS) {
        close(fd);
        lose(a);
        return;
    }
    if (peer_init(&a->peer, f->ctx, f->epoll_fd, fd, a) < 0 ||
        SSL_use_certificate(a->peer.ssl, a->cert) != 1 ||
        SSL_use_PrivateKey(a->peer.ssl, a->key) != 1)
        die("connection");
    a->open = true;
    want(a, EPOLLIN | EPOLLOUT); /* until the connection is there */
    SSL_set_tlsext_host_name(a->peer.ssl, "localhost");
    SSL_set_connect_state(a->peer.ssl);
}

static int connected(struct agent *a)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if ((a->peer.mask & EPOLLOUT) != 0) {
        if (getsockopt(a->peer.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0)
            return -1;
        want(a, EPOLLIN);
    }
    return peer_handshake(&a->peer);
}

static int step(struct agent *a)
{
    if (!a->peer.ready) {
        if (connected(a) < 0)
            return -1;
        if (!a->peer.ready)
            return 0;
        session_start(a);
    }
    return peer_receive(&a->peer) < 0 || peer_send(&a->peer, a) < 0 ? -1 : 0;
}

/* ---- time ---- */

static void beat(struct agent *a)
{
    if (!a->open || a->attach == 0 || a->at < a->len)
        return;
    state_make(a);
    if (nghttp2_session_resume_data(a->peer.session, a->attach) < 0 || peer_send(&a->peer, a) < 0)
        lose(a);
}

static void tick(struct fleet *f)
{
    uint64_t times;

    if (read(f->timer_fd, &times, sizeof(times)) != sizeof(times))
        return;
    f->ticks++;
    for (unsigned i = 0; f->started && i < f->count; i++) {
        struct agent *a = &f->agents[i];

        if (!a->open && a->wait > 0 && --a->wait == 0)
            dial(a);
        else if (i % BEAT_TICKS == f->ticks % BEAT_TICKS)
            beat(a);
    }
}

static void start(struct fleet *f)
{
    clock_gettime(CLOCK_MONOTONIC, &f->start);
    f->started = true;
    for (unsigned i = 0; i < f->count; i++)
        dial(&f->agents[i]);
}

static bool on_input(struct fleet *f)
{
    char line[64];

    if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
        return false;
    if (!f->started)
        start(f);
    return true;
}

static void run(struct fleet *f)
{
    struct epoll_event ev[EVENTS];

    for (;;) {
        int n = epoll_wait(f->epoll_fd, ev, EVENTS, -1);

        if (n < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < n; i++) {
            struct agent *a = ev[i].data.ptr;

            if (a == NULL && !on_input(f))
                return;
            if (ev[i].data.ptr == f)
                tick(f);
            else if (a != NULL && a->open && step(a) < 0)
                lose(a);
        }
    }
}

/* ---- start ---- */

static void *pem(const char *folder, const char *prefix, unsigned number, const char *end)
{
    char path[4096];
    FILE *file;
    void *made;

    (void)snprintf(path, sizeof(path), "%s/agent-%s%u-a.%s", folder, prefix, number, end);
    file = fopen(path, "r");
    if (!file)
        die(path);
    made = strcmp(end, "crt") == 0 ? (void *)PEM_read_X509(file, NULL, NULL, NULL)
                                   : (void *)PEM_read_PrivateKey(file, NULL, NULL, NULL);
    if (!made)
        die(path);
    (void)fclose(file);
    return made;
}

static void agents_make(struct fleet *f, unsigned clusters, unsigned lanes, const char *folder,
                        const char *prefix)
{
    f->count = clusters * lanes;
    f->agents = calloc(f->count, sizeof(*f->agents));
    if (!f->agents)
        die("calloc");
    for (unsigned i = 0; i < f->count; i++) {
        struct agent *a = &f->agents[i];

        a->fleet = f;
        a->lane = i % lanes;
        a->cert = a->lane == 0 ? pem(folder, prefix, i / lanes, "crt") : a[-1].cert;
        a->key = a->lane == 0 ? pem(folder, prefix, i / lanes, "key") : a[-1].key;
    }
}

static void watch(struct fleet *f)
{
    const struct itimerspec every = {.it_interval.tv_nsec = TICK_MS * 1000000L,
                                     .it_value.tv_nsec = TICK_MS * 1000000L};
    struct epoll_event in = {.events = EPOLLIN, .data.ptr = NULL};
    struct epoll_event timer = {.events = EPOLLIN, .data.ptr = f};

    f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    f->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (f->epoll_fd < 0 || f->timer_fd < 0 || timerfd_settime(f->timer_fd, 0, &every, NULL) < 0 ||
        epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &in) < 0 ||
        epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, f->timer_fd, &timer) < 0)
        die("start");
}

static unsigned number(const char *text, unsigned long max)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end != '\0' || end == text || n == 0 || n > max) {
        fprintf(stderr, "attach_load: not a number from 1 to %lu: %s\n", max, text);
        exit(2);
    }
    return (unsigned)n;
}

int main(int argc, char **argv)
{
    static const unsigned char alpn[] = "\x0bkuberelay/1";
    static struct fleet f;
    const struct tls_files files = {0};

    if (argc != 7) {
        fputs("usage: attach_load PORT PAIRS PREFIX CLUSTERS LANES SEED\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    f.to = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)number(argv[1], 65535))};
    f.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    f.seed = number(argv[6], 1000000);
    f.ctx = peer_tls_context(false, &files);
    SSL_CTX_set_verify(f.ctx, SSL_VERIFY_NONE, NULL);
    if (SSL_CTX_set_alpn_protos(f.ctx, alpn, sizeof(alpn) - 1) != 0)
        die("alpn");
    agents_make(&f, number(argv[4], 10000), number(argv[5], 20), argv[2], argv[3]);
    watch(&f);
    puts("ready");
    fflush(stdout);
    run(&f);
    return 0;
}
