/* SPDX-License-Identifier: Apache-2.0 */
/* h1_upgrade_world: requests for an upgrade, and the answer that accepts one. */
#ifndef H1_UPGRADE_WORLD_H
#define H1_UPGRADE_WORLD_H

#include "h1_server_world.h"

#define ASK "Connection: keep-alive, Upgrade\r\nUpgrade: SPDY/3.1\r\n"
#define UPGRADE POST ASK "Content-Length: 0\r\n\r\n"
#define SWITCHED                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: SPDY/3.1\r\nx: y\r\n"                            \
    "connection: Upgrade\r\n\r\n"
#define SECRETS "GET /api/v1/secrets HTTP/1.1\r\nHost: h\r\n\r\n"

static const char *const spdy[] = {"upgrade", "SPDY/3.1", "x", "y", NULL};

/* The answer is pending and the outgoing direction open. */
static inline void switch_it(struct kr_rec *r)
{
    struct kr_head head;

    kr_head_init(&head, 4096);
    head.status = 101;
    for (size_t i = 0; spdy[i] != NULL; i += 2)
        assert_int_equal(kr_head_add_str(&head, spdy[i], spdy[i + 1]), 0);
    assert_int_equal(kr_exchange_send_head(r->ex, &head, false), 0);
    kr_head_deinit(&head);
}

static inline void switch_request(struct kr_rec_conn *c, struct kr_rec *r)
{
    (void)c;
    switch_it(r);
}

static inline void came(struct kr_rec *r, const char *want)
{
    assert_int_equal(r->in.n, strlen(want));
    assert_memory_equal(r->in.p, want, r->in.n);
    r->in.n = 0;
}

#endif
