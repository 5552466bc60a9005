/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/csr.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/err.h"
#include "certs/csr_read.h"
#include "certs/x509_util.h"

#define RSA_BITS_MIN 3072
#define RSA_BITS_MAX 8192 /* larger ones only cost us time */
#define KEY_PEM_MAX 4096

static int no_password(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return -1;
}

static X509_REQ *read_request(struct kr_bytes in)
{
    const unsigned char *p = in.p;
    X509_REQ *req;
    BIO *bio;

    if (in.p[0] == 0x30) { /* a SEQUENCE */
        req = d2i_X509_REQ(NULL, &p, (long)in.n);
        if (req != NULL && p != in.p + in.n) {
            X509_REQ_free(req);
            req = NULL;
        }
        return req;
    }
    bio = BIO_new_mem_buf(in.p, (int)in.n);
    req = bio != NULL ? PEM_read_bio_X509_REQ(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    return req;
}

static int check_key(EVP_PKEY *key, struct kr_note *why)
{
    char group[32] = "";

    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519:
        return 0;
    case EVP_PKEY_RSA:
        if (EVP_PKEY_get_bits(key) >= RSA_BITS_MIN && EVP_PKEY_get_bits(key) <= RSA_BITS_MAX)
            return 0;
        break;
    case EVP_PKEY_EC:
        EVP_PKEY_get_group_name(key, group, sizeof group, NULL);
        if (OBJ_sn2nid(group) == NID_X9_62_prime256v1 || OBJ_sn2nid(group) == NID_secp384r1)
            return 0;
        break;
    default:
        break;
    }
    return kr_note_set(why, KR_EDENIED,
                       "the request's key is none of P-256, P-384, RSA of 3072 to 8192 bits, "
                       "Ed25519");
}

int kr_csr_key(EVP_PKEY **out, struct kr_bytes csr, struct kr_note *why)
{
    X509_REQ *req;
    EVP_PKEY *key;
    int rc;

    *out = NULL;
    if (csr.n == 0)
        return kr_note_set(why, KR_EPROTO, "no certificate request");
    if (csr.n > KR_CSR_MAX)
        return kr_note_set(why, KR_ETOOBIG, "a certificate request of %zu bytes", csr.n);
    ERR_clear_error();
    req = read_request(csr);
    key = req != NULL ? X509_REQ_get_pubkey(req) : NULL;
    if (key == NULL) {
        X509_REQ_free(req);
        return kr_x509_fail(why, KR_EPROTO, "malformed certificate request");
    }
    rc = check_key(key, why); /* before anything is computed with it */
    if (rc == 0 && X509_REQ_verify(req, key) != 1)
        rc = kr_x509_fail(why, KR_EPROTO, "the request is not signed by its own key");
    X509_REQ_free(req);
    if (rc == 0)
        *out = key;
    else
        EVP_PKEY_free(key);
    return rc;
}

int kr_csr_check(struct kr_bytes csr, uint8_t spki_sha256[32], struct kr_note *why)
{
    unsigned char *der = NULL;
    EVP_PKEY *key;
    int rc = kr_csr_key(&key, csr, why);
    int n;

    if (rc != 0)
        return rc;
    n = i2d_PUBKEY(key, &der);
    if (n <= 0 || EVP_Digest(der, (size_t)n, spki_sha256, NULL, EVP_sha256(), NULL) != 1)
        rc = kr_x509_fail(why, KR_ENOMEM, "cannot hash the key");
    OPENSSL_free(der);
    EVP_PKEY_free(key);
    return rc;
}

int kr_key_make(struct kr_buf *key_pem, struct kr_note *why)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *bio = BIO_new(BIO_s_secmem()); /* wiped when freed */
    char *p = NULL;
    int rc = KR_ENOMEM;
    long n = 0;

    if (key != NULL && bio != NULL &&
        PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1)
        n = BIO_get_mem_data(bio, &p);
    if (n > 0) {
        kr_buf_init(key_pem, KEY_PEM_MAX);
        rc = kr_buf_append(key_pem, kr_bytes_of(p, (size_t)n));
    }
    BIO_free(bio);
    EVP_PKEY_free(key);
    return rc == 0 ? 0 : kr_x509_fail(why, rc, "cannot make a key");
}

int kr_csr_make(struct kr_buf *der, struct kr_bytes key_pem, struct kr_note *why)
{
    X509_REQ *req = X509_REQ_new();
    unsigned char *p = NULL;
    EVP_PKEY *key = NULL;
    int rc = kr_key_from_pem(&key, key_pem, why);
    int n = 0;

    if (rc == 0 &&
        (req == NULL || X509_REQ_set_version(req, X509_REQ_VERSION_1) != 1 ||
         X509_REQ_set_pubkey(req, key) != 1 || X509_REQ_sign(req, key, EVP_sha256()) <= 0))
        rc = kr_x509_fail(why, KR_ENOMEM, "cannot make a certificate request");
    if (rc == 0)
        n = i2d_X509_REQ(req, &p);
    if (rc == 0 && n <= 0)
        rc = kr_x509_fail(why, KR_ENOMEM, "cannot write a certificate request");
    if (rc == 0)
        rc = kr_buf_append(der, kr_bytes_of(p, (size_t)n));
    OPENSSL_free(p);
    X509_REQ_free(req);
    EVP_PKEY_free(key);
    return rc;
}
