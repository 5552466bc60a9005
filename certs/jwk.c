/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/jwk.h"

#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "base/base64.h"
#include "base/err.h"
#include "base/json.h"

#define KID_MAX 256
#define RSA_BYTES_MIN 256
#define RSA_BYTES_MAX 1024
#define P256 32

struct key {
    char *kid;
    enum kr_jwt_alg alg;
    EVP_PKEY *pkey;
};

struct kr_jwks {
    size_t n;
    struct key keys[KR_JWKS_KEYS_MAX];
};

/* ---- one key ---- */

static bool member(const struct kr_json *jwk, const char *name, struct kr_buf *out)
{
    struct kr_bytes text;

    return kr_json_string(kr_json_get(jwk, name), &text) && kr_base64url_decode(out, text) == 0 &&
           out->n != 0;
}

static EVP_PKEY *from_params(const char *type, OSSL_PARAM_BLD *bld)
{
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(bld);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *pkey = NULL;

    if (params == NULL || ctx == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
        EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
        pkey = NULL;
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    return pkey;
}

/* Long moduli and exponents would make each check of a signature cost much. */
static EVP_PKEY *make_rsa(const struct kr_json *jwk)
{
    struct kr_buf n = {.max = RSA_BYTES_MAX + 8};
    struct kr_buf e = {.max = 16};
    OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
    BIGNUM *bn_n = NULL;
    BIGNUM *bn_e = NULL;
    EVP_PKEY *pkey = NULL;

    if (bld != NULL && member(jwk, "n", &n) && member(jwk, "e", &e) && n.n >= RSA_BYTES_MIN &&
        n.n <= RSA_BYTES_MAX && e.n <= 4) {
        bn_n = BN_bin2bn(n.p, (int)n.n, NULL);
        bn_e = BN_bin2bn(e.p, (int)e.n, NULL);
    }
    if (bn_n != NULL && bn_e != NULL && BN_num_bits(bn_n) >= 8 * RSA_BYTES_MIN && BN_is_odd(bn_n) &&
        BN_is_odd(bn_e) && !BN_is_one(bn_e) &&
        OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_N, bn_n) == 1 &&
        OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_E, bn_e) == 1)
        pkey = from_params("RSA", bld);
    BN_free(bn_n);
    BN_free(bn_e);
    OSSL_PARAM_BLD_free(bld);
    kr_buf_deinit(&n);
    kr_buf_deinit(&e);
    return pkey;
}

static EVP_PKEY *make_ec(const struct kr_json *jwk)
{
    const char *curve = kr_json_text(jwk, "crv");
    struct kr_buf x = {.max = P256 + 8};
    struct kr_buf y = {.max = P256 + 8};
    OSSL_PARAM_BLD *bld = OSSL_PARAM_BLD_new();
    uint8_t point[1 + 2 * P256] = {POINT_CONVERSION_UNCOMPRESSED};
    EVP_PKEY *pkey = NULL;

    if (bld != NULL && curve != NULL && strcmp(curve, "P-256") == 0 && member(jwk, "x", &x) &&
        member(jwk, "y", &y) && x.n == P256 && y.n == P256) {
        memcpy(point + 1, x.p, P256);
        memcpy(point + 1 + P256, y.p, P256);
        if (OSSL_PARAM_BLD_push_utf8_string(bld, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
            OSSL_PARAM_BLD_push_octet_string(bld, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point) ==
                1)
            pkey = from_params("EC", bld); /* refuses what is not on the curve */
    }
    OSSL_PARAM_BLD_free(bld);
    kr_buf_deinit(&x);
    kr_buf_deinit(&y);
    return pkey;
}

/* What a key may be used for, if it says so, must be this. */
static bool is_for(const struct kr_json *jwk, const char *alg)
{
    const char *use = kr_json_text(jwk, "use");
    const char *own = kr_json_text(jwk, "alg");
    const struct kr_json *ops = kr_json_get(jwk, "key_ops");
    bool verifies = ops == NULL;

    for (size_t i = 0; i < kr_json_len(ops); i++) {
        struct kr_bytes op;

        verifies =
            verifies || (kr_json_string(kr_json_at(ops, i), &op) && kr_bytes_is(op, "verify"));
    }
    return (use == NULL || strcmp(use, "sig") == 0) && (own == NULL || strcmp(own, alg) == 0) &&
           verifies;
}

/* False: an entry that we do not use. */
static bool make_key(const struct kr_json *jwk, struct key *out)
{
    const char *kty = kr_json_text(jwk, "kty");

    if (kty == NULL)
        return false;
    if (strcmp(kty, "RSA") == 0 && is_for(jwk, "RS256")) {
        out->alg = KR_JWT_RS256;
        out->pkey = make_rsa(jwk);
    } else if (strcmp(kty, "EC") == 0 && is_for(jwk, "ES256")) {
        out->alg = KR_JWT_ES256;
        out->pkey = make_ec(jwk);
    }
    ERR_clear_error();
    return out->pkey != NULL;
}

/* ---- the set ---- */

static const struct key *find(const struct kr_jwks *s, struct kr_bytes kid)
{
    for (size_t i = 0; i < s->n; i++) {
        if (kr_bytes_is(kid, s->keys[i].kid))
            return &s->keys[i];
    }
    return NULL;
}

static int add(struct kr_jwks *s, const struct kr_json *jwk, struct kr_note *why)
{
    struct kr_bytes kid;
    struct key key = {.kid = NULL};

    if (!kr_json_string(kr_json_get(jwk, "kid"), &kid) || kid.n == 0 || kid.n > KID_MAX ||
        !make_key(jwk, &key))
        return 0;
    if (find(s, kid) == NULL)
        key.kid = kr_bytes_dup(kid);
    if (key.kid == NULL) {
        EVP_PKEY_free(key.pkey);
        return find(s, kid) != NULL ? kr_note_set(why, KR_EPROTO, "a key id that is there twice")
                                    : kr_note_set(why, KR_ENOMEM, "out of memory");
    }
    s->keys[s->n++] = key;
    return 0;
}

static int add_all(struct kr_jwks *s, const struct kr_json *doc, struct kr_note *why)
{
    const struct kr_json *keys = kr_json_get(doc, "keys");
    int rc = 0;

    if (!kr_json_is_array(keys))
        return kr_note_set(why, KR_EPROTO, "no JSON Web Key Set");
    if (kr_json_len(keys) > KR_JWKS_KEYS_MAX)
        return kr_note_set(why, KR_ETOOBIG, "more than %d keys", KR_JWKS_KEYS_MAX);
    for (size_t i = 0; i < kr_json_len(keys) && rc == 0; i++)
        rc = add(s, kr_json_at(keys, i), why);
    if (rc == 0 && s->n == 0)
        rc = kr_note_set(why, KR_EPROTO,
                         "no key that can be used (RSA of 2048 bits or more, or EC P-256, with a "
                         "kid, for signatures)");
    return rc;
}

int kr_jwks_parse(struct kr_jwks **out, struct kr_bytes text, struct kr_note *why)
{
    struct kr_json *doc = NULL;
    struct kr_jwks *s;
    int rc;

    *out = NULL;
    if (text.n > KR_JWKS_MAX)
        return kr_note_set(why, KR_ETOOBIG, "a key set above %u bytes", KR_JWKS_MAX);
    rc = kr_json_parse(text, &doc, why);
    if (rc != 0)
        return rc;
    s = calloc(1, sizeof *s);
    rc = s != NULL ? add_all(s, doc, why) : kr_note_set(why, KR_ENOMEM, "out of memory");
    kr_json_destroy(doc);
    if (rc != 0)
        kr_jwks_destroy(s);
    else
        *out = s;
    return rc;
}

void kr_jwks_destroy(struct kr_jwks *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        free(s->keys[i].kid);
        EVP_PKEY_free(s->keys[i].pkey);
    }
    free(s);
}

size_t kr_jwks_count(const struct kr_jwks *s)
{
    return s->n;
}

bool kr_jwks_has(const struct kr_jwks *s, struct kr_bytes kid)
{
    return find(s, kid) != NULL;
}

/* ---- signatures ---- */

/* ES256 signs with r and s side by side (RFC 7518 section 3.4); OpenSSL wants them in DER. */
static int to_der(struct kr_bytes raw, uint8_t **der)
{
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw.p, P256, NULL);
    BIGNUM *s = BN_bin2bn(raw.p + P256, P256, NULL);
    int n = -1;

    if (sig != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(sig, r, s) == 1) {
        r = s = NULL; /* they are the signature's now */
        n = i2d_ECDSA_SIG(sig, der);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return n;
}

static bool check(EVP_PKEY *pkey, struct kr_bytes text, struct kr_bytes signature)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, pkey) == 1 &&
                EVP_DigestVerify(ctx, signature.p, signature.n, text.p, text.n) == 1;

    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return good;
}

int kr_jwks_verify(const struct kr_jwks *s, struct kr_bytes kid, enum kr_jwt_alg alg,
                   struct kr_bytes text, struct kr_bytes signature, struct kr_note *why)
{
    const struct key *key = find(s, kid);
    uint8_t *der = NULL;
    bool good = false;

    if (key == NULL)
        return kr_note_set(why, KR_ENOENT, "no key of that id");
    if (key->alg != alg)
        return kr_note_set(why, KR_EDENIED, "the key is for another algorithm");
    if (alg == KR_JWT_RS256) {
        good = check(key->pkey, text, signature);
    } else if (signature.n == (size_t)2 * P256) {
        int n = to_der(signature, &der);

        good = n > 0 && check(key->pkey, text, kr_bytes_of(der, (size_t)n));
        OPENSSL_free(der);
    }
    return good ? 0 : kr_note_set(why, KR_EDENIED, "the signature is not right");
}
