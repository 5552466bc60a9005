/* SPDX-License-Identifier: Apache-2.0 */
/* hmac: HMAC with SHA-256 (RFC 2104), for texts that we hand out and take back from strangers.
 * Errors: KR_ENOMEM. Threads: any. */
#ifndef KR_CERTS_HMAC_H
#define KR_CERTS_HMAC_H

#include "base/bytes.h"

#define KR_HMAC_SIZE 32

int kr_hmac(const uint8_t key[KR_HMAC_SIZE], struct kr_bytes in, uint8_t out[KR_HMAC_SIZE]);
/* SHA-256 without a key. */
int kr_sha256(struct kr_bytes in, uint8_t out[KR_HMAC_SIZE]);
/* Takes the same time wherever they differ. */
bool kr_hmac_equal(const uint8_t a[KR_HMAC_SIZE], const uint8_t b[KR_HMAC_SIZE]);

#endif
