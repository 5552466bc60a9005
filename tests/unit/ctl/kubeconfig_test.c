/* SPDX-License-Identifier: Apache-2.0 */
/* What `kuberelayctl kubeconfig` writes, as text and, where kubectl is installed, as kubectl reads
 * it. */
#include "ctl/ctl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX 65536

static int run(const char *line, char **out)
{
    char *text = strdup(line);
    char *argv[32] = {(char *)"kuberelayctl"};
    size_t n;
    FILE *f = open_memstream(out, &n);
    int argc = 1;
    int rc;

    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    rc = ctl_run(argc, argv, f, stderr);
    fclose(f);
    free(text);
    return rc;
}

static void must(const char *line)
{
    char *out;

    assert_int_equal(run(line, &out), 0);
    free(out);
}

static int enter_dir_with_pki(void **state)
{
    char name[] = "/tmp/kr_kubeconfig_XXXXXX";

    if (mkdtemp(name) == NULL || chdir(name) != 0)
        return -1;
    *state = strdup(name);
    must("ca init --dir pki --trust-domain fleet.test");
    must("ca issue user --dir pki --name a\"b\\c --out odd");
    must("ca issue user --dir pki --name alice");
    return *state != NULL ? 0 : -1;
}

static int leave_dir(void **state)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    free(*state);
    return chdir("/") == 0 ? system(command) : -1;
}

/* The output of a shell command. */
static void shell(const char *command, char out[TEXT_MAX])
{
    FILE *f = popen(command, "r");
    size_t n = fread(out, 1, TEXT_MAX - 1, f);

    out[n] = 0;
    assert_int_equal(pclose(f), 0);
}

static void test_kubeconfig_when_files_then_exact_text(void **state)
{
    char expected[2000];
    char *out;

    snprintf(
        expected, sizeof expected,
        "apiVersion: v1\nkind: Config\nclusters:\n"
        "- name: \"edge-1\"\n  cluster:\n    server: \"https://hub.test:6443/clusters/edge-1\"\n"
        "    certificate-authority: \"%s/pki/ca.crt\"\n"
        "- name: \"edge-2\"\n  cluster:\n    server: \"https://hub.test:6443/clusters/edge-2\"\n"
        "    certificate-authority: \"%s/pki/ca.crt\"\n"
        "contexts:\n"
        "- name: \"edge-1\"\n  context:\n    cluster: \"edge-1\"\n    user: \"a\\\"b\\\\c\"\n"
        "- name: \"edge-2\"\n  context:\n    cluster: \"edge-2\"\n    user: \"a\\\"b\\\\c\"\n"
        "current-context: \"edge-1\"\n"
        "users:\n- name: \"a\\\"b\\\\c\"\n  user:\n"
        "    client-certificate: \"%s/odd.crt\"\n    client-key: \"%s/odd.key\"\n",
        (char *)*state, (char *)*state, (char *)*state, (char *)*state);
    assert_int_equal(run("kubeconfig --files --server https://hub.test:6443/ --ca pki/ca.crt "
                         "--cert odd.crt --key odd.key --cluster edge-1 --cluster edge-2",
                         &out),
                     0);
    assert_string_equal(out, expected);
    free(out);
}

static void test_kubeconfig_when_out_then_private_and_not_overwritten(void **state)
{
    const char *line = "kubeconfig --server https://[::1]:6443 --ca pki/ca.crt --cert "
                       "pki/user-alice.crt --key pki/user-alice.key --cluster e --out kc";
    struct stat st;
    char *out;

    (void)state;
    assert_int_equal(run(line, &out), 0);
    assert_string_equal(out, "kc\n");
    free(out);
    assert_int_equal(stat("kc", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(run(line, &out), 1);
    free(out);
}

static void test_kubeconfig_when_kubectl_reads_it_then_data_is_the_files(void **state)
{
    static char got[TEXT_MAX];
    static char want[TEXT_MAX];
    static const struct {
        const char *path;
        const char *file;
    } rows[] = {
        {"{.clusters[1].cluster.certificate-authority-data}", "pki/ca.crt"},
        {"{.users[0].user.client-certificate-data}", "pki/user-alice.crt"},
        {"{.users[0].user.client-key-data}", "pki/user-alice.key"},
    };
    char command[400];

    (void)state;
    if (system("kubectl version --client >/dev/null 2>&1") != 0)
        skip();
    must("kubeconfig --server https://[::1]:6443 --ca pki/ca.crt --cert pki/user-alice.crt --key "
         "pki/user-alice.key --cluster e --cluster f --out kc");
    shell("kubectl --kubeconfig kc config get-contexts -o name", got);
    assert_string_equal(got, "e\nf\n");
    shell("kubectl --kubeconfig kc config current-context", got);
    assert_string_equal(got, "e\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(command, sizeof command,
                 "kubectl --kubeconfig kc config view --raw -o jsonpath='%s' | base64 -d",
                 rows[i].path);
        shell(command, got);
        snprintf(command, sizeof command, "cat %s", rows[i].file);
        shell(command, want);
        assert_string_equal(got, want);
    }
}

#define FILES_OF_ALICE                                                                             \
    "kubeconfig --files --server https://hub.test:6443 --ca pki/ca.crt --cert pki/user-alice.crt " \
    "--key pki/user-alice.key "

static void test_kubeconfig_when_fleet_then_one_context_more(void **state)
{
    char *out;

    (void)state;
    assert_int_equal(run(FILES_OF_ALICE "--cluster edge-1 --fleet", &out), 0);
    assert_non_null(strstr(out, "- name: \"edge-1\"\n  cluster:\n    server: "
                                "\"https://hub.test:6443/clusters/edge-1\"\n"));
    assert_non_null(strstr(out, "- name: \"fleet\"\n  cluster:\n    server: "
                                "\"https://hub.test:6443/clusters/*\"\n"));
    assert_non_null(strstr(out, "- name: \"fleet\"\n  context:\n    cluster: \"fleet\"\n"));
    assert_non_null(strstr(out, "current-context: \"edge-1\"\n"));
    free(out);
    assert_int_equal(run(FILES_OF_ALICE "--fleet", &out), 0);
    assert_non_null(strstr(out, "current-context: \"fleet\"\n"));
    free(out);
    assert_int_equal(run(FILES_OF_ALICE "--fleet --cluster fleet", &out), 2);
    free(out);
    assert_int_equal(run(FILES_OF_ALICE, &out), 2);
    free(out);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, enter_dir_with_pki, leave_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(test_kubeconfig_when_files_then_exact_text),
        IN_DIR(test_kubeconfig_when_out_then_private_and_not_overwritten),
        IN_DIR(test_kubeconfig_when_fleet_then_one_context_more),
        IN_DIR(test_kubeconfig_when_kubectl_reads_it_then_data_is_the_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
