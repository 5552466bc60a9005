/* SPDX-License-Identifier: Apache-2.0 */
/* registry_page: what operators ask and order over the admin socket about tokens, clusters and
 * keys:
 *
 *   GET    /tokens, /registry, /bundle (the roots that agents are told, PEM)
 *   POST   /tokens/CLUSTER/SECONDS/auto (or ask)
 *   DELETE /tokens/ID
 *   POST   /registry/CLUSTER/accept (deny, remove, external)
 *   POST   /registry/CLUSTER/instances/INSTANCE/deny (unlock)
 *   POST   /keys/HEX/deny (unlock)
 *
 * Each is answered with a status, and JSON or one line of text. Every change is logged. */
#ifndef HUB_REGISTRY_PAGE_H
#define HUB_REGISTRY_PAGE_H

#include "hub/bundle.h"

/* 0: the path is none of these. */
int hub_registry_page_get(struct hub_worker *w, struct kr_bytes path, struct kr_buf *body,
                          const char **type);
int hub_registry_page_post(struct hub_worker *w, struct kr_bytes path, struct kr_buf *body,
                           const char **type);
int hub_registry_page_delete(struct hub_worker *w, struct kr_bytes path, struct kr_buf *body);

#endif
