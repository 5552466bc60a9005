/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sync_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct kr_strings strings(const char **v, size_t n)
{
    return (struct kr_strings){v, n};
}

static void test_deny_goes_before_allow(void **state)
{
    static const char *allow[] = {"pods", "*.apps", "widgets.ex.io", "secrets"};
    static const char *deny[] = {"secrets", "daemonsets.apps"};
    const struct agent_options o = {.sync_allow = strings(allow, 4), .sync_deny = strings(deny, 2)};

    (void)state;
    assert_true(agent_sync_allows(&o, KR_LIT(""), KR_LIT("pods")));
    assert_true(agent_sync_allows(&o, KR_LIT("apps"), KR_LIT("deployments")));
    assert_true(agent_sync_allows(&o, KR_LIT("ex.io"), KR_LIT("widgets")));
    assert_false(agent_sync_allows(&o, KR_LIT("apps"), KR_LIT("daemonsets")));
    assert_false(agent_sync_allows(&o, KR_LIT(""), KR_LIT("secrets")));
    assert_false(agent_sync_allows(&o, KR_LIT(""), KR_LIT("nodes")));
    assert_false(agent_sync_allows(&o, KR_LIT("metrics.k8s.io"), KR_LIT("pods")));
    assert_false(agent_sync_allows(&o, KR_LIT("io"), KR_LIT("widgets")));
}

static void test_a_star_is_everything_but_what_is_denied(void **state)
{
    static const char *star[] = {"*"};
    static const char *deny[] = {"secrets"};
    const struct agent_options o = {.sync_allow = strings(star, 1), .sync_deny = strings(deny, 1)};
    const struct agent_options none = {.sync_allow = strings(star, 1),
                                       .sync_deny = strings(star, 1)};
    const struct agent_options empty = {.sync_allow = strings(NULL, 0)};

    (void)state;
    assert_true(agent_sync_allows(&o, KR_LIT("apps"), KR_LIT("deployments")));
    assert_false(agent_sync_allows(&o, KR_LIT(""), KR_LIT("secrets")));
    assert_true(
        agent_sync_allows(&o, KR_LIT("ex.io"), KR_LIT("secrets"))); /* others of that name */
    assert_false(agent_sync_allows(&none, KR_LIT(""), KR_LIT("pods")));
    assert_false(agent_sync_allows(&empty, KR_LIT(""), KR_LIT("pods")));
}

static void check_namespaces(size_t ours, const struct kr_bytes *theirs, size_t n, size_t want,
                             bool want_all)
{
    static const char *names[] = {"a", "b"};
    const struct agent_options o = {.sync_namespaces = strings(names, ours)};
    const struct kr_subscription s = {.namespaces = theirs, .namespace_count = n};
    struct kr_arena arena;
    struct kr_bytes *out;
    size_t count;
    bool all;

    kr_arena_init(&arena, 128, 4096);
    assert_int_equal(agent_sync_namespaces(&o, &s, &arena, &out, &count, &all), 0);
    assert_int_equal(count, want);
    assert_int_equal(all, want_all);
    if (count == 1)
        assert_true(kr_bytes_is(out[0], "b"));
    kr_arena_deinit(&arena);
}

static void test_namespaces_are_never_more_than_ours(void **state)
{
    const struct kr_bytes theirs[] = {KR_LIT("b"), KR_LIT("c")};

    (void)state;
    check_namespaces(0, NULL, 0, 0, true);
    check_namespaces(2, NULL, 0, 2, false);
    check_namespaces(0, theirs, 2, 2, false);
    check_namespaces(2, theirs, 2, 1, false);
    check_namespaces(2, theirs + 1, 1, 0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deny_goes_before_allow),
        cmocka_unit_test(test_a_star_is_everything_but_what_is_denied),
        cmocka_unit_test(test_namespaces_are_never_more_than_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
