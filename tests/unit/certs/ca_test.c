/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/ca.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/err.h"
#include "certs/identity.h"

#define NOW_MS 1800000000123
#define DAY_MS 86400000LL

struct world {
    struct kr_pem_pair root;
    struct kr_ca *ca;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    if (w == NULL || kr_ca_create_root(&w->root, "fleet.test", 10, NOW_MS, NULL) != 0 ||
        kr_ca_load(&w->ca, kr_buf_bytes(&w->root.cert), kr_buf_bytes(&w->root.key), NULL, NOW_MS,
                   NULL) != 0)
        return -1;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    kr_ca_destroy(w->ca);
    kr_ca_destroy(NULL);
    kr_pem_pair_deinit(&w->root);
    free(w);
    return 0;
}

static X509 *read_cert(const struct kr_buf *pem)
{
    BIO *bio = BIO_new_mem_buf(pem->p, (int)pem->n);
    X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    BIO_free(bio);
    assert_non_null(x);
    return x;
}

/* What TLS will do: the chain, strictly, for a purpose, at a time. */
static int verify(const struct kr_buf *root, const struct kr_buf *leaf, int purpose, int64_t at_ms)
{
    X509 *r = read_cert(root);
    X509 *x = read_cert(leaf);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509_VERIFY_PARAM *param;
    int rc;

    X509_STORE_add_cert(store, r);
    X509_STORE_CTX_init(ctx, store, x, NULL);
    param = X509_STORE_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT | X509_V_FLAG_CHECK_SS_SIGNATURE);
    X509_VERIFY_PARAM_set_auth_level(param, 2);
    X509_VERIFY_PARAM_set_purpose(param, purpose);
    X509_VERIFY_PARAM_set_time(param, (time_t)(at_ms / 1000));
    rc = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    X509_free(x);
    X509_free(r);
    return rc;
}

static void test_root_when_made_then_profile_holds(void **state)
{
    struct world *w = *state;
    X509 *x = read_cert(&w->root.cert);

    assert_int_equal(X509_check_ca(x), 1);
    assert_int_equal(X509_get_pathlen(x), 1);
    assert_int_equal(X509_get_key_usage(x), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(x)), 384);
    assert_non_null(X509_get0_subject_key_id(x));
    assert_int_equal(ASN1_INTEGER_get(X509_get0_serialNumber(x)), -1); /* far too large */
    assert_string_equal(kr_ca_trust_domain(w->ca), "fleet.test");
    assert_int_equal(verify(&w->root.cert, &w->root.cert, X509_PURPOSE_ANY, NOW_MS), X509_V_OK);
    assert_int_equal(verify(&w->root.cert, &w->root.cert, X509_PURPOSE_ANY, NOW_MS - 299000),
                     X509_V_OK);
    assert_int_equal(verify(&w->root.cert, &w->root.cert, X509_PURPOSE_ANY, NOW_MS + 3651 * DAY_MS),
                     X509_V_ERR_CERT_HAS_EXPIRED);
    X509_free(x);
}

static void test_root_when_input_is_bad_then_einval(void **state)
{
    struct kr_pem_pair out;

    (void)state;
    assert_int_equal(kr_ca_create_root(&out, "Fleet.test", 10, NOW_MS, NULL), KR_EINVAL);
    assert_int_equal(kr_ca_create_root(&out, "", 10, NOW_MS, NULL), KR_EINVAL);
    assert_int_equal(kr_ca_create_root(&out, "a/b", 10, NOW_MS, NULL), KR_EINVAL);
    assert_int_equal(kr_ca_create_root(&out, "a", 0, NOW_MS, NULL), KR_EINVAL);
    assert_int_equal(kr_ca_create_root(&out, "a", 31, NOW_MS, NULL), KR_EINVAL);
    assert_null(out.cert.p);
    assert_null(out.key.p);
}

static void test_issue_when_hub_then_names_and_server_usage(void **state)
{
    static const char *const dns[] = {"localhost", "*.hub.test", "hub.test"};
    static const char *const ip[] = {"127.0.0.1", "::1"};
    struct kr_leaf leaf = {
        .role = KR_ROLE_HUB, .name = "hub-1", .dns = dns, .dns_count = 3, .ip = ip, .ip_count = 2};
    struct world *w = *state;
    struct kr_pem_pair out;
    X509 *x;

    assert_int_equal(kr_ca_issue(w->ca, &leaf, NOW_MS, &out, NULL), 0);
    assert_int_equal(verify(&w->root.cert, &out.cert, X509_PURPOSE_SSL_SERVER, NOW_MS), X509_V_OK);
    assert_int_equal(verify(&w->root.cert, &out.cert, X509_PURPOSE_SSL_CLIENT, NOW_MS),
                     X509_V_ERR_INVALID_PURPOSE);
    assert_int_equal(
        verify(&w->root.cert, &out.cert, X509_PURPOSE_SSL_SERVER, NOW_MS + 90 * DAY_MS + 1000),
        X509_V_ERR_CERT_HAS_EXPIRED);
    x = read_cert(&out.cert);
    assert_int_equal(X509_check_host(x, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(x, "edge-1.hub.test", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(x, "a.b.hub.test", 0, 0, NULL), 0);
    assert_int_equal(X509_check_host(x, "hub-1", 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL), 0);
    assert_int_equal(X509_check_ip_asc(x, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(x, "0:0::1", 0), 1);
    assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(x)), 256);
    X509_free(x);
    assert_int_equal(kr_pem_check_pair(kr_buf_bytes(&out.cert), kr_buf_bytes(&out.key), NULL), 0);
    kr_pem_pair_deinit(&out);
}

static void test_issue_when_hub_has_no_names_then_its_own(void **state)
{
    struct kr_leaf leaf = {.role = KR_ROLE_HUB, .name = "hub.test"};
    struct world *w = *state;
    struct kr_pem_pair out;
    X509 *x;

    assert_int_equal(kr_ca_issue(w->ca, &leaf, NOW_MS, &out, NULL), 0);
    x = read_cert(&out.cert);
    assert_int_equal(X509_check_host(x, "hub.test", 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL),
                     1);
    X509_free(x);
    kr_pem_pair_deinit(&out);
}

static void test_issue_when_agent_then_the_judge_knows_it(void **state)
{
    const struct kr_identity_rules rules = {.role = KR_ROLE_AGENT, .trust_domain = "fleet.test"};
    struct kr_leaf leaf = {.role = KR_ROLE_AGENT, .name = "edge-1", .instance = "b"};
    struct world *w = *state;
    struct kr_pem_pair out;
    struct kr_identity id;

    assert_int_equal(kr_ca_issue(w->ca, &leaf, NOW_MS, &out, NULL), 0);
    assert_int_equal(verify(&w->root.cert, &out.cert, X509_PURPOSE_SSL_CLIENT, NOW_MS), X509_V_OK);
    assert_int_equal(kr_identity_judge_pem(&id, kr_buf_bytes(&out.cert), &rules, NULL), 0);
    assert_string_equal(id.name, "edge-1");
    assert_string_equal(id.instance, "b");
    assert_int_equal(id.not_before_wall_ms, NOW_MS / 1000 * 1000 - 300000);
    assert_int_equal(id.not_after_wall_ms, NOW_MS / 1000 * 1000 + 30 * DAY_MS);
    kr_identity_deinit(&id);
    kr_pem_pair_deinit(&out);
}

static void test_issue_when_user_then_groups_in_order(void **state)
{
    static const char *const groups[] = {"dev", "ops:x", "größe"};
    const struct kr_identity_rules rules = {.role = KR_ROLE_USER, .trust_domain = "fleet.test"};
    struct kr_leaf leaf = {.role = KR_ROLE_USER,
                           .name = "alice",
                           .groups = groups,
                           .group_count = 3,
                           .lifetime_s = KR_CA_HOUR_S};
    struct world *w = *state;
    struct kr_pem_pair out;
    struct kr_identity id;

    assert_int_equal(kr_ca_issue(w->ca, &leaf, NOW_MS, &out, NULL), 0);
    assert_int_equal(kr_identity_judge_pem(&id, kr_buf_bytes(&out.cert), &rules, NULL), 0);
    assert_string_equal(id.domain, "fleet.test");
    assert_string_equal(id.name, "alice");
    assert_int_equal(id.group_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(id.groups[i], groups[i]);
    assert_int_equal(id.not_after_wall_ms, NOW_MS / 1000 * 1000 + 3600000);
    kr_identity_deinit(&id);
    kr_pem_pair_deinit(&out);
}

static void test_issue_when_name_fits_no_uri_then_classic_user(void **state)
{
    const struct kr_identity_rules rules = {.role = KR_ROLE_USER, .trust_domain = "fleet.test"};
    struct kr_leaf leaf = {.role = KR_ROLE_USER, .name = "alice@example.com"};
    struct world *w = *state;
    struct kr_pem_pair out;
    struct kr_identity id;

    assert_int_equal(kr_ca_issue(w->ca, &leaf, NOW_MS, &out, NULL), 0);
    assert_int_equal(kr_identity_judge_pem(&id, kr_buf_bytes(&out.cert), &rules, NULL), 0);
    assert_string_equal(id.domain, "");
    assert_string_equal(id.name, "alice@example.com");
    kr_identity_deinit(&id);
    kr_pem_pair_deinit(&out);
}

static void test_issue_when_twice_then_serial_and_key_differ(void **state)
{
    const struct kr_identity_rules rules = {.role = KR_ROLE_AGENT};
    struct kr_leaf leaf = {.role = KR_ROLE_AGENT, .name = "edge-1", .instance = "a"};
    struct world *w = *state;
    struct kr_identity id[2];

    for (int i = 0; i < 2; i++) {
        struct kr_pem_pair out;

        assert_int_equal(kr_ca_issue(w->ca, &leaf, NOW_MS, &out, NULL), 0);
        assert_int_equal(kr_identity_judge_pem(&id[i], kr_buf_bytes(&out.cert), &rules, NULL), 0);
        kr_pem_pair_deinit(&out);
    }
    assert_string_not_equal(id[0].serial, id[1].serial);
    assert_memory_not_equal(id[0].spki_sha256, id[1].spki_sha256, 32);
    kr_identity_deinit(&id[0]);
    kr_identity_deinit(&id[1]);
}

static void test_issue_when_it_cannot_be_then_nothing(void **state)
{
    static const char *const upper[] = {"Hub.test"};
    static const char *const star[] = {"*.test"};
    static const char *const inner[] = {"a.*.test"};
    static const char *const url[] = {"https://hub.test"};
    static const char *const no_ip[] = {"1.2.3"};
    static const char *const masters[] = {"system:masters"};
    static const char *const empty[] = {""};
    static const char *const one[] = {"dev"};
    static const struct {
        struct kr_leaf leaf;
        int rc;
    } rows[] = {
        {{.role = KR_ROLE_HUB, .name = ""}, KR_EINVAL},
        {{.role = KR_ROLE_HUB, .name = "a/b"}, KR_EINVAL},
        {{.role = KR_ROLE_HUB, .name = "Hub_1"}, KR_EINVAL}, /* no DNS name, and none was given */
        {{.role = KR_ROLE_HUB, .name = "h", .dns = upper, .dns_count = 1}, KR_EINVAL},
        {{.role = KR_ROLE_HUB, .name = "h", .dns = star, .dns_count = 1}, KR_EINVAL},
        {{.role = KR_ROLE_HUB, .name = "h", .dns = inner, .dns_count = 1}, KR_EINVAL},
        {{.role = KR_ROLE_HUB, .name = "h", .dns = url, .dns_count = 1}, KR_EINVAL},
        {{.role = KR_ROLE_HUB, .name = "h", .ip = no_ip, .ip_count = 1}, KR_EINVAL},
        {{.role = KR_ROLE_HUB, .name = "h", .groups = one, .group_count = 1}, KR_EINVAL},
        {{.role = KR_ROLE_HUB, .name = "h", .lifetime_s = 826 * KR_CA_DAY_S}, KR_EINVAL},
        {{.role = KR_ROLE_AGENT, .name = "e"}, KR_EINVAL},
        {{.role = KR_ROLE_AGENT, .name = "E", .instance = "a"}, KR_EINVAL},
        {{.role = KR_ROLE_AGENT, .name = "e", .instance = "a/b"}, KR_EINVAL},
        {{.role = KR_ROLE_AGENT, .name = "e", .instance = "a", .dns = one, .dns_count = 1},
         KR_EINVAL},
        {{.role = KR_ROLE_AGENT, .name = "e", .instance = "a", .lifetime_s = 3599}, KR_EINVAL},
        {{.role = KR_ROLE_AGENT, .name = "e", .instance = "a", .lifetime_s = 91 * KR_CA_DAY_S},
         KR_EINVAL},
        {{.role = KR_ROLE_USER, .name = "system:admin"}, KR_EDENIED},
        {{.role = KR_ROLE_USER, .name = "a\nb"}, KR_EDENIED},
        {{.role = KR_ROLE_USER, .name = "a", .groups = masters, .group_count = 1}, KR_EDENIED},
        {{.role = KR_ROLE_USER, .name = "a", .groups = empty, .group_count = 1}, KR_EDENIED},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kr_pem_pair out;
        struct kr_note why = {""};
        int rc = kr_ca_issue(w->ca, &rows[i].leaf, NOW_MS, &out, &why);

        if (rc != rows[i].rc)
            fail_msg("row %zu: %d %s", i, rc, why.text);
        assert_int_not_equal(why.text[0], 0);
        assert_null(out.cert.p);
        assert_null(out.key.p);
    }
}

static void test_issue_when_it_would_outlive_the_ca_then_einval(void **state)
{
    struct kr_leaf leaf = {.role = KR_ROLE_AGENT, .name = "e", .instance = "a"};
    struct world *w = *state;
    struct kr_pem_pair out;
    struct kr_note why;
    int64_t late = NOW_MS + (3650 - 29) * DAY_MS;

    assert_int_equal(kr_ca_issue(w->ca, &leaf, late, &out, &why), KR_EINVAL);
    assert_non_null(strstr(why.text, "outlive"));
    leaf.lifetime_s = 20 * KR_CA_DAY_S;
    assert_int_equal(kr_ca_issue(w->ca, &leaf, late, &out, &why), 0);
    kr_pem_pair_deinit(&out);
}

static void test_load_when_ca_is_unusable_then_refused(void **state)
{
    struct kr_leaf leaf = {.role = KR_ROLE_HUB, .name = "hub.test"};
    struct world *w = *state;
    struct kr_bytes cert = kr_buf_bytes(&w->root.cert);
    struct kr_bytes key = kr_buf_bytes(&w->root.key);
    struct kr_pem_pair hub;
    struct kr_ca *ca;

    assert_int_equal(kr_ca_issue(w->ca, &leaf, NOW_MS, &hub, NULL), 0);
    assert_int_equal(
        kr_ca_load(&ca, kr_buf_bytes(&hub.cert), kr_buf_bytes(&hub.key), NULL, NOW_MS, NULL),
        KR_EPROTO);
    assert_int_equal(kr_ca_load(&ca, cert, kr_buf_bytes(&hub.key), NULL, NOW_MS, NULL), KR_EPROTO);
    assert_int_equal(kr_ca_load(&ca, key, cert, NULL, NOW_MS, NULL), KR_EPROTO);
    assert_int_equal(kr_ca_load(&ca, KR_LIT(""), key, NULL, NOW_MS, NULL), KR_EPROTO);
    assert_int_equal(kr_ca_load(&ca, cert, key, NULL, NOW_MS + 4000 * DAY_MS, NULL), KR_EPROTO);
    assert_int_equal(kr_ca_load(&ca, cert, key, NULL, NOW_MS - DAY_MS, NULL), KR_EPROTO);
    assert_int_equal(kr_ca_load(&ca, cert, key, "other.test", NOW_MS, NULL), KR_EINVAL);
    assert_null(ca);
    assert_int_equal(kr_ca_load(&ca, cert, key, "fleet.test", NOW_MS, NULL), 0);
    kr_ca_destroy(ca);
    kr_pem_pair_deinit(&hub);
}

static void test_load_when_key_is_encrypted_then_refused_without_a_prompt(void **state)
{
    struct world *w = *state;
    BIO *in = BIO_new_mem_buf(w->root.key.p, (int)w->root.key.n);
    BIO *out = BIO_new(BIO_s_mem());
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    struct kr_ca *ca;
    char *p;
    long n;

    PEM_write_bio_PKCS8PrivateKey(out, key, EVP_aes_128_cbc(), "pass", 4, NULL, NULL);
    n = BIO_get_mem_data(out, &p);
    assert_true(n > 0 && strstr(p, "ENCRYPTED") != NULL);
    assert_int_equal(
        kr_ca_load(&ca, kr_buf_bytes(&w->root.cert), kr_bytes_of(p, (size_t)n), NULL, NOW_MS, NULL),
        KR_EPROTO);
    EVP_PKEY_free(key);
    BIO_free(in);
    BIO_free(out);
}

static void test_check_pair_when_key_is_another_then_eproto(void **state)
{
    struct kr_leaf leaf = {.role = KR_ROLE_USER, .name = "alice"};
    struct world *w = *state;
    struct kr_pem_pair out;
    struct kr_note why;

    assert_int_equal(kr_ca_issue(w->ca, &leaf, NOW_MS, &out, NULL), 0);
    assert_int_equal(kr_pem_check_pair(kr_buf_bytes(&out.cert), kr_buf_bytes(&w->root.key), &why),
                     KR_EPROTO);
    assert_non_null(strstr(why.text, "does not belong"));
    assert_int_equal(kr_pem_check_ca(kr_buf_bytes(&w->root.cert), NULL), 0);
    assert_int_equal(kr_pem_check_ca(kr_buf_bytes(&out.cert), NULL), KR_EPROTO);
    kr_pem_pair_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root_when_made_then_profile_holds),
        cmocka_unit_test(test_root_when_input_is_bad_then_einval),
        cmocka_unit_test(test_issue_when_hub_then_names_and_server_usage),
        cmocka_unit_test(test_issue_when_hub_has_no_names_then_its_own),
        cmocka_unit_test(test_issue_when_agent_then_the_judge_knows_it),
        cmocka_unit_test(test_issue_when_user_then_groups_in_order),
        cmocka_unit_test(test_issue_when_name_fits_no_uri_then_classic_user),
        cmocka_unit_test(test_issue_when_twice_then_serial_and_key_differ),
        cmocka_unit_test(test_issue_when_it_cannot_be_then_nothing),
        cmocka_unit_test(test_issue_when_it_would_outlive_the_ca_then_einval),
        cmocka_unit_test(test_load_when_ca_is_unusable_then_refused),
        cmocka_unit_test(test_load_when_key_is_encrypted_then_refused_without_a_prompt),
        cmocka_unit_test(test_check_pair_when_key_is_another_then_eproto),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
