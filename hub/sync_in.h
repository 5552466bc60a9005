/* SPDX-License-Identifier: Apache-2.0 */
/* sync_in: one Sync call: opens with what the shelf holds, answers what the agent asks of that,
 * checks what it sends and puts it on the shelf.
 * Happy path: open -> (want_buckets -> pairs) -> upserts, deletes -> snapshot_end: the shelf is in
 *         step -> changes, for as long as the call lives.
 * What can go wrong: an object that is not what was told of it is left out and counted, too many
 *         of them end the call; a message that breaks the protocol ends it; the quota of the
 *         cluster ends it (metadata only: leaves objects out instead). Whatever ends the call,
 *         the shelf keeps what it has, marked as stale.
 * Fairness: messages are worked off in turns (hub/turns.h); while some wait the stream is paused.
 * Memory:  messages that wait, at most a window and a message of KR_SYNC_MESSAGE_MAX.
 * Threads: the worker's. */
#ifndef HUB_SYNC_IN_H
#define HUB_SYNC_IN_H

#include "hub/cache.h"
#include "hub/fleet_config.h"
#include "hub/turns.h"
#include "hub/upsert_check.h"
#include "hub/worker.h"
#include "wire/grpc_call.h"

#define HUB_SYNC_BAD_MAX 100 /* bad objects of one call */

/* What the calls of a worker share. */
struct hub_sync_desk { /* read turns; the rest belongs to sync_in.c */
    struct hub_turns turns;
    struct hub_worker *w;
    struct kr_dictionaries *dictionaries;
    struct hub_upsert_check *check;
};

int hub_sync_desk_init(struct hub_sync_desk *d, struct hub_worker *w); /* KR_ENOMEM */
void hub_sync_desk_deinit(struct hub_sync_desk *d);

/* What came so far, over all calls of one subscription. */
struct hub_sync_stats {
    uint64_t bytes;   /* of messages, as they came */
    uint64_t plain;   /* of objects, unpacked */
    uint64_t raw;     /* that the API server had sent, by the word of the agent */
    uint64_t upserts; /* that were good */
    uint64_t deletes;
    uint64_t bad;
    uint64_t skipped; /* by the agent, in the latest call */
};

enum hub_sync_end {
    HUB_SYNC_LOST,        /* the connection, or the agent ended it */
    HUB_SYNC_UNSUPPORTED, /* the agent does not know this call */
    HUB_SYNC_BROKEN,      /* it sends what it may not */
    HUB_SYNC_OVER_QUOTA,
    HUB_SYNC_FAILED, /* our own memory */
};

struct hub_sync_user {
    /* The shelf is in step, or its problem is another one. */
    void (*on_news)(void *owner);
    /* It is over; close it, now or later. */
    void (*on_end)(void *owner, enum hub_sync_end end, const char *why);
};

struct hub_sync_config {
    struct hub_sync_desk *desk;
    struct kr_conn *conn;
    struct hub_shelf *shelf;
    const struct hub_profile *profile; /* for the opening only */
    bool metadata_only;                /* whatever the profile says */
    uint64_t number;                   /* of the subscription on this agent */
    struct hub_sync_stats *stats;
    const struct hub_sync_user *ops;
    void *owner;
};

struct hub_sync_in;

/* NULL: the connection takes no call now, or memory is short. No call makes a callback. */
struct hub_sync_in *hub_sync_in_open(const struct hub_sync_config *cfg);
void hub_sync_in_close(struct hub_sync_in *s); /* NULL is fine */
/* Objects that found no room (metadata only). */
size_t hub_sync_in_refused(const struct hub_sync_in *s);
/* The opening as bytes, without number and digest: two that are equal ask for the same. */
int hub_sync_opening(const struct hub_type *type, const struct hub_profile *profile,
                     bool metadata_only, struct kr_buf *out);

#endif
