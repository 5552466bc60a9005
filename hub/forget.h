/* SPDX-License-Identifier: Apache-2.0 */
/* forget: a cluster goes, with all that was synced of it. */
#ifndef HUB_FORGET_H
#define HUB_FORGET_H

#include "hub/worker.h"

/* False: a tunnel is there, or requests are under way. */
bool hub_forget_cluster(struct hub_worker *w, struct hub_cluster *c);
/* One that is registered and has not dialled. False: it is another one. */
bool hub_forget_expected(struct hub_worker *w, const char *name);
/* What was synced of it goes at once, the rest if nothing holds it. */
void hub_forget_denied(struct hub_worker *w, const char *name);

#endif
