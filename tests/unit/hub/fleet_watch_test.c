/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_watch.h"

#include "fleet_world.h"

#define PODS "/clusters/*/api/v1/pods"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
#define PARTIAL "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

static int setup(void **state)
{
    static struct fleet f;

    fleet_setup(&f);
    know_cluster(&f, "c1");
    know_cluster(&f, "c2");
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fleet_teardown(*state);
    return 0;
}

/* Takes the first event off what came; its type and object. False: there is none. */
static bool next_event(struct asker *a, struct kr_bytes *type, struct kr_bytes *object)
{
    static uint8_t line[65536];
    size_t n = kr_bytes_find(kr_buf_bytes(&a->body), '\n');
    struct kr_bytes event;

    if (n == a->body.n)
        return false;
    assert_in_range(n, 2, sizeof line);
    memcpy(line, a->body.p, n);
    kr_buf_drop(&a->body, n + 1);
    event = kr_bytes_of(line, n);
    assert_int_equal(kr_scan_check(event, 64, NULL), 0);
    assert_true(kr_scan_find(event, "type", type));
    assert_true(kr_scan_find(event, "object", object));
    return true;
}

/* One event: its type, and a member of its object. */
static void expect(struct asker *a, const char *type, const char *path, const char *value)
{
    struct kr_bytes got_type;
    struct kr_bytes object;
    struct kr_bytes member;
    char shown[512];

    pump(a, 700);
    if (!next_event(a, &got_type, &object))
        fail_msg("no event, wanted %s", type);
    snprintf(shown, sizeof shown, "%.*s", (int)got_type.n - 2, (const char *)got_type.p + 1);
    assert_string_equal(shown, type);
    member = at_path(object, path);
    snprintf(shown, sizeof shown, "%.*s", (int)member.n, member.n ? (const char *)member.p : "");
    assert_string_equal(shown, value);
}

static void expect_silence(struct asker *a)
{
    pump(a, 700);
    if (a->body.n != 0)
        fail_msg("unexpected: %s", body_of(a));
    assert_false(a->over);
}

static void watch(struct asker *a, struct fleet *f, const char *query, const char *accept)
{
    char target[512];

    snprintf(target, sizeof target, PODS "?watch=1%s%s", *query != '\0' ? "&" : "", query);
    ask_as(a, f, "GET", target, accept);
    assert_true(a->has_head); /* at once */
    assert_int_equal(a->answer.status, 200);
}

static void watch_from(struct asker *a, struct fleet *f, uint64_t revision, const char *query,
                       const char *accept)
{
    char text[256];

    snprintf(text, sizeof text, "resourceVersion=%llu%s", (unsigned long long)revision, query);
    watch(a, f, text, accept);
}

static void test_watch_from_nothing_then_what_is_there_and_what_happens(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    put_pod(f, "c1", "a", "web", NULL, "Running");
    put_pod(f, "c2", "a", "web", NULL, "Running");
    watch(&a, f, "", NULL);
    expect(&a, "ADDED", "metadata labels kuberelay.io/cluster", "\"c1\"");
    expect(&a, "ADDED", "metadata labels kuberelay.io/cluster", "\"c2\"");
    expect_silence(&a);
    put_pod(f, "c2", "a", "web", NULL, "Failed");
    expect(&a, "MODIFIED", "status phase", "\"Failed\"");
    put_pod(f, "c2", "a", "new", NULL, "Running");
    expect(&a, "ADDED", "metadata annotations kcp.io/cluster", "\"c2\"");
    drop_pod(f, "c1", "a", "web");
    expect(&a, "DELETED", "kind", "\"Pod\"");
    expect_silence(&a);
    leave(&a);
}

static void test_watch_from_a_version_then_only_what_came_after(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    uint64_t then;
    char revision[32];

    put_pod(f, "c1", "a", "web", NULL, "Running");
    then = f->pods->revision;
    put_pod(f, "c1", "a", "web", NULL, "Failed");
    drop_pod(f, "c1", "a", "web");
    snprintf(revision, sizeof revision, "\"%llu\"", (unsigned long long)f->pods->revision);
    watch_from(&a, f, then, "", NULL);
    expect(&a, "MODIFIED", "status phase", "\"Failed\"");
    expect(&a, "DELETED", "metadata resourceVersion", revision); /* that of the event */
    expect_silence(&a);
    leave(&a);
    watch_from(&a, f, f->pods->revision, "", NULL);
    expect_silence(&a);
    leave(&a);
}

static void test_watch_from_a_version_that_is_gone_then_error_410(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    put_pod(f, "c1", "a", "web", NULL, "Running");
    watch_from(&a, f, 5, "", NULL);
    expect(&a, "ERROR", "reason", "\"Expired\"");
    assert_true(a.over && !a.cut);
    leave(&a);
    watch_from(&a, f, 5, "", TABLE); /* a Status is never a Table */
    expect(&a, "ERROR", "code", "410");
    leave(&a);
    watch(&a, f, "resourceVersion=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
          NULL);
    expect(&a, "ADDED", "kind", "\"Pod\"");
    leave(&a);
}

static void test_watch_with_selector_then_entering_is_added_and_leaving_deleted(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    struct asker b;

    put_pod(f, "c1", "a", "web", "one", "Running");
    watch_from(&a, f, f->pods->revision, "&labelSelector=app%3Dtwo", NULL);
    watch_from(&b, f, f->pods->revision, "&fieldSelector=status.phase%3DRunning", NULL);
    put_pod(f, "c1", "a", "web", "two", "Running");
    expect(&a, "ADDED", "metadata labels app", "\"two\"");
    expect(&b, "MODIFIED", "metadata labels app", "\"two\"");
    put_pod(f, "c1", "a", "web", "two", "Failed");
    expect(&a, "MODIFIED", "status phase", "\"Failed\"");
    expect(&b, "DELETED", "status phase", "\"Running\""); /* as it was when it was selected */
    put_pod(f, "c1", "a", "web", "three", "Failed");
    expect(&a, "DELETED", "metadata labels app", "\"two\"");
    drop_pod(f, "c1", "a", "web");
    expect_silence(&a);
    expect_silence(&b);
    leave(&a);
    leave(&b);
    watch_from(&a, f, f->pods->revision, "&labelSelector=kuberelay.io/cluster%3Dc2", NULL);
    put_pod(f, "c1", "a", "web", "one", "Running");
    put_pod(f, "c2", "a", "other", "one", "Running");
    expect(&a, "ADDED", "metadata name", "\"other\"");
    expect_silence(&a);
    leave(&a);
}

static void test_watch_of_a_namespace_by_a_reader_of_a_part_then_only_that(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    struct asker b;

    watch(&a, f, "", NULL);
    snprintf(f->peer.id.name, sizeof f->peer.id.name, "bob"); /* c1, namespace a */
    watch(&b, f, "", NULL);
    put_pod(f, "c1", "b", "x", NULL, "Running");
    put_pod(f, "c2", "a", "y", NULL, "Running");
    put_pod(f, "c1", "a", "z", NULL, "Running");
    expect(&b, "ADDED", "metadata name", "\"z\"");
    expect_silence(&b);
    expect(&a, "ADDED", "metadata name", "\"x\"");
    configure(f, "readers: []\n");
    hub_fleet_reload(f->w.fleet);
    put_pod(f, "c1", "a", "later", NULL, "Running");
    fleet_turn(f, 1);
    pump(&b, 1000);
    assert_true(b.over && !b.cut);
    assert_int_equal(b.body.n, 0);
    leave(&a);
    leave(&b);
}

static void test_watch_with_initial_events_then_bookmark_when_the_type_is_ready(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    f->subs.hold = true;
    put_pod(f, "c1", "a", "web", NULL, "Running");
    watch(&a, f,
          "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
          NULL);
    expect(&a, "ADDED", "metadata name", "\"web\"");
    expect_silence(&a);
    put_pod(f, "c2", "a", "late", NULL, "Running");
    expect(&a, "ADDED", "metadata name", "\"late\"");
    wants_are_ready(&f->subs);
    expect(&a, "BOOKMARK", "metadata annotations k8s.io/initial-events-end", "\"true\"");
    expect_silence(&a);
    leave(&a);
}

static void test_watch_when_quiet_then_bookmarks_and_its_end(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char now[32];

    put_pod(f, "c1", "a", "web", NULL, "Running");
    watch_from(&a, f, f->pods->revision, "&allowWatchBookmarks=true&timeoutSeconds=150", NULL);
    hub_cache_add_type(f->w.cache, KR_LIT(""), KR_LIT("v1"), KR_LIT("nodes"));
    expect_silence(&a);
    fleet_turn(f, 60000);
    snprintf(now, sizeof now, "\"%llu\"", (unsigned long long)hub_cache_now(f->w.cache));
    expect(&a, "BOOKMARK", "metadata resourceVersion", now);
    expect_silence(&a);
    fleet_turn(f, 60000);
    expect(&a, "BOOKMARK", "kind", "\"Pod\"");
    fleet_turn(f, 28000);
    expect(&a, "BOOKMARK", "metadata annotations", "");
    fleet_turn(f, 1999);
    expect_silence(&a);
    fleet_turn(f, 1);
    pump(&a, 1000);
    assert_true(a.over && !a.cut);
    leave(&a);
}

static void test_watch_without_a_timeout_then_ends_within_the_hour(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    watch(&a, f, "", NULL);
    fleet_turn(f, 30 * 60000 - 1);
    expect_silence(&a);
    fleet_turn(f, 30 * 60000 + 1);
    pump(&a, 1000);
    assert_true(a.over);
    assert_int_equal(a.body.n, 0); /* no bookmarks without being asked */
    leave(&a);
}

static void test_watch_when_the_hub_drains_then_ends_cleanly(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    watch(&a, f, "", NULL);
    hub_fleet_end_watches(f->w.fleet, 1000);
    fleet_turn(f, 1000);
    pump(&a, 1000);
    assert_true(a.over && !a.cut);
    leave(&a);
}

static void test_watch_as_table_then_columns_once(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    struct asker b;
    struct hub_shelf *s = shelf_of(f, "c1");

    s->columns.max = 1 << 20;
    assert_int_equal(kr_buf_append_str(&s->columns,
                                       "[{\"name\":\"Name\",\"type\":\"string\"},{\"name\":"
                                       "\"Ready\",\"type\":\"string\"}]"),
                     0);
    watch(&a, f, "", TABLE);
    put_pod(f, "c1", "a", "web", NULL, "Running");
    watch_from(&b, f, f->revision.first, "&includeObject=Object", TABLE);
    expect(&a, "ADDED", "columnDefinitions 0 name", "\"Cluster\"");
    expect(&b, "ADDED", "columnDefinitions 1 name", "\"Name\"");
    put_pod(f, "c1", "a", "web", NULL, "Failed");
    expect(&a, "MODIFIED", "rows 0 cells", "[\"c1\",\"web\",\"1/1\"]");
    expect(&b, "MODIFIED", "rows 0 object status phase", "\"Failed\"");
    put_pod(f, "c1", "a", "web", NULL, "Failed2");
    expect(&a, "MODIFIED", "columnDefinitions", "null");
    /* The columns change: who began with the old ones keeps them. */
    s->columns.n = 0;
    assert_int_equal(kr_buf_append_str(&s->columns, "[{\"name\":\"Ready\",\"type\":\"string\"}]"),
                     0);
    s->columns_changed++;
    expect(&b, "MODIFIED", "columnDefinitions", "null");
    leave(&b);
    watch(&b, f, "", TABLE);
    expect(&b, "ADDED", "rows 0 cells", "[\"c1\",\"web\"]");
    put_pod(f, "c1", "a", "web", NULL, "Failed3");
    expect(&a, "MODIFIED", "rows 0 cells", "[\"c1\",\"web\",\"1/1\"]");
    expect(&b, "MODIFIED", "rows 0 cells", "[\"c1\",\"web\"]");
    leave(&a);
    leave(&b);
}

static void test_watch_as_metadata_then_only_that(void **state)
{
    struct fleet *f = *state;
    struct asker a;

    watch(&a, f, "", PARTIAL);
    put_pod(f, "c1", "a", "web", NULL, "Running");
    expect(&a, "ADDED", "kind", "\"PartialObjectMetadata\"");
    put_pod(f, "c1", "a", "web", NULL, "Failed");
    expect(&a, "MODIFIED", "status", "");
    leave(&a);
}

static void test_watch_when_several_watch_then_the_text_is_made_once(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    struct asker b;
    struct hub_place place;
    struct hub_event *e;

    watch(&a, f, "", NULL);
    watch(&b, f, "", NULL);
    hub_place_at_end(f->pods, &place);
    put_pod(f, "c1", "a", "web", NULL, "Running");
    pump(&a, 1000);
    assert_int_equal(hub_place_next(&place, &e), 1);
    assert_non_null(e->shown[0]);
    e->shown[0]->text[8] = ' '; /* the brace of the object */
    pump(&b, 1000);
    assert_true(strstr(body_of(&a), "\"object\":{") != NULL);
    assert_true(strstr(body_of(&b), "\"object\": ") != NULL);
    leave(&a);
    leave(&b);
}

static void test_watch_when_its_reader_is_slow_then_it_falls_off_and_ends(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    bool end;

    watch(&a, f, "", NULL);
    put_pod(f, "c1", "a", "web", NULL, "Running");
    fleet_turn(f, 1);
    assert_true(a.ex.user_ops->available(a.ex.user, &end) != 0); /* taken by nobody yet */
    hub_shelf_clear(shelf_of(f, "c1"), true);                    /* the log forgets */
    pump(&a, 1000);
    assert_true(a.over && !a.cut);
    assert_true(strstr(body_of(&a), "\"ADDED\"") != NULL);
    leave(&a);
}

static void test_watch_when_much_is_there_then_in_pieces(void **state)
{
    struct fleet *f = *state;
    struct asker a;
    char name[32];
    bool end;
    size_t n = 0;

    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "p%04d", i);
        put_pod(f, "c1", "a", name, NULL, "Running");
    }
    watch(&a, f, "", NULL);
    assert_in_range(a.ex.user_ops->available(a.ex.user, &end), 32768, 40000);
    put_pod(f, "c1", "a", "p2999", NULL, "Failed"); /* comes behind all of them */
    pump(&a, 4096);
    for (size_t i = 0; i < a.body.n; i++)
        n += a.body.p[i] == '\n';
    assert_int_equal(n, 3001);
    assert_true(strstr(body_of(&a), "\"Failed\"") > strstr(body_of(&a), "\"p2998\""));
    leave(&a);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_watch_from_nothing_then_what_is_there_and_what_happens),
        T(test_watch_from_a_version_then_only_what_came_after),
        T(test_watch_from_a_version_that_is_gone_then_error_410),
        T(test_watch_with_selector_then_entering_is_added_and_leaving_deleted),
        T(test_watch_of_a_namespace_by_a_reader_of_a_part_then_only_that),
        T(test_watch_with_initial_events_then_bookmark_when_the_type_is_ready),
        T(test_watch_when_quiet_then_bookmarks_and_its_end),
        T(test_watch_without_a_timeout_then_ends_within_the_hour),
        T(test_watch_when_the_hub_drains_then_ends_cleanly),
        T(test_watch_as_table_then_columns_once),
        T(test_watch_as_metadata_then_only_that),
        T(test_watch_when_several_watch_then_the_text_is_made_once),
        T(test_watch_when_its_reader_is_slow_then_it_falls_off_and_ends),
        T(test_watch_when_much_is_there_then_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
