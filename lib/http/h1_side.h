/* SPDX-License-Identifier: Apache-2.0 */
/* h1_side: what both sides of an HTTP/1.1 connection share: the pipe, the one exchange under way,
 * the bytes its user owes, and the way from the first shut to on_close. h1_server.c and h1_client.c
 * embed it and say what a message means.
 * Calls:   reading and fill never call into the pipe from inside fill: they post `step`, which
 * makes up for it. Memory:  owns reader, out and the exchange's head. The caller's struct is freed
 * in its on_close, after kr_h1_side_deinit. Units:   bytes, milliseconds. Threads: one. */
#ifndef KR_HTTP_H1_SIDE_H
#define KR_HTTP_H1_SIDE_H

#include "base/assert.h"
#include "http/h1_codec.h"
#include "http/h1_conn.h"
#include "http/h1_out.h"

struct kr_h1_side { /* embed it; set head_method, in_fill and what is in reader, out and ex */
    struct kr_conn conn;
    struct kr_h1_config cfg;
    struct kr_pipe *pipe;
    struct kr_exchange ex;
    struct kr_h1_reader reader;
    struct kr_h1_out out;
    struct kr_task step;
    struct kr_timer timer; /* one at a time: see the side that starts it */
    size_t owed;           /* body bytes the user has not consumed */
    bool live;             /* ex is in use */
    bool head_method;      /* the request is HEAD */
    bool closing;          /* the pipe was told to close, or has closed */
    bool reading;
    bool in_fill; /* the pipe is asking for bytes */
    int rc;       /* for on_close, with why */
    const char *why;
};

/* Starts the idle timer; attach the pipe next. KR_ENOMEM: `s` holds nothing. */
int kr_h1_side_init(struct kr_h1_side *s, const struct kr_h1_config *cfg, struct kr_pipe *pipe,
                    const struct kr_conn_ops *ops, bool client);
/* After on_close of the pipe. */
void kr_h1_side_deinit(struct kr_h1_side *s);

/* Closes the pipe, once; rc and why are what on_close will tell. Takes no exchanges from now on. */
void kr_h1_side_shut(struct kr_h1_side *s, enum kr_pipe_close how, int rc, const char *why);
/* Stops the timer if after_ms is 0; shuts if memory is short; nothing once it is closing. */
void kr_h1_side_set_timer(struct kr_h1_side *s, int64_t after_ms);
/* Reads on if the user has consumed enough and the caller has room for what may come. */
void kr_h1_side_update_reading(struct kr_h1_side *s, bool room);
/* Asks the pipe to fetch what waits in `out`. */
void kr_h1_side_want_fill(struct kr_h1_side *s);

/* Hands a part of the body to the user of the exchange, who owes it until it is consumed. */
void kr_h1_side_on_body(struct kr_h1_side *s, struct kr_bytes body);
/* The incoming message is whole: its trailers, if any, go to the user. */
void kr_h1_side_on_end(struct kr_h1_side *s);
/* Whether the head that was read says that no body follows. */
bool kr_h1_side_no_body(const struct kr_h1_side *s);
/* Takes the exchange off the connection without a word to its user. */
void kr_h1_side_forget(struct kr_h1_side *s);
/* The same, then on_done(rc); nothing if none is live. The user may begin the next in it. */
void kr_h1_side_end_exchange(struct kr_h1_side *s, int rc);
/* The pipe has closed: ends the exchange with ex_rc, then calls on_close of the connection with
 * what shut was given, else with the pipe's rc and note. */
void kr_h1_side_closed(struct kr_h1_side *s, int ex_rc, int rc, const struct kr_note *why);

/* Rows of the tables of operations that are the same on both sides. */
int kr_h1_side_send_trailers(struct kr_exchange *ex, const struct kr_head *trailers);
void kr_h1_side_ready(struct kr_exchange *ex);
void kr_h1_side_close(struct kr_conn *conn);
/* The user has consumed n bytes of the body; `room` as in update_reading. */
void kr_h1_side_consumed(struct kr_h1_side *s, size_t n, bool room);

static inline struct kr_h1_side *kr_h1_side_of(struct kr_exchange *ex)
{
    return KR_CONTAINER_OF(ex, struct kr_h1_side, ex);
}

#endif
