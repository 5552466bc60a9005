/* SPDX-License-Identifier: Apache-2.0 */
/* expect: clusters that the registry names and that have not dialled since the start. The fleet
 * view says that they are missing, and their requests are answered as those of a cluster that is
 * away. Without a registry (no stateDir) nobody is expected. Those that an operator denied or
 * removed are not, nor are those that still wait to be accepted. Threads: the worker's. */
#ifndef HUB_EXPECT_H
#define HUB_EXPECT_H

#include "hub/worker.h"

/* At the start, of all. KR_ENOMEM, or what the store says. */
int hub_expect_registered(struct hub_worker *w, struct kr_note *why);
/* The registry may have a new cluster. */
void hub_expect_cluster(struct hub_worker *w, const char *name);
/* Whether the registry names it. */
bool hub_is_expected(const struct hub_worker *w, const char *name);

#endif
