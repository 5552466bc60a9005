/* SPDX-License-Identifier: Apache-2.0 */
/* h2_raw: a peer that sends HTTP/2 frames as a test writes them (RFC 9113, RFC 7541), against a
 * session of either role. */
#ifndef H2_RAW_H
#define H2_RAW_H

#include "h2_world.h"

/* :method GET, :scheme https, :path /, :authority h */
#define GET_BLOCK "\x82\x87\x84\x41\x01h"
#define POST_BLOCK "\x83\x87\x84\x41\x01h"

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PING = 6,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION
};
enum { END_STREAM = 1, END_HEADERS = 4 };

struct raw {
    struct world w;
    struct kr_mem_peer peer;
    uint32_t next_id;
};

static inline void frame(struct raw *r, int type, int flags, uint32_t id, struct kr_bytes payload)
{
    uint8_t hd[9] = {(uint8_t)(payload.n >> 16),
                     (uint8_t)(payload.n >> 8),
                     (uint8_t)payload.n,
                     (uint8_t)type,
                     (uint8_t)flags,
                     (uint8_t)(id >> 24),
                     (uint8_t)(id >> 16),
                     (uint8_t)(id >> 8),
                     (uint8_t)id};

    kr_mem_peer_send(&r->peer, kr_bytes_of(hd, 9));
    kr_mem_peer_send(&r->peer, payload);
}

/* With a limit for idle connections and for clients that take nothing; 0: none. */
static inline void start_with(struct raw *r, int64_t timeout_ms)
{
    *r = (struct raw){.next_id = 1};
    prepare(&r->w);
    r->w.server_cfg.abuse = true;
    r->w.server_cfg.idle_timeout_ms = timeout_ms;
    r->w.server_cfg.stall_timeout_ms = timeout_ms;
    kr_mem_peer_init(&r->peer, kr_mem_pair_end(r->w.pair, 0));
    r->w.server.conn = kr_h2_create(&r->w.server_cfg, kr_mem_pair_end(r->w.pair, 1));
    kr_mem_peer_send(&r->peer, KR_LIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    frame(r, SETTINGS, 0, 0, KR_LIT(""));
    run(&r->w, 0);
    assert_int_equal(r->w.server.ready, 1);
}

static inline void start(struct raw *r)
{
    start_with(r, 0);
}

/* The session is the client, the raw peer its server. */
static inline void start_client(struct raw *r)
{
    *r = (struct raw){0};
    prepare(&r->w);
    kr_mem_peer_init(&r->peer, kr_mem_pair_end(r->w.pair, 1));
    r->w.client.conn = kr_h2_create(&r->w.client_cfg, kr_mem_pair_end(r->w.pair, 0));
    frame(r, SETTINGS, 0, 0, KR_LIT(""));
    run(&r->w, 0);
    assert_int_equal(r->w.client.ready, 1);
}

static inline uint32_t get(struct raw *r)
{
    uint32_t id = r->next_id;

    r->next_id += 2;
    frame(r, HEADERS, END_HEADERS | END_STREAM, id, KR_LIT(GET_BLOCK));
    return id;
}

static inline uint32_t post(struct raw *r)
{
    uint32_t id = r->next_id;

    r->next_id += 2;
    frame(r, HEADERS, END_HEADERS, id, KR_LIT(POST_BLOCK));
    return id;
}

/* The last frame of that type that the session sent; its error code, or -1. */
static inline int64_t code_of_last(const struct raw *r, int type)
{
    struct kr_bytes in = kr_buf_bytes(&r->peer.in);
    int64_t code = -1;

    if (kr_bytes_starts(in, KR_LIT("PRI ")))
        in = kr_bytes_skip(in, 24);
    while (in.n >= 9) {
        size_t n = (size_t)in.p[0] << 16 | (size_t)in.p[1] << 8 | in.p[2];
        const uint8_t *p = in.p + 9 + (in.p[3] == GOAWAY ? 4 : 0);

        assert_true(in.n >= 9 + n);
        if (in.p[3] == type)
            code = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
        in = kr_bytes_skip(in, 9 + n);
    }
    return code;
}

#endif
