/* SPDX-License-Identifier: Apache-2.0 */
/* identity: judges the certificate of a peer whose chain TLS has already verified.
 * TLS accepts leaves without extended key usage, with two URI names or with a port in the URI
 * (measured on OpenSSL 3.0), so who a peer is gets decided here, from the leaf alone:
 * exactly one URI name by the grammar of spiffe_id.h, the role that the port demands, our trust
 * domain, the extended key usage of that role present, digitalSignature, not a CA, a strong key, a
 * strong signature.
 * Users are named by their URI, or, if there is none, by CN = user and O = groups, as Kubernetes
 * does
 * (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates).
 * A certificate with a user URI takes its groups from O too, provided that its CN is the same name;
 * with no CN its O is not ours to read, with another CN it is refused.
 * Names and groups that begin with "system:" are refused: they belong to a cluster's own
 * components.
 *
 * Memory: groups is one malloc; kr_identity_deinit frees it.
 * Units:  times are milliseconds since 1970.
 * Errors: KR_EPROTO (not a certificate), KR_EDENIED (refused; the note has the sentence for the
 * log, never for the peer), KR_ENOMEM. Expiry is TLS's to check: these functions have no clock.
 * Threads: any. */
#ifndef KR_CERTS_IDENTITY_H
#define KR_CERTS_IDENTITY_H

#include "certs/spiffe_id.h"

#define KR_CERT_MAX 16384 /* bytes of a certificate's DER */
#define KR_NAME_MAX 256   /* bytes of a user or a group */
#define KR_GROUPS_MAX 1000

struct kr_identity {
    enum kr_role role;
    char domain[KR_SPIFFE_ID_MAX + 1];   /* empty for a user that is named by its CN */
    char name[KR_NAME_MAX + 1];          /* replica, cluster or user */
    char instance[KR_SPIFFE_ID_MAX + 1]; /* agents only, else empty */
    char **groups;                       /* owned; users only; NULL if there are none */
    size_t group_count;
    char serial[41];         /* lower-case hex */
    uint8_t spki_sha256[32]; /* of the whole SubjectPublicKeyInfo */
    int64_t not_before_wall_ms;
    int64_t not_after_wall_ms;
};

struct kr_identity_rules {
    enum kr_role role;        /* what the port demands */
    const char *trust_domain; /* NULL: whichever it names (only for our own certificate) */
};

/* `der` is one certificate. On failure *out is all zero. */
int kr_identity_judge(struct kr_identity *out, struct kr_bytes der,
                      const struct kr_identity_rules *rules, struct kr_note *why);
/* The same for the first certificate of a PEM text: how a program learns its own name and trust
 * domain from its own certificate, and refuses to start with the wrong one. */
int kr_identity_judge_pem(struct kr_identity *out, struct kr_bytes pem,
                          const struct kr_identity_rules *rules, struct kr_note *why);
/* The same for a file; what it cannot read is KR_ENOENT or KR_EIO. Blocks on the disk. */
int kr_identity_judge_file(struct kr_identity *out, const char *path,
                           const struct kr_identity_rules *rules, struct kr_note *why);
void kr_identity_deinit(struct kr_identity *id); /* NULL and zeroed are fine */

#endif
