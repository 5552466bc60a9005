/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_state.h"

#include <stdlib.h>

#include "base/err.h"
#include "hub/counters.h"

#define ROOM_MIN 16384
#define ROOM_KEPT (512u * 1024) /* larger room is given back for a small object */

int hub_fleet_state_init(struct hub_fleet *f, struct hub_worker *w)
{
    f->w = w;
    kr_list_init(&f->reads);
    kr_rand_secret(f->token_key, sizeof f->token_key);
    f->m_lists = kr_metrics_series(w->metrics, HUB_FLEET_LISTS, NULL, 0);
    f->m_watchers = kr_metrics_series(w->metrics, HUB_FLEET_WATCHERS, NULL, 0);
    f->m_events = kr_metrics_series(w->metrics, HUB_FLEET_EVENTS, NULL, 0);
    f->m_list_bytes = kr_metrics_series(w->metrics, HUB_FLEET_LIST_BYTES, NULL, 0);
    f->dictionaries = kr_dictionaries_create(false, true);
    if (f->dictionaries != NULL)
        f->unpacker = kr_unpacker_create(f->dictionaries);
    return f->unpacker != NULL ? 0 : KR_ENOMEM;
}

void hub_fleet_state_deinit(struct hub_fleet *f)
{
    for (size_t i = 0; i < HUB_PLAINS; i++) {
        if (f->plains[i].of != NULL)
            hub_object_unref(f->w->cache, f->plains[i].of);
        free(f->plains[i].room);
    }
    hub_columns_unref(f->columns);
    kr_unpacker_destroy(f->unpacker);
    kr_dictionaries_destroy(f->dictionaries);
}

static int make_room(struct hub_plain_slot *slot, size_t size)
{
    size_t cap = ROOM_MIN;
    uint8_t *room;

    if (size <= slot->cap && (slot->cap <= ROOM_KEPT || size > ROOM_KEPT / 4))
        return 0;
    while (cap < size)
        cap *= 2;
    room = malloc(cap);
    if (room == NULL)
        return KR_ENOMEM;
    free(slot->room);
    slot->room = room;
    slot->cap = cap;
    return 0;
}

static void split(struct kr_bytes plain, struct hub_plain *out)
{
    size_t line = kr_bytes_find(plain, '\n');

    out->cells = kr_bytes_of(plain.p, line);
    out->slim = kr_bytes_skip(plain, line < plain.n ? line + 1 : line);
}

static int unpack(struct hub_fleet *f, struct hub_plain_slot *slot, struct hub_object *o)
{
    struct kr_bytes packed = hub_object_packed(o);
    int rc = 0;

    if (o->dictionary == 0) {
        split(packed, &slot->text);
        return packed.n == o->size ? 0 : KR_EPROTO;
    }
    rc = make_room(slot, o->size);
    if (rc == 0)
        rc = kr_unpack(f->unpacker, packed, o->dictionary, slot->room, o->size);
    if (rc == 0)
        split(kr_bytes_of(slot->room, o->size), &slot->text);
    return rc;
}

int hub_fleet_plain(struct hub_fleet *f, struct hub_object *o, struct hub_plain *out)
{
    struct hub_plain_slot *slot;
    int rc;

    for (size_t i = 0; i < HUB_PLAINS; i++) {
        if (f->plains[i].of == o) {
            f->next_plain = (unsigned)(i + 1) % HUB_PLAINS; /* the other one goes next */
            *out = f->plains[i].text;
            return 0;
        }
    }
    slot = &f->plains[f->next_plain];
    f->next_plain = (f->next_plain + 1) % HUB_PLAINS;
    if (slot->of != NULL)
        hub_object_unref(f->w->cache, slot->of);
    slot->of = NULL;
    rc = unpack(f, slot, o);
    if (rc == 0) {
        slot->of = hub_object_ref(o);
        *out = slot->text;
    }
    return rc;
}

struct hub_columns *hub_fleet_columns(struct hub_fleet *f, const struct hub_type *type)
{
    struct hub_columns *c = hub_columns_get(type, f->columns_of == type ? f->columns : NULL);

    if (c == NULL || c == f->columns)
        return c;
    hub_columns_unref(f->columns);
    f->columns = c;
    f->columns_of = type;
    c->refs++;
    return c;
}
