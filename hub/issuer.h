/* SPDX-License-Identifier: Apache-2.0 */
/* issuer: decides about Join and Renew, and signs. The names in a certificate come from the token
 * or from the certificate that asks, never from the request. Errors: KR_EDENIED (a token that is
 * not good: one text for all reasons; a cluster, instance or key that is denied), KR_EEXIST (the
 * token is used), KR_EPROTO and KR_EINVAL (the request), else the store's. The note is for the log;
 * `kr_err_text` is enough for the peer. Threads: the worker's. */
#ifndef HUB_ISSUER_H
#define HUB_ISSUER_H

#include "hub/registry.h"
#include "wire/enroll_messages.h"

struct hub_issuer;

struct hub_issued {
    struct kr_buf chain; /* PEM; the caller frees it */
    char cluster[64];
    char instance[256];
    uint64_t generation;
    bool pending;
    bool again; /* the same answer as before */
};

/* *out is NULL without a signer in the options. */
int hub_issuer_create(struct hub_worker *w, struct hub_registry *r, struct hub_issuer **out,
                      struct kr_note *why);
void hub_issuer_destroy(struct hub_issuer *is);
/* Reads the signer's files anew; on failure the old ones stay. */
int hub_issuer_load(struct hub_issuer *is, struct kr_note *why);

/* Whether the signer in use has signed that certificate. */
bool hub_issuer_signed(struct hub_issuer *is, struct kr_bytes chain_pem);

int hub_issuer_join(struct hub_issuer *is, const struct kr_join_request *q, struct hub_issued *out,
                    struct kr_note *why);
/* `id`: the peer's certificate, judged at the handshake. */
int hub_issuer_renew(struct hub_issuer *is, const struct kr_identity *id,
                     const struct kr_renew_request *q, struct hub_issued *out, struct kr_note *why);

#endif
