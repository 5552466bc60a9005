/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/identity.h"

#include <openssl/err.h>
#include <stdlib.h>

#include "base/err.h"
#include "certs/leaf_rules.h"
#include "certs/store_file.h"
#include "certs/x509_util.h"

#define PEM_MAX (1u << 20)

/* Text of a subject as Kubernetes would read it: no control characters, no foreign encodings whose
 * bytes would mean something else as UTF-8. */
static int check_text(const char *what, const ASN1_STRING *s, struct kr_note *why)
{
    struct kr_bytes b = kr_x509_bytes(s);
    int type = ASN1_STRING_type(s);

    if (type != V_ASN1_UTF8STRING && type != V_ASN1_PRINTABLESTRING && type != V_ASN1_IA5STRING)
        return kr_note_set(why, KR_EDENIED, "the subject's %s is not UTF-8 text", what);
    if (b.n == 0 || b.n > KR_NAME_MAX)
        return kr_note_set(why, KR_EDENIED, "the subject's %s has %zu bytes; 1 to %d are allowed",
                           what, b.n, KR_NAME_MAX);
    if (!kr_bytes_is_utf8(b))
        return kr_note_set(why, KR_EDENIED, "the subject's %s is not UTF-8 text", what);
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] < ' ' || b.p[i] == 0x7f)
            return kr_note_set(why, KR_EDENIED, "the subject's %s has a control character", what);
    }
    if (kr_bytes_starts(b, KR_LIT("system:")))
        return kr_note_set(why, KR_EDENIED, "the subject's %s \"%.*s\" begins with system:", what,
                           b.n < 80 ? (int)b.n : 80, (const char *)b.p);
    return 0;
}

/* The subject's only CN; .p is NULL if it has none. */
static int read_common_name(const X509_NAME *subject, struct kr_bytes *out, struct kr_note *why)
{
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    const ASN1_STRING *s;
    int rc;

    *out = (struct kr_bytes){NULL, 0};
    if (at < 0)
        return 0;
    if (X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return kr_note_set(why, KR_EDENIED, "the subject has more than one CN");
    s = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    rc = check_text("CN", s, why);
    if (rc == 0)
        *out = kr_x509_bytes(s);
    return rc;
}

/* Checks every O and says how many there are and how many bytes they need with their NULs. */
static int measure_groups(const X509_NAME *subject, size_t *count, size_t *bytes,
                          struct kr_note *why)
{
    int at = -1;

    while ((at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0) {
        const ASN1_STRING *s = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
        int rc = check_text("O (group)", s, why);

        if (rc != 0)
            return rc;
        if (++*count > KR_GROUPS_MAX)
            return kr_note_set(why, KR_EDENIED, "the subject has more than %d groups",
                               KR_GROUPS_MAX);
        *bytes += kr_x509_bytes(s).n + 1;
    }
    return 0;
}

static int read_groups(struct kr_identity *id, const X509_NAME *subject, struct kr_note *why)
{
    size_t count = 0;
    size_t bytes = 0;
    int at = -1;
    char *text;
    int rc = measure_groups(subject, &count, &bytes, why);

    if (rc != 0 || count == 0)
        return rc;
    id->groups = malloc(count * sizeof *id->groups + bytes);
    if (id->groups == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    text = (char *)(id->groups + count);
    while ((at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at)) >= 0) {
        struct kr_bytes b =
            kr_x509_bytes(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));

        memcpy(text, b.p, b.n);
        text[b.n] = 0;
        id->groups[id->group_count++] = text;
        text += b.n + 1;
    }
    return 0;
}

static int read_user(struct kr_identity *id, const X509 *x, bool has_uri, struct kr_note *why)
{
    const X509_NAME *subject = X509_get_subject_name(x);
    struct kr_bytes cn;
    int rc = read_common_name(subject, &cn, why);

    if (rc != 0)
        return rc;
    if (has_uri) {
        if (cn.p == NULL)
            return 0; /* the subject does not speak of this user */
        if (!kr_bytes_is(cn, id->name))
            return kr_note_set(why, KR_EDENIED,
                               "the certificate's CN and its URI name different users");
    } else {
        if (cn.p == NULL)
            return kr_note_set(why, KR_EDENIED, "the certificate has neither a URI name nor a CN");
        memcpy(id->name, cn.p, cn.n);
        id->name[cn.n] = 0;
    }
    return read_groups(id, subject, why);
}

static int take_uri(struct kr_identity *id, struct kr_bytes uri,
                    const struct kr_identity_rules *rules, struct kr_note *why)
{
    struct kr_spiffe_id sid;

    if (kr_spiffe_id_parse(&sid, uri, why) != 0)
        return KR_EDENIED;
    if (sid.role != rules->role)
        return kr_note_set(why, KR_EDENIED, "the certificate names one of role %s, not %s",
                           kr_role_text(sid.role), kr_role_text(rules->role));
    if (rules->trust_domain != NULL && strcmp(sid.domain, rules->trust_domain) != 0)
        return kr_note_set(why, KR_EDENIED, "the trust domain is \"%.64s\", not \"%.64s\"",
                           sid.domain, rules->trust_domain);
    memcpy(id->domain, sid.domain, sizeof id->domain);
    memcpy(id->instance, sid.instance, sizeof id->instance);
    memcpy(id->name, sid.name, sizeof sid.name);
    return 0;
}

static int read_names(struct kr_identity *id, const X509 *x, const struct kr_identity_rules *rules,
                      struct kr_note *why)
{
    GENERAL_NAMES *names;
    struct kr_bytes uri;
    int rc;

    rc = kr_x509_only_uri(x, &names, &uri, why);
    if (rc == 0 && uri.p == NULL && rules->role != KR_ROLE_USER)
        rc = kr_note_set(why, KR_EDENIED, "the certificate has no URI name");
    if (rc == 0 && uri.p != NULL)
        rc = take_uri(id, uri, rules, why);
    if (rc == 0 && rules->role == KR_ROLE_USER)
        rc = read_user(id, x, uri.p != NULL, why);
    GENERAL_NAMES_free(names);
    return rc;
}

static int read_facts(struct kr_identity *id, const X509 *x, struct kr_note *why)
{
    if (!kr_x509_time_ms(X509_get0_notBefore(x), &id->not_before_wall_ms) ||
        !kr_x509_time_ms(X509_get0_notAfter(x), &id->not_after_wall_ms))
        return kr_note_set(why, KR_EDENIED, "the certificate's validity is malformed");
    if (!kr_x509_serial(x, id->serial))
        return kr_note_set(why, KR_EDENIED, "the certificate's serial number is malformed");
    if (!kr_x509_spki_sha256(x, id->spki_sha256))
        return kr_note_set(why, KR_EDENIED, "the certificate's key cannot be read");
    return 0;
}

static int judge(struct kr_identity *out, X509 *x, const struct kr_identity_rules *rules,
                 struct kr_note *why)
{
    int rc;

    /* Names first: "is one of an agent" says more than the usage that goes with the wrong role. */
    out->role = rules->role;
    rc = read_names(out, x, rules, why);
    if (rc == 0)
        rc = kr_leaf_check_usage(x, rules->role, why);
    if (rc == 0)
        rc = kr_leaf_check_strength(x, why);
    if (rc == 0)
        rc = read_facts(out, x, why);
    ERR_clear_error(); /* what was refused must not show up in the next call into OpenSSL */
    if (rc != 0)
        kr_identity_deinit(out);
    return rc;
}

int kr_identity_judge(struct kr_identity *out, struct kr_bytes der,
                      const struct kr_identity_rules *rules, struct kr_note *why)
{
    X509 *x;
    int rc;

    memset(out, 0, sizeof *out);
    if (der.n > KR_CERT_MAX)
        return kr_note_set(why, KR_EDENIED, "the certificate has %zu bytes; %d are allowed", der.n,
                           KR_CERT_MAX);
    rc = kr_x509_from_der(&x, der, why);
    if (rc == 0)
        rc = judge(out, x, rules, why);
    X509_free(x);
    return rc;
}

int kr_identity_judge_pem(struct kr_identity *out, struct kr_bytes pem,
                          const struct kr_identity_rules *rules, struct kr_note *why)
{
    unsigned char *der = NULL;
    X509 *x;
    int n;
    int rc;

    memset(out, 0, sizeof *out);
    rc = kr_x509_from_pem(&x, pem, why);
    if (rc != 0)
        return rc;
    n = i2d_X509(x, &der);
    X509_free(x);
    if (n <= 0)
        return kr_x509_fail(why, KR_ENOMEM, "the certificate cannot be encoded");
    rc = kr_identity_judge(out, kr_bytes_of(der, (size_t)n), rules, why);
    OPENSSL_free(der);
    return rc;
}

int kr_identity_judge_file(struct kr_identity *out, const char *path,
                           const struct kr_identity_rules *rules, struct kr_note *why)
{
    struct kr_buf pem = {.max = PEM_MAX};
    int rc = kr_file_read(&pem, path, PEM_MAX, why);

    *out = (struct kr_identity){0};
    if (rc == 0) {
        rc = kr_identity_judge_pem(out, kr_buf_bytes(&pem), rules, why);
        if (rc != 0)
            kr_note_wrap(why, rc, "%s", path);
    }
    kr_buf_deinit(&pem);
    return rc;
}

void kr_identity_deinit(struct kr_identity *id)
{
    if (id == NULL)
        return;
    free(id->groups);
    memset(id, 0, sizeof *id);
}
