/* SPDX-License-Identifier: Apache-2.0 */
/* signing: where this hub gets the certificates of agents from: the CA's key in its own process
 * (certs/signer.h, options signerCertFile and signerKeyFile), or kuberelay-signer on a Unix socket
 * (option signer), which has the key, the limits and the audit log then. The answer is asynchronous
 * in both cases.
 * Errors: to on_done: those of certs/signer.h; KR_EUNAVAILABLE also if the signer is away,
 * KR_EPROTO if it does not speak our language. The note is good for the peer if it is KR_EFULL.
 * Limits: 10 s. Threads: the worker's. */
#ifndef HUB_SIGNING_H
#define HUB_SIGNING_H

#include "hub/worker.h"

struct hub_signer;
struct hub_signing_call;

struct hub_signing { /* one certificate that is asked for; embed it, zeroed; read owner */
    /* Once, never from inside the start, and the last. `chain` is lent; empty on failure. */
    void (*on_done)(struct hub_signing *g, int rc, struct kr_bytes chain,
                    const struct kr_note *why);
    void *owner;

    struct hub_signing_call *call; /* NULL: nothing is under way */
};

/* *out is NULL if the options name no CA: agents cannot enroll here. */
int hub_signer_create(struct hub_worker *w, struct hub_signer **out, struct kr_note *why);
void hub_signer_destroy(struct hub_signer *s); /* NULL is fine */
/* Reads the files anew; on failure the old ones stay. */
int hub_signer_load(struct hub_signer *s, struct kr_note *why);
/* Somebody has renamed the audit log. */
void hub_signer_reopen(struct hub_signer *s);
/* Whether the CA in use has signed the first certificate. */
bool hub_signer_has_signed(const struct hub_signer *s, struct kr_bytes chain_pem);

/* `csr` is copied. */
void hub_signing_start(struct hub_signer *s, struct hub_signing *g, const char *uri,
                       struct kr_bytes csr);
/* No callback comes any more. Nothing under way is fine. */
void hub_signing_cancel(struct hub_signing *g);

#endif
