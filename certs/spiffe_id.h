/* SPDX-License-Identifier: Apache-2.0 */
/* spiffe_id: the names that certificates carry, and nothing else that a URI could be.
 *   spiffe://DOMAIN/hub/REPLICA
 *   spiffe://DOMAIN/cluster/NAME/agent/INSTANCE
 *   spiffe://DOMAIN/user/NAME
 * Grammar: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md section 2, made
 *          narrower: at most 255 bytes; the domain has no empty label; a cluster's NAME is an
 *          RFC 1123 label. No port, userinfo, query, fragment, percent-encoding, empty, "." or ".."
 *          segment, no trailing slash, no upper case in scheme or domain.
 * Pure:    no I/O, no allocation; any thread.
 * Errors:  KR_EPROTO for a text that is no identity, KR_EINVAL for a struct that is none. */
#ifndef KR_CERTS_SPIFFE_ID_H
#define KR_CERTS_SPIFFE_ID_H

#include "base/bytes.h"
#include "base/note.h"

#define KR_SPIFFE_ID_MAX 255 /* bytes, without the NUL */

enum kr_role {
    KR_ROLE_HUB,
    KR_ROLE_AGENT,
    KR_ROLE_USER,
};

struct kr_spiffe_id { /* NUL-terminated; as a whole they fit KR_SPIFFE_ID_MAX */
    enum kr_role role;
    char domain[KR_SPIFFE_ID_MAX + 1];
    char name[KR_SPIFFE_ID_MAX + 1];     /* replica, cluster or user */
    char instance[KR_SPIFFE_ID_MAX + 1]; /* agents only, else empty */
};

/* "hub", "agent" or "user". */
const char *kr_role_text(enum kr_role role);

/* On failure *out is all zero: a half-read identity must not be mistaken for one. */
int kr_spiffe_id_parse(struct kr_spiffe_id *out, struct kr_bytes uri, struct kr_note *why);
/* The exact inverse: what it writes is what kr_spiffe_id_parse reads. */
int kr_spiffe_id_format(const struct kr_spiffe_id *id, char out[KR_SPIFFE_ID_MAX + 1],
                        struct kr_note *why);

/* spiffe://DOMAIN, the name of a whole trust domain, as a root certificate carries it. */
int kr_spiffe_domain_parse(char out[KR_SPIFFE_ID_MAX + 1], struct kr_bytes uri,
                           struct kr_note *why);

bool kr_spiffe_is_domain(struct kr_bytes b);
/* One path segment: [a-zA-Z0-9._-]+ but "." and "..". */
bool kr_spiffe_is_segment(struct kr_bytes b);

#endif
