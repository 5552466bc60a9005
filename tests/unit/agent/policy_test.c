/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/core.h"
#include "base/err.h"

static struct agent_policy *load(const char *text, struct kr_note *why)
{
    struct agent_policy *p = NULL;
    char path[] = "/tmp/kr-policy-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    if (agent_policy_load(&p, path, "own", why) != 0)
        p = NULL;
    unlink(path);
    return p;
}

static struct agent_policy *good(const char *text)
{
    struct kr_note why = {""};
    struct agent_policy *p = load(text, &why);

    if (p == NULL)
        fail_msg("%s", why.text);
    return p;
}

static void refused(const char *text, const char *words)
{
    struct kr_note why = {""};
    struct agent_policy *p = load(text, &why);

    assert_null(p);
    if (strstr(why.text, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, why.text);
}

static bool ask(const struct agent_policy *p, const char *method, const char *target, bool upgrade,
                const char *rule)
{
    struct kr_request_info ri;
    struct kr_arena arena;
    struct kr_note why = {""};
    struct agent_verdict v;

    kr_arena_init(&arena, 1024, 65536);
    assert_int_equal(
        kr_request_info_parse(&ri, kr_bytes_str(method), kr_bytes_str(target), &arena, &why), 0);
    agent_policy_check(p, &ri, upgrade, &v);
    if (rule != NULL)
        assert_string_equal(v.rule, rule);
    if (!v.allowed)
        assert_true(v.text[0] != '\0');
    kr_arena_deinit(&arena);
    return v.allowed;
}

static bool may(const struct agent_policy *p, const char *method, const char *target)
{
    return ask(p, method, target, false, NULL);
}

static void test_policy_without_a_file_only_reads(void **state)
{
    struct agent_policy *p = NULL;
    struct kr_note why = {""};

    (void)state;
    assert_int_equal(agent_policy_load(&p, NULL, "own", &why), 0);
    assert_true(may(p, "GET", "/api"));
    assert_true(may(p, "GET", "/version"));
    assert_true(may(p, "GET", "/api/v1/pods?watch=true"));
    assert_true(may(p, "HEAD", "/apis/apps/v1/namespaces/a/deployments/d"));
    assert_true(may(p, "GET", "/api/v1/namespaces/a/pods/p/log?follow=true"));
    assert_false(may(p, "POST", "/api/v1/namespaces/a/pods"));
    assert_false(may(p, "DELETE", "/api/v1/namespaces/a/pods/p"));
    assert_false(may(p, "PATCH", "/api/v1/namespaces/a/pods/p"));
    assert_false(may(p, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"));
    assert_false(ask(p, "GET", "/api/v1/namespaces/a/secrets", false, "closed:secrets"));
    assert_false(may(p, "GET", "/api/v1/secrets?watch=1"));
    assert_false(may(p, "GET", "/api/v1/watch/secrets"));
    assert_false(ask(p, "GET", "/api/v1/namespaces/a/pods/p/exec?command=id", true, "exec"));
    assert_false(may(p, "GET", "/api/v1/namespaces/a/pods/p/exec?command=id"));
    assert_false(may(p, "GET", "/api/v1/namespaces/a/services/s/proxy/x"));
    assert_false(may(p, "GET", "/api/v1/nodes/n/proxy/pods"));
    agent_policy_destroy(p);
}

static void test_policy_closes_its_own_namespace(void **state)
{
    struct agent_policy *p = good("mode: read-write\nexec: true\n");

    (void)state;
    assert_false(ask(p, "GET", "/api/v1/namespaces/own/pods", false, "closed:own-namespace"));
    assert_false(may(p, "DELETE", "/api/v1/namespaces/own"));
    assert_false(may(p, "PUT", "/api/v1/namespaces/own/finalize"));
    assert_false(ask(p, "GET", "/api/v1/namespaces/own/pods/p/exec?command=id", true, NULL));
    assert_true(may(p, "GET", "/api/v1/namespaces/own"));
    assert_true(may(p, "GET", "/api/v1/namespaces/other/pods"));
    agent_policy_destroy(p);
    p = good("mode: read-write\nownNamespace: mine\n");
    assert_true(may(p, "GET", "/api/v1/namespaces/own/pods"));
    assert_false(may(p, "GET", "/api/v1/namespaces/mine/pods"));
    agent_policy_destroy(p);
}

static void with_namespace(const char *dir, const char *text, const char *expected)
{
    struct agent_options options = {.service_account_dir = dir};
    struct agent_core c = {.options = &options};
    struct kr_note why = {""};
    bool changed = true;
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/namespace", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
    assert_int_equal(agent_core_load_policy(&c, &changed, &why), 0);
    assert_false(changed);
    if (expected == NULL)
        assert_null(c.policy->own_namespace);
    else
        assert_string_equal(c.policy->own_namespace, expected);
    agent_policy_destroy(c.policy);
    unlink(path);
}

static void test_policy_knows_the_namespace_of_its_pod(void **state)
{
    char dir[] = "/tmp/kr-account-XXXXXX";
    char longest[65] = "";

    (void)state;
    assert_non_null(mkdtemp(dir));
    with_namespace(dir, "kuberelay", "kuberelay"); /* as the kubelet writes it */
    with_namespace(dir, "kuberelay\n", "kuberelay");
    memset(longest, 'n', 63);
    with_namespace(dir, longest, longest);
    longest[63] = 'n';
    with_namespace(dir, longest, NULL);
    with_namespace(dir, "", NULL);
    with_namespace(dir, "No Name", NULL);
    rmdir(dir);
}

static void test_policy_that_writes_keeps_rights_and_credentials_closed(void **state)
{
    static const char *const targets[][2] = {
        {"POST", "/api/v1/namespaces/a/serviceaccounts/s/token"},
        {"POST", "/apis/authentication.k8s.io/v1/tokenreviews"},
        {"POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"},
        {"PATCH", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles/r"},
        {"PUT", "/apis/certificates.k8s.io/v1/certificatesigningrequests/c/approval"},
        {"POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests"},
        {"POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"},
        {"DELETE", "/apis/apiregistration.k8s.io/v1/apiservices/v1.x"},
        {"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"},
        {"GET", "/api/v1/namespaces/a/secrets/s"},
        {"DELETE", "/api/v1/namespaces/a/secrets"},
    };
    struct agent_policy *p = good("mode: read-write\n");

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        assert_false(may(p, targets[i][0], targets[i][1]));
    assert_true(may(p, "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"));
    assert_true(may(p, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"));
    assert_true(may(p, "POST", "/api/v1/namespaces/a/pods"));
    assert_true(may(p, "POST", "/api/v1/namespaces/a/pods/p/eviction"));
    assert_false(ask(p, "PATCH", "/api/v1/namespaces/a/pods/p/ephemeralcontainers", false, "exec"));
    agent_policy_destroy(p);
    p = good("mode: read-write\nopen: [secrets, own-namespace]\n");
    assert_true(may(p, "GET", "/api/v1/namespaces/a/secrets/s"));
    assert_true(may(p, "GET", "/api/v1/namespaces/own/pods"));
    assert_false(may(p, "POST", "/api/v1/namespaces/a/serviceaccounts/s/token"));
    agent_policy_destroy(p);
}

static void test_policy_rules_allow_what_they_name(void **state)
{
    struct agent_policy *p = good("mode: read-write\n"
                                  "exec: true\n"
                                  "rules:\n"
                                  "- namespaces: [shop]\n"
                                  "  resources: [pods, pods/log, deployments.apps]\n"
                                  "  verbs: [get, list, watch, patch]\n"
                                  "- resources: [nodes]\n"
                                  "  verbs: [get]\n"
                                  "- namespaces: [shop]\n"
                                  "  resources: [pods/exec]\n"
                                  "  verbs: [connect]\n");

    (void)state;
    assert_true(ask(p, "GET", "/api/v1/namespaces/shop/pods", false, "rules[0]"));
    assert_true(may(p, "GET", "/api/v1/namespaces/shop/pods/p/log"));
    assert_true(may(p, "PATCH", "/apis/apps/v1/namespaces/shop/deployments/d"));
    assert_false(may(p, "PATCH", "/apis/apps/v1/namespaces/shop/deployments/d/scale"));
    assert_false(may(p, "DELETE", "/api/v1/namespaces/shop/pods/p"));
    assert_false(may(p, "GET", "/api/v1/namespaces/else/pods"));
    assert_false(may(p, "GET", "/api/v1/pods"));
    assert_true(ask(p, "GET", "/api/v1/nodes/n", false, "rules[1]"));
    assert_false(may(p, "GET", "/api/v1/nodes"));
    assert_true(ask(p, "GET", "/api/v1/namespaces/shop/pods/p/exec?command=id", true, "rules[2]"));
    assert_true(ask(p, "POST", "/api/v1/namespaces/shop/pods/p/exec?command=id", true, "rules[2]"));
    assert_false(ask(p, "GET", "/api/v1/namespaces/shop/pods/p/attach", true, NULL));
    assert_true(may(p, "GET", "/apis"));
    agent_policy_destroy(p);
}

static void test_policy_star_does_not_open_what_is_closed(void **state)
{
    struct agent_policy *p = good("mode: read-write\n"
                                  "rules:\n"
                                  "- {namespaces: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}\n");

    (void)state;
    assert_false(may(p, "GET", "/api/v1/namespaces/a/secrets/s"));
    assert_false(ask(p, "GET", "/api/v1/namespaces/a/pods/p/exec?command=id", true, "exec"));
    assert_true(may(p, "GET", "/api/v1/pods"));
    agent_policy_destroy(p);
}

static void test_policy_off_lets_nothing_through(void **state)
{
    struct agent_policy *p = good("mode: \"off\"\n");

    (void)state;
    assert_false(may(p, "GET", "/version"));
    assert_false(may(p, "GET", "/api/v1/pods"));
    agent_policy_destroy(p);
}

static void test_policy_of_syncing_is_that_of_reading_everywhere(void **state)
{
    struct agent_policy *p = good("rules:\n"
                                  "- {namespaces: [a], resources: [pods], verbs: [list, watch]}\n"
                                  "- {resources: [nodes, secrets], verbs: [list, watch]}\n"
                                  "- {resources: [services], verbs: [list]}\n");
    struct agent_verdict v;

    (void)state;
    agent_policy_check_sync(p, KR_LIT(""), KR_LIT("nodes"), &v);
    assert_true(v.allowed);
    agent_policy_check_sync(p, KR_LIT(""), KR_LIT("pods"), &v);
    assert_false(v.allowed);
    agent_policy_check_sync(p, KR_LIT(""), KR_LIT("services"), &v);
    assert_false(v.allowed);
    agent_policy_check_sync(p, KR_LIT(""), KR_LIT("secrets"), &v);
    assert_false(v.allowed);
    agent_policy_destroy(p);
}

static void test_policy_maps_groups_but_never_to_those_of_the_system(void **state)
{
    struct agent_policy *p = good("groups: {ops: edge-operators}\n");
    bool mapped;

    (void)state;
    assert_true(kr_bytes_is(agent_policy_group(p, KR_LIT("ops"), &mapped), "edge-operators"));
    assert_true(mapped);
    assert_true(kr_bytes_is(agent_policy_group(p, KR_LIT("dev"), &mapped), "dev"));
    assert_false(mapped);
    agent_policy_destroy(p);
    refused("", "empty"); /* cut short while it was written */
    refused("# mode: off\n", "empty");
    agent_policy_destroy(good("{}"));
    refused("groups: {ops: \"system:masters\"}\n", "not possible here");
}

static void test_policy_file_with_a_fault_says_where(void **state)
{
    (void)state;
    refused("mode: sometimes\n", "read-only, read-write or off");
    refused("mode: off\n\nnope: 1\n", ":3: policy: unknown key \"nope\"");
    refused("exec: true\nexec: true\n", "given twice");
    refused("open: [\"*\"]\n", "not possible here");
    refused("open: [everything]\n", "not possible here");
    refused("rules: []\n", "rules: 1 to");
    refused("rules:\n- {resources: [pods]}\n", "resources and verbs are needed");
    refused("rules:\n- {namespaces: [A_b], resources: [pods], verbs: [get]}\n", ":2:");
    refused("identity: verified\n", "needs verified.issuer");
    refused("- a\n", "a mapping is expected");
    refused("limits: {requests: many}\n", "a number from 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_without_a_file_only_reads),
        cmocka_unit_test(test_policy_closes_its_own_namespace),
        cmocka_unit_test(test_policy_knows_the_namespace_of_its_pod),
        cmocka_unit_test(test_policy_that_writes_keeps_rights_and_credentials_closed),
        cmocka_unit_test(test_policy_rules_allow_what_they_name),
        cmocka_unit_test(test_policy_star_does_not_open_what_is_closed),
        cmocka_unit_test(test_policy_off_lets_nothing_through),
        cmocka_unit_test(test_policy_of_syncing_is_that_of_reading_everywhere),
        cmocka_unit_test(test_policy_maps_groups_but_never_to_those_of_the_system),
        cmocka_unit_test(test_policy_file_with_a_fault_says_where),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
