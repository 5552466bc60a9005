/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/describe.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <time.h>

#include "base/err.h"
#include "certs/identity.h"
#include "certs/x509_util.h"

/* All of these append and return the first failure of the buf. */
static int put_escaped(struct kr_buf *out, struct kr_bytes b)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < b.n; i++) {
        if (b.p[i] >= ' ' && b.p[i] < 0x7f && b.p[i] != '\\')
            rc = kr_buf_append(out, (struct kr_bytes){b.p + i, 1});
        else
            rc = kr_buf_printf(out, "\\x%02x", b.p[i]);
    }
    return rc;
}

static int put_line(struct kr_buf *out, const char *key, struct kr_bytes value)
{
    int rc = kr_buf_printf(out, "%s: ", key);

    if (rc == 0)
        rc = put_escaped(out, value);
    return rc != 0 ? rc : kr_buf_append_str(out, "\n");
}

static int put_hex(struct kr_buf *out, const char *key, const uint8_t *p, size_t n)
{
    int rc = kr_buf_printf(out, "%s: ", key);

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = kr_buf_printf(out, "%02x", p[i]);
    return rc != 0 ? rc : kr_buf_append_str(out, "\n");
}

static int put_name(struct kr_buf *out, const char *key, const X509_NAME *name)
{
    int rc = kr_buf_printf(out, "%s:", key);

    for (int i = 0; rc == 0 && i < X509_NAME_entry_count(name); i++) {
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, i);
        const char *sn = OBJ_nid2sn(OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)));

        rc = kr_buf_printf(out, "%s %s=", i != 0 ? "," : "", sn);
        if (rc == 0)
            rc = put_escaped(out, kr_x509_bytes(X509_NAME_ENTRY_get_data(entry)));
    }
    return rc != 0 ? rc : kr_buf_append_str(out, "\n");
}

static int put_time(struct kr_buf *out, const char *key, const ASN1_TIME *t)
{
    char text[32];
    int64_t ms;
    struct tm tm;
    time_t s;

    if (!kr_x509_time_ms(t, &ms))
        return kr_buf_printf(out, "%s: malformed\n", key);
    s = (time_t)(ms / 1000);
    if (gmtime_r(&s, &tm) == NULL || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        return kr_buf_printf(out, "%s: malformed\n", key);
    return kr_buf_printf(out, "%s: %s\n", key, text);
}

static int put_address(struct kr_buf *out, struct kr_bytes b)
{
    char text[INET6_ADDRSTRLEN] = "malformed";

    if (b.n == 4)
        inet_ntop(AF_INET, b.p, text, sizeof text);
    else if (b.n == 16)
        inet_ntop(AF_INET6, b.p, text, sizeof text);
    return kr_buf_printf(out, "ip: %s\n", text);
}

static int put_names(struct kr_buf *out, const X509 *x)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    int rc = 0;

    for (int i = 0; rc == 0 && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type == GEN_URI)
            rc = put_line(out, "uri", kr_x509_bytes(name->d.uniformResourceIdentifier));
        else if (name->type == GEN_DNS)
            rc = put_line(out, "dns", kr_x509_bytes(name->d.dNSName));
        else if (name->type == GEN_IPADD)
            rc = put_address(out, kr_x509_bytes(name->d.iPAddress));
    }
    GENERAL_NAMES_free(names);
    return rc;
}

/* The first alternative URI decides which role's sentence a reader wants to see. */
static enum kr_role guess_role(const X509 *x)
{
    struct kr_spiffe_id id = {.role = KR_ROLE_USER};
    GENERAL_NAMES *names;
    struct kr_bytes uri;

    if (kr_x509_only_uri(x, &names, &uri, NULL) != 0 || uri.p == NULL ||
        kr_spiffe_id_parse(&id, uri, NULL) != 0)
        id.role = KR_ROLE_USER;
    GENERAL_NAMES_free(names);
    return id.role;
}

static int put_verdict(struct kr_buf *out, const X509 *x, struct kr_bytes pem)
{
    struct kr_identity_rules rules = {.role = guess_role(x), .trust_domain = NULL};
    struct kr_identity id;
    struct kr_note why;
    int rc;

    if (kr_identity_judge_pem(&id, pem, &rules, &why) != 0)
        return kr_buf_printf(out, "refused: %s\n", why.text);
    rc = kr_buf_printf(out, "role: %s\n", kr_role_text(id.role));
    if (rc == 0)
        rc = put_line(out, "name", kr_bytes_str(id.name));
    if (rc == 0 && id.role == KR_ROLE_AGENT)
        rc = put_line(out, "instance", kr_bytes_str(id.instance));
    for (size_t i = 0; rc == 0 && i < id.group_count; i++)
        rc = put_line(out, "group", kr_bytes_str(id.groups[i]));
    kr_identity_deinit(&id);
    return rc;
}

static int put_validity(struct kr_buf *out, const X509 *x, int64_t now_wall_ms)
{
    const ASN1_TIME *from = X509_get0_notBefore(x);
    const ASN1_TIME *until = X509_get0_notAfter(x);
    const char *state = "valid now";
    int64_t ms;
    int rc = put_time(out, "not before", from);

    if (kr_x509_time_ms(from, &ms) && now_wall_ms < ms)
        state = "not valid yet";
    if (kr_x509_time_ms(until, &ms) && now_wall_ms > ms)
        state = "expired";
    if (rc == 0)
        rc = put_time(out, "not after", until);
    return rc != 0 ? rc : kr_buf_printf(out, "state: %s\n", state);
}

static int put_digests(struct kr_buf *out, const X509 *x)
{
    char serial[41];
    uint8_t digest[32];
    unsigned n = sizeof digest;
    int rc = kr_buf_printf(out, "serial: %s\n", kr_x509_serial(x, serial) ? serial : "malformed");

    if (rc == 0 && X509_digest(x, EVP_sha256(), digest, &n) == 1)
        rc = put_hex(out, "sha256", digest, sizeof digest);
    if (rc == 0 && kr_x509_spki_sha256(x, digest))
        rc = put_hex(out, "spki sha256", digest, sizeof digest);
    return rc;
}

static int describe(struct kr_buf *out, X509 *x, struct kr_bytes pem, int64_t now_wall_ms)
{
    int rc =
        X509_check_ca(x) != 0 ? kr_buf_append_str(out, "role: ca\n") : put_verdict(out, x, pem);

    if (rc == 0)
        rc = put_names(out, x);
    if (rc == 0)
        rc = put_name(out, "subject", X509_get_subject_name(x));
    if (rc == 0)
        rc = put_name(out, "issuer", X509_get_issuer_name(x));
    if (rc == 0)
        rc = put_validity(out, x, now_wall_ms);
    return rc != 0 ? rc : put_digests(out, x);
}

int kr_cert_describe(struct kr_buf *out, struct kr_bytes pem, int64_t now_wall_ms,
                     struct kr_note *why)
{
    X509 *x;
    int rc = kr_x509_from_pem(&x, pem, why);

    if (rc != 0)
        return rc;
    rc = describe(out, x, pem, now_wall_ms);
    X509_free(x);
    ERR_clear_error();
    return rc != 0 ? kr_note_set(why, rc, "the description: %s", kr_err_text(rc)) : 0;
}
