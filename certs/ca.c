/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/ca_parts.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "certs/cert_build.h"
#include "certs/identity.h"
#include "certs/x509_util.h"

int64_t kr_ca_lifetime_default_s(enum kr_role role)
{
    switch (role) {
    case KR_ROLE_HUB:
        return 90 * KR_CA_DAY_S;
    case KR_ROLE_AGENT:
        return 30 * KR_CA_DAY_S;
    case KR_ROLE_USER:
        break;
    }
    return 12 * KR_CA_HOUR_S;
}

int64_t kr_ca_lifetime_max_s(enum kr_role role)
{
    switch (role) {
    case KR_ROLE_HUB:
        return 825 * KR_CA_DAY_S; /* what common TLS clients take from a server */
    case KR_ROLE_AGENT:
        return 90 * KR_CA_DAY_S;
    case KR_ROLE_USER:
        break;
    }
    return 365 * KR_CA_DAY_S;
}

int kr_ca_new_key(EVP_PKEY **out, const char *curve, struct kr_note *why)
{
    ERR_clear_error();
    *out = EVP_EC_gen(curve);
    return *out != NULL ? 0 : kr_x509_fail(why, KR_ENOMEM, "cannot make a key");
}

/* --- the root --- */

static int fill_root(X509 *x, const char *trust_domain, struct kr_note *why)
{
    static const struct {
        int nid;
        const char *value;
    } extensions[] = {
        {NID_basic_constraints, "critical,CA:TRUE,pathlen:1"},
        {NID_key_usage, "critical,keyCertSign,cRLSign"},
        {NID_subject_key_identifier, "hash"},
        {NID_authority_key_identifier, "keyid:always"},
    };
    const struct kr_leaf no_hosts = {0};
    char text[KR_SPIFFE_ID_MAX + 32];
    int rc;

    snprintf(text, sizeof text, "kuberelay root of %s", trust_domain);
    rc = kr_cert_add_subject(x, NID_commonName, text, why);
    if (rc == 0 && X509_set_issuer_name(x, X509_get_subject_name(x)) != 1)
        rc = kr_x509_fail(why, KR_ENOMEM, "cannot write the issuer");
    for (size_t i = 0; rc == 0 && i < sizeof extensions / sizeof extensions[0]; i++)
        rc = kr_cert_add_extension(x, x, extensions[i].nid, extensions[i].value, why);
    if (rc != 0)
        return rc;
    snprintf(text, sizeof text, "spiffe://%s", trust_domain);
    return kr_cert_add_names(x, text, &no_hosts, why);
}

int kr_ca_create_root(struct kr_pem_pair *out, const char *trust_domain, int years,
                      int64_t now_wall_ms, struct kr_note *why)
{
    EVP_PKEY *key = NULL;
    X509 *x = NULL;
    int rc;

    memset(out, 0, sizeof *out);
    if (!kr_spiffe_is_domain(kr_bytes_str(trust_domain)))
        return kr_note_set(why, KR_EINVAL,
                           "\"%.80s\" is no trust domain (lower-case letters, "
                           "digits, '.', '-', '_')",
                           trust_domain);
    if (years < 1 || years > 30)
        return kr_note_set(why, KR_EINVAL, "a root lives 1 to 30 years");
    rc = kr_ca_new_key(&key, "P-384", why);
    if (rc == 0)
        rc = kr_cert_start(&x, key, now_wall_ms, (int64_t)years * 365 * KR_CA_DAY_S, why);
    if (rc == 0)
        rc = fill_root(x, trust_domain, why);
    if (rc == 0)
        rc = kr_cert_sign(x, key, why);
    if (rc == 0)
        rc = kr_cert_to_pem(out, x, key, why);
    X509_free(x);
    EVP_PKEY_free(key);
    return rc;
}

/* --- a CA at work --- */

static int read_domain(struct kr_ca *ca, const char *trust_domain, struct kr_note *why)
{
    GENERAL_NAMES *names;
    struct kr_bytes uri;
    int rc;

    rc = kr_x509_only_uri(ca->cert, &names, &uri, why);
    if (rc == 0 && uri.p != NULL)
        rc = kr_spiffe_domain_parse(ca->domain, uri, why);
    GENERAL_NAMES_free(names);
    if (rc != 0)
        return kr_note_wrap(why, KR_EPROTO, "the CA certificate");
    if (trust_domain == NULL && ca->domain[0] == 0)
        return kr_note_set(why, KR_EINVAL,
                           "the CA certificate names no trust domain; give one (--trust-domain)");
    if (trust_domain == NULL)
        return 0;
    if (!kr_spiffe_is_domain(kr_bytes_str(trust_domain)))
        return kr_note_set(why, KR_EINVAL, "\"%.80s\" is no trust domain", trust_domain);
    if (ca->domain[0] != 0 && strcmp(ca->domain, trust_domain) != 0)
        return kr_note_set(why, KR_EINVAL, "the CA is for the trust domain %.80s, not %.80s",
                           ca->domain, trust_domain);
    snprintf(ca->domain, sizeof ca->domain, "%s", trust_domain);
    return 0;
}

static int check_ca(struct kr_ca *ca, int64_t now_wall_ms, struct kr_note *why)
{
    int64_t from_ms;
    int64_t until_ms;

    if (X509_check_ca(ca->cert) != 1 || (X509_get_key_usage(ca->cert) & KU_KEY_CERT_SIGN) == 0)
        return kr_note_set(why, KR_EPROTO, "the certificate is not one of a CA");
    if (ca->key != NULL && X509_check_private_key(ca->cert, ca->key) != 1)
        return kr_x509_fail(why, KR_EPROTO, "the CA's key does not belong to its certificate");
    if (!kr_x509_time_ms(X509_get0_notBefore(ca->cert), &from_ms) ||
        !kr_x509_time_ms(X509_get0_notAfter(ca->cert), &until_ms))
        return kr_note_set(why, KR_EPROTO, "the CA certificate's validity is malformed");
    if (now_wall_ms < from_ms)
        return kr_note_set(why, KR_EPROTO, "the CA certificate is not valid yet");
    if (now_wall_ms > until_ms)
        return kr_note_set(why, KR_EPROTO, "the CA certificate has expired");
    return 0;
}

static int load_ca(struct kr_ca **out, struct kr_bytes cert_pem, const struct kr_bytes *key_pem,
                   const char *trust_domain, int64_t now_wall_ms, struct kr_note *why)
{
    struct kr_ca *ca = calloc(1, sizeof *ca);
    int rc;

    *out = NULL;
    if (ca == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    rc = kr_x509_from_pem(&ca->cert, cert_pem, why);
    if (rc == 0 && key_pem != NULL)
        rc = kr_key_from_pem(&ca->key, *key_pem, why);
    if (rc == 0)
        rc = check_ca(ca, now_wall_ms, why);
    if (rc == 0)
        rc = read_domain(ca, trust_domain, why);
    if (rc != 0)
        kr_ca_destroy(ca);
    else
        *out = ca;
    return rc;
}

int kr_ca_load(struct kr_ca **out, struct kr_bytes cert_pem, struct kr_bytes key_pem,
               const char *trust_domain, int64_t now_wall_ms, struct kr_note *why)
{
    return load_ca(out, cert_pem, &key_pem, trust_domain, now_wall_ms, why);
}

int kr_ca_load_public(struct kr_ca **out, struct kr_bytes cert_pem, const char *trust_domain,
                      int64_t now_wall_ms, struct kr_note *why)
{
    return load_ca(out, cert_pem, NULL, trust_domain, now_wall_ms, why);
}

void kr_ca_destroy(struct kr_ca *ca)
{
    if (ca == NULL)
        return;
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key); /* OpenSSL wipes private numbers */
    free(ca);
}

const char *kr_ca_trust_domain(const struct kr_ca *ca)
{
    return ca->domain;
}

/* --- leaves --- */

static int check_lifetime(const struct kr_ca *ca, const struct kr_leaf *leaf, int64_t now_wall_ms,
                          int64_t *out_s, struct kr_note *why)
{
    int64_t most = kr_ca_lifetime_max_s(leaf->role);
    int64_t life = leaf->lifetime_s != 0 ? leaf->lifetime_s : kr_ca_lifetime_default_s(leaf->role);
    int64_t until_ms;

    if (life < KR_CA_HOUR_S || life > most)
        return kr_note_set(why, KR_EINVAL, "a certificate of a %s lives 1 hour to %lld days",
                           kr_role_text(leaf->role), (long long)(most / KR_CA_DAY_S));
    if (!kr_x509_time_ms(X509_get0_notAfter(ca->cert), &until_ms) ||
        now_wall_ms + life * 1000 > until_ms)
        return kr_note_set(why, KR_EINVAL,
                           "the certificate would outlive its CA, which has %lld "
                           "hours left",
                           (long long)((until_ms - now_wall_ms) / 3600000));
    *out_s = life;
    return 0;
}

/* Writes the URI, or an empty text for a user whose name no URI can hold. */
static int make_uri(const struct kr_ca *ca, const struct kr_leaf *leaf,
                    char out[KR_SPIFFE_ID_MAX + 1], struct kr_note *why)
{
    struct kr_spiffe_id id = {.role = leaf->role};
    size_t room = sizeof id.name;

    out[0] = 0;
    if (leaf->role == KR_ROLE_USER && !kr_spiffe_is_segment(kr_bytes_str(leaf->name)))
        return 0;
    snprintf(id.domain, room, "%s", ca->domain);
    if (snprintf(id.name, room, "%s", leaf->name) >= (int)room)
        return kr_note_set(why, KR_EINVAL, "the name is too long");
    if (leaf->role == KR_ROLE_AGENT &&
        snprintf(id.instance, room, "%s", leaf->instance) >= (int)room)
        return kr_note_set(why, KR_EINVAL, "the instance is too long");
    return kr_spiffe_id_format(&id, out, why);
}

int kr_ca_check_leaf(const struct kr_leaf *leaf, struct kr_note *why)
{
    bool hub = leaf->role == KR_ROLE_HUB;

    if (leaf->name == NULL || leaf->name[0] == 0)
        return kr_note_set(why, KR_EINVAL, "the name is empty");
    if (leaf->role == KR_ROLE_AGENT && leaf->instance == NULL)
        return kr_note_set(why, KR_EINVAL, "an agent needs an instance");
    if (!hub && leaf->dns_count + leaf->ip_count != 0)
        return kr_note_set(why, KR_EINVAL, "only a hub has DNS names and addresses");
    if (leaf->dns_count > KR_CA_NAMES_MAX || leaf->ip_count > KR_CA_NAMES_MAX)
        return kr_note_set(why, KR_EINVAL, "more than %d names", KR_CA_NAMES_MAX);
    if (leaf->role != KR_ROLE_USER && leaf->group_count != 0)
        return kr_note_set(why, KR_EINVAL, "only a user has groups");
    if (leaf->group_count > KR_GROUPS_MAX)
        return kr_note_set(why, KR_EINVAL, "more than %d groups", KR_GROUPS_MAX);
    return 0;
}

static int fill_subject(X509 *x, const struct kr_leaf *leaf, struct kr_note *why)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < leaf->group_count; i++)
        rc = kr_cert_add_subject(x, NID_organizationName, leaf->groups[i], why);
    if (rc == 0)
        rc = kr_cert_add_subject(x, NID_commonName, leaf->name, why);
    return rc;
}

int kr_ca_fill_leaf(X509 *x, struct kr_ca *ca, const struct kr_leaf *leaf, struct kr_note *why)
{
    const struct {
        int nid;
        const char *value;
    } extensions[] = {
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_ext_key_usage, leaf->role == KR_ROLE_HUB ? "serverAuth" : "clientAuth"},
        {NID_subject_key_identifier, "hash"},
        {NID_authority_key_identifier, "keyid:always"},
    };
    struct kr_leaf hosts = *leaf;
    char uri[KR_SPIFFE_ID_MAX + 1];
    int rc;

    if (leaf->role == KR_ROLE_HUB && leaf->dns_count + leaf->ip_count == 0) {
        hosts.dns = &leaf->name;
        hosts.dns_count = 1;
    }
    rc = make_uri(ca, leaf, uri, why);
    if (rc == 0)
        rc = fill_subject(x, leaf, why);
    if (rc == 0 && X509_set_issuer_name(x, X509_get_subject_name(ca->cert)) != 1)
        rc = kr_x509_fail(why, KR_ENOMEM, "cannot write the issuer");
    for (size_t i = 0; rc == 0 && i < sizeof extensions / sizeof extensions[0]; i++)
        rc = kr_cert_add_extension(x, ca->cert, extensions[i].nid, extensions[i].value, why);
    if (rc == 0)
        rc = kr_cert_add_names(x, uri[0] != 0 ? uri : NULL, &hosts, why);
    return rc;
}

/* Whatever the profile above forgets, the judge of the other end has the last word. */
static int judge(const struct kr_ca *ca, enum kr_role role, const struct kr_pem_pair *pair,
                 struct kr_note *why)
{
    struct kr_identity_rules rules = {.role = role, .trust_domain = ca->domain};
    struct kr_identity id;
    int rc = kr_identity_judge_pem(&id, kr_buf_bytes(&pair->cert), &rules, why);

    kr_identity_deinit(&id);
    return rc;
}

int kr_ca_issue(struct kr_ca *ca, const struct kr_leaf *leaf, int64_t now_wall_ms,
                struct kr_pem_pair *out, struct kr_note *why)
{
    EVP_PKEY *key = NULL;
    X509 *x = NULL;
    int64_t life_s = 0;
    int rc;

    memset(out, 0, sizeof *out);
    rc = kr_ca_check_leaf(leaf, why);
    if (rc == 0)
        rc = check_lifetime(ca, leaf, now_wall_ms, &life_s, why);
    if (rc == 0)
        rc = kr_ca_new_key(&key, "P-256", why);
    if (rc == 0)
        rc = kr_cert_start(&x, key, now_wall_ms, life_s, why);
    if (rc == 0)
        rc = kr_ca_fill_leaf(x, ca, leaf, why);
    if (rc == 0)
        rc = kr_cert_sign(x, ca->key, why);
    if (rc == 0)
        rc = kr_cert_to_pem(out, x, key, why);
    if (rc == 0) {
        rc = judge(ca, leaf->role, out, why);
        if (rc != 0)
            kr_pem_pair_deinit(out);
    }
    X509_free(x);
    EVP_PKEY_free(key);
    return rc;
}

int kr_pem_check_pair(struct kr_bytes cert_pem, struct kr_bytes key_pem, struct kr_note *why)
{
    EVP_PKEY *key = NULL;
    X509 *x = NULL;
    int rc = kr_x509_from_pem(&x, cert_pem, why);

    if (rc == 0)
        rc = kr_key_from_pem(&key, key_pem, why);
    if (rc == 0 && X509_check_private_key(x, key) != 1)
        rc = kr_x509_fail(why, KR_EPROTO, "the key does not belong to the certificate");
    X509_free(x);
    EVP_PKEY_free(key);
    return rc;
}

int kr_pem_check_ca(struct kr_bytes cert_pem, struct kr_note *why)
{
    X509 *x;
    int rc = kr_x509_from_pem(&x, cert_pem, why);

    if (rc == 0 && X509_check_ca(x) != 1)
        rc = kr_note_set(why, KR_EPROTO, "the certificate is not one of a CA");
    X509_free(x);
    return rc;
}
