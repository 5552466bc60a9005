/* SPDX-License-Identifier: Apache-2.0 */
/* forward: joins an incoming exchange (a client's request) to an outgoing one, at the hub and at
 * the agent alike. Bodies flow by credit: bytes wait in a queue that is bounded by the window which
 * was granted to their source, and are owed back to the source only when their sink takes them.
 *
 * Life: kr_forward_in; then either kr_forward_open, or kr_forward_release to answer by other means.
 * When the client's side ends, for whatever reason, the outgoing exchange is canceled if it still
 * runs, and on_finished comes, once, last; the owner may free the forward in it.
 * Memory: embedded in its owner; the queues hold at most the windows granted.
 * Threads: one thread. */
#ifndef KR_HTTP_FORWARD_H
#define KR_HTTP_FORWARD_H

#include "base/buf.h"
#include "http/body_queue.h"
#include "http/conn.h"

struct kr_forward;

struct kr_forward_ops {
    /* The response head is in fw->out->head: build in `to` (empty) what the client gets. A code:
     * the answer is not passed on; the outgoing exchange is canceled and on_failed comes with it.
     */
    int (*on_response)(struct kr_forward *fw, struct kr_head *to);
    /* Each run of response bytes, before it is queued; may set fw->held. May be NULL. */
    void (*on_response_body)(struct kr_forward *fw, struct kr_bytes in);
    /* The outgoing exchange broke; it is gone. fw->response_begun tells whether the client has the
     * head already. The owner answers (kr_forward_release), ends cleanly (kr_forward_finish_at) or
     * cuts (kr_forward_cut). */
    void (*on_failed)(struct kr_forward *fw, int rc);
    /* Both sides are over; client_rc is 0 if the client has the whole answer. */
    void (*on_finished)(struct kr_forward *fw, int client_rc);
    /* The response head was passed on: what was kept to answer by other means may go. May be NULL.
     */
    void (*on_begun)(struct kr_forward *fw);
    /* After kr_forward_gather: the request body is whole. May be NULL if that is never called. */
    void (*on_gathered)(struct kr_forward *fw);
};

struct kr_forward { /* read the fields; they belong to forward.c */
    const struct kr_forward_ops *ops;
    struct kr_exchange *in;  /* NULL once it ended or was released */
    struct kr_exchange *out; /* NULL before open and once it ended */
    struct kr_body_queue up;
    struct kr_body_queue down;
    uint64_t up_max; /* set by the owner: a longer request body is on_failed(KR_ETOOBIG); 0: any */
    size_t held;     /* set by the owner in on_response_body: so many of the last bytes wait for
                        more; let go when the answer ends */
    uint64_t up_bytes;         /* of request body that came in */
    uint64_t down_bytes;       /* of response body that came in */
    struct kr_body_queue kept; /* what went out, until the answer begins or it is too much */
    uint64_t again;            /* bytes at the front of `up` that went out before */
    bool up_taken; /* some of the request body went out and is not kept: no second time */
    bool up_ended;
    bool gathering; /* the request body is being collected (kr_forward_gather) */
    bool down_ended;
    bool response_begun;     /* the response head was passed on */
    uint32_t out_reset_code; /* of `out`, if the peer reset it */
    bool out_was_sent; /* once `out` ended: the request's head had been handed to the transport */
    bool raw;          /* set by the owner in on_response: an upgrade was accepted; when the far
                          side is done without an end of its own, that is the end */
    bool tap;          /* set by the owner: call on_response_body */
    bool trailers;     /* set by the owner in on_response: those of the answer are passed on */
};

void kr_forward_init(struct kr_forward *fw, const struct kr_forward_ops *ops);
/* Frees what is queued; the exchanges must be gone. */
void kr_forward_deinit(struct kr_forward *fw);
/* Within on_request of the incoming connection. */
void kr_forward_in(struct kr_forward *fw, struct kr_exchange *in);
/* Before kr_forward_open, and with up_max set: collects the request body here, whatever its window;
 * on_gathered comes with its end, once, and not from inside this call. */
void kr_forward_gather(struct kr_forward *fw);
/* After on_gathered: appends the body to `out`; it is gone from here. Those of kr_buf. */
int kr_forward_take_body(struct kr_forward *fw, struct kr_buf *out);
/* Puts a whole body in its place. KR_ENOMEM. */
int kr_forward_put_body(struct kr_forward *fw, struct kr_bytes body);
/* Sends the request on `conn`: `head` is copied. KR_EFULL: the connection takes none now. May be
 * called again from on_failed, if no byte of a body was taken (up_taken) and no answer begun. */
int kr_forward_open(struct kr_forward *fw, struct kr_conn *conn, const struct kr_head *head);
/* Cancels the outgoing exchange, if there is one, and hands the incoming one to the caller, who
 * answers it. No callback of `ops` comes any more. */
struct kr_exchange *kr_forward_release(struct kr_forward *fw);
/* After on_failed with response_begun: the body ends, as if whole, after its first `total` bytes
 * (or after those that are gone already, if that is more). */
void kr_forward_finish_at(struct kr_forward *fw, uint64_t total);
/* The same, and `tail` follows, which is copied: an end in the words of the protocol on top.
 * Without memory the tail is left out. */
void kr_forward_finish_with(struct kr_forward *fw, uint64_t total, struct kr_bytes tail);
/* Whether no byte behind the first `total` has gone to the client: only then is such an end true.
 */
static inline bool kr_forward_may_finish_at(const struct kr_forward *fw, uint64_t total)
{
    return fw->down_bytes - fw->down.size <= total;
}
/* The client sees that the answer is cut short. Nothing of `ops` comes any more. */
void kr_forward_cut(struct kr_forward *fw);

#endif
