/* SPDX-License-Identifier: Apache-2.0 */
/* A walk merges the shelves of a type by a tree of losers (Knuth, volume 3, section 5.4.1): each
 * inner node holds the source that lost there, and the path of the winner is played anew when its
 * source has moved on. Keys are hardly ever compared: each source carries a code that says how its
 * key differs from the key that was given last (offset-value coding, Conner 1977): the later the
 * first difference, the smaller the key, and at the same place the difference decides. Only equal
 * codes need a look at the keys, behind that place. */
#include <stdlib.h>

#include "hub/walk_source.h"

#define UNIT 6 /* bytes of a key that are compared as one */
#define UNITS_MAX 0xFFFE
#define ENDED UINT64_MAX

struct player {
    uint64_t code; /* relative to the last winner that it met */
    struct hub_source *source;
};

struct hub_walk {
    struct hub_cache *cache;
    struct hub_pin *pin;
    struct hub_walk_view view;
    struct hub_source *sources; /* by cluster */
    size_t n;
    struct player *losers; /* 1 .. n - 1; the place of source i is n + i, below (n + i) / 2 */
    struct player winner;
    bool given; /* the winner's object is the caller's until the next step */
};

/* ---- codes ---- */

/* The unit of a key at a place, as a number; behind its end are zeros. */
static uint64_t unit_at(struct kr_bytes key, size_t at)
{
    uint64_t x = 0;

    if (at + 8 <= key.n) {
        memcpy(&x, key.p + at, 8);
        return __builtin_bswap64(x) >> 16;
    }
    for (size_t i = at; i < at + UNIT; i++)
        x = x << 8 | (i < key.n ? key.p[i] : 0);
    return x;
}

static uint64_t code_at(struct kr_bytes key, size_t unit)
{
    return (uint64_t)(UNITS_MAX - unit) << 48 | unit_at(key, unit * UNIT);
}

/* Of a key that is not before `base`, the first `from` units being known as equal. */
static uint64_t code_of(struct kr_bytes key, struct kr_bytes base, size_t from)
{
    size_t n = key.n > base.n ? key.n : base.n;

    for (size_t unit = from; unit * UNIT < n; unit++) {
        if (unit_at(key, unit * UNIT) != unit_at(base, unit * UNIT))
            return code_at(key, unit);
    }
    return 0;
}

/* ---- the tree of losers ---- */

/* Two of the same code: the keys decide, then the clusters. The loser's code is that to the winner.
 * True: b wins. */
static bool compare_equals(struct player *a, struct player *b)
{
    struct kr_bytes x = hub_object_key(a->source->head);
    struct kr_bytes y = hub_object_key(b->source->head);
    /* Code 0: both are as the last winner. Else they are also alike in the unit that differed. */
    size_t from = a->code != 0 ? UNITS_MAX - (a->code >> 48) + 1 : 0;
    int d = a->code != 0 ? kr_bytes_compare(x, y) : 0;
    bool b_wins = d != 0 ? d > 0 : b->source < a->source;

    if (b_wins)
        a->code = d != 0 ? code_of(x, y, from) : 0;
    else
        b->code = d != 0 ? code_of(y, x, from) : 0;
    return b_wins;
}

/* Plays at a node; what is left in *p has won. */
static inline void play(struct player *p, struct player *node)
{
    struct player other = *node;
    bool other_wins = other.code < p->code;

    if (other.code == p->code && other.code != ENDED) {
        other_wins = compare_equals(p, &other);
        *node = other;
    }
    if (other_wins) {
        *node = *p;
        *p = other;
    }
}

/* The first player at a node stays there until its opponent comes; the last of all wins. */
static void enter(struct hub_walk *w, size_t i)
{
    struct hub_source *s = &w->sources[i];
    struct player p = {.code = s->head != NULL ? code_at(hub_object_key(s->head), 0) : ENDED,
                       .source = s};

    for (size_t node = (w->n + i) / 2; node != 0; node /= 2) {
        if (w->losers[node].source == NULL) {
            w->losers[node] = p;
            return;
        }
        play(&p, &w->losers[node]);
    }
    w->winner = p;
}

/* The winner's source goes on. */
static void replay(struct hub_walk *w)
{
    struct player p = w->winner;
    struct hub_object *left = hub_source_advance(p.source, &w->view);

    p.code = p.source->head != NULL
                 ? code_of(hub_object_key(p.source->head), hub_object_key(left), 0)
                 : ENDED;
    hub_object_unref(w->cache, left);
    for (size_t node = (w->n + (size_t)(p.source - w->sources)) / 2; node != 0; node /= 2)
        play(&p, &w->losers[node]);
    w->winner = p;
}

/* ---- setting up ---- */

static int by_cluster(const void *a, const void *b)
{
    const struct hub_source *x = a;
    const struct hub_source *y = b;

    return strcmp(x->shelf->pub.cluster, y->shelf->pub.cluster);
}

static void add_source(struct hub_walk *w, struct hub_shelf_box *shelf)
{
    if (hub_source_init(&w->sources[w->n], &w->view, shelf))
        w->n++;
}

static int add_sources(struct hub_walk *w, struct hub_type_box *t)
{
    size_t max = t->shelf_count + 1;

    KR_LIST_FOREACH(node, &t->ghosts)
    max++;
    w->sources = calloc(max, sizeof *w->sources);
    w->losers = calloc(max, sizeof *w->losers);
    if (w->sources == NULL || w->losers == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < t->shelf_count; i++)
        add_source(w, t->shelves[i]);
    if (w->pin == NULL || kr_list_empty(&t->ghosts))
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

    if (q->ns.n != 0 && kr_bytes_compare(q->after_ns, q->ns) < 0)
        return (struct hub_key){.ns = q->ns};
    /* On the shelves up to that cluster the key itself is done. */
    if (q->after_cluster.n != 0 &&
        kr_bytes_compare(kr_bytes_str(shelf->cluster), q->after_cluster) <= 0)
        key.revision = UINT64_MAX;
    return key;
}

static void start(struct hub_walk *w, const struct hub_walk_query *q)
{
    for (size_t i = 0; i < w->n; i++) {
        struct hub_key key = start_of(q, &w->sources[i].shelf->pub);

        hub_source_start(&w->sources[i], &w->view, &key);
        enter(w, i);
    }
}

static int init_view(struct hub_walk *w, const struct hub_walk_query *q)
{
    struct hub_walk_view *v = &w->view;
    int rc = hub_walk_filter_init(&v->filter, &w->cache->label_sets, q->labels);

    v->clock = &w->cache->clock;
    v->sight = q->sight;
    v->pinned = w->pin != NULL;
    v->revision = w->pin != NULL ? hub_pin_revision(w->pin) : UINT64_MAX;
    if (rc != 0 || q->ns.n == 0)
        return rc;
    v->ns = kr_arena_copy(&v->filter.arena, q->ns);
    return v->ns.p != NULL ? 0 : KR_ENOMEM;
}

struct hub_walk *hub_walk_create(const struct hub_walk_query *q)
{
    struct hub_walk *w = calloc(1, sizeof *w);

    if (w == NULL)
        return NULL;
    w->cache = q->type->cache;
    w->winner.code = ENDED;
    w->pin = q->pin != NULL ? hub_pin_ref(q->pin) : NULL;
    if (init_view(w, q) != 0 || add_sources(w, hub_type_box(q->type)) != 0) {
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
    for (size_t i = 0; i < w->n; i++)
        hub_source_deinit(&w->sources[i]);
    if (w->pin != NULL)
        hub_pin_release(w->pin, false);
    hub_walk_filter_deinit(&w->view.filter);
    free(w->sources);
    free(w->losers);
    free(w);
}

struct hub_object *hub_walk_next(struct hub_walk *w, const char **cluster)
{
    if (w->pin != NULL && hub_pin_broken(w->pin))
        return NULL;
    if (w->given)
        replay(w);
    w->given = w->winner.code != ENDED;
    if (!w->given)
        return NULL;
    *cluster = w->winner.source->shelf->pub.cluster;
    return w->winner.source->head;
}
