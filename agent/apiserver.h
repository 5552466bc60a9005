/* SPDX-License-Identifier: Apache-2.0 */
/* apiserver: connections to the one API server that this agent serves, and the credential for it.
 * HTTP/2 with several connections when the server speaks it, else HTTP/1.1, one request each.
 * The address comes from the agent's own configuration; nothing that a hub sends can change it.
 * Limits: 64 HTTP/2 or 256 HTTP/1.1 connections, 1,024 for upgrades, apiTimeout for one to be
 * there. */
#ifndef AGENT_APISERVER_H
#define AGENT_APISERVER_H

#include "agent/core.h"
#include "http/conn.h"

struct agent_apiserver;

/* Somebody who waits for a connection; embedded. */
struct agent_waiter {
    struct kr_list link;
    bool bare; /* of dial_alone: without our client certificate */
    /* conn is NULL if there is none to be had: rc is KR_ETLS, KR_ETIMEDOUT, KR_EFULL, ... */
    void (*on_conn)(struct agent_waiter *w, struct kr_conn *conn, int rc,
                    const struct kr_note *why);
};

/* Reads kubeconfig or service account. NULL: see *why. */
struct agent_apiserver *agent_apiserver_create(struct agent_core *c, struct kr_note *why);
void agent_apiserver_close(struct agent_apiserver *s); /* ends its connections */
void agent_apiserver_destroy(struct agent_apiserver *s);

/* A connection that takes an exchange now, or NULL: then the waiter is called later, once. */
struct kr_conn *agent_apiserver_get(struct agent_apiserver *s, struct agent_waiter *w);
/* kr_conn_open said no: the connection is full. Another one is dialled; the waiter is called. */
void agent_apiserver_wait(struct agent_apiserver *s, struct agent_waiter *w);

/* A connection of its own, HTTP/1.1, for one upgrade; the waiter is called later, once. It belongs
 * to no pool and must carry that one exchange only. KR_EFULL: too many. */
int agent_apiserver_dial_alone(struct agent_apiserver *s, struct agent_waiter *w);

/* Whether our connections carry a client certificate: then an API server takes every request on
 * them for ours, whatever token it brings. */
bool agent_apiserver_has_certificate(const struct agent_apiserver *s);

struct kr_bytes agent_apiserver_authority(const struct agent_apiserver *s);
/* A path in front of every request path, usually empty. */
struct kr_bytes agent_apiserver_prefix(const struct agent_apiserver *s);
/* "Bearer TOKEN", or empty; valid until the loop turns. The file is read again when it is a minute
 * old. */
struct kr_bytes agent_apiserver_authorization(struct agent_apiserver *s, uint32_t *generation);
/* The server said 401 to the token of that generation. Whether there is another one to try. */
bool agent_apiserver_token_refused(struct agent_apiserver *s, uint32_t generation);

#endif
