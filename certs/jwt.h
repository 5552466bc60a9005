/* SPDX-License-Identifier: Apache-2.0 */
/* jwt: signed tokens (RFC 7519), judged as RFC 8725 wants it: the algorithm must be one that the
 * caller allows, and the key's own; the key comes from the issuer's set by its kid alone (jku, x5u,
 * jwk and x5c are not looked at); iss is exactly the issuer; aud has one of ours; exp must be
 * there. What names another type of token (typ), or says that more must be understood (crit), is
 * refused. Memory: a token owns what it read; texts borrow it. Limits: KR_JWT_MAX bytes. Errors:
 * KR_EPROTO (no token), KR_EDENIED (not a good one), KR_ENOENT (no such key, yet), KR_ENOMEM.
 * Units: wall-clock milliseconds. Threads: any. */
#ifndef KR_CERTS_JWT_H
#define KR_CERTS_JWT_H

#include "base/buf.h"
#include "base/json.h"
#include "certs/jwk.h"

#define KR_JWT_MAX 8192
#define KR_JWT_LEEWAY_MS 30000

struct kr_jwt { /* read it; nothing of it is true before kr_jwt_verify said so */
    struct kr_json *header;
    struct kr_json *claims;
    struct kr_bytes kid;
    struct kr_bytes issuer;
    enum kr_jwt_alg alg;     /* 0: one that nobody may use */
    int64_t expires_wall_ms; /* 0: never */
    struct kr_bytes text;    /* what is signed; borrows the token */
    struct kr_buf signature;
};

struct kr_jwt_rules {
    const char *issuer;
    const char *const *audiences;
    size_t audience_count;
    unsigned algs; /* bits of enum kr_jwt_alg */
    const struct kr_jwks *keys;
    int64_t now_wall_ms;
};

/* Takes it apart; believes nothing. On failure *out is empty. */
int kr_jwt_read(struct kr_jwt *out, struct kr_bytes token, struct kr_note *why);
void kr_jwt_deinit(struct kr_jwt *t); /* zeroed is fine */
int kr_jwt_verify(const struct kr_jwt *t, const struct kr_jwt_rules *rules, struct kr_note *why);

#endif
