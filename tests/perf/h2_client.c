/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

uint64_t h2_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

int h2_target_parse(struct h2_target *t, char *text)
{
    char *colon = strrchr(text, ':');
    char *end;
    unsigned long port;

    t->authority = strdup(text);
    if (!colon || !t->authority)
        return -1;
    *colon = '\0';
    port = strtoul(colon + 1, &end, 10);
    if (*end != '\0' || port == 0 || port > 65535)
        return -1;
    t->to.sin_family = AF_INET;
    t->to.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, text, &t->to.sin_addr) == 1 ? 0 : -1;
}

int h2_client_dial(struct h2_peer *p, SSL_CTX *ctx, int epoll_fd, const struct h2_target *t,
                   const char *server_name, void *owner)
{
    static const unsigned char alpn[] = "\x02h2";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&t->to, sizeof(t->to)) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || peer_init(p, ctx, epoll_fd, fd, owner) < 0)
        return -1;
    SSL_set_alpn_protos(p->ssl, alpn, 3);
    SSL_set_tlsext_host_name(p->ssl, server_name);
    SSL_set1_host(p->ssl, server_name);
    SSL_set_connect_state(p->ssl);
    return 0;
}

int h2_client_start(struct h2_peer *p, const struct h2_client_callbacks *callbacks, int32_t window,
                    void *owner)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)window}};
    nghttp2_session_callbacks *cb;
    int rc;

    if (nghttp2_session_callbacks_new(&cb) < 0)
        return -1;
    nghttp2_session_callbacks_set_on_header_callback(cb, callbacks->on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, callbacks->on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, callbacks->on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, callbacks->on_stream_close);
    rc = nghttp2_session_client_new(&p->session, cb, owner);
    nghttp2_session_callbacks_del(cb);
    if (rc < 0 || nghttp2_submit_settings(p->session, NGHTTP2_FLAG_NONE, settings, 2) < 0)
        return -1;
    return nghttp2_session_set_local_window_size(p->session, NGHTTP2_FLAG_NONE, 0, window) < 0 ? -1
                                                                                               : 0;
}

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

int32_t h2_client_get(struct h2_peer *p, const char *authority, const char *path,
                      const char *accept, void *stream)
{
    const nghttp2_nv nv[] = {
        header(":method", "GET"),        header(":scheme", "https"),
        header(":authority", authority), header(":path", path),
        header("accept", accept),        header("user-agent", "kuberelay-bench")};
    int32_t id =
        nghttp2_submit_request(p->session, NULL, nv, sizeof(nv) / sizeof(nv[0]), NULL, stream);

    return id < 0 ? -1 : id;
}

int h2_status(const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len)
{
    if (name_len != 7 || value_len != 3 || memcmp(name, ":status", 7) != 0)
        return 0;
    return (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

void h2_sort(uint32_t *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), compare);
}

uint32_t h2_quantile(const uint32_t *samples, size_t n, double q)
{
    return n == 0 ? 0 : samples[(size_t)(q * (double)(n - 1))];
}
