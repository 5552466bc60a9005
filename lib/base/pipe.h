/* SPDX-License-Identifier: Apache-2.0 */
/* pipe: one end of a byte stream, the seam between the room that moves bytes and the room that
 * understands them. A provider (TLS over TCP, memory in tests) embeds struct kr_pipe and serves its
 * ops; a user (an HTTP connection) is attached to it and is called back.
 *
 * Reading is push: the user takes all bytes that it is handed; it stops the source with
 * kr_pipe_set_reading(p, false), after which at most what was already decrypted is still handed
 * over. Writing is pull: the user says that it has something (kr_pipe_want_fill); the provider asks
 * for bytes when the stream can take them, so that nothing is queued between the rooms.
 *
 * Life: kr_pipe_close may be called at any time, once. on_close comes exactly once, last, and never
 * from inside a call into the pipe; the provider frees the pipe right after it returns. A user that
 * was attached must live until then.
 * Threads: both ends belong to one thread. */
#ifndef KR_BASE_PIPE_H
#define KR_BASE_PIPE_H

#include "base/bytes.h"
#include "base/note.h"

struct kr_pipe;

struct kr_pipe_user {
    /* Bytes came; lent for the call. The user may call into the pipe, close included. */
    void (*on_bytes)(void *user, struct kr_bytes in);
    /* The stream can take bytes: write up to `room` (>= 1024) to `out`, return how many; 0: no more
     * now. Called again until it returns 0 or the stream is full. Must not call into the pipe but
     * for kr_pipe_close. */
    size_t (*fill)(void *user, uint8_t *out, size_t room);
    /* The peer ended its direction; the other one is still open. */
    void (*on_eof)(void *user);
    /* The end; rc is 0 after a close that the user asked for, else why; note is never NULL. */
    void (*on_close)(void *user, int rc, const struct kr_note *why);
};

enum kr_pipe_close {
    /* Fill until it returns 0, send, then close so that the peer still reads it: what it goes on
     * sending is thrown away for a while. Nothing is handed to the user any more but on_close.
     * Bounded by a deadline. */
    KR_PIPE_FLUSH,
    KR_PIPE_ABORT, /* at once */
};

struct kr_pipe_ops {
    void (*want_fill)(struct kr_pipe *p);
    void (*set_reading)(struct kr_pipe *p, bool on);
    void (*close)(struct kr_pipe *p, enum kr_pipe_close how);
};

struct kr_pipe {
    const struct kr_pipe_ops *ops;
    const struct kr_pipe_user *user_ops; /* NULL until attached */
    void *user;
};

/* Reading starts with this call. */
void kr_pipe_attach(struct kr_pipe *p, const struct kr_pipe_user *ops, void *user);

static inline void kr_pipe_want_fill(struct kr_pipe *p)
{
    p->ops->want_fill(p);
}

static inline void kr_pipe_set_reading(struct kr_pipe *p, bool on)
{
    p->ops->set_reading(p, on);
}

static inline void kr_pipe_close(struct kr_pipe *p, enum kr_pipe_close how)
{
    p->ops->close(p, how);
}

#endif
