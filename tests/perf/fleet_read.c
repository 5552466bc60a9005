/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_read: reads lists and watches over HTTP/2 to a sink, one thread.
 *
 * Opens --streams GETs of one URL on each of --connections. Without --watch it waits for all of
 * them and prints one line of JSON: milliseconds to the first byte, seconds, bytes.
 *
 * With --watch it prints "open N" when all have answered 200, and then obeys standard input:
 *   mark          counts anew from here
 *   quiet MS      until there was an event, and none for MS milliseconds
 *   report        at once
 * quiet and report print one line of JSON: seconds from the mark to the last event, events of
 * the stream that had the fewest and the most, of all, bytes of all, and, with --ages, quantiles of
 * the events' ages on the first stream: the time of day less the annotation kubesim/changed-us.
 * An event is a line. The end of standard input ends the program. */
#include "h2_client.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, SAMPLES_MAX = 4000000, LINE_MAX_BYTES = 1 << 20, COMMAND_MAX = 256 };

static const char stamp[] = "kubesim/changed-us\":\"";

struct stream {
    int status;
    bool answered;
    uint64_t events; /* since the mark */
};

struct conn {
    struct h2_peer peer;
    struct reader *reader;
    struct stream *streams;
    bool closed;
};

struct reader {
    struct h2_target target;
    const char *path;
    const char *accept;
    struct tls_files tls;
    unsigned connections, streams;
    int32_t window;
    bool watch, ages;

    int epoll_fd;
    SSL_CTX *ctx;
    struct conn *conns;
    unsigned ready, running, opened, ended, failed;
    uint64_t start_ns, first_ns, last_ns, mark_ns;
    uint64_t events, bytes;

    char *line; /* of the first stream, with --ages */
    size_t line_n;
    uint32_t *samples;
    size_t sample_count;

    char command[COMMAND_MAX];
    size_t command_n;
    uint64_t quiet_ns; /* waiting for that; 0: not waiting */
    bool over;
};

static uint64_t wall_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000U + (uint64_t)t.tv_nsec / 1000U;
}

static void die(const char *what)
{
    fprintf(stderr, "fleet_read: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- what arrives */

static void take_age(struct reader *r)
{
    const char *at = memmem(r->line, r->line_n, stamp, sizeof(stamp) - 1);
    uint64_t now = wall_us(), then;

    if (!at || r->sample_count == SAMPLES_MAX)
        return;
    then = strtoull(at + sizeof(stamp) - 1, NULL, 10);
    r->samples[r->sample_count++] = (uint32_t)(now > then ? now - then : 0);
}

static void keep_line(struct reader *r, const uint8_t *data, size_t n, bool end)
{
    if (r->line_n + n < LINE_MAX_BYTES) {
        memcpy(r->line + r->line_n, data, n);
        r->line_n += n;
        r->line[r->line_n] = '\0';
    }
    if (!end)
        return;
    take_age(r);
    r->line_n = 0;
}

static void count_lines(struct reader *r, struct stream *s, const uint8_t *data, size_t n)
{
    bool first = r->ages && s == &r->conns[0].streams[0];
    const uint8_t *end;
    uint64_t before = s->events;

    while (n > 0 && (end = memchr(data, '\n', n)) != NULL) {
        size_t len = (size_t)(end - data);

        if (first)
            keep_line(r, data, len, true);
        s->events++;
        data += len + 1;
        n -= len + 1;
    }
    if (first && n > 0)
        keep_line(r, data, n, false);
    r->events += s->events - before;
    if (s->events != before)
        r->last_ns = h2_now_ns();
}

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

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *owner)
{
    struct conn *c = owner;
    struct reader *r = c->reader;
    struct stream *s = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);

    if (!s || frame->hd.type != NGHTTP2_HEADERS || s->answered)
        return 0;
    s->answered = true;
    if (s->status != 200) {
        fprintf(stderr, "fleet_read: status %d\n", s->status);
        r->failed++;
    }
    if (++r->opened == r->connections * r->streams && r->watch && r->failed == 0) {
        printf("open %u\n", r->opened);
        fflush(stdout);
    }
    return 0;
}

static int on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                   void *owner)
{
    struct conn *c = owner;
    struct reader *r = c->reader;
    struct stream *s = nghttp2_session_get_stream_user_data(ng, id);

    (void)flags;
    if (r->first_ns == 0)
        r->first_ns = h2_now_ns();
    r->bytes += len;
    if (s && r->watch)
        count_lines(r, s, data, len);
    return 0;
}

static int on_stream_close(nghttp2_session *ng, int32_t id, uint32_t error, void *owner)
{
    struct conn *c = owner;
    struct reader *r = c->reader;

    (void)ng;
    (void)id;
    r->ended++;
    if (!r->watch)
        r->last_ns = h2_now_ns();
    if (error != NGHTTP2_NO_ERROR || r->watch) {
        fprintf(stderr, "fleet_read: a stream ended, error %u\n", error);
        r->failed++;
    }
    return 0;
}

/* ---- connections */

static void request(struct conn *c, struct stream *s)
{
    const struct reader *r = c->reader;

    if (h2_client_get(&c->peer, r->target.authority, r->path, r->accept, s) < 0)
        die("request");
}

static void session_start(struct conn *c)
{
    static const struct h2_client_callbacks callbacks = {.on_header = on_header,
                                                         .on_frame = on_frame,
                                                         .on_data = on_data,
                                                         .on_stream_close = on_stream_close};

    if (h2_client_start(&c->peer, &callbacks, c->reader->window, c) < 0)
        die("session");
}

static void conn_open(struct reader *r, struct conn *c)
{
    c->reader = r;
    c->streams = calloc(r->streams, sizeof(*c->streams));
    if (!c->streams)
        die("calloc");
    if (h2_client_dial(&c->peer, r->ctx, r->epoll_fd, &r->target, "localhost", c) < 0)
        die("connect");
    r->running++;
}

static void conn_close(struct conn *c)
{
    struct reader *r = c->reader;

    if (c->closed)
        return;
    c->closed = true;
    r->running--;
    if (r->watch || r->ended < r->connections * r->streams) {
        fprintf(stderr, "fleet_read: a connection ended\n");
        r->failed++;
    }
    peer_deinit(&c->peer);
}

/* The clock starts when all connections are ready. */
static void all_ready(struct reader *r)
{
    r->start_ns = r->mark_ns = h2_now_ns();
    for (unsigned i = 0; i < r->connections; i++) {
        struct conn *c = &r->conns[i];

        for (unsigned j = 0; !c->closed && j < r->streams; j++)
            request(c, &c->streams[j]);
        if (!c->closed && peer_send(&c->peer, c) < 0)
            conn_close(c);
    }
}

static int conn_step(struct conn *c)
{
    struct reader *r = c->reader;

    if (!c->peer.ready) {
        if (peer_handshake(&c->peer) < 0)
            return -1;
        if (!c->peer.ready)
            return 0;
        session_start(c);
        if (++r->ready == r->connections)
            all_ready(r);
    }
    if (c->closed)
        return 0;
    return peer_receive(&c->peer) < 0 || peer_send(&c->peer, c) < 0 ? -1 : 0;
}

/* ---- results */

static double span(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / 1e9 : 0;
}

/* The fewest and the most events that a stream has had. */
static void extremes(const struct reader *r, uint64_t *least, uint64_t *most)
{
    *least = UINT64_MAX;
    *most = 0;
    for (unsigned i = 0; i < r->connections; i++) {
        for (unsigned j = 0; j < r->streams; j++) {
            uint64_t n = r->conns[i].streams[j].events;

            *least = n < *least ? n : *least;
            *most = n > *most ? n : *most;
        }
    }
}

static void report_watch(struct reader *r)
{
    uint64_t least, most;

    extremes(r, &least, &most);
    h2_sort(r->samples, r->sample_count);
    printf("{\"seconds\":%.6f,\"least\":%llu,\"most\":%llu,\"events\":%llu,\"bytes\":%llu,"
           "\"ages\":%zu,\"p50_us\":%u,\"p99_us\":%u,\"max_us\":%u}\n",
           span(r->mark_ns, r->last_ns), (unsigned long long)least, (unsigned long long)most,
           (unsigned long long)r->events, (unsigned long long)r->bytes, r->sample_count,
           h2_quantile(r->samples, r->sample_count, 0.5),
           h2_quantile(r->samples, r->sample_count, 0.99),
           h2_quantile(r->samples, r->sample_count, 1));
    fflush(stdout);
}

static void report_list(const struct reader *r)
{
    printf("{\"first_ms\":%.3f,\"seconds\":%.6f,\"bytes\":%llu,\"failed\":%u}\n",
           span(r->start_ns, r->first_ns) * 1e3, span(r->start_ns, r->last_ns),
           (unsigned long long)r->bytes, r->failed);
}

/* ---- commands */

static void usage(void)
{
    fputs("usage: fleet_read --to IPV4:PORT --path PATH --ca FILE\n"
          "       [--cert FILE --key FILE] [--accept TYPE] [--connections N] [--streams N]\n"
          "       [--window BYTES] [--watch [--ages]]\n",
          stderr);
    exit(2);
}

static unsigned number(const char *text, unsigned long max)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end != '\0' || end == text || n == 0 || n > max)
        usage();
    return (unsigned)n;
}

static void mark(struct reader *r)
{
    for (unsigned i = 0; i < r->connections; i++) {
        for (unsigned j = 0; j < r->streams; j++)
            r->conns[i].streams[j].events = 0;
    }
    r->events = r->bytes = 0;
    r->sample_count = 0;
    r->last_ns = r->mark_ns = h2_now_ns();
}

static void obey(struct reader *r, const char *line)
{
    if (strcmp(line, "mark") == 0) {
        mark(r);
        printf("marked\n");
        fflush(stdout);
    } else if (strcmp(line, "report") == 0) {
        report_watch(r);
    } else if (strncmp(line, "quiet ", 6) == 0) {
        r->quiet_ns = number(line + 6, 3600000) * (uint64_t)1000000;
    } else {
        fprintf(stderr, "fleet_read: unknown command %s\n", line);
        exit(2);
    }
}

static void read_commands(struct reader *r)
{
    ssize_t n = read(STDIN_FILENO, r->command + r->command_n, COMMAND_MAX - r->command_n - 1);
    char *end;

    if (n <= 0) {
        r->over = true;
        return;
    }
    r->command_n += (size_t)n;
    r->command[r->command_n] = '\0';
    while ((end = strchr(r->command, '\n')) != NULL) {
        *end = '\0';
        obey(r, r->command);
        r->command_n -= (size_t)(end + 1 - r->command);
        memmove(r->command, end + 1, r->command_n + 1);
    }
}

/* Answers when it has been quiet for as long as was asked. */
static void check_quiet(struct reader *r)
{
    if (r->quiet_ns == 0 || r->events == 0 || h2_now_ns() < r->last_ns + r->quiet_ns)
        return;
    r->quiet_ns = 0;
    report_watch(r);
}

/* ---- the loop */

static bool done(const struct reader *r)
{
    return r->over || r->failed > 0 || r->running == 0 ||
           (!r->watch && r->ended == r->connections * r->streams);
}

static void run(struct reader *r)
{
    struct epoll_event ev[EVENTS];

    while (!done(r)) {
        int n = epoll_wait(r->epoll_fd, ev, EVENTS, r->quiet_ns != 0 ? 5 : -1);

        if (n < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;

            if (!c)
                read_commands(r);
            else if (!c->closed && conn_step(c) < 0)
                conn_close(c);
        }
        if (r->watch)
            check_quiet(r);
    }
}

/* ---- start */

static void parse_one(struct reader *r, int key)
{
    bool bad = false;

    if (key == 't')
        bad = h2_target_parse(&r->target, optarg) < 0;
    else if (key == 'p')
        r->path = optarg;
    else if (key == 'a')
        r->tls.ca = optarg;
    else if (key == 'e')
        r->tls.cert = optarg;
    else if (key == 'k')
        r->tls.key = optarg;
    else if (key == 'x')
        r->accept = optarg;
    else if (key == 'c')
        r->connections = number(optarg, 10000);
    else if (key == 'm')
        r->streams = number(optarg, 10000);
    else if (key == 'w')
        r->window = (int32_t)number(optarg, 1 << 30);
    else if (key == 'W')
        r->watch = true;
    else if (key == 'A')
        r->ages = true;
    else
        bad = true;
    if (bad)
        usage();
}

static void parse(struct reader *r, int argc, char **argv)
{
    static const struct option names[] = {{"to", required_argument, NULL, 't'},
                                          {"path", required_argument, NULL, 'p'},
                                          {"server-name", required_argument, NULL, 's'},
                                          {"ca", required_argument, NULL, 'a'},
                                          {"cert", required_argument, NULL, 'e'},
                                          {"key", required_argument, NULL, 'k'},
                                          {"connections", required_argument, NULL, 'c'},
                                          {"streams", required_argument, NULL, 'm'},
                                          {"window", required_argument, NULL, 'w'},
                                          {"accept", required_argument, NULL, 'x'},
                                          {"watch", no_argument, NULL, 'W'},
                                          {"ages", no_argument, NULL, 'A'},
                                          {NULL, 0, NULL, 0}};
    int key;

    r->connections = r->streams = 1;
    r->window = 16 * 1024 * 1024;
    r->accept = "application/json";
    while ((key = getopt_long(argc, argv, "", names, NULL)) != -1)
        parse_one(r, key);
    if (!r->target.authority || !r->path || !r->tls.ca || optind != argc)
        usage();
}

int main(int argc, char **argv)
{
    static struct reader r;
    struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL};

    parse(&r, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    r.ctx = peer_tls_context(false, &r.tls);
    r.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r.conns = calloc(r.connections, sizeof(*r.conns));
    r.samples = calloc(SAMPLES_MAX, sizeof(*r.samples));
    r.line = calloc(1, LINE_MAX_BYTES);
    if (r.epoll_fd < 0 || !r.conns || !r.samples || !r.line)
        die("start");
    if (r.watch && epoll_ctl(r.epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &input) < 0)
        die("standard input");
    for (unsigned i = 0; i < r.connections; i++)
        conn_open(&r, &r.conns[i]);
    for (unsigned i = 0; i < r.connections; i++) {
        if (!r.conns[i].closed && conn_step(&r.conns[i]) < 0)
            conn_close(&r.conns[i]);
    }
    run(&r);
    if (!r.watch)
        report_list(&r);
    return r.failed > 0;
}
