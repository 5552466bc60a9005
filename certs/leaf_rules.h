/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_rules: what a leaf certificate may be used for and how strong it is, whoever it names.
 * Pure over OpenSSL's types; no other room includes it.
 * Errors: KR_EDENIED with the sentence in the note. */
#ifndef KR_CERTS_LEAF_RULES_H
#define KR_CERTS_LEAF_RULES_H

#include <openssl/x509.h>

#include "certs/spiffe_id.h"

/* X.509 version 3, well-formed extensions, no CA, digitalSignature and no signing of certificates,
 * the extended key usage that `role` needs (RFC 5280 4.2.1.3, 4.2.1.9, 4.2.1.12). */
int kr_leaf_check_usage(X509 *x, enum kr_role role, struct kr_note *why);
/* RSA of 2048 bits and more, NIST P-256, P-384, P-521, Ed25519; signed with SHA-256 or better. */
int kr_leaf_check_strength(X509 *x, struct kr_note *why);

#endif
