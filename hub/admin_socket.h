/* SPDX-License-Identifier: Apache-2.0 */
/* admin_socket: HTTP/1.1 for kuberelayctl on a Unix socket that only the hub's user may open:
 *   GET /clusters          JSON: each cluster and what of it is synced (hub/clusters_page.h)
 *   GET /can-i/...         what the rules say to a request (hub/can_i_page.h)
 *   DELETE /clusters/NAME  forgets a cluster that is away, with what was synced of it;
 *                          404 unknown, 409 it is here or in use
 * Errors: those of the socket. Threads: the worker's. */
#ifndef HUB_ADMIN_SOCKET_H
#define HUB_ADMIN_SOCKET_H

#include "admin/page_port.h"
#include "hub/worker.h"

/* Nothing if the option adminSocket is not given; a failure names it. */
int hub_admin_socket_open(struct kr_page_port *p, struct hub_worker *w, struct kr_note *why);

#endif
