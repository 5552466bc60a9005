/* SPDX-License-Identifier: Apache-2.0 */
/* ca: makes a root and issues the certificates of hubs, agents and users from it.
 * Profile (X.509-SVID, https://github.com/spiffe/spiffe/blob/main/standards/X509-SVID.md):
 *   root: ECDSA P-384, critical basicConstraints CA:TRUE pathlen:1, critical keyUsage keyCertSign
 * and cRLSign, URI name spiffe://DOMAIN: so the root itself says which trust domain it is for.
 *   leaf: ECDSA P-256, random 128-bit serial, valid from five minutes ago (clocks differ), critical
 *         basicConstraints CA:FALSE, critical keyUsage digitalSignature, subject and authority key
 *         ids, exactly one URI name. hub: serverAuth and DNS/IP names; agent and user: clientAuth.
 *         The CN repeats replica, cluster or user; a user's groups are the O of the subject. A user
 *         whose name no SPIFFE segment can hold (alice@example.com) gets no URI: CN names him.
 * What it issues has been judged by identity.h: it cannot issue what a peer would refuse.
 * Memory: kr_ca is opaque; a kr_pem_pair is the caller's, its key is wiped by kr_pem_pair_deinit.
 * Units:  now_wall_ms is milliseconds since 1970, lifetimes are seconds.
 * Errors: KR_EINVAL (a name, an address or a lifetime that cannot be), KR_EPROTO (unusable CA),
 *         KR_EDENIED (what would be issued is refused), KR_ENOMEM.
 * Threads: a kr_ca belongs to one thread at a time. */
#ifndef KR_CERTS_CA_H
#define KR_CERTS_CA_H

#include "base/buf.h"
#include "certs/spiffe_id.h"

#define KR_CA_HOUR_S INT64_C(3600)
#define KR_CA_DAY_S INT64_C(86400)
#define KR_CA_NAMES_MAX 100 /* DNS names, and as many addresses, of one hub */

struct kr_ca;

struct kr_pem_pair {
    struct kr_buf cert; /* PEM */
    struct kr_buf key;  /* PEM, PKCS#8, not encrypted */
};

void kr_pem_pair_deinit(struct kr_pem_pair *p); /* zeroed is fine */

/* years: 1 to 30. `out` is filled only on success. */
int kr_ca_create_root(struct kr_pem_pair *out, const char *trust_domain, int years,
                      int64_t now_wall_ms, struct kr_note *why);

/* trust_domain: NULL for the one that the certificate names; a CA of another making names none,
 * then it must be given. */
int kr_ca_load(struct kr_ca **out, struct kr_bytes cert_pem, struct kr_bytes key_pem,
               const char *trust_domain, int64_t now_wall_ms, struct kr_note *why);
/* The same without the key: it knows what it has signed, and can sign nothing. */
int kr_ca_load_public(struct kr_ca **out, struct kr_bytes cert_pem, const char *trust_domain,
                      int64_t now_wall_ms, struct kr_note *why);
void kr_ca_destroy(struct kr_ca *ca);
const char *kr_ca_trust_domain(const struct kr_ca *ca);

struct kr_leaf { /* all is borrowed for the call */
    enum kr_role role;
    const char *name;       /* replica, cluster or user */
    const char *instance;   /* agents */
    const char *const *dns; /* hubs; a first label of "*" is allowed */
    size_t dns_count;       /* hubs with neither DNS nor IP name get `name` as DNS name */
    const char *const *ip;  /* hubs; IPv4 or IPv6 text */
    size_t ip_count;
    const char *const *groups; /* users */
    size_t group_count;
    int64_t lifetime_s; /* 0: the role's default; see kr_ca_lifetime_* */
};

/* hub 90 days, agent 30 days, user 12 hours. */
int64_t kr_ca_lifetime_default_s(enum kr_role role);
/* hub 825 days, agent 90 days, user 365 days; the least is one hour for all. */
int64_t kr_ca_lifetime_max_s(enum kr_role role);

int kr_ca_issue(struct kr_ca *ca, const struct kr_leaf *leaf, int64_t now_wall_ms,
                struct kr_pem_pair *out, struct kr_note *why);

/* Certifies the key of a request (certs/csr.h) as `leaf`, an agent; nothing else of the request is
 * looked at. The lifetime may be as short as 5 seconds, and is cut where the CA's own ends.
 * `chain` gets the certificate and, if the CA is not a root, the CA's behind it, as PEM. */
int kr_ca_issue_csr(struct kr_ca *ca, const struct kr_leaf *leaf, struct kr_bytes csr,
                    int64_t now_wall_ms, struct kr_buf *chain, struct kr_note *why);
/* A CA that certifies agents only (a path length of 0, no DNS names and no addresses), for a hub.
 */
int kr_ca_create_agent_ca(struct kr_ca *root, int64_t lifetime_s, int64_t now_wall_ms,
                          struct kr_pem_pair *out, struct kr_note *why);

/* 0 if the key belongs to the certificate. */
int kr_pem_check_pair(struct kr_bytes cert_pem, struct kr_bytes key_pem, struct kr_note *why);
/* 0 if the first certificate is one of a CA. */
int kr_pem_check_ca(struct kr_bytes cert_pem, struct kr_note *why);
/* 0 if the chain (leaf first) leads to one of the roots, whatever the time. */
int kr_pem_check_chain(struct kr_bytes chain_pem, struct kr_bytes roots_pem, struct kr_note *why);

#endif
