/* SPDX-License-Identifier: Apache-2.0 */
/* tls_context: what a TLS endpoint presents and trusts. Immutable; a reload builds a new one and
 * swaps the pointer, connections keep the old one by reference.
 * Never: tickets, resumption, renegotiation, compression, early data, the system's trust store.
 * TLS 1.3 only unless tls12 is set; then AEAD suites with forward secrecy only.
 * Memory:  create gives one reference; files are read at creation, at most 1 MiB each.
 * Errors:  KR_EINVAL (configuration, key does not fit the certificate), KR_ENOENT, KR_EIO,
 *          KR_EDENIED (the key file is open to others), KR_ETLS; the note says what and where.
 * Threads: immutable, so any; counting references is atomic. */
#ifndef KR_NET_TLS_CONTEXT_H
#define KR_NET_TLS_CONTEXT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/note.h"

#define KR_TLS_ALPN_MAX 4
#define KR_TLS_PIN 32 /* SHA-256 of a SubjectPublicKeyInfo */

enum kr_tls_peer_cert { /* server: what is asked of the client; a client always asks */
                        KR_TLS_CERT_NONE,
                        KR_TLS_CERT_OPTIONAL, /* verified if there is one */
                        KR_TLS_CERT_REQUIRED,
};

struct kr_tls_alpn {
    const char *name;                /* "h2", "http/1.1", "kuberelay/1" */
    enum kr_tls_peer_cert peer_cert; /* server: for connections that chose this protocol */
    bool secret_in;                  /* server: as below, for this protocol only */
};

/* PEM, from a file or from memory. Both empty: absent. */
struct kr_tls_pem {
    const char *file;
    struct kr_bytes bytes;
};

struct kr_tls_config {
    bool server;
    bool tls12;             /* also accept TLS 1.2 */
    struct kr_tls_pem cert; /* leaf first, then intermediates (at most 10); server: required */
    struct kr_tls_pem key;
    struct kr_tls_pem ca; /* anchors; required for a client and where client certificates are */
    const uint8_t *pin;   /* instead of ca: of the root that the peer must show; KR_TLS_PIN bytes */
    struct kr_tls_pem crl;          /* optional; then every issuer must have one */
    const struct kr_tls_alpn *alpn; /* in order of preference */
    size_t alpn_count;
    bool alpn_required;              /* a peer without a common protocol is refused */
    enum kr_tls_peer_cert peer_cert; /* server: for a client that sends no ALPN */
    bool lax_key_mode; /* the key file may be readable by others (Kubernetes projected volume) */
    bool lax_x509;     /* accept certificates that bend RFC 5280 (foreign API servers) */
    /* What is read or written may be credentials, and it is little: it is cleared behind itself. */
    bool secret_in;
    bool secret_out;
    bool insecure_skip_verify; /* refused with KR_EUNSUPPORTED; here so that the refusal is ours */
};

struct kr_tls_context;

/* NULL: *rc (may be NULL) has the code. */
struct kr_tls_context *kr_tls_context_create(const struct kr_tls_config *cfg, int *rc,
                                             struct kr_note *why);
struct kr_tls_context *kr_tls_context_ref(struct kr_tls_context *ctx);
void kr_tls_context_unref(struct kr_tls_context *ctx); /* NULL is fine */
/* When our own certificate ends, seconds since 1970; 0 without one. */
int64_t kr_tls_context_not_after(const struct kr_tls_context *ctx);

#endif
