/* SPDX-License-Identifier: Apache-2.0 */
/* watch_origin: an API server in name only, for measuring. Not a simulator.
 *
 * TLS 1.3, HTTP/2 and HTTP/1.1 by ALPN, one thread. A path with "watch=" gets 200 and one BOOKMARK
 * line and then stays open; over HTTP/2 one with "endless" gets a body without end; anything else
 * gets 200 and a small JSON object. Prints "listening 127.0.0.1:PORT". The HTTP/1.1 side knows
 * requests without a body, no pipelining, and upgrades: 101 whatever is asked for, and then by the
 * query "command=echo", "command=sink" (takes "count=N" bytes, then says so with one) or
 * "command=source" (sends "count=N" bytes, or without end if there is no count). */
#include "h2_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 256, HEAD_MAX = 16384 };

static const char event_line[] =
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
    "\"metadata\":{\"resourceVersion\":\"1000\",\"creationTimestamp\":null}}}\n";
static const char plain_body[] =
    "{\"kind\":\"Bench\",\"major\":\"1\",\"minor\":\"30\",\"gitVersion\":\"v1.30.0\","
    "\"metadata\":{\"name\":\"kube-system\",\"uid\":\"00000000-0000-0000-0000-000000000001\"}}\n";

struct reply { /* of one HTTP/2 stream */
    const char *body;
    size_t left;
    bool watch;
    bool endless;
};

enum raw_mode { RAW_NONE, RAW_ECHO, RAW_SINK, RAW_SOURCE };

struct conn {
    struct h2_peer peer;
    bool is_h1;
    enum raw_mode raw;
    uint64_t raw_left; /* bytes that the sink or the source still has to do */
    size_t head_len;
    char head[HEAD_MAX];
};

struct origin {
    int epoll_fd;
    int listen_fd;
    SSL_CTX *ctx;
};

static void die(const char *what)
{
    fprintf(stderr, "watch_origin: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- HTTP/2 ---- */

static ssize_t on_body(nghttp2_session *ng, int32_t id, uint8_t *buf, size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *owner)
{
    struct reply *r = source->ptr;
    size_t n = r->left < room ? r->left : room;

    (void)ng;
    (void)id;
    (void)owner;
    if (r->endless) {
        memset(buf, 'x', room);
        return (ssize_t)room;
    }
    if (n == 0 && r->watch)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(buf, r->body, n);
    r->body += n;
    r->left -= n;
    if (r->left == 0 && !r->watch)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static int on_begin(nghttp2_session *ng, const nghttp2_frame *frame, void *owner)
{
    struct reply *r;

    (void)owner;
    if (frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    r = calloc(1, sizeof(*r));
    if (!r)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    return nghttp2_session_set_stream_user_data(ng, frame->hd.stream_id, r);
}

static bool is_watch(const char *path, size_t len)
{
    return memmem(path, len, "watch=", 6) != NULL;
}

static int on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *owner)
{
    struct reply *r = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);

    (void)flags;
    (void)owner;
    if (r && name_len == 5 && memcmp(name, ":path", 5) == 0) {
        r->watch = is_watch((const char *)value, value_len);
        r->endless = memmem(value, value_len, "endless", 7) != NULL;
    }
    return 0;
}

static int on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *owner)
{
    struct reply *r = nghttp2_session_get_stream_user_data(ng, frame->hd.stream_id);
    const nghttp2_nv nv[] = {header(":status", "200"), header("content-type", "application/json")};
    const nghttp2_data_provider body = {.source.ptr = r, .read_callback = on_body};

    (void)owner;
    if (!r || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || r->body)
        return 0;
    r->body = r->watch ? event_line : plain_body;
    r->left = strlen(r->body);
    return nghttp2_submit_response(ng, frame->hd.stream_id, nv, 2, &body);
}

static int on_close(nghttp2_session *ng, int32_t id, uint32_t error, void *owner)
{
    (void)error;
    (void)owner;
    free(nghttp2_session_get_stream_user_data(ng, id));
    return 0;
}

static int session_start(struct conn *c)
{
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 4096}};
    nghttp2_session_callbacks *cb;
    int rc;

    if (nghttp2_session_callbacks_new(&cb) < 0)
        return -1;
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    rc = nghttp2_session_server_new(&c->peer.session, cb, c);
    nghttp2_session_callbacks_del(cb);
    if (rc < 0)
        return -1;
    return nghttp2_submit_settings(c->peer.session, NGHTTP2_FLAG_NONE, settings, 1);
}

/* ---- HTTP/1.1 ---- */

static int h1_answer(struct conn *c)
{
    bool watch = is_watch(c->head, strcspn(c->head, "\r"));
    char out[1024];
    int len;

    if (watch)
        len = snprintf(out, sizeof(out),
                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n",
                       strlen(event_line), event_line);
    else
        len = snprintf(out, sizeof(out),
                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       strlen(plain_body), plain_body);
    return SSL_write(c->peer.ssl, out, len) == len ? 0 : -1;
}

/* ---- upgraded connections ---- */

static int raw_echo(struct h2_peer *p)
{
    int n = peer_read(p, p->out, PEER_RECORD);

    p->out_len = n > 0 ? (size_t)n : 0;
    return n;
}

static int raw_sink(struct conn *c)
{
    unsigned char buf[PEER_RECORD];
    int n = peer_read(&c->peer, buf, PEER_RECORD);

    if (n <= 0)
        return n;
    if (c->raw_left > 0 && c->raw_left <= (uint64_t)n)
        c->peer.out[c->peer.out_len++] = '.';
    c->raw_left -= c->raw_left < (uint64_t)n ? c->raw_left : (uint64_t)n;
    return n;
}

static int raw_source(struct conn *c)
{
    struct h2_peer *p = &c->peer;

    if (c->raw_left == 0)
        return raw_echo(p); /* nothing comes but the end */
    p->out_len = c->raw_left < PEER_RECORD ? (size_t)c->raw_left : PEER_RECORD;
    c->raw_left -= p->out_len;
    return 1;
}

static int raw_step(struct conn *c)
{
    int rc;

    do {
        rc = peer_flush(&c->peer, c);
        if (rc <= 0)
            return rc;
        if (c->raw == RAW_SINK)
            rc = raw_sink(c);
        else
            rc = c->raw == RAW_SOURCE ? raw_source(c) : raw_echo(&c->peer);
    } while (rc > 0);
    return rc;
}

/* The head asked for an upgrade: answers and becomes raw. */
static int raw_start(struct conn *c)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                 "Upgrade: SPDY/3.1\r\n"
                                 "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";
    const char *count = strstr(c->head, "count=");

    c->raw = RAW_ECHO;
    if (strstr(c->head, "command=sink"))
        c->raw = RAW_SINK;
    else if (strstr(c->head, "command=source"))
        c->raw = RAW_SOURCE;
    c->raw_left = count ? strtoull(count + 6, NULL, 10) : UINT64_MAX;
    memcpy(c->peer.out, answer, sizeof(answer) - 1);
    c->peer.out_len = sizeof(answer) - 1;
    return raw_step(c);
}

static int h1_step(struct conn *c)
{
    if (c->raw != RAW_NONE)
        return raw_step(c);
    for (;;) {
        int room = (int)(HEAD_MAX - c->head_len - 1);
        int n = peer_read(&c->peer, (unsigned char *)c->head + c->head_len, room);

        if (n <= 0)
            return n;
        c->head_len += (size_t)n;
        c->head[c->head_len] = '\0';
        if (strstr(c->head, "\r\n\r\n")) {
            c->head_len = 0;
            if (strcasestr(c->head, "\r\nupgrade:"))
                return raw_start(c);
            if (h1_answer(c) < 0)
                return -1;
        } else if (c->head_len == HEAD_MAX - 1) {
            return -1;
        }
    }
}

/* ---- connections ---- */

static int conn_start(struct conn *c)
{
    const unsigned char *name;
    unsigned len;

    SSL_get0_alpn_selected(c->peer.ssl, &name, &len);
    c->is_h1 = len != 2;
    return c->is_h1 ? 0 : session_start(c);
}

static int conn_step(struct conn *c)
{
    if (!c->peer.ready) {
        if (peer_handshake(&c->peer) < 0)
            return -1;
        if (!c->peer.ready)
            return 0;
        if (conn_start(c) < 0)
            return -1;
    }
    if (c->is_h1)
        return h1_step(c);
    return peer_receive(&c->peer) < 0 ? -1 : peer_send(&c->peer, c);
}

static void conn_open(struct origin *o)
{
    int fd = accept4(o->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct conn *c;

    if (fd < 0)
        return;
    c = calloc(1, sizeof(*c));
    if (!c || peer_init(&c->peer, o->ctx, o->epoll_fd, fd, c) < 0)
        die("connection");
    SSL_set_accept_state(c->peer.ssl);
}

static void run(struct origin *o)
{
    struct epoll_event ev[EVENTS];

    for (;;) {
        int n = epoll_wait(o->epoll_fd, ev, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            struct conn *c = ev[i].data.ptr;

            if (!c)
                conn_open(o);
            else if (conn_step(c) < 0) {
                peer_deinit(&c->peer);
                free(c);
            }
        }
    }
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *arg)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *chosen;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static void listen_start(struct origin *o)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

    o->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    o->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (o->epoll_fd < 0 || o->listen_fd < 0 ||
        bind(o->listen_fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
        listen(o->listen_fd, 4096) < 0 ||
        getsockname(o->listen_fd, (struct sockaddr *)&a, &len) < 0 ||
        epoll_ctl(o->epoll_fd, EPOLL_CTL_ADD, o->listen_fd, &ev) < 0)
        die("listen");
    printf("listening 127.0.0.1:%d\n", ntohs(a.sin_port));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct origin o;
    struct tls_files files = {0};

    if (argc != 3) {
        fputs("usage: watch_origin CERT KEY\n", stderr);
        return 2;
    }
    files.cert = argv[1];
    files.key = argv[2];
    signal(SIGPIPE, SIG_IGN);
    o.ctx = peer_tls_context(true, &files);
    SSL_CTX_set_alpn_select_cb(o.ctx, on_alpn, NULL);
    listen_start(&o);
    run(&o);
}
