/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_world.h"

static void expect_text(struct kr_bytes got, const char *expected)
{
    assert_true(kr_bytes_is(got, expected));
}

/* ---- types and shelves ---- */

static void test_type_when_added_twice_then_it_is_one(void **state)
{
    struct world w;
    struct hub_type *t;

    (void)state;
    world_init(&w, roomy());
    t = hub_cache_add_type(w.cache, KR_LIT("apps"), KR_LIT("v1"), KR_LIT("deployments"));
    assert_non_null(t);
    assert_ptr_equal(
        hub_cache_add_type(w.cache, KR_LIT("apps"), KR_LIT("v1"), KR_LIT("deployments")), t);
    assert_ptr_equal(
        hub_cache_find_type(w.cache, KR_LIT("apps"), KR_LIT("v1"), KR_LIT("deployments")), t);
    assert_ptr_equal(hub_cache_find_type(w.cache, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods")),
                     w.pods);
    assert_null(hub_cache_find_type(w.cache, KR_LIT("apps"), KR_LIT("v1"), KR_LIT("pods")));
    assert_null(hub_cache_find_type(w.cache, KR_LIT("app"), KR_LIT("sv1"), KR_LIT("deployments")));
    expect_text(t->group, "apps");
    expect_text(t->version, "v1");
    expect_text(t->resource, "deployments");
    assert_int_equal(t->revision, w.revision.last);
    world_deinit(&w);
}

static void test_type_when_the_limit_is_reached_then_no_other_comes(void **state)
{
    struct hub_cache_limits limits = roomy();
    struct world w;

    (void)state;
    limits.types = 2;
    world_init(&w, limits);
    assert_non_null(hub_cache_add_type(w.cache, KR_LIT("a"), KR_LIT("v1"), KR_LIT("x")));
    assert_null(hub_cache_add_type(w.cache, KR_LIT("b"), KR_LIT("v1"), KR_LIT("x")));
    assert_non_null(hub_cache_add_type(w.cache, KR_LIT("a"), KR_LIT("v1"), KR_LIT("x")));
    world_deinit(&w);
}

static void test_type_when_its_name_is_absurd_then_it_is_refused(void **state)
{
    static char text[1000];
    struct world w;

    (void)state;
    memset(text, 'x', sizeof text);
    world_init(&w, roomy());
    assert_null(hub_cache_add_type(w.cache, kr_bytes_of(text, 1000), KR_LIT("v1"), KR_LIT("x")));
    assert_null(hub_cache_find_type(w.cache, kr_bytes_of(text, 1000), KR_LIT("v1"), KR_LIT("x")));
    world_deinit(&w);
}

static void test_shelves_when_added_in_any_order_then_they_stand_by_cluster(void **state)
{
    static const char *const order[] = {"a", "aa", "b", "m", "z"};
    static const char *const added[] = {"m", "z", "a", "b", "aa"};
    struct world w;
    size_t i = 0;

    (void)state;
    world_init(&w, roomy());
    for (size_t k = 0; k < 5; k++)
        (void)shelf(&w, added[k]);
    assert_ptr_equal(shelf(&w, "b"), hub_type_find_shelf(w.pods, KR_LIT("b")));
    assert_null(hub_type_find_shelf(w.pods, KR_LIT("c")));
    KR_LIST_FOREACH(node, &w.pods->shelves)
    assert_string_equal(KR_CONTAINER_OF(node, struct hub_shelf, in_type)->cluster, order[i++]);
    assert_int_equal(i, 5);
    hub_shelf_remove(shelf(&w, "b"));
    assert_null(hub_type_find_shelf(w.pods, KR_LIT("b")));
    assert_non_null(hub_type_find_shelf(w.pods, KR_LIT("m")));
    world_deinit(&w);
}

static void test_shelf_when_the_cluster_has_no_proper_name_then_there_is_none(void **state)
{
    struct world w;

    (void)state;
    world_init(&w, roomy());
    assert_null(hub_type_add_shelf(w.pods, KR_LIT("")));
    assert_null(hub_type_add_shelf(
        w.pods, KR_LIT("0123456789012345678901234567890123456789012345678901234567890123")));
    assert_non_null(hub_type_add_shelf(
        w.pods, KR_LIT("012345678901234567890123456789012345678901234567890123456789012")));
    world_deinit(&w);
}

/* ---- what an object keeps ---- */

static void check_texts(struct world *w, const char *uid, const char *version)
{
    struct hub_shelf *s = shelf(w, "a");
    struct hub_incoming in = pod("ns", "name", 7);
    const struct hub_object *o;
    char buf[HUB_UID_BUF];

    in.uid = kr_bytes_str(uid);
    in.version = kr_bytes_str(version);
    in.lossy = true;
    in.dictionary = 200;
    assert_int_equal(hub_shelf_put(s, &in), 0);
    o = get(s, "ns", "name");
    assert_non_null(o);
    expect_text(hub_object_ns(o), "ns");
    expect_text(hub_object_name(o), "name");
    expect_text(hub_object_uid(o, buf), uid);
    expect_text(hub_object_version(o), version);
    expect_text(hub_object_packed(o), "packed bytes");
    assert_true(o->lossy);
    assert_int_equal(o->dictionary, 200);
    assert_int_equal(o->hash, 7);
    assert_int_equal(o->size, 1000);
    assert_int_equal(o->revision, w->pods->revision);
    hub_shelf_clear(s, true);
}

static void test_object_when_put_then_all_its_texts_come_back(void **state)
{
    static const char *const uids[] = {
        UID_A,
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-fedcba987654",
        "FFFFFFFF-FFFF-FFFF-FFFF-FEDCBA987654", /* would come back in lower case */
        "0a1b2c3d-0001-4000-8000-00000000000g",
        "0a1b2c3d-0001-4000-8000-0000000000",
        "0a1b2c3d-0001-4000-80000-0000000000a",
        "0a1b2c3d00001-4000-8000-00000000000a",
        "0123456789abcdef", /* as long as a packed one */
        "",
    };
    struct world w;

    (void)state;
    world_init(&w, roomy());
    for (size_t i = 0; i < sizeof uids / sizeof *uids; i++) {
        check_texts(&w, uids[i], "12345678");
        check_texts(&w, uids[i], "");
        check_texts(&w, uids[i], "an opaque version that is longer than any number would ever be");
    }
    world_deinit(&w);
}

static void test_object_when_a_text_is_too_long_or_has_a_nul_then_it_is_refused(void **state)
{
    static uint8_t text[300];
    struct hub_incoming in;
    struct hub_shelf *s;
    struct world w;
    uint64_t bytes;

    (void)state;
    memset(text, 'x', sizeof text);
    world_init(&w, roomy());
    s = shelf(&w, "a");
    bytes = hub_cache_bytes(w.cache);
    for (int i = 0; i < 6; i++) {
        in = pod("ns", "name", 1);
        if (i == 0)
            in.ns = kr_bytes_of(text, 256);
        else if (i == 1)
            in.name = kr_bytes_of(text, 256);
        else if (i == 2)
            in.uid = kr_bytes_of(text, 256);
        else if (i == 3)
            in.version = kr_bytes_of(text, 256);
        else if (i == 4)
            in.ns = KR_LIT("a\0b");
        else
            in.name = KR_LIT("a\0b");
        assert_int_equal(hub_shelf_put(s, &in), KR_EINVAL);
    }
    assert_int_equal(s->objects, 0);
    assert_int_equal(hub_cache_bytes(w.cache), bytes);
    in = pod("ns", "name", 1);
    in.ns = in.name = in.uid = kr_bytes_of(text, 255);
    assert_int_equal(hub_shelf_put(s, &in), 0);
    world_deinit(&w);
}

static void test_labels_when_asked_for_then_they_are_those_that_were_put(void **state)
{
    struct world w;
    struct hub_shelf *s;
    const struct kr_label *labels;
    size_t n;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    assert_int_equal(put_labelled(s, "ns", "x", 1, "web"), 0);
    assert_int_equal(put_labelled(s, "ns", "y", 1, "web"), 0);
    assert_int_equal(put(s, "ns", "z", 1), 0);
    assert_int_equal(get(s, "ns", "x")->label_set, get(s, "ns", "y")->label_set);
    assert_int_not_equal(get(s, "ns", "x")->label_set, get(s, "ns", "z")->label_set);
    labels = hub_cache_labels(w.cache, get(s, "ns", "y")->label_set, &n);
    assert_int_equal(n, 1);
    expect_text(labels[0].key, "app");
    expect_text(labels[0].value, "web");
    (void)hub_cache_labels(w.cache, get(s, "ns", "z")->label_set, &n);
    assert_int_equal(n, 0);
    world_deinit(&w);
}

/* ---- changes ---- */

static struct hub_event *next_event(struct hub_place *place)
{
    struct hub_event *e = NULL;

    assert_int_equal(hub_place_next(place, &e), 1);
    return e;
}

static void test_put_when_the_hash_is_the_same_then_only_the_version_is_taken(void **state)
{
    static const char *const versions[] = {"101", "1000", "10000", "999999999999999999999999999",
                                           "5"};
    struct hub_incoming in = pod("ns", "x", 1);
    struct hub_place place;
    struct hub_event *e;
    struct hub_shelf *s;
    uint64_t revision;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    assert_int_equal(hub_shelf_put(s, &in), 0);
    revision = w.pods->revision;
    hub_place_at_end(w.pods, &place);
    in.packed = KR_LIT("other bytes of the same content");
    for (size_t i = 0; i < 5; i++) {
        in.version = kr_bytes_str(versions[i]);
        assert_int_equal(hub_shelf_put(s, &in), 1);
        expect_text(hub_object_version(get(s, "ns", "x")), versions[i]);
        assert_int_equal(get(s, "ns", "x")->revision, revision);
    }
    assert_int_equal(w.pods->revision, revision);
    assert_int_equal(hub_place_next(&place, &e), 0);
    assert_int_equal(s->objects, 1);
    world_deinit(&w);
}

/* Else the log would hold a second copy of each object when versions grow by a digit. */
static void test_put_when_the_version_does_not_fit_then_the_log_has_the_new_object(void **state)
{
    struct hub_incoming in = pod("ns", "x", 1);
    struct hub_place place;
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    hub_place_at_end(w.pods, &place);
    assert_int_equal(hub_shelf_put(s, &in), 0);
    in.version = KR_LIT("999999999999999999999999999");
    assert_int_equal(hub_shelf_put(s, &in), 1);
    assert_ptr_equal(next_event(&place)->object, get(s, "ns", "x"));
    turn(&w, 1); /* what was lent goes back */
    assert_int_equal(get(s, "ns", "x")->refs, 2);
    world_deinit(&w);
}

static void test_put_when_the_content_differs_then_there_is_one_event_of_both(void **state)
{
    struct hub_place place;
    struct hub_event *e;
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "edge-1");
    hub_place_at_end(w.pods, &place);
    assert_int_equal(put(s, "ns", "x", 1), 0);
    assert_int_equal(put(s, "ns", "x", 2), 0);
    e = next_event(&place);
    assert_int_equal(e->change, HUB_ADDED);
    assert_int_equal(e->object->hash, 1);
    assert_null(e->before);
    assert_string_equal(e->cluster, "edge-1");
    e = next_event(&place);
    assert_int_equal(e->change, HUB_MODIFIED);
    assert_int_equal(e->object->hash, 2);
    assert_int_equal(e->before->hash, 1);
    assert_int_equal(e->revision, w.pods->revision);
    assert_int_equal(e->object->revision, w.pods->revision);
    assert_int_equal(hub_place_next(&place, &e), 0);
    world_deinit(&w);
}

static void test_put_when_the_uid_differs_then_one_goes_and_one_comes(void **state)
{
    struct hub_incoming in = pod("ns", "x", 1);
    struct hub_place place;
    struct hub_event *gone;
    struct hub_event *come;
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    assert_int_equal(hub_shelf_put(s, &in), 0);
    hub_place_at_end(w.pods, &place);
    in.uid = KR_LIT(UID_B); /* the hash that was told is the same; the uid counts */
    assert_int_equal(hub_shelf_put(s, &in), 0);
    gone = next_event(&place);
    come = next_event(&place);
    assert_int_equal(gone->change, HUB_DELETED);
    assert_int_equal(come->change, HUB_ADDED);
    assert_true(gone->revision < come->revision);
    assert_ptr_equal(come->object, get(s, "ns", "x"));
    assert_ptr_not_equal(gone->object, come->object);
    assert_int_equal(s->objects, 1);
    world_deinit(&w);
}

static void test_delete_when_it_is_there_then_its_last_state_is_told(void **state)
{
    struct hub_place place;
    struct hub_event *e;
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    assert_int_equal(put(s, "ns", "x", 1), 0);
    hub_place_at_end(w.pods, &place);
    assert_false(delete (s, "ns", "y"));
    assert_false(delete (shelf(&w, "b"), "ns", "x"));
    assert_true(delete (s, "ns", "x"));
    assert_false(delete (s, "ns", "x"));
    e = next_event(&place);
    assert_int_equal(e->change, HUB_DELETED);
    assert_int_equal(e->object->hash, 1);
    assert_true(e->revision > e->object->revision);
    assert_null(get(s, "ns", "x"));
    assert_int_equal(w.pods->objects, 0);
    world_deinit(&w);
}

/* ---- deletes by hash ---- */

static uint64_t key(unsigned i)
{
    char name[16];

    snprintf(name, sizeof name, "pod-%u", i);
    return kr_key_hash(KR_LIT("ns"), kr_bytes_str(name));
}

static void fill(struct hub_shelf *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[16];

        snprintf(name, sizeof name, "pod-%u", i);
        assert_int_equal(put(s, "ns", name, i), 0);
    }
}

/* Nothing but the shelf holds an object: what points to one that is gone is found out. */
static struct hub_cache_limits no_log(void)
{
    struct hub_cache_limits limits = roomy();

    limits.log_events = 0;
    limits.log_ms = -1;
    return limits;
}

static void test_delete_by_hash_when_there_are_many_in_a_turn_then_each_goes_once(void **state)
{
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, no_log());
    s = shelf(&w, "a");
    fill(s, 3000);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(hub_shelf_delete_hash(s, key(i)));
        assert_false(hub_shelf_delete_hash(s, key(i)));
        assert_false(hub_shelf_delete_hash(s, key(5000 + i)));
    }
    assert_int_equal(s->objects, 2000);
    turn(&w, 1);
    for (unsigned i = 1000; i < 3000; i++)
        assert_true(hub_shelf_delete_hash(s, key(i)));
    assert_int_equal(s->objects, 0);
    world_deinit(&w);
}

static void test_delete_by_hash_when_the_shelf_was_cleared_then_it_finds_nothing(void **state)
{
    struct hub_shelf *s;
    struct world w;

    (void)state;
    world_init(&w, no_log());
    s = shelf(&w, "a");
    for (int quiet = 0; quiet < 2; quiet++) {
        fill(s, 2000);
        for (unsigned i = 0; i < 200; i++)
            assert_true(hub_shelf_delete_hash(s, key(i)));
        hub_shelf_clear(s, quiet != 0);
        for (unsigned i = 200; i < 400; i++)
            assert_false(hub_shelf_delete_hash(s, key(i)));
    }
    world_deinit(&w);
}

/* Each kind of change takes away what an index of the keys would point to. */
static void test_delete_by_hash_when_the_shelf_changes_between_then_it_still_finds(void **state)
{
    struct hub_shelf *s;
    struct hub_shelf *other;
    struct world w;

    (void)state;
    world_init(&w, no_log());
    s = shelf(&w, "a");
    other = shelf(&w, "b");
    for (int change = 0; change < 5; change++) {
        fill(s, 2000);
        fill(other, 2000);
        for (unsigned i = 0; i < 200; i++)
            assert_true(hub_shelf_delete_hash(s, key(i)));
        switch (change) {
        case 0:
            assert_int_equal(put(s, "ns", "pod-300", 99), 0); /* another object */
            break;
        case 1:
            assert_true(delete (s, "ns", "pod-301"));
            assert_int_equal(put(s, "ns", "pod-301", 5), 0);
            break;
        case 2:
            hub_shelf_clear(s, false);
            fill(s, 2000);
            break;
        case 3:
            hub_shelf_remove(s);
            s = shelf(&w, "a");
            fill(s, 2000);
            break;
        default:
            assert_true(hub_shelf_delete_hash(other, key(300)));
            break;
        }
        for (unsigned i = 300; i < 600; i++)
            assert_true(hub_shelf_delete_hash(s, key(i)));
        hub_shelf_clear(s, true);
        hub_shelf_clear(other, true);
        turn(&w, 1);
    }
    world_deinit(&w);
}

/* ---- steps ---- */

static void test_shelf_when_stepped_through_then_each_object_comes_once(void **state)
{
    struct hub_shelf_pos pos = {.leaf = 0};
    const struct hub_object *o;
    struct hub_shelf *s;
    uint64_t sum = 0;
    struct world w;

    (void)state;
    world_init(&w, roomy());
    s = shelf(&w, "a");
    fill(s, 500);
    while ((o = hub_shelf_next(s, &pos)) != NULL)
        sum += o->hash;
    assert_int_equal(sum, 499 * 500 / 2);
    assert_null(hub_shelf_next(s, &pos));
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_type_when_added_twice_then_it_is_one),
        cmocka_unit_test(test_type_when_the_limit_is_reached_then_no_other_comes),
        cmocka_unit_test(test_type_when_its_name_is_absurd_then_it_is_refused),
        cmocka_unit_test(test_shelves_when_added_in_any_order_then_they_stand_by_cluster),
        cmocka_unit_test(test_shelf_when_the_cluster_has_no_proper_name_then_there_is_none),
        cmocka_unit_test(test_object_when_put_then_all_its_texts_come_back),
        cmocka_unit_test(test_object_when_a_text_is_too_long_or_has_a_nul_then_it_is_refused),
        cmocka_unit_test(test_labels_when_asked_for_then_they_are_those_that_were_put),
        cmocka_unit_test(test_put_when_the_hash_is_the_same_then_only_the_version_is_taken),
        cmocka_unit_test(test_put_when_the_version_does_not_fit_then_the_log_has_the_new_object),
        cmocka_unit_test(test_put_when_the_content_differs_then_there_is_one_event_of_both),
        cmocka_unit_test(test_put_when_the_uid_differs_then_one_goes_and_one_comes),
        cmocka_unit_test(test_delete_when_it_is_there_then_its_last_state_is_told),
        cmocka_unit_test(test_delete_by_hash_when_there_are_many_in_a_turn_then_each_goes_once),
        cmocka_unit_test(test_delete_by_hash_when_the_shelf_was_cleared_then_it_finds_nothing),
        cmocka_unit_test(test_delete_by_hash_when_the_shelf_changes_between_then_it_still_finds),
        cmocka_unit_test(test_shelf_when_stepped_through_then_each_object_comes_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
