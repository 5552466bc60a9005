/* SPDX-License-Identifier: Apache-2.0 */
/* handshakes: how many TLS handshakes a port may have under way. When all places are taken the
 * listener rests, and those that have lasted for a second make room: somebody who only opens
 * connections cannot keep others out. Threads: the worker's. */
#ifndef HUB_HANDSHAKES_H
#define HUB_HANDSHAKES_H

#include "base/list.h"
#include "base/pipe.h"
#include "base/sched.h"
#include "net/socket.h"

struct hub_handshakes { /* embed it; the fields belong to handshakes.c */
    struct kr_sched *sched;
    struct kr_listener *listener; /* set by the owner */
    struct kr_list running;       /* hub_handshake.link, oldest first */
    size_t count;
    size_t max;
    struct kr_timer make_room;
    bool stopped; /* the listener rests for good (drain) */
};

/* One handshake; embedded in the connection that it makes. */
struct hub_handshake {
    struct kr_list link;
    struct kr_pipe *pipe;
    int64_t since_ms;
};

void hub_handshakes_init(struct hub_handshakes *hs, struct kr_sched *sched, size_t max);
void hub_handshakes_deinit(struct hub_handshakes *hs);
void hub_handshake_begin(struct hub_handshakes *hs, struct hub_handshake *h, struct kr_pipe *pipe);
/* It is over, whatever came of it. */
void hub_handshake_end(struct hub_handshakes *hs, struct hub_handshake *h);
/* No new connections. */
void hub_handshakes_stop(struct hub_handshakes *hs);

#endif
