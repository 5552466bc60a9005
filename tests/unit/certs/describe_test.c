/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/describe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "certs/ca.h"

#define NOW_MS 1800000000000
#define DAY_MS 86400000LL

/* A certificate of `leaf`, described; the caller frees the text. */
static char *describe(const struct kr_leaf *leaf, int64_t at_ms)
{
    struct kr_pem_pair root;
    struct kr_pem_pair pair = {0};
    struct kr_ca *ca;
    struct kr_buf text;
    char *out;

    kr_buf_init(&text, 10000);
    assert_int_equal(kr_ca_create_root(&root, "fleet.test", 1, NOW_MS, NULL), 0);
    assert_int_equal(
        kr_ca_load(&ca, kr_buf_bytes(&root.cert), kr_buf_bytes(&root.key), NULL, NOW_MS, NULL), 0);
    if (leaf != NULL)
        assert_int_equal(kr_ca_issue(ca, leaf, NOW_MS, &pair, NULL), 0);
    assert_int_equal(
        kr_cert_describe(&text, kr_buf_bytes(leaf != NULL ? &pair.cert : &root.cert), at_ms, NULL),
        0);
    out = kr_bytes_dup(kr_buf_bytes(&text));
    kr_buf_deinit(&text);
    kr_pem_pair_deinit(&pair);
    kr_ca_destroy(ca);
    kr_pem_pair_deinit(&root);
    return out;
}

static void assert_has(const char *text, const char *line)
{
    if (strstr(text, line) == NULL)
        fail_msg("no \"%s\" in:\n%s", line, text);
}

static void test_describe_when_hub_then_names_and_times(void **state)
{
    static const char *const dns[] = {"hub.test"};
    static const char *const ip[] = {"10.0.0.1", "fd00::1"};
    const struct kr_leaf leaf = {
        .role = KR_ROLE_HUB, .name = "hub-1", .dns = dns, .dns_count = 1, .ip = ip, .ip_count = 2};
    char *text = describe(&leaf, NOW_MS);

    (void)state;
    assert_has(text, "role: hub\nname: hub-1\n");
    assert_has(text, "uri: spiffe://fleet.test/hub/hub-1\ndns: hub.test\n");
    assert_has(text, "ip: 10.0.0.1\nip: fd00::1\n");
    assert_has(text, "subject: CN=hub-1\nissuer: CN=kuberelay root of fleet.test\n");
    assert_has(text, "not before: 2027-01-15T07:55:00Z\nnot after: 2027-04-15T08:00:00Z\n");
    assert_has(text, "state: valid now\nserial: ");
    assert_has(text, "\nspki sha256: ");
    free(text);
}

static void test_describe_when_time_is_outside_then_says_so(void **state)
{
    const struct kr_leaf leaf = {.role = KR_ROLE_AGENT, .name = "edge-1", .instance = "a"};
    char *late = describe(&leaf, NOW_MS + 31 * DAY_MS);
    char *early = describe(&leaf, NOW_MS - DAY_MS);

    (void)state;
    assert_has(late, "role: agent\nname: edge-1\ninstance: a\n");
    assert_has(late, "state: expired\n");
    assert_has(early, "state: not valid yet\n");
    free(late);
    free(early);
}

static void test_describe_when_user_then_groups_and_escapes(void **state)
{
    static const char *const groups[] = {"dev", "a\\b \xc3\xa9"};
    const struct kr_leaf leaf = {
        .role = KR_ROLE_USER, .name = "alice", .groups = groups, .group_count = 2};
    char *text = describe(&leaf, NOW_MS);

    (void)state;
    assert_has(text, "group: dev\ngroup: a\\x5cb \\xc3\\xa9\n");
    free(text);
}

static void test_describe_when_root_then_ca(void **state)
{
    char *text = describe(NULL, NOW_MS);

    (void)state;
    assert_has(text, "role: ca\nuri: spiffe://fleet.test\n");
    free(text);
}

static void test_describe_when_no_certificate_then_eproto(void **state)
{
    struct kr_buf text = {.max = 1000};
    struct kr_note why;

    (void)state;
    assert_int_equal(kr_cert_describe(&text, KR_LIT("hello"), NOW_MS, &why), KR_EPROTO);
    assert_non_null(strstr(why.text, "no certificate in PEM form"));
    kr_buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe_when_hub_then_names_and_times),
        cmocka_unit_test(test_describe_when_time_is_outside_then_says_so),
        cmocka_unit_test(test_describe_when_user_then_groups_and_escapes),
        cmocka_unit_test(test_describe_when_root_then_ca),
        cmocka_unit_test(test_describe_when_no_certificate_then_eproto),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
