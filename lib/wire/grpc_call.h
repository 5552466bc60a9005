/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_call: one bidirectional gRPC stream over an exchange, from either side
 * (gRPC over HTTP/2: POST, content-type application/grpc, te: trailers; grpc-status and
 * grpc-message in the trailers, or in a head that is the whole answer).
 *
 * The happy path, client: kr_grpc_open; both sides send and get on_message; kr_grpc_finish ends our
 * direction; on_end brings the server's status. Server: kr_grpc_accept in on_request; on_peer_done
 * when the client has ended its direction; kr_grpc_finish sends the status; on_end follows.
 * What can go wrong: a message that is too large, compressed or cut, an answer that is no gRPC, a
 * lost connection: on_end tells a status of gRPC's own list. A server answers bad messages with a
 * status and ignores what follows them; a client resets the stream.
 *
 * Life:    on_end comes exactly once and last; from then on, or after kr_grpc_abort, the stream is
 *          idle and may be deinited, from within on_room too, but not from within on_message. No
 *          call makes a callback.
 * Memory:  embedded by the owner; a message being read and messages waiting to be sent, each
 * bounded by the limits given; waiting bytes go out as fast as the peer's window allows. Errors:
 * KR_EFULL (too much is waiting), KR_ETOOBIG, KR_ENOMEM, KR_ECANCELED (not open). Threads: that of
 * the exchange. */
#ifndef KR_WIRE_GRPC_CALL_H
#define KR_WIRE_GRPC_CALL_H

#include "base/buf.h"
#include "http/conn.h"
#include "http/exchange.h"
#include "wire/grpc_frame.h"
#include "wire/grpc_status.h"

#define KR_GRPC_ATTACH "/kuberelay.v1.Agent/Attach"

struct kr_grpc_stream;

struct kr_grpc_user {
    /* One message, lent for the call. Non-zero (a code of base/err.h) aborts the stream: on_end
     * follows with that code's gRPC status. */
    int (*on_message)(void *user, struct kr_bytes message);
    /* Server only: the client has ended its direction. NULL: finish with OK. */
    void (*on_peer_done)(void *user);
    /* `message` is the peer's text, or ours where the call broke; lent for the call. */
    void (*on_end)(void *user, int status, struct kr_bytes message);
    /* Bytes went out and less than half of limits.queue waits: a good time to send more. May come
     * often. NULL: nobody wants to know. */
    void (*on_room)(void *user);
};

struct kr_grpc_limits {
    size_t message; /* largest message taken */
    size_t queue;   /* most bytes that wait to be sent */
};

struct kr_grpc_stream {     /* embed it; the fields belong to grpc_call.c */
    struct kr_exchange *ex; /* NULL: idle */
    const struct kr_grpc_user *ops;
    void *user;
    struct kr_grpc_reader reader;
    struct kr_buf out; /* bytes that wait */
    size_t sent;       /* of them, already taken */
    bool server;
    bool head_sent;        /* server: the response head went out */
    bool finished;         /* our direction ends behind what waits */
    bool has_status;       /* client: grpc-status came */
    int status;            /* the peer's, or the one we finish with */
    struct kr_buf message; /* its text */
    bool paused;
    size_t owed; /* bytes that came while it was paused */
};

/* Client: starts a call. KR_EUNAVAILABLE if the connection takes no exchange now. */
int kr_grpc_open(struct kr_grpc_stream *s, struct kr_conn *conn, struct kr_bytes authority,
                 struct kr_bytes path, struct kr_grpc_limits limits, const struct kr_grpc_user *ops,
                 void *user);

/* Server: takes a request over, within on_request; the caller has looked at ex->head.path. A
 * request that is no gRPC is answered (415, 405) and KR_EPROTO returned: the stream then stays idle
 * and the exchange is out of the caller's hands. */
int kr_grpc_accept(struct kr_grpc_stream *s, struct kr_exchange *ex, struct kr_grpc_limits limits,
                   const struct kr_grpc_user *ops, void *user);
/* Server: answers a request with that status only; takes the exchange over, within on_request. */
void kr_grpc_reject(struct kr_exchange *ex, int status, const char *message);

int kr_grpc_send(struct kr_grpc_stream *s, struct kr_bytes message);
/* Ends our direction behind what waits. Server: with that status; a client gives 0 and "". */
int kr_grpc_finish(struct kr_grpc_stream *s, int status, struct kr_bytes message);
/* Stops taking: the peer gets no more credit. What it already may send, one window of the
 * connection at most, still comes as on_message (so much the owner must be able to take). */
void kr_grpc_pause(struct kr_grpc_stream *s);
/* Takes again, and gives the credit that is owed. Both may be called when it is so already. */
void kr_grpc_resume(struct kr_grpc_stream *s);
/* At once; no callback follows. */
void kr_grpc_abort(struct kr_grpc_stream *s);
/* Aborts what is open, frees what it holds; a zeroed stream is fine. */
void kr_grpc_deinit(struct kr_grpc_stream *s);

static inline bool kr_grpc_is_open(const struct kr_grpc_stream *s)
{
    return s->ex != NULL;
}

static inline size_t kr_grpc_waiting(const struct kr_grpc_stream *s)
{
    return s->out.n - s->sent;
}

#endif
