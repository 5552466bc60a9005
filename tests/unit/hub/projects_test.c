/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/projects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

static const char file[] = "clusters:\n"
                           "  c1: {region: eu}\n"
                           "  c2: {region: us}\n"
                           "projects:\n"
                           "- name: shop\n"
                           "  members: {users: [alice], groups: [dev]}\n"
                           "  clusters: [c1]\n"
                           "  rules:\n"
                           "  - namespaces: [a, b]\n"
                           "    resources: [pods, pods/log, deployments.apps, services/*]\n"
                           "    verbs: [get, list]\n"
                           "  - resources: ['*']\n"
                           "    verbs: [watch]\n"
                           "  - namespaces: [a]\n"
                           "    resources: [pods/exec]\n"
                           "    verbs: [connect]\n"
                           "- name: all\n"
                           "  members: {users: [root], memberTokens: true}\n"
                           "  clusterSelector: region=us\n"
                           "  rules:\n"
                           "  - resources: ['*']\n"
                           "    verbs: ['*']\n"
                           "  - nonResourcePaths: [/metrics, /logs*]\n"
                           "    verbs: [get]\n";

static struct hub_fleet_config *load(const char *text)
{
    struct hub_fleet_config *f;
    struct kr_note why = {""};

    if (hub_fleet_config_parse(&f, "fleet.yaml", kr_bytes_str(text), &why) != 0)
        fail_msg("%s", why.text);
    return f;
}

struct ask {
    const char *user;
    const char *group;
    const char *cluster;
    const char *method;
    const char *path;
    const char *rule; /* NULL: denied; "-": denied, and the cluster is nothing to them */
};

static void decide(const struct hub_fleet_config *f, const struct ask *a, struct hub_decision *out)
{
    struct kr_bytes group = kr_bytes_str(a->group);
    struct kr_request_info info;
    struct kr_arena arena;
    struct hub_question q = {
        .who = {kr_bytes_str(a->user), &group, a->group[0] != '\0', false},
        .member_token = strcmp(a->user, "TOKEN") == 0,
        .cluster = kr_bytes_str(a->cluster),
        .info = &info,
    };

    kr_arena_init(&arena, 1024, 65536);
    assert_int_equal(
        kr_request_info_parse(&info, kr_bytes_str(a->method), kr_bytes_str(a->path), &arena, NULL),
        0);
    hub_projects_decide(f, &q, out);
    kr_arena_deinit(&arena);
}

#define A "/api/v1/namespaces/a"
#define ROWS(X)                                                                                    \
    X("alice", "", "c1", "GET", A "/pods", "shop/rules[0]")                                        \
    X("alice", "", "c1", "GET", A "/pods/p", "shop/rules[0]")                                      \
    X("alice", "", "c1", "HEAD", A "/pods/p", "shop/rules[0]")                                     \
    X("alice", "", "c1", "GET", A "/pods/p/log", "shop/rules[0]")                                  \
    X("alice", "", "c1", "GET", A "/pods/p/status", NULL)                                          \
    X("alice", "", "c1", "GET", A "/services/s/status", "shop/rules[0]")                           \
    X("alice", "", "c1", "GET", A "/services/s", NULL)                                             \
    X("alice", "", "c1", "GET", A "/services/s/proxy/", NULL)                                      \
    X("alice", "", "c1", "GET", "/api/v1/namespaces/z/pods", NULL)                                 \
    X("alice", "", "c1", "GET", "/api/v1/pods", NULL)                                              \
    X("alice", "", "c1", "GET", "/api/v1/pods?watch=1", "shop/rules[1]")                           \
    X("alice", "", "c1", "GET", "/api/v1/watch/pods", "shop/rules[1]")                             \
    X("alice", "", "c1", "GET", "/api/v1/secrets?watch=1", NULL)                                   \
    X("alice", "", "c1", "GET", "/apis/apps/v1/namespaces/b/deployments", "shop/rules[0]")         \
    X("alice", "", "c1", "GET", "/apis/x.io/v1/namespaces/b/deployments", NULL)                    \
    X("alice", "", "c1", "GET", A "/pods/p/exec?command=id", "shop/rules[2]")                      \
    X("alice", "", "c1", "POST", A "/pods/p/exec?command=id", "shop/rules[2]")                     \
    X("alice", "", "c1", "POST", A "/pods/p/attach", NULL)                                         \
    X("alice", "", "c1", "POST", "/api/v1/namespaces/b/pods/p/exec", NULL)                         \
    X("alice", "", "c1", "GET", "/api/v1/proxy/namespaces/a/pods/p", NULL)                         \
    X("alice", "", "c1", "DELETE", A "/pods", NULL)                                                \
    X("alice", "", "c2", "GET", A "/pods", "-")                                                    \
    X("alice", "", "c3", "GET", "/version", "-")                                                   \
    X("alice", "", "c1", "GET", "/version", "shop/discovery")                                      \
    X("alice", "", "c1", "GET", "/apis", "shop/discovery")                                         \
    X("alice", "", "c1", "GET", "/openapi/v3", "shop/discovery")                                   \
    X("alice", "", "c1", "POST", "/version", NULL)                                                 \
    X("alice", "", "c1", "GET", "/metrics", NULL)                                                  \
    X("alice", "", "c1", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",         \
      "shop/self-review")                                                                          \
    X("alice", "", "c1", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", NULL)       \
    X("bob", "dev", "c1", "GET", A "/pods", "shop/rules[0]")                                       \
    X("bob", "devs", "c1", "GET", A "/pods", "-")                                                  \
    X("dev", "", "c1", "GET", A "/pods", "-")                                                      \
    X("root", "", "c2", "DELETE", "/api/v1/nodes", "all/rules[0]")                                 \
    X("root", "", "c2", "GET", "/api/v1/secrets", NULL)                                            \
    X("root", "", "c2", "POST", A "/serviceaccounts/s/token", NULL)                                \
    X("root", "", "c2", "POST", A "/pods/p/exec", NULL)                                            \
    X("root", "", "c2", "GET", "/api/v1/nodes/n/proxy/pods", NULL)                                 \
    X("root", "", "c2", "GET", "/metrics", "all/rules[1]")                                         \
    X("root", "", "c2", "GET", "/metrics/x", NULL)                                                 \
    X("root", "", "c2", "GET", "/logs/kubelet", "all/rules[1]")                                    \
    X("root", "", "c1", "GET", "/version", "-")                                                    \
    X("TOKEN", "", "c2", "GET", A "/pods", "all/rules[0]")                                         \
    X("TOKEN", "", "c1", "GET", A "/pods", "-")

static void test_decide_when_asked_then_as_the_rules_say(void **state)
{
    static const struct ask rows[] = {
#define X(...) {__VA_ARGS__},
        ROWS(X)
#undef X
    };
    struct hub_fleet_config *f = load(file);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct ask *a = &rows[i];
        bool nothing = a->rule != NULL && strcmp(a->rule, "-") == 0;
        bool allowed = a->rule != NULL && !nothing;
        struct hub_decision d;

        decide(f, a, &d);
        if (d.allowed != allowed || d.sees_cluster == nothing ||
            (allowed && strcmp(d.rule, a->rule) != 0))
            fail_msg("%s %s %s on %s: %d \"%s\"", a->user, a->method, a->path, a->cluster,
                     d.allowed, d.rule);
    }
    hub_fleet_config_destroy(f);
}

static void test_parse_when_faulty_then_says_where(void **state)
{
    static const char *const texts[] = {
        "projects: {}",
        "projects: [{name: x}]",
        "projects: [{name: X, members: {users: [a]}, clusters: [c], rules: [{resources: [p], "
        "verbs: [get]}]}]",
        "projects: [{name: x, members: {}, clusters: [c], rules: [{resources: [p], verbs: "
        "[get]}]}]",
        "projects: [{name: x, members: {users: ['system:x']}, clusters: [c], rules: [{resources: "
        "[p], verbs: [get]}]}]",
        "projects: [{name: x, members: {groups: ['*']}, clusters: [c], rules: [{resources: [p], "
        "verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, rules: [{resources: [p], verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], clusterSelector: a=b, rules: "
        "[{resources: [p], verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: []}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{resources: [p]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{resources: [P], "
        "verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{resources: [pods/], "
        "verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{resources: [/exec], "
        "verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{resources: ['p*'], "
        "verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{resources: [p], "
        "verbs: [GET]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{nonResourcePaths: "
        "[x], verbs: [get]}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{resources: [p], "
        "verbs: [get], other: 1}]}]",
        "projects: [{name: x, members: {users: [a]}, clusters: [c], rules: [{resources: [p], "
        "verbs: [get]}]},\n"
        " {name: x, members: {users: [a]}, clusters: [c], rules: [{resources: [p], verbs: "
        "[get]}]}]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct hub_fleet_config *f = NULL;
        struct kr_note why = {""};

        if (hub_fleet_config_parse(&f, "f.yaml", kr_bytes_str(texts[i]), &why) != KR_EINVAL)
            fail_msg("taken: %s", texts[i]);
        assert_null(f);
        assert_non_null(strstr(why.text, "f.yaml:"));
    }
}

/* What list and watch show in the fleet view is what the rules of projects say. */
static void test_sight_when_projects_list_then_the_same(void **state)
{
    struct hub_fleet_config *f = load(file);
    struct hub_reader alice = {.user = KR_LIT("alice")};
    struct hub_reader_sight *s;
    bool nothing;

    (void)state;
    s = hub_fleet_sight(f, &alice, KR_LIT(""), KR_LIT("pods"), &nothing);
    assert_non_null(s);
    hub_reader_sight_destroy(s);
    s = hub_fleet_sight(f, &alice, KR_LIT(""), KR_LIT("nodes"), &nothing);
    assert_true(s == NULL && nothing); /* only watch */
    alice.watches = true;
    s = hub_fleet_sight(f, &alice, KR_LIT(""), KR_LIT("nodes"), &nothing);
    assert_non_null(s);
    hub_reader_sight_destroy(s);
    s = hub_fleet_sight(f, &alice, KR_LIT(""), KR_LIT("secrets"), &nothing);
    assert_true(s == NULL && nothing);
    hub_fleet_config_destroy(f);
}

static void test_explain_when_asked_then_each_rule_says_why_not(void **state)
{
    struct hub_fleet_config *f = load(file);
    static const enum hub_fit want[] = {HUB_FIT_NAMESPACE, HUB_FIT_VERB, HUB_FIT_RESOURCE,
                                        HUB_FIT_MEMBER, HUB_FIT_MEMBER};
    struct kr_request_info info;
    struct kr_arena arena;
    struct hub_question q = {
        .who = {.user = KR_LIT("alice")}, .cluster = KR_LIT("c1"), .info = &info};
    char rule[HUB_RULE_MAX];
    enum hub_fit fit;
    size_t i = 0;

    (void)state;
    kr_arena_init(&arena, 1024, 65536);
    kr_request_info_parse(&info, KR_LIT("GET"), KR_LIT("/api/v1/namespaces/z/pods"), &arena, NULL);
    for (; hub_projects_try(f, &q, i, rule, &fit); i++)
        assert_int_equal(fit, want[i]);
    assert_int_equal(i, 5);
    q.cluster = KR_LIT("c2");
    assert_true(hub_projects_try(f, &q, 0, rule, &fit));
    assert_int_equal(fit, HUB_FIT_CLUSTER);
    assert_string_equal(rule, "shop/rules[0]");
    kr_arena_deinit(&arena);
    hub_fleet_config_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decide_when_asked_then_as_the_rules_say),
        cmocka_unit_test(test_parse_when_faulty_then_says_where),
        cmocka_unit_test(test_sight_when_projects_list_then_the_same),
        cmocka_unit_test(test_explain_when_asked_then_each_rule_says_why_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
