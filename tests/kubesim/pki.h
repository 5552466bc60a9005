/* SPDX-License-Identifier: Apache-2.0 */
/* pki: the throw-away certificates of one run: an own CA, one certificate for all servers, one for
 * the clients that the kubeconfigs name. Keys of the CA and the server never leave the process.
 * Errors: KR_EIO, KR_ETLS, with the cause in the note. */
#ifndef SIM_PKI_H
#define SIM_PKI_H

#include "base/buf.h"
#include "base/note.h"

struct sim_pki {
    char dir[4096]; /* absolute */
    struct kr_buf ca_pem;
    struct kr_buf cert_pem; /* of the servers */
    struct kr_buf key_pem;
    char token[48]; /* the bearer token that is accepted too */
};

/* Makes all and writes ca.crt, client.crt, client.key (0600) and token (0600) into `dir`. */
int sim_pki_create(struct sim_pki *p, const char *dir, struct kr_note *why);
void sim_pki_destroy(struct sim_pki *p);
/* Writes `dir`/kubeconfig-NAME for https://address and gives its path. */
int sim_pki_kubeconfig(const struct sim_pki *p, const char *cluster, const char *address,
                       char path[4200], struct kr_note *why);

#endif
