/* SPDX-License-Identifier: Apache-2.0 */
/* resolve: names to addresses without blocking, by c-ares.
 * A numeric address is its own answer; /etc/hosts comes before DNS; /etc/resolv.conf is read anew
 * for each question, since an edge machine changes networks. The order of the answer is RFC 6724's.
 * Memory:  a question is one object that is gone after its callback or kr_resolve_cancel.
 * Limits:  KR_RESOLVE_MAX addresses; a deadline (5 s unless given).
 * Errors:  to the callback: KR_ERESOLVE, KR_ETIMEDOUT, KR_ENOMEM.
 * Threads: the loop's. */
#ifndef KR_NET_RESOLVE_H
#define KR_NET_RESOLVE_H

#include "net/addr.h"
#include "net/loop.h"

#define KR_RESOLVE_MAX 16

struct kr_resolve;

/* Exactly once, never from inside kr_resolve_start; the addresses are lent for the call. */
typedef void kr_resolve_done(void *owner, int rc, const struct kr_addr *addrs, size_t count,
                             const struct kr_note *why);

/* timeout_ms 0: 5 s. NULL when memory is short (no callback then). */
struct kr_resolve *kr_resolve_start(struct kr_loop *loop, const char *host, uint16_t port,
                                    int64_t timeout_ms, kr_resolve_done *done, void *owner);
/* No callback comes any more; NULL is fine. */
void kr_resolve_cancel(struct kr_resolve *r);

#endif
