/* SPDX-License-Identifier: Apache-2.0 */
/* admin_socket: HTTP/1.1 for kuberelayctl on a Unix socket that only the hub's user may open:
 *   GET /clusters          JSON: each cluster and what of it is synced (hub/clusters_page.h)
 *   GET /can-i/...         what the rules say to a request (hub/can_i_page.h)
 *   DELETE /clusters/NAME  forgets a cluster that is away, with what was synced of it;
 *                          404 unknown, 409 it is here or in use
 * Errors: those of the socket. Threads: the worker's. */
#ifndef HUB_ADMIN_SOCKET_H
#define HUB_ADMIN_SOCKET_H

#include "hub/worker.h"

struct hub_admin_socket;

/* *out is NULL if option adminSocket is not given. */
int hub_admin_socket_create(struct hub_worker *w, struct hub_admin_socket **out,
                            struct kr_note *why);
void hub_admin_socket_close(struct hub_admin_socket *a); /* destroy after the loop has turned */
void hub_admin_socket_destroy(struct hub_admin_socket *a);

#endif
