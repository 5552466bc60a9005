/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static char path[64];

static int setup(void **state)
{
    int fd;

    (void)state;
    snprintf(path, sizeof path, "/tmp/kr-fleet-XXXXXX");
    fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static int load(const char *text, struct hub_fleet_config **out, struct kr_note *why)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return hub_fleet_config_load(out, path, why);
}

static struct hub_fleet_config *good(const char *text)
{
    struct hub_fleet_config *f;
    struct kr_note why = {""};

    if (load(text, &f, &why) != 0)
        fail_msg("%s", why.text);
    return f;
}

/* What a reader sees of a namespace of a cluster, as the cache asks it. */
static bool sees(struct hub_fleet_config *f, const char *user, const char *group_of_user,
                 const char *group, const char *resource, const char *cluster, const char *ns)
{
    struct kr_bytes groups[] = {kr_bytes_str(group_of_user)};
    struct hub_reader who = {kr_bytes_str(user), groups, group_of_user != NULL ? 1 : 0};
    struct hub_shelf shelf = {0};
    bool nothing = false;
    struct hub_reader_sight *s =
        hub_fleet_sight(f, &who, kr_bytes_str(group), kr_bytes_str(resource), &nothing);
    const struct hub_sight *ops;
    int answer;

    assert_int_equal(s == NULL, nothing);
    if (s == NULL)
        return false;
    snprintf(shelf.cluster, sizeof shelf.cluster, "%s", cluster);
    ops = hub_reader_sight_ops(s);
    answer = ops->cluster(ops, &shelf);
    if (answer == 2)
        answer = ops->ns(ops, &shelf, kr_bytes_str(ns));
    hub_reader_sight_destroy(s);
    return answer != 0;
}

static const char full[] = "# a fleet\n"
                           "clusters:\n"
                           "  edge-1: {region: eu, tier: gold}\n"
                           "  edge-2: {region: us}\n"
                           "readers:\n"
                           "- users: [alice]\n"
                           "  clusters: [\"*\"]\n"
                           "  resources: [\"*\"]\n"
                           "- groups: [ops]\n"
                           "  clusterSelector: region=eu\n"
                           "  namespaces: [shop, web]\n"
                           "  resources: [pods, deployments.apps]\n"
                           "- users: [eve]\n"
                           "  clusters: [edge-2]\n"
                           "  resources: [secrets]\n"
                           "profiles:\n"
                           "- name: gold-pods\n"
                           "  resources: [pods]\n"
                           "  clusterSelector: tier=gold\n"
                           "  keep: [\"spec.containers[*].image\", status.phase]\n"
                           "  namespaces: [shop]\n"
                           "  labelSelector: app in (a, b)\n"
                           "  fieldSelector: spec.nodeName=n1\n"
                           "  priority: 3\n"
                           "- name: pods\n"
                           "  resources: [pods]\n"
                           "  always: true\n"
                           "- name: rest\n"
                           "  resources: [\"*\"]\n"
                           "  clusters: [edge-1]\n"
                           "  metadataOnly: true\n"
                           "- name: secrets\n"
                           "  resources: [secrets, leases.coordination.k8s.io]\n"
                           "  clusters: [edge-2]\n"
                           "onDemand: false\n";

static void test_sight_when_rules_match_then_what_they_say(void **state)
{
    struct hub_fleet_config *f = good(full);

    (void)state;
    assert_true(sees(f, "alice", NULL, "", "pods", "edge-1", "any"));
    assert_true(sees(f, "alice", NULL, "apps", "deployments", "unheard-of", ""));
    assert_true(sees(f, "bob", "ops", "", "pods", "edge-1", "shop"));
    assert_true(sees(f, "bob", "ops", "apps", "deployments", "edge-1", "web"));
    assert_false(sees(f, "bob", "ops", "", "pods", "edge-1", "kube-system"));
    assert_false(sees(f, "bob", "ops", "", "pods", "edge-1", "")); /* cluster-scoped */
    assert_false(sees(f, "bob", "ops", "", "pods", "edge-2", "shop"));
    assert_false(sees(f, "bob", "ops", "", "pods", "edge-3", "shop")); /* no labels */
    assert_false(sees(f, "bob", "ops", "", "deployments", "edge-1", "shop"));
    assert_false(sees(f, "bob", "ops", "apps", "pods", "edge-1", "shop"));
    hub_fleet_config_destroy(f);
}

static void test_sight_when_no_rule_matches_then_nothing(void **state)
{
    struct hub_fleet_config *f = good(full);
    struct hub_reader who = {KR_LIT("bob"), NULL, 0};
    bool nothing = false;

    (void)state;
    assert_null(hub_fleet_sight(f, &who, KR_LIT(""), KR_LIT("pods"), &nothing));
    assert_true(nothing);
    assert_false(hub_fleet_may_see_cluster(f, &who, "edge-1"));
    who.user = KR_LIT("eve");
    assert_false(hub_fleet_may_see_cluster(f, &who, "edge-1"));
    assert_true(hub_fleet_may_see_cluster(f, &who, "edge-2"));
    hub_fleet_config_destroy(f);
    f = good("");
    who.user = KR_LIT("alice");
    assert_null(hub_fleet_sight(f, &who, KR_LIT(""), KR_LIT("pods"), &nothing));
    assert_true(hub_fleet_on_demand(f));
    hub_fleet_config_destroy(f);
    assert_int_equal(hub_fleet_config_load(&f, NULL, NULL), 0);
    assert_null(hub_fleet_sight(f, &who, KR_LIT(""), KR_LIT("pods"), &nothing));
    hub_fleet_config_destroy(f);
}

static void test_sight_when_star_then_secrets_are_not_meant(void **state)
{
    struct hub_fleet_config *f = good(full);

    (void)state;
    assert_false(sees(f, "alice", NULL, "", "secrets", "edge-2", "shop"));
    assert_true(sees(f, "eve", NULL, "", "secrets", "edge-2", "shop"));
    assert_false(sees(f, "eve", NULL, "", "secrets", "edge-1", "shop"));
    assert_true(sees(f, "alice", NULL, "", "events", "edge-1", "shop"));
    assert_true(sees(f, "alice", NULL, "x.io", "secrets", "edge-1", "shop"));
    hub_fleet_config_destroy(f);
}

static void test_sight_when_users_is_star_then_everybody(void **state)
{
    struct hub_fleet_config *f =
        good("readers: [{users: ['*'], clusters: [c1], namespaces: ['*', a], resources: [pods]}]");

    (void)state;
    assert_true(sees(f, "anybody", NULL, "", "pods", "c1", "b"));
    assert_false(sees(f, "anybody", NULL, "", "pods", "c2", "b"));
    hub_fleet_config_destroy(f);
}

static void test_sight_when_configuration_goes_then_it_still_works(void **state)
{
    struct hub_fleet_config *f = good(full);
    struct hub_reader who = {KR_LIT("alice"), NULL, 0};
    struct hub_shelf shelf = {.cluster = "edge-1"};
    bool nothing;
    struct hub_reader_sight *s = hub_fleet_sight(f, &who, KR_LIT(""), KR_LIT("pods"), &nothing);

    (void)state;
    hub_fleet_config_destroy(f);
    assert_int_equal(hub_reader_sight_ops(s)->cluster(hub_reader_sight_ops(s), &shelf), 1);
    hub_reader_sight_destroy(s);
    hub_reader_sight_destroy(NULL);
}

static const char *profile_of(struct hub_fleet_config *f, const char *cluster, const char *group,
                              const char *resource)
{
    const struct hub_profile *p =
        hub_fleet_profile(f, cluster, kr_bytes_str(group), kr_bytes_str(resource));

    return p != NULL ? p->name : "none";
}

static void test_profile_when_several_fit_then_the_first(void **state)
{
    struct hub_fleet_config *f = good(full);
    const struct hub_profile *p;

    (void)state;
    assert_string_equal(profile_of(f, "edge-1", "", "pods"), "gold-pods");
    assert_string_equal(profile_of(f, "edge-2", "", "pods"), "pods");
    assert_string_equal(profile_of(f, "edge-1", "apps", "deployments"), "rest");
    assert_string_equal(profile_of(f, "edge-2", "apps", "deployments"), "none");
    p = hub_fleet_profile(f, "edge-1", KR_LIT(""), KR_LIT("pods"));
    assert_int_equal(p->priority, 3);
    assert_int_equal(p->keep.n, 2);
    assert_string_equal(p->keep.v[1], "status.phase");
    assert_int_equal(p->namespaces.n, 1);
    assert_string_equal(p->label_selector, "app in (a, b)");
    assert_string_equal(p->field_selector, "spec.nodeName=n1");
    assert_false(p->always);
    assert_true(hub_fleet_profile_at(f, 1)->always);
    assert_true(hub_fleet_profile_at(f, 2)->metadata_only);
    assert_null(hub_fleet_profile_at(f, 4));
    assert_string_equal(hub_fleet_default_profile(f)->name, "default");
    hub_fleet_config_destroy(f);
}

static void test_profile_when_star_then_secrets_leases_and_events_are_not_meant(void **state)
{
    struct hub_fleet_config *f = good(full);

    (void)state;
    assert_string_equal(profile_of(f, "edge-1", "", "secrets"), "none");
    assert_string_equal(profile_of(f, "edge-2", "", "secrets"), "secrets");
    assert_string_equal(profile_of(f, "edge-1", "", "events"), "none");
    assert_string_equal(profile_of(f, "edge-1", "events.k8s.io", "events"), "none");
    assert_string_equal(profile_of(f, "edge-2", "coordination.k8s.io", "leases"), "secrets");
    assert_true(hub_fleet_may_sync(f, KR_LIT(""), KR_LIT("secrets")));
    assert_false(hub_fleet_may_sync(f, KR_LIT(""), KR_LIT("events")));
    assert_true(hub_fleet_may_sync(f, KR_LIT("apps"), KR_LIT("deployments")));
    hub_fleet_config_destroy(f);
    f = good("profiles: []");
    assert_true(hub_fleet_may_sync(f, KR_LIT("apps"), KR_LIT("deployments")));
    assert_false(hub_fleet_may_sync(f, KR_LIT(""), KR_LIT("secrets")));
    hub_fleet_config_destroy(f);
    f = good("onDemand: false");
    assert_false(hub_fleet_may_sync(f, KR_LIT("apps"), KR_LIT("deployments")));
    hub_fleet_config_destroy(f);
}

static const struct {
    const char *text;
    const char *says; /* behind "FILE:" */
} bad[] = {
    {"a\n", "1: the file: a mapping is expected"},
    {"readers:\n", "1: readers: a list is expected"},
    {"- readers\n", "1: the file: a mapping is expected"},
    {"reader: []\n", "1: the file: unknown key \"reader\""},
    {"onDemand: true\nonDemand: true\n", "2: the file: onDemand is given twice"},
    {"onDemand: maybe\n", "1: onDemand: true or false is expected"},
    {"readers: [alice]\n", "1: readers[0]: a mapping is expected"},
    {"readers:\n- users: [a]\n  clusters: ['*']\n", "2: readers[0]: resources are missing"},
    {"readers:\n- users: [a]\n  resources: [pods]\n", "2: readers[0]: clusters are missing"},
    {"readers:\n- clusters: [a]\n  resources: [pods]\n", "2: readers[0]: users or groups are"},
    {"readers:\n- users: a\n", "2: users: a list is expected"},
    {"readers:\n- users: []\n", "2: users: the list is empty"},
    {"readers:\n- users: ['']\n", "2: users: a text is expected"},
    {"readers:\n- users: [[a]]\n", "2: users: a text is expected"},
    {"readers:\n- users: [\"a\\x01\"]\n", "2: users: "},
    {"readers:\n- groups: ['*']\n", "2: groups: \"*\" is not possible here"},
    {"readers:\n- users: [a]\n  user: [b]\n", "3: readers[0]: unknown key \"user\""},
    {"readers:\n- users: [a]\n  users: [b]\n", "3: readers[0]: users is given twice"},
    {"readers:\n- clusters: [Edge]\n", "2: clusters: \"Edge\" is not possible here"},
    {"readers:\n- resources: [pods/log]\n", "2: resources: \"pods/log\" is not possible here"},
    {"readers:\n- resources: [.apps]\n", "2: resources: "},
    {"readers:\n- {users: [a], clusters: [b], clusterSelector: x=y, resources: [pods]}\n",
     "2: readers[0]: give clusters or clusterSelector, not both"},
    {"readers:\n- {users: [a], clusterSelector: 'x in (', resources: [pods]}\n",
     "2: readers[0]: clusterSelector: "},
    {"clusters: [a]\n", "1: clusters: a mapping of names is expected"},
    {"clusters: {a: b}\n", "1: clusters: a mapping of labels is expected"},
    {"clusters: {a: {x: y}, a: {x: y}}\n", "1: clusters: a is given twice"},
    {"clusters: {A: {x: y}}\n", "1: clusters: \"A\" is not possible here"},
    {"clusters: {a: {x: y, x: z}}\n", "1: clusters: the label x is given twice"},
    {"clusters: {a: {x: [y]}}\n", "1: x: a text is expected"},
    {"clusters: {a: {'-x': y}}\n", "1: clusters: -x: "},
    {"profiles:\n- resources: [pods]\n", "2: profiles[0]: the name is missing"},
    {"profiles:\n- name: a\n", "2: profiles[0]: resources are missing"},
    {"profiles:\n- {name: a, resources: [pods]}\n- {name: a, resources: [nodes]}\n",
     "3: profiles[1]: a is there already"},
    {"profiles:\n- {name: a, resources: ['*'], always: true}\n",
     "2: profiles[0]: always needs resources by their names"},
    {"profiles:\n- {name: a, resources: [pods], metadataOnly: true, keep: [spec]}\n",
     "2: profiles[0]: metadataOnly goes with neither keep nor drop"},
    {"profiles:\n- {name: a, resources: [pods], keep: ['spec..x']}\n", "2: profiles[0]: "},
    {"profiles:\n- {name: a, resources: [pods], labelSelector: 'a,,b'}\n",
     "2: profiles[0]: labelSelector: "},
    {"profiles:\n- {name: a, resources: [nodes], fieldSelector: 'spec.nodeName=x'}\n",
     "2: profiles[0]: fieldSelector: "},
    {"profiles:\n- {name: a, resources: [pods], priority: -1}\n", "2: priority: a number"},
    {"a: [\n", "line 2"},
};

static void test_load_when_file_is_bad_then_refused_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hub_fleet_config *f;
        struct kr_note why = {""};
        char expected[160];

        snprintf(expected, sizeof expected, "%s:%s%s", path, bad[i].says[0] == 'l' ? " " : "",
                 bad[i].says);
        assert_int_not_equal(load(bad[i].text, &f, &why), 0);
        assert_null(f);
        if (strncmp(why.text, expected, strlen(expected)) != 0)
            fail_msg("%s\nsays \"%s\"\nnot  \"%s\"", bad[i].text, why.text, expected);
    }
}

static void test_load_when_there_is_no_file_then_refused(void **state)
{
    struct hub_fleet_config *f;
    struct kr_note why = {""};

    (void)state;
    assert_int_equal(hub_fleet_config_load(&f, "/nonexistent/fleet.yaml", &why), KR_ENOENT);
    assert_non_null(strstr(why.text, "/nonexistent/fleet.yaml"));
    hub_fleet_config_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sight_when_rules_match_then_what_they_say),
        cmocka_unit_test(test_sight_when_no_rule_matches_then_nothing),
        cmocka_unit_test(test_sight_when_star_then_secrets_are_not_meant),
        cmocka_unit_test(test_sight_when_users_is_star_then_everybody),
        cmocka_unit_test(test_sight_when_configuration_goes_then_it_still_works),
        cmocka_unit_test(test_profile_when_several_fit_then_the_first),
        cmocka_unit_test(test_profile_when_star_then_secrets_leases_and_events_are_not_meant),
        cmocka_unit_test(test_load_when_file_is_bad_then_refused_with_its_line),
        cmocka_unit_test(test_load_when_there_is_no_file_then_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
