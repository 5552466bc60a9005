/* SPDX-License-Identifier: Apache-2.0 */
/* A walk merges the shelves of a type: each that the reader may see is a source with its next
 * object in hand. Sources wait, ordered by the namespace of that object, until it is the turn of
 * their namespace; those whose turn it is are ordered by its name. Both are heaps; names are
 * compared by their first eight bytes before anything is touched.
 *
 * A source under a pin has two cursors: in the live tree, where what is newer than the pin is
 * passed over, and in the tree of old versions. At most one of them has a version of a key that the
 * pin sees. When a tree has changed since the last step, its cursor is found again by the key of
 * the object that was in hand: what the pin shows cannot have changed. */
#include "hub/cache_internal.h"
#include "hub/walk_filter.h"

#define NS_MAX 63

struct source {
    struct hub_shelf_box *shelf; /* counted */
    struct hub_object *head;     /* counted */
    struct hub_spot live;
    struct hub_spot old;
    uint64_t live_changes; /* the cursors are good for these trees */
    uint64_t old_changes;
    bool head_is_old;
    bool ask_ns;   /* not all namespaces may be seen */
    bool ns_known; /* the answer for `ns` is ns_allowed */
    bool ns_allowed;
    uint8_t ns_n;
    char ns[NS_MAX];
};

struct place { /* in a heap */
    uint64_t prefix;
    struct source *source;
};

struct heap {
    struct place *all;
    size_t n;
    bool by_name; /* else by namespace */
};

struct hub_walk {
    struct hub_cache *cache;
    struct hub_pin *pin;
    uint64_t revision; /* what is newer is not seen */
    const struct hub_sight *sight;
    struct kr_bytes ns; /* in the arena of the filter */
    struct hub_walk_filter filter;
    struct source *sources; /* by cluster */
    size_t n;
    struct heap waiting;
    struct heap names;
    bool given; /* the first of `names` has been given to the caller */
};

/* ---- heaps ---- */

static uint64_t prefix_of(struct kr_bytes text)
{
    uint64_t x = 0;

    for (size_t i = 0; i < 8; i++)
        x = x << 8 | (i < text.n ? text.p[i] : 0);
    return x;
}

static struct kr_bytes sort_text(const struct heap *h, const struct source *s)
{
    return h->by_name ? hub_object_name(s->head) : hub_object_ns(s->head);
}

static bool before(const struct heap *h, const struct place *a, const struct place *b)
{
    int d;

    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    d = hub_text_compare(sort_text(h, a->source), sort_text(h, b->source));
    return d != 0 ? d < 0 : a->source < b->source;
}

static void sift_down(struct heap *h, size_t at)
{
    struct place p = h->all[at];

    for (;;) {
        size_t child = at * 2 + 1;

        if (child >= h->n)
            break;
        if (child + 1 < h->n && before(h, &h->all[child + 1], &h->all[child]))
            child++;
        if (!before(h, &h->all[child], &p))
            break;
        h->all[at] = h->all[child];
        at = child;
    }
    h->all[at] = p;
}

static void push(struct heap *h, struct source *s)
{
    struct place p = {.prefix = prefix_of(sort_text(h, s)), .source = s};
    size_t at = h->n++;

    while (at != 0 && before(h, &p, &h->all[(at - 1) / 2])) {
        h->all[at] = h->all[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->all[at] = p;
}

static void drop_first(struct heap *h)
{
    h->all[0] = h->all[--h->n];
    if (h->n != 0)
        sift_down(h, 0);
}

/* The first source has another object in hand. */
static void renew_first(struct heap *h)
{
    h->all[0].prefix = prefix_of(sort_text(h, h->all[0].source));
    sift_down(h, 0);
}

/* ---- one source ---- */

static void seek(struct source *s, const struct hub_key *key)
{
    s->live = hub_tree_seek(&s->shelf->live, key);
    s->old = hub_tree_seek(&s->shelf->old, key);
    s->live_changes = s->shelf->live.changes;
    s->old_changes = s->shelf->old.changes;
}

/* Whether the leaf, which the cursor has just come to, is behind the namespace of the walk. */
static bool leaf_is_behind(const struct hub_walk *w, const struct hub_tree_row *row)
{
    return w->ns.n != 0 && hub_text_compare(hub_object_ns(row->first), w->ns) > 0;
}

/* Each of the two moves a cursor on to what is seen and selected, and gives it; NULL: the end. */
static struct hub_object *scan_live(struct hub_walk *w, struct source *s)
{
    const struct hub_tree *t = &s->shelf->live;
    bool all_sets = w->filter.rest.n == 0;

    for (; s->live.row < t->n; s->live = (struct hub_spot){.row = s->live.row + 1}) {
        struct hub_leaf *l = t->rows[s->live.row].leaf;
        const uint32_t *sets = hub_leaf_sets(l);
        bool all_seen = l->newest <= w->revision;

        if (s->live.at == 0 && leaf_is_behind(w, &t->rows[s->live.row]))
            break;
        for (; s->live.at < l->n; s->live.at++) {
            struct hub_object *o = l->items[s->live.at];

            if (!all_sets && !hub_walk_filter_set(&w->filter, sets[s->live.at]))
                continue;
            if (all_seen || o->revision <= w->revision)
                return o;
        }
    }
    s->live = (struct hub_spot){.row = t->n};
    return NULL;
}

static struct hub_object *scan_old(struct hub_walk *w, struct source *s)
{
    const struct hub_tree *t = &s->shelf->old;

    for (; s->old.row < t->n; hub_tree_step(t, &s->old)) {
        const struct hub_old *old = hub_tree_at(t, s->old);

        if (old->object->revision <= w->revision && w->revision < old->until &&
            (w->filter.rest.n == 0 || hub_walk_filter_set(&w->filter, old->object->label_set)))
            return old->object;
    }
    return NULL;
}

static int compare_keys(const struct hub_object *a, const struct hub_object *b)
{
    int d = hub_text_compare(hub_object_ns(a), hub_object_ns(b));

    return d != 0 ? d : hub_text_compare(hub_object_name(a), hub_object_name(b));
}

static struct hub_object *scan(struct hub_walk *w, struct source *s)
{
    struct hub_object *live = scan_live(w, s);
    struct hub_object *old = w->pin != NULL ? scan_old(w, s) : NULL;

    s->head_is_old = old != NULL && (live == NULL || compare_keys(old, live) < 0);
    return s->head_is_old ? old : live;
}

static bool may_see(const struct hub_walk *w, struct source *s, struct kr_bytes ns)
{
    if (!s->ask_ns)
        return true;
    if (s->ns_known && kr_bytes_eq(ns, kr_bytes_of(s->ns, s->ns_n)))
        return s->ns_allowed;
    s->ns_allowed = w->sight->ns(w->sight, &s->shelf->pub, ns);
    s->ns_known = ns.n <= NS_MAX;
    s->ns_n = (uint8_t)(s->ns_known ? ns.n : 0);
    if (s->ns_n != 0)
        memcpy(s->ns, ns.p, ns.n);
    return s->ns_allowed;
}

static void skip_ns(struct source *s, struct kr_bytes ns)
{
    char next[UINT8_MAX + 1];

    /* Nothing is between a namespace and the same with a NUL behind it. */
    if (ns.n != 0)
        memcpy(next, ns.p, ns.n);
    next[ns.n] = '\0';
    seek(s, &(struct hub_key){.ns = kr_bytes_of(next, ns.n + 1)});
}

/* Takes the next object in hand, from where the cursors are. */
static void find_head(struct hub_walk *w, struct source *s)
{
    struct hub_object *o;

    for (;;) {
        struct kr_bytes ns;

        o = scan(w, s);
        if (o == NULL)
            break;
        ns = hub_object_ns(o);
        if (w->ns.n != 0 && !kr_bytes_eq(ns, w->ns))
            o = NULL;
        if (o == NULL || may_see(w, s, ns))
            break;
        skip_ns(s, ns);
    }
    s->head = o != NULL ? hub_object_ref(o) : NULL;
}

/* The source comes again when the others have had their turn: its next object can be on its way. */
static void prefetch(const struct source *s)
{
    const struct hub_tree *t = &s->shelf->live;
    const struct hub_leaf *l = s->live.row < t->n ? t->rows[s->live.row].leaf : NULL;

    if (l == NULL || s->live.at + 1 >= l->n)
        return;
    __builtin_prefetch(l->items[s->live.at + 1], 1);
    __builtin_prefetch((const char *)l->items[s->live.at + 1] + 64);
}

/* Leaves the object in hand (whose reference is the caller's from now on) for the next one. */
static void advance(struct hub_walk *w, struct source *s)
{
    const struct hub_object *o = s->head;

    if (s->live_changes != s->shelf->live.changes || s->old_changes != s->shelf->old.changes)
        seek(s, &(struct hub_key){
                    .ns = hub_object_ns(o), .name = hub_object_name(o), .revision = UINT64_MAX});
    else if (s->head_is_old)
        hub_tree_step(&s->shelf->old, &s->old);
    else
        hub_tree_step(&s->shelf->live, &s->live);
    find_head(w, s);
    prefetch(s);
}

/* ---- setting up ---- */

static void add_source(struct hub_walk *w, struct hub_shelf_box *shelf)
{
    struct source *s = &w->sources[w->n];
    int sees = w->sight != NULL ? w->sight->cluster(w->sight, &shelf->pub) : 1;

    if (sees == 0 || !hub_walk_filter_cluster(&w->filter, shelf->pub.cluster))
        return;
    *s = (struct source){.shelf = shelf, .ask_ns = sees == 2};
    shelf->refs++;
    w->n++;
}

static int by_cluster(const void *a, const void *b)
{
    const struct source *x = a;
    const struct source *y = b;

    return strcmp(x->shelf->pub.cluster, y->shelf->pub.cluster);
}

static int add_sources(struct hub_walk *w, struct hub_type_box *t)
{
    bool ghosts = w->pin != NULL && !kr_list_empty(&t->ghosts);
    size_t max = t->shelf_count;

    KR_LIST_FOREACH(node, &t->ghosts)
    max++;
    w->sources = malloc((max + 1) * sizeof *w->sources);
    w->waiting.all = malloc((max + 1) * sizeof *w->waiting.all);
    w->names.all = malloc((max + 1) * sizeof *w->names.all);
    if (w->sources == NULL || w->waiting.all == NULL || w->names.all == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < t->shelf_count; i++)
        add_source(w, t->shelves[i]);
    if (!ghosts)
        return 0;
    KR_LIST_FOREACH(node, &t->ghosts)
    add_source(w, hub_shelf_box(KR_CONTAINER_OF(node, struct hub_shelf, in_type)));
    qsort(w->sources, w->n, sizeof *w->sources, by_cluster);
    return 0;
}

/* The first key of a shelf that the walk may give. */
static struct hub_key start_of(const struct hub_walk_query *q, const struct hub_shelf *shelf)
{
    struct hub_key key = {.ns = q->after_ns, .name = q->after_name};

    if (q->ns.n != 0 && hub_text_compare(q->after_ns, q->ns) < 0)
        return (struct hub_key){.ns = q->ns};
    /* On the shelves up to that cluster the key itself is done. */
    if (q->after_cluster.n != 0 &&
        hub_text_compare(kr_bytes_str(shelf->cluster), q->after_cluster) <= 0)
        key.revision = UINT64_MAX;
    return key;
}

static void start(struct hub_walk *w, const struct hub_walk_query *q)
{
    hub_walk_filter_begin(&w->filter);
    for (size_t i = 0; i < w->n; i++) {
        struct source *s = &w->sources[i];
        struct hub_key key = start_of(q, &s->shelf->pub);

        seek(s, &key);
        find_head(w, s);
        if (s->head != NULL)
            push(&w->waiting, s);
    }
}

struct hub_walk *hub_walk_create(const struct hub_walk_query *q)
{
    struct hub_walk *w = calloc(1, sizeof *w);
    int rc;

    if (w == NULL)
        return NULL;
    w->cache = q->type->cache;
    w->names.by_name = true;
    w->sight = q->sight;
    w->revision = UINT64_MAX;
    rc = hub_walk_filter_init(&w->filter, &w->cache->label_sets, q->labels);
    if (rc == 0 && q->ns.n != 0) {
        w->ns = kr_arena_copy(&w->filter.arena, q->ns);
        rc = w->ns.p != NULL ? 0 : KR_ENOMEM;
    }
    if (q->pin != NULL) {
        w->pin = hub_pin_ref(q->pin);
        w->revision = hub_pin_revision(q->pin);
    }
    if (rc == 0)
        rc = add_sources(w, hub_type_box(q->type));
    if (rc != 0) {
        hub_walk_destroy(w);
        return NULL;
    }
    if (w->pin == NULL || !hub_pin_broken(w->pin))
        start(w, q);
    return w;
}

void hub_walk_destroy(struct hub_walk *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->n; i++) {
        hub_object_unref(w->cache, w->sources[i].head);
        w->sources[i].shelf->refs--;
        hub_shelf_bury(w->sources[i].shelf);
    }
    if (w->pin != NULL)
        hub_pin_release(w->pin, false);
    hub_walk_filter_deinit(&w->filter);
    free(w->sources);
    free(w->waiting.all);
    free(w->names.all);
    free(w);
}

/* ---- stepping ---- */

/* The source that gave its object takes the next one in hand, and its new place. */
static void leave(struct hub_walk *w)
{
    struct source *s = w->names.all[0].source;
    struct hub_object *left = s->head;

    advance(w, s);
    if (s->head != NULL && kr_bytes_eq(hub_object_ns(s->head), hub_object_ns(left))) {
        renew_first(&w->names);
    } else {
        drop_first(&w->names);
        if (s->head != NULL)
            push(&w->waiting, s);
    }
    hub_object_unref(w->cache, left);
}

/* All sources whose next object is in the first namespace of those that wait. */
static void begin_ns(struct hub_walk *w)
{
    struct kr_bytes ns = hub_object_ns(w->waiting.all[0].source->head);

    while (w->waiting.n != 0 && kr_bytes_eq(hub_object_ns(w->waiting.all[0].source->head), ns)) {
        push(&w->names, w->waiting.all[0].source);
        drop_first(&w->waiting);
    }
}

struct hub_object *hub_walk_next(struct hub_walk *w, const char **cluster)
{
    const struct source *s;

    if (w->pin != NULL && hub_pin_broken(w->pin))
        return NULL;
    hub_walk_filter_begin(&w->filter);
    if (w->given)
        leave(w);
    if (w->names.n == 0 && w->waiting.n != 0)
        begin_ns(w);
    w->given = w->names.n != 0;
    if (!w->given)
        return NULL;
    s = w->names.all[0].source;
    *cluster = s->shelf->pub.cluster;
    return s->head;
}
