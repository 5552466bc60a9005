/* SPDX-License-Identifier: Apache-2.0 */
/* The cache against a naive model: random changes, pins, walks and resumed watches under limits so
 * tight that logs overflow and pins break. A failure prints its seed and step. */
#include "cache_world.h"

#include "base/rand.h"

#define SEEDS 60
#define STEPS 2000
#define CLUSTERS 4
#define SPACES 3
#define NAMES 120 /* enough for several leaves */
#define KEYS (CLUSTERS * SPACES * NAMES)
#define PINS 6
#define WALKS 6
#define EVENTS_MAX 20000

static const char *const clusters[CLUSTERS] = {"a", "ab", "b", "c"};
static const char *const spaces[SPACES] = {"", "blue", "blue-2"};
static char names[NAMES][24]; /* sorted */
static const char *const apps[] = {"web", "db", "x"};

struct item { /* by key: ((space * NAMES) + name) * CLUSTERS + cluster, the order of walks */
    bool there;
    unsigned uid;
    unsigned app;
    uint64_t hash;
    uint64_t revision;
};

struct state {
    struct item items[KEYS];
};

struct past {
    enum hub_change change;
    unsigned key;
    uint64_t revision;
    uint64_t hash;
    uint64_t before;
};

struct model_pin {
    struct hub_pin *pin;
    struct state seen;
    bool kept;
};

struct model_walk {
    struct hub_walk *walk;
    struct hub_pin *pin;
    struct state seen;
    unsigned next; /* key */
    int space;     /* -1: all */
    int app;
    unsigned cluster_mask;
    unsigned denied_space; /* on odd clusters; SPACES: none */
};

struct model {
    struct world w;
    struct kr_rand rand;
    struct hub_cache_limits limits;
    struct state now;
    struct hub_shelf *shelves[CLUSTERS];
    struct model_pin pins[PINS];
    struct model_walk walks[WALKS];
    struct past *past;
    size_t past_n;
    uint64_t forgotten; /* a quiet clear made the log forget up to here */
    uint64_t seed;
    unsigned step;
    uint64_t next_hash;
    bool few; /* of the keys are used */
};

static unsigned below(struct model *m, unsigned n)
{
    return (unsigned)kr_rand_below(&m->rand, n);
}

static void expect(const struct model *m, bool ok, const char *what)
{
    if (ok)
        return;
    print_error("seed %llu, step %u: %s\n", (unsigned long long)m->seed, m->step, what);
    fail();
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Alike at their beginning, of all lengths, some the beginning of others. */
static void make_names(void)
{
    for (unsigned i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "n-%.*s%x", (int)(i % 7 * 2), "0000000000000", i * 37);
    qsort(names, NAMES, sizeof names[0], by_text);
}

static unsigned any_key(struct model *m)
{
    unsigned step = m->few ? 13 : 1;

    return ((below(m, SPACES) * NAMES) + below(m, NAMES / step) * step) * CLUSTERS +
           below(m, CLUSTERS);
}

static unsigned cluster_of(unsigned key)
{
    return key % CLUSTERS;
}

static unsigned space_of(unsigned key)
{
    return key / CLUSTERS / NAMES;
}

static struct kr_bytes ns_of(unsigned key)
{
    return kr_bytes_str(spaces[space_of(key)]);
}

static struct kr_bytes name_of(unsigned key)
{
    return kr_bytes_str(names[key / CLUSTERS % NAMES]);
}

static void record(struct model *m, enum hub_change change, unsigned key, uint64_t revision,
                   uint64_t hash, uint64_t before)
{
    assert_true(m->past_n < EVENTS_MAX);
    m->past[m->past_n++] = (struct past){
        .change = change, .key = key, .revision = revision, .hash = hash, .before = before};
}

/* ---- changes ---- */

static void do_put(struct model *m)
{
    static const char *const uids[] = {UID_A, UID_B, "no uuid at all"};
    static const char *const versions[] = {"1", "12345", "123456789012345678901234567890"};
    unsigned key = any_key(m);
    struct item *i = &m->now.items[key];
    struct item fresh = {.there = true,
                         .uid = i->there && below(m, 8) != 0 ? i->uid : below(m, 3),
                         .app = below(m, 3),
                         .hash = ++m->next_hash};
    bool same = i->there && below(m, 4) == 0;
    struct kr_label labels[] = {{KR_LIT("app"), kr_bytes_str(apps[fresh.app])},
                                {KR_LIT("pod"), name_of(key)}};
    struct hub_incoming in = {.ns = ns_of(key), .name = name_of(key), .packed = KR_LIT("body")};
    uint64_t before = m->w.pods->revision;
    int rc;

    if (same)
        fresh = *i;
    labels[0].value = kr_bytes_str(apps[fresh.app]);
    in.hash = fresh.hash;
    in.uid = kr_bytes_str(uids[fresh.uid]);
    in.version = kr_bytes_str(versions[below(m, 3)]);
    in.labels = labels;
    in.label_count = fresh.app == 2 ? 2 : 1;
    rc = hub_shelf_put(m->shelves[cluster_of(key)], &in);
    expect(m, rc == (same ? 1 : 0), "what put gives");
    expect(m, same == (m->w.pods->revision == before), "revision rises with changes only");
    if (same)
        return;
    fresh.revision = m->w.pods->revision;
    if (i->there && i->uid != fresh.uid) {
        record(m, HUB_DELETED, key, fresh.revision - 16, i->hash, 0);
        record(m, HUB_ADDED, key, fresh.revision, fresh.hash, 0);
    } else {
        record(m, i->there ? HUB_MODIFIED : HUB_ADDED, key, fresh.revision, fresh.hash,
               i->there ? i->hash : 0);
    }
    *i = fresh;
}

static void do_delete(struct model *m)
{
    unsigned key = any_key(m);
    struct item *i = &m->now.items[key];
    struct hub_shelf *s = m->shelves[cluster_of(key)];
    bool gone = below(m, 2) != 0 ? hub_shelf_delete(s, ns_of(key), name_of(key))
                                 : hub_shelf_delete_hash(s, kr_key_hash(ns_of(key), name_of(key)));

    expect(m, gone == i->there, "what delete gives");
    if (gone)
        record(m, HUB_DELETED, key, m->w.pods->revision, i->hash, 0);
    i->there = false;
}

static void do_clear(struct model *m)
{
    unsigned cluster = below(m, CLUSTERS);
    struct hub_shelf *s = m->shelves[cluster];
    bool any = s->objects != 0;
    bool quiet = below(m, 3) == 0;
    uint64_t revision = m->w.pods->revision;
    unsigned n = 0;

    for (unsigned key = cluster; key < KEYS; key += CLUSTERS)
        n += m->now.items[key].there;
    if (!quiet && below(m, 2) == 0) {
        hub_shelf_remove(s);
        m->shelves[cluster] = shelf(&m->w, clusters[cluster]);
    } else {
        hub_shelf_clear(s, quiet);
    }
    if (quiet && any)
        m->forgotten = m->w.pods->revision;
    for (unsigned key = cluster; key < KEYS; key += CLUSTERS) {
        struct item *i = &m->now.items[key];

        if (!i->there)
            continue;
        i->there = false;
        n--;
        if (!quiet)
            record(m, HUB_DELETED, key, m->w.pods->revision - 16 * n, i->hash, 0);
    }
    expect(m, (m->w.pods->revision != revision) == any, "a clear that empties is a change");
}

/* ---- pins and walks ---- */

static void do_pin(struct model *m)
{
    struct model_pin *p = &m->pins[below(m, PINS)];

    if (p->pin == NULL) {
        *p = (struct model_pin){.pin = hub_pin_take(m->w.pods), .seen = m->now};
        expect(m, p->pin != NULL && !hub_pin_broken(p->pin), "a pin is there");
        expect(m, hub_pin_revision(p->pin) == m->w.pods->revision, "it is of now");
        return;
    }
    if (below(m, 3) == 0) {
        uint64_t revision = hub_pin_revision(p->pin);
        bool broken = hub_pin_broken(p->pin);

        hub_pin_release(p->pin, true);
        p->pin = hub_pin_find(m->w.pods, revision);
        expect(m, (p->pin == NULL) == broken, "a kept pin is found again, a broken one is not");
        return;
    }
    hub_pin_release(p->pin, below(m, 2) != 0);
    p->pin = NULL;
}

struct test_sight {
    struct hub_sight ops;
    struct model_walk *walk;
};

static unsigned index_of(const struct hub_shelf *s)
{
    for (unsigned i = 0; i < CLUSTERS; i++) {
        if (strcmp(clusters[i], s->cluster) == 0)
            return i;
    }
    fail();
    return 0;
}

static struct test_sight sights[WALKS];

static int sight_cluster(const void *sight, const struct hub_shelf *s)
{
    const struct model_walk *walk = ((const struct test_sight *)sight)->walk;
    unsigned i = index_of(s);

    if ((walk->cluster_mask >> i & 1) == 0)
        return 0;
    return i % 2 == 1 && walk->denied_space != SPACES ? 2 : 1;
}

static bool sight_ns(const void *sight, const struct hub_shelf *s, struct kr_bytes ns)
{
    const struct model_walk *walk = ((const struct test_sight *)sight)->walk;

    assert_true(index_of(s) % 2 == 1);
    return !kr_bytes_is(ns, spaces[walk->denied_space]);
}

static bool selects(const struct model_walk *v, unsigned key)
{
    const struct item *i = &v->seen.items[key];

    return i->there && (v->space < 0 || (unsigned)v->space == space_of(key)) &&
           (v->app < 0 || i->app == (unsigned)v->app) &&
           (v->cluster_mask >> cluster_of(key) & 1) != 0 &&
           (cluster_of(key) % 2 == 0 || space_of(key) != v->denied_space);
}

static void walk_step(struct model *m, struct model_walk *v)
{
    const char *cluster = NULL;
    struct hub_object *o = hub_walk_next(v->walk, &cluster);

    if (v->pin != NULL && hub_pin_broken(v->pin)) {
        expect(m, o == NULL, "a broken pin shows nothing");
        v->next = KEYS;
        return;
    }
    while (v->next < KEYS && !selects(v, v->next))
        v->next++;
    expect(m, (o == NULL) == (v->next == KEYS), "the walk ends where the model does");
    if (o == NULL || v->next >= KEYS)
        return;
    expect(m, kr_bytes_eq(hub_object_ns(o), ns_of(v->next)), "namespace in order");
    expect(m, kr_bytes_eq(hub_object_name(o), name_of(v->next)), "name in order");
    expect(m, strcmp(cluster, clusters[cluster_of(v->next)]) == 0, "cluster in order");
    expect(m, o->hash == v->seen.items[v->next].hash, "content of that revision");
    expect(m, o->revision == v->seen.items[v->next].revision, "revision of the content");
    v->next++;
}

static void walk_end(struct model_walk *v)
{
    hub_walk_destroy(v->walk);
    if (v->pin != NULL)
        hub_pin_release(v->pin, false);
    v->walk = NULL;
}

static void walk_begin(struct model *m, unsigned at)
{
    struct model_pin *p = &m->pins[below(m, PINS)];
    struct model_walk *v = &m->walks[at];
    struct kr_bytes app = KR_LIT("");
    struct kr_bytes not_c = KR_LIT("c");
    struct kr_requirement reqs[] = {
        {.key = KR_LIT("app"), .op = KR_OP_IN, .values = &app, .value_count = 1},
        {.key = KR_LIT("kuberelay.io/cluster"),
         .op = KR_OP_NOT_IN,
         .values = &not_c,
         .value_count = 1},
    };
    bool no_c = below(m, 3) == 0;
    unsigned after = below(m, 3) == 0 ? any_key(m) : KEYS;
    struct kr_label_selector selector = {.all = reqs, .n = no_c ? 2 : 1};
    struct hub_walk_query q = {.type = m->w.pods};

    *v = (struct model_walk){.seen = m->now,
                             .space = (int)below(m, 4) - 1,
                             .app = (int)below(m, 6) - 3,
                             .cluster_mask = below(m, 2) != 0 ? 15 : below(m, 16),
                             .denied_space = below(m, SPACES + 1)};
    if (v->space == 0)
        v->space = -1; /* an empty namespace asks for all */
    if (p->pin != NULL && !hub_pin_broken(p->pin)) {
        v->pin = hub_pin_find(m->w.pods, hub_pin_revision(p->pin));
        expect(m, v->pin == p->pin, "a pin that is whole is found");
        v->seen = p->seen;
        q.pin = v->pin;
    }
    sights[at] = (struct test_sight){.ops = {sight_cluster, sight_ns}, .walk = v};
    q.sight = &sights[at].ops;
    if (v->app >= 0)
        app = kr_bytes_str(apps[v->app]);
    else
        selector = (struct kr_label_selector){.all = reqs + 1, .n = no_c};
    q.labels = &selector;
    if (v->space > 0)
        q.ns = kr_bytes_str(spaces[v->space]);
    if (after != KEYS) {
        q.after_ns = ns_of(after);
        q.after_name = name_of(after);
        q.after_cluster = kr_bytes_str(clusters[cluster_of(after)]);
        v->next = after + 1;
    }
    v->walk = hub_walk_create(&q);
    expect(m, v->walk != NULL, "a walk is there");
    v->cluster_mask &= no_c ? 7 : 15; /* after the sight was asked; it is not asked again */
}

static void do_walk(struct model *m)
{
    unsigned at = below(m, WALKS);
    struct model_walk *v = &m->walks[at];

    if (v->walk == NULL)
        walk_begin(m, at);
    for (unsigned n = v->pin != NULL ? below(m, m->few ? 30 : 200) : KEYS + 1; n != 0; n--)
        walk_step(m, v);
    if (v->pin == NULL || v->next == KEYS || below(m, 8) == 0)
        walk_end(v);
}

/* ---- the log ---- */

static size_t later_than(const struct model *m, uint64_t revision)
{
    size_t i = m->past_n;

    while (i != 0 && m->past[i - 1].revision > revision)
        i--;
    return i;
}

static void check_event(const struct model *m, const struct hub_event *e, const struct past *p)
{
    expect(m, e->change == p->change && e->revision == p->revision, "which change");
    expect(m, strcmp(e->cluster, clusters[cluster_of(p->key)]) == 0, "of which cluster");
    expect(m, kr_bytes_eq(hub_object_name(e->object), name_of(p->key)), "of which object");
    expect(m, kr_bytes_eq(hub_object_ns(e->object), ns_of(p->key)), "in which namespace");
    expect(m, e->object->hash == p->hash, "content after it");
    expect(m, (e->before != NULL ? e->before->hash : 0) == p->before, "content before it");
}

static void give_text(struct model *m, struct hub_event *e)
{
    struct hub_shown *text = malloc(sizeof *text + 100);

    assert_non_null(text);
    *text = (struct hub_shown){.refs = 1, .n = 100};
    hub_shown_unref(e->shown[below(m, 2)]);
    e->shown[0] = e->shown[1] != NULL ? e->shown[0] : NULL;
    hub_shown_unref(e->shown[2]);
    e->shown[2] = text;
}

static void do_resume(struct model *m)
{
    uint64_t from =
        m->past_n != 0 ? m->past[below(m, (unsigned)m->past_n)].revision : m->w.revision.first;
    uint64_t revision = from + below(m, 2) * 16;
    struct hub_event *e;
    struct hub_place place;
    size_t i;
    int rc = hub_place_at(m->w.pods, revision, &place);

    if (revision < m->forgotten) {
        expect(m, rc == KR_ENOENT, "what was forgotten is not there");
        return;
    }
    i = later_than(m, revision);
    if (m->limits.log_bytes > 1000000)
        expect(m, rc == 0 || m->past_n - i > m->limits.log_events, "enough events are kept");
    if (rc != 0)
        return;
    for (; hub_place_next(&place, &e) == 1; i++) {
        expect(m, i < m->past_n, "no event too many");
        check_event(m, e, &m->past[i]);
        if (below(m, 10) == 0)
            give_text(m, e);
    }
    expect(m, i == m->past_n, "no event too few");
}

/* ---- the whole ---- */

static void check_state(struct model *m)
{
    size_t there = 0;
    size_t found = 0;

    for (unsigned key = 0; key < KEYS; key++) {
        const struct item *i = &m->now.items[key];
        const struct hub_object *o =
            hub_shelf_get(m->shelves[cluster_of(key)], ns_of(key), name_of(key));

        expect(m, (o != NULL) == i->there, "what is there");
        expect(m, o == NULL || o->hash == i->hash, "what it holds");
        there += i->there;
    }
    for (unsigned c = 0; c < CLUSTERS; c++) {
        struct hub_shelf_pos pos = {.leaf = 0};

        while (hub_shelf_next(m->shelves[c], &pos) != NULL)
            found++;
    }
    expect(m, found == there && m->w.pods->objects == there, "how many");
}

static void one_step(struct model *m)
{
    unsigned what = below(m, 100);

    if (what < 45)
        do_put(m);
    else if (what < 62)
        do_delete(m);
    else if (what < 64)
        do_clear(m);
    else if (what < 74)
        do_pin(m);
    else if (what < 88)
        do_walk(m);
    else if (what < 94)
        do_resume(m);
    else if (what < 99)
        turn(&m->w, below(m, 200));
    else
        check_state(m);
}

static void end(struct model *m, uint64_t empty)
{
    for (unsigned i = 0; i < WALKS; i++) {
        if (m->walks[i].walk != NULL)
            walk_end(&m->walks[i]);
    }
    for (unsigned i = 0; i < PINS; i++) {
        if (m->pins[i].pin != NULL)
            hub_pin_release(m->pins[i].pin, false);
    }
    turn(&m->w, 100000);
    for (unsigned i = 0; i < CLUSTERS; i++)
        hub_shelf_clear(m->shelves[i], true);
    turn(&m->w, 1);
    for (unsigned i = 0; i < CLUSTERS; i++)
        expect(m, hub_cache_cluster_bytes(m->w.cache, kr_bytes_str(clusters[i])) == 0,
               "nothing of the cluster is left");
    expect(m, hub_cache_bytes(m->w.cache) == empty, "no byte is left");
}

static void run_seed(uint64_t seed, struct past *past)
{
    static struct model m;
    uint64_t empty;

    m = (struct model){.seed = seed, .past = past};
    kr_rand_seed(&m.rand, seed);
    m.limits = (struct hub_cache_limits){.types = 1,
                                         .cluster_bytes = 1u << 30,
                                         .log_events = below(&m, 2) != 0 ? 20 : 2000,
                                         .log_ms = below(&m, 2) != 0 ? 0 : 2000,
                                         .log_bytes = below(&m, 2) != 0 ? 10000 : 100000000,
                                         .pins = 2 + below(&m, 6),
                                         .pin_ms = 1000};
    m.few = below(&m, 3) != 0;
    world_init(&m.w, m.limits);
    for (unsigned i = 0; i < CLUSTERS; i++)
        m.shelves[i] = shelf(&m.w, clusters[i]);
    empty = hub_cache_bytes(m.w.cache);
    for (m.step = 0; m.step < STEPS; m.step++)
        one_step(&m);
    end(&m, empty);
    world_deinit(&m.w);
}

static void test_cache_when_all_happens_at_random_then_it_is_as_the_model(void **state)
{
    const char *one = getenv("KR_SEED");
    struct past *past = calloc(EVENTS_MAX, sizeof *past);

    (void)state;
    make_names();
    assert_non_null(past);
    if (one != NULL)
        run_seed(strtoull(one, NULL, 10), past);
    for (uint64_t seed = 1; one == NULL && seed <= SEEDS; seed++)
        run_seed(seed, past);
    free(past);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_when_all_happens_at_random_then_it_is_as_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
