/* SPDX-License-Identifier: Apache-2.0 */
/* front: the API port. Accepts, shakes hands, learns who the client is from its certificate, and
 * hands each request to the pipeline.
 * Limits: maxConnections, maxHandshakes, 1,000 streams a connection, the HTTP/2 abuse budget. */
#ifndef HUB_FRONT_H
#define HUB_FRONT_H

#include "certs/crl.h"
#include "hub/caller.h"
#include "hub/worker.h"
#include "net/socket.h"

struct hub_front;

/* Who a connection belongs to; lives as long as the connection, and so longer than its requests. */
struct hub_peer {
    struct kr_identity id;     /* valid if `known` */
    bool known;                /* a certificate named a user */
    struct hub_caller *caller; /* that user; NULL: made for each request */
    char address[64];          /* "ip:port" */
    char sni[256];
};

struct hub_front *hub_front_create(struct hub_worker *w, struct kr_note *why);
void hub_front_destroy(struct hub_front *f);
const char *hub_front_address(const struct hub_front *f);
size_t hub_front_connections(const struct hub_front *f);
/* Takes no new connections; running ones are told to go when their requests are done. */
void hub_front_stop_accepting(struct hub_front *f);
void hub_front_drain(struct hub_front *f);
/* Cuts what is left. */
/* Ends the connections of users whose certificates are on the lists. */
void hub_front_drop_revoked(struct hub_front *f, const struct kr_crl *crl);
void hub_front_close(struct hub_front *f);

#endif
