/* SPDX-License-Identifier: Apache-2.0 */
/* issuer: decides about Join and Renew. The names in a certificate come from the token or from the
 * certificate that asks, never from the request. Who signs is another question (hub/signing.h): the
 * first call says for which name, the second one brings the certificate and decides anew, since all
 * may have changed meanwhile. A token is bound to its key before that: of many at once one goes on,
 * and whatever breaks then, the same key may come again. Errors: KR_EDENIED (a token that is
 * not good: one text for all reasons; a cluster, instance or key that is denied), KR_EEXIST (the
 * token is used), KR_EPROTO and KR_EINVAL (the request), else the store's. The note is for the log;
 * `kr_err_text` is enough for the peer. Threads: the worker's. */
#ifndef HUB_ISSUER_H
#define HUB_ISSUER_H

#include "hub/registry.h"
#include "wire/enroll_messages.h"

struct hub_issuer;
struct hub_signer;

#define HUB_ISSUER_SIGN 1 /* a certificate for the key of the request and out->uri is needed */

struct hub_issued {
    struct kr_buf chain; /* PEM; the caller frees it */
    char cluster[64];
    char instance[256];
    char uri[KR_SPIFFE_ID_MAX + 1];
    uint64_t generation;
    bool pending;
    bool again; /* the same answer as before */
};

/* The signer is borrowed: it tells what it has signed. */
int hub_issuer_create(struct hub_worker *w, struct hub_registry *r, const struct hub_signer *signer,
                      struct hub_issuer **out, struct kr_note *why);
void hub_issuer_destroy(struct hub_issuer *is);

/* Whether the CA in use has signed that certificate. */
bool hub_issuer_signed(const struct hub_issuer *is, struct kr_bytes chain_pem);

/* `chain`: empty, or what was made after HUB_ISSUER_SIGN. */
int hub_issuer_join(struct hub_issuer *is, const struct kr_join_request *q, struct kr_bytes chain,
                    struct hub_issued *out, struct kr_note *why);
/* `id`: the peer's certificate, judged at the handshake. */
int hub_issuer_renew(struct hub_issuer *is, const struct kr_identity *id,
                     const struct kr_renew_request *q, struct kr_bytes chain,
                     struct hub_issued *out, struct kr_note *why);

#endif
