/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/err.h"

int kr_hmac(const uint8_t key[KR_HMAC_SIZE], struct kr_bytes in, uint8_t out[KR_HMAC_SIZE])
{
    static const uint8_t nothing[1];
    unsigned n = KR_HMAC_SIZE;

    if (HMAC(EVP_sha256(), key, KR_HMAC_SIZE, in.n != 0 ? in.p : nothing, in.n, out, &n) == NULL)
        return KR_ENOMEM;
    return 0;
}

int kr_sha256(struct kr_bytes in, uint8_t out[KR_HMAC_SIZE])
{
    return EVP_Digest(in.p, in.n, out, NULL, EVP_sha256(), NULL) == 1 ? 0 : KR_ENOMEM;
}

bool kr_hmac_equal(const uint8_t a[KR_HMAC_SIZE], const uint8_t b[KR_HMAC_SIZE])
{
    return CRYPTO_memcmp(a, b, KR_HMAC_SIZE) == 0;
}
