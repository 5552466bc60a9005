/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/csr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/err.h"
#include "certs/ca.h"
#include "certs/identity.h"
#include "certs/store_file.h"

#define NOW_MS 1800000000123

/* A request signed by `signer` for the key of `subject`. */
static struct kr_buf request(EVP_PKEY *subject, EVP_PKEY *signer, const EVP_MD *md)
{
    struct kr_buf out = {.max = 1 << 16};
    X509_REQ *req = X509_REQ_new();
    unsigned char *der = NULL;
    int n;

    assert_int_equal(X509_REQ_set_pubkey(req, subject), 1);
    assert_true(X509_REQ_sign(req, signer, md) > 0);
    n = i2d_X509_REQ(req, &der);
    assert_true(n > 0);
    assert_int_equal(kr_buf_append(&out, kr_bytes_of(der, (size_t)n)), 0);
    OPENSSL_free(der);
    X509_REQ_free(req);
    return out;
}

static int check(EVP_PKEY *key, const EVP_MD *md)
{
    struct kr_buf der = request(key, key, md);
    uint8_t spki[32];
    int rc = kr_csr_check(kr_buf_bytes(&der), spki, NULL);

    kr_buf_deinit(&der);
    EVP_PKEY_free(key);
    return rc;
}

static void test_keys_that_are_strong_are_taken(void **state)
{
    (void)state;
    assert_int_equal(check(EVP_EC_gen("P-256"), EVP_sha256()), 0);
    assert_int_equal(check(EVP_EC_gen("P-384"), EVP_sha384()), 0);
    assert_int_equal(check(EVP_RSA_gen(3072), EVP_sha256()), 0);
    assert_int_equal(check(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), NULL), 0);
}

static void test_keys_that_are_weak_or_odd_are_denied(void **state)
{
    (void)state;
    assert_int_equal(check(EVP_RSA_gen(2048), EVP_sha256()), KR_EDENIED);
    assert_int_equal(check(EVP_EC_gen("P-521"), EVP_sha512()), KR_EDENIED);
    assert_int_equal(check(EVP_EC_gen("secp256k1"), EVP_sha256()), KR_EDENIED);
}

static void test_request_that_another_key_signed_is_refused(void **state)
{
    EVP_PKEY *mine = EVP_EC_gen("P-256");
    EVP_PKEY *yours = EVP_EC_gen("P-256");
    struct kr_buf der = request(yours, mine, EVP_sha256());
    uint8_t spki[32];

    (void)state;
    assert_int_equal(kr_csr_check(kr_buf_bytes(&der), spki, NULL), KR_EPROTO);
    kr_buf_deinit(&der);
    EVP_PKEY_free(mine);
    EVP_PKEY_free(yours);
}

static void test_request_that_is_cut_or_too_long_is_refused(void **state)
{
    struct kr_buf key = {0};
    struct kr_buf der = {.max = KR_CSR_MAX + 10};
    uint8_t spki[32];
    size_t whole;

    (void)state;
    assert_int_equal(kr_key_make(&key, NULL), 0);
    assert_int_equal(kr_csr_make(&der, kr_buf_bytes(&key), NULL), 0);
    whole = der.n;
    assert_int_equal(kr_csr_check(kr_buf_bytes(&der), spki, NULL), 0);
    for (size_t n = 0; n < whole; n++)
        assert_int_equal(kr_csr_check(kr_bytes_of(der.p, n), spki, NULL), KR_EPROTO);
    assert_int_equal(kr_buf_append(&der, KR_LIT("x")), 0);
    assert_int_equal(kr_csr_check(kr_buf_bytes(&der), spki, NULL), KR_EPROTO);
    while (der.n <= KR_CSR_MAX)
        assert_int_equal(kr_buf_append(&der, KR_LIT("x")), 0);
    assert_int_equal(kr_csr_check(kr_buf_bytes(&der), spki, NULL), KR_ETOOBIG);
    kr_buf_deinit(&der);
    kr_buf_cleanse(&key);
}

struct authority {
    struct kr_pem_pair root;
    struct kr_pem_pair second;
    struct kr_ca *ca;
    struct kr_ca *agent_ca;
};

static struct authority authority_make(void)
{
    struct authority a = {0};

    assert_int_equal(kr_ca_create_root(&a.root, "fleet.test", 10, NOW_MS, NULL), 0);
    assert_int_equal(kr_ca_load(&a.ca, kr_buf_bytes(&a.root.cert), kr_buf_bytes(&a.root.key), NULL,
                                NOW_MS, NULL),
                     0);
    assert_int_equal(kr_ca_create_agent_ca(a.ca, KR_CA_DAY_S, NOW_MS, &a.second, NULL), 0);
    assert_int_equal(kr_ca_load(&a.agent_ca, kr_buf_bytes(&a.second.cert),
                                kr_buf_bytes(&a.second.key), NULL, NOW_MS, NULL),
                     0);
    return a;
}

static void authority_end(struct authority *a)
{
    kr_ca_destroy(a->ca);
    kr_ca_destroy(a->agent_ca);
    kr_pem_pair_deinit(&a->root);
    kr_pem_pair_deinit(&a->second);
}

static void test_issue_for_a_request_gives_the_callers_names_and_its_key(void **state)
{
    struct kr_leaf leaf = {.role = KR_ROLE_AGENT, .name = "edge-1", .instance = "b"};
    struct kr_identity_rules rules = {KR_ROLE_AGENT, "fleet.test"};
    struct authority a = authority_make();
    struct kr_buf key = {0};
    struct kr_buf csr = {.max = KR_CSR_MAX};
    struct kr_buf chain = {0};
    struct kr_identity id;
    uint8_t spki[32];

    (void)state;
    assert_int_equal(kr_key_make(&key, NULL), 0);
    assert_int_equal(kr_csr_make(&csr, kr_buf_bytes(&key), NULL), 0);
    assert_int_equal(kr_csr_check(kr_buf_bytes(&csr), spki, NULL), 0);
    assert_int_equal(kr_ca_issue_csr(a.agent_ca, &leaf, kr_buf_bytes(&csr), NOW_MS, &chain, NULL),
                     0);
    assert_int_equal(kr_identity_judge_pem(&id, kr_buf_bytes(&chain), &rules, NULL), 0);
    assert_string_equal(id.name, "edge-1");
    assert_string_equal(id.instance, "b");
    assert_memory_equal(id.spki_sha256, spki, 32);
    assert_true(id.not_after_wall_ms <= NOW_MS + KR_CA_DAY_S * 1000); /* not beyond its CA */
    assert_int_equal(kr_pem_check_pair(kr_buf_bytes(&chain), kr_buf_bytes(&key), NULL), 0);
    assert_int_equal(kr_pem_check_chain(kr_buf_bytes(&chain), kr_buf_bytes(&a.root.cert), NULL), 0);
    kr_identity_deinit(&id);
    kr_buf_deinit(&chain);
    kr_buf_deinit(&csr);
    kr_buf_cleanse(&key);
    authority_end(&a);
}

static void test_chain_of_another_root_is_refused(void **state)
{
    struct authority a = authority_make();
    struct authority b = authority_make();

    (void)state;
    assert_int_equal(
        kr_pem_check_chain(kr_buf_bytes(&a.second.cert), kr_buf_bytes(&a.root.cert), NULL), 0);
    assert_int_equal(
        kr_pem_check_chain(kr_buf_bytes(&a.second.cert), kr_buf_bytes(&b.root.cert), NULL),
        KR_EDENIED);
    assert_int_equal(kr_pem_check_chain(KR_LIT("nothing"), kr_buf_bytes(&b.root.cert), NULL),
                     KR_ENOMEM);
    authority_end(&a);
    authority_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_that_are_strong_are_taken),
        cmocka_unit_test(test_keys_that_are_weak_or_odd_are_denied),
        cmocka_unit_test(test_request_that_another_key_signed_is_refused),
        cmocka_unit_test(test_request_that_is_cut_or_too_long_is_refused),
        cmocka_unit_test(test_issue_for_a_request_gives_the_callers_names_and_its_key),
        cmocka_unit_test(test_chain_of_another_root_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
