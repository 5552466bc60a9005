/* SPDX-License-Identifier: Apache-2.0 */
/* sync_sender: what an agent has to say on one Sync call and could not say yet. Changes wait here,
 * one per key: a newer one takes the place of the one that waits (nothing is lost but what is
 * obsolete). Marks (progress, end of the snapshot, ...) come behind all changes that were put
 * before them. A change may come before marks that were put before it (it took the place of an
 * older one), but never before columns, by which its cells are read.
 * The owner stops reading its source while kr_sync_sender_full.
 * Memory: copies what it is given; at most about `budget` bytes, and always at least one change;
 *         4 KiB when it is empty.
 * Errors: KR_ENOMEM; KR_EINVAL for what the peer would not take (an upsert without a name, say).
 *         After either nothing was changed. Pure: bytes out by kr_sync_sender_next. */
#ifndef KR_WIRE_SYNC_SENDER_H
#define KR_WIRE_SYNC_SENDER_H

#include "wire/sync_messages.h"

struct kr_sync_sender;

struct kr_sync_sender *kr_sync_sender_create(size_t budget);
void kr_sync_sender_destroy(struct kr_sync_sender *s);

int kr_sync_sender_put(struct kr_sync_sender *s, uint64_t key, const struct kr_upsert *change);
int kr_sync_sender_delete(struct kr_sync_sender *s, uint64_t key);
int kr_sync_sender_columns(struct kr_sync_sender *s, struct kr_bytes columns);
int kr_sync_sender_want(struct kr_sync_sender *s, const uint32_t *buckets, size_t n);
/* Of these three, only the latest of its kind behind the last change is kept. */
int kr_sync_sender_snapshot_end(struct kr_sync_sender *s);
int kr_sync_sender_progress(struct kr_sync_sender *s, struct kr_bytes version);
/* A text that is none, or too long a one, is left out or cut. */
int kr_sync_sender_problem(struct kr_sync_sender *s, enum kr_sync_problem problem,
                           struct kr_bytes text);
/* How many objects were skipped so far; each batch tells it from then on. */
void kr_sync_sender_skipped(struct kr_sync_sender *s, uint32_t skipped);

/* How much the API server has sent so far; each batch tells it. */
void kr_sync_sender_raw(struct kr_sync_sender *s, uint64_t raw_bytes);

bool kr_sync_sender_full(const struct kr_sync_sender *s);
bool kr_sync_sender_empty(const struct kr_sync_sender *s);
/* Appends the next encoded SyncBatch (about KR_SYNC_BATCH_TARGET, or one larger object) to `out`.
 * 1: a batch; 0: nothing waits; or a code of kr_buf, and all waits as before. */
int kr_sync_sender_next(struct kr_sync_sender *s, struct kr_buf *out);
/* Changes that were replaced while they waited, for metrics. */
uint64_t kr_sync_sender_coalesced(const struct kr_sync_sender *s);

#endif
