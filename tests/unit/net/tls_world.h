/* SPDX-License-Identifier: Apache-2.0 */
/* tls_world: a throw-away authority and certificates, and a loop with two ends of TLS in it. For
 * the tests of net; every function aborts on failure. */
#ifndef KR_TEST_TLS_WORLD_H
#define KR_TEST_TLS_WORLD_H

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/buf.h"
#include "net/tls_pipe.h"

struct world_cert {
    EVP_PKEY *key;
    X509 *x509;
    struct kr_buf cert_pem;
    struct kr_buf key_pem;
};

struct world_ask {
    const char *cn;
    const struct world_cert *issuer; /* NULL: self-signed authority */
    const char *san;                 /* "DNS:localhost" */
    const char *eku;                 /* "serverAuth" */
    bool authority;                  /* an intermediate */
    bool sloppy;                     /* without the key identifiers that RFC 5280 wants */
    long from_s;                     /* from now */
    long until_s;
};

static inline void world_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *ext;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    KR_ASSERT(ext != NULL);
    KR_ASSERT(X509_add_ext(x, ext, -1) == 1);
    X509_EXTENSION_free(ext);
}

static inline void world_pem(struct kr_buf *out, BIO *bio)
{
    char *p;
    long n = BIO_get_mem_data(bio, &p);

    kr_buf_init(out, 65536);
    KR_ASSERT(kr_buf_append(out, kr_bytes_of(p, (size_t)n)) == 0);
    BIO_free(bio);
}

static inline void world_names(X509 *x, const struct world_ask *ask, X509 *issuer)
{
    if (!ask->sloppy) {
        world_ext(x, issuer, NID_subject_key_identifier, "hash");
        world_ext(x, issuer, NID_authority_key_identifier, "keyid");
    }
    if (ask->issuer == NULL || ask->authority) {
        world_ext(x, issuer, NID_basic_constraints, "critical,CA:TRUE");
        world_ext(x, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
        return;
    }
    world_ext(x, issuer, NID_basic_constraints, "critical,CA:FALSE");
    world_ext(x, issuer, NID_key_usage, "critical,digitalSignature");
    world_ext(x, issuer, NID_ext_key_usage, ask->eku);
    if (ask->san != NULL)
        world_ext(x, issuer, NID_subject_alt_name, ask->san);
}

static inline void world_issue(struct world_cert *c, const struct world_ask *ask)
{
    const struct world_cert *by = ask->issuer != NULL ? ask->issuer : c;
    X509_NAME *name;
    BIO *bio;

    c->key = EVP_EC_gen("P-256");
    c->x509 = X509_new();
    KR_ASSERT(c->key != NULL && c->x509 != NULL);
    X509_set_version(c->x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(c->x509), rand());
    X509_gmtime_adj(X509_getm_notBefore(c->x509), ask->from_s);
    X509_gmtime_adj(X509_getm_notAfter(c->x509), ask->until_s);
    X509_set_pubkey(c->x509, c->key);
    name = X509_get_subject_name(c->x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)ask->cn, -1, -1, 0);
    X509_set_issuer_name(c->x509, X509_get_subject_name(by->x509));
    world_names(c->x509, ask, by->x509);
    KR_ASSERT(X509_sign(c->x509, by->key, EVP_sha256()) > 0);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, c->x509);
    world_pem(&c->cert_pem, bio);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, c->key, NULL, NULL, 0, NULL, NULL);
    world_pem(&c->key_pem, bio);
}

static inline void world_cert_free(struct world_cert *c)
{
    EVP_PKEY_free(c->key);
    X509_free(c->x509);
    kr_buf_deinit(&c->cert_pem);
    kr_buf_deinit(&c->key_pem);
}

enum { WORLD_DAY = 24 * 3600 };

static inline void world_authority(struct world_cert *c, const char *cn)
{
    world_issue(c, &(struct world_ask){.cn = cn, .from_s = -60, .until_s = WORLD_DAY});
}

static inline void world_leaf(struct world_cert *c, const struct world_cert *ca, const char *cn,
                              const char *san, const char *eku)
{
    world_issue(
        c,
        &(struct world_ask){
            .cn = cn, .issuer = ca, .san = san, .eku = eku, .from_s = -60, .until_s = WORLD_DAY});
}

static inline void world_config(struct kr_tls_config *cfg, const struct world_cert *own,
                                const struct world_cert *ca)
{
    if (own != NULL) {
        cfg->cert.bytes = kr_buf_bytes(&own->cert_pem);
        cfg->key.bytes = kr_buf_bytes(&own->key_pem);
    }
    if (ca != NULL)
        cfg->ca.bytes = kr_buf_bytes(&ca->cert_pem);
}

/* One end of a connection. */
struct world_end {
    struct kr_pipe *pipe;
    struct kr_tls_info info; /* only what is by value below stays valid */
    char alpn[40];
    char sni[80];
    char version[16];
    char cipher[64];
    size_t der_n;
    bool peer_verified;
    int refuse;    /* what on_handshake answers */
    int judge;     /* what the judge answers */
    int judged;    /* how often it was asked */
    int handshake; /* the code; 1: not yet */
    int handshakes;
    int closed; /* the code; 1: not yet */
    int closes;
    int eofs;
    size_t got;
    uint64_t got_hash;
    size_t send_left; /* what fill still has */
    uint64_t sent_hash;
    uint64_t state; /* of the generator */
    size_t chunk;   /* the most one fill gives */
    bool stop_on_bytes;
    struct kr_note why;
};

static inline uint64_t world_fnv(uint64_t h, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static inline void world_on_bytes(void *user, struct kr_bytes in)
{
    struct world_end *e = user;

    e->got += in.n;
    e->got_hash = world_fnv(e->got_hash, in.p, in.n);
    if (e->stop_on_bytes)
        kr_pipe_set_reading(e->pipe, false);
}

static inline size_t world_fill(void *user, uint8_t *out, size_t room)
{
    struct world_end *e = user;
    size_t n = e->send_left < room ? e->send_left : room;

    KR_ASSERT(room >= 1024);
    if (e->chunk != 0 && n > e->chunk)
        n = e->chunk;
    for (size_t i = 0; i < n; i++) {
        e->state = e->state * 6364136223846793005u + 1442695040888963407u;
        out[i] = (uint8_t)(e->state >> 56);
    }
    e->sent_hash = world_fnv(e->sent_hash, out, n);
    e->send_left -= n;
    return n;
}

static inline void world_on_eof(void *user)
{
    ((struct world_end *)user)->eofs++;
}

static inline void world_on_close(void *user, int rc, const struct kr_note *why)
{
    struct world_end *e = user;

    KR_ASSERT(why != NULL);
    e->closed = rc;
    e->closes++;
    e->why = *why;
    e->pipe = NULL;
}

static const struct kr_pipe_user world_pipe_user = {
    .on_bytes = world_on_bytes,
    .fill = world_fill,
    .on_eof = world_on_eof,
    .on_close = world_on_close,
};

static inline int world_judge(void *owner, const struct kr_tls_info *info, struct kr_note *why)
{
    struct world_end *e = owner;

    KR_ASSERT(info->peer_der.n != 0 && info->peer_verified);
    e->judged++;
    return e->judge == 0 ? 0 : kr_note_set(why, e->judge, "the judge says no");
}

static inline int world_on_handshake(void *owner, int rc, struct kr_pipe *pipe,
                                     const struct kr_tls_info *info, const struct kr_note *why)
{
    struct world_end *e = owner;

    e->handshake = rc;
    e->handshakes++;
    e->pipe = NULL;
    if (rc != 0) {
        e->why = *why;
        return 0;
    }
    snprintf(e->alpn, sizeof e->alpn, "%s", info->alpn);
    snprintf(e->sni, sizeof e->sni, "%s", info->sni);
    snprintf(e->version, sizeof e->version, "%s", info->version);
    snprintf(e->cipher, sizeof e->cipher, "%s", info->cipher);
    e->der_n = info->peer_der.n;
    e->peer_verified = info->peer_verified;
    if (e->refuse != 0)
        return e->refuse;
    e->pipe = pipe;
    kr_pipe_attach(pipe, &world_pipe_user, e);
    return 0;
}

static const struct kr_tls_user world_tls_user = {
    .judge = world_judge,
    .on_handshake = world_on_handshake,
};

static inline void world_end_init(struct world_end *e)
{
    *e = (struct world_end){.handshake = 1, .closed = 1, .got_hash = 7, .sent_hash = 7, .state = 1};
}

struct world {
    struct kr_loop *loop;
    struct kr_tls_io *io;
    struct world_cert ca;
    struct world_cert foreign_ca;
    struct world_cert hub;
    struct world_cert agent;
    struct world_end client;
    struct world_end server;
};

static inline void world_init(struct world *w)
{
    *w = (struct world){0};
    w->loop = kr_loop_create(NULL);
    KR_ASSERT(w->loop != NULL);
    w->io = kr_tls_io_create(w->loop);
    world_authority(&w->ca, "test root");
    world_authority(&w->foreign_ca, "foreign root");
    world_leaf(&w->hub, &w->ca, "hub",
               "DNS:localhost,DNS:*.hub.test,IP:127.0.0.1,URI:spiffe://test/hub/a", "serverAuth");
    world_leaf(&w->agent, &w->ca, "agent", "URI:spiffe://test/cluster/c1/agent/a", "clientAuth");
    world_end_init(&w->client);
    world_end_init(&w->server);
}

static inline void world_deinit(struct world *w)
{
    kr_tls_io_destroy(w->io);
    kr_loop_destroy(w->loop);
    world_cert_free(&w->ca);
    world_cert_free(&w->foreign_ca);
    world_cert_free(&w->hub);
    world_cert_free(&w->agent);
}

static inline int64_t world_now_ms(const struct world *w)
{
    return kr_loop_sched(w->loop)->now_ms;
}

/* Turns until `done` says so; false after 20 s. */
static inline bool world_run(struct world *w, bool (*done)(struct world *w))
{
    int64_t until = world_now_ms(w) + 20000;

    while (!done(w)) {
        if (world_now_ms(w) > until)
            return false;
        kr_loop_turn(w->loop, 100);
    }
    return true;
}

static inline bool world_shaken(struct world *w)
{
    return w->client.handshakes != 0 && w->server.handshakes != 0;
}

static inline bool world_closed(struct world *w)
{
    return kr_tls_io_pipes(w->io) == 0;
}

/* A connected pair: [0] for the client, [1] for the server. */
static inline void world_pair(int fds[2])
{
    KR_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
}

static inline struct kr_tls_context *world_context(const struct kr_tls_config *cfg)
{
    struct kr_note why = {""};
    struct kr_tls_context *ctx = kr_tls_context_create(cfg, NULL, &why);

    if (ctx == NULL)
        fprintf(stderr, "context: %s\n", why.text);
    KR_ASSERT(ctx != NULL);
    return ctx;
}

/* Starts both ends over a socket pair. */
static inline void world_start(struct world *w, struct kr_tls_context *client,
                               struct kr_tls_context *server, const char *name)
{
    int fds[2];

    world_pair(fds);
    KR_ASSERT(kr_tls_accept(w->io,
                            &(struct kr_tls_start){.ctx = server,
                                                   .fd = fds[1],
                                                   .user_ops = &world_tls_user,
                                                   .owner = &w->server},
                            NULL) != NULL);
    KR_ASSERT(kr_tls_connect(w->io,
                             &(struct kr_tls_start){.ctx = client,
                                                    .fd = fds[0],
                                                    .user_ops = &world_tls_user,
                                                    .owner = &w->client,
                                                    .server_name = name,
                                                    .verify_host = name},
                             NULL) != NULL);
}

#endif
