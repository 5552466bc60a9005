/* SPDX-License-Identifier: Apache-2.0 */
/* signing_call: one call of Sign, or a certificate that was made here and waits to be told of
 * (hub/signing.h). It frees itself when it has ended.
 * Limits: 10 s. Threads: the worker's. */
#ifndef HUB_SIGNING_CALL_H
#define HUB_SIGNING_CALL_H

#include "hub/worker.h"

#define HUB_SIGNER_UNIX "unix:" /* how option signer begins */

struct hub_signing;
struct hub_signing_call;

struct hub_signing_order {
    const char *uri;
    struct kr_bytes csr;
    int64_t lifetime_s;
};

/* Once, never from inside a call into it. `g` is NULL if it was cancelled. */
typedef void hub_signing_answer(void *owner, struct hub_signing *g, int rc, struct kr_bytes chain,
                                const struct kr_note *why);

struct hub_signing_call *hub_signing_call_create(struct hub_worker *w, struct hub_signing *g,
                                                 hub_signing_answer *on_answer, void *owner);
void hub_signing_call_dial(struct hub_signing_call *k, const char *path,
                           const struct hub_signing_order *order);
/* The answer is known already; takes the text of *chain. */
void hub_signing_call_finish(struct hub_signing_call *k, int rc, struct kr_buf *chain,
                             const struct kr_note *why);
void hub_signing_call_cancel(struct hub_signing_call *k);

#endif
