/* SPDX-License-Identifier: Apache-2.0 */
/* cert_build: the steps of making a certificate, shared by roots and leaves. Over OpenSSL's types;
 * no other room includes it.
 * Errors: KR_EINVAL for a DNS name or an address that is none, else KR_ENOMEM (OpenSSL failed). */
#ifndef KR_CERTS_CERT_BUILD_H
#define KR_CERTS_CERT_BUILD_H

#include <openssl/x509v3.h>

#include "certs/ca.h"

/* Version 3, random 128-bit serial, the key, and the validity [now - 5 min, now + lifetime_s]. */
int kr_cert_start(X509 **out, EVP_PKEY *key, int64_t now_wall_ms, int64_t lifetime_s,
                  struct kr_note *why);
/* Appends one attribute (NID_commonName, NID_organizationName) to the subject, as UTF-8. */
int kr_cert_add_subject(X509 *x, int nid, const char *text, struct kr_note *why);
/* `value` is OpenSSL's configuration syntax: constants only, never anybody's input. */
int kr_cert_add_extension(X509 *x, X509 *issuer, int nid, const char *value, struct kr_note *why);
/* The alternative names: uri may be NULL; dns and ip as in struct kr_leaf. Adds nothing if there
 * are none. */
int kr_cert_add_names(X509 *x, const char *uri, const struct kr_leaf *leaf, struct kr_note *why);
/* Signs with the digest that fits the key. */
int kr_cert_sign(X509 *x, EVP_PKEY *key, struct kr_note *why);
int kr_cert_to_pem(struct kr_pem_pair *out, X509 *x, EVP_PKEY *key, struct kr_note *why);

#endif
