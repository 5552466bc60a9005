/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of one shelf. A change is first prepared (all that can fail), then done: object, tree,
 * sums, the pins' share, the log. */
#include "hub/cache_internal.h"
#include "wire/digest.h"

static uint16_t tag_of(struct kr_bytes ns, struct kr_bytes name)
{
    return (uint16_t)kr_key_hash(ns, name);
}

static uint64_t next_revision(struct hub_shelf_box *s)
{
    return s->pub.type->revision = hub_cache_next_revision(s->pub.type->cache);
}

/* ---- sums ---- */

/* The tree's own bytes count for the shelf, too: `before` is what they were. */
static void count_tree(struct hub_shelf_box *s, uint64_t before)
{
    s->pub.bytes += s->live.bytes - before;
    s->pub.use->bytes += s->live.bytes - before;
}

static void count_in(struct hub_shelf_box *s, const struct hub_object *o)
{
    s->pub.bytes += hub_object_bytes(o);
    s->pub.use->bytes += hub_object_bytes(o);
}

static void count_out(struct hub_shelf_box *s, const struct hub_object *o)
{
    s->pub.bytes -= hub_object_bytes(o);
    s->pub.use->bytes -= hub_object_bytes(o);
}

static void count_objects(struct hub_shelf_box *s)
{
    s->pub.type->objects += s->live.count - s->pub.objects;
    s->pub.objects = s->live.count;
}

/* ---- putting ---- */

/* What gets smaller is always taken, so that a cluster over its quota can come back under it. */
static bool fits(const struct hub_shelf_box *s, const struct hub_object *old, size_t size)
{
    uint64_t bytes = hub_footprint(size);
    uint64_t freed = old != NULL ? hub_object_bytes(old) : 0;

    return bytes <= freed ||
           s->pub.use->bytes + bytes - freed <= s->pub.type->cache->limits.cluster_bytes;
}

static int prepare(struct hub_shelf_box *s, const struct hub_incoming *in,
                   const struct hub_object *old, struct hub_object **out)
{
    struct hub_cache *c = s->pub.type->cache;
    uint32_t set;
    size_t size;
    int rc = hub_object_measure(in, &size);

    if (rc != 0)
        return rc;
    if (!fits(s, old, size))
        return KR_EFULL;
    rc = hub_label_sets_take(&c->label_sets, in->labels, in->label_count, s->pub.use, &set);
    if (rc != 0)
        return rc;
    *out = hub_object_create(c, in, set);
    if (*out != NULL)
        return 0;
    hub_label_sets_unref(&c->label_sets, set);
    return KR_ENOMEM;
}

static int add(struct hub_shelf_box *s, const struct hub_incoming *in, struct hub_spot spot)
{
    struct hub_cache *c = s->pub.type->cache;
    uint64_t tree_bytes = s->live.bytes;
    struct hub_object *o = NULL;
    int rc = prepare(s, in, NULL, &o);

    if (rc != 0)
        return rc;
    /* Revisions rise even if this one is lost. */
    o->revision = hub_cache_next_revision(c);
    if (hub_tree_insert(&s->live, spot, o, tag_of(in->ns, in->name)) != 0) {
        hub_object_unref(c, o);
        return KR_ENOMEM;
    }
    s->pub.type->revision = o->revision;
    count_tree(s, tree_bytes);
    count_in(s, o);
    count_objects(s);
    hub_log_append(s, HUB_ADDED, o, NULL);
    return 0;
}

/* Puts `o` in the place of `old`; the caller has the tree's reference to `old` now. */
static void exchange(struct hub_shelf_box *s, struct hub_spot spot, struct hub_object *old,
                     struct hub_object *o)
{
    hub_tree_replace(&s->live, spot, o);
    count_out(s, old);
    count_in(s, o);
}

static int replace(struct hub_shelf_box *s, const struct hub_incoming *in, struct hub_spot spot,
                   struct hub_object *old)
{
    struct hub_cache *c = s->pub.type->cache;
    bool same_uid = hub_object_has_uid(old, in->uid);
    struct hub_object *o = NULL;
    int rc = prepare(s, in, old, &o);

    if (rc != 0)
        return rc;
    if (!same_uid) {
        hub_pin_keep(s, old, next_revision(s));
        hub_log_append(s, HUB_DELETED, old, NULL);
        o->revision = next_revision(s);
        exchange(s, spot, old, o);
        hub_log_append(s, HUB_ADDED, o, NULL);
    } else {
        o->revision = next_revision(s);
        hub_pin_keep(s, old, o->revision);
        exchange(s, spot, old, o);
        hub_log_append(s, HUB_MODIFIED, o, old);
    }
    hub_object_unref(c, old);
    return 0;
}

/* Nothing but the version at the edge has changed, and nobody is told. */
static int refresh(struct hub_shelf_box *s, const struct hub_incoming *in, struct hub_spot spot,
                   struct hub_object *old)
{
    struct hub_object *twin = NULL;
    int rc;

    old->lossy = in->lossy;
    if (hub_object_set_version(old, in->version))
        return 1;
    rc = prepare(s, in, old, &twin);
    if (rc != 0)
        return rc;
    twin->revision = old->revision;
    exchange(s, spot, old, twin);
    hub_log_exchange(hub_type_box(s->pub.type), old, twin);
    hub_object_unref(s->pub.type->cache, old);
    return 1;
}

int hub_shelf_put(struct hub_shelf *shelf, const struct hub_incoming *in)
{
    struct hub_shelf_box *s = hub_shelf_box(shelf);
    struct hub_object *old;
    struct hub_spot spot;

    hub_key_index_changed(shelf->type->cache, s);
    if (!hub_tree_find(&s->live, in->ns, in->name, tag_of(in->ns, in->name), &spot))
        return add(s, in, spot);
    old = hub_tree_at(&s->live, spot);
    if (old->hash == in->hash && hub_object_has_uid(old, in->uid))
        return refresh(s, in, spot, old);
    return replace(s, in, spot, old);
}

/* ---- deleting ---- */

static void delete_at(struct hub_shelf_box *s, struct hub_spot spot)
{
    struct hub_object *o = hub_tree_at(&s->live, spot);
    uint64_t tree_bytes = s->live.bytes;

    hub_tree_remove(&s->live, spot);
    count_tree(s, tree_bytes);
    count_out(s, o);
    count_objects(s);
    hub_pin_keep(s, o, next_revision(s));
    hub_log_append(s, HUB_DELETED, o, NULL);
    hub_object_unref(s->pub.type->cache, o);
}

bool hub_shelf_delete(struct hub_shelf *shelf, struct kr_bytes ns, struct kr_bytes name)
{
    struct hub_shelf_box *s = hub_shelf_box(shelf);
    struct hub_spot spot;

    if (!hub_tree_find(&s->live, ns, name, tag_of(ns, name), &spot))
        return false;
    hub_key_index_changed(shelf->type->cache, s);
    delete_at(s, spot);
    return true;
}

bool hub_shelf_delete_hash(struct hub_shelf *shelf, uint64_t key)
{
    struct hub_shelf_box *s = hub_shelf_box(shelf);
    struct hub_spot spot;

    if (!hub_key_index_find(s, key, &spot))
        return false;
    delete_at(s, spot);
    return true;
}

void hub_shelf_clear(struct hub_shelf *shelf, bool quiet)
{
    struct hub_shelf_box *s = hub_shelf_box(shelf);
    struct hub_cache *c = shelf->type->cache;
    uint64_t tree_bytes = s->live.bytes;
    uint64_t revision = 0;

    hub_key_index_changed(c, s);
    if (s->live.count != 0)
        revision = next_revision(s);
    for (struct hub_spot at = {.row = 0}; at.row < s->live.n; hub_tree_step(&s->live, &at)) {
        struct hub_object *o = hub_tree_at(&s->live, at);

        if (!quiet && at.row + at.at != 0)
            revision = next_revision(s);
        count_out(s, o);
        hub_pin_keep(s, o, revision);
        if (!quiet)
            hub_log_append(s, HUB_DELETED, o, NULL);
        hub_object_unref(c, o);
    }
    hub_tree_empty(&s->live);
    count_tree(s, tree_bytes);
    count_objects(s);
    if (quiet && revision != 0)
        hub_log_forget(hub_type_box(shelf->type));
}

/* ---- reading ---- */

const struct hub_object *hub_shelf_get(struct hub_shelf *shelf, struct kr_bytes ns,
                                       struct kr_bytes name)
{
    struct hub_shelf_box *s = hub_shelf_box(shelf);
    struct hub_spot spot;

    if (!hub_tree_find(&s->live, ns, name, tag_of(ns, name), &spot))
        return NULL;
    return hub_tree_at(&s->live, spot);
}

const struct hub_object *hub_shelf_next(struct hub_shelf *shelf, struct hub_shelf_pos *pos)
{
    struct hub_shelf_box *s = hub_shelf_box(shelf);
    struct hub_spot spot = {.row = pos->leaf, .at = pos->at};
    struct hub_object *o = hub_tree_at(&s->live, spot);

    if (o == NULL)
        return NULL;
    hub_tree_step(&s->live, &spot);
    *pos = (struct hub_shelf_pos){.leaf = spot.row, .at = spot.at};
    return o;
}
