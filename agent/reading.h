/* SPDX-License-Identifier: Apache-2.0 */
/* reading: takes the body of a list or of a watch apart while it comes, whichever form it has
 * (Table with whole objects, or plain JSON), into objects with their cells.
 * Memory: one element or line that spans reads, at most AGENT_OBJECT_MAX; given back when it ends.
 * Errors: KR_EPROTO (malformed, cut, no list), KR_EUNSUPPORTED (a Table without whole objects),
 *         KR_ENOMEM, or what a callback returned; the first one ends the reading. Pure. */
#ifndef AGENT_READING_H
#define AGENT_READING_H

#include "base/note.h"
#include "kube/list_scan.h"
#include "kube/watch_event.h"

#define AGENT_OBJECT_MAX (4u * 1024 * 1024) /* of a raw object with its cells */

struct agent_seen { /* one object, lent for the call */
    struct kr_bytes object;
    struct kr_bytes cells; /* of the Table's row; empty: none */
};

enum agent_objects { AGENT_OBJECTS_NONE, AGENT_OBJECTS_METADATA, AGENT_OBJECTS_WHOLE };

struct agent_reading_ops {
    int (*on_columns)(void *user, struct kr_bytes columns);
    int (*on_element)(void *user, const struct agent_seen *seen); /* of a list */
    /* `seen` is that of the event; columns were told before. */
    int (*on_event)(void *user, const struct kr_watch_event *e, const struct agent_seen *seen);
    void (*on_skipped)(void *user);
};

struct agent_reading { /* embed it; the fields belong to reading.c */
    const struct agent_reading_ops *ops;
    void *user;
    struct kr_list_scan scan;
    struct kr_event_reader lines;
    bool scanning;
    bool watching;
    enum agent_objects wanted;
    bool looked; /* at the first one */
    bool told;   /* the columns */
    struct kr_note why;
};

/* A list, or a watch, begins. `wanted`: what of an object must be there at least. */
int agent_reading_list(struct agent_reading *r, const struct agent_reading_ops *ops, void *user,
                       enum agent_objects wanted);
void agent_reading_watch(struct agent_reading *r, const struct agent_reading_ops *ops, void *user,
                         enum agent_objects wanted);
int agent_reading_feed(struct agent_reading *r, struct kr_bytes in);
/* The body of a list is complete: whether it was a whole list, with a version. */
int agent_reading_end(struct agent_reading *r);
static inline struct kr_bytes agent_reading_version(const struct agent_reading *r)
{
    return kr_buf_bytes(&r->scan.version);
}
static inline struct kr_bytes agent_reading_continue(const struct agent_reading *r)
{
    return kr_buf_bytes(&r->scan.cont);
}
void agent_reading_stop(struct agent_reading *r); /* zeroed is fine */

#endif
