/* SPDX-License-Identifier: Apache-2.0 */
#include "pki.h"

#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define DAYS 30

struct cert_ask {
    const char *cn;
    const char *o; /* NULL: none */
    const char *usage;
    const char *extended; /* NULL: none */
    const char *san;      /* NULL: none */
    bool ca;
};

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;
    int ok;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ok = ext != NULL && X509_add_ext(cert, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok ? 0 : KR_ETLS;
}

static int add_extensions(X509 *cert, X509 *issuer, const struct cert_ask *ask)
{
    int rc = add_extension(cert, issuer, NID_basic_constraints,
                           ask->ca ? "critical,CA:TRUE" : "critical,CA:FALSE");

    if (rc == 0)
        rc = add_extension(cert, issuer, NID_key_usage, ask->usage);
    if (rc == 0)
        rc = add_extension(cert, issuer, NID_subject_key_identifier, "hash");
    if (rc == 0)
        rc = add_extension(cert, issuer, NID_authority_key_identifier, "keyid:always");
    if (rc == 0 && ask->extended != NULL)
        rc = add_extension(cert, issuer, NID_ext_key_usage, ask->extended);
    if (rc == 0 && ask->san != NULL)
        rc = add_extension(cert, issuer, NID_subject_alt_name, ask->san);
    return rc;
}

static int set_names(X509 *cert, X509 *issuer, const struct cert_ask *ask)
{
    X509_NAME *name = X509_get_subject_name(cert);
    int ok =
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const uint8_t *)ask->cn, -1, -1, 0);

    if (ask->o != NULL)
        ok &= X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const uint8_t *)ask->o, -1, -1,
                                         0);
    ok &= X509_set_issuer_name(cert, X509_get_subject_name(issuer));
    return ok == 1 ? 0 : KR_ETLS;
}

/* A certificate for `key`, signed by the issuer (itself if issuer is NULL). NULL: it failed. */
static X509 *make_cert(const struct cert_ask *ask, EVP_PKEY *key, X509 *issuer,
                       EVP_PKEY *issuer_key)
{
    X509 *cert = X509_new();
    uint64_t serial = 0;

    if (cert == NULL)
        return NULL;
    if (issuer == NULL) {
        issuer = cert;
        issuer_key = key;
    }
    (void)RAND_bytes((uint8_t *)&serial, sizeof serial);
    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -300);
    X509_gmtime_adj(X509_getm_notAfter(cert), DAYS * 86400L);
    X509_set_pubkey(cert, key);
    if (set_names(cert, issuer, ask) != 0 || add_extensions(cert, issuer, ask) != 0 ||
        X509_sign(cert, issuer_key, EVP_sha256()) == 0) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

static int to_pem(X509 *cert, EVP_PKEY *key, struct kr_buf *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p;
    long n;
    int rc;

    if (bio == NULL)
        return KR_ENOMEM;
    if (cert != NULL)
        PEM_write_bio_X509(bio, cert);
    if (key != NULL)
        PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    n = BIO_get_mem_data(bio, &p);
    rc = kr_buf_append(out, kr_bytes_of(p, (size_t)n));
    BIO_free(bio);
    return rc;
}

static int write_file(const char *path, struct kr_bytes content, mode_t mode, struct kr_note *why)
{
    int fd;

    (void)unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return kr_note_set(why, KR_EIO, "%s: %m", path);
    if (write(fd, content.p, content.n) != (ssize_t)content.n) {
        close(fd);
        return kr_note_set(why, KR_EIO, "%s: %m", path);
    }
    close(fd);
    return 0;
}

static int write_in(const struct sim_pki *p, const char *name, struct kr_bytes content, mode_t mode,
                    struct kr_note *why)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    return write_file(path, content, mode, why);
}

static int make_client(struct sim_pki *p, X509 *ca, EVP_PKEY *ca_key, struct kr_note *why)
{
    static const struct cert_ask ask = {
        "kubesim-admin", "system:masters", "critical,digitalSignature", "clientAuth", NULL, false};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key != NULL ? make_cert(&ask, key, ca, ca_key) : NULL;
    struct kr_buf pem;
    int rc = cert != NULL ? 0 : kr_note_set(why, KR_ETLS, "cannot make the client certificate");

    kr_buf_init(&pem, 65536);
    if (rc == 0)
        rc = to_pem(cert, NULL, &pem);
    if (rc == 0)
        rc = write_in(p, "client.crt", kr_buf_bytes(&pem), 0644, why);
    pem.n = 0;
    if (rc == 0)
        rc = to_pem(NULL, key, &pem);
    if (rc == 0)
        rc = write_in(p, "client.key", kr_buf_bytes(&pem), 0600, why);
    kr_buf_deinit(&pem);
    X509_free(cert);
    EVP_PKEY_free(key);
    return rc;
}

static int make_server(struct sim_pki *p, X509 *ca, EVP_PKEY *ca_key, struct kr_note *why)
{
    static const struct cert_ask ask = {
        "kubesim",
        NULL,
        "critical,digitalSignature",
        "serverAuth",
        "IP:127.0.0.1,IP:::1,DNS:localhost,DNS:kubesim,DNS:kubernetes,DNS:kubernetes.default.svc",
        false};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key != NULL ? make_cert(&ask, key, ca, ca_key) : NULL;
    int rc = cert != NULL ? 0 : kr_note_set(why, KR_ETLS, "cannot make the server certificate");

    if (rc == 0)
        rc = to_pem(cert, NULL, &p->cert_pem);
    if (rc == 0)
        rc = to_pem(NULL, key, &p->key_pem);
    X509_free(cert);
    EVP_PKEY_free(key);
    return rc;
}

static int make_token(struct sim_pki *p, struct kr_note *why)
{
    uint8_t raw[16];
    size_t n;

    if (RAND_bytes(raw, sizeof raw) != 1)
        return kr_note_set(why, KR_ETLS, "no random numbers");
    n = (size_t)snprintf(p->token, sizeof p->token, "kubesim-");
    for (size_t i = 0; i < sizeof raw; i++)
        n += (size_t)snprintf(p->token + n, sizeof p->token - n, "%02x", raw[i]);
    return write_in(p, "token", kr_bytes_str(p->token), 0600, why);
}

int sim_pki_create(struct sim_pki *p, const char *dir, struct kr_note *why)
{
    static const struct cert_ask ask = {
        "kubesim throw-away CA", NULL, "critical,keyCertSign,cRLSign", NULL, NULL, true};
    EVP_PKEY *key = NULL;
    X509 *ca = NULL;
    int rc;

    memset(p, 0, sizeof *p);
    kr_buf_init(&p->ca_pem, 65536);
    kr_buf_init(&p->cert_pem, 65536);
    kr_buf_init(&p->key_pem, 65536);
    (void)mkdir(dir, 0700);
    if (realpath(dir, p->dir) == NULL)
        return kr_note_set(why, KR_EIO, "%s: %m", dir);
    key = EVP_EC_gen("P-256");
    ca = key != NULL ? make_cert(&ask, key, NULL, NULL) : NULL;
    rc = ca != NULL ? to_pem(ca, NULL, &p->ca_pem) : kr_note_set(why, KR_ETLS, "cannot make a CA");
    if (rc == 0)
        rc = write_in(p, "ca.crt", kr_buf_bytes(&p->ca_pem), 0644, why);
    if (rc == 0)
        rc = make_server(p, ca, key, why);
    if (rc == 0)
        rc = make_client(p, ca, key, why);
    if (rc == 0)
        rc = make_token(p, why);
    X509_free(ca);
    EVP_PKEY_free(key);
    return rc;
}

void sim_pki_destroy(struct sim_pki *p)
{
    kr_buf_deinit(&p->ca_pem);
    kr_buf_deinit(&p->cert_pem);
    if (p->key_pem.p != NULL)
        explicit_bzero(p->key_pem.p, p->key_pem.n);
    kr_buf_deinit(&p->key_pem);
}

int sim_pki_kubeconfig(const struct sim_pki *p, const char *cluster, const char *address,
                       char path[4200], struct kr_note *why)
{
    struct kr_buf text;
    int rc;

    kr_buf_init(&text, 65536);
    rc = kr_buf_printf(&text,
                       "# Written by kubesim, a simulator: this cluster is not real.\n"
                       "apiVersion: v1\nkind: Config\ncurrent-context: %s\npreferences: {}\n"
                       "clusters:\n- name: %s\n  cluster:\n    server: https://%s\n"
                       "    certificate-authority: %s/ca.crt\n"
                       "users:\n- name: kubesim-admin\n  user:\n"
                       "    client-certificate: %s/client.crt\n    client-key: %s/client.key\n"
                       "contexts:\n- name: %s\n  context:\n    cluster: %s\n"
                       "    user: kubesim-admin\n",
                       cluster, cluster, address, p->dir, p->dir, p->dir, cluster, cluster);
    snprintf(path, 4200, "%s/kubeconfig-%.64s", p->dir, cluster);
    if (rc == 0)
        rc = write_file(path, kr_buf_bytes(&text), 0600, why);
    kr_buf_deinit(&text);
    return rc;
}
