/* SPDX-License-Identifier: Apache-2.0 */
/* recorder: users of exchanges and connections for tests, of either HTTP version: they write down
 * what they are told, check the order in which it comes, and answer as the test says.
 * Memory:  deinit frees what was recorded. Threads: one. */
#ifndef KR_FAKES_RECORDER_H
#define KR_FAKES_RECORDER_H

#include "base/buf.h"
#include "http/conn.h"

struct kr_rec {             /* one exchange, on either side */
    struct kr_exchange *ex; /* NULL once it is over */
    int status;             /* of the response */
    char line[256];         /* "METHOD authority path" of the request */
    struct kr_buf fields;   /* "name=value;" of the incoming head */
    struct kr_buf in;       /* incoming body */
    struct kr_buf trailers; /* "name=value;" */
    bool headed;            /* on_head (client), or on_request */
    bool ended;             /* on_end */
    bool expected_continue; /* at on_request */
    bool whole_at_head;     /* in_ended as the head came */
    bool upgrade;           /* the request asked for one */
    int done;               /* how often on_done came */
    int rc;                 /* with it */
    bool hold;              /* set by the test: consume nothing */
    size_t owed;            /* not consumed yet */
    struct kr_buf out;      /* outgoing body that is left */
    bool out_end;           /* set by the test: nothing follows `out` */
    /* Set by the test; may be NULL. Called last in the callback of that name. */
    void (*on_head)(struct kr_rec *r);
    void (*on_body)(struct kr_rec *r);
    void (*on_end)(struct kr_rec *r);
    void (*on_take)(struct kr_rec *r);
    void (*on_done)(struct kr_rec *r);
    void *aux; /* the test's own */
};

extern const struct kr_exchange_user kr_rec_ops;

void kr_rec_init(struct kr_rec *r);
void kr_rec_deinit(struct kr_rec *r);
/* More outgoing body; `end`: the last of it. */
void kr_rec_send(struct kr_rec *r, const char *text, bool end);
void kr_rec_send_bytes(struct kr_rec *r, struct kr_bytes bytes, bool end);
void kr_rec_abort(struct kr_rec *r);
void kr_rec_release(struct kr_rec *r); /* consumes what is owed */
/* Answers with a status, fields ("name", "value", ... NULL) and a body, at once. */
void kr_rec_answer(struct kr_rec *r, int status, const char *body, const char *const *fields);

enum { KR_REC_MAX = 64 };

struct kr_rec_conn {      /* the owner of one connection, on either side */
    struct kr_conn *conn; /* set by the test; NULL once it closed */
    struct kr_rec recs[KR_REC_MAX];
    size_t n; /* requests so far (server) */
    int ready;
    int drained;
    int closed;
    int rc;
    char why[256];
    /* Set by the test: told of each request (server). */
    void (*on_request)(struct kr_rec_conn *c, struct kr_rec *r);
};

extern const struct kr_conn_user kr_rec_conn_ops;

void kr_rec_conn_init(struct kr_rec_conn *c);
void kr_rec_conn_deinit(struct kr_rec_conn *c);
/* Client: opens an exchange on the connection; NULL if it takes none. `end`: without a body. */
struct kr_rec *kr_rec_open(struct kr_rec_conn *c, const char *method, const char *path, bool end,
                           const char *const *fields);
/* The same, asking for an upgrade to `token`. */
struct kr_rec *kr_rec_open_upgrade(struct kr_rec_conn *c, const char *method, const char *path,
                                   const char *token, const char *const *fields);

#endif
