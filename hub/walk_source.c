/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/walk_source.h"

#define LEAVES_AHEAD 4

static void seek(struct hub_source *s, const struct hub_key *key)
{
    s->live = hub_tree_seek(&s->shelf->live, key);
    s->old = hub_tree_seek(&s->shelf->old, key);
    s->live_changes = s->shelf->live.changes;
    s->old_changes = s->shelf->old.changes;
}

/* Whether the leaf, which the cursor has just come to, is behind the namespace of the walk. */
static bool leaf_is_behind(const struct hub_walk_view *v, const struct hub_tree_row *row)
{
    return v->ns.n != 0 && hub_text_compare(hub_object_ns(row->first), v->ns) > 0;
}

/* What is selected by its labels, from `at` on; the leaf's n if nothing is. */
static size_t next_selected(struct hub_walk_view *v, struct hub_leaf *l, size_t at)
{
    const uint32_t *sets = hub_leaf_sets(l);

    if (v->filter.rest.n == 0)
        return at;
    while (at < l->n && !hub_walk_filter_set(&v->filter, sets[at]))
        at++;
    return at;
}

/* The first of a leaf, from the cursor on, that is seen and selected. */
static struct hub_object *scan_leaf(struct hub_walk_view *v, struct hub_source *s,
                                    struct hub_leaf *l)
{
    bool all_seen = l->newest <= v->revision;

    for (;; s->live.at++) {
        struct hub_object *o;

        s->live.at = next_selected(v, l, s->live.at);
        if (s->live.at >= l->n)
            return NULL;
        o = l->items[s->live.at];
        if (all_seen || o->revision <= v->revision)
            return o;
    }
}

/* Each of the two moves a cursor on to what is seen and selected, and gives it; NULL: the end. */
static struct hub_object *scan_live(struct hub_walk_view *v, struct hub_source *s)
{
    const struct hub_tree *t = &s->shelf->live;

    for (; s->live.row < t->n; s->live = (struct hub_spot){.row = s->live.row + 1}) {
        struct hub_object *o;

        if (s->live.at == 0 && leaf_is_behind(v, &t->rows[s->live.row]))
            break;
        if (s->live.at == 0 && v->filter.rest.n != 0)
            hub_tree_prefetch(t, s->live.row + LEAVES_AHEAD, HUB_LEAF_SETS, HUB_LEAF_TAGS);
        o = scan_leaf(v, s, t->rows[s->live.row].leaf);
        if (o != NULL)
            return o;
    }
    s->live = (struct hub_spot){.row = t->n};
    return NULL;
}

static struct hub_object *scan_old(struct hub_walk_view *v, struct hub_source *s)
{
    const struct hub_tree *t = &s->shelf->old;

    for (; s->old.row < t->n; hub_tree_step(t, &s->old)) {
        const struct hub_old *old = hub_tree_at(t, s->old);

        if (old->object->revision <= v->revision && v->revision < old->until &&
            (v->filter.rest.n == 0 || hub_walk_filter_set(&v->filter, old->object->label_set)))
            return old->object;
    }
    return NULL;
}

static struct hub_object *scan(struct hub_walk_view *v, struct hub_source *s)
{
    struct hub_object *live = scan_live(v, s);
    struct hub_object *old = v->pinned ? scan_old(v, s) : NULL;

    s->head_is_old = old != NULL && (live == NULL || hub_text_compare(hub_object_key(old),
                                                                      hub_object_key(live)) < 0);
    return s->head_is_old ? old : live;
}

static bool may_see(const struct hub_walk_view *v, struct hub_source *s, struct kr_bytes ns)
{
    if (!s->ask_ns)
        return true;
    if (s->ns_known && kr_bytes_eq(ns, kr_bytes_of(s->ns, s->ns_n)))
        return s->ns_allowed;
    s->ns_allowed = v->sight->ns(v->sight, &s->shelf->pub, ns);
    s->ns_known = ns.n <= HUB_SOURCE_NS_MAX;
    s->ns_n = (uint8_t)(s->ns_known ? ns.n : 0);
    if (s->ns_n != 0)
        memcpy(s->ns, ns.p, ns.n);
    return s->ns_allowed;
}

static void skip_ns(struct hub_source *s, struct kr_bytes ns)
{
    char next[UINT8_MAX + 1];

    /* Nothing is between a namespace and the same with a NUL behind it. */
    if (ns.n != 0)
        memcpy(next, ns.p, ns.n);
    next[ns.n] = '\0';
    seek(s, &(struct hub_key){.ns = kr_bytes_of(next, ns.n + 1)});
}

/* Takes the next object in hand, from where the cursors are. */
static void find_head(struct hub_walk_view *v, struct hub_source *s)
{
    struct hub_object *o;

    for (;;) {
        struct kr_bytes ns;

        o = scan(v, s);
        if (o == NULL)
            break;
        ns = hub_object_ns(o);
        if (v->ns.n != 0 && !kr_bytes_eq(ns, v->ns))
            o = NULL;
        if (o == NULL || may_see(v, s, ns))
            break;
        skip_ns(s, ns);
    }
    s->head = o != NULL ? hub_object_ref(o) : NULL;
}

/* The source comes again when the others have had their turn: what it will look at then can be on
 * its way, and so can what the caller wants of the object now in hand. */
static void prefetch(const struct hub_source *s)
{
    const struct hub_tree *t = &s->shelf->live;
    const struct hub_leaf *l;
    const char *next;

    if (s->head_is_old || s->live.row >= t->n)
        return;
    l = t->rows[s->live.row].leaf;
    if (s->live.at + 1 < l->n)
        next = l->items[s->live.at + 1];
    else if (s->live.row + 1 < t->n)
        next = (const char *)t->rows[s->live.row + 1].first;
    else
        return;
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + 64);
    __builtin_prefetch(hub_object_packed(s->head).p);
    if (s->live.at + 4 == l->n)
        hub_tree_prefetch(t, s->live.row + 1, 0, 64);
}

static void find_and_prefetch(struct hub_walk_view *v, struct hub_source *s)
{
    find_head(v, s);
    if (s->head != NULL)
        prefetch(s);
}

void hub_source_start(struct hub_source *s, struct hub_walk_view *v, const struct hub_key *key)
{
    seek(s, key);
    find_and_prefetch(v, s);
}

struct hub_object *hub_source_advance(struct hub_source *s, struct hub_walk_view *v)
{
    struct hub_object *left = s->head;

    if (s->live_changes != s->shelf->live.changes || s->old_changes != s->shelf->old.changes)
        seek(s, &(struct hub_key){.ns = hub_object_ns(left),
                                  .name = hub_object_name(left),
                                  .revision = UINT64_MAX});
    else if (s->head_is_old)
        hub_tree_step(&s->shelf->old, &s->old);
    else
        hub_tree_step(&s->shelf->live, &s->live);
    find_and_prefetch(v, s);
    return left;
}

bool hub_source_init(struct hub_source *s, const struct hub_walk_view *v,
                     struct hub_shelf_box *shelf)
{
    int sees = v->sight != NULL ? v->sight->cluster(v->sight, &shelf->pub) : 1;

    if (sees == 0 || !hub_walk_filter_cluster(&v->filter, shelf->pub.cluster))
        return false;
    *s = (struct hub_source){.shelf = shelf, .ask_ns = sees == 2};
    shelf->refs++;
    return true;
}

void hub_source_deinit(struct hub_source *s)
{
    hub_object_unref(s->shelf->pub.type->cache, s->head);
    s->shelf->refs--;
    hub_shelf_bury(s->shelf);
}
