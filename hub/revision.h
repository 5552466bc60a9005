/* SPDX-License-Identifier: Apache-2.0 */
/* revision: the fleet's own resourceVersion: one decimal integer for all types, ever increasing:
 * max(previous + 16, microseconds since 1970 << 4 | replica), so that it fits 64 bits and needs no
 * journal. A high-water mark in a file, written ahead, keeps it increasing over a restart with a
 * clock that stepped back. Clients compare such versions as integers (KEP-5504).
 * Units: the low 4 bits are the replica's number. Errors: those of the file (certs/store_file.h).
 * Threads: one. */
#ifndef HUB_REVISION_H
#define HUB_REVISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/note.h"

struct hub_revision {  /* read last and first; the rest belongs to revision.c */
    uint64_t last;     /* of the latest change */
    uint64_t first;    /* of this start: what is older was served by nobody alive */
    uint64_t reserved; /* what the file says: every revision is below it */
    unsigned replica;
    char *file;        /* NULL: nothing is kept */
    uint64_t retry_at; /* a file that could not be written is tried again from here on */
    bool failed;
    struct kr_note why;       /* of the failure */
    const struct kr_log *log; /* set after init, or NULL: told when the file fails and recovers */
};

/* `file` may be NULL. now_wall_us: microseconds since 1970. */
int hub_revision_init(struct hub_revision *r, const char *file, unsigned replica,
                      int64_t now_wall_us, struct kr_note *why);
void hub_revision_deinit(struct hub_revision *r);
/* The next one. A file that cannot be written is told by hub_revision_failed and retried. */
uint64_t hub_revision_next(struct hub_revision *r, int64_t now_wall_us);
/* Whether the file could not be written the last time: revisions go on, but a restart together with
 * a clock that stepped back might repeat some. `why` may be NULL. */
bool hub_revision_failed(const struct hub_revision *r, struct kr_note *why);
/* Whether this hub, since its start, may have given it out. */
bool hub_revision_is_ours(const struct hub_revision *r, uint64_t revision);

#endif
