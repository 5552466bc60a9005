/* SPDX-License-Identifier: Apache-2.0 */
/* admin: the hub's /metrics and /readyz (lib/admin), on a loopback address only. */
#ifndef HUB_ADMIN_H
#define HUB_ADMIN_H

#include "admin/admin.h"
#include "hub/worker.h"

/* At the option adminListen, which a failure names. */
int hub_admin_open(struct kr_admin *a, struct hub_worker *w, struct kr_note *why);

#endif
