/* SPDX-License-Identifier: Apache-2.0 */
/* turn: one request and its answer on a connection: collects the body, asks sim_handle, applies a
 * fault, sends what comes.
 * Life: from on_request until the exchange is done; it frees itself. */
#ifndef SIM_TURN_H
#define SIM_TURN_H

#include "http/conn.h"
#include "store.h"

struct sim_peer { /* who is at the other end of a connection */
    struct sim_cluster *c;
    const char *token; /* the bearer token that is accepted */
    char user[256];    /* "" : no certificate */
    char groups[512];
};

/* For kr_conn_user.on_request. */
void sim_turn_start(const struct sim_peer *peer, struct kr_exchange *ex);

#endif
