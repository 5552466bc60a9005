/* SPDX-License-Identifier: Apache-2.0 */
/* upsert_check: what must be true of an object before it may lie on a shelf, whoever sent it: it
 * unpacks to the size that was told; it is `cells \n object`, both JSON, the object without what
 * the hub puts back (apiVersion, kind, resourceVersion); its name and namespace (its uid too, if
 * one was told) are those that were told, and no reader can find others in it; what the hub adds
 * (its label and annotations) is not in it: such a key is cut out, and the object packed anew.
 * The hash is the agent's word: it tells the agent itself what the hub holds.
 * Memory: contexts and buffers for one object at a time (up to 3 * KR_PLAIN_MAX), shared by all
 *         subscriptions of a worker. Errors: KR_EPROTO, KR_ETOOBIG, KR_ENOENT (a dictionary that
 *         we do not know), with the reason: the object is bad; KR_ENOMEM. Pure. */
#ifndef HUB_UPSERT_CHECK_H
#define HUB_UPSERT_CHECK_H

#include "hub/cache.h"
#include "wire/sync_messages.h"

#define HUB_CELLS_MAX (64u * 1024) /* the cells of one row */
#define HUB_OBJECT_LABELS_MAX 512
#define HUB_TOLD_MAX 128 /* uid and version, each */

struct hub_upsert_check;

/* `dictionaries` is borrowed. NULL: memory. */
struct hub_upsert_check *hub_upsert_check_create(const struct kr_dictionaries *dictionaries);
void hub_upsert_check_destroy(struct hub_upsert_check *k);
/* What *out points to is valid until the next call, and as long as what `u` points to. */
int hub_upsert_check(struct hub_upsert_check *k, const struct kr_upsert *u,
                     struct hub_incoming *out, struct kr_note *why);

#endif
