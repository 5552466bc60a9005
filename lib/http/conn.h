/* SPDX-License-Identifier: Apache-2.0 */
/* conn: one HTTP connection over a pipe, whichever version it speaks (h2_session, h1_server,
 * h1_client). It owns its exchanges and, while it lives, the use of the pipe.
 * Life: ends with on_close, exactly once, after every exchange has ended; freed right after it. */
#ifndef KR_HTTP_CONN_H
#define KR_HTTP_CONN_H

#include "base/note.h"
#include "http/exchange.h"

struct kr_conn;

struct kr_conn_user {
    /* Server role: a request head came (ex->head). Call kr_exchange_attach before it returns. */
    void (*on_request)(void *owner, struct kr_exchange *ex);
    /* The peer takes no new exchanges (GOAWAY, Connection: close); running ones go on. May be NULL.
     */
    void (*on_drain)(void *owner);
    /* HTTP/2: the peer's first SETTINGS came: the connection is usable. May be NULL. */
    void (*on_ready)(void *owner);
    void (*on_close)(void *owner, int rc, const struct kr_note *why);
};

struct kr_conn_ops {
    /* Client role. NULL if the connection takes no exchange now (draining, stream limit, memory).
     */
    struct kr_exchange *(*open)(struct kr_conn *c, const struct kr_head *head, bool end,
                                const struct kr_exchange_user *ops, void *user);
    /* No new exchanges; the peer is told (HTTP/2: GOAWAY twice); closes after the last one. */
    void (*drain)(struct kr_conn *c);
    /* Now: every exchange ends with KR_ECANCELED's sibling KR_ECONNLOST, then on_close. */
    void (*close)(struct kr_conn *c);
    /* Client role: whether open would find room now. NULL: as long as it is not draining. */
    bool (*has_room)(const struct kr_conn *c);
};

struct kr_conn { /* read it; the fields belong to the implementation */
    const struct kr_conn_ops *ops;
    const struct kr_conn_user *user_ops;
    void *owner;
    const void *peer; /* the owner's word on who the peer is; carried, never looked at */
    size_t exchanges; /* live ones */
    bool draining;    /* takes no new exchanges */
    bool is_h2;
};

static inline struct kr_exchange *kr_conn_open(struct kr_conn *c, const struct kr_head *head,
                                               bool end, const struct kr_exchange_user *ops,
                                               void *user)
{
    return c->ops->open(c, head, end, ops, user);
}

static inline bool kr_conn_has_room(const struct kr_conn *c)
{
    return c->ops->has_room == NULL ? !c->draining : c->ops->has_room(c);
}

static inline void kr_conn_drain(struct kr_conn *c)
{
    c->ops->drain(c);
}

static inline void kr_conn_close(struct kr_conn *c)
{
    c->ops->close(c);
}

#endif
