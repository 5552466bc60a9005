/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/x509_util.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <time.h>

#include "base/err.h"

#define CERTS_MAX 1000

int kr_x509_fail(struct kr_note *why, int code, const char *what)
{
    unsigned long e = ERR_peek_last_error();
    const char *reason = e != 0 ? ERR_reason_error_string(e) : NULL;

    ERR_clear_error();
    if (reason == NULL)
        return kr_note_set(why, code, "%s", what);
    return kr_note_set(why, code, "%s: %s", what, reason);
}

/* Without this OpenSSL would ask for a pass phrase on the terminal. */
static int no_passphrase(char *buf, int size, int rwflag, void *user)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    (void)user;
    return -1;
}

static BIO *open_text(struct kr_bytes text)
{
    if (text.n == 0 || text.n > INT_MAX)
        return NULL;
    return BIO_new_mem_buf(text.p, (int)text.n);
}

int kr_x509_from_pem(X509 **out, struct kr_bytes pem, struct kr_note *why)
{
    BIO *bio = open_text(pem);

    ERR_clear_error();
    *out = bio != NULL ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (*out == NULL)
        return kr_x509_fail(why, KR_EPROTO, "no certificate in PEM form");
    return 0;
}

int kr_x509_from_der(X509 **out, struct kr_bytes der, struct kr_note *why)
{
    const unsigned char *p = der.p;

    *out = NULL;
    if (der.n == 0 || der.n > LONG_MAX)
        return kr_note_set(why, KR_EPROTO, "no certificate");
    ERR_clear_error();
    *out = d2i_X509(NULL, &p, (long)der.n);
    if (*out == NULL)
        return kr_x509_fail(why, KR_EPROTO, "the certificate is malformed");
    if (p != der.p + der.n) {
        X509_free(*out);
        *out = NULL;
        return kr_note_set(why, KR_EPROTO, "there are bytes behind the certificate");
    }
    return 0;
}

int kr_key_from_pem(EVP_PKEY **out, struct kr_bytes pem, struct kr_note *why)
{
    BIO *bio = open_text(pem);

    ERR_clear_error();
    *out = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (*out == NULL)
        return kr_x509_fail(why, KR_EPROTO, "no private key in PEM form (unencrypted)");
    return 0;
}

bool kr_x509_time_ms(const ASN1_TIME *t, int64_t *out_wall_ms)
{
    struct tm tm;

    if (t == NULL || ASN1_TIME_to_tm(t, &tm) != 1)
        return false;
    *out_wall_ms = (int64_t)timegm(&tm) * 1000;
    return true;
}

struct kr_bytes kr_x509_bytes(const ASN1_STRING *s)
{
    int n = ASN1_STRING_length(s);

    return kr_bytes_of(ASN1_STRING_get0_data(s), n > 0 ? (size_t)n : 0);
}

bool kr_x509_serial(const X509 *x, char out[41])
{
    BIGNUM *bn = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
    uint8_t raw[20];
    int n;

    out[0] = 0;
    if (bn == NULL || BN_is_negative(bn) || BN_num_bytes(bn) > (int)sizeof raw) {
        BN_free(bn);
        return false;
    }
    n = BN_bn2bin(bn, raw);
    BN_free(bn);
    for (int i = 0; i < n; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", raw[i]);
    return true;
}

bool kr_x509_spki_sha256(const X509 *x, uint8_t out[32])
{
    /* Not X509_pubkey_digest: that hashes the bare key without its algorithm. */
    unsigned char *der = NULL;
    int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
    int ok;

    if (n <= 0)
        return false;
    ok = EVP_Digest(der, (size_t)n, out, NULL, EVP_sha256(), NULL);
    OPENSSL_free(der);
    return ok == 1;
}

int kr_x509_only_uri(const X509 *x, GENERAL_NAMES **names, struct kr_bytes *out,
                     struct kr_note *why)
{
    int found = -1; /* OpenSSL: -1 absent, -2 more than one extension, else it is there */
    int uris = 0;

    *out = (struct kr_bytes){NULL, 0};
    *names = X509_get_ext_d2i(x, NID_subject_alt_name, &found, NULL);
    if (*names == NULL && found == -1)
        return 0;
    if (*names == NULL)
        return kr_x509_fail(why, KR_EDENIED,
                            found == -2 ? "the certificate has subjectAltName twice"
                                        : "the certificate's subjectAltName is malformed");
    for (int i = 0; i < sk_GENERAL_NAME_num(*names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(*names, i);

        if (name->type != GEN_URI)
            continue;
        uris++;
        *out = kr_x509_bytes(name->d.uniformResourceIdentifier);
        if (out->p == NULL)
            *out = KR_LIT(""); /* an empty URI is still a URI */
    }
    if (uris > 1)
        return kr_note_set(why, KR_EDENIED, "the certificate has %d URI names; one is allowed",
                           uris);
    return 0;
}

STACK_OF(X509) * kr_x509_all_from_pem(struct kr_bytes pem)
{
    STACK_OF(X509) *all = sk_X509_new_null();
    BIO *bio = open_text(pem);
    X509 *x;

    while (all != NULL && bio != NULL && sk_X509_num(all) < CERTS_MAX &&
           (x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL) {
        if (sk_X509_push(all, x) <= 0)
            X509_free(x);
    }
    BIO_free(bio);
    ERR_clear_error();
    return all;
}
