/* SPDX-License-Identifier: Apache-2.0 */
/* What is subscribed, when, and who is told. */
#include "sync_world.h"

#define NO_PROFILES "profiles: []\n"

static const char *const types[] = {"pods", "nodes", "secrets", "events", NULL};

struct reader {
    struct hub_want want;
    int told;
    bool release_at_once;
};

static void on_ready(struct hub_want *w)
{
    struct reader *r = KR_CONTAINER_OF(w, struct reader, want);

    r->told++;
    if (r->release_at_once)
        hub_subscriptions_release(w);
}

static int read_type(struct world *w, struct reader *r, const char *resource)
{
    int rc;

    *r = (struct reader){.want.on_ready = on_ready};
    rc = hub_subscriptions_want(w->w.subscriptions, type_of(w, resource), &r->want, 10000);
    assert_int_equal(r->told, 0);
    return rc;
}

static void start(struct world *w, struct agent *a, const char *fleet_file)
{
    world_init(w, fleet_file, 64u << 20);
    agent_join(a, w, "edge-1", true);
    agent_catalog(a, types);
}

static struct hub_completeness complete(struct world *w, const char *resource)
{
    struct hub_completeness c;

    hub_subscriptions_completeness(w->w.subscriptions, type_of(w, resource), NULL, &c);
    return c;
}

static void use_file(struct world *w, const char *text)
{
    struct hub_fleet_config *old = w->w.fleet_config;

    write_fleet_file(w, text);
    w->w.fleet_config = read_fleet_file(w);
    hub_subscriptions_reload(w->w.subscriptions, w->w.fleet_config);
    hub_fleet_config_destroy(old);
    run(w, 0);
}

static void test_want_when_type_is_read_then_subscribed_and_told_once_synced(void **state)
{
    struct world w;
    struct agent a;
    struct reader r;
    struct reader late;

    (void)state;
    start(&w, &a, NO_PROFILES);
    assert_int_equal(open_calls(&a), 0);
    assert_int_equal(read_type(&w, &r, "pods"), 0);
    run(&w, 0);
    assert_int_equal(open_calls(&a), 1);
    assert_int_equal(r.told, 0);
    assert_int_equal(complete(&w, "pods").loading, 1);
    agent_put(open_call(&a, "pods"), "a", "p1", "1");
    assert_int_equal(r.told, 0);
    agent_end_snapshot(open_call(&a, "pods"), "1");
    assert_int_equal(r.told, 1);
    assert_int_equal(complete(&w, "pods").clusters, 1);
    assert_int_equal(complete(&w, "pods").loading, 0);
    assert_int_equal(read_type(&w, &late, "pods"), 0);
    run(&w, 0);
    assert_int_equal(late.told, 1); /* at once */
    run(&w, 60000);
    assert_int_equal(r.told, 1);
    hub_subscriptions_release(&late.want);
    hub_subscriptions_release(&r.want);
    agent_lose(&a);
    world_deinit(&w);
}

static void test_want_when_a_cluster_cannot_then_its_word_is_enough(void **state)
{
    struct world w;
    struct agent a;
    struct agent b;
    struct reader r;

    (void)state;
    start(&w, &a, NO_PROFILES);
    agent_join(&b, &w, "edge-2", true);
    agent_catalog(&b, types);
    assert_int_equal(read_type(&w, &r, "pods"), 0);
    run(&w, 0);
    agent_end_snapshot(open_call(&a, "pods"), "1");
    assert_int_equal(r.told, 0);
    agent_problem(open_call(&b, "pods"), KR_SYNC_FORBIDDEN, "no right");
    assert_int_equal(r.told, 1);
    assert_int_equal(complete(&w, "pods").failing, 1);
    assert_string_equal(complete(&w, "pods").names, "edge-2");
    hub_subscriptions_release(&r.want);
    agent_lose(&a);
    agent_lose(&b);
    world_deinit(&w);
}

static void test_want_when_nothing_comes_then_told_at_the_deadline(void **state)
{
    struct world w;
    struct agent a;
    struct reader r;
    struct reader next;

    (void)state;
    start(&w, &a, NO_PROFILES);
    assert_int_equal(read_type(&w, &r, "pods"), 0);
    run(&w, 9999);
    assert_int_equal(r.told, 0);
    run(&w, 1);
    assert_int_equal(r.told, 1);
    /* Nobody waits for it again. */
    assert_int_equal(read_type(&w, &next, "pods"), 0);
    run(&w, 0);
    assert_int_equal(next.told, 1);
    assert_int_equal(complete(&w, "pods").loading, 1);
    hub_subscriptions_release(&next.want);
    agent_end_snapshot(open_call(&a, "pods"), "1");
    assert_int_equal(r.told, 1);
    hub_subscriptions_release(&r.want);
    agent_lose(&a);
    world_deinit(&w);
}

static void test_want_when_cluster_leaves_or_is_silent_then_who_is_waited_for(void **state)
{
    struct world w;
    struct agent a;
    struct agent mute;
    struct agent old;
    struct reader r;

    (void)state;
    start(&w, &a, NO_PROFILES);
    agent_join(&mute, &w, "edge-2", true); /* tells no catalog: it may serve the type */
    agent_join(&old, &w, "edge-3", false); /* cannot sync at all: nobody waits for it */
    assert_int_equal(old.n, 0);
    assert_int_equal(read_type(&w, &r, "pods"), 0);
    run(&w, 0);
    agent_end_snapshot(open_call(&a, "pods"), "1");
    assert_int_equal(r.told, 0);
    assert_int_equal(complete(&w, "pods").loading, 1);
    agent_lose(&mute);
    run(&w, 0);
    assert_int_equal(r.told, 1);
    assert_int_equal(complete(&w, "pods").missing, 2); /* neither has ever told what it has */
    hub_subscriptions_release(&r.want);
    agent_lose(&a);
    agent_lose(&old);
    world_deinit(&w);
}

static void test_want_when_readers_are_gone_then_unsubscribed_after_a_while(void **state)
{
    struct world w;
    struct agent a;
    struct reader r;

    (void)state;
    start(&w, &a, NO_PROFILES);
    assert_int_equal(read_type(&w, &r, "pods"), 0);
    r.release_at_once = true;
    run(&w, 0);
    agent_put(open_call(&a, "pods"), "a", "p1", "1");
    agent_end_snapshot(open_call(&a, "pods"), "1");
    assert_int_equal(r.told, 1);
    run(&w, 599000);
    assert_content(&w, "edge-1", "pods", "p1 ");
    assert_int_equal(read_type(&w, &r, "pods"), 0);
    run(&w, 2000);
    hub_subscriptions_release(&r.want);
    run(&w, 599000);
    assert_int_equal(open_calls(&a), 1);
    run(&w, 2000);
    assert_int_equal(open_calls(&a), 0);
    assert_null(shelf_of(&w, "edge-1", "pods"));
    assert_int_equal(hub_cache_cluster_bytes(w.w.cache, KR_LIT("edge-1")), 0);
    agent_lose(&a);
    world_deinit(&w);
}

static void test_want_when_secrets_or_events_then_denied_unless_named(void **state)
{
    struct world w;
    struct agent a;
    struct reader r;

    (void)state;
    start(&w, &a, "profiles: [{name: all, resources: ['*']}]\n");
    assert_int_equal(read_type(&w, &r, "secrets"), KR_EDENIED);
    assert_int_equal(read_type(&w, &r, "events"), KR_EDENIED);
    assert_int_equal(read_type(&w, &r, "nodes"), 0);
    hub_subscriptions_release(&r.want);
    use_file(&w, "profiles: [{name: e, resources: [events], clusters: [edge-1]}]\nonDemand: false");
    assert_int_equal(read_type(&w, &r, "secrets"), KR_EDENIED);
    assert_int_equal(read_type(&w, &r, "nodes"), KR_EDENIED);
    assert_int_equal(read_type(&w, &r, "events"), 0);
    run(&w, 0);
    assert_non_null(open_call(&a, "events"));
    assert_null(open_call(&a, "nodes"));
    hub_subscriptions_release(&r.want);
    agent_lose(&a);
    world_deinit(&w);
}

static void test_profile_when_always_then_on_its_clusters_only(void **state)
{
    struct world w;
    struct agent a;
    struct agent b;
    struct reader r;

    (void)state;
    start(&w, &a, "profiles: [{name: p, resources: [pods], clusters: [edge-1], always: true}]\n");
    agent_join(&b, &w, "edge-2", true);
    agent_catalog(&b, types);
    run(&w, 0);
    assert_int_equal(open_calls(&a), 1);
    assert_int_equal(open_calls(&b), 0);
    assert_int_equal(read_type(&w, &r, "pods"), 0);
    run(&w, 0);
    assert_int_equal(open_calls(&b), 1); /* by the default profile, as long as somebody reads */
    hub_subscriptions_release(&r.want);
    run(&w, 700000);
    assert_int_equal(open_calls(&a), 1);
    assert_int_equal(open_calls(&b), 0);
    agent_lose(&a);
    agent_lose(&b);
    world_deinit(&w);
}

static void test_reload_when_profile_differs_then_starts_again_and_else_not(void **state)
{
    struct world w;
    struct agent a;
    uint64_t id;

    (void)state;
    start(&w, &a, "profiles: [{name: p, resources: [pods], always: true}]\n");
    agent_put(open_call(&a, "pods"), "a", "p1", "1");
    agent_end_snapshot(open_call(&a, "pods"), "1");
    id = open_call(&a, "pods")->id;
    use_file(&w, "profiles: [{name: other, resources: [pods], always: true}]\n");
    assert_int_equal(open_call(&a, "pods")->id, id);
    use_file(&w, "profiles: [{name: p, resources: [pods], namespaces: [a], always: true}]\n");
    assert_int_not_equal(open_call(&a, "pods")->id, id);
    assert_string_equal(open_call(&a, "pods")->namespaces, "a");
    assert_true(open_call(&a, "pods")->holds);
    assert_content(&w, "edge-1", "pods", "p1 ");
    use_file(&w, "profiles: [{name: p, resources: [nodes], always: true}]\n");
    run(&w, 0);
    assert_null(open_call(&a, "pods"));
    assert_non_null(open_call(&a, "nodes"));
    assert_null(shelf_of(&w, "edge-1", "pods"));
    agent_lose(&a);
    world_deinit(&w);
}

/* What another profile selects need not have changed since that version: an agent that went on from
 * there would leave it out. */
static void test_reload_when_profile_differs_then_no_version_was_reached(void **state)
{
    struct world w;
    struct agent a;

    (void)state;
    start(&w, &a, "profiles: [{name: p, resources: [pods], labelSelector: a=b, always: true}]\n");
    agent_put(open_call(&a, "pods"), "a", "p1", "7");
    agent_end_snapshot(open_call(&a, "pods"), "7");
    agent_lose(&a);
    agent_join(&a, &w, "edge-1", true);
    agent_catalog(&a, types);
    assert_string_equal(open_call(&a, "pods")->version, "7");
    use_file(&w, "profiles: [{name: p, resources: [pods], always: true}]\n");
    assert_true(open_call(&a, "pods")->holds);
    assert_string_equal(open_call(&a, "pods")->version, "");
    agent_lose(&a);
    world_deinit(&w);
}

static void test_remove_when_cluster_leaves_for_good_then_events_and_nothing_left(void **state)
{
    struct world w;
    struct agent a;
    struct hub_place place;
    struct hub_event *event;

    (void)state;
    start(&w, &a, "profiles: [{name: p, resources: [pods], always: true}]\n");
    agent_put(open_call(&a, "pods"), "a", "p1", "1");
    agent_end_snapshot(open_call(&a, "pods"), "1");
    agent_lose(&a);
    assert_int_equal(complete(&w, "pods").stale, 1);
    hub_place_at_end(type_of(&w, "pods"), &place);
    hub_subscriptions_remove_cluster(w.w.subscriptions, "edge-1");
    run(&w, 0);
    assert_int_equal(hub_place_next(&place, &event), 1);
    assert_int_equal(event->change, HUB_DELETED);
    assert_int_equal(complete(&w, "pods").clusters, 0);
    assert_false(hub_catalogs_has(w.w.catalogs, "edge-1"));
    hub_subscriptions_remove_cluster(w.w.subscriptions, "nobody");
    agent_join(&a, &w, "edge-1", true); /* it may come again */
    agent_catalog(&a, types);
    run(&w, 0);
    assert_false(open_call(&a, "pods")->holds);
    agent_lose(&a);
    world_deinit(&w);
}

static void test_completeness_when_agent_is_away_then_stale(void **state)
{
    struct world w;
    struct agent a;
    struct hub_completeness c;

    (void)state;
    start(&w, &a, "profiles: [{name: p, resources: [pods], always: true}]\n");
    agent_end_snapshot(open_call(&a, "pods"), "1");
    c = complete(&w, "pods");
    assert_int_equal(c.clusters, 1);
    assert_int_equal(c.stale + c.loading + c.failing, 0);
    assert_string_equal(c.names, "");
    agent_lose(&a);
    c = complete(&w, "pods");
    assert_int_equal(c.stale, 1);
    assert_string_equal(c.names, "edge-1");
    c = complete(&w, "configmaps"); /* nobody serves it */
    assert_int_equal(c.clusters, 0);
    world_deinit(&w);
}

static int sees_all_but_edge_8(const void *sight, const struct hub_shelf *shelf)
{
    (void)sight;
    return strcmp(shelf->cluster, "edge-8") != 0;
}

static void test_expect_when_it_has_not_dialled_then_missing_for_who_may_see_it(void **state)
{
    const struct hub_sight sight = {.cluster = sees_all_but_edge_8};
    struct world w;
    struct agent a;
    struct agent late;
    struct reader r;
    struct hub_completeness c;

    (void)state;
    start(&w, &a, NO_PROFILES);
    assert_int_equal(hub_subscriptions_expect(w.w.subscriptions, "edge-1"), 0);
    assert_int_equal(hub_subscriptions_expect(w.w.subscriptions, "edge-8"), 0);
    assert_int_equal(hub_subscriptions_expect(w.w.subscriptions, "edge-9"), 0);
    assert_int_equal(read_type(&w, &r, "pods"), 0);
    run(&w, 0);
    agent_end_snapshot(open_call(&a, "pods"), "1");
    assert_int_equal(r.told, 1); /* nobody waits for them */
    c = complete(&w, "pods");
    assert_int_equal(c.clusters, 3);
    assert_int_equal(c.missing, 2);
    assert_string_equal(c.names, "edge-8, edge-9");
    hub_subscriptions_untold(w.w.subscriptions, &sight, &c);
    assert_int_equal(c.clusters, 2);
    assert_int_equal(c.missing, 1);
    assert_string_equal(c.names, "edge-9");
    agent_join(&late, &w, "edge-9", true);
    agent_catalog(&late, types);
    agent_end_snapshot(open_call(&late, "pods"), "1");
    assert_string_equal(complete(&w, "pods").names, "edge-8");
    assert_true(hub_subscriptions_remove_cluster(w.w.subscriptions, "edge-8"));
    assert_int_equal(complete(&w, "pods").missing, 0);
    assert_false(hub_subscriptions_remove_cluster(w.w.subscriptions, "edge-8"));
    hub_subscriptions_release(&r.want);
    agent_lose(&late);
    agent_lose(&a);
    world_deinit(&w);
}

static void test_completeness_when_many_are_missing_then_some_names(void **state)
{
    struct world w;
    struct hub_completeness c;
    char name[64];

    (void)state;
    world_init(&w, NO_PROFILES, 1u << 20);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "edge-%058d", i);
        assert_int_equal(hub_subscriptions_expect(w.w.subscriptions, name), 0);
    }
    c = complete(&w, "pods");
    assert_int_equal(c.missing, 100);
    assert_int_equal(c.named, 2);
    assert_int_equal(strlen(c.names), 2 * 63 + 2);
    world_deinit(&w);
}

static void test_catalog_when_garbage_comes_then_what_was_told_stays(void **state)
{
    static const char *const more[] = {"pods", "configmaps", NULL};
    struct world w;
    struct agent a;
    uint64_t generation;

    (void)state;
    start(&w, &a, NO_PROFILES);
    generation = hub_catalogs_generation(w.w.catalogs);
    run(&w, 1500);
    agent_catalog(&a, more);
    assert_true(hub_catalogs_generation(w.w.catalogs) > generation);
    assert_int_equal(kr_grpc_send(&open_call(&a, NULL)->s, KR_LIT("\xff")), 0);
    run(&w, 100);
    assert_null(open_call(&a, NULL));
    assert_non_null(hub_catalog_find(w.w.catalogs, "edge-1", KR_LIT(""), KR_LIT("v1"),
                                     KR_LIT("configmaps"))); /* what was told stays */
    run(&w, 3000);
    assert_non_null(open_call(&a, NULL)); /* asked again */
    agent_lose(&a);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_want_when_type_is_read_then_subscribed_and_told_once_synced),
        cmocka_unit_test(test_want_when_a_cluster_cannot_then_its_word_is_enough),
        cmocka_unit_test(test_want_when_nothing_comes_then_told_at_the_deadline),
        cmocka_unit_test(test_want_when_cluster_leaves_or_is_silent_then_who_is_waited_for),
        cmocka_unit_test(test_want_when_readers_are_gone_then_unsubscribed_after_a_while),
        cmocka_unit_test(test_want_when_secrets_or_events_then_denied_unless_named),
        cmocka_unit_test(test_profile_when_always_then_on_its_clusters_only),
        cmocka_unit_test(test_reload_when_profile_differs_then_starts_again_and_else_not),
        cmocka_unit_test(test_reload_when_profile_differs_then_no_version_was_reached),
        cmocka_unit_test(test_remove_when_cluster_leaves_for_good_then_events_and_nothing_left),
        cmocka_unit_test(test_completeness_when_agent_is_away_then_stale),
        cmocka_unit_test(test_expect_when_it_has_not_dialled_then_missing_for_who_may_see_it),
        cmocka_unit_test(test_completeness_when_many_are_missing_then_some_names),
        cmocka_unit_test(test_catalog_when_garbage_comes_then_what_was_told_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
