/* SPDX-License-Identifier: Apache-2.0 */
/* sync_kept: what the agent believes that each hub holds of each subscription; it outlives the Sync
 * call and its tunnel, so that the next one can go on. A belief only: every new call compares it
 * with the hub's digest first.
 * Memory: about 25 bytes an object. Limits: AGENT_KEPT_MAX; those that nobody has used for 10
 *         minutes go. Threads: the agent's. */
#ifndef AGENT_SYNC_KEPT_H
#define AGENT_SYNC_KEPT_H

#include "base/buf.h"
#include "base/sched.h"
#include "wire/sync_messages.h"
#include "wire/sync_table.h"

#define AGENT_KEPT_MAX 2048
#define AGENT_KEPT_OBJECTS_MAX 4000000u

struct agent_kept { /* read and change what is behind `key` */
    struct kr_list link;
    void *holder; /* who uses it; NULL: nobody */
    int64_t left_ms;
    struct kr_buf key; /* the hub and the subscription */
    struct kr_sync_table table;
    bool valid;            /* the table is what the hub is believed to hold */
    struct kr_buf version; /* up to which it is complete; empty: it is not */
    struct kr_buf changed; /* of the last change that was sent */
    struct kr_buf columns; /* columnDefinitions */
};

struct agent_kept_all { /* embed it; the fields belong to sync_kept.c */
    struct kr_sched *sched;
    struct kr_list list; /* agent_kept.link */
    struct kr_timer timer;
    size_t n;
};

void agent_kept_init(struct agent_kept_all *all, struct kr_sched *sched);
void agent_kept_deinit(struct agent_kept_all *all); /* nobody holds one any more */
/* The words that name a subscription of a hub: what it selects and keeps, not its number. */
int agent_kept_key(const char *replica, const struct kr_subscription *s, struct kr_buf *out);
/* The one of that key, new if there was none; its holder is unchanged: the caller takes it over.
 * NULL without memory, or if all are held. */
struct agent_kept *agent_kept_get(struct agent_kept_all *all, struct kr_bytes key);
void agent_kept_leave(struct agent_kept_all *all, struct agent_kept *k);
/* Forgets what it holds. */
void agent_kept_reset(struct agent_kept *k);

#endif
