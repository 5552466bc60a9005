/* SPDX-License-Identifier: Apache-2.0 */
/* access_parts: who may ask, and for what: makes w->access and w->authn and joins them. */
#ifndef HUB_ACCESS_PARTS_H
#define HUB_ACCESS_PARTS_H

#include "hub/worker.h"

int hub_access_parts_create(struct hub_worker *w, struct kr_note *why);
void hub_access_parts_reload(struct hub_worker *w);
void hub_access_parts_destroy(struct hub_worker *w); /* half-built is fine */

#endif
