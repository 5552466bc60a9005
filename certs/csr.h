/* SPDX-License-Identifier: Apache-2.0 */
/* csr: requests for a certificate (PKCS#10, RFC 2986). An agent makes one with a new key; a hub
 * reads no more of it than the key: whatever names or extensions it asks for are ignored, and who
 * gets the certificate is decided elsewhere. Accepted keys: P-256, P-384, RSA of 3072 to 8192 bits,
 * Ed25519. Accepted form: DER, or PEM. Memory: into the caller's bufs; a key is wiped by
 * kr_buf_cleanse. Errors: KR_EPROTO (malformed, or its signature is not by its key), KR_EDENIED (a
 * weak key), KR_ETOOBIG, KR_ENOMEM, with a note. Threads: any. */
#ifndef KR_CERTS_CSR_H
#define KR_CERTS_CSR_H

#include "base/buf.h"
#include "base/note.h"

#define KR_CSR_MAX 12288 /* bytes; an RSA key of 8192 bits needs 2 KiB */

/* A new P-256 key, as PEM (PKCS#8). */
int kr_key_make(struct kr_buf *key_pem, struct kr_note *why);
/* A request in DER for that key, signed by it; it asks for no name. */
int kr_csr_make(struct kr_buf *der, struct kr_bytes key_pem, struct kr_note *why);
/* SHA-256 of the whole SubjectPublicKeyInfo of a request that is in order. */
int kr_csr_check(struct kr_bytes csr, uint8_t spki_sha256[32], struct kr_note *why);

#endif
