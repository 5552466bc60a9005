/* SPDX-License-Identifier: Apache-2.0 */
/* net_io: what all pipes of one loop share, so that an idle connection owns no buffer.
 * Memory:  about 420 KiB per loop.
 * Threads: the loop's. */
#ifndef KR_NET_NET_IO_H
#define KR_NET_NET_IO_H

#include "net/loop.h"

struct kr_tls_io;

/* NULL when memory is short. */
struct kr_tls_io *kr_tls_io_create(struct kr_loop *loop);
/* Pipes that still live are closed at once: their on_close comes with KR_ECANCELED, before this
 * returns. Not from inside a callback. */
void kr_tls_io_destroy(struct kr_tls_io *io);
struct kr_loop *kr_tls_io_loop(const struct kr_tls_io *io);
/* Live pipes, those in a handshake included (a gauge). */
size_t kr_tls_io_pipes(const struct kr_tls_io *io);

#endif
