/* SPDX-License-Identifier: Apache-2.0 */
/* handshakes: how many TLS handshakes a port may have under way. When all places are taken the
 * listener rests, and those make room who keep the hub waiting: somebody who only opens
 * connections, or sends a byte now and then, cannot keep others out. Who waits for the hub keeps
 * its place: in a storm of agents on a slow machine each handshake takes long, and none of them is
 * to blame. Who has not sent one whole message makes room after 500 ms, or 50 ms if its address (or
 * one that shares its slot) has more than an eighth of the places; who was answered and is silent
 * since, after 3 s, or 1 s if its address has more than half of them. Threads: the worker's. */
#ifndef HUB_HANDSHAKES_H
#define HUB_HANDSHAKES_H

#include "base/list.h"
#include "base/pipe.h"
#include "base/sched.h"
#include "net/socket.h"

#define HUB_HANDSHAKE_SLOTS 256 /* of addresses, by their hash */

struct hub_handshakes { /* embed it; the fields belong to handshakes.c */
    struct kr_sched *sched;
    struct kr_listener *listener; /* set by the owner */
    struct kr_list running;       /* hub_handshake.link, oldest first */
    size_t count;
    size_t max;
    size_t by_slot[HUB_HANDSHAKE_SLOTS];
    struct kr_timer make_room;
    bool stopped; /* the listener rests for good (drain) */
};

/* One handshake; embedded in the connection that it makes. */
struct hub_handshake {
    struct kr_list link;
    struct kr_pipe *pipe;
    int64_t since_ms;
    uint8_t slot;
};

void hub_handshakes_init(struct hub_handshakes *hs, struct kr_sched *sched, size_t max);
void hub_handshakes_deinit(struct hub_handshakes *hs);
/* `peer`: its address, with the port. */
void hub_handshake_begin(struct hub_handshakes *hs, struct hub_handshake *h, struct kr_pipe *pipe,
                         const char *peer);
/* It is over, whatever came of it. */
void hub_handshake_end(struct hub_handshakes *hs, struct hub_handshake *h);
/* No new connections. */
void hub_handshakes_stop(struct hub_handshakes *hs);

#endif
