/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/cert_build.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

#include "base/err.h"
#include "certs/store_file.h"
#include "certs/x509_util.h"

#define BACKDATE_S 300
#define SERIAL_BITS 128
#define PEM_MAX 65536

static int broken(struct kr_note *why, const char *step)
{
    return kr_x509_fail(why, KR_ENOMEM, step);
}

static int set_serial(X509 *x)
{
    BIGNUM *bn = BN_new();
    int ok = bn != NULL && BN_rand(bn, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
             !BN_is_zero(bn) && BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x)) != NULL;

    BN_free(bn);
    return ok;
}

int kr_cert_start(X509 **out, EVP_PKEY *key, int64_t now_wall_ms, int64_t lifetime_s,
                  struct kr_note *why)
{
    time_t now = (time_t)(now_wall_ms / 1000);
    X509 *x = X509_new();

    *out = NULL;
    ERR_clear_error();
    if (x == NULL || X509_set_version(x, X509_VERSION_3) != 1 || !set_serial(x) ||
        X509_set_pubkey(x, key) != 1 ||
        ASN1_TIME_adj(X509_getm_notBefore(x), now, 0, -BACKDATE_S) == NULL ||
        ASN1_TIME_adj(X509_getm_notAfter(x), now, (int)(lifetime_s / KR_CA_DAY_S),
                      (long)(lifetime_s % KR_CA_DAY_S)) == NULL) {
        X509_free(x);
        return broken(why, "cannot start a certificate");
    }
    *out = x;
    return 0;
}

int kr_cert_add_subject(X509 *x, int nid, const char *text, struct kr_note *why)
{
    X509_NAME *subject = X509_get_subject_name(x);

    /* The plain string type: OpenSSL's own limit of 64 bytes is below what Kubernetes allows. */
    if (X509_NAME_add_entry_by_NID(subject, nid, V_ASN1_UTF8STRING, (const unsigned char *)text,
                                   (int)strlen(text), -1, 0) != 1)
        return broken(why, "cannot write the subject");
    return 0;
}

int kr_cert_add_extension(X509 *x, X509 *issuer, int nid, const char *value, struct kr_note *why)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;
    int ok;

    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ok = ext != NULL && X509_add_ext(x, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok ? 0 : broken(why, "cannot write an extension");
}

/* RFC 1123 host name, or a wildcard in place of the first of at least three labels. */
static bool is_dns_name(const char *text)
{
    struct kr_bytes rest = kr_bytes_str(text);
    bool wild = kr_bytes_starts(rest, KR_LIT("*."));
    int labels = 0;

    if (rest.n == 0 || rest.n > 253)
        return false;
    if (wild)
        rest = kr_bytes_skip(rest, 2);
    for (;;) {
        size_t n = kr_bytes_find(rest, '.');

        if (!kr_is_dns_label((struct kr_bytes){rest.p, n}))
            return false;
        labels++;
        if (n == rest.n)
            break;
        rest = kr_bytes_skip(rest, n + 1);
    }
    return !wild || labels >= 2;
}

/* Takes over `value`, also on failure. */
static int push_name(GENERAL_NAMES *names, int type, ASN1_STRING *value, struct kr_note *why)
{
    GENERAL_NAME *name = GENERAL_NAME_new();

    if (name == NULL || value == NULL) {
        GENERAL_NAME_free(name);
        ASN1_STRING_free(value);
        return broken(why, "cannot write a name");
    }
    GENERAL_NAME_set0_value(name, type, value);
    if (sk_GENERAL_NAME_push(names, name) <= 0) {
        GENERAL_NAME_free(name);
        return broken(why, "cannot write a name");
    }
    return 0;
}

static int push_text(GENERAL_NAMES *names, int type, const char *text, struct kr_note *why)
{
    ASN1_STRING *s = ASN1_IA5STRING_new();

    if (s != NULL && ASN1_STRING_set(s, text, (int)strlen(text)) != 1) {
        ASN1_STRING_free(s);
        s = NULL;
    }
    return push_name(names, type, s, why);
}

static int push_dns(GENERAL_NAMES *names, const char *text, struct kr_note *why)
{
    if (!is_dns_name(text))
        return kr_note_set(why, KR_EINVAL, "\"%.80s\" is no DNS name", text);
    return push_text(names, GEN_DNS, text, why);
}

static int push_ip(GENERAL_NAMES *names, const char *text, struct kr_note *why)
{
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(text);

    if (address == NULL) {
        ERR_clear_error();
        return kr_note_set(why, KR_EINVAL, "\"%.80s\" is no IP address", text);
    }
    return push_name(names, GEN_IPADD, address, why);
}

int kr_cert_add_names(X509 *x, const char *uri, const struct kr_leaf *leaf, struct kr_note *why)
{
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    int rc = 0;

    if (names == NULL)
        return broken(why, "cannot write the names");
    if (uri != NULL)
        rc = push_text(names, GEN_URI, uri, why);
    for (size_t i = 0; rc == 0 && i < leaf->dns_count; i++)
        rc = push_dns(names, leaf->dns[i], why);
    for (size_t i = 0; rc == 0 && i < leaf->ip_count; i++)
        rc = push_ip(names, leaf->ip[i], why);
    if (rc == 0 && sk_GENERAL_NAME_num(names) > 0 &&
        X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) != 1)
        rc = broken(why, "cannot write the names");
    GENERAL_NAMES_free(names);
    return rc;
}

int kr_cert_sign(X509 *x, EVP_PKEY *key, struct kr_note *why)
{
    const EVP_MD *md = EVP_sha256();

    if (EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519)
        md = NULL; /* it brings its own */
    else if (EVP_PKEY_get_base_id(key) == EVP_PKEY_EC && EVP_PKEY_get_bits(key) > 256)
        md = EVP_sha384();
    if (X509_sign(x, key, md) <= 0)
        return broken(why, "cannot sign");
    return 0;
}

static int take_text(struct kr_buf *out, BIO *bio)
{
    char *p;
    long n = BIO_get_mem_data(bio, &p);

    kr_buf_init(out, PEM_MAX);
    return n > 0 ? kr_buf_append(out, kr_bytes_of(p, (size_t)n)) : KR_ENOMEM;
}

int kr_cert_to_pem(struct kr_pem_pair *out, X509 *x, EVP_PKEY *key, struct kr_note *why)
{
    BIO *cert_bio = BIO_new(BIO_s_mem());
    BIO *key_bio = BIO_new(BIO_s_secmem()); /* wiped when freed */
    int rc = KR_ENOMEM;

    memset(out, 0, sizeof *out);
    if (cert_bio != NULL && key_bio != NULL && PEM_write_bio_X509(cert_bio, x) == 1 &&
        PEM_write_bio_PKCS8PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) == 1) {
        rc = take_text(&out->cert, cert_bio);
        if (rc == 0)
            rc = take_text(&out->key, key_bio);
    }
    BIO_free(cert_bio);
    BIO_free(key_bio);
    if (rc != 0) {
        kr_pem_pair_deinit(out);
        return kr_x509_fail(why, rc, "cannot write PEM");
    }
    return 0;
}

void kr_pem_pair_deinit(struct kr_pem_pair *p)
{
    kr_buf_deinit(&p->cert);
    kr_buf_cleanse(&p->key);
}
