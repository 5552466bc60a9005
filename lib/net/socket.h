/* SPDX-License-Identifier: Apache-2.0 */
/* socket: listening, accepting, and the options that every connection gets.
 * All descriptors are non-blocking and close-on-exec.
 * Limits:  at most 64 accepts a turn; when descriptors or memory run out (EMFILE and relatives)
 *          accepting pauses for 100 ms instead of spinning.
 * Threads: the loop's. */
#ifndef KR_NET_SOCKET_H
#define KR_NET_SOCKET_H

#include "net/addr.h"
#include "net/loop.h"

struct kr_listener;

struct kr_listener_config {
    const struct kr_hostport *at; /* numeric host ("[::]" takes both families); port 0: any */
    const char *unix_path;        /* instead of `at`: a Unix socket, replaced if stale */
    bool unix_open;               /* mode 0666 and not 0600: the owner judges who connects */
    bool reuse_port;              /* several listeners on one port, the kernel spreads */
    bool peer_speaks_first;       /* TCP: who says nothing is not accepted for a second or more */
    int user_timeout_ms;          /* for what is accepted, see kr_socket_tune */
    /* Takes the descriptor. `peer` is "ip:port" ("unix" for a Unix socket), lent. */
    void (*on_accept)(void *owner, int fd, const char *peer);
    /* Accepting paused because of errno `err`; may be NULL. */
    void (*on_pause)(void *owner, int err);
    void *owner;
};

/* NULL: see *why. */
struct kr_listener *kr_listener_create(struct kr_loop *loop, const struct kr_listener_config *cfg,
                                       struct kr_note *why);
void kr_listener_destroy(struct kr_listener *l);
/* Where it listens, "ip:port" or the path; valid while it lives. */
const char *kr_listener_text(const struct kr_listener *l);
uint16_t kr_listener_port(const struct kr_listener *l);
/* Stops and resumes accepting (overload, drain); connections wait in the backlog. */
void kr_listener_pause(struct kr_listener *l, bool paused);

/* No delay, keep-alive probes (15 s, then 3 times every 5 s), at most 256 KiB that the kernel has
 * not sent yet: what waits here can be overtaken, what waits there cannot (measured: bulk gets
 * faster by it, since the bytes are still in the cache). user_timeout_ms > 0: a connection
 * whose bytes are not acknowledged (or whose peer's window stays shut) that long is dead: right
 * for tunnels, wrong where a reader may rest. */
void kr_socket_tune(int fd, int user_timeout_ms);
/* A non-blocking TCP socket of the address' family, or -1 with errno. */
int kr_socket_open(const struct kr_addr *a);

/* A connected, non-blocking Unix socket, or -1 with the reason. Does not wait. */
int kr_socket_connect_unix(const char *path, struct kr_note *why);
/* Who has connected to a Unix socket, as the kernel says. False: not known. */
bool kr_socket_peer_uid(int fd, uint32_t *uid);

#endif
