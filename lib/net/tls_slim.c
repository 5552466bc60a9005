/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that has been accepted keeps the peer's certificate and chain in its session (about
 * 10 KiB) although our code has read the identity. OpenSSL lets go of a session only through
 * SSL_set_session, which resets the connection unless the context's method is the one that the
 * handshake has chosen: so the connection moves to a bare context of that method first.
 * Only for servers of TLS 1.3: there the record layer is AEAD and keyed, key updates derive from
 * the traffic secrets, and no message that a client may send reads the session. (A client would
 * need it for a ticket, which a hostile server could send at any time.) */
#include <openssl/ssl.h>

#include "net/stream.h"
#include "net/tls_private.h"

static void free_ctx(void *ctx)
{
    SSL_CTX_free(ctx);
}

static SSL_CTX *idle_ctx(struct kr_tls_io *io, const SSL_METHOD *method)
{
    if (io->idle_ctx == NULL) {
        io->idle_ctx = SSL_CTX_new(method);
        io->idle_free = free_ctx;
    }
    return io->idle_ctx;
}

void kr_tls_slim(struct kr_tls_io *io, SSL *ssl)
{
    const SSL_METHOD *method = SSL_get_ssl_method(ssl);
    SSL_CTX *ctx;

    if (!SSL_is_server(ssl) || SSL_version(ssl) != TLS1_3_VERSION)
        return;
    ctx = idle_ctx(io, method);
    if (ctx == NULL || SSL_CTX_get_ssl_method(ctx) != method)
        return;
    if (SSL_set_SSL_CTX(ssl, ctx) == ctx)
        SSL_set_session(ssl, NULL);
}
