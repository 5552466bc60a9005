/* SPDX-License-Identifier: Apache-2.0 */
/* watchers: the watches of one type. They are told together when something happened; the text of
 * an event is made once for all of them that ask for the same form.
 * Memory: one struct for each type that is watched, gone with its last watch; texts belong to the
 * events (hub_event.shown). Threads: the worker's. */
#ifndef HUB_WATCHERS_H
#define HUB_WATCHERS_H

#include "hub/fleet_columns.h"
#include "hub/fleet_read.h"
#include "hub/outbox.h"

/* One watch; embedded. */
struct hub_watcher {
    struct kr_list link;
    struct hub_watchers *all;
    void (*on_events)(struct hub_watcher *w);
};

/* KR_ENOMEM. */
int hub_watchers_join(struct hub_type *type, struct hub_watcher *w);
void hub_watchers_leave(struct hub_watcher *w); /* one that never joined may leave, too */

/* What an event shows: an object as it was at a revision. */
struct hub_scene {
    struct hub_object *object;
    const char *cluster;
    uint64_t revision;
};

/* Appends the object as the read asks for it (of a Table: from "rows" on), and what closes the
 * event. `columns` of a Table. */
int hub_watchers_show(struct kr_buf *out, const struct hub_read *rd,
                      const struct hub_columns *columns, const struct hub_scene *scene);
/* Puts the same of an event's object, as the text that all share who ask for that form. */
int hub_watchers_show_event(struct hub_outbox *out, const struct hub_read *rd,
                            const struct hub_columns *columns, struct hub_event *event);

#endif
