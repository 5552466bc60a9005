/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeconfig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

static char dir[] = "/tmp/kr-kubeconfig-XXXXXX";

/* Loads a kubeconfig with this server and these further lines of its cluster and user. */
static int load(struct agent_kubeconfig *k, const char *server, const char *cluster,
                const char *user, struct kr_note *why)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/config", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "current-context: c\n"
            "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: '%s', certificate-authority-data: YQ==%s}}]\n"
            "users: [{name: u, user: {token: t%s}}]\n",
            server, cluster, user);
    assert_int_equal(fclose(f), 0);
    return agent_kubeconfig_load(k, path, NULL, why);
}

static void test_servers_that_are_understood(void **state)
{
    static const struct {
        const char *server, *host, *port, *path;
    } good[] = {
        {"https://api.example", "api.example", "443", ""},
        {"https://api.example/", "api.example", "443", ""},
        {"https://api.example:", "api.example", "443", ""},
        {"https://10.0.0.1:6443/k8s/clusters/c-1/", "10.0.0.1", "6443", "/k8s/clusters/c-1"},
        {"https://[fd00::1]", "fd00::1", "443", ""},
        {"https://[fd00::1]:6443/x", "fd00::1", "6443", "/x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct agent_kubeconfig k;

        assert_int_equal(load(&k, good[i].server, "", "", NULL), 0);
        assert_string_equal(k.host, good[i].host);
        assert_string_equal(k.port, good[i].port);
        assert_string_equal(k.path, good[i].path);
        assert_string_equal(k.server_name, good[i].host);
        assert_string_equal(k.token, "t");
        agent_kubeconfig_deinit(&k);
    }
}

static void test_servers_that_are_not(void **state)
{
    static const char *const bad[] = {
        "",
        "http://api.example",
        "api.example:6443",
        "https://",
        "https:///path",
        "https://:6443",
        "https://api.example:0",
        "https://api.example:65536",
        "https://api.example:6443x",
        "https://name:password@api.example",
        "https://[fd00::1",
        "https://[fd00::1]6443",
        "https://fd00::1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct agent_kubeconfig k;
        struct kr_note why = {0};

        assert_int_equal(load(&k, bad[i], "", "", &why), KR_EINVAL);
        assert_non_null(strstr(why.text, "server"));
        agent_kubeconfig_deinit(&k);
    }
}

static void test_what_cannot_be_followed_is_refused_by_name(void **state)
{
    static const struct {
        const char *cluster, *user, *word;
    } bad[] = {
        {", proxy-url: 'http://proxy:3128'", "", "proxy-url"},
        {", insecure-skip-tls-verify: true", "", "insecure-skip-tls-verify"},
        {"", ", exec: {command: get-token}", "exec"},
        {"", ", auth-provider: {name: oidc}", "auth-provider"},
        {"", ", username: root, password: secret", "username"},
        {"", ", password: secret", "password"},
        {"", ", as: somebody", "as "},
        {"", ", as-uid: '7'", "as-uid"},
        {"", ", as-groups: [admins]", "as-groups"},
        {"", ", as-user-extra: {scopes: [view]}", "as-user-extra"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct agent_kubeconfig k;
        struct kr_note why = {0};

        assert_true(load(&k, "https://api", bad[i].cluster, bad[i].user, &why) < 0);
        assert_non_null(strstr(why.text, bad[i].word));
        assert_null(strstr(why.text, "secret"));
        agent_kubeconfig_deinit(&k);
    }
}

static void test_what_is_empty_is_not_there(void **state)
{
    struct agent_kubeconfig k;

    (void)state;
    assert_int_equal(load(&k, "https://api", ", proxy-url: '', tls-server-name: kubernetes",
                          ", exec: null, username: ''", NULL),
                     0);
    assert_string_equal(k.server_name, "kubernetes");
    agent_kubeconfig_deinit(&k);
}

static void test_a_pod_knows_its_api_server_from_its_environment(void **state)
{
    struct agent_kubeconfig k;
    char path[64];
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/ca.crt", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_int_equal(agent_kubeconfig_in_cluster(&k, dir, NULL), 0);
    assert_string_equal(k.host, "fd00::1");
    agent_kubeconfig_deinit(&k);
    setenv("KUBERNETES_SERVICE_HOST", "", 1);
    assert_int_equal(agent_kubeconfig_in_cluster(&k, dir, NULL), KR_ENOENT);
    agent_kubeconfig_deinit(&k);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int drop_folder(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/config", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/ca.crt", dir);
    unlink(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers_that_are_understood),
        cmocka_unit_test(test_servers_that_are_not),
        cmocka_unit_test(test_what_cannot_be_followed_is_refused_by_name),
        cmocka_unit_test(test_what_is_empty_is_not_there),
        cmocka_unit_test(test_a_pod_knows_its_api_server_from_its_environment),
    };

    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
