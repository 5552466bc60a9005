/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "net/tls_private.h"

enum { FILE_MAX = 1024 * 1024, CHAIN_MAX = 10, ANCHORS_MAX = 1000 };

struct text { /* what a PEM holds, in our memory */
    char *p;
    size_t n;
};

static const char *name_of(const struct kr_tls_pem *pem)
{
    return pem->file != NULL ? pem->file : "(given data)";
}

bool kr_tls_pem_given(const struct kr_tls_pem *pem)
{
    return (pem->file != NULL && pem->file[0] != '\0') || pem->bytes.n != 0;
}

static int read_all(int fd, struct text *out)
{
    while (out->n < FILE_MAX) {
        ssize_t n = read(fd, out->p + out->n, FILE_MAX - out->n);

        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return KR_EIO;
        if (n > 0)
            out->n += (size_t)n;
    }
    return KR_ETOOBIG;
}

static int read_file(const char *path, bool secret, struct text *out, struct kr_note *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    int rc = 0;

    if (fd < 0)
        return kr_note_set(why, errno == ENOENT ? KR_ENOENT : KR_EIO, "%s: %s", path,
                           strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        rc = kr_note_set(why, KR_EINVAL, "%s: not a file", path);
    else if (secret && (st.st_mode & 077) != 0)
        rc = kr_note_set(why, KR_EDENIED,
                         "%s: the key is open to others (mode %03o), it must be 0600", path,
                         (unsigned)st.st_mode & 0777u);
    if (rc == 0 && (out->p = malloc(FILE_MAX)) == NULL)
        rc = kr_note_set(why, KR_ENOMEM, "out of memory");
    if (rc == 0 && (rc = read_all(fd, out)) != 0)
        kr_note_set(why, rc, "%s: %s", path,
                    rc == KR_ETOOBIG ? "larger than 1 MiB" : strerror(errno));
    close(fd);
    return rc;
}

static int open_pem(const struct kr_tls_pem *pem, bool secret, struct text *keep, BIO **out,
                    struct kr_note *why)
{
    int rc = 0;

    *keep = (struct text){0};
    if (pem->bytes.n > FILE_MAX)
        return kr_note_set(why, KR_ETOOBIG, "%s: larger than 1 MiB", name_of(pem));
    if (pem->bytes.n != 0)
        *out = BIO_new_mem_buf(pem->bytes.p, (int)pem->bytes.n);
    else if ((rc = read_file(pem->file, secret, keep, why)) == 0)
        *out = BIO_new_mem_buf(keep->p, (int)keep->n);
    if (rc == 0 && *out == NULL)
        rc = kr_note_set(why, KR_ENOMEM, "out of memory");
    return rc;
}

static void close_pem(struct text *keep, BIO *bio)
{
    BIO_free(bio);
    if (keep->p != NULL)
        OPENSSL_cleanse(keep->p, keep->n);
    free(keep->p);
    *keep = (struct text){0};
}

/* Nobody can type a pass phrase here. */
static int no_password(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return -1;
}

static X509 *read_cert(BIO *bio)
{
    return PEM_read_bio_X509(bio, NULL, no_password, NULL);
}

/* PEM_read says "no start line" at the end of the data, which is no failure. */
static bool at_end(void)
{
    return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
}

static int broken(const struct kr_tls_pem *pem, const char *what, struct kr_note *why)
{
    return kr_note_set(why, KR_EINVAL, "%s: not a PEM %s (%s)", name_of(pem), what,
                       kr_tls_reason(ERR_peek_last_error()));
}

static int64_t seconds_of(const ASN1_TIME *t)
{
    struct tm tm;

    return t != NULL && ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static int load_chain(SSL_CTX *ssl, const struct kr_tls_pem *pem, int64_t *not_after,
                      struct kr_note *why)
{
    struct text keep;
    BIO *bio = NULL;
    X509 *cert = NULL;
    int count = 0;
    int rc = open_pem(pem, false, &keep, &bio, why);

    if (rc == 0 && (cert = read_cert(bio)) == NULL)
        rc = broken(pem, "certificate", why);
    else if (rc == 0 && SSL_CTX_use_certificate(ssl, cert) != 1)
        rc = kr_note_set(why, KR_EINVAL, "%s: the certificate cannot be used (%s)", name_of(pem),
                         kr_tls_reason(ERR_peek_last_error()));
    else if (rc == 0)
        *not_after = seconds_of(X509_get0_notAfter(cert));
    X509_free(cert);
    while (rc == 0 && (cert = read_cert(bio)) != NULL) {
        if (++count > CHAIN_MAX || SSL_CTX_add0_chain_cert(ssl, cert) != 1) {
            X509_free(cert);
            rc = kr_note_set(why, KR_EINVAL, "%s: the chain is too long or broken", name_of(pem));
        }
    }
    if (rc == 0 && !at_end())
        rc = broken(pem, "certificate", why);
    close_pem(&keep, bio);
    return rc;
}

static int load_key(SSL_CTX *ssl, const struct kr_tls_config *cfg, struct kr_note *why)
{
    struct text keep;
    BIO *bio = NULL;
    EVP_PKEY *key = NULL;
    int rc = open_pem(&cfg->key, !cfg->lax_key_mode, &keep, &bio, why);

    if (rc == 0 && (key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL)) == NULL)
        rc = broken(&cfg->key, "private key without pass phrase", why);
    if (rc == 0 && (SSL_CTX_use_PrivateKey(ssl, key) != 1 || SSL_CTX_check_private_key(ssl) != 1))
        rc = kr_note_set(why, KR_EINVAL, "%s: the key does not belong to the certificate %s",
                         name_of(&cfg->key), name_of(&cfg->cert));
    EVP_PKEY_free(key);
    close_pem(&keep, bio);
    return rc;
}

int kr_tls_load_pair(SSL_CTX *ssl, const struct kr_tls_config *cfg, int64_t *not_after,
                     struct kr_note *why)
{
    int rc;

    ERR_clear_error();
    rc = load_chain(ssl, &cfg->cert, not_after, why);
    ERR_clear_error();
    if (rc == 0)
        rc = load_key(ssl, cfg, why);
    ERR_clear_error();
    return rc;
}

static int load_cas(X509_STORE *store, const struct kr_tls_pem *pem, struct kr_note *why)
{
    struct text keep;
    BIO *bio = NULL;
    X509 *cert;
    int count = 0;
    int rc = open_pem(pem, false, &keep, &bio, why);

    while (rc == 0 && count <= ANCHORS_MAX && (cert = read_cert(bio)) != NULL) {
        if (X509_STORE_add_cert(store, cert) != 1)
            rc = kr_note_set(why, KR_ENOMEM, "%s: cannot be kept", name_of(pem));
        X509_free(cert);
        count++;
    }
    if (rc == 0 && (count == 0 || count > ANCHORS_MAX || !at_end()))
        rc = broken(pem, "bundle of 1 to 1000 authority certificates", why);
    close_pem(&keep, bio);
    return rc;
}

static int load_crls(X509_STORE *store, const struct kr_tls_pem *pem, struct kr_note *why)
{
    struct text keep;
    BIO *bio = NULL;
    X509_CRL *crl;
    int count = 0;
    int rc = open_pem(pem, false, &keep, &bio, why);

    while (rc == 0 && (crl = PEM_read_bio_X509_CRL(bio, NULL, no_password, NULL)) != NULL) {
        if (++count > ANCHORS_MAX || X509_STORE_add_crl(store, crl) != 1)
            rc = kr_note_set(why, KR_ENOMEM, "%s: cannot be kept", name_of(pem));
        X509_CRL_free(crl);
    }
    if (rc == 0 && (count == 0 || !at_end()))
        rc = broken(pem, "revocation list", why);
    close_pem(&keep, bio);
    return rc;
}

int kr_tls_load_anchors(SSL_CTX *ssl, const struct kr_tls_config *cfg, struct kr_note *why)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ssl); /* new and empty: never the system's */
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ssl);
    int rc;

    ERR_clear_error();
    rc = load_cas(store, &cfg->ca, why);
    ERR_clear_error();
    if (rc == 0 && kr_tls_pem_given(&cfg->crl)) {
        rc = load_crls(store, &cfg->crl, why);
        /* Both: one alone checks nothing or too little. */
        X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    }
    if (!cfg->lax_x509)
        X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
    ERR_clear_error();
    return rc;
}
