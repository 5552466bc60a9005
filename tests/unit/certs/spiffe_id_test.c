/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/spiffe_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

static void assert_round_trip(const char *text, const struct kr_spiffe_id *id)
{
    char again[KR_SPIFFE_ID_MAX + 1];
    struct kr_note why = {""};

    assert_int_equal(kr_spiffe_id_format(id, again, &why), 0);
    assert_string_equal(again, text);
}

static void test_parse_when_hub_then_replica(void **state)
{
    const char *text = "spiffe://fleet.example/hub/Hub_1.a";
    struct kr_spiffe_id id;

    (void)state;
    assert_int_equal(kr_spiffe_id_parse(&id, kr_bytes_str(text), NULL), 0);
    assert_int_equal(id.role, KR_ROLE_HUB);
    assert_string_equal(id.domain, "fleet.example");
    assert_string_equal(id.name, "Hub_1.a");
    assert_string_equal(id.instance, "");
    assert_round_trip(text, &id);
}

static void test_parse_when_agent_then_cluster_and_instance(void **state)
{
    const char *text = "spiffe://fleet.example/cluster/edge-7/agent/a";
    struct kr_spiffe_id id;

    (void)state;
    assert_int_equal(kr_spiffe_id_parse(&id, kr_bytes_str(text), NULL), 0);
    assert_int_equal(id.role, KR_ROLE_AGENT);
    assert_string_equal(id.name, "edge-7");
    assert_string_equal(id.instance, "a");
    assert_round_trip(text, &id);
}

static void test_parse_when_user_then_name(void **state)
{
    const char *text = "spiffe://d/user/alice";
    struct kr_spiffe_id id;

    (void)state;
    assert_int_equal(kr_spiffe_id_parse(&id, kr_bytes_str(text), NULL), 0);
    assert_int_equal(id.role, KR_ROLE_USER);
    assert_string_equal(id.domain, "d");
    assert_string_equal(id.name, "alice");
    assert_round_trip(text, &id);
}

static const char *const no_identities[] = {
    "",
    "spiffe:/",
    "spiffe://",
    "spiffe:///hub/a",
    "spiffe://d",
    "spiffe://d/",
    "spiffe://d/hub",
    "spiffe://d/hub/",
    "spiffe://d/hub/a/",
    "spiffe://d/hub//a",
    "spiffe://d//hub/a",
    "spiffe://d/hub/a/b",
    "spiffe://d/hub/.",
    "spiffe://d/hub/..",
    "spiffe://d/../hub/a",
    "spiffe://d/hub/a%62",
    "spiffe://d/hub/a?x",
    "spiffe://d/hub/a#x",
    "spiffe://d/hub/a b",
    "spiffe://d/hub/a:b",
    "spiffe://d/hub/\xc3\xa4",
    "spiffe://d:8443/hub/a",
    "spiffe://u@d/hub/a",
    "spiffe://D/hub/a",
    "spiffe://[::1]/hub/a",
    "spiffe://.d/hub/a",
    "spiffe://d./hub/a",
    "spiffe://d..e/hub/a",
    "spiffe://-d/hub/a",
    "SPIFFE://d/hub/a",
    "Spiffe://d/hub/a",
    "https://d/hub/a",
    " spiffe://d/hub/a",
    "spiffe://d/hub/a ",
    "spiffe://d/hub/a\n",
    "spiffe://d/Hub/a",
    "spiffe://d/signer/a",
    "spiffe://d/cluster/edge",
    "spiffe://d/cluster/edge/agent",
    "spiffe://d/cluster/edge/agent/",
    "spiffe://d/cluster/edge/hub/a",
    "spiffe://d/cluster/edge/agent/a/b",
    "spiffe://d/cluster/Edge/agent/a",
    "spiffe://d/cluster/edge.1/agent/a",
    "spiffe://d/cluster/edge_1/agent/a",
    "spiffe://d/cluster/-edge/agent/a",
    "spiffe://d/cluster/edge-/agent/a",
    /* 64 bytes */
    "spiffe://d/cluster/012345678901234567890123456789012345678901234567890123456789012x/agent/a",
    "spiffe://d/a/b/c/d/e/f/g/h",
};

static void test_parse_when_not_exact_then_refused_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof no_identities / sizeof no_identities[0]; i++) {
        struct kr_spiffe_id id;
        struct kr_spiffe_id zero = {0};
        struct kr_note why = {""};

        memset(&id, 0xff, sizeof id);
        if (kr_spiffe_id_parse(&id, kr_bytes_str(no_identities[i]), &why) != KR_EPROTO)
            fail_msg("accepted: %s", no_identities[i]);
        assert_memory_equal(&id, &zero, sizeof id);
        assert_int_not_equal(why.text[0], 0);
    }
}

static void test_parse_when_nul_inside_then_refused(void **state)
{
    struct kr_spiffe_id id;
    struct kr_note why;

    (void)state;
    assert_int_equal(kr_spiffe_id_parse(&id, KR_LIT("spiffe://d/user/alice\0.evil"), &why),
                     KR_EPROTO);
    assert_non_null(strstr(why.text, "0x00"));
    assert_int_equal(kr_spiffe_id_parse(&id, KR_LIT("spiffe://d/user/alice\0"), &why), KR_EPROTO);
}

static void test_parse_when_length_is_at_the_limit_then_exact(void **state)
{
    char text[KR_SPIFFE_ID_MAX + 2];
    struct kr_spiffe_id id;

    (void)state;
    memset(text, 'a', sizeof text);
    text[KR_SPIFFE_ID_MAX + 1] = 0;
    memcpy(text, "spiffe://d/hub/", 15);
    assert_int_equal(kr_spiffe_id_parse(&id, kr_bytes_of(text, KR_SPIFFE_ID_MAX), NULL), 0);
    assert_int_equal(strlen(id.name), KR_SPIFFE_ID_MAX - 15);
    assert_int_equal(kr_spiffe_id_parse(&id, kr_bytes_of(text, KR_SPIFFE_ID_MAX + 1), NULL),
                     KR_EPROTO);
}

static void test_format_when_a_part_is_bad_then_refused(void **state)
{
    static const struct kr_spiffe_id bad[] = {
        {KR_ROLE_HUB, "", "a", ""},
        {KR_ROLE_HUB, "d", "", ""},
        {KR_ROLE_HUB, "d", "a/b", ""},
        {KR_ROLE_HUB, "d/hub", "a", ""},
        {KR_ROLE_HUB, "D", "a", ""},
        {KR_ROLE_AGENT, "d", "edge", ""},
        {KR_ROLE_AGENT, "d", "Edge", "a"},
        {KR_ROLE_AGENT, "d", "edge", ".."},
        {KR_ROLE_AGENT, "d", "a/agent/b", "c"},
        {KR_ROLE_USER, "d", "system:admin", ""},
        /* Each of these would read as another identity if it were only pasted together. */
        {KR_ROLE_USER, "d/user/x", "y", ""},
        {KR_ROLE_HUB, "d/cluster/e/agent", "x", ""},
    };
    char out[KR_SPIFFE_ID_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memset(out, 'x', sizeof out);
        assert_int_equal(kr_spiffe_id_format(&bad[i], out, NULL), KR_EINVAL);
        assert_string_equal(out, "");
    }
}

static void test_format_when_too_long_then_refused(void **state)
{
    struct kr_spiffe_id id = {.role = KR_ROLE_AGENT, .domain = "d", .name = "edge"};
    char out[KR_SPIFFE_ID_MAX + 1];

    (void)state;
    memset(id.instance, 'i', KR_SPIFFE_ID_MAX);
    assert_int_equal(kr_spiffe_id_format(&id, out, NULL), KR_EINVAL);
    assert_string_equal(out, "");
}

static void test_domain_parse_when_it_has_a_path_then_refused(void **state)
{
    char out[KR_SPIFFE_ID_MAX + 1];

    (void)state;
    assert_int_equal(kr_spiffe_domain_parse(out, KR_LIT("spiffe://fleet.test"), NULL), 0);
    assert_string_equal(out, "fleet.test");
    assert_int_equal(kr_spiffe_domain_parse(out, KR_LIT("spiffe://fleet.test/"), NULL), KR_EPROTO);
    assert_string_equal(out, "");
    assert_int_equal(kr_spiffe_domain_parse(out, KR_LIT("spiffe://"), NULL), KR_EPROTO);
}

static void test_role_text_is_the_path_word(void **state)
{
    (void)state;
    assert_string_equal(kr_role_text(KR_ROLE_HUB), "hub");
    assert_string_equal(kr_role_text(KR_ROLE_AGENT), "agent");
    assert_string_equal(kr_role_text(KR_ROLE_USER), "user");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_when_hub_then_replica),
        cmocka_unit_test(test_parse_when_agent_then_cluster_and_instance),
        cmocka_unit_test(test_parse_when_user_then_name),
        cmocka_unit_test(test_parse_when_not_exact_then_refused_with_a_reason),
        cmocka_unit_test(test_parse_when_nul_inside_then_refused),
        cmocka_unit_test(test_parse_when_length_is_at_the_limit_then_exact),
        cmocka_unit_test(test_format_when_a_part_is_bad_then_refused),
        cmocka_unit_test(test_format_when_too_long_then_refused),
        cmocka_unit_test(test_domain_parse_when_it_has_a_path_then_refused),
        cmocka_unit_test(test_role_text_is_the_path_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
