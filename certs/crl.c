/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/crl.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "base/err.h"
#include "certs/ca_parts.h"
#include "certs/x509_util.h"

#define LISTS_MAX 16
#define PEM_MAX (32u << 20)

struct kr_crl {
    X509_CRL *lists[LISTS_MAX];
    size_t n;
};

/* ---- making ---- */

static int add_entry(X509_CRL *crl, const struct kr_revoked *e)
{
    X509_REVOKED *entry = X509_REVOKED_new();
    ASN1_INTEGER *serial = NULL;
    ASN1_TIME *when = NULL;
    BIGNUM *bn = NULL;
    int ok = entry != NULL && BN_hex2bn(&bn, e->serial) == (int)strlen(e->serial) &&
             (serial = BN_to_ASN1_INTEGER(bn, NULL)) != NULL &&
             (when = ASN1_TIME_set(NULL, (time_t)(e->when_wall_ms / 1000))) != NULL &&
             X509_REVOKED_set_serialNumber(entry, serial) == 1 &&
             X509_REVOKED_set_revocationDate(entry, when) == 1 &&
             X509_CRL_add0_revoked(crl, entry) == 1;

    if (!ok)
        X509_REVOKED_free(entry);
    ASN1_INTEGER_free(serial);
    ASN1_TIME_free(when);
    BN_free(bn);
    return ok ? 0 : KR_EINVAL;
}

static int fill(X509_CRL *crl, struct kr_ca *ca, int64_t days, int64_t now_wall_ms)
{
    time_t now = (time_t)(now_wall_ms / 1000);
    ASN1_TIME *from = ASN1_TIME_adj(NULL, now, 0, -300); /* clocks differ */
    ASN1_TIME *until = ASN1_TIME_adj(NULL, now, (int)days, 0);
    ASN1_INTEGER *number = ASN1_INTEGER_new();
    X509V3_CTX ctx;
    X509_EXTENSION *ext = NULL;
    int ok = from != NULL && until != NULL && number != NULL &&
             X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1 &&
             X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert)) == 1 &&
             X509_CRL_set1_lastUpdate(crl, from) == 1 &&
             X509_CRL_set1_nextUpdate(crl, until) == 1 &&
             ASN1_INTEGER_set_int64(number, now_wall_ms) == 1 && /* only ever goes up */
             X509_CRL_add1_ext_i2d(crl, NID_crl_number, number, 0, 0) == 1;

    X509V3_set_ctx(&ctx, ca->cert, NULL, NULL, crl, 0);
    if (ok)
        ext = X509V3_EXT_conf_nid(NULL, &ctx, NID_authority_key_identifier, "keyid:always");
    ok = ok && ext != NULL && X509_CRL_add_ext(crl, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    ASN1_INTEGER_free(number);
    ASN1_TIME_free(from);
    ASN1_TIME_free(until);
    return ok ? 0 : KR_ENOMEM;
}

static int write_pem(X509_CRL *crl, struct kr_buf *pem)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL;
    long n = 0;
    int rc = KR_ENOMEM;

    if (bio != NULL && PEM_write_bio_X509_CRL(bio, crl) == 1)
        n = BIO_get_mem_data(bio, &p);
    if (n > 0)
        rc = kr_buf_append(pem, kr_bytes_of(p, (size_t)n));
    BIO_free(bio);
    return rc;
}

int kr_crl_make(struct kr_ca *ca, const struct kr_revoked *entries, size_t n, int64_t days,
                int64_t now_wall_ms, struct kr_buf *pem, struct kr_note *why)
{
    X509_CRL *crl = X509_CRL_new();
    const EVP_MD *md = EVP_PKEY_get_bits(ca->key) > 256 ? EVP_sha384() : EVP_sha256();
    int rc = crl != NULL ? fill(crl, ca, days, now_wall_ms) : KR_ENOMEM;

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = add_entry(crl, &entries[i]);
    if (EVP_PKEY_get_base_id(ca->key) == EVP_PKEY_ED25519)
        md = NULL;
    if (rc == 0 && (X509_CRL_sort(crl) != 1 || X509_CRL_sign(crl, ca->key, md) <= 0))
        rc = KR_ENOMEM;
    if (rc == 0)
        rc = write_pem(crl, pem);
    X509_CRL_free(crl);
    return rc == 0 ? 0 : kr_x509_fail(why, rc, "cannot make a revocation list");
}

int kr_crl_serial_of(struct kr_ca *ca, struct kr_bytes cert_pem, char serial[41],
                     struct kr_note *why)
{
    X509 *x;
    int rc = kr_x509_from_pem(&x, cert_pem, why);

    if (rc != 0)
        return rc;
    if (X509_NAME_cmp(X509_get_issuer_name(x), X509_get_subject_name(ca->cert)) != 0 ||
        X509_verify(x, X509_get0_pubkey(ca->cert)) != 1)
        rc = kr_x509_fail(why, KR_EDENIED, "another CA has signed that certificate");
    else if (!kr_x509_serial(x, serial))
        rc = kr_note_set(why, KR_EPROTO, "the certificate's serial number is malformed");
    X509_free(x);
    return rc;
}

/* ---- looking ---- */

static int no_password(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return -1;
}

int kr_crl_load(struct kr_crl **out, struct kr_bytes pem, struct kr_note *why)
{
    struct kr_crl *c = calloc(1, sizeof *c);
    BIO *bio = pem.n != 0 && pem.n <= PEM_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    X509_CRL *crl;

    *out = NULL;
    ERR_clear_error();
    while (c != NULL && bio != NULL && c->n < LISTS_MAX &&
           (crl = PEM_read_bio_X509_CRL(bio, NULL, no_password, NULL)) != NULL)
        c->lists[c->n++] = crl;
    BIO_free(bio);
    if (c == NULL || c->n == 0) {
        kr_crl_destroy(c);
        return kr_x509_fail(why, KR_EPROTO, "no revocation list in PEM form");
    }
    ERR_clear_error();
    *out = c;
    return 0;
}

void kr_crl_destroy(struct kr_crl *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n; i++)
        X509_CRL_free(c->lists[i]);
    free(c);
}

bool kr_crl_lists(const struct kr_crl *c, const char *serial)
{
    ASN1_INTEGER *number = NULL;
    X509_REVOKED *found = NULL;
    BIGNUM *bn = NULL;

    if (serial[0] != '\0' && BN_hex2bn(&bn, serial) > 0)
        number = BN_to_ASN1_INTEGER(bn, NULL);
    for (size_t i = 0; number != NULL && found == NULL && i < c->n; i++)
        (void)X509_CRL_get0_by_serial(c->lists[i], &found, number);
    ASN1_INTEGER_free(number);
    BN_free(bn);
    return found != NULL;
}

int64_t kr_crl_due_wall_ms(const struct kr_crl *c)
{
    int64_t first = INT64_MAX;

    for (size_t i = 0; i < c->n; i++) {
        int64_t due_ms;

        if (kr_x509_time_ms(X509_CRL_get0_nextUpdate(c->lists[i]), &due_ms) && due_ms < first)
            first = due_ms;
    }
    return first;
}
