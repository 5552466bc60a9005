/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/watchers.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/fleet_row.h"

#define SHOWN_MAX (64u << 20)

/* Which text of an event. The rarer forms are made for each watch. */
enum slot {
    SLOT_OBJECT,
    SLOT_PARTIAL,
    SLOT_ROW_OBJECT,
    SLOT_ROW_PARTIAL,
    SLOT_NONE,
};

_Static_assert(SLOT_NONE == HUB_EVENT_FORMS, "a slot for each text");

struct hub_watchers {
    struct hub_type *type;
    struct hub_listener listener;
    struct kr_list all; /* hub_watcher.link */
};

/* ---- together ---- */

static void on_events(struct hub_listener *l)
{
    struct hub_watchers *ws = KR_CONTAINER_OF(l, struct hub_watchers, listener);

    KR_LIST_FOREACH_SAFE(node, &ws->all)
    {
        struct hub_watcher *w = KR_CONTAINER_OF(node, struct hub_watcher, link);

        w->on_events(w);
    }
}

static struct hub_watchers *of(struct hub_type *type)
{
    struct hub_watchers *ws = type->watchers;

    if (ws != NULL)
        return ws;
    ws = calloc(1, sizeof *ws);
    if (ws == NULL)
        return NULL;
    ws->type = type;
    kr_list_init(&ws->all);
    ws->listener.on_events = on_events;
    hub_type_listen(type, &ws->listener);
    type->watchers = ws;
    return ws;
}

int hub_watchers_join(struct hub_type *type, struct hub_watcher *w)
{
    struct hub_watchers *ws = of(type);

    if (ws == NULL)
        return KR_ENOMEM;
    w->all = ws;
    kr_list_append(&ws->all, &w->link);
    return 0;
}

void hub_watchers_leave(struct hub_watcher *w)
{
    struct hub_watchers *ws = w->all;

    if (ws == NULL)
        return;
    kr_list_remove(&w->link);
    w->all = NULL;
    if (!kr_list_empty(&ws->all))
        return;
    hub_listener_stop(&ws->listener);
    ws->type->watchers = NULL;
    free(ws);
}

/* ---- texts ---- */

static enum slot slot_of(const struct hub_read *rd)
{
    bool beta = strcmp(hub_read_meta_version(rd), "v1") != 0;

    if (!hub_read_is_table(rd) && !hub_read_is_partial(rd))
        return SLOT_OBJECT;
    if (hub_read_is_partial(rd))
        return beta ? SLOT_NONE : SLOT_PARTIAL;
    if (rd->options.include == KR_INCLUDE_OBJECT)
        return SLOT_ROW_OBJECT;
    return rd->options.include == KR_INCLUDE_METADATA && !beta ? SLOT_ROW_PARTIAL : SLOT_NONE;
}

static int show_row(struct kr_buf *out, const struct hub_read *rd,
                    const struct hub_columns *columns, const struct hub_plain *text,
                    const struct hub_scene *scene, const struct hub_face *face)
{
    struct hub_row row = {
        .columns = columns,
        .kind = &rd->kind,
        .meta_version = hub_read_meta_version(rd),
        .include = rd->options.include,
        .now_wall_s = rd->f->w->sched->now_wall_ms / 1000,
    };
    int rc = kr_buf_append_str(out, "\"rows\":[");

    if (rc == 0)
        rc =
            hub_row_write(out, &row, text->cells, text->slim, hub_object_name(scene->object), face);
    return rc != 0 ? rc : kr_buf_append_str(out, "]}}\n");
}

int hub_watchers_show(struct kr_buf *out, const struct hub_read *rd,
                      const struct hub_columns *columns, const struct hub_scene *scene)
{
    struct hub_face face = {
        .cluster = scene->cluster,
        .revision = scene->revision,
        .origin = hub_object_version(scene->object),
        .lossy = scene->object->lossy,
    };
    struct hub_plain text;
    struct hub_spots spots;
    int rc = hub_fleet_plain(rd->f, scene->object, &text);

    if (rc != 0)
        return rc;
    if (hub_read_is_table(rd))
        return show_row(out, rd, columns, &text, scene, &face);
    rc = hub_spots_find(text.slim, hub_read_is_partial(rd), &spots);
    if (rc == 0 && hub_read_is_partial(rd))
        rc = hub_render_partial(out, hub_read_meta_version(rd), text.slim, &spots, &face);
    else if (rc == 0)
        rc = hub_render_at(out, &rd->kind, text.slim, &spots, &face);
    return rc != 0 ? rc : kr_buf_append_str(out, "}\n");
}

/* Rows fit one set of columns only: its stamp stands before their text. */
static uint64_t stamp_of(const struct hub_columns *columns)
{
    return columns != NULL ? columns->stamp : 0;
}

static struct hub_shown *make(const struct hub_read *rd, const struct hub_columns *columns,
                              const struct hub_scene *scene)
{
    struct kr_buf text = {.max = SHOWN_MAX};
    uint64_t stamp = stamp_of(columns);
    struct hub_shown *shown = NULL;
    int rc = kr_buf_append(&text, kr_bytes_of(&stamp, sizeof stamp));

    if (rc == 0)
        rc = hub_watchers_show(&text, rd, columns, scene);
    if (rc == 0)
        shown = malloc(sizeof *shown + text.n);
    if (shown != NULL) {
        shown->refs = 1;
        shown->n = (uint32_t)text.n;
        memcpy(shown->text, text.p, text.n);
    }
    kr_buf_deinit(&text);
    return shown;
}

int hub_watchers_show_event(struct hub_outbox *out, const struct hub_read *rd,
                            const struct hub_columns *columns, struct hub_event *event)
{
    struct hub_scene scene = {event->object, event->cluster, event->revision};
    enum slot slot = slot_of(rd);
    uint64_t stamp = stamp_of(columns);
    struct hub_shown *shown;

    if (slot == SLOT_NONE)
        return hub_watchers_show(&out->own, rd, columns, &scene);
    if (event->shown[slot] == NULL)
        event->shown[slot] = make(rd, columns, &scene);
    shown = event->shown[slot];
    if (shown == NULL || memcmp(shown->text, &stamp, sizeof stamp) != 0)
        return hub_watchers_show(&out->own, rd, columns, &scene);
    return hub_outbox_share(out, shown, sizeof stamp);
}
