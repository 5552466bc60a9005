/* SPDX-License-Identifier: Apache-2.0 */
/* h1_conn: HTTP/1.1 (RFC 9112) over a pipe, as server (keep-alive, pipelined requests are served
 * one after the other, 100-continue) and as client (one exchange at a time, reused while it stays
 * clean). The codec proper is h1_codec: bytes in, events out. A request that cannot be parsed, or
 * is ambiguous (RFC 9112 section 6.3), is answered 400 (431, 414, 501) with a short text body by
 * way of on_bad_request, and the connection is closed. Limits: head KR_HEAD_MAX in all; time to a
 * whole head, idle time between requests: see config.
 *
 * Server: an answer that is whole before its request says Connection: close, and the connection
 * closes by flush. A client that ends its side while an exchange runs has gone. Pipelined bytes and
 * unconsumed body bytes stop the reading beyond 64 KiB each. A request for an upgrade that has a
 * body is refused with 400; what comes behind one is held, handed over after 101, and after any
 * other answer thrown away unread.
 *
 * Client: open gives NULL also for a head that cannot be written safely. The connection is reused
 * only if both messages ended cleanly; 1xx answers are skipped, 101 without having asked for it, or
 * to another protocol, is an error. A head with `protocol` (at most 64 bytes; no length above 0)
 * asks for an upgrade; bytes of the user wait for the 101.
 *
 * Upgraded: no time-out applies but KR_UPGRADE_LINGER_MS, and drain does not cut it. It ends with
 * KR_ECONNLOST when the pipe breaks, and with 0 at a client whose server had ended its direction.
 *
 * Memory: idle, a connection holds no buffer. Threads: one. */
#ifndef KR_HTTP_H1_CONN_H
#define KR_HTTP_H1_CONN_H

#include "base/buf.h"
#include "base/pipe.h"
#include "base/sched.h"
#include "http/conn.h"

struct kr_h1_config {
    struct kr_sched *sched;
    const struct kr_conn_user *user_ops;
    void *owner;
    const void *peer;
    size_t max_head;         /* KR_HEAD_MAX if 0 */
    int64_t head_timeout_ms; /* server: from the first byte of a head to its end; 0: none */
    int64_t idle_timeout_ms; /* server: between requests; client: kept unused; 0: none */
    /* Server: what to answer to a request that is refused before it became one: fills `head` and
     * `body` (Status JSON in the hub); NULL: an empty answer. */
    void (*on_bad_request)(void *owner, int status, const char *why, struct kr_head *head,
                           struct kr_buf *body);
};

/* The connection attaches itself to the pipe. NULL when memory is short (the pipe is untouched). */
struct kr_conn *kr_h1_server_create(const struct kr_h1_config *cfg, struct kr_pipe *pipe);
struct kr_conn *kr_h1_client_create(const struct kr_h1_config *cfg, struct kr_pipe *pipe);

#endif
