/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hub/fleet_warning.h"

static void assert_said(const char *of, const struct hub_completeness *c, const char *expected)
{
    struct kr_bytes said;
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    assert_int_equal(hub_fleet_warn(&head, kr_bytes_str(of), c), 0);
    said = kr_head_get(&head, KR_LIT("warning"));
    if (expected == NULL)
        assert_int_equal(head.n, 0);
    else if (!kr_bytes_is(said, expected))
        fail_msg("%.*s", (int)said.n, (const char *)said.p);
    kr_head_deinit(&head);
}

static void test_warn_then_each_number_and_the_names(void **state)
{
    struct hub_completeness c = {.clusters = 3};

    (void)state;
    assert_said("pods", &c, NULL);
    c.missing = c.loading = c.named = 1;
    snprintf(c.names, sizeof c.names, "c2");
    assert_said("pods", &c,
                "299 kuberelay \"fleet view of pods: of 3 clusters 1 loading 1 missing: c2, ... "
                "[hub-agent]\"");
    c.named = 2;
    snprintf(c.names, sizeof c.names, "c2, c9");
    assert_said("", &c,
                "299 kuberelay \"fleet view: of 3 clusters 1 loading 1 missing: c2, c9 "
                "[hub-agent]\"");
}

/* Clients cut what is longer than 256; one name is there in any case. */
static void test_warn_when_all_is_long_then_one_name_and_that_there_are_more(void **state)
{
    struct hub_completeness c = {.clusters = 1000000,
                                 .stale = 1000000,
                                 .loading = 1000000,
                                 .failing = 1000000,
                                 .missing = 1000000,
                                 .named = 2};
    char of[254];
    struct kr_bytes said;
    struct kr_head head;

    (void)state;
    memset(of, 'r', sizeof of);
    memset(c.names, 'x', 63);
    snprintf(c.names + 63, sizeof c.names - 63, ", %063d", 1);
    kr_head_init(&head, KR_HEAD_MAX);
    assert_int_equal(hub_fleet_warn(&head, kr_bytes_of(of, sizeof of), &c), 0);
    said = kr_head_get(&head, KR_LIT("warning"));
    assert_in_range(said.n, 200, 256 + strlen("299 kuberelay \"\""));
    assert_non_null(memmem(said.p, said.n, ": xxxxxxxx", 10));
    assert_non_null(memmem(said.p, said.n, "xx, ... [hub-agent]\"", 20));
    kr_head_deinit(&head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warn_then_each_number_and_the_names),
        cmocka_unit_test(test_warn_when_all_is_long_then_one_name_and_that_there_are_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
