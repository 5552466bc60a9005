/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls_context.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "net/tls_private.h"

enum { CHAIN_BYTES_MAX = 16 * 1024, DEPTH_MAX = 3 };

/* AES-128 first: it is as safe here as AES-256 and the fastest (hardware does it everywhere). */
static const char SUITES13[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
/* Only AEAD: tls_slim and our peace of mind depend on it. */
static const char SUITES12[] = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                               "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                               "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char GROUPS[] = "X25519:P-256";
static const char SIGALGS[] = "ECDSA+SHA256:ed25519:RSA-PSS+SHA256:RSA+SHA256:ECDSA+SHA384:"
                              "RSA-PSS+SHA384:RSA+SHA384:ECDSA+SHA512:RSA-PSS+SHA512:RSA+SHA512";

/* The verdict of OpenSSL, then the judge's. What went wrong is noted for the end of the handshake.
 * The verified chain is not kept: who needs the identity reads the leaf. */
static int verify_peer(X509_STORE_CTX *store, void *arg)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const struct kr_tls_context *c = arg;
    int ok = c->pinned ? kr_tls_verify_pinned(ssl, store, c->pin) : X509_verify_cert(store);

    if (ok > 0 && kr_tls_judge(ssl, X509_STORE_CTX_get0_cert(store)) != 0) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
        ok = 0;
    } else if (ok <= 0) {
        kr_tls_note_verify(ssl, store);
    }
    X509_STORE_CTX_set0_verified_chain(store, NULL);
    return ok > 0;
}

static int set_protocol(struct kr_tls_context *c, const struct kr_tls_config *cfg)
{
    SSL_CTX *s = c->ssl;
    int ok = 1;

    SSL_CTX_set_options(s, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                               SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_clear_options(s, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (cfg->secret_in)
        SSL_CTX_set_options(s, SSL_OP_CLEANSE_PLAINTEXT);
    c->secret_out = cfg->secret_out;
    SSL_CTX_set_mode(s, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_session_cache_mode(s, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(s, CHAIN_BYTES_MAX);
    SSL_CTX_set_security_level(s, 2);
    SSL_CTX_set_verify_depth(s, DEPTH_MAX);
    ok &= (int)SSL_CTX_set_min_proto_version(s, cfg->tls12 ? TLS1_2_VERSION : TLS1_3_VERSION);
    ok &= (int)SSL_CTX_set_max_proto_version(s, TLS1_3_VERSION);
    ok &= SSL_CTX_set_num_tickets(s, 0);
    ok &= SSL_CTX_set_max_early_data(s, 0);
    ok &= SSL_CTX_set_recv_max_early_data(s, 0);
    ok &= SSL_CTX_set_ciphersuites(s, SUITES13);
    ok &= SSL_CTX_set_cipher_list(s, SUITES12);
    ok &= (int)SSL_CTX_set1_groups_list(s, GROUPS);
    ok &= (int)SSL_CTX_set1_sigalgs_list(s, SIGALGS);
    ok &= SSL_CTX_set_session_id_context(s, (const unsigned char *)"kuberelay", 9);
    SSL_CTX_set_cert_verify_callback(s, verify_peer, c);
    SSL_CTX_set_msg_callback(s, kr_tls_on_message);
    return ok;
}

static int verify_mode(enum kr_tls_peer_cert want)
{
    if (want == KR_TLS_CERT_NONE)
        return SSL_VERIFY_NONE;
    if (want == KR_TLS_CERT_OPTIONAL)
        return SSL_VERIFY_PEER;
    return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}

static int wire_find(const unsigned char *in, unsigned n, const char *name)
{
    size_t len = strlen(name);

    for (unsigned at = 0; at < n && in[at] < n - at; at += in[at] + 1u) {
        if (in[at] == len && memcmp(in + at + 1, name, len) == 0)
            return 1;
    }
    return 0;
}

/* Our order decides. What is asked of the client follows from the protocol that it wants: the
 * callback runs before the certificate request is written. */
static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *in, unsigned in_len, void *arg)
{
    const struct kr_tls_context *c = arg;

    for (size_t i = 0; i < c->alpn_count; i++) {
        const unsigned char *name = c->alpn_wire + c->alpn[i].at;

        if (!wire_find(in, in_len, (const char *)name + 1))
            continue;
        *out = name + 1;
        *out_len = name[0];
        SSL_set_verify(ssl, verify_mode(c->alpn[i].peer_cert), NULL);
        if (c->alpn[i].secret_in)
            SSL_set_options(ssl, SSL_OP_CLEANSE_PLAINTEXT);
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int on_hello(SSL *ssl, int *alert, void *arg)
{
    const unsigned char *ext;
    size_t n;

    (void)arg;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &ext,
                                  &n))
        return SSL_CLIENT_HELLO_SUCCESS;
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    kr_tls_note_no_alpn(ssl);
    return SSL_CLIENT_HELLO_ERROR;
}

static int on_server_name(SSL *ssl, int *alert, void *arg)
{
    (void)ssl, (void)alert, (void)arg;
    return SSL_TLSEXT_ERR_OK; /* any name is accepted here; routing judges it */
}

/* The wire form of the list: length, name; here with a NUL behind each, which only the server's
 * callback sees. */
static int copy_alpn(struct kr_tls_context *c, const struct kr_tls_config *cfg, struct kr_note *why)
{
    size_t at = 0;

    if (cfg->alpn_count > KR_TLS_ALPN_MAX)
        return kr_note_set(why, KR_EINVAL, "too many ALPN protocols");
    for (size_t i = 0; i < cfg->alpn_count; i++) {
        size_t n = strlen(cfg->alpn[i].name);

        if (n == 0 || n > KR_TLS_ALPN_NAME)
            return kr_note_set(why, KR_EINVAL, "bad ALPN protocol");
        c->alpn[i].at = at;
        c->alpn[i].peer_cert = cfg->alpn[i].peer_cert;
        c->alpn[i].secret_in = cfg->alpn[i].secret_in;
        c->alpn_wire[at] = (unsigned char)n;
        memcpy(c->alpn_wire + at + 1, cfg->alpn[i].name, n + 1);
        at += n + 2;
    }
    c->alpn_count = cfg->alpn_count;
    c->alpn_required = cfg->alpn_required;
    return 0;
}

static int offer_alpn(struct kr_tls_context *c)
{
    unsigned char wire[sizeof c->alpn_wire];
    size_t n = 0;

    for (size_t i = 0; i < c->alpn_count; i++) {
        const unsigned char *name = c->alpn_wire + c->alpn[i].at;

        memcpy(wire + n, name, name[0] + 1u);
        n += name[0] + 1u;
    }
    if (n == 0)
        return 0;
    return SSL_CTX_set_alpn_protos(c->ssl, wire, (unsigned)n) == 0 ? 0 : KR_ENOMEM;
}

static int set_server(struct kr_tls_context *c, const struct kr_tls_config *cfg)
{
    if (c->alpn_count != 0)
        SSL_CTX_set_alpn_select_cb(c->ssl, select_alpn, c);
    if (cfg->alpn_required)
        SSL_CTX_set_client_hello_cb(c->ssl, on_hello, NULL);
    SSL_CTX_set_tlsext_servername_callback(c->ssl, on_server_name);
    SSL_CTX_set_verify(c->ssl, verify_mode(cfg->peer_cert), NULL);
    return 0;
}

static int wants_ca(const struct kr_tls_config *cfg)
{
    int want = !cfg->server || cfg->peer_cert != KR_TLS_CERT_NONE;

    for (size_t i = 0; i < cfg->alpn_count; i++)
        want |= cfg->alpn[i].peer_cert != KR_TLS_CERT_NONE;
    return want;
}

static void set_pin(struct kr_tls_context *c, const struct kr_tls_config *cfg)
{
    c->pinned = true;
    memcpy(c->pin, cfg->pin, sizeof c->pin);
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(c->ssl), X509_V_FLAG_X509_STRICT);
}

static int load(struct kr_tls_context *c, const struct kr_tls_config *cfg, struct kr_note *why)
{
    int has_cert = kr_tls_pem_given(&cfg->cert);
    int rc = 0;

    if (cfg->insecure_skip_verify)
        return kr_note_set(why, KR_EUNSUPPORTED,
                           "insecure-skip-tls-verify is not supported: "
                           "name the authority's certificate instead");
    if (has_cert != kr_tls_pem_given(&cfg->key) || (cfg->server && !has_cert))
        return kr_note_set(why, KR_EINVAL, "a certificate and its key are needed, both of them");
    if (wants_ca(cfg) && !kr_tls_pem_given(&cfg->ca) && cfg->pin == NULL)
        return kr_note_set(why, KR_EINVAL,
                           "the certificates of the trusted authorities are needed");
    if (has_cert)
        rc = kr_tls_load_pair(c->ssl, cfg, &c->not_after, why);
    if (rc == 0 && cfg->pin != NULL)
        set_pin(c, cfg);
    else if (rc == 0 && kr_tls_pem_given(&cfg->ca))
        rc = kr_tls_load_anchors(c->ssl, cfg, why);
    return rc;
}

struct kr_tls_context *kr_tls_context_create(const struct kr_tls_config *cfg, int *rc_out,
                                             struct kr_note *why)
{
    struct kr_tls_context *c = calloc(1, sizeof *c);
    int rc = KR_ENOMEM;

    kr_note_set(why, rc, "out of memory");
    if (c == NULL)
        goto out;
    atomic_init(&c->refs, 1);
    c->bio = kr_tls_bio_create();
    c->ssl = SSL_CTX_new(cfg->server ? TLS_server_method() : TLS_client_method());
    if (c->bio == NULL || c->ssl == NULL)
        goto out;
    if (!set_protocol(c, cfg)) {
        rc = kr_note_set(why, KR_ETLS, "this OpenSSL lacks what is needed");
        goto out;
    }
    rc = copy_alpn(c, cfg, why);
    if (rc == 0 && cfg->server)
        rc = set_server(c, cfg);
    else if (rc == 0)
        rc = offer_alpn(c);
    if (rc == 0 && !cfg->server)
        SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, NULL);
    if (rc == 0)
        rc = load(c, cfg, why);
out:
    if (rc_out != NULL)
        *rc_out = rc;
    if (rc == 0)
        return c;
    kr_tls_context_unref(c);
    return NULL;
}

struct kr_tls_context *kr_tls_context_ref(struct kr_tls_context *ctx)
{
    atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
    return ctx;
}

void kr_tls_context_unref(struct kr_tls_context *ctx)
{
    if (ctx == NULL || atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(ctx->ssl);
    BIO_meth_free(ctx->bio);
    free(ctx);
}

int64_t kr_tls_context_not_after(const struct kr_tls_context *ctx)
{
    return ctx->not_after;
}
