/* SPDX-License-Identifier: Apache-2.0 */
/* admin: plain HTTP/1.1 for operators, loopback only: /metrics, /livez, /readyz. */
#ifndef HUB_ADMIN_H
#define HUB_ADMIN_H

#include "hub/worker.h"

struct hub_admin;

struct hub_admin *hub_admin_create(struct hub_worker *w, struct kr_note *why);
void hub_admin_close(struct hub_admin *a); /* connections end; destroy after the loop has turned */
void hub_admin_destroy(struct hub_admin *a);
const char *hub_admin_address(const struct hub_admin *a);

#endif
