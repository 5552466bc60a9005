/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the Nth allocation, for every N: the cache stays whole, what it cannot do
 * it says, what it cannot keep (a log, a pin) is told as 410, and nothing leaks. The allocator is
 * replaced in this program only. */
#include "../failing_alloc.h"
#include "cache_world.h"

/* Runs `work` with one allocation after the other failing, until one run meets no failure. */
static void for_every_allocation(void (*work)(void))
{
    int runs = 0;

    for (long n = 0;; n++) {
        alloc_failed = false;
        allocs_left = n;
        work();
        allocs_left = -1;
        if (!alloc_failed)
            break;
        runs++;
    }
    assert_true(runs > 10);
}

struct small {
    struct kr_sched sched;
    struct hub_revision revision;
    struct hub_cache *cache;
    struct hub_type *type;
    struct hub_shelf *shelf;
};

/* False: memory was short already here. */
static bool small_init(struct small *w)
{
    struct hub_cache_limits limits = {.types = 3,
                                      .cluster_bytes = 1u << 20,
                                      .log_events = 50,
                                      .log_ms = 1000,
                                      .log_bytes = 1u << 20,
                                      .pins = 3,
                                      .pin_ms = 1000};

    *w = (struct small){.cache = NULL};
    kr_sched_init(&w->sched, 0, WALL_MS);
    assert_int_equal(hub_revision_init(&w->revision, NULL, 0, WALL_MS * 1000, NULL), 0);
    w->cache = hub_cache_create(&w->sched, &w->revision, &limits);
    if (w->cache != NULL)
        w->type = hub_cache_add_type(w->cache, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods"));
    if (w->type != NULL)
        w->shelf = hub_type_add_shelf(w->type, KR_LIT("a"));
    return w->shelf != NULL;
}

static void small_deinit(struct small *w)
{
    hub_cache_destroy(w->cache);
    hub_revision_deinit(&w->revision);
    kr_sched_deinit(&w->sched);
}

static struct hub_incoming numbered(unsigned i, char name[16], struct kr_label *label)
{
    struct hub_incoming in;

    snprintf(name, 16, "pod-%u", i);
    in = pod("ns", name, i);
    *label = (struct kr_label){.key = KR_LIT("n"), .value = in.name};
    in.labels = label;
    in.label_count = 1;
    return in;
}

/* After each put that failed the shelf is as it was; those that did not are there. */
static void work_put(void)
{
    struct small w;
    bool ready = small_init(&w);

    for (unsigned i = 0; ready && i < 200; i++) {
        struct kr_label label;
        char name[16];
        struct hub_incoming in = numbered(i % 150, name, &label);
        const struct hub_object *old = hub_shelf_get(w.shelf, in.ns, in.name);
        size_t objects = w.shelf->objects;
        uint64_t bytes = w.shelf->bytes;
        int rc;

        in.hash = i;
        rc = hub_shelf_put(w.shelf, &in);
        assert_true(rc == 0 || rc == KR_ENOMEM);
        if (rc == 0) {
            assert_int_equal(hub_shelf_get(w.shelf, in.ns, in.name)->hash, i);
            continue;
        }
        assert_true(alloc_failed);
        assert_ptr_equal(hub_shelf_get(w.shelf, in.ns, in.name), old);
        assert_int_equal(w.shelf->objects, objects);
        assert_int_equal(w.shelf->bytes, bytes);
        assert_int_equal(hub_shelf_put(w.shelf, &in), 0); /* only one fails */
    }
    small_deinit(&w);
}

struct follower {
    struct hub_place place;
    uint64_t expected[300];
    size_t n;
    size_t seen;
};

static void note_change(struct follower *f, const struct hub_type *t)
{
    if (f->n == 0 || f->expected[f->n - 1] != t->revision)
        f->expected[f->n++] = t->revision;
}

/* Reads what the place gives; a gap must be told. */
static void follow(struct follower *f)
{
    struct hub_event *e;
    int rc;

    while ((rc = hub_place_next(&f->place, &e)) == 1)
        assert_int_equal(e->revision, f->expected[f->seen++]);
    if (rc == KR_ENOENT) {
        assert_true(alloc_failed);
        hub_place_at_end(f->place.type, &f->place);
        f->seen = f->n;
    }
    assert_int_equal(f->seen, f->n);
}

static void work_log(void)
{
    struct follower f = {.n = 0};
    struct small w;
    bool ready = small_init(&w);

    if (ready) {
        hub_place_at_end(w.type, &f.place);
        note_change(&f, w.type);
        f.seen = 1; /* of the start: no event */
    }
    for (unsigned i = 0; ready && i < 100; i++) {
        struct kr_label label;
        char name[16];
        struct hub_incoming in = numbered(i % 10, name, &label);

        in.hash = i;
        (void)hub_shelf_put(w.shelf, &in);
        note_change(&f, w.type);
        if (i % 3 == 0)
            (void)hub_shelf_delete(w.shelf, in.ns, in.name);
        note_change(&f, w.type);
        follow(&f);
        (void)kr_sched_run(&w.sched, 0, WALL_MS);
    }
    small_deinit(&w);
}

/* A pin shows all of it, or is broken, or was not to be had. */
static void check_pin(struct small *w, struct hub_pin *pin, unsigned expected)
{
    struct hub_walk *walk = hub_walk_create(&(struct hub_walk_query){.type = w->type, .pin = pin});
    const char *cluster;
    unsigned n = 0;

    if (walk == NULL)
        return;
    while (hub_walk_next(walk, &cluster) != NULL)
        n++;
    if (hub_pin_broken(pin))
        assert_true(alloc_failed);
    else
        assert_int_equal(n, expected);
    hub_walk_destroy(walk);
}

static void work_pin(void)
{
    struct hub_pin *pin = NULL;
    struct small w;
    bool ready = small_init(&w);
    unsigned n = 0;

    for (unsigned i = 0; ready && i < 40; i++) {
        struct kr_label label;
        char name[16];
        struct hub_incoming in = numbered(i, name, &label);

        n += hub_shelf_put(w.shelf, &in) == 0;
    }
    if (ready)
        pin = hub_pin_take(w.type);
    for (unsigned i = 0; pin != NULL && i < 30; i++) {
        struct kr_label label;
        char name[16];
        struct hub_incoming in = numbered(i, name, &label);

        in.hash += 1000;
        if (i % 2 == 0)
            (void)hub_shelf_put(w.shelf, &in);
        else
            (void)hub_shelf_delete_hash(w.shelf, kr_key_hash(in.ns, in.name));
        check_pin(&w, pin, n);
    }
    if (pin != NULL) {
        hub_shelf_remove(w.shelf);
        check_pin(&w, pin, n);
        hub_pin_release(pin, true);
    }
    (void)kr_sched_run(&w.sched, 2000, WALL_MS);
    small_deinit(&w);
}

static void work_walk(void)
{
    struct kr_bytes value = KR_LIT("pod-7");
    struct kr_requirement req = {
        .key = KR_LIT("n"), .op = KR_OP_IN, .values = &value, .value_count = 1};
    struct kr_label_selector selector = {.all = &req, .n = 1};
    struct small w;
    bool ready = small_init(&w);
    struct hub_walk *walk;
    const char *cluster;
    bool there = false;

    for (unsigned i = 0; ready && i < 20; i++) {
        struct kr_label label;
        char name[16];
        struct hub_incoming in = numbered(i, name, &label);

        if (hub_shelf_put(w.shelf, &in) == 0)
            there = there || i == 7;
    }
    walk = ready ? hub_walk_create(&(struct hub_walk_query){
                       .type = w.type, .labels = &selector, .ns = KR_LIT("ns")})
                 : NULL;
    if (walk != NULL) {
        assert_int_equal(hub_walk_next(walk, &cluster) != NULL, there);
        assert_null(hub_walk_next(walk, &cluster));
    }
    hub_walk_destroy(walk);
    small_deinit(&w);
}

/* With an index or without, all that were there are deleted. The puts before are not what this is
 * about: their allocations do not fail. */
static void work_delete_hash(void)
{
    long allowed = allocs_left;
    struct small w;
    bool ready;

    allocs_left = -1;
    ready = small_init(&w);
    assert_true(ready);
    for (unsigned i = 0; i < 1200; i++) {
        char name[16];

        snprintf(name, sizeof name, "pod-%u", i);
        assert_int_equal(put(w.shelf, "ns", name, i), 0);
    }
    allocs_left = allowed;
    for (unsigned i = 0; i < 100; i++) {
        char name[16];

        snprintf(name, sizeof name, "pod-%u", i);
        assert_true(hub_shelf_delete_hash(w.shelf, kr_key_hash(KR_LIT("ns"), kr_bytes_str(name))));
    }
    small_deinit(&w);
}

#define FAULT_TEST(what)                                                                           \
    static void test_cache_when_memory_runs_out_in_##what##_then_it_stays_whole(void **state)      \
    {                                                                                              \
        (void)state;                                                                               \
        for_every_allocation(work_##what);                                                         \
    }
FAULT_TEST(put)
FAULT_TEST(log)
FAULT_TEST(pin)
FAULT_TEST(walk)
FAULT_TEST(delete_hash)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_when_memory_runs_out_in_put_then_it_stays_whole),
        cmocka_unit_test(test_cache_when_memory_runs_out_in_log_then_it_stays_whole),
        cmocka_unit_test(test_cache_when_memory_runs_out_in_pin_then_it_stays_whole),
        cmocka_unit_test(test_cache_when_memory_runs_out_in_walk_then_it_stays_whole),
        cmocka_unit_test(test_cache_when_memory_runs_out_in_delete_hash_then_it_stays_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
