/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_world.h"

static struct hub_walk *walk_at(struct world *w, struct hub_pin *pin)
{
    return hub_walk_create(&(struct hub_walk_query){.type = w->pods, .pin = pin});
}

static void test_pin_when_nothing_changed_then_it_is_shared(void **state)
{
    struct hub_pin *a;
    struct hub_pin *b;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    a = hub_pin_take(w.pods);
    b = hub_pin_take(w.pods);
    assert_non_null(a);
    assert_ptr_equal(a, b);
    assert_int_equal(hub_pin_revision(a), w.pods->revision);
    assert_int_equal(put(shelf(&w, "a"), "ns", "x", 1), 0);
    b = hub_pin_take(w.pods);
    assert_ptr_not_equal(a, b);
    hub_pin_release(a, false);
    assert_false(hub_pin_broken(a)); /* its other user */
    hub_pin_release(a, false);
    hub_pin_release(b, false);
    world_deinit(&w);
}

static void test_pin_when_objects_change_then_it_shows_them_as_they_were(void **state)
{
    struct hub_pin *pin;
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    assert_int_equal(put(s, "ns", "changed", 1), 0);
    assert_int_equal(put(s, "ns", "deleted", 1), 0);
    assert_int_equal(put(s, "ns", "kept", 1), 0);
    assert_int_equal(put(s, "ns", "reborn", 1), 0);
    pin = hub_pin_take(w.pods);
    assert_int_equal(put(s, "ns", "changed", 2), 0);
    assert_int_equal(put(s, "ns", "changed", 3), 0);
    assert_int_equal(put(s, "ns", "new", 1), 0);
    assert_true(delete (s, "ns", "deleted"));
    assert_true(delete (s, "ns", "reborn"));
    assert_int_equal(put(s, "ns", "reborn", 2), 0);
    expect_walk(walk_at(&w, pin), "ns/changed@a ns/deleted@a ns/kept@a ns/reborn@a");
    expect_walk(walk_at(&w, NULL), "ns/changed@a ns/kept@a ns/new@a ns/reborn@a");
    hub_pin_release(pin, false);
    world_deinit(&w);
}

static void test_pin_when_there_are_several_then_each_shows_its_own(void **state)
{
    struct hub_pin *pins[10];
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(put(s, "ns", "x", i + 1), 0);
        pins[i] = hub_pin_take(w.pods);
    }
    assert_true(delete (s, "ns", "x"));
    /* The middle ones go first, the newest last. */
    for (unsigned n = 0; n < 10; n++) {
        unsigned gone = (n * 3 + 5) % 10;

        hub_pin_release(pins[gone], false);
        pins[gone] = NULL;
        for (unsigned i = 0; i < 10; i++) {
            struct hub_walk *walk = pins[i] != NULL ? walk_at(&w, pins[i]) : NULL;
            const char *cluster;

            if (walk == NULL)
                continue;
            assert_int_equal(hub_walk_next(walk, &cluster)->hash, i + 1);
            assert_null(hub_walk_next(walk, &cluster));
            hub_walk_destroy(walk);
        }
    }
    world_deinit(&w);
}

static void test_pin_when_it_is_released_then_nothing_old_is_left(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_shelf *s;
    struct hub_pin *pin;
    struct world w;
    uint64_t bytes;

    (void)state;
    limits.log_events = 0;
    limits.log_ms = -1; /* no log: only pins hold something */
    world_init(&w, limits);
    s = shelf(&w, "a");
    for (unsigned i = 0; i < 100; i++) {
        char name[8];

        snprintf(name, sizeof name, "p%02u", i);
        assert_int_equal(put(s, "ns", name, 1), 0);
    }
    bytes = hub_cache_bytes(w.cache);
    pin = hub_pin_take(w.pods);
    for (unsigned round = 2; round < 5; round++) {
        for (unsigned i = 0; i < 100; i++) {
            char name[8];

            snprintf(name, sizeof name, "p%02u", i);
            assert_int_equal(put(s, "ns", name, round), 0);
        }
        /* Only the version of the pin is kept, not those between. */
        assert_true(hub_cache_bytes(w.cache) < bytes * 3);
    }
    hub_pin_release(pin, false);
    assert_int_equal(hub_cache_bytes(w.cache), bytes);
    world_deinit(&w);
}

/* ---- the end of a pin ---- */

static void test_pin_when_it_is_kept_then_it_is_found_until_its_time_is_over(void **state)
{
    struct hub_pin *pin;
    struct world w;
    uint64_t revision;

    (void)state;
    world_init(&w, roomy());
    pin = hub_pin_take(w.pods);
    revision = hub_pin_revision(pin);
    assert_int_equal(put(shelf(&w, "a"), "ns", "x", 1), 0);
    hub_pin_release(pin, true);
    turn(&w, 59000);
    assert_ptr_equal(hub_pin_find(w.pods, revision), pin); /* counts as use */
    hub_pin_release(pin, true);
    turn(&w, 59000);
    assert_ptr_equal(hub_pin_find(w.pods, revision), pin);
    turn(&w, 1000000); /* in use it does not age */
    assert_false(hub_pin_broken(pin));
    hub_pin_release(pin, true);
    turn(&w, 61000);
    assert_null(hub_pin_find(w.pods, revision));
    world_deinit(&w);
}

static void test_pin_when_it_is_not_kept_then_it_is_gone_at_once(void **state)
{
    struct hub_pin *pin;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    pin = hub_pin_take(w.pods);
    hub_pin_release(pin, false);
    assert_null(hub_pin_find(w.pods, w.pods->revision));
    world_deinit(&w);
}

/* The next page of one reader, while another reads the same list to its end. */
static void test_pin_when_one_of_two_users_keeps_it_then_it_stays(void **state)
{
    struct hub_pin *pin;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    pin = hub_pin_take(w.pods);
    (void)hub_pin_take(w.pods);
    hub_pin_release(pin, true);
    hub_pin_release(pin, false);
    assert_ptr_equal(hub_pin_find(w.pods, w.pods->revision), pin);
    hub_pin_release(pin, false);
    world_deinit(&w);
}

static void test_pin_when_there_are_too_many_then_the_one_unused_for_longest_breaks(void **state)
{
    struct hub_cache_limits limits = roomy();
    uint64_t revisions[4];
    struct hub_pin *used;
    struct hub_pin *pin;
    struct world w;

    (void)state;
    limits.pins = 3;
    world_init(&w, limits);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(put(shelf(&w, "a"), "ns", "x", i + 1), 0);
        pin = hub_pin_take(w.pods);
        revisions[i] = hub_pin_revision(pin);
        if (i == 0)
            used = pin; /* the oldest, but in use */
        else
            hub_pin_release(pin, true);
        turn(&w, 10);
    }
    pin = hub_pin_find(w.pods, revisions[1]);
    hub_pin_release(pin, true);
    turn(&w, 10);
    assert_int_equal(put(shelf(&w, "a"), "ns", "x", 9), 0);
    pin = hub_pin_take(w.pods);
    assert_false(hub_pin_broken(used));
    assert_null(hub_pin_find(w.pods, revisions[2]));
    hub_pin_release(pin, false);
    assert_non_null(pin = hub_pin_find(w.pods, revisions[1]));
    hub_pin_release(pin, false);
    hub_pin_release(used, false);
    world_deinit(&w);
}

static void test_pin_when_all_are_in_use_and_too_many_then_the_oldest_breaks(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_pin *pins[3];
    struct hub_walk *walk;
    const char *cluster;
    struct world w;

    (void)state;
    limits.pins = 2;
    world_init(&w, limits);
    assert_int_equal(put(shelf(&w, "a"), "ns", "y", 1), 0);
    assert_int_equal(put(shelf(&w, "a"), "ns", "x", 1), 0);
    walk = NULL;
    for (unsigned i = 0; i < 3; i++) {
        pins[i] = hub_pin_take(w.pods);
        if (i == 0) {
            walk = walk_at(&w, pins[0]);
            assert_non_null(hub_walk_next(walk, &cluster));
        }
        assert_int_equal(put(shelf(&w, "a"), "ns", "x", i + 2), 0);
        turn(&w, 10);
    }
    assert_true(hub_pin_broken(pins[0]));
    assert_false(hub_pin_broken(pins[1]) || hub_pin_broken(pins[2]));
    assert_null(hub_walk_next(walk, &cluster));
    assert_null(hub_walk_next(walk, &cluster));
    hub_walk_destroy(walk);
    expect_walk(walk_at(&w, pins[0]), "");
    for (unsigned i = 0; i < 3; i++)
        hub_pin_release(pins[i], true);
    world_deinit(&w);
}

static void test_pin_when_what_they_keep_is_too_much_then_the_oldest_breaks_first(void **state)
{
    static uint8_t bulk[1000];
    struct hub_cache_limits limits = roomy();
    struct hub_incoming in = pod("ns", "x", 0);
    struct hub_pin *pins[30];
    unsigned broken = 0;
    struct world w;

    (void)state;
    limits.log_bytes = 20000;
    world_init(&w, limits);
    in.packed = kr_bytes_of(bulk, sizeof bulk);
    for (unsigned i = 0; i < 30; i++) {
        in.hash++;
        assert_int_equal(hub_shelf_put(shelf(&w, "a"), &in), 0);
        pins[i] = hub_pin_take(w.pods);
        assert_true(hub_cache_bytes(w.cache) < 2 * 20000 + 10000);
    }
    while (broken < 30 && hub_pin_broken(pins[broken]))
        broken++;
    assert_in_range(broken, 8, 15);
    for (unsigned i = broken; i < 30; i++)
        assert_false(hub_pin_broken(pins[i]));
    for (unsigned i = 0; i < 30; i++)
        hub_pin_release(pins[i], false);
    world_deinit(&w);
}

/* ---- shelves that go ---- */

static void test_pin_when_a_shelf_is_removed_then_its_content_is_still_shown(void **state)
{
    struct hub_walk *walk;
    const char *cluster;
    struct hub_pin *pin;
    struct world w;
    uint64_t bytes;

    (void)state;
    world_init(&w, roomy());
    bytes = hub_cache_bytes(w.cache);
    assert_int_equal(put(shelf(&w, "a"), "ns", "x", 1), 0);
    assert_int_equal(put(shelf(&w, "b"), "ns", "x", 1), 0);
    assert_int_equal(put(shelf(&w, "b"), "ns", "y", 1), 0);
    assert_int_equal(put(shelf(&w, "c"), "ns", "x", 1), 0);
    pin = hub_pin_take(w.pods);
    walk = walk_at(&w, pin);
    assert_non_null(hub_walk_next(walk, &cluster));
    hub_shelf_remove(shelf(&w, "b"));
    assert_int_equal(put(shelf(&w, "b"), "ns", "x", 2), 0); /* a new one of the same name */
    assert_int_equal(put(shelf(&w, "b"), "ns", "z", 2), 0);
    expect_walk(walk, "ns/x@b ns/x@c ns/y@b");
    expect_walk(walk_at(&w, pin), "ns/x@a ns/x@b ns/x@c ns/y@b");
    expect_walk(walk_at(&w, NULL), "ns/x@a ns/x@b ns/x@c ns/z@b");
    hub_pin_release(pin, false);
    hub_shelf_remove(shelf(&w, "a"));
    hub_shelf_remove(shelf(&w, "b"));
    hub_shelf_remove(shelf(&w, "c"));
    turn(&w, 1);
    hub_shelf_clear(shelf(&w, "d"), true);
    hub_shelf_remove(shelf(&w, "d"));
    assert_int_equal(put(shelf(&w, "e"), "ns", "x", 1), 0);
    hub_shelf_clear(shelf(&w, "e"), true); /* the log forgets all */
    hub_shelf_remove(shelf(&w, "e"));
    turn(&w, 1);
    assert_in_range(hub_cache_bytes(w.cache), bytes, bytes + 100); /* room for shelves */
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pin_when_nothing_changed_then_it_is_shared),
        cmocka_unit_test(test_pin_when_objects_change_then_it_shows_them_as_they_were),
        cmocka_unit_test(test_pin_when_there_are_several_then_each_shows_its_own),
        cmocka_unit_test(test_pin_when_it_is_released_then_nothing_old_is_left),
        cmocka_unit_test(test_pin_when_it_is_kept_then_it_is_found_until_its_time_is_over),
        cmocka_unit_test(test_pin_when_it_is_not_kept_then_it_is_gone_at_once),
        cmocka_unit_test(test_pin_when_one_of_two_users_keeps_it_then_it_stays),
        cmocka_unit_test(test_pin_when_there_are_too_many_then_the_one_unused_for_longest_breaks),
        cmocka_unit_test(test_pin_when_all_are_in_use_and_too_many_then_the_oldest_breaks),
        cmocka_unit_test(test_pin_when_what_they_keep_is_too_much_then_the_oldest_breaks_first),
        cmocka_unit_test(test_pin_when_a_shelf_is_removed_then_its_content_is_still_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
