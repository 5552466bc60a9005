/* SPDX-License-Identifier: Apache-2.0 */
/* connect: one TCP connection to the first of several addresses that answers: they are tried in
 * order, the next one when one fails or after 250 ms (RFC 8305 without its sorting). Private to
 * net.
 * Memory:  embedded in its owner; kr_connect_stop before the owner goes.
 * Limits:  KR_RESOLVE_MAX addresses. The deadline is the owner's.
 * Threads: the loop's. */
#ifndef KR_NET_CONNECT_H
#define KR_NET_CONNECT_H

#include "net/addr.h"
#include "net/loop.h"
#include "net/resolve.h"

struct kr_connect;

struct kr_attempt {
    struct kr_fd fd; /* fd.fd is -1 when it is not running */
    struct kr_connect *all;
    const struct kr_addr *to;
};

struct kr_connect { /* the fields belong to connect.c */
    struct kr_loop *loop;
    void (*done)(struct kr_connect *c, int rc, int fd, const struct kr_addr *to);
    struct kr_timer next_timer;
    size_t count;
    size_t next; /* the address to try next */
    size_t live;
    struct kr_addr addrs[KR_RESOLVE_MAX];
    struct kr_attempt attempts[KR_RESOLVE_MAX];
    struct kr_note why; /* of the last failure */
    int rc;
};

/* `done` is called once, never from inside this: 0 and the descriptor, which is the owner's, or
 * the last failure, told in c->why. KR_ENOMEM: it did not start. */
int kr_connect_start(struct kr_connect *c, struct kr_loop *loop, const struct kr_addr *addrs,
                     size_t count,
                     void (*done)(struct kr_connect *c, int rc, int fd, const struct kr_addr *to));
/* Closes what is open; no callback comes any more. A zeroed one is fine. */
void kr_connect_stop(struct kr_connect *c);

#endif
