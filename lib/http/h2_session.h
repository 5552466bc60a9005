/* SPDX-License-Identifier: Apache-2.0 */
/* h2_session: HTTP/2 (RFC 9113) over a pipe in either role, by nghttp2.
 * Windows are manual: connection credit returns on receipt, stream credit on delivery
 * (kr_exchange_consumed). A stream starts with `window` and grows up to `window_max` while it
 * drains fast and the shared budget has bytes left; what it took goes back when it ends. Writing
 * gathers: frames of all streams that have something are packed into one run of bytes. Limits: see
 * kr_h2_config; abuse budgets (CVE-2023-44487, CVE-2025-8671 and relatives) apply if `abuse` is
 * set: an exhausted bucket is GOAWAY(ENHANCE_YOUR_CALM). */
#ifndef KR_HTTP_H2_SESSION_H
#define KR_HTTP_H2_SESSION_H

#include "base/pipe.h"
#include "base/sched.h"
#include "http/conn.h"

/* What the sessions of one thread share. */
struct kr_h2_shared {
    int64_t window_left; /* bytes that stream windows may still grow by, all sessions together */
    void *frame;         /* nghttp2's frame buffer, lent to one session at a time while it fills */
};

/* KR_ENOMEM */
int kr_h2_shared_init(struct kr_h2_shared *sh, int64_t window_budget);
void kr_h2_shared_deinit(struct kr_h2_shared *sh);

struct kr_h2_config {
    bool server;
    struct kr_sched *sched;
    const struct kr_conn_user *user_ops;
    void *owner;
    const void *peer;
    struct kr_h2_shared *shared; /* outlives the session */
    uint32_t window;             /* first stream window; 0: 64 KiB */
    uint32_t window_max;         /* 0: 4 MiB */
    uint32_t max_streams;        /* that the peer may open; 0: 1000 */
    size_t max_head;             /* 0: KR_HEAD_MAX */
    bool abuse;                  /* apply the abuse budget (API port) */
    bool connect_protocol;       /* announce SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441) */
    int64_t ping_after_ms;       /* PING after that much silence; 0: never */
    int64_t ping_timeout_ms;     /* and close if nothing came for that long after it */
    int64_t idle_timeout_ms;     /* close a connection without exchanges; 0: never */
    int64_t stall_timeout_ms;   /* reset a stream whose peer grants no window that long; 0: never */
    int64_t preface_timeout_ms; /* until the peer's SETTINGS; 0: none */
};

/* Attaches itself to the pipe. NULL when memory is short (the pipe is untouched). */
struct kr_conn *kr_h2_create(const struct kr_h2_config *cfg, struct kr_pipe *pipe);
/* Whether the peer's SETTINGS allow extended CONNECT. */
bool kr_h2_peer_allows_connect(const struct kr_conn *c);
/* Round trip of the last PING in microseconds; -1 if none came back yet. */
int64_t kr_h2_rtt_us(const struct kr_conn *c);

#endif
