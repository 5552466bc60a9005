/* SPDX-License-Identifier: Apache-2.0 */
/* h2_client: what the benchmark's clients share: where to go, the session, a GET, their figures.
 *
 * Errors:  0 or a stream's number, or -1; errno says why where the system did it.
 * Threads: one. */
#ifndef PERF_H2_CLIENT_H
#define PERF_H2_CLIENT_H

#include "h2_peer.h"

#include <netinet/in.h>

struct h2_target {
    struct sockaddr_in to;
    const char *authority; /* kept to the program's end; NULL: not parsed yet */
};

struct h2_client_callbacks { /* those of nghttp2; `owner` is what was given to start */
    nghttp2_on_header_callback on_header;
    nghttp2_on_frame_recv_callback on_frame; /* or NULL */
    nghttp2_on_data_chunk_recv_callback on_data;
    nghttp2_on_stream_close_callback on_stream_close;
};

uint64_t h2_now_ns(void);

/* IPV4:PORT; changes `text`. */
int h2_target_parse(struct h2_target *t, char *text);

/* Connects, and begins TLS with a server of that name; `owner` comes back in epoll events. */
int h2_client_dial(struct h2_peer *p, SSL_CTX *ctx, int epoll_fd, const struct h2_target *t,
                   const char *server_name, void *owner);

/* After the handshake: the session, with that window for each stream and for all. */
int h2_client_start(struct h2_peer *p, const struct h2_client_callbacks *callbacks, int32_t window,
                    void *owner);

/* `stream` comes back as nghttp2's stream user data. The stream's number, or -1. */
int32_t h2_client_get(struct h2_peer *p, const char *authority, const char *path,
                      const char *accept, void *stream);

/* The status in a header, or 0: it is another one. */
int h2_status(const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len);

void h2_sort(uint32_t *samples, size_t n);
/* Of sorted ones; 0 if there are none. */
uint32_t h2_quantile(const uint32_t *samples, size_t n, double q);

#endif
