/* SPDX-License-Identifier: Apache-2.0 */
/* sync_held: what a shelf holds, in the words of Sync: sums for the opening, pairs of hashes for
 * buckets that the agent asks for.
 * Cost: one walk over the shelf for each call, 16 bytes a pair meanwhile. Threads: the worker's. */
#ifndef HUB_SYNC_HELD_H
#define HUB_SYNC_HELD_H

#include "hub/cache.h"
#include "wire/sync_messages.h"

void hub_held_digest(struct hub_shelf *s, struct kr_digest *out);
/* Hands encoded SyncControl messages with the pairs of those buckets to `send`, one after the
 * other; a bucket that is empty is answered too. KR_ENOMEM, those of `send`. */
int hub_held_pairs(struct hub_shelf *s, const bool wanted[KR_BUCKETS],
                   int (*send)(void *user, struct kr_bytes message), void *user);

#endif
