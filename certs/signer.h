/* SPDX-License-Identifier: Apache-2.0 */
/* signer: holds the CA of agents and certifies their keys, whoever asks: the hub's own process, or
 * kuberelay-signer for a hub that has no key. Who asks is not believed: the name must be an agent's
 * (certs/spiffe_id.h) in the CA's trust domain, the lifetime within bounds, the key strong; all
 * else that is in the certificate comes from here (certs/ca.h: clientAuth, no CA, no DNS name).
 * Limits:  `hour_limit` certificates in any hour, a sixth of them at once; for one cluster
 *          `cluster_limit` a minute and KR_SIGN_CLUSTER_BURST at once. So a thief of the hub gets
 * no more. Audit:   each certificate is one line of a chained log (certs/chained_log.h), an Event
 * of audit.k8s.io/v1, before it is handed out. While the log takes no lines there are none. Memory:
 * what is given back in *chain is the caller's. Errors:  KR_EDENIED (a name or a key that is not
 * certified here), KR_EINVAL (a lifetime), KR_EPROTO and KR_ETOOBIG (the request), KR_EFULL (a
 * limit: *retry_ms), KR_EUNAVAILABLE (the audit log). Threads: the sched's. */
#ifndef KR_CERTS_SIGNER_H
#define KR_CERTS_SIGNER_H

#include "base/line_file.h"
#include "base/sched.h"
#include "certs/ca.h"
#include "certs/sign_limits.h"

struct kr_signer;

struct kr_signer_config { /* texts are borrowed for its life */
    struct kr_sched *sched;
    const char *cert_file;
    const char *key_file;
    bool lax_key_mode;
    const char *trust_domain; /* NULL: the one that the certificate names */
    int64_t lifetime_max_s;   /* 0: as long as an agent's may be */
    int64_t hour_limit;
    int64_t cluster_limit; /* a minute */
    struct kr_line_file_config audit;
    /* The log takes no lines, or does again; `error` as in certs/chained_log.h. */
    void (*on_audit)(void *owner, bool failing, int error);
    void *owner;
};

struct kr_sign_order {
    struct kr_bytes uri; /* spiffe://DOMAIN/cluster/NAME/agent/INSTANCE */
    struct kr_bytes csr; /* only its key counts */
    int64_t lifetime_s;
    const char *caller; /* who asks, for the audit log */
};

int kr_signer_create(struct kr_signer **out, const struct kr_signer_config *cfg,
                     struct kr_note *why);
void kr_signer_destroy(struct kr_signer *s); /* NULL is fine */
/* Reads certificate and key anew; on failure the old ones stay. */
int kr_signer_load(struct kr_signer *s, struct kr_note *why);
/* Somebody has renamed the audit log. */
int kr_signer_reopen(struct kr_signer *s, struct kr_note *why);
const char *kr_signer_trust_domain(const struct kr_signer *s);

/* chain: PEM, as kr_ca_issue_csr makes it; filled on success only. */
int kr_signer_sign(struct kr_signer *s, const struct kr_sign_order *order, struct kr_buf *chain,
                   int64_t *retry_ms, struct kr_note *why);

#endif
