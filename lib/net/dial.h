/* SPDX-License-Identifier: Apache-2.0 */
/* dial: from a name to a connected descriptor: resolve, connect (the next address is tried when
 * one fails or after 250 ms, the first that answers wins), and CONNECT through a proxy if there is
 * one.
 * Memory:  a dial is one object that is gone after its callback or kr_dial_cancel.
 * Limits:  one deadline for the whole (10 s unless given), 5 s of it for the name.
 * Errors:  to the callback: KR_ERESOLVE, KR_ECONNREFUSED, KR_ETIMEDOUT, KR_ECONNLOST, KR_EDENIED
 *          (the proxy wants other credentials), KR_EPROTO, KR_ENOMEM; the note says which step and
 *          address.
 * Threads: the loop's. */
#ifndef KR_NET_DIAL_H
#define KR_NET_DIAL_H

#include "net/addr.h"
#include "net/loop.h"
#include "net/proxy.h"

struct kr_dial;

struct kr_dial_config {
    const char *host; /* a name or an address; copied */
    uint16_t port;
    const struct kr_proxy *proxy; /* copied; NULL: direct. Its no_proxy list is honoured */
    int64_t timeout_ms;           /* 0: 10 s */
    int user_timeout_ms;          /* see kr_socket_tune */
    /* Exactly once, never from inside kr_dial_start. On 0 the descriptor is the owner's (tuned,
     * non-blocking), else it is -1. `peer` is the address that was reached, as text. */
    void (*on_done)(void *owner, int rc, int fd, const char *peer, const struct kr_note *why);
    void *owner;
};

/* NULL when memory is short or the host is nonsense (no callback then). */
struct kr_dial *kr_dial_start(struct kr_loop *loop, const struct kr_dial_config *cfg,
                              struct kr_note *why);
/* No callback comes any more; NULL is fine. */
void kr_dial_cancel(struct kr_dial *d);

#endif
