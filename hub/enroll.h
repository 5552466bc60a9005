/* SPDX-License-Identifier: Apache-2.0 */
/* enroll: the service Enrollment on connections of the agent port that chose ALPN h2: plain HTTP/2
 * with unary gRPC calls, nothing else (certs are decided about in hub/issuer.h).
 * Limits: requests of 16 KiB, 15 s for a connection, 16 connections at once, joinTries failures a
 * minute from one address.
 * Threads: the worker's. */
#ifndef HUB_ENROLL_H
#define HUB_ENROLL_H

#include "hub/bundle.h"
#include "hub/issuer.h"

struct hub_enroll;
struct hub_enroll_conn;

struct hub_enroll *hub_enroll_create(struct hub_worker *w, struct hub_issuer *is,
                                     struct hub_signer *signer, const struct hub_bundle *bundle);
void hub_enroll_destroy(struct hub_enroll *e); /* after its connections */

/* Takes the pipe, and moves the identity (empty: no certificate). NULL: no place or no memory; the
 * pipe is untouched. */
struct hub_enroll_conn *hub_enroll_serve(struct hub_enroll *e, struct kr_pipe *pipe,
                                         struct kr_identity *id, const char *address,
                                         void (*on_gone)(void *owner), void *owner);
void hub_enroll_close(struct hub_enroll_conn *c);

#endif
