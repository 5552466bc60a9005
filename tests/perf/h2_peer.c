/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void tls_die(const char *what)
{
    fprintf(stderr, "%s: ", what);
    ERR_print_errors_fp(stderr);
    exit(2);
}

static void load_files(SSL_CTX *ctx, const struct tls_files *f)
{
    if (f->ca && SSL_CTX_load_verify_locations(ctx, f->ca, NULL) != 1)
        tls_die(f->ca);
    if (f->cert && SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1)
        tls_die(f->cert);
    if (f->key && SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) != 1)
        tls_die(f->key);
}

SSL_CTX *peer_tls_context(bool server, const struct tls_files *files)
{
    SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());

    if (!ctx)
        tls_die("SSL_CTX_new");
    SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    if (SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") != 1)
        tls_die("cipher");
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_num_tickets(ctx, 0);
    if (!server)
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    load_files(ctx, files);
    return ctx;
}

int peer_init(struct h2_peer *p, SSL_CTX *ctx, int epoll_fd, int fd, void *data)
{
    const int one = 1;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = data};

    memset(p, 0, offsetof(struct h2_peer, out));
    p->fd = fd;
    p->epoll_fd = epoll_fd;
    p->mask = EPOLLIN;
    p->ssl = SSL_new(ctx);
    if (!p->ssl || SSL_set_fd(p->ssl, fd) != 1)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

void peer_deinit(struct h2_peer *p)
{
    nghttp2_session_del(p->session);
    SSL_free(p->ssl);
    if (p->fd >= 0)
        close(p->fd);
    p->session = NULL;
    p->ssl = NULL;
    p->fd = -1;
}

/* What an unfinished TLS call waits for; -1 when it never will be finished. */
static int again(struct h2_peer *p, int rc)
{
    int why = SSL_get_error(p->ssl, rc);

    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return 0;
    ERR_clear_error();
    return -1;
}

int peer_handshake(struct h2_peer *p)
{
    int rc = SSL_do_handshake(p->ssl);

    if (rc == 1)
        p->ready = true;
    return rc == 1 ? 0 : again(p, rc);
}

int peer_read(struct h2_peer *p, unsigned char *buf, int max)
{
    int n = SSL_read(p->ssl, buf, max);

    return n > 0 ? n : again(p, n);
}

int peer_receive(struct h2_peer *p)
{
    unsigned char buf[PEER_RECORD];
    int n;

    while ((n = peer_read(p, buf, PEER_RECORD)) > 0) {
        if (nghttp2_session_mem_recv(p->session, buf, (size_t)n) < 0)
            return -1;
    }
    return n;
}

static int next_piece(struct h2_peer *p)
{
    ssize_t n = nghttp2_session_mem_send(p->session, &p->rest);

    if (n < 0)
        return -1;
    p->rest_len = (size_t)n;
    return 0;
}

/* Fills `out` with all that fits, so that small frames share a record. */
static int collect(struct h2_peer *p)
{
    while (p->out_len < PEER_RECORD) {
        size_t take = PEER_RECORD - p->out_len;

        if (p->rest_len == 0 && next_piece(p) < 0)
            return -1;
        if (p->rest_len == 0)
            return 0;
        if (take > p->rest_len)
            take = p->rest_len;
        memcpy(p->out + p->out_len, p->rest, take);
        p->out_len += take;
        p->rest += take;
        p->rest_len -= take;
    }
    return 0;
}

/* 1 when all of `out` was taken, 0 when the socket is full, -1 when it is over. */
static int flush_out(struct h2_peer *p)
{
    size_t done = 0;

    while (done < p->out_len) {
        int n = SSL_write(p->ssl, p->out + done, (int)(p->out_len - done));

        if (n <= 0) {
            memmove(p->out, p->out + done, p->out_len - done);
            p->out_len -= done;
            return again(p, n);
        }
        done += (size_t)n;
    }
    p->out_len = 0;
    return 1;
}

static int update_mask(struct h2_peer *p, void *data, bool blocked)
{
    struct epoll_event ev = {.events = EPOLLIN | (blocked ? EPOLLOUT : 0), .data.ptr = data};

    if (ev.events == p->mask)
        return 0;
    p->mask = ev.events;
    return epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, p->fd, &ev);
}

int peer_flush(struct h2_peer *p, void *data)
{
    int rc = flush_out(p);

    return rc < 0 || update_mask(p, data, rc == 0) < 0 ? -1 : rc;
}

int peer_send(struct h2_peer *p, void *data)
{
    int rc;

    do {
        if (collect(p) < 0)
            return -1;
        if (p->out_len == 0)
            return update_mask(p, data, false);
        rc = flush_out(p);
    } while (rc == 1);
    return rc < 0 ? -1 : update_mask(p, data, true);
}
