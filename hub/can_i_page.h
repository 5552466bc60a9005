/* SPDX-License-Identifier: Apache-2.0 */
/* can_i_page: what the hub's rules say to a request that is only thought of, for operators:
 *   GET /can-i/KEY=VALUE/...   each value percent-encoded. Keys: verb, resource (pods/log,
 *                              deployments.apps, or a path that begins with a slash), cluster (or a
 *                              star: the fleet view), namespace, name, user, group (many),
 *                              member-token
 * Answer: {"allowed", "rule", "reason", "rules": [{"rule", "result"}]}.
 * Threads: the worker's. */
#ifndef HUB_CAN_I_PAGE_H
#define HUB_CAN_I_PAGE_H

#include "hub/access.h"

/* 0: the path is not of this page. */
int hub_can_i_page(struct hub_worker *w, struct kr_bytes path, struct kr_buf *body,
                   const char **type);

#endif
