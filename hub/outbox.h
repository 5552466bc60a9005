/* SPDX-License-Identifier: Apache-2.0 */
/* outbox: text on its way to one reader, in order: own bytes, and texts that many readers share and
 * nobody copies before the wire.
 * Memory: own bytes and a counted reference for each shared text; nothing at all once it is taken.
 * Limits: the caller stops at what is enough; HUB_OUTBOX_PARTS pieces. Errors: KR_ENOMEM, KR_EFULL,
 *         those of kr_buf; what was put before stays. Pure. */
#ifndef HUB_OUTBOX_H
#define HUB_OUTBOX_H

#include "base/buf.h"
#include "hub/cache.h"

#define HUB_OUTBOX_PARTS 64

struct hub_outbox { /* embed it; zeroed is empty. Read size; write own text through `own` */
    struct kr_buf own;
    struct hub_outbox_part *parts;
    size_t count; /* parts */
    size_t at;    /* the first part that is not taken whole */
    size_t taken; /* of it */
    size_t noted; /* bytes of `own` that are in a part */
    size_t size;  /* bytes that can be taken, once hub_outbox_note was called */
};

void hub_outbox_init(struct hub_outbox *o, size_t own_max);
void hub_outbox_deinit(struct hub_outbox *o); /* empties it; it may be used again */
/* What was appended to `own` since the last call comes next. */
int hub_outbox_note(struct hub_outbox *o);
/* The text behind its first `skip` bytes comes next (own text before it is noted). */
int hub_outbox_share(struct hub_outbox *o, struct hub_shown *text, size_t skip);
/* Exactly n <= size bytes. */
void hub_outbox_take(struct hub_outbox *o, uint8_t *out, size_t n);
static inline bool hub_outbox_has_room(const struct hub_outbox *o)
{
    return o->count + 2 <= HUB_OUTBOX_PARTS;
}

#endif
