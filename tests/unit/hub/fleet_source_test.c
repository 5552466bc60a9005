/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_source.h"

#include "hub/projects.h"
#include "sync_world.h"

#define PODS "profiles: [{name: p, resources: [pods], always: true}]\n"
#define PROJECT                                                                                    \
    "projects: [{name: p, members: {users: [u]}, clusters: ['*'], "                                \
    "rules: [{resources: ['*'], verbs: ['*']}]}]\n"
#define NODES "profiles: [{name: n, resources: [nodes], always: true}]\n"

static const char *const types[] = {"pods", "nodes", NULL};

/* A world whose configuration comes from its file as it does in a hub. */
static struct hub_fleet_source *start(struct world *w, const char *text)
{
    struct kr_note why = {""};
    struct hub_fleet_config *old;
    struct hub_fleet_source *s;

    world_init(w, text, 64u << 20);
    old = w->w.fleet_config;
    w->options.fleet_file = w->file;
    s = hub_fleet_source_create(&w->w, &why);
    assert_non_null(s);
    hub_subscriptions_reload(w->w.subscriptions, w->w.fleet_config);
    hub_fleet_config_destroy(old);
    return s;
}

static void test_source_when_file_changes_then_read_within_two_seconds(void **state)
{
    struct world w;
    struct agent a;
    struct hub_fleet_source *s = start(&w, PODS);

    (void)state;
    agent_join(&a, &w, "edge-1", true);
    agent_catalog(&a, types);
    run(&w, 5000);
    assert_non_null(open_call(&a, "pods"));
    assert_null(open_call(&a, "nodes"));
    write_fleet_file(&w, NODES);
    run(&w, 2000);
    assert_null(open_call(&a, "pods"));
    assert_non_null(open_call(&a, "nodes"));
    agent_lose(&a);
    hub_subscriptions_destroy(w.w.subscriptions);
    w.w.subscriptions = NULL;
    hub_fleet_source_destroy(s);
    world_deinit(&w);
}

static void test_source_when_file_is_bad_or_gone_then_the_old_one_stays(void **state)
{
    struct world w;
    struct hub_fleet_source *s = start(&w, PODS);
    const struct hub_fleet_config *before = w.w.fleet_config;

    (void)state;
    write_fleet_file(&w, "profiles: nonsense of another length\n");
    run(&w, 3000);
    assert_ptr_equal(w.w.fleet_config, before);
    assert_int_equal(remove(w.file), 0);
    run(&w, 3000);
    assert_ptr_equal(w.w.fleet_config, before);
    hub_fleet_source_reload(s); /* SIGHUP */
    assert_ptr_equal(w.w.fleet_config, before);
    write_fleet_file(&w, NODES);
    run(&w, 3000);
    assert_ptr_not_equal(w.w.fleet_config, before);
    assert_string_equal(hub_fleet_profile_at(w.w.fleet_config, 0)->name, "n");
    hub_subscriptions_destroy(w.w.subscriptions);
    w.w.subscriptions = NULL;
    hub_fleet_source_destroy(s);
    world_deinit(&w);
}

static void test_source_when_the_last_project_goes_then_nothing_opens(void **state)
{
    static const char *const without[] = {"", "onDemand: true\n", "projects: []\n", NODES};
    struct world w;
    struct hub_fleet_source *s = start(&w, PROJECT);
    const struct hub_fleet_config *before = w.w.fleet_config;

    (void)state;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        write_fleet_file(&w, without[i]);
        run(&w, 3000);
        assert_ptr_equal(w.w.fleet_config, before);
    }
    w.options.authorization = HUB_AUTHORIZATION_PROJECTS; /* closed without a project, too */
    hub_fleet_source_reload(s);
    assert_ptr_not_equal(w.w.fleet_config, before);
    assert_false(hub_projects_any(w.w.fleet_config));
    hub_subscriptions_destroy(w.w.subscriptions);
    w.w.subscriptions = NULL;
    hub_fleet_source_destroy(s);
    world_deinit(&w);
}

static void test_source_when_file_is_bad_at_the_start_then_refused(void **state)
{
    struct world w;
    struct kr_note why = {""};
    struct hub_fleet_config *old;

    (void)state;
    world_init(&w, PODS, 64u << 20);
    write_fleet_file(&w, "x");
    w.options.fleet_file = w.file;
    old = w.w.fleet_config;
    assert_null(hub_fleet_source_create(&w.w, &why));
    assert_non_null(strstr(why.text, "fleetFile"));
    w.w.fleet_config = old;
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_source_when_file_changes_then_read_within_two_seconds),
        cmocka_unit_test(test_source_when_file_is_bad_or_gone_then_the_old_one_stays),
        cmocka_unit_test(test_source_when_the_last_project_goes_then_nothing_opens),
        cmocka_unit_test(test_source_when_file_is_bad_at_the_start_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
