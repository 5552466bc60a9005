/* SPDX-License-Identifier: Apache-2.0 */
/* h2_peer: one non-blocking TLS 1.3 connection with an nghttp2 session on top, for the benchmark.
 *
 * Memory:  init/deinit; embed it. The owner creates `session` once `ready` is set.
 * Errors:  0, or -1 when the connection is over.
 * Threads: one. */
#ifndef PERF_H2_PEER_H
#define PERF_H2_PEER_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEER_RECORD = 16384 };

struct h2_peer {
    int fd;
    int epoll_fd;
    uint32_t mask;
    SSL *ssl;
    nghttp2_session *session; /* owned */
    bool ready;               /* the handshake is over */
    const uint8_t *rest;      /* of a piece from nghttp2 that did not fit into `out` */
    size_t rest_len;
    size_t out_len; /* bytes of `out` that SSL_write has not taken yet */
    unsigned char out[PEER_RECORD];
};

struct tls_files {
    const char *ca;
    const char *cert;
    const char *key;
};

/* A context for TLS_AES_128_GCM_SHA256 only; exits with a message when a file is not usable. */
SSL_CTX *peer_tls_context(bool server, const struct tls_files *files);

/* Takes `fd`; `data` comes back in epoll events. */
int peer_init(struct h2_peer *p, SSL_CTX *ctx, int epoll_fd, int fd, void *data);
void peer_deinit(struct h2_peer *p);

int peer_handshake(struct h2_peer *p);                         /* sets ready when it is done */
int peer_read(struct h2_peer *p, unsigned char *buf, int max); /* bytes, 0: not now, -1: over */
int peer_receive(struct h2_peer *p);                           /* all that is there, to nghttp2 */
int peer_send(struct h2_peer *p, void *data);                  /* all that nghttp2 wants to send */

/* Without a session: sends what the owner put into `out`. 1 all, 0 not yet, -1 over. */
int peer_flush(struct h2_peer *p, void *data);

#endif
