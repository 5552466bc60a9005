/* SPDX-License-Identifier: Apache-2.0 */
/* x509_util: what the files of this room share over OpenSSL's types. No other room includes it.
 * Memory: what is returned through a pointer is the caller's; free it with OpenSSL's function.
 * Errors: KR_EPROTO for content that is not what it should be, KR_ENOMEM. */
#ifndef KR_CERTS_X509_UTIL_H
#define KR_CERTS_X509_UTIL_H

#include <openssl/x509v3.h>

#include "base/bytes.h"
#include "base/note.h"

/* Sets the note to "what: OpenSSL's reason" and empties OpenSSL's error queue. */
int kr_x509_fail(struct kr_note *why, int code, const char *what);

/* The first certificate of a PEM text. */
int kr_x509_from_pem(X509 **out, struct kr_bytes pem, struct kr_note *why);
/* All of a PEM text, at most 1000; what cannot be read ends them. NULL without memory. */
STACK_OF(X509) * kr_x509_all_from_pem(struct kr_bytes pem);
/* Exactly one certificate, nothing behind it. */
int kr_x509_from_der(X509 **out, struct kr_bytes der, struct kr_note *why);
/* A private key that is not encrypted. */
int kr_key_from_pem(EVP_PKEY **out, struct kr_bytes pem, struct kr_note *why);

/* Milliseconds since 1970; false for a time that is not well-formed. */
bool kr_x509_time_ms(const ASN1_TIME *t, int64_t *out_wall_ms);
/* The bytes of an ASN.1 string, lent. They may hold NUL. */
struct kr_bytes kr_x509_bytes(const ASN1_STRING *s);
/* Lower-case hex of the serial number; at most 20 bytes of it (RFC 5280 4.1.2.2). */
bool kr_x509_serial(const X509 *x, char out[41]);
/* SHA-256 of the SubjectPublicKeyInfo, as pins use it (RFC 7469 2.4). */
bool kr_x509_spki_sha256(const X509 *x, uint8_t out[32]);
/* The only URI among the alternative names; lent by *names, which the caller frees with
 * GENERAL_NAMES_free also on failure. out->p is NULL if there is no URI at all. KR_EDENIED. */
int kr_x509_only_uri(const X509 *x, GENERAL_NAMES **names, struct kr_bytes *out,
                     struct kr_note *why);

#endif
