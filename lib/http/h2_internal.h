/* SPDX-License-Identifier: Apache-2.0 */
/* h2_internal: what h2_session.c (the connection) and h2_stream.c (its exchanges) share. Private.
 */
#ifndef KR_HTTP_H2_INTERNAL_H
#define KR_HTTP_H2_INTERNAL_H

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "http/h2_budget.h"
#include "http/h2_session.h"

#define H2_ROOM_MIN 512 /* less is not worth another frame */

struct h2_session {
    struct kr_conn conn; /* first: kr_conn and h2_session are one */
    struct kr_h2_config cfg;
    struct kr_pipe *pipe;
    nghttp2_session *ng;
    bool lend_frame;        /* the next allocation of a frame buffer gets the shared one */
    struct kr_list streams; /* h2_stream.link */
    struct kr_buf spill;    /* rest of a frame that did not fit into the run being filled */
    uint8_t *out;           /* while filling: where to write */
    size_t room;            /* while filling: how much of it is left */
    struct kr_h2_budget budget;
    struct kr_timer tick;
    int64_t born_ms;
    int64_t heard_ms;  /* last bytes from the peer */
    int64_t busy_ms;   /* last time there was an exchange */
    int64_t pinged_ms; /* when the open PING was sent; 0: none */
    int64_t pinged_us;
    int64_t rtt_us;
    bool peer_ready;   /* its SETTINGS came */
    bool goaway_final; /* the second GOAWAY of a drain went out */
    bool closing;
    struct kr_note why;
    int why_rc;
};

struct h2_stream {
    struct kr_exchange ex; /* first: kr_exchange and h2_stream are one */
    struct h2_session *s;
    struct kr_list link;
    int32_t id;
    bool head_done;      /* the incoming head is complete; what follows are trailers */
    bool gone;           /* the user has no more to do with it */
    bool reset_by_user;  /* the RST_STREAM to come is ours, not the peer's fault */
    bool broke_rules;    /* we reset it because the peer broke the protocol */
    bool body_submitted; /* a data source is registered with nghttp2 */
    bool deferred;       /* nghttp2 waits for resume_data */
    bool out_ended;
    bool has_trailers;
    bool is_request_refused; /* head beyond a limit; do not collect more of it */
    struct kr_head extra;    /* incoming trailers; outgoing ones wait in `trailers` */
    struct kr_head trailers;
    uint32_t window;   /* what the stream's receive window is now */
    uint32_t grown;    /* how much of it came from the shared budget */
    size_t owed;       /* consumed, not yet granted again */
    uint32_t consumed; /* since the window last grew or was measured */
    int64_t measured_ms;
    int64_t progress_ms; /* last time bytes of it were sent, or it had none */
};

/* h2_stream.c */
struct h2_stream *h2_stream_create(struct h2_session *s, int32_t id);
void h2_stream_finish(struct h2_stream *st, int rc); /* on_done, then frees it */
void h2_stream_check_stall(struct h2_stream *st, int64_t now_ms);
bool h2_has_room(const struct kr_conn *c);
struct kr_exchange *h2_stream_open(struct kr_conn *c, const struct kr_head *head, bool end,
                                   const struct kr_exchange_user *ops, void *user);
/* nghttp2's callbacks that concern one stream. */
int h2_on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *user);
int h2_on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
                 size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                 void *user);
int h2_on_headers_frame(struct h2_session *s, const nghttp2_frame *frame);
void h2_on_end_stream(struct h2_stream *st);
int h2_on_data_chunk(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data,
                     size_t len, void *user);
int h2_on_stream_close(nghttp2_session *ng, int32_t id, uint32_t code, void *user);
int h2_on_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *framehd,
                    size_t length, nghttp2_data_source *source, void *user);

/* h2_session.c */
void h2_want_fill(struct h2_session *s);
/* One glitch of the peer; closes the session with GOAWAY when its bucket is empty. */
void h2_glitch(struct h2_session *s, enum kr_h2_glitch kind);
void h2_exchange_ended(struct h2_session *s);
struct h2_stream *h2_find(struct h2_session *s, int32_t id);

#endif
