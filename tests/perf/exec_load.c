/* SPDX-License-Identifier: Apache-2.0 */
/* exec_load: upgraded connections as kubectl exec and cp make them, with blocking sockets.
 *
 * --mode keystroke: --count round trips of one byte on one connection.
 * --mode out, in:   --count bytes from or to the server, from the 101 until the last byte is there.
 * --mode sessions:  for --seconds, --threads of them open a connection of their own, upgrade it,
 *                   echo one byte and close; --rate of them each second, or as fast as they can.
 * --mode cancel:    the same with full-speed downloads, broken off after a random part of 1 MiB.
 * Prints one line of JSON. The server is watch_origin; with --websocket it is a kube-apiserver,
 * which is asked for `cat` in v5.channel.k8s.io (keystroke only). */
#include "h2_client.h"

#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, SAMPLES_MAX = 2000000, WARM_UP = 200, HEAD_MAX = 4096, PART = 65536 };
enum { CANCEL_AFTER = 1 << 20 };

struct session {
    int fd;
    SSL *ssl;
    size_t early; /* bytes that came behind the 101 */
};

struct work {
    struct h2_target target;
    const char *path, *mode, *server_name;
    struct tls_files tls;
    SSL_CTX *ctx;
    bool websocket;
    uint64_t count;
    double rate, seconds;
    unsigned threads;
    uint64_t start_ns, end_ns;
    atomic_ullong next; /* number of the next session */
    atomic_ullong done, failed, bytes;
    atomic_ullong sampled;
    uint32_t *samples; /* microseconds */
};

static void die(const char *what)
{
    fprintf(stderr, "exec_load: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void sample(struct work *w, uint64_t ns)
{
    uint64_t at = atomic_fetch_add(&w->sampled, 1);

    if (at < SAMPLES_MAX)
        w->samples[at] = (uint32_t)(ns / 1000U);
}

/* ---- one upgraded connection ---- */

static int dial(const struct work *w)
{
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&w->target.to, sizeof(w->target.to)) < 0) {
        close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static int put_head(const struct work *w, char *head, size_t size, const char *command)
{
    if (w->websocket)
        return snprintf(
            head, size,
            "GET %s?command=cat&stdin=true&stdout=true HTTP/1.1\r\nHost: %s\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a2V5c3Ryb2tlcyBjb3VudA==\r\n"
            "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
            w->path, w->target.authority);
    return snprintf(head, size,
                    "POST %s?command=%s&command=count=%llu&stdin=true&stdout=true HTTP/1.1\r\n"
                    "Host: %s\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                    "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n",
                    w->path, command, (unsigned long long)w->count, w->target.authority);
}

static int ask(const struct work *w, struct session *s, const char *command)
{
    char head[HEAD_MAX];
    int len = put_head(w, head, sizeof(head), command);

    return len < (int)sizeof(head) && SSL_write(s->ssl, head, len) == len ? 0 : -1;
}

/* Frames may follow at once, so with them not a byte more than the head is read. */
static int read_answer(const struct work *w, struct session *s)
{
    char head[HEAD_MAX];
    size_t len = 0;
    const char *end = NULL;

    while (!end) {
        size_t room = HEAD_MAX - 1 - len;
        int n = SSL_read(s->ssl, head + len, w->websocket && room > 0 ? 1 : (int)room);

        if (n <= 0)
            return -1;
        len += (size_t)n;
        head[len] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    s->early = len - (size_t)(end + 4 - head);
    if (strncmp(head, "HTTP/1.1 101 ", 13) == 0)
        return 0;
    fprintf(stderr, "exec_load: %.*s\n", (int)strcspn(head, "\r"), head);
    return -1;
}

static void session_close(struct session *s, bool politely)
{
    if (s->ssl && politely)
        (void)SSL_shutdown(s->ssl);
    SSL_free(s->ssl);
    if (s->fd >= 0)
        close(s->fd);
}

static int session_open(const struct work *w, struct session *s, const char *command)
{
    memset(s, 0, sizeof(*s));
    s->fd = dial(w);
    if (s->fd < 0)
        return -1;
    s->ssl = SSL_new(w->ctx);
    if (!s->ssl || SSL_set_fd(s->ssl, s->fd) != 1)
        return -1;
    SSL_set_tlsext_host_name(s->ssl, w->server_name);
    SSL_set1_host(s->ssl, w->server_name);
    if (SSL_connect(s->ssl) != 1 || ask(w, s, command) < 0)
        return -1;
    return read_answer(w, s);
}

/* ---- WebSocket frames: a channel's number (0 stdin, 1 stdout, 3 errors), then its bytes ---- */

static int read_all(struct session *s, unsigned char *buf, int len)
{
    for (int at = 0; at < len;) {
        int n = SSL_read(s->ssl, buf + at, len - at);

        if (n <= 0)
            return -1;
        at += n;
    }
    return 0;
}

/* Until a byte of stdout comes: a channel may open with an empty frame, and there are pings. */
static int frame_read(struct session *s)
{
    enum { OPCODE = 0x0f, BINARY = 2, CLOSE = 8, SHORT = 125, STDOUT = 1, ERRORS = 3 };
    unsigned char head[2], body[SHORT];

    for (;;) {
        if (read_all(s, head, 2) < 0 || head[1] > SHORT || read_all(s, body, head[1]) < 0)
            return -1;
        bool says = (head[0] & OPCODE) == BINARY && head[1] > 1;

        if (says && body[0] == STDOUT)
            return head[1] == 2 && body[1] == 'k' ? 0 : -1;
        if ((head[0] & OPCODE) == CLOSE || (says && body[0] == ERRORS)) {
            fprintf(stderr, "exec_load: %.*s\n", head[1], (const char *)body);
            return -1;
        }
    }
}

static int frame_echo(struct session *s)
{
    /* Final and binary; two bytes, masked with zeros. */
    static const unsigned char key[] = {0x82, 0x80 | 2, 0, 0, 0, 0, 0, 'k'};

    return SSL_write(s->ssl, key, sizeof(key)) == sizeof(key) ? frame_read(s) : -1;
}

static int echo_one(const struct work *w, struct session *s)
{
    char c = 'k';

    if (w->websocket)
        return frame_echo(s);
    return SSL_write(s->ssl, &c, 1) == 1 && SSL_read(s->ssl, &c, 1) == 1 ? 0 : -1;
}

/* ---- what is measured ---- */

static void keystrokes(struct work *w)
{
    struct session s;

    if (session_open(w, &s, "echo") < 0)
        die("the session did not open");
    for (int i = 0; i < WARM_UP; i++)
        (void)echo_one(w, &s);
    w->start_ns = h2_now_ns();
    for (uint64_t i = 0; i < w->count; i++) {
        uint64_t begin = h2_now_ns();

        if (echo_one(w, &s) < 0)
            die("the session ended");
        sample(w, h2_now_ns() - begin);
        w->done++;
    }
    w->end_ns = h2_now_ns();
    session_close(&s, true);
}

static void bulk_out(struct work *w)
{
    static char buf[PART];
    struct session s;

    if (session_open(w, &s, "source") < 0)
        die("the session did not open");
    w->start_ns = h2_now_ns();
    w->bytes = s.early;
    while (w->bytes < w->count) {
        int n = SSL_read(s.ssl, buf, PART);

        if (n <= 0)
            die("the download ended");
        w->bytes += (uint64_t)n;
    }
    w->end_ns = h2_now_ns();
    w->done = 1;
    session_close(&s, true);
}

static void bulk_in(struct work *w)
{
    static char buf[PART];
    struct session s;

    if (session_open(w, &s, "sink") < 0)
        die("the session did not open");
    w->start_ns = h2_now_ns();
    while (w->bytes < w->count) {
        uint64_t left = w->count - w->bytes;
        int n = SSL_write(s.ssl, buf, left < PART ? (int)left : PART);

        if (n <= 0)
            die("the upload ended");
        w->bytes += (uint64_t)n;
    }
    if (SSL_read(s.ssl, buf, 1) != 1)
        die("the upload was not acknowledged");
    w->end_ns = h2_now_ns();
    w->done = 1;
    session_close(&s, true);
}

static int read_some(struct work *w, struct session *s, uint64_t wanted)
{
    char buf[PEER_RECORD];
    uint64_t got = s->early;

    while (got < wanted) {
        int n = SSL_read(s->ssl, buf, PEER_RECORD);

        if (n <= 0)
            return -1;
        got += (uint64_t)n;
    }
    w->bytes += got;
    return 0;
}

static void one_session(struct work *w, uint64_t due_ns, unsigned *seed)
{
    bool cancel = strcmp(w->mode, "cancel") == 0;
    struct session s;
    int rc = session_open(w, &s, cancel ? "source" : "echo");

    if (rc == 0)
        rc = cancel ? read_some(w, &s, (uint64_t)rand_r(seed) % CANCEL_AFTER) : echo_one(w, &s);
    if (rc < 0) {
        w->failed++;
    } else {
        sample(w, h2_now_ns() - due_ns);
        w->done++;
    }
    session_close(&s, !cancel);
}

static void *sessions(void *arg)
{
    struct work *w = arg;
    uint64_t number;
    unsigned seed = (unsigned)(uintptr_t)&number;

    while (h2_now_ns() < w->end_ns) {
        uint64_t due = h2_now_ns();

        number = atomic_fetch_add(&w->next, 1);
        if (w->rate > 0) {
            due = w->start_ns + (uint64_t)((double)number * 1e9 / w->rate);
            const struct timespec t = {(time_t)(due / 1000000000U), (long)(due % 1000000000U)};

            if (due >= w->end_ns)
                break;
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        }
        one_session(w, due, &seed);
    }
    return NULL;
}

static void many_sessions(struct work *w)
{
    pthread_t ids[THREADS_MAX];

    w->start_ns = h2_now_ns();
    w->end_ns = w->start_ns + (uint64_t)(w->seconds * 1e9);
    for (unsigned i = 0; i < w->threads; i++)
        if (pthread_create(&ids[i], NULL, sessions, w) != 0)
            die("pthread_create");
    for (unsigned i = 0; i < w->threads; i++)
        pthread_join(ids[i], NULL);
    w->end_ns = h2_now_ns();
}

/* ---- result and start ---- */

static void report(struct work *w)
{
    uint64_t n = w->sampled < SAMPLES_MAX ? w->sampled : SAMPLES_MAX;

    h2_sort(w->samples, n);
    printf("{\"done\":%llu,\"failed\":%llu,\"bytes\":%llu,\"seconds\":%.6f,\"p50_us\":%u,"
           "\"p99_us\":%u}\n",
           (unsigned long long)w->done, (unsigned long long)w->failed, (unsigned long long)w->bytes,
           (double)(w->end_ns - w->start_ns) / 1e9, h2_quantile(w->samples, n, 0.5),
           h2_quantile(w->samples, n, 0.99));
}

static void usage(void)
{
    fputs("usage: exec_load --to IPV4:PORT --path PATH --ca FILE [--cert FILE --key FILE]\n"
          "       --mode keystroke|out|in|sessions|cancel [--server-name NAME] [--count N]\n"
          "       [--seconds S] [--rate PER-SECOND] [--threads N] [--websocket]\n",
          stderr);
    exit(2);
}

static void parse_number(struct work *w, int key)
{
    double n = strtod(optarg, NULL);

    if (key == 'n')
        w->count = (uint64_t)n;
    else if (key == 'D')
        w->seconds = n;
    else if (key == 'r')
        w->rate = n;
    else if (key == 'T' && n >= 1 && n <= THREADS_MAX)
        w->threads = (unsigned)n;
    else
        usage();
}

static void parse_one(struct work *w, int key)
{
    if (key == 't' && h2_target_parse(&w->target, optarg) < 0)
        usage();
    if (key == 't')
        return;
    if (key == 'w')
        w->websocket = true;
    else if (key == 'p')
        w->path = optarg;
    else if (key == 'm')
        w->mode = optarg;
    else if (key == 's')
        w->server_name = optarg;
    else if (key == 'a')
        w->tls.ca = optarg;
    else if (key == 'e')
        w->tls.cert = optarg;
    else if (key == 'k')
        w->tls.key = optarg;
    else
        parse_number(w, key);
}

static void parse(struct work *w, int argc, char **argv)
{
    static const struct option names[] = {{"to", required_argument, NULL, 't'},
                                          {"path", required_argument, NULL, 'p'},
                                          {"mode", required_argument, NULL, 'm'},
                                          {"ca", required_argument, NULL, 'a'},
                                          {"cert", required_argument, NULL, 'e'},
                                          {"key", required_argument, NULL, 'k'},
                                          {"server-name", required_argument, NULL, 's'},
                                          {"count", required_argument, NULL, 'n'},
                                          {"seconds", required_argument, NULL, 'D'},
                                          {"rate", required_argument, NULL, 'r'},
                                          {"threads", required_argument, NULL, 'T'},
                                          {"websocket", no_argument, NULL, 'w'},
                                          {NULL, 0, NULL, 0}};
    int key;

    w->server_name = "localhost";
    w->threads = 1;
    while ((key = getopt_long(argc, argv, "", names, NULL)) != -1)
        parse_one(w, key);
    if (!w->target.authority || !w->path || !w->mode || !w->tls.ca || optind != argc)
        usage();
    if (w->websocket && strcmp(w->mode, "keystroke") != 0)
        usage();
    if (strcmp(w->mode, "cancel") == 0)
        w->count = UINT64_MAX;
}

int main(int argc, char **argv)
{
    static struct work w;

    parse(&w, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    w.ctx = peer_tls_context(false, &w.tls);
    SSL_CTX_clear_mode(w.ctx, SSL_MODE_ENABLE_PARTIAL_WRITE);
    w.samples = calloc(SAMPLES_MAX, sizeof(*w.samples));
    if (!w.samples)
        die("calloc");
    if (strcmp(w.mode, "keystroke") == 0)
        keystrokes(&w);
    else if (strcmp(w.mode, "out") == 0)
        bulk_out(&w);
    else if (strcmp(w.mode, "in") == 0)
        bulk_in(&w);
    else if (strcmp(w.mode, "sessions") == 0 || strcmp(w.mode, "cancel") == 0)
        many_sessions(&w);
    else
        usage();
    report(&w);
    return w.failed > 0 || w.done == 0;
}
