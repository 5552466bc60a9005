/* SPDX-License-Identifier: Apache-2.0 */
/* What a hub's CA does online: certify agents' keys; and how that CA is made. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>

#include "base/err.h"
#include "certs/ca_parts.h"
#include "certs/cert_build.h"
#include "certs/csr_read.h"
#include "certs/identity.h"
#include "certs/x509_util.h"

#define LIFETIME_MIN_S 5 /* for labs that try renewals */
#define CHAIN_MAX 32768

static int append_pem(struct kr_buf *out, X509 *x, struct kr_note *why)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL;
    long n = 0;
    int rc = KR_ENOMEM;

    if (bio != NULL && PEM_write_bio_X509(bio, x) == 1)
        n = BIO_get_mem_data(bio, &p);
    if (n > 0)
        rc = kr_buf_append(out, kr_bytes_of(p, (size_t)n));
    BIO_free(bio);
    return rc == 0 ? 0 : kr_x509_fail(why, rc, "cannot write PEM");
}

static bool is_root(const struct kr_ca *ca)
{
    return X509_NAME_cmp(X509_get_subject_name(ca->cert), X509_get_issuer_name(ca->cert)) == 0;
}

static int find_lifetime(const struct kr_ca *ca, const struct kr_leaf *leaf, int64_t now_wall_ms,
                         int64_t *life_s, struct kr_note *why)
{
    int64_t until_ms;

    *life_s = leaf->lifetime_s != 0 ? leaf->lifetime_s : kr_ca_lifetime_default_s(leaf->role);
    if (*life_s < LIFETIME_MIN_S || *life_s > kr_ca_lifetime_max_s(leaf->role))
        return kr_note_set(why, KR_EINVAL, "a lifetime of %lld seconds is out of bounds",
                           (long long)*life_s);
    if (!kr_x509_time_ms(X509_get0_notAfter(ca->cert), &until_ms))
        return kr_note_set(why, KR_EPROTO, "the CA certificate's validity is malformed");
    if ((until_ms - now_wall_ms) / 1000 < *life_s)
        *life_s = (until_ms - now_wall_ms) / 1000;
    if (*life_s < LIFETIME_MIN_S)
        return kr_note_set(why, KR_EDENIED, "the certificate of the CA that signs has expired");
    return 0;
}

/* The judge of the hub's own port has the last word. */
static int judge(const struct kr_ca *ca, const struct kr_leaf *leaf, const struct kr_buf *chain,
                 struct kr_note *why)
{
    struct kr_identity_rules rules = {.role = leaf->role, .trust_domain = ca->domain};
    struct kr_identity id;
    int rc = kr_identity_judge_pem(&id, kr_buf_bytes(chain), &rules, why);

    kr_identity_deinit(&id);
    return rc;
}

int kr_ca_issue_csr(struct kr_ca *ca, const struct kr_leaf *leaf, struct kr_bytes csr,
                    int64_t now_wall_ms, struct kr_buf *chain, struct kr_note *why)
{
    EVP_PKEY *key = NULL;
    X509 *x = NULL;
    int64_t life_s = 0;
    int rc = kr_ca_check_leaf(leaf, why);

    kr_buf_init(chain, CHAIN_MAX);
    if (rc == 0)
        rc = find_lifetime(ca, leaf, now_wall_ms, &life_s, why);
    if (rc == 0)
        rc = kr_csr_key(&key, csr, why);
    if (rc == 0)
        rc = kr_cert_start(&x, key, now_wall_ms, life_s, why);
    if (rc == 0)
        rc = kr_ca_fill_leaf(x, ca, leaf, why);
    if (rc == 0)
        rc = kr_cert_sign(x, ca->key, why);
    if (rc == 0)
        rc = append_pem(chain, x, why);
    if (rc == 0 && !is_root(ca))
        rc = append_pem(chain, ca->cert, why);
    if (rc == 0)
        rc = judge(ca, leaf, chain, why);
    if (rc != 0)
        kr_buf_deinit(chain);
    X509_free(x);
    EVP_PKEY_free(key);
    return rc;
}

/* URI constraints alone would leave addresses and DNS names free (RFC 5280 4.2.1.10): the first are
 * excluded, the others are of no use to a client's certificate. */
static int fill_agent_ca(X509 *x, struct kr_ca *root, struct kr_note *why)
{
    static const struct {
        int nid;
        const char *value;
    } extensions[] = {
        {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
        {NID_key_usage, "critical,keyCertSign,cRLSign"},
        {NID_ext_key_usage, "clientAuth"}, /* what it signs serves nobody */
        {NID_subject_key_identifier, "hash"},
        {NID_authority_key_identifier, "keyid:always"},
    };
    const struct kr_leaf no_hosts = {0};
    char text[2 * KR_SPIFFE_ID_MAX + 128];
    int rc;

    snprintf(text, sizeof text, "kuberelay agent-ca of %s", root->domain);
    rc = kr_cert_add_subject(x, NID_commonName, text, why);
    if (rc == 0 && X509_set_issuer_name(x, X509_get_subject_name(root->cert)) != 1)
        rc = kr_x509_fail(why, KR_ENOMEM, "cannot write the issuer");
    for (size_t i = 0; rc == 0 && i < sizeof extensions / sizeof extensions[0]; i++)
        rc = kr_cert_add_extension(x, root->cert, extensions[i].nid, extensions[i].value, why);
    /* The domain is of [a-z0-9._-]: nothing in it speaks to OpenSSL's parser. */
    snprintf(
        text, sizeof text,
        "critical,permitted;URI:%s,excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::", root->domain);
    if (rc == 0)
        rc = kr_cert_add_extension(x, root->cert, NID_name_constraints, text, why);
    snprintf(text, sizeof text, "spiffe://%s", root->domain);
    return rc == 0 ? kr_cert_add_names(x, text, &no_hosts, why) : rc;
}

int kr_ca_create_agent_ca(struct kr_ca *root, int64_t lifetime_s, int64_t now_wall_ms,
                          struct kr_pem_pair *out, struct kr_note *why)
{
    EVP_PKEY *key = NULL;
    X509 *x = NULL;
    int64_t until_ms = 0;
    int rc = 0;

    memset(out, 0, sizeof *out);
    if (!is_root(root) || !kr_x509_time_ms(X509_get0_notAfter(root->cert), &until_ms) ||
        now_wall_ms + lifetime_s * 1000 > until_ms)
        return kr_note_set(why, KR_EINVAL,
                           "not a root, or one that ends before the agent-ca would");
    rc = kr_ca_new_key(&key, "P-256", why);
    if (rc == 0)
        rc = kr_cert_start(&x, key, now_wall_ms, lifetime_s, why);
    if (rc == 0)
        rc = fill_agent_ca(x, root, why);
    if (rc == 0)
        rc = kr_cert_sign(x, root->key, why);
    if (rc == 0)
        rc = kr_cert_to_pem(out, x, key, why);
    X509_free(x);
    EVP_PKEY_free(key);
    return rc;
}

int kr_pem_check_chain(struct kr_bytes chain_pem, struct kr_bytes roots_pem, struct kr_note *why)
{
    STACK_OF(X509) *chain = kr_x509_all_from_pem(chain_pem);
    STACK_OF(X509) *roots = kr_x509_all_from_pem(roots_pem);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int rc = KR_ENOMEM;

    if (ctx != NULL && chain != NULL && roots != NULL && sk_X509_num(chain) > 0 &&
        X509_STORE_CTX_init(ctx, NULL, sk_X509_value(chain, 0), chain) == 1) {
        X509_STORE_CTX_set0_trusted_stack(ctx, roots);
        X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_NO_CHECK_TIME);
        rc = X509_verify_cert(ctx) == 1
                 ? 0
                 : kr_note_set(why, KR_EDENIED, "the chain leads to none of the roots (%s)",
                               X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
    }
    ERR_clear_error();
    X509_STORE_CTX_free(ctx);
    sk_X509_pop_free(chain, X509_free);
    sk_X509_pop_free(roots, X509_free);
    return rc;
}
