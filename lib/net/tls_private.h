/* SPDX-License-Identifier: Apache-2.0 */
/* tls_private: what the tls_*.c files of net share. For them only: it brings in OpenSSL. */
#ifndef KR_NET_TLS_PRIVATE_H
#define KR_NET_TLS_PRIVATE_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "net/net_io.h"
#include "net/tls_context.h"

#define KR_TLS_ALPN_NAME 32 /* longest protocol name */

struct kr_tls_context { /* the fields belong to tls_context.c; tls_pipe.c reads them */
    atomic_uint refs;
    SSL_CTX *ssl;
    BIO_METHOD *bio;
    int64_t not_after;
    bool pinned;
    uint8_t pin[KR_TLS_PIN];
    struct {
        size_t at; /* in alpn_wire */
        enum kr_tls_peer_cert peer_cert;
        bool secret_in;
    } alpn[KR_TLS_ALPN_MAX];
    size_t alpn_count;
    bool alpn_required;
    bool secret_out;
    unsigned char alpn_wire[KR_TLS_ALPN_MAX * (KR_TLS_ALPN_NAME + 2)]; /* length, name, NUL */
};

/* tls_load.c: what comes from files. Codes as in tls_context.h. */
bool kr_tls_pem_given(const struct kr_tls_pem *pem);
int kr_tls_load_pair(SSL_CTX *ssl, const struct kr_tls_config *cfg, int64_t *not_after,
                     struct kr_note *why);
int kr_tls_load_anchors(SSL_CTX *ssl, const struct kr_tls_config *cfg, struct kr_note *why);

/* tls_words.c: failures in words. `queued` is OpenSSL's last error, taken right after the call. */
int kr_tls_words(unsigned long queued, struct kr_note *why);
void kr_tls_verify_words(X509_STORE_CTX *store, struct kr_note *why);
/* The last error of OpenSSL in its own words, for failures that need no better ones. */
const char *kr_tls_reason(unsigned long queued);

/* tls_pin.c: as X509_verify_cert, with the one root that has that key. What is wrong is noted. */
int kr_tls_verify_pinned(SSL *ssl, X509_STORE_CTX *store, const uint8_t pin[KR_TLS_PIN]);

/* tls_slim.c: frees what a finished handshake left behind and nobody needs any more. */
void kr_tls_slim(struct kr_tls_io *io, SSL *ssl);

/* tls_pipe.c, called from the context's callbacks. */
BIO_METHOD *kr_tls_bio_create(void);
int kr_tls_judge(SSL *ssl, X509 *leaf); /* 0: accepted */
void kr_tls_note_verify(SSL *ssl, X509_STORE_CTX *store);
void kr_tls_note_no_alpn(SSL *ssl);
void kr_tls_note(SSL *ssl, const char *why);
void kr_tls_on_message(int write_p, int version, int content_type, const void *buf, size_t len,
                       SSL *ssl, void *arg);

#endif
