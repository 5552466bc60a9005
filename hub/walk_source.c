/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/walk_source.h"

#define LEAVES_AHEAD 4

/* Whether a leaf is behind the namespace of the walk. */
static bool is_behind(const struct hub_walk_view *v, const struct hub_tree_row *row)
{
    return v->ns.n != 0 && kr_bytes_compare(hub_object_ns(row->first), v->ns) > 0;
}

static void enter_row(struct hub_source *s, const struct hub_walk_view *v, size_t row)
{
    const struct hub_tree *t = &s->shelf->live;

    s->row = row;
    s->at = 0;
    s->leaf = NULL;
    if (row >= t->n || is_behind(v, &t->rows[row]))
        return;
    s->leaf = t->rows[row].leaf;
    s->leaf_n = s->leaf->n;
    s->all_seen = s->leaf->newest <= v->revision;
    if (v->filter.rest.n != 0)
        hub_tree_prefetch(t, row + LEAVES_AHEAD, HUB_LEAF_SETS, HUB_LEAF_TAGS);
}

static void seek(struct hub_source *s, const struct hub_walk_view *v, const struct hub_key *key)
{
    struct hub_spot live = hub_tree_seek(&s->shelf->live, key);

    enter_row(s, v, live.row);
    s->at = (uint32_t)live.at;
    s->old = hub_tree_seek(&s->shelf->old, key);
    s->old_ended = !v->pinned || s->old.row >= s->shelf->old.n;
    s->clock = *v->clock;
}

/* What is selected by its labels, from the cursor on. */
static uint32_t next_selected(const struct hub_source *s, struct hub_walk_view *v)
{
    const uint32_t *sets;
    uint32_t at = s->at;

    if (v->filter.rest.n == 0)
        return at;
    sets = hub_leaf_sets(s->leaf);
    while (at < s->leaf_n && !hub_walk_filter_set(&v->filter, sets[at]))
        at++;
    return at;
}

/* The first of the leaf, from the cursor on, that is seen and selected. */
static struct hub_object *scan_leaf(struct hub_source *s, struct hub_walk_view *v)
{
    for (;; s->at++) {
        struct hub_object *o;

        s->at = next_selected(s, v);
        if (s->at >= s->leaf_n)
            return NULL;
        o = s->leaf->items[s->at];
        if (s->all_seen || o->revision <= v->revision)
            return o;
    }
}

/* Each of the two moves a cursor on to what is seen and selected, and gives it; NULL: the end. */
static struct hub_object *scan_live(struct hub_walk_view *v, struct hub_source *s)
{
    for (; s->leaf != NULL; enter_row(s, v, s->row + 1)) {
        struct hub_object *o = scan_leaf(s, v);

        if (o != NULL)
            return o;
    }
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
    s->old_ended = true;
    return NULL;
}

static struct hub_object *scan(struct hub_walk_view *v, struct hub_source *s)
{
    struct hub_object *live = scan_live(v, s);
    struct hub_object *old = s->old_ended ? NULL : scan_old(v, s);

    s->head_is_old = old != NULL && (live == NULL || kr_bytes_compare(hub_object_key(old),
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

static void skip_ns(struct hub_source *s, const struct hub_walk_view *v, struct kr_bytes ns)
{
    char next[UINT8_MAX + 1];

    /* Nothing is between a namespace and the same with a NUL behind it. */
    if (ns.n != 0)
        memcpy(next, ns.p, ns.n);
    next[ns.n] = '\0';
    seek(s, v, &(struct hub_key){.ns = kr_bytes_of(next, ns.n + 1)});
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
        skip_ns(s, v, ns);
    }
    s->head = o != NULL ? hub_object_ref(o) : NULL;
}

/* The source comes again when the others have had their turn: what it will look at then can be on
 * its way, and so can what the caller wants of the object now in hand. */
static void prefetch(const struct hub_source *s)
{
    const char *next = NULL;

    if (s->leaf == NULL || s->head_is_old)
        return;
    if (s->at + 1 < s->leaf_n)
        next = s->leaf->items[s->at + 1];
    else if (s->row + 1 < s->shelf->live.n)
        next = (const char *)s->shelf->live.rows[s->row + 1].first;
    if (next != NULL) {
        __builtin_prefetch(next, 1);
        __builtin_prefetch(next + 64);
    }
    __builtin_prefetch(hub_object_packed(s->head).p);
}

static void find_and_prefetch(struct hub_walk_view *v, struct hub_source *s)
{
    find_head(v, s);
    if (s->head != NULL)
        prefetch(s);
}

void hub_source_start(struct hub_source *s, struct hub_walk_view *v, const struct hub_key *key)
{
    seek(s, v, key);
    find_and_prefetch(v, s);
}

/* The clock runs for all trees: mostly it was another one that has changed. */
static bool is_stale(struct hub_source *s, const struct hub_walk_view *v)
{
    if (s->clock == *v->clock)
        return false;
    if (s->shelf->live.changed > s->clock || s->shelf->old.changed > s->clock)
        return true;
    s->clock = *v->clock;
    return false;
}

struct hub_object *hub_source_advance(struct hub_source *s, struct hub_walk_view *v)
{
    struct hub_object *left = s->head;

    if (is_stale(s, v))
        seek(s, v,
             &(struct hub_key){
                 .ns = hub_object_ns(left), .name = hub_object_name(left), .revision = UINT64_MAX});
    else if (s->head_is_old)
        hub_tree_step(&s->shelf->old, &s->old);
    else
        s->at++;
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
