/* SPDX-License-Identifier: Apache-2.0 */
/* jwks_fetch: the keys of issuers that publish them at a URL, fetched in advance over HTTPS: at the
 * start, every hour, and when a token names a key that is not known, at most once a minute. No
 * request ever waits for it. What was fetched stays in use when the next fetch fails.
 * Limits: 256 KiB, 15 s, TLS 1.2 or newer with the issuer's caFile only, no redirects, no proxy.
 * Threads: the worker's. */
#ifndef HUB_JWKS_FETCH_H
#define HUB_JWKS_FETCH_H

#include "hub/issuers.h"
#include "hub/worker.h"

struct hub_jwks_fetch;

/* Begins at once. `issuers` must outlive it. *out is NULL if none of them has a URL. */
int hub_jwks_fetch_create(struct hub_worker *w, struct hub_issuers *issuers,
                          struct hub_jwks_fetch **out, struct kr_note *why);
/* What runs is abandoned and ends by itself. NULL is fine. */
void hub_jwks_fetch_destroy(struct hub_jwks_fetch *f);
/* A token named a key that the issuer's set does not have. */
void hub_jwks_fetch_want(struct hub_jwks_fetch *f, const struct hub_issuer *issuer);

#endif
