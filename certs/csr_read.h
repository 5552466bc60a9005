/* SPDX-License-Identifier: Apache-2.0 */
/* csr_read: the inner half of csr: over OpenSSL's types; no other room includes it. */
#ifndef KR_CERTS_CSR_READ_H
#define KR_CERTS_CSR_READ_H

#include <openssl/x509.h>

#include "certs/csr.h"

/* The public key of a request that is in order; the caller frees it. */
int kr_csr_key(EVP_PKEY **out, struct kr_bytes csr, struct kr_note *why);

#endif
