/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and signed tokens, good and bad, for tests of jwk.c and jwt.c. */
#ifndef TESTS_UNIT_CERTS_TOKEN_MAKER_H
#define TESTS_UNIT_CERTS_TOKEN_MAKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "base/base64.h"
#include "certs/jwt.h"

#define ISSUER "https://login.example.test"
#define AUDIENCE "kuberelay"
#define NOW_S 1700000000

struct maker {
    EVP_PKEY *rsa;
    EVP_PKEY *ec;
};

static inline void maker_init(struct maker *m)
{
    m->rsa = EVP_RSA_gen(2048);
    m->ec = EVP_EC_gen("P-256");
    assert_non_null(m->rsa);
    assert_non_null(m->ec);
}

static inline void maker_deinit(struct maker *m)
{
    EVP_PKEY_free(m->rsa);
    EVP_PKEY_free(m->ec);
}

static inline void put_url(struct kr_buf *out, const void *p, size_t n)
{
    size_t from = out->n;

    assert_int_equal(kr_base64_encode(out, kr_bytes_of(p, n), false), 0);
    for (size_t i = from; i < out->n; i++)
        out->p[i] = out->p[i] == '+' ? '-' : out->p[i] == '/' ? '_' : out->p[i];
}

static inline void put_number(struct kr_buf *out, const EVP_PKEY *key, const char *name,
                              size_t size)
{
    BIGNUM *n = NULL;
    uint8_t raw[1024];

    assert_int_equal(EVP_PKEY_get_bn_param(key, name, &n), 1);
    if (size == 0)
        size = (size_t)BN_num_bytes(n);
    assert_int_equal(BN_bn2binpad(n, raw, (int)size), (int)size);
    put_url(out, raw, size);
    BN_free(n);
}

/* An RSA entry; `more` is members with a comma behind them. */
static inline void put_rsa(struct kr_buf *out, const EVP_PKEY *key, const char *kid,
                           const char *more)
{
    kr_buf_printf(out, "{\"kty\":\"RSA\",%s\"kid\":\"%s\",\"e\":\"", more, kid);
    put_number(out, key, OSSL_PKEY_PARAM_RSA_E, 0);
    kr_buf_append_str(out, "\",\"n\":\"");
    put_number(out, key, OSSL_PKEY_PARAM_RSA_N, 0);
    kr_buf_append_str(out, "\"}");
}

static inline void put_ec(struct kr_buf *out, const EVP_PKEY *key, const char *kid,
                          const char *more)
{
    kr_buf_printf(out, "{\"kty\":\"EC\",\"crv\":\"P-256\",%s\"kid\":\"%s\",\"x\":\"", more, kid);
    put_number(out, key, OSSL_PKEY_PARAM_EC_PUB_X, 32);
    kr_buf_append_str(out, "\",\"y\":\"");
    put_number(out, key, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
    kr_buf_append_str(out, "\"}");
}

/* Both keys: kid "r" and "e". */
static inline struct kr_jwks *maker_jwks(const struct maker *m)
{
    struct kr_buf text = {.max = KR_JWKS_MAX};
    struct kr_note why = {""};
    struct kr_jwks *keys;

    kr_buf_append_str(&text, "{\"keys\":[");
    put_rsa(&text, m->rsa, "r", "\"use\":\"sig\",\"alg\":\"RS256\",");
    kr_buf_append_str(&text, ",");
    put_ec(&text, m->ec, "e", "");
    kr_buf_append_str(&text, "]}");
    if (kr_jwks_parse(&keys, kr_buf_bytes(&text), &why) != 0)
        fail_msg("%s", why.text);
    kr_buf_deinit(&text);
    return keys;
}

static inline void put_signature(struct kr_buf *out, EVP_PKEY *key, struct kr_bytes text)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    uint8_t raw[1024];
    size_t n = sizeof raw;

    assert_int_equal(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(ctx, raw, &n, text.p, text.n), 1);
    EVP_MD_CTX_free(ctx);
    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC) {
        const uint8_t *at = raw;
        ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &at, (long)n);

        assert_non_null(sig);
        BN_bn2binpad(ECDSA_SIG_get0_r(sig), raw, 32);
        BN_bn2binpad(ECDSA_SIG_get0_s(sig), raw + 32, 32);
        ECDSA_SIG_free(sig);
        n = 64;
    }
    put_url(out, raw, n);
}

/* A token of that header and those claims, signed by that key. Free it. */
static inline char *make_token(EVP_PKEY *key, const char *header, const char *claims)
{
    struct kr_buf out = {.max = 1 << 20};
    char *signed_text;

    put_url(&out, header, strlen(header));
    kr_buf_append_str(&out, ".");
    put_url(&out, claims, strlen(claims));
    signed_text = kr_bytes_dup(kr_buf_bytes(&out));
    kr_buf_append_str(&out, ".");
    put_signature(&out, key, kr_bytes_str(signed_text));
    free(signed_text);
    kr_buf_append(&out, kr_bytes_of("", 1));
    return (char *)out.p;
}

#endif
