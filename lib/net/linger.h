/* SPDX-License-Identifier: Apache-2.0 */
/* linger: closes a connection so that the peer still gets the last bytes: our direction ends first,
 * then what the peer still sends is thrown away until it ends too, because the kernel answers
 * unread bytes with a reset that would overtake our last answer. Private to net. Limits: 1 s, 1
 * MiB, 1,024 descriptors at a time (beyond that they are closed at once). Threads: the loop's. */
#ifndef KR_NET_LINGER_H
#define KR_NET_LINGER_H

#include <stddef.h>

#include "net/loop.h"

struct kr_lingers { /* the fields belong to linger.c */
    struct kr_loop *loop;
    struct kr_list list; /* lingering.link */
    size_t count;
};

void kr_lingers_init(struct kr_lingers *l, struct kr_loop *loop);
void kr_lingers_deinit(struct kr_lingers *l);       /* closes them all */
void kr_linger_close(struct kr_lingers *l, int fd); /* takes the fd */

#endif
