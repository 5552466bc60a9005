/* SPDX-License-Identifier: Apache-2.0 */
/* stream: what a pipe over a descriptor does, whatever is spoken on it: reads, gathers writes,
 * keeps what the socket did not take, ends. tls_pipe and tcp_pipe give it a codec. Private to net.
 *
 *   socket -> io->in -> codec.decode -> kr_stream_deliver -> user.on_bytes
 *   user.fill -> io->plain -> codec.encode -> kr_stream_put -> io->out -> socket | s->rest_out
 *
 * Life: open -> (closing: FLUSH) -> ending -> finished. Every end goes through the end task, so
 * on_close never comes from inside a call of the user.
 * The scratch buffers of kr_tls_io belong to the stream that is at work; nothing is left in them
 * when it returns to the loop, and work is never nested: users' calls only post tasks. */
#ifndef KR_NET_STREAM_H
#define KR_NET_STREAM_H

#include "base/pipe.h"
#include "net/linger.h"
#include "net/net_io.h"

enum {
    KR_STREAM_IN = 128 * 1024,    /* one recv() */
    KR_STREAM_RECORD = 16 * 1024, /* what one TLS record carries */
    KR_STREAM_PLAIN = 2 * KR_STREAM_RECORD,
    KR_STREAM_OUT = 256 * 1024,
    KR_STREAM_OUT_STOP = 192 * 1024, /* no more is asked of the user beyond that */
    KR_STREAM_TURN = 256 * 1024,     /* read in one turn */
    KR_STREAM_SHAKES = 8,            /* handshake steps in one turn, */
    KR_STREAM_SHAKE_US = 3000,       /* none begins once they have taken so long */
    KR_STREAM_FLUSH_MS = 5000,
};

struct kr_stream;

struct kr_stream_codec {
    /* Takes the bytes io->in[in_at..in_n); may stop early when kr_stream_wants_more says no. At the
     * peer's end of the connection (s->peer_closed) it is called once more. */
    void (*decode)(struct kr_stream *s);
    /* Appends one run of at most KR_STREAM_RECORD bytes by kr_stream_put. */
    void (*encode)(struct kr_stream *s, const uint8_t *plain, size_t n);
    void (*bye)(struct kr_stream *s); /* the farewell, by kr_stream_put; may be NULL */
    /* The deadline of kr_stream_deadline passed. */
    void (*on_deadline)(struct kr_stream *s);
    /* Tells the owner of the end (not called for a pipe that nobody was given). */
    void (*tell)(struct kr_stream *s, int rc, const struct kr_note *why);
    void (*destroy)(struct kr_stream *s); /* frees the whole object */
};

struct kr_tls_io { /* the fields belong to stream.c; codecs use in, in_at, in_n and plain */
    struct kr_loop *loop;
    struct kr_sched *sched;
    struct kr_list streams; /* kr_stream.link */
    size_t count;
    uint64_t shake_turn; /* the turn that `shakes` counts in */
    unsigned shakes;
    int64_t shake_us; /* that they took */
    struct kr_lingers lingers;
    void *idle_ctx; /* tls_slim.c's, with how it is freed */
    void (*idle_free)(void *idle_ctx);
    size_t in_n;
    size_t in_at;
    size_t out_n;
    uint8_t in[KR_STREAM_IN];
    uint8_t plain[KR_STREAM_PLAIN];
    uint8_t out[KR_STREAM_OUT];
};

struct kr_run { /* malloc'd bytes p[at..n) */
    uint8_t *p;
    size_t n;
    size_t at;
};

struct kr_stream { /* embed it; the fields belong to stream.c */
    struct kr_pipe pipe;
    const struct kr_stream_codec *codec;
    struct kr_tls_io *io; /* NULL while it is released */
    struct kr_fd fd;
    struct kr_list link;
    struct kr_task write_task;
    struct kr_task shake_task; /* a handshake's turn to read */
    struct kr_task read_task;  /* goes on with rest_in, or reads once more after a failed send */
    struct kr_task end_task;
    struct kr_timer deadline;
    struct kr_run rest_in;  /* received, but the user stopped reading */
    struct kr_run rest_out; /* encoded, but the socket was full */
    struct kr_note *why;    /* of the end; NULL: none, or memory was short */
    int rc;                 /* of the end */
    int send_errno;         /* why the socket takes no more */
    bool hold;              /* the codec reads although nobody is attached (a handshake) */
    bool reading;           /* the user wants bytes */
    bool kicked;            /* see kr_stream_kick */
    bool peer_closed;       /* recv() said so */
    bool eof_told;
    bool flushing; /* closing after what the user still has */
    bool said_bye;
    bool ending;     /* the end task is posted */
    bool linger;     /* the last bytes matter to the peer */
    bool reset;      /* what the kernel still holds is worth nothing */
    bool secret_out; /* what was encoded is cleared */
};

/* Registers the stream with the loop. The fd is taken. */
void kr_stream_init(struct kr_stream *s, const struct kr_stream_codec *codec, struct kr_tls_io *io,
                    int fd);
void kr_stream_detach(struct kr_stream *s); /* from its loop */
void kr_stream_adopt(struct kr_stream *s, struct kr_tls_io *io);
/* Closes the fd and frees the runs (for a stream that is detached). */
void kr_stream_deinit(struct kr_stream *s);

/* The handshake wants to read (or no longer). */
void kr_stream_hold(struct kr_stream *s, bool hold);
/* decode is called soon although nothing came (a handshake's first move). */
void kr_stream_kick(struct kr_stream *s);
int kr_stream_deadline(struct kr_stream *s, int64_t after_ms); /* 0 stops it; KR_ENOMEM */
/* Hands bytes to the user. */
void kr_stream_deliver(struct kr_stream *s, const uint8_t *p, size_t n);
void kr_stream_deliver_eof(struct kr_stream *s);
/* Whether decode should go on. */
bool kr_stream_wants_more(const struct kr_stream *s);
/* Appends to what goes out. false: there is no room (the caller gives up on the connection). */
bool kr_stream_put(struct kr_stream *s, const uint8_t *p, size_t n);
/* Sends what was put; what the socket does not take is kept. */
void kr_stream_flush(struct kr_stream *s);
/* The end, soon: the first call decides. */
__attribute__((format(printf, 3, 4))) void kr_stream_fail(struct kr_stream *s, int rc,
                                                          const char *fmt, ...);
void kr_stream_close(struct kr_stream *s, enum kr_pipe_close how);

extern const struct kr_pipe_ops kr_stream_pipe_ops;

#endif
