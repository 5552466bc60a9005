/* SPDX-License-Identifier: Apache-2.0 */
/* server: the simulated clusters on the network: one TLS listener a cluster, HTTP/2 and HTTP/1.1.
 * Who asks is decided here: a client certificate of our CA (CN and O), or the bearer token.
 * Threads: the loop's. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "net/addr.h"
#include "net/loop.h"
#include "pki.h"
#include "store.h"

struct sim_server;

struct sim_server_config {
    struct kr_loop *loop;
    const struct sim_pki *pki;
    uint32_t churn; /* changes a second and cluster */
};

struct sim_server *sim_server_create(const struct sim_server_config *cfg, struct kr_note *why);
/* Takes the cluster (in every case) and listens; its address is put into `address`. */
int sim_server_add(struct sim_server *s, struct sim_cluster *c, const struct kr_hostport *at,
                   char address[KR_ADDR_TEXT + 16], struct kr_note *why);
/* Closes everything. Not from inside a callback of the loop. */
void sim_server_destroy(struct sim_server *s);

#endif
