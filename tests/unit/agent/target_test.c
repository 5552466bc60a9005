/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/err.h"

static void check_path(const struct agent_target_spec *spec, const char *path, const char *name)
{
    struct agent_target t;
    struct kr_buf out = {.max = 4096};

    assert_int_equal(agent_target_init(&t, spec, NULL), 0);
    assert_int_equal(agent_target_path(&t, &out), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&out), path));
    assert_string_equal(t.name, name);
    kr_buf_deinit(&out);
    agent_target_deinit(&t);
}

static void test_paths_name_group_namespace_and_selectors(void **state)
{
    (void)state;
    check_path(&(struct agent_target_spec){.version = KR_LIT("v1"), .resource = KR_LIT("pods")},
               "/api/v1/pods?", "pods");
    check_path(&(struct agent_target_spec){.group = KR_LIT("apps"),
                                           .version = KR_LIT("v1"),
                                           .resource = KR_LIT("deployments"),
                                           .ns = KR_LIT("kube-system")},
               "/apis/apps/v1/namespaces/kube-system/deployments?", "deployments.apps");
    check_path(&(struct agent_target_spec){.version = KR_LIT("v1"),
                                           .resource = KR_LIT("pods"),
                                           .label_selector = KR_LIT("a=b&c,d in (e)"),
                                           .field_selector = KR_LIT("status.phase!=\xc3\xa4")},
               "/api/v1/pods?labelSelector=a%3Db%26c%2Cd%20in%20%28e%29&"
               "fieldSelector=status.phase%21%3D%C3%A4&",
               "pods");
}

static void test_what_could_lead_elsewhere_is_refused(void **state)
{
    static const struct agent_target_spec bad[] = {
        {.version = {(const uint8_t *)"v1", 2}},
        {.resource = {(const uint8_t *)"pods", 4}},
        {.version = {(const uint8_t *)"v1", 2}, .resource = {(const uint8_t *)"a/b", 3}},
        {.version = {(const uint8_t *)"v1", 2}, .resource = {(const uint8_t *)"..", 2}},
        {.version = {(const uint8_t *)"v1", 2}, .resource = {(const uint8_t *)"p?w", 3}},
        {.version = {(const uint8_t *)"v1", 2}, .resource = {(const uint8_t *)"p\0w", 3}},
        {.version = {(const uint8_t *)"v1", 2}, .resource = {(const uint8_t *)"Pods", 4}},
        {.version = {(const uint8_t *)"..", 2}, .resource = {(const uint8_t *)"pods", 4}},
        {.group = {(const uint8_t *)"..", 2},
         .version = {(const uint8_t *)"v1", 2},
         .resource = {(const uint8_t *)"pods", 4}},
        {.version = {(const uint8_t *)"v1", 2},
         .resource = {(const uint8_t *)"pods", 4},
         .ns = {(const uint8_t *)"a/b", 3}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct agent_target t;
        struct kr_note why = {""};

        assert_int_equal(agent_target_init(&t, &bad[i], &why), KR_EINVAL);
        assert_true(why.text[0] != '\0');
        agent_target_deinit(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_name_group_namespace_and_selectors),
        cmocka_unit_test(test_what_could_lead_elsewhere_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
