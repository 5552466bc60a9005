/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "cert_maker.h"

static int judge(const struct spec *s, struct kr_identity *id, struct kr_note *why)
{
    const struct kr_identity_rules rules = {.role = s->role, .trust_domain = "fleet.test"};
    X509 *x = make(s);
    unsigned char *der = NULL;
    int n = i2d_X509(x, &der);
    int rc = kr_identity_judge(id, kr_bytes_of(der, (size_t)n), &rules, why);

    OPENSSL_free(der);
    X509_free(x);
    return rc;
}

static void check_rows(const struct spec *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct kr_identity zero = {0};
        struct kr_identity id;
        struct kr_note why = {""};
        int rc = judge(&rows[i], &id, &why);

        if (rc != (rows[i].refusal != NULL ? KR_EDENIED : 0))
            fail_msg("%s: %d %s", rows[i].what, rc, why.text);
        if (rc != 0 && strstr(why.text, rows[i].refusal) == NULL)
            fail_msg("%s: the note is \"%s\"", rows[i].what, why.text);
        if (rc != 0)
            assert_memory_equal(&id, &zero, sizeof id);
        kr_identity_deinit(&id);
    }
}

#define CHECK(rows) check_rows(rows, sizeof rows / sizeof rows[0])

static void test_judge_when_usage_is_wrong_then_refused(void **state)
{
    static const struct spec rows[] = {
        {HUB("hub", HUB_URI)},
        {AGENT("agent", AGENT_URI)},
        {USER("user", USER_URI)},
        {AGENT("both usages", AGENT_URI), .eku = "serverAuth,clientAuth"},
        {AGENT("no EKU", AGENT_URI), .eku = NONE, .refusal = "no extendedKeyUsage"},
        {HUB("hub without EKU", HUB_URI), .eku = NONE, .refusal = "no extendedKeyUsage"},
        {AGENT("serverAuth only", AGENT_URI), .eku = "serverAuth", .refusal = "lacks cl"},
        {HUB("clientAuth only", HUB_URI), .eku = "clientAuth", .refusal = "lacks server"},
        {AGENT("any usage", AGENT_URI), .eku = "anyExtendedKeyUsage", .refusal = "lacks"},
        {AGENT("EKU twice", AGENT_URI), .extra = NID_ext_key_usage,
         .refusal = "malformed extension"},
        {AGENT("no KU", AGENT_URI), .ku = NONE, .refusal = "no keyUsage"},
        {AGENT("KU encipher", AGENT_URI), .ku = "critical,keyEncipherment",
         .refusal = "lacks digitalSignature"},
        {USER("KU as kubeadm makes it", NULL), .ku = "critical,digitalSignature,keyEncipherment"},
        {AGENT("KU signs certificates", AGENT_URI), .ku = "critical,digitalSignature,keyCertSign",
         .refusal = "lets it sign"},
        {AGENT("CA", AGENT_URI), .bc = "critical,CA:TRUE", .refusal = "one of a CA"},
        {AGENT("no constraints", AGENT_URI), .bc = NONE},
        {AGENT("unknown critical", AGENT_URI), .extra = 1, .refusal = "not understood"},
        {USER("version 1", NULL), .version = 1, .refusal = "version 3"},
    };

    (void)state;
    CHECK(rows);
}

static void test_judge_when_uri_is_not_exact_then_refused(void **state)
{
    static char long_uri[3072];
    const struct spec rows[] = {
        {AGENT("none", NULL), .refusal = "no URI name"},
        {AGENT("two", AGENT_URI, AGENT_URI), .refusal = "2 URI names"},
        {USER("two, one foreign", USER_URI, "https://x"), .refusal = "2 URI names"},
        {AGENT("two extensions", AGENT_URI), .extra = NID_subject_alt_name,
         .refusal = "subjectAltName twice"},
        {AGENT("empty", ""), .refusal = "begin with spiffe://"},
        {USER("empty, user", ""), .refusal = "begin with spiffe://"},
        {USER("not spiffe, user", "https://fleet.test/user/alice"), .refusal = "begin"},
        {AGENT("port", "spiffe://fleet.test:8443/cluster/edge-1/agent/a"), .refusal = "holds ':'"},
        {AGENT("userinfo", "spiffe://evil@fleet.test/cluster/edge-1/agent/a"),
         .refusal = "holds '@'"},
        {USER("upper case", "spiffe://Fleet.test/user/alice"), .refusal = "no trust dom"},
        {USER("slash", "spiffe://fleet.test/user/alice/"), .refusal = "empty segment"},
        {USER("dots", "spiffe://fleet.test/user/.."), .refusal = "segment \"..\""},
        {USER("percent", "spiffe://fleet.test/user/%61lice"), .refusal = "holds '%'"},
        {USER("NUL", "spiffe://fleet.test/user/alice\0.evil"),
         .uri_n = sizeof "spiffe://fleet.test/user/alice\0.evil" - 1, .refusal = "byte 0x00"},
        {USER("high byte", "spiffe://fleet.test/user/\xe9"), .refusal = "byte 0xe9"},
        {USER("3 KiB", long_uri), .refusal = "3071 bytes"},
        {USER("foreign", "spiffe://other.test/user/alice"), .refusal = "\"other.test\""},
        {USER("longer domain", "spiffe://fleet.test.x/user/alice"), .refusal = "domain"},
    };

    (void)state;
    memset(long_uri, 'a', sizeof long_uri - 1);
    memcpy(long_uri, USER_URI, sizeof USER_URI - 1);
    CHECK(rows);
}

static void test_judge_when_role_is_another_then_refused(void **state)
{
    static const struct spec rows[] = {
        {USER("agent as user", AGENT_URI), .refusal = "of role agent, not user"},
        {USER("hub as user", HUB_URI), .refusal = "role hub, not user"},
        {AGENT("user as agent", USER_URI), .refusal = "role user, not agent"},
        {AGENT("hub as agent", HUB_URI), .eku = "clientAuth", .refusal = "role hub, not agent"},
        {HUB("agent as hub", AGENT_URI), .eku = "serverAuth", .refusal = "role agent, not hub"},
        {USER("signer", "spiffe://fleet.test/signer/a"), .refusal = "path is none of"},
    };

    (void)state;
    CHECK(rows);
}

static void test_judge_when_weak_then_refused(void **state)
{
    static const struct spec rows[] = {
        {USER("P-384", USER_URI), .key = P384},
        {USER("P-521", USER_URI), .key = P521},
        {USER("RSA-2048", USER_URI), .key = RSA_2048},
        {USER("Ed25519", USER_URI), .key = ED25519},
        {USER("SHA-512", USER_URI), .digest = "SHA512"},
        {USER("RSA-1024", USER_URI), .key = RSA_1024, .refusal = "1024 bits"},
        {USER("P-224", USER_URI), .key = P224, .refusal = "curve"},
        {USER("secp256k1", USER_URI), .key = SECP256K1, .refusal = "curve"},
        {USER("SHA-1", USER_URI), .digest = "SHA1", .refusal = "SHA1"},
        {USER("RSA, SHA-1", USER_URI), .key = RSA_2048, .digest = "SHA1", .refusal = "SHA1"},
        {USER("RSA, MD5", USER_URI), .key = RSA_2048, .digest = "MD5", .refusal = "MD5"},
    };

    (void)state;
    CHECK(rows);
}

static void test_judge_when_subject_is_odd_then_refused(void **state)
{
    static char long_name[KR_NAME_MAX + 2];
    const struct spec rows[] = {
        {USER("classic", NULL), .cn = "alice@example.com", .o = {"dev", "ops:x"}},
        {USER("no CN", NULL), .cn = NONE, .refusal = "neither a URI name nor a CN"},
        {USER("two CNs", NULL), .cn2 = "bob", .refusal = "more than one CN"},
        {USER("URI and another CN", USER_URI), .cn = "bob", .refusal = "different users"},
        {USER("NUL", NULL), .cn = "a\0b", .cn_n = 3, .refusal = "not UTF-8"},
        {USER("bad UTF-8", NULL), .text_type = V_ASN1_IA5STRING, .cn = "a\xff",
         .refusal = "not UTF-8"},
        {USER("T61", NULL), .text_type = V_ASN1_T61STRING, .refusal = "not UTF-8"},
        {USER("line break", NULL), .cn = "a\r\nX: y", .refusal = "control character"},
        {USER("DEL", NULL), .cn = "a\x7f", .refusal = "control character"},
        {USER("long", NULL), .cn = long_name, .refusal = "257 bytes"},
        {USER("system user", NULL), .cn = "system:admin", .refusal = "begins with sys"},
        {USER("system group", NULL), .o = {"a", "system:masters"}, .refusal = "masters"},
        {USER("system group, URI", USER_URI), .o = {"system:nodes"}, .refusal = "nodes"},
        {USER("empty group", NULL), .o = {"a", ""}, .refusal = "0 bytes"},
        {USER("long group", NULL), .o = {long_name}, .refusal = "257 bytes"},
        {AGENT("agent's subject is decoration", AGENT_URI), .o = {"system:masters"}},
    };

    (void)state;
    memset(long_name, 'n', sizeof long_name - 1);
    CHECK(rows);
}

static void test_judge_when_accepted_then_all_facts_are_there(void **state)
{
    const struct spec s = {USER("", USER_URI), .o = {"dev", "ops", "dev"}};
    struct kr_identity id;
    uint8_t expected[32];
    unsigned char *der = NULL;
    int n = i2d_PUBKEY(keys[P256], &der);

    (void)state;
    EVP_Digest(der, (size_t)n, expected, NULL, EVP_sha256(), NULL);
    OPENSSL_free(der);
    assert_int_equal(judge(&s, &id, NULL), 0);
    assert_int_equal(id.role, KR_ROLE_USER);
    assert_string_equal(id.domain, "fleet.test");
    assert_string_equal(id.name, "alice");
    assert_int_equal(id.group_count, 3);
    assert_string_equal(id.groups[0], "dev");
    assert_string_equal(id.groups[1], "ops");
    assert_string_equal(id.groups[2], "dev");
    assert_string_equal(id.serial, "1f2e");
    assert_memory_equal(id.spki_sha256, expected, 32);
    assert_int_equal(id.not_before_wall_ms, 1700000000000);
    assert_int_equal(id.not_after_wall_ms, 1800000000000);
    kr_identity_deinit(&id);
    kr_identity_deinit(&id);
}

static void test_judge_when_agent_then_cluster_and_no_groups(void **state)
{
    const struct spec s = {AGENT("", AGENT_URI), .cn = "other", .o = {"x"}};
    struct kr_identity id;

    (void)state;
    assert_int_equal(judge(&s, &id, NULL), 0);
    assert_string_equal(id.name, "edge-1");
    assert_string_equal(id.instance, "a");
    assert_int_equal(id.group_count, 0);
    kr_identity_deinit(&id);
}

static void test_judge_when_uri_without_cn_then_o_is_not_read(void **state)
{
    const struct spec s = {USER("", USER_URI), .cn = NONE, .o = {"SPIRE"}};
    struct kr_identity id;

    (void)state;
    assert_int_equal(judge(&s, &id, NULL), 0);
    assert_int_equal(id.group_count, 0);
    kr_identity_deinit(&id);
}

static int judge_with_groups(int count, struct kr_identity *id, struct kr_note *why)
{
    const struct kr_identity_rules rules = {.role = KR_ROLE_USER, .trust_domain = "fleet.test"};
    struct spec s = {USER("", NULL)};
    X509 *x = make(&s);
    unsigned char *der = NULL;
    int n;
    int rc;

    for (int i = 0; i < count; i++)
        add_subject(x, NID_organizationName, &s, "g", 1);
    X509_sign(x, keys[P256], EVP_sha256());
    n = i2d_X509(x, &der);
    rc = kr_identity_judge(id, kr_bytes_of(der, (size_t)n), &rules, why);
    OPENSSL_free(der);
    X509_free(x);
    return rc;
}

static void test_judge_when_groups_are_too_many_then_refused(void **state)
{
    struct kr_identity id;
    struct kr_note why;

    (void)state;
    assert_int_equal(judge_with_groups(1000, &id, &why), 0);
    assert_int_equal(id.group_count, 1000);
    assert_string_equal(id.groups[999], "g");
    kr_identity_deinit(&id);
    assert_int_equal(judge_with_groups(1001, &id, &why), KR_EDENIED);
    assert_non_null(strstr(why.text, "more than 1000 groups"));
    assert_int_equal(judge_with_groups(2000, &id, &why), KR_EDENIED);
    assert_non_null(strstr(why.text, "16384 are allowed"));
}

static void test_judge_when_bytes_are_not_one_certificate_then_eproto(void **state)
{
    const struct kr_identity_rules rules = {.role = KR_ROLE_AGENT};
    const struct spec s = {AGENT("", AGENT_URI)};
    X509 *x = make(&s);
    unsigned char *der = NULL;
    int n = i2d_X509(x, &der);
    uint8_t *room = calloc(1, (size_t)n + 1);
    struct kr_identity id;

    (void)state;
    memcpy(room, der, (size_t)n);
    assert_int_equal(kr_identity_judge(&id, kr_bytes_of(NULL, 0), &rules, NULL), KR_EPROTO);
    assert_int_equal(kr_identity_judge(&id, KR_LIT("no certificate"), &rules, NULL), KR_EPROTO);
    assert_int_equal(kr_identity_judge(&id, kr_bytes_of(room, (size_t)n + 1), &rules, NULL),
                     KR_EPROTO);
    for (int i = 0; i < n; i++) {
        uint8_t *cut = malloc((size_t)i + 1); /* its own block: a read beyond it shows */

        memcpy(cut, der, (size_t)i);
        assert_int_equal(kr_identity_judge(&id, kr_bytes_of(cut, (size_t)i), &rules, NULL),
                         KR_EPROTO);
        free(cut);
    }
    assert_int_equal(kr_identity_judge(&id, kr_bytes_of(room, (size_t)n), &rules, NULL), 0);
    kr_identity_deinit(&id);
    free(room);
    OPENSSL_free(der);
    X509_free(x);
}

static void test_judge_when_a_byte_is_flipped_then_no_crash(void **state)
{
    const struct kr_identity_rules rules = {.role = KR_ROLE_USER, .trust_domain = "fleet.test"};
    const struct spec s = {USER("", USER_URI), .o = {"dev", "ops"}};
    X509 *x = make(&s);
    unsigned char *der = NULL;
    int n = i2d_X509(x, &der);

    (void)state;
    for (int i = 0; i < n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct kr_identity id;

            der[i] = (unsigned char)(der[i] ^ 1 << bit);
            if (kr_identity_judge(&id, kr_bytes_of(der, (size_t)n), &rules, NULL) == 0)
                assert_in_range(id.group_count, 0, 2);
            kr_identity_deinit(&id);
            der[i] = (unsigned char)(der[i] ^ 1 << bit);
        }
    }
    OPENSSL_free(der);
    X509_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge_when_usage_is_wrong_then_refused),
        cmocka_unit_test(test_judge_when_uri_is_not_exact_then_refused),
        cmocka_unit_test(test_judge_when_role_is_another_then_refused),
        cmocka_unit_test(test_judge_when_weak_then_refused),
        cmocka_unit_test(test_judge_when_subject_is_odd_then_refused),
        cmocka_unit_test(test_judge_when_accepted_then_all_facts_are_there),
        cmocka_unit_test(test_judge_when_agent_then_cluster_and_no_groups),
        cmocka_unit_test(test_judge_when_uri_without_cn_then_o_is_not_read),
        cmocka_unit_test(test_judge_when_groups_are_too_many_then_refused),
        cmocka_unit_test(test_judge_when_bytes_are_not_one_certificate_then_eproto),
        cmocka_unit_test(test_judge_when_a_byte_is_flipped_then_no_crash),
    };

    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
