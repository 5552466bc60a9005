/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_list: serves one LIST: a pinned content, walked while its reader takes it.
 * Memory: one chunk, whatever the length of the list. After each chunk the loop turns, so that a
 * large list does not hold up anybody else. */
#ifndef HUB_FLEET_LIST_H
#define HUB_FLEET_LIST_H

#include "hub/fleet_read.h"

/* Answers now; the read ends with it. */
void hub_list_start(struct hub_read *rd);

#endif
