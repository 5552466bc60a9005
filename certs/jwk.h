/* SPDX-License-Identifier: Apache-2.0 */
/* jwk: the public keys of an issuer of tokens: a JSON Web Key Set (RFC 7517).
 * Taken:  keys with a kid, of kty RSA (2,048 to 8,192 bits) or EC P-256, that are for signatures
 *         (use and key_ops, if given, say so); other entries are skipped. A kid twice is a fault.
 * Memory: a set owns its keys. Limits: 256 KiB, 64 keys.
 * Errors: KR_EPROTO (no set, or none of its keys can be used), KR_ETOOBIG, KR_ENOMEM.
 * Threads: immutable, any. */
#ifndef KR_CERTS_JWK_H
#define KR_CERTS_JWK_H

#include "base/bytes.h"
#include "base/note.h"

#define KR_JWKS_MAX (256u * 1024)
#define KR_JWKS_KEYS_MAX 64

enum kr_jwt_alg {
    KR_JWT_RS256 = 1,
    KR_JWT_ES256 = 2,
};

struct kr_jwks;

int kr_jwks_parse(struct kr_jwks **out, struct kr_bytes text, struct kr_note *why);
void kr_jwks_destroy(struct kr_jwks *s); /* NULL is fine */
size_t kr_jwks_count(const struct kr_jwks *s);
bool kr_jwks_has(const struct kr_jwks *s, struct kr_bytes kid);
/* Whether the key of that kid, which must be for that algorithm, signed `text`. KR_ENOENT: no such
 * key; KR_EDENIED: it did not, or is of another kind. */
int kr_jwks_verify(const struct kr_jwks *s, struct kr_bytes kid, enum kr_jwt_alg alg,
                   struct kr_bytes text, struct kr_bytes signature, struct kr_note *why);

#endif
