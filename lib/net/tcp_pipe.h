/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_pipe: a kr_pipe (base/pipe.h) without encryption, over a connected stream descriptor (the
 * admin port, a Unix socket). The limits are those of tls_pipe.
 * Errors:  in on_close: KR_ECONNLOST, KR_ETIMEDOUT, KR_ECANCELED, KR_ENOMEM.
 * Threads: the loop's. */
#ifndef KR_NET_TCP_PIPE_H
#define KR_NET_TCP_PIPE_H

#include "base/pipe.h"
#include "net/net_io.h"

/* Takes the descriptor in every case. NULL when memory is short. Attach before long. */
struct kr_pipe *kr_tcp_pipe_create(struct kr_tls_io *io, int fd);

#endif
