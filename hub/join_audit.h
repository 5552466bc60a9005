/* SPDX-License-Identifier: Apache-2.0 */
/* join_audit: the calls of Enrollment in the hub's audit log (trust_audit.h), before they are
 * answered. Threads: the worker's. */
#ifndef HUB_JOIN_AUDIT_H
#define HUB_JOIN_AUDIT_H

#include "hub/issuer.h"

/* `token_id` may be empty; `rc`: how it ended; `from`: the peer's address. */
void hub_join_audit(struct hub_worker *w, const char *token_id, const char *from, int rc,
                    const struct hub_issued *got, const struct kr_note *why);
void hub_renew_audit(struct hub_worker *w, const struct kr_identity *id, const char *from, int rc,
                     const struct hub_issued *got, const struct kr_note *why);

#endif
