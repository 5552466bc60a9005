/* SPDX-License-Identifier: Apache-2.0 */
/* ca_parts: what the files of the CA share. Over OpenSSL's types; no other room includes it. */
#ifndef KR_CERTS_CA_PARTS_H
#define KR_CERTS_CA_PARTS_H

#include <openssl/x509v3.h>

#include "certs/ca.h"

struct kr_ca {
    X509 *cert;
    EVP_PKEY *key;
    char domain[KR_SPIFFE_ID_MAX + 1];
};

int kr_ca_new_key(EVP_PKEY **out, const char *curve, struct kr_note *why);
/* What can be wrong with the names of a leaf. */
int kr_ca_check_leaf(const struct kr_leaf *leaf, struct kr_note *why);
/* Subject, issuer, extensions and names. */
int kr_ca_fill_leaf(X509 *x, struct kr_ca *ca, const struct kr_leaf *leaf, struct kr_note *why);

#endif
