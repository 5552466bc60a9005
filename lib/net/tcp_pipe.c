/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tcp_pipe.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "net/stream.h"

static void decode(struct kr_stream *s)
{
    struct kr_tls_io *io = s->io;
    size_t n = io->in_n - io->in_at;

    if (n != 0) {
        const uint8_t *p = io->in + io->in_at;

        io->in_at = io->in_n;
        kr_stream_deliver(s, p, n);
    }
    if (s->peer_closed && kr_stream_wants_more(s))
        kr_stream_deliver_eof(s);
}

static void encode(struct kr_stream *s, const uint8_t *plain, size_t n)
{
    KR_ASSERT(kr_stream_put(s, plain, n)); /* the stream stops asking long before it is full */
}

static void on_deadline(struct kr_stream *s)
{
    (void)s; /* none is ever set */
}

static void tell(struct kr_stream *s, int rc, const struct kr_note *why)
{
    if (s->pipe.user_ops != NULL)
        s->pipe.user_ops->on_close(s->pipe.user, rc, why);
}

static void destroy(struct kr_stream *s)
{
    kr_stream_deinit(s);
    free(s);
}

static const struct kr_stream_codec codec = {
    .decode = decode,
    .encode = encode,
    .on_deadline = on_deadline,
    .tell = tell,
    .destroy = destroy,
};

struct kr_pipe *kr_tcp_pipe_create(struct kr_tls_io *io, int fd)
{
    struct kr_stream *s = calloc(1, sizeof *s);

    if (s == NULL) {
        close(fd);
        return NULL;
    }
    kr_stream_init(s, &codec, io, fd);
    return &s->pipe;
}
