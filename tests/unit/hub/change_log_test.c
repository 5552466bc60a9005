/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_world.h"

#include "hub/cluster_use.h"
#include "hub/ledger.h"

static unsigned count_events(struct hub_place *place)
{
    struct hub_event *e;
    unsigned n = 0;
    int rc;

    while ((rc = hub_place_next(place, &e)) == 1)
        n++;
    assert_int_equal(rc, 0);
    return n;
}

static void change(struct hub_shelf *s, unsigned times)
{
    static uint64_t hash;

    for (unsigned i = 0; i < times; i++)
        assert_int_equal(put(s, "ns", "x", ++hash), 0);
}

/* ---- how long events are kept ---- */

static void test_log_when_events_are_few_then_age_does_not_matter(void **state)
{
    struct hub_place place;
    struct world w;
    uint64_t first;

    (void)state;
    world_init(&w, roomy());
    first = w.pods->revision;
    change(shelf(&w, "a"), 1000);
    turn(&w, 10000000);
    assert_int_equal(hub_place_at(w.pods, first, &place), 0);
    assert_int_equal(count_events(&place), 1000);
    world_deinit(&w);
}

static void test_log_when_events_are_young_then_their_number_does_not_matter(void **state)
{
    struct hub_place place;
    struct world w;
    uint64_t first;

    (void)state;
    world_init(&w, roomy());
    first = w.pods->revision;
    change(shelf(&w, "a"), 5000);
    turn(&w, 59000);
    assert_int_equal(hub_place_at(w.pods, first, &place), 0);
    assert_int_equal(count_events(&place), 5000);
    world_deinit(&w);
}

/* The type is quiet: a timer does it. */
static void test_log_when_events_are_old_and_many_then_they_go(void **state)
{
    struct hub_place place;
    struct world w;
    uint64_t first;
    uint64_t bytes;

    (void)state;
    world_init(&w, roomy());
    first = w.pods->revision;
    change(shelf(&w, "a"), 5000);
    bytes = hub_cache_bytes(w.cache);
    for (int i = 0; i < 20; i++)
        turn(&w, 5000);
    assert_int_equal(hub_place_at(w.pods, first, &place), KR_ENOENT);
    assert_int_equal(hub_place_at(w.pods, w.pods->revision - 16 * 1000, &place), 0);
    assert_int_equal(count_events(&place), 1000);
    assert_int_equal(hub_place_at(w.pods, w.pods->revision - 16 * 1001, &place), KR_ENOENT);
    assert_true(hub_cache_bytes(w.cache) < bytes / 4);
    world_deinit(&w);
}

static void test_log_when_it_is_heavy_then_its_bytes_are_bounded(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_place place;
    struct world w;
    uint64_t first;

    (void)state;
    limits.log_bytes = 100000;
    world_init(&w, limits);
    first = w.pods->revision;
    for (unsigned i = 0; i < 100; i++) {
        change(shelf(&w, "a"), 100);
        assert_true(hub_cache_bytes(w.cache) < 100000 + 10000);
    }
    assert_int_equal(hub_place_at(w.pods, first, &place), KR_ENOENT);
    assert_int_equal(hub_place_at(w.pods, w.pods->revision - 16 * 100, &place), 0);
    assert_int_equal(count_events(&place), 100);
    world_deinit(&w);
}

static void be_noisy(bool second)
{
    struct hub_cache_limits limits = roomy();
    struct hub_shelf *shelves[2];
    struct hub_place place;
    struct hub_type *type;
    struct world w;
    uint64_t first;

    limits.log_bytes = 100000;
    world_init(&w, limits);
    type = hub_cache_add_type(w.cache, KR_LIT(""), KR_LIT("v1"), KR_LIT("nodes"));
    assert_non_null(type);
    shelves[0] = shelf(&w, "a");
    shelves[1] = hub_type_add_shelf(type, KR_LIT("a"));
    first = w.revision.last;
    change(shelves[!second], 50);
    change(shelves[second], 10000);
    assert_int_equal(hub_place_at(shelves[!second]->type, first, &place), 0);
    assert_int_equal(count_events(&place), 50);
    assert_int_equal(hub_place_at(shelves[second]->type, first, &place), KR_ENOENT);
    world_deinit(&w);
}

static void test_log_when_one_type_is_noisy_then_others_keep_their_past(void **state)
{
    (void)state;
    be_noisy(false);
    be_noisy(true);
}

static void test_log_when_a_cluster_is_loaded_then_it_does_not_keep_all_of_it(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct world w;
    struct hub_shelf *s;

    (void)state;
    limits.log_bytes = 300000;
    world_init(&w, limits);
    s = shelf(&w, "a");
    for (unsigned i = 0; i < 20000; i++) {
        char name[16];

        snprintf(name, sizeof name, "p%05u", i);
        assert_int_equal(put(s, "ns", name, i), 0);
    }
    assert_true(hub_cache_bytes(w.cache) < s->bytes + 300000 + 20000);
    world_deinit(&w);
}

/* ---- places ---- */

static void test_place_when_it_is_from_before_the_start_then_there_is_none(void **state)
{
    struct hub_place place;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    assert_int_equal(hub_place_at(w.pods, w.revision.first - 16, &place), KR_ENOENT);
    assert_int_equal(hub_place_at(w.pods, 0, &place), KR_ENOENT);
    assert_int_equal(hub_place_at(w.pods, w.revision.first, &place), 0);
    assert_int_equal(count_events(&place), 0);
    world_deinit(&w);
}

static void test_place_when_taken_at_each_revision_then_it_sees_what_came_later(void **state)
{
    uint64_t revisions[100];
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    for (unsigned i = 0; i < 100; i++) {
        change(s, 1);
        revisions[i] = w.pods->revision;
        if (i % 7 == 0)
            turn(&w, 3);
    }
    for (unsigned i = 0; i < 100; i++) {
        struct hub_place place;
        struct hub_event *e;

        assert_int_equal(hub_place_at(w.pods, revisions[i] - 1, &place), 0);
        assert_int_equal(hub_place_next(&place, &e), 1);
        assert_int_equal(e->revision, revisions[i]);
        assert_int_equal(hub_place_at(w.pods, revisions[i], &place), 0);
        for (unsigned k = i + 1; k < 100; k++) {
            assert_int_equal(hub_place_next(&place, &e), 1);
            assert_int_equal(e->revision, revisions[k]);
        }
        assert_int_equal(hub_place_next(&place, &e), 0);
    }
    world_deinit(&w);
}

static void test_place_when_the_log_overtakes_it_then_it_says_so(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_place slow;
    struct hub_place fast;
    struct hub_event *e;
    struct world w;

    (void)state;
    limits.log_events = 10;
    limits.log_ms = 0;
    world_init(&w, limits);
    hub_place_at_end(w.pods, &slow);
    hub_place_at_end(w.pods, &fast);
    change(shelf(&w, "a"), 10);
    assert_int_equal(count_events(&fast), 10);
    assert_int_equal(hub_place_next(&slow, &e), 1);
    change(shelf(&w, "a"), 2);
    assert_int_equal(hub_place_next(&slow, &e), KR_ENOENT);
    assert_int_equal(hub_place_next(&slow, &e), KR_ENOENT);
    assert_int_equal(count_events(&fast), 2);
    world_deinit(&w);
}

/* Even one that has read everything: it would miss what is not told. */
static void test_place_when_a_shelf_was_cleared_quietly_then_it_says_so(void **state)
{
    struct hub_place place;
    struct hub_event *e;
    struct world w;
    uint64_t before;

    (void)state;
    world_init(&w, roomy());
    change(shelf(&w, "a"), 1);
    before = w.pods->revision;
    hub_place_at_end(w.pods, &place);
    hub_shelf_clear(shelf(&w, "a"), true);
    assert_int_equal(hub_place_next(&place, &e), KR_ENOENT);
    assert_int_equal(hub_place_at(w.pods, before, &place), KR_ENOENT);
    assert_true(w.pods->revision > before);
    assert_int_equal(hub_place_at(w.pods, w.pods->revision, &place), 0);
    change(shelf(&w, "a"), 3);
    assert_int_equal(count_events(&place), 3);
    world_deinit(&w);
}

static void test_place_when_an_empty_shelf_is_cleared_quietly_then_it_goes_on(void **state)
{
    struct hub_place place;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    hub_place_at_end(w.pods, &place);
    change(shelf(&w, "a"), 1);
    hub_shelf_clear(shelf(&w, "b"), true);
    assert_int_equal(count_events(&place), 1);
    world_deinit(&w);
}

/* ---- events in hand ---- */

static void
test_event_when_it_falls_off_while_lent_then_it_lives_to_the_end_of_the_turn(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_place place;
    struct hub_event *e;
    struct world w;

    (void)state;
    limits.log_events = 1;
    limits.log_ms = 0;
    world_init(&w, limits);
    hub_place_at_end(w.pods, &place);
    change(shelf(&w, "a"), 1);
    assert_int_equal(hub_place_next(&place, &e), 1);
    change(shelf(&w, "a"), 10);
    assert_int_equal(e->change, HUB_ADDED); /* under the sanitizers this is a check */
    assert_int_equal(e->object->revision, e->revision);
    turn(&w, 1);
    world_deinit(&w);
}

/* Whoever remembers something of a cluster by that address must not find another there. */
static void test_event_when_clusters_come_and_go_then_each_name_has_its_own_address(void **state)
{
    struct hub_cache_limits limits = roomy();
    const char *names[50];
    struct world w;

    (void)state;
    limits.log_events = 0;
    limits.log_ms = -1;
    world_init(&w, limits);
    for (unsigned i = 0; i < 50; i++) {
        char name[8];

        snprintf(name, sizeof name, "c%u", i % 25);
        assert_int_equal(put(shelf(&w, name), "ns", "x", 1), 0);
        hub_shelf_remove(shelf(&w, name));
        turn(&w, 1);
        names[i] = shelf(&w, name)->use->name;
        assert_true(i < 25 || names[i] == names[i - 25]);
        for (unsigned k = 0; k < i; k++)
            assert_true(names[k] != names[i] || k + 25 == i);
        hub_shelf_remove(shelf(&w, name));
    }
    world_deinit(&w);
}

static void test_event_when_it_is_counted_then_it_lives_on(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_place place;
    struct hub_event *e;
    struct world w;

    (void)state;
    limits.log_events = 1;
    limits.log_ms = 0;
    world_init(&w, limits);
    hub_place_at_end(w.pods, &place);
    change(shelf(&w, "a"), 1);
    assert_int_equal(hub_place_next(&place, &e), 1);
    assert_ptr_equal(hub_event_ref(e), e);
    change(shelf(&w, "a"), 10);
    turn(&w, 1);
    change(shelf(&w, "a"), 10);
    turn(&w, 1);
    hub_shelf_remove(shelf(&w, "a"));
    turn(&w, 1);
    assert_string_equal(e->cluster, "a");
    assert_int_equal(e->refs, 1);
    hub_event_unref(w.cache, e);
    world_deinit(&w);
}

/* ---- texts ---- */

static void give_text(struct hub_event *e, uint32_t n)
{
    struct hub_shown *text = malloc(sizeof *text + n);

    assert_non_null(text);
    *text = (struct hub_shown){.refs = 1, .n = n};
    e->shown[1] = text;
}

static void test_text_when_it_is_made_then_it_is_counted_until_it_goes(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_place place;
    struct hub_event *e;
    struct world w;
    uint64_t bytes;

    (void)state;
    limits.log_ms = 0;
    limits.log_events = 10;
    world_init(&w, limits);
    hub_place_at_end(w.pods, &place);
    change(shelf(&w, "a"), 10);
    bytes = hub_cache_bytes(w.cache);
    assert_int_equal(hub_place_next(&place, &e), 1);
    give_text(e, 5000);
    turn(&w, 1);
    assert_int_equal(hub_cache_bytes(w.cache),
                     bytes + hub_footprint(sizeof(struct hub_shown) + 5000));
    change(shelf(&w, "a"), 10);
    assert_true(hub_cache_bytes(w.cache) < bytes + 3000);
    world_deinit(&w);
}

static void test_text_when_it_is_heavy_then_events_go_for_it(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_place place;
    struct hub_event *e;
    struct world w;

    (void)state;
    limits.log_bytes = 100000;
    world_init(&w, limits);
    hub_place_at_end(w.pods, &place);
    for (int i = 0; i < 300; i++) {
        change(shelf(&w, "a"), 1);
        assert_int_equal(hub_place_next(&place, &e), 1);
        give_text(e, 5000);
        turn(&w, 1);
        assert_true(hub_cache_bytes(w.cache) < 110000);
    }
    world_deinit(&w);
}

static void test_text_when_many_events_came_after_then_it_goes_before_the_event(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct hub_place place;
    struct hub_place late;
    struct hub_event *e;
    struct world w;

    (void)state;
    limits.log_events = 10000;
    world_init(&w, limits);
    hub_place_at_end(w.pods, &place);
    hub_place_at_end(w.pods, &late);
    change(shelf(&w, "a"), 1);
    assert_int_equal(hub_place_next(&place, &e), 1);
    give_text(e, 100);
    turn(&w, 1);
    change(shelf(&w, "a"), 1000);
    assert_non_null(e->shown[1]);
    change(shelf(&w, "a"), 30);
    assert_null(e->shown[1]);
    /* One who comes so late makes it for himself. */
    assert_int_equal(hub_place_next(&late, &e), 1);
    assert_null(e->shown[1]);
    give_text(e, 100);
    turn(&w, 1);
    assert_null(e->shown[1]);
    world_deinit(&w);
}

/* ---- listeners ---- */

struct listener {
    struct hub_listener base;
    unsigned calls;
    struct listener *stops; /* in its call */
    struct hub_type *adds_to;
    struct listener *adds;
};

static void on_events(struct hub_listener *base)
{
    struct listener *l = KR_CONTAINER_OF(base, struct listener, base);

    l->calls++;
    if (l->stops != NULL)
        hub_listener_stop(&l->stops->base);
    if (l->adds != NULL)
        hub_type_listen(l->adds_to, &l->adds->base);
    l->adds = NULL;
}

static void test_listener_when_many_events_come_in_a_turn_then_it_is_called_once(void **state)
{
    struct listener l = {.base = {.on_events = on_events}};
    struct world w;

    (void)state;
    world_init(&w, roomy());
    hub_type_listen(w.pods, &l.base);
    turn(&w, 1);
    assert_int_equal(l.calls, 0);
    change(shelf(&w, "a"), 100);
    change(shelf(&w, "b"), 1);
    assert_int_equal(l.calls, 0);
    turn(&w, 1);
    assert_int_equal(l.calls, 1);
    turn(&w, 1);
    assert_int_equal(l.calls, 1);
    hub_shelf_clear(shelf(&w, "a"), false);
    turn(&w, 1);
    assert_int_equal(l.calls, 2);
    hub_listener_stop(&l.base);
    change(shelf(&w, "a"), 1);
    turn(&w, 1);
    assert_int_equal(l.calls, 2);
    world_deinit(&w);
}

static void test_listener_when_others_come_and_go_in_its_call_then_all_is_well(void **state)
{
    struct listener late = {.base = {.on_events = on_events}};
    struct listener third = {.base = {.on_events = on_events}};
    struct listener second = {.base = {.on_events = on_events}};
    struct listener first = {.base = {.on_events = on_events}, .stops = &second, .adds = &late};
    struct world w;

    (void)state;
    world_init(&w, roomy());
    first.adds_to = w.pods;
    hub_type_listen(w.pods, &first.base);
    hub_type_listen(w.pods, &second.base);
    hub_type_listen(w.pods, &third.base);
    third.stops = &third;
    change(shelf(&w, "a"), 1);
    turn(&w, 1);
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 0);
    assert_int_equal(third.calls, 1);
    assert_int_equal(late.calls, 0);
    change(shelf(&w, "a"), 1);
    turn(&w, 1);
    assert_int_equal(first.calls, 2);
    assert_int_equal(third.calls, 1);
    assert_int_equal(late.calls, 1);
    hub_listener_stop(&first.base);
    hub_listener_stop(&late.base);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_when_events_are_few_then_age_does_not_matter),
        cmocka_unit_test(test_log_when_events_are_young_then_their_number_does_not_matter),
        cmocka_unit_test(test_log_when_events_are_old_and_many_then_they_go),
        cmocka_unit_test(test_log_when_it_is_heavy_then_its_bytes_are_bounded),
        cmocka_unit_test(test_log_when_one_type_is_noisy_then_others_keep_their_past),
        cmocka_unit_test(test_log_when_a_cluster_is_loaded_then_it_does_not_keep_all_of_it),
        cmocka_unit_test(test_place_when_it_is_from_before_the_start_then_there_is_none),
        cmocka_unit_test(test_place_when_taken_at_each_revision_then_it_sees_what_came_later),
        cmocka_unit_test(test_place_when_the_log_overtakes_it_then_it_says_so),
        cmocka_unit_test(test_place_when_a_shelf_was_cleared_quietly_then_it_says_so),
        cmocka_unit_test(test_place_when_an_empty_shelf_is_cleared_quietly_then_it_goes_on),
        cmocka_unit_test(
            test_event_when_it_falls_off_while_lent_then_it_lives_to_the_end_of_the_turn),
        cmocka_unit_test(test_event_when_clusters_come_and_go_then_each_name_has_its_own_address),
        cmocka_unit_test(test_event_when_it_is_counted_then_it_lives_on),
        cmocka_unit_test(test_text_when_it_is_made_then_it_is_counted_until_it_goes),
        cmocka_unit_test(test_text_when_it_is_heavy_then_events_go_for_it),
        cmocka_unit_test(test_text_when_many_events_came_after_then_it_goes_before_the_event),
        cmocka_unit_test(test_listener_when_many_events_come_in_a_turn_then_it_is_called_once),
        cmocka_unit_test(test_listener_when_others_come_and_go_in_its_call_then_all_is_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
