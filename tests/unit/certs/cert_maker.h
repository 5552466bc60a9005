/* SPDX-License-Identifier: Apache-2.0 */
/* cert_maker: certificates for tests, made with OpenSSL from a row that says how each differs from
 * a good one. They sign themselves: the chain is TLS's business, not the judge's.
 * Its functions are static, for a test to include. */
#ifndef KR_TEST_CERT_MAKER_H
#define KR_TEST_CERT_MAKER_H

#include <openssl/ec.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "certs/identity.h"

#define HUB_URI "spiffe://fleet.test/hub/hub-1"
#define AGENT_URI "spiffe://fleet.test/cluster/edge-1/agent/a"
#define USER_URI "spiffe://fleet.test/user/alice"
#define HUB(name, ...) .what = name, .role = KR_ROLE_HUB, .uri = {__VA_ARGS__}
#define AGENT(name, ...) .what = name, .role = KR_ROLE_AGENT, .uri = {__VA_ARGS__}
#define USER(name, ...) .what = name, .role = KR_ROLE_USER, .uri = {__VA_ARGS__}
#define NONE "" /* leaves an extension out */

enum key_kind {
    P256,
    P384,
    P521,
    SECP256K1,
    P224,
    RSA_1024,
    RSA_2048,
    ED25519,
    KEY_KINDS,
};

struct spec { /* zero: what a good certificate has */
    const char *what;
    enum kr_role role;
    const char *uri[2];
    size_t uri_n;    /* bytes of uri[0] when it holds a NUL */
    const char *eku; /* NULL: what the role needs */
    const char *ku;  /* NULL: critical,digitalSignature */
    const char *bc;  /* NULL: critical,CA:FALSE */
    const char *cn;  /* "": none */
    const char *cn2;
    const char *o[3];
    int text_type; /* of the subject; 0: UTF-8 */
    size_t cn_n;   /* bytes of cn when it holds a NUL */
    enum key_kind key;
    const char *digest; /* NULL: SHA256 */
    int version;        /* 0: 3 */
    int extra; /* NID of an extension that is put in twice, or a critical unknown one (1) */
    const char *refusal; /* a part of the sentence; NULL: accepted */
};

static EVP_PKEY *keys[KEY_KINDS];

static int make_keys(void **state)
{
    static const char *const curves[] = {"P-256", "P-384", "P-521", "secp256k1", "P-224"};

    (void)state;
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
        keys[i] = EVP_EC_gen(curves[i]);
    keys[RSA_1024] = EVP_RSA_gen(1024);
    keys[RSA_2048] = EVP_RSA_gen(2048);
    keys[ED25519] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    for (size_t i = 0; i < KEY_KINDS; i++) {
        if (keys[i] == NULL)
            return -1;
    }
    return 0;
}

static int free_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < KEY_KINDS; i++)
        EVP_PKEY_free(keys[i]);
    return 0;
}

static void add_subject(X509 *x, int nid, const struct spec *s, const char *text, size_t n)
{
    int type = s->text_type != 0 ? s->text_type : V_ASN1_UTF8STRING;

    assert_int_equal(X509_NAME_add_entry_by_NID(X509_get_subject_name(x), nid, type,
                                                (const unsigned char *)text, (int)n, -1, 0),
                     1);
}

static void add_extension(X509 *x, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;

    if (value[0] == 0)
        return;
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(ext);
    assert_int_equal(X509_add_ext(x, ext, -1), 1);
    X509_EXTENSION_free(ext);
}

static void add_unknown_critical(X509 *x)
{
    ASN1_OBJECT *oid = OBJ_txt2obj("1.2.3.4.5.6.7", 1);
    ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
    X509_EXTENSION *ext;

    ASN1_OCTET_STRING_set(value, (const unsigned char *)"\x05\x00", 2);
    ext = X509_EXTENSION_create_by_OBJ(NULL, oid, 1, value);
    assert_int_equal(X509_add_ext(x, ext, -1), 1);
    X509_EXTENSION_free(ext);
    ASN1_OCTET_STRING_free(value);
    ASN1_OBJECT_free(oid);
}

static void add_uris(X509 *x, const struct spec *s)
{
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *dns = GENERAL_NAME_new();
    ASN1_IA5STRING *host = ASN1_IA5STRING_new();

    ASN1_STRING_set(host, "edge.test", -1);
    GENERAL_NAME_set0_value(dns, GEN_DNS, host); /* other kinds of names do not count */
    sk_GENERAL_NAME_push(names, dns);
    for (int i = 0; i < 2 && s->uri[i] != NULL; i++) {
        GENERAL_NAME *name = GENERAL_NAME_new();
        ASN1_IA5STRING *text = ASN1_IA5STRING_new();

        ASN1_STRING_set(text, s->uri[i], i == 0 && s->uri_n != 0 ? (int)s->uri_n : -1);
        GENERAL_NAME_set0_value(name, GEN_URI, text);
        sk_GENERAL_NAME_push(names, name);
    }
    assert_int_equal(X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT), 1);
    if (s->extra == NID_subject_alt_name)
        assert_int_equal(X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, X509V3_ADD_APPEND),
                         1);
    GENERAL_NAMES_free(names);
}

static void fill(X509 *x, const struct spec *s)
{
    const char *eku = s->role == KR_ROLE_HUB ? "serverAuth" : "clientAuth";

    if (s->cn == NULL || s->cn[0] != 0) {
        const char *cn = s->cn != NULL ? s->cn : "alice";

        add_subject(x, NID_commonName, s, cn, s->cn_n != 0 ? s->cn_n : strlen(cn));
    }
    if (s->cn2 != NULL)
        add_subject(x, NID_commonName, s, s->cn2, strlen(s->cn2));
    for (int i = 0; i < 3 && s->o[i] != NULL; i++)
        add_subject(x, NID_organizationName, s, s->o[i], strlen(s->o[i]));
    if (s->version == 1)
        return; /* has no extensions */
    add_extension(x, NID_basic_constraints, s->bc != NULL ? s->bc : "critical,CA:FALSE");
    add_extension(x, NID_key_usage, s->ku != NULL ? s->ku : "critical,digitalSignature");
    add_extension(x, NID_ext_key_usage, s->eku != NULL ? s->eku : eku);
    if (s->extra == NID_ext_key_usage)
        add_extension(x, NID_ext_key_usage, "serverAuth");
    if (s->extra == 1)
        add_unknown_critical(x);
    add_uris(x, s);
}

static X509 *make(const struct spec *s)
{
    EVP_PKEY *key = keys[s->key];
    X509 *x = X509_new();

    X509_set_version(x, s->version == 1 ? X509_VERSION_1 : X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 0x1f2e);
    ASN1_TIME_set(X509_getm_notBefore(x), 1700000000);
    ASN1_TIME_set(X509_getm_notAfter(x), 1800000000);
    X509_set_pubkey(x, key);
    fill(x, s);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    assert_true(X509_sign(x, key,
                          s->key == ED25519 ? NULL
                                            : EVP_get_digestbyname(
                                                  s->digest != NULL ? s->digest : "SHA256")) > 0);
    return x;
}

#endif
