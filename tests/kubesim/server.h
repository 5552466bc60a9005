/* SPDX-License-Identifier: Apache-2.0 */
/* server: the simulated clusters on the network: one TLS listener a cluster, HTTP/2 and HTTP/1.1.
 * Who asks is decided here: a client certificate of our CA (CN and O), or the bearer token.
 * Threads: the loop's. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "churn.h"
#include "net/addr.h"
#include "net/loop.h"
#include "pki.h"

struct sim_server;

struct sim_server_config {
    struct kr_loop *loop;
    const struct sim_pki *pki;
    struct sim_fleet *fleet; /* borrowed; the clusters are put into it */
};

struct sim_server *sim_server_create(const struct sim_server_config *cfg, struct kr_note *why);
/* Takes the cluster (in every case) and listens; its address is put into `address`. */
int sim_server_add(struct sim_server *s, struct sim_cluster *c, const struct kr_hostport *at,
                   char address[KR_ADDR_TEXT + 16], struct kr_note *why);
/* Closes everything. Not from inside a callback of the loop. */
void sim_server_destroy(struct sim_server *s);

#endif
