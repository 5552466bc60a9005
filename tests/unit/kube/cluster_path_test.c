/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cluster_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static void test_split_when_prefix_is_there_then_name_and_rest(void **state)
{
    static const char *const cases[][3] = {
        {"/clusters/c1/api/v1/pods", "c1", "/api/v1/pods"},
        {"/clusters/c1/", "c1", "/"},
        {"/clusters/c1", "c1", "/"},
        {"/clusters/c1?timeout=5s", "c1", "/?timeout=5s"},
        {"/clusters/c1/version?timeout=5s", "c1", "/version?timeout=5s"},
        {"/clusters/c1//api", "c1", "//api"}, /* refused later, by request_info */
        {"/clusters/c1/clusters/c2/api", "c1", "/clusters/c2/api"},
        {"/clusters/%63%31/api", "c1", "/api"},
        {"/clusters/c1/a%2Fb", "c1", "/a%2Fb"},
        {"/clusters/%2A/api/v1/pods", "*", "/api/v1/pods"},
        {"/clusters/%2a/api", "*", "/api"},
        {"/clusters/*/api", "*", "/api"},
        {"/clusters/0/api", "0", "/api"},
        {"/clusters/a-b-9/api", "a-b-9", "/api"},
        {"/clusters/a23456789012345678901234567890123456789012345678901234567890123/",
         "a23456789012345678901234567890123456789012345678901234567890123", "/"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_cluster_path cp;
        struct kr_arena arena;
        struct kr_note why;

        kr_arena_init(&arena, 64, 1024);
        if (kr_cluster_path_split(kr_bytes_str(cases[i][0]), &arena, &cp, &why) != 0)
            fail_msg("%s: %s", cases[i][0], why.text);
        assert_string_equal(cp.text, cases[i][1]);
        assert_true(kr_bytes_is(cp.name, cases[i][1]));
        assert_true(kr_bytes_is(cp.rest, cases[i][2]));
        assert_int_equal(cp.fleet, cases[i][1][0] == '*');
        kr_arena_deinit(&arena);
    }
}

static void test_split_when_name_or_prefix_is_wrong_then_refused(void **state)
{
    static const struct {
        const char *target;
        int want;
    } cases[] = {
        {"/", KR_ENOENT},
        {"", KR_ENOENT},
        {"/api/v1/pods", KR_ENOENT},
        {"/clusters", KR_ENOENT},
        {"/cluster/c1/api", KR_ENOENT},
        {"/Clusters/c1/api", KR_ENOENT},
        {"/clusters?x", KR_ENOENT},
        {"//clusters/c1/api", KR_ENOENT},
        {"/%63lusters/c1/api", KR_ENOENT},
        {"/clusters/", KR_EINVAL},
        {"/clusters//api", KR_EINVAL},
        {"/clusters/?x", KR_EINVAL},
        {"/clusters/C1/api", KR_EINVAL},
        {"/clusters/-a/api", KR_EINVAL},
        {"/clusters/a-/api", KR_EINVAL},
        {"/clusters/a.b/api", KR_EINVAL},
        {"/clusters/a_b/api", KR_EINVAL},
        {"/clusters/**/api", KR_EINVAL},
        {"/clusters/../api", KR_EINVAL},
        {"/clusters/%2e%2e/api", KR_EINVAL},
        {"/clusters/a%2Fb/api", KR_EINVAL},
        {"/clusters/%2563/api", KR_EINVAL},
        {"/clusters/a%00/api", KR_EINVAL},
        {"/clusters/a%/api", KR_EINVAL},
        {"/clusters/a%zz/api", KR_EINVAL},
        {"/clusters/a234567890123456789012345678901234567890123456789012345678901234/", KR_EINVAL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_cluster_path cp;
        struct kr_arena arena;
        struct kr_note why = {""};
        int rc;

        kr_arena_init(&arena, 64, 1024);
        rc = kr_cluster_path_split(kr_bytes_str(cases[i].target), &arena, &cp, &why);
        if (rc != cases[i].want)
            fail_msg("%s: %d %s", cases[i].target, rc, why.text);
        assert_string_not_equal(why.text, "");
        kr_arena_deinit(&arena);
    }
}

static void test_authority_when_below_the_domain_then_cluster(void **state)
{
    static const struct {
        const char *authority;
        int want;
        const char *name;
    } cases[] = {
        {"c1.hub.example", 0, "c1"},
        {"c1.hub.example:6443", 0, "c1"},
        {"C1.Hub.EXAMPLE:6443", 0, "c1"},
        {"c1.hub.example.", 0, "c1"},
        {"c1.hub.example.:6443", 0, "c1"},
        {"hub.example", KR_ENOENT, ""},
        {"hub.example:6443", KR_ENOENT, ""},
        {".hub.example", KR_ENOENT, ""},
        {"xhub.example", KR_ENOENT, ""},
        {"c1xhub.example", KR_ENOENT, ""},
        {"c1.other.example", KR_ENOENT, ""},
        {"127.0.0.1:6443", KR_ENOENT, ""},
        {"[::1]:6443", KR_ENOENT, ""},
        {"", KR_ENOENT, ""},
        {"a.b.hub.example", KR_EINVAL, ""},
        {"-a.hub.example", KR_EINVAL, ""},
        {"*.hub.example", KR_EINVAL, ""},
        {"a_b.hub.example", KR_EINVAL, ""},
        {"a234567890123456789012345678901234567890123456789012345678901234.hub.example", KR_EINVAL,
         ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_cluster_path cp;
        struct kr_note why = {""};
        int rc = kr_cluster_from_authority(kr_bytes_str(cases[i].authority), KR_LIT("hub.example"),
                                           &cp, &why);

        if (rc != cases[i].want || strcmp(cp.text, cases[i].name) != 0)
            fail_msg("%s: %d %s", cases[i].authority, rc, cp.text);
    }
}

static void test_authority_when_no_domain_is_configured_then_no_cluster(void **state)
{
    struct kr_cluster_path cp;
    struct kr_note why;

    (void)state;
    assert_int_equal(kr_cluster_from_authority(KR_LIT("c1."), KR_LIT(""), &cp, &why), KR_ENOENT);
    assert_int_equal(kr_cluster_from_authority(KR_LIT("c1"), KR_LIT(""), &cp, &why), KR_ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split_when_prefix_is_there_then_name_and_rest),
        cmocka_unit_test(test_split_when_name_or_prefix_is_wrong_then_refused),
        cmocka_unit_test(test_authority_when_below_the_domain_then_cluster),
        cmocka_unit_test(test_authority_when_no_domain_is_configured_then_no_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
