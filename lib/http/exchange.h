/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: one HTTP request and its response, on any leg and in either HTTP version. The same type
 * serves both ends: on a server connection the incoming message is the request and the outgoing one
 * the response; on a client connection it is the other way round.
 *
 * Incoming: head, then body bytes by push, then end. Each byte handed over by on_body is owed back:
 * kr_exchange_consumed tells the connection that it left memory (it returns flow-control credit, or
 * reads on). Outgoing: head by kr_exchange_send_head, then body by pull: after kr_exchange_ready
 * the connection asks `available` and `take` whenever its peer can take bytes.
 *
 * Upgrades (RFC 9110 section 7.8) over HTTP/1.1: a server's user sees `upgrade` and answers 101
 * with kr_exchange_send_head, its Upgrade field included; a client's user opens with `protocol` in
 * the head and gets on_head with status 101. From then on both directions are raw: bytes come as
 * on_body and go by available and take, unframed, each at once, as long as either side likes.
 * on_end(NULL) is the end of the peer's direction; the other one goes on for at most
 * KR_UPGRADE_LINGER_MS more. When `available` says end, what is left is sent, and that ends the
 * whole: on_done(0), and the connection closes (a pipe has no half that could be ended alone). Any
 * other final status is an ordinary answer. Either way the connection is never used again.
 *
 * Life: an exchange belongs to its connection. It ends once: either by on_done, called by the
 * connection after both messages have ended or something broke (rc != 0), or by the user's
 * kr_exchange_abort, after which nothing is called any more. From then on the pointer is dead.
 * No callback is made from inside a call into the exchange, so the user may call from anywhere.
 * Memory: `head` (the incoming one) stays until the end, or until kr_exchange_drop_head.
 * Threads: all on the connection's thread. */
#ifndef KR_HTTP_EXCHANGE_H
#define KR_HTTP_EXCHANGE_H

#include "http/head.h"

struct kr_exchange;

/* How long the outgoing direction of an upgraded connection outlives the incoming one. */
#define KR_UPGRADE_LINGER_MS 10000

enum kr_abort { /* what the peer is told (HTTP/2: RST_STREAM code; HTTP/1.1: connection closed) */
                KR_ABORT_CANCEL,
                KR_ABORT_INTERNAL,
                KR_ABORT_REFUSED, /* only for a request that was handed to nobody: clients resend
                                     any method */
};

struct kr_exchange_user {
    /* Client side only: the response head is in ex->head (a final status, or the 101 that was asked
     * for). */
    void (*on_head)(void *user);
    void (*on_body)(void *user, struct kr_bytes in);
    /* The incoming message ended; trailers is NULL if there were none, else lent for the call. */
    void (*on_end)(void *user, const struct kr_head *trailers);
    /* How much of the outgoing body can be taken now; *end: and nothing follows it. */
    size_t (*available)(void *user, bool *end);
    /* Takes exactly n <= available bytes, in order. */
    void (*take)(void *user, uint8_t *out, size_t n);
    /* The end: 0, or KR_ERESET (by the peer; see ex->reset_code), KR_EREFUSED (a request that the
     * peer provably did not process), KR_ECONNLOST, KR_EPROTO, KR_ETOOBIG. It is 0 as well when the
     * response is whole and left the rest of the request unread (an early 413). */
    void (*on_done)(void *user, int rc);
};

struct kr_exchange_ops {
    /* `end`: no body follows. Names and values are copied before it returns. 0, KR_ENOMEM or
     * KR_EINVAL (a head that cannot be written; 101 without a request for it or its Upgrade). */
    int (*send_head)(struct kr_exchange *ex, const struct kr_head *head, bool end);
    /* A 100 (Continue); only on a server connection, before send_head. */
    void (*send_continue)(struct kr_exchange *ex);
    /* Fields to send after the body; before `available` says end. */
    int (*send_trailers)(struct kr_exchange *ex, const struct kr_head *trailers);
    void (*ready)(struct kr_exchange *ex);
    void (*consumed)(struct kr_exchange *ex, size_t n);
    void (*abort)(struct kr_exchange *ex, enum kr_abort how);
};

struct kr_exchange { /* read it; the fields belong to the connection */
    const struct kr_exchange_ops *ops;
    const struct kr_exchange_user *user_ops;
    void *user;
    struct kr_conn *conn;
    struct kr_head head; /* the incoming head */
    bool upgrade; /* server side: the request asks for an upgrade. `in_ended` is false: what follows
                     the head is held, 64 KiB at most, until the answer; only 101 hands it over */
    bool expects_continue; /* the client waits for 100 before it sends the body */
    int refuse_status;     /* server side: the head is beyond a limit; answer 414 or 431; else 0 */
    bool patient;          /* set by the user: a peer that takes no bytes for long is normal here */
    bool in_ended;       /* the incoming message is complete; within on_request and on_head it tells
                            already that no body follows (on_end comes all the same) */
    bool head_sent;      /* the outgoing head was handed to the transport: a request may have run */
    uint32_t reset_code; /* with KR_ERESET over HTTP/2: the peer's code (RFC 9113 section 7) */
};

/* On a server connection: within on_request. Body and end come afterwards. */
static inline void kr_exchange_attach(struct kr_exchange *ex, const struct kr_exchange_user *ops,
                                      void *user)
{
    ex->user_ops = ops;
    ex->user = user;
}

static inline int kr_exchange_send_head(struct kr_exchange *ex, const struct kr_head *head,
                                        bool end)
{
    return ex->ops->send_head(ex, head, end);
}

static inline void kr_exchange_send_continue(struct kr_exchange *ex)
{
    if (ex->expects_continue)
        ex->ops->send_continue(ex);
    ex->expects_continue = false;
}

static inline int kr_exchange_send_trailers(struct kr_exchange *ex, const struct kr_head *trailers)
{
    return ex->ops->send_trailers(ex, trailers);
}

static inline void kr_exchange_ready(struct kr_exchange *ex)
{
    ex->ops->ready(ex);
}

static inline void kr_exchange_consumed(struct kr_exchange *ex, size_t n)
{
    if (n != 0)
        ex->ops->consumed(ex, n);
}

static inline void kr_exchange_abort(struct kr_exchange *ex, enum kr_abort how)
{
    ex->ops->abort(ex, how);
}

/* Gives the incoming head's memory back before the end. */
static inline void kr_exchange_drop_head(struct kr_exchange *ex)
{
    kr_head_deinit(&ex->head);
}

#endif
