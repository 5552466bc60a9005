/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: start -> (recv, handshake)* -> done task: slim, on_handshake -> the user attaches ->
 * records both ways -> close. A failed handshake ends in tell(), which is on_handshake with the
 * code; later ends are on_close. The done task exists because a user may release the pipe to
 * another thread from on_handshake: nothing here may touch it after that. */
#include "net/tls_pipe.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/addr.h"
#include "net/stream.h"
#include "net/tls_private.h"

enum {
    HANDSHAKE_MS = 10000,
    KEY_UPDATES = 4, /* at once; then one in KEY_UPDATE_MS (a flood costs both ends 90 us each) */
    KEY_UPDATE_MS = 50000,
    /* RFC 8446 section 5.5: 2^24.5 full records for AES-GCM; we change keys well before. */
    RECORDS_PER_KEY = 1 << 23,
};

struct tls_pipe {
    struct kr_stream s;
    SSL *ssl;
    struct kr_tls_context *ctx;
    const struct kr_tls_user *user_ops;
    void *owner;
    struct kr_task done_task;
    int64_t key_updates_ms; /* leaky bucket: when it will be empty */
    uint32_t records;       /* written with this key */
    int64_t step_ms;        /* when the handshake last answered; 0: not yet */
    int judged;             /* the judge's code */
    bool ready;             /* the handshake is complete */
    bool told;              /* the owner knows how it ended */
    bool cut;               /* nothing more is read: too many key updates */
    bool secret_in;         /* what was handed over is cleared */
};

static struct tls_pipe *of_stream(struct kr_stream *s)
{
    return KR_CONTAINER_OF(s, struct tls_pipe, s);
}

static struct tls_pipe *of_ssl(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

/* The BIO: from io->in, to io->out. */

static int bio_read(BIO *b, char *out, size_t room, size_t *got)
{
    struct tls_pipe *t = BIO_get_data(b);
    struct kr_tls_io *io = t->s.io;
    size_t n = io->in_n - io->in_at;

    *got = 0;
    BIO_clear_retry_flags(b);
    if (t->cut)
        return 0;
    if (n == 0) {
        if (!t->s.peer_closed)
            BIO_set_retry_read(b);
        return 0;
    }
    if (n > room)
        n = room;
    memcpy(out, io->in + io->in_at, n);
    io->in_at += n;
    *got = n;
    return 1;
}

static int bio_write(BIO *b, const char *p, size_t n, size_t *put)
{
    struct tls_pipe *t = BIO_get_data(b);

    BIO_clear_retry_flags(b);
    *put = 0;
    if (!kr_stream_put(&t->s, (const uint8_t *)p, n))
        return 0;
    *put = n;
    return 1;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    struct tls_pipe *t = BIO_get_data(b);

    (void)num, (void)ptr;
    if (cmd == BIO_CTRL_FLUSH)
        return 1;
    if (cmd == BIO_CTRL_EOF)
        return t->s.peer_closed && t->s.io->in_at == t->s.io->in_n;
    return 0;
}

static int bio_create(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

BIO_METHOD *kr_tls_bio_create(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK | 0x7f, "kr_stream");

    if (m == NULL)
        return NULL;
    BIO_meth_set_read_ex(m, bio_read);
    BIO_meth_set_write_ex(m, bio_write);
    BIO_meth_set_ctrl(m, bio_ctrl);
    BIO_meth_set_create(m, bio_create);
    return m;
}

/* What the handshake is about. */

static void fill_info(SSL *ssl, X509 *leaf, char alpn[KR_TLS_ALPN_NAME + 1],
                      struct kr_tls_info *info)
{
    const unsigned char *name;
    unsigned n;

    SSL_get0_alpn_selected(ssl, &name, &n);
    if (n > KR_TLS_ALPN_NAME)
        n = 0;
    if (n != 0)
        memcpy(alpn, name, n);
    alpn[n] = '\0';
    *info = (struct kr_tls_info){
        .alpn = alpn,
        .sni = SSL_is_server(ssl) ? SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) : NULL,
        .version = SSL_get_version(ssl),
        .cipher = SSL_get_cipher_name(ssl),
        .peer_x509 = leaf,
    };
    if (info->sni == NULL)
        info->sni = "";
}

/* *der is malloc'd by OpenSSL. false: no memory. */
static bool fill_der(struct kr_tls_info *info, unsigned char **der)
{
    int n;

    *der = NULL;
    if (info->peer_x509 == NULL)
        return true;
    n = i2d_X509(info->peer_x509, der);
    if (n <= 0)
        return false;
    info->peer_der = kr_bytes_of(*der, (size_t)n);
    return true;
}

int kr_tls_judge(SSL *ssl, X509 *leaf)
{
    struct tls_pipe *t = of_ssl(ssl);
    char alpn[KR_TLS_ALPN_NAME + 1];
    struct kr_note why = {""};
    struct kr_tls_info info;
    unsigned char *der;

    if (t->user_ops->judge == NULL)
        return 0;
    fill_info(ssl, leaf, alpn, &info);
    info.peer_verified = true;
    t->judged = fill_der(&info, &der) ? t->user_ops->judge(t->owner, &info, &why) : KR_ENOMEM;
    OPENSSL_free(der);
    if (t->judged != 0)
        kr_stream_fail(&t->s, t->judged, "%s", why.text);
    return t->judged;
}

/* These two know better than OpenSSL's error queue; the first kr_stream_fail wins. */
void kr_tls_note_verify(SSL *ssl, X509_STORE_CTX *store)
{
    struct kr_note why;

    kr_tls_verify_words(store, &why);
    kr_stream_fail(&of_ssl(ssl)->s, KR_ETLS, "%s", why.text);
}

void kr_tls_note_no_alpn(SSL *ssl)
{
    kr_stream_fail(&of_ssl(ssl)->s, KR_ETLS, "the peer offers no application protocol (ALPN)");
}

void kr_tls_note(SSL *ssl, const char *why)
{
    kr_stream_fail(&of_ssl(ssl)->s, KR_ETLS, "%s", why);
}

void kr_tls_on_message(int write_p, int version, int content_type, const void *buf, size_t len,
                       SSL *ssl, void *arg)
{
    struct tls_pipe *t = of_ssl(ssl);
    int64_t now_ms;

    (void)version, (void)arg;
    if (write_p || content_type != SSL3_RT_HANDSHAKE || len == 0 || t == NULL ||
        *(const uint8_t *)buf != SSL3_MT_KEY_UPDATE)
        return;
    now_ms = t->s.io->sched->now_ms;
    if (t->key_updates_ms < now_ms)
        t->key_updates_ms = now_ms;
    t->key_updates_ms += KEY_UPDATE_MS;
    t->cut = t->key_updates_ms > now_ms + KEY_UPDATES * (int64_t)KEY_UPDATE_MS;
}

/* The codec. */

/* Called right after the SSL call that failed, with what it left behind. */
static void fail(struct tls_pipe *t, unsigned long queued)
{
    struct kr_note why;
    int rc;

    if (t->cut)
        rc = kr_note_set(&why, KR_EPROTO, "the peer changes its TLS keys too often");
    else if (queued == 0 && t->s.peer_closed)
        rc = kr_note_set(&why, KR_ECONNLOST, "the peer closed the connection");
    else
        rc = kr_tls_words(queued, &why);
    t->s.linger = rc == KR_ETLS; /* an alert may be on its way */
    if (rc == KR_ECONNLOST && !t->ready)
        kr_note_set(&why, rc, "the peer closed the connection during the TLS handshake");
    kr_stream_fail(&t->s, rc, "%s", why.text);
}

static void on_done_task(struct kr_task *task);

static bool alpn_is_missing(const struct tls_pipe *t)
{
    const unsigned char *name;
    unsigned n;

    SSL_get0_alpn_selected(t->ssl, &name, &n);
    return t->ctx->alpn_required && n == 0;
}

static void handshake(struct tls_pipe *t)
{
    int n;
    int err;

    ERR_clear_error();
    n = SSL_do_handshake(t->ssl);
    if (t->s.io->out_n != 0)
        t->step_ms = t->s.io->sched->now_ms;
    if (n == 1 && alpn_is_missing(t)) {
        kr_stream_fail(&t->s, KR_ETLS, "the peer does not speak our application protocol (ALPN)");
        return;
    }
    if (n == 1) {
        t->ready = true;
        t->secret_in = (SSL_get_options(t->ssl) & SSL_OP_CLEANSE_PLAINTEXT) != 0;
        kr_stream_hold(&t->s, false);
        kr_stream_deadline(&t->s, 0);
        kr_task_post(t->s.io->sched, &t->done_task);
        return;
    }
    err = SSL_get_error(t->ssl, n);
    if (err == SSL_ERROR_WANT_READ && !t->s.peer_closed)
        return;
    fail(t, ERR_peek_last_error());
}

/* Small records are handed over together, so that many small frames cost few calls. */
static void read_records(struct tls_pipe *t)
{
    uint8_t *plain = t->s.io->plain;
    size_t have = 0;

    ERR_clear_error();
    while (kr_stream_wants_more(&t->s)) {
        int n = SSL_read(t->ssl, plain + have, (int)(KR_STREAM_PLAIN - have));
        int err = n > 0 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, n);
        unsigned long queued = n > 0 ? 0 : ERR_peek_last_error();

        if (n > 0)
            have += (size_t)n;
        if (n <= 0 || have >= KR_STREAM_RECORD) {
            kr_stream_deliver(&t->s, plain, have);
            if (t->secret_in)
                explicit_bzero(plain, have);
            have = 0;
        }
        if (n > 0)
            continue;
        if (err == SSL_ERROR_ZERO_RETURN)
            kr_stream_deliver_eof(&t->s);
        else if (err != SSL_ERROR_WANT_READ || t->s.peer_closed)
            fail(t, queued);
        return;
    }
}

static void decode(struct kr_stream *s)
{
    struct tls_pipe *t = of_stream(s);

    if (t->ready)
        read_records(t);
    else
        handshake(t);
}

static void encode(struct kr_stream *s, const uint8_t *plain, size_t n)
{
    struct tls_pipe *t = of_stream(s);
    int put;

    ERR_clear_error();
    if (++t->records == RECORDS_PER_KEY) {
        t->records = 0;
        if (SSL_version(t->ssl) == TLS1_3_VERSION)
            SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    put = SSL_write(t->ssl, plain, (int)n);
    if (put != (int)n)
        fail(t, ERR_peek_last_error());
}

static void bye(struct kr_stream *s)
{
    ERR_clear_error();
    SSL_shutdown(of_stream(s)->ssl);
}

static void on_deadline(struct kr_stream *s)
{
    kr_stream_fail(s, KR_ETIMEDOUT, "the TLS handshake took too long");
}

static void tell(struct kr_stream *s, int rc, const struct kr_note *why)
{
    struct tls_pipe *t = of_stream(s);

    if (!t->told) {
        t->told = true;
        t->user_ops->on_handshake(t->owner, rc != 0 ? rc : KR_ECANCELED, &s->pipe, NULL, why);
    } else if (s->pipe.user_ops != NULL) {
        s->pipe.user_ops->on_close(s->pipe.user, rc, why);
    }
}

static void destroy(struct kr_stream *s)
{
    struct tls_pipe *t = of_stream(s);

    kr_task_cancel(&t->done_task);
    SSL_free(t->ssl);
    kr_tls_context_unref(t->ctx);
    kr_stream_deinit(s);
    free(t);
}

static const struct kr_stream_codec codec = {
    .decode = decode,
    .encode = encode,
    .bye = bye,
    .on_deadline = on_deadline,
    .tell = tell,
    .destroy = destroy,
};

/* The end of the handshake. */

static void on_done_task(struct kr_task *task)
{
    struct tls_pipe *t = KR_CONTAINER_OF(task, struct tls_pipe, done_task);
    X509 *leaf = SSL_get1_peer_certificate(t->ssl);
    struct kr_note why = {""};
    char alpn[KR_TLS_ALPN_NAME + 1];
    struct kr_tls_info info;
    unsigned char *der;

    fill_info(t->ssl, leaf, alpn, &info);
    info.peer_verified = leaf != NULL && SSL_get_verify_result(t->ssl) == X509_V_OK;
    if (!fill_der(&info, &der)) {
        kr_stream_fail(&t->s, KR_ENOMEM, "out of memory");
    } else if (!t->s.ending) {
        kr_tls_slim(t->s.io, t->ssl);
        t->told = true;
        if (t->user_ops->on_handshake(t->owner, 0, &t->s.pipe, &info, &why) != 0) {
            KR_ASSERT(t->s.pipe.user_ops == NULL);
            kr_stream_close(&t->s, KR_PIPE_FLUSH);
        } /* else it may be another thread's by now */
    }
    OPENSSL_free(der);
    X509_free(leaf);
}

/* Starting. */

static int set_host(SSL *ssl, const struct kr_tls_start *start)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    struct kr_addr ip;

    if (start->server_name != NULL && !kr_addr_parse(start->server_name, 0, &ip) &&
        SSL_set_tlsext_host_name(ssl, start->server_name) != 1)
        return KR_EINVAL;
    if (start->verify_host == NULL)
        return 0;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                               X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (kr_addr_parse(start->verify_host, 0, &ip))
        return X509_VERIFY_PARAM_set1_ip_asc(param, start->verify_host) == 1 ? 0 : KR_EINVAL;
    return SSL_set1_host(ssl, start->verify_host) == 1 ? 0 : KR_EINVAL;
}

static int set_ssl(struct tls_pipe *t, const struct kr_tls_start *start, bool server)
{
    BIO *bio = NULL;

    t->ssl = SSL_new(start->ctx->ssl);
    if (t->ssl == NULL || (bio = BIO_new(start->ctx->bio)) == NULL)
        return KR_ENOMEM;
    BIO_set_data(bio, t);
    SSL_set_bio(t->ssl, bio, bio);
    if (SSL_set_app_data(t->ssl, t) != 1)
        return KR_ENOMEM;
    if (server) {
        SSL_set_accept_state(t->ssl);
        return 0;
    }
    SSL_set_connect_state(t->ssl);
    return set_host(t->ssl, start);
}

static struct kr_pipe *begin(struct kr_tls_io *io, const struct kr_tls_start *start, bool server,
                             struct kr_note *why)
{
    struct tls_pipe *t = calloc(1, sizeof *t);
    int rc = t != NULL ? set_ssl(t, start, server) : KR_ENOMEM;

    if (rc != 0) {
        kr_note_set(why, rc, "cannot start TLS: %s", kr_err_text(rc));
        close(start->fd);
        if (t != NULL)
            SSL_free(t->ssl);
        free(t);
        return NULL;
    }
    t->ctx = kr_tls_context_ref(start->ctx);
    t->user_ops = start->user_ops;
    t->owner = start->owner;
    kr_task_init(&t->done_task, on_done_task);
    kr_stream_init(&t->s, &codec, io, start->fd);
    t->s.secret_out = start->ctx->secret_out;
    if (kr_stream_deadline(&t->s, start->timeout_ms != 0 ? start->timeout_ms : HANDSHAKE_MS) != 0) {
        kr_note_set(why, KR_ENOMEM, "cannot start TLS: out of memory");
        kr_stream_detach(&t->s);
        destroy(&t->s);
        return NULL;
    }
    kr_stream_hold(&t->s, true);
    return &t->s.pipe;
}

struct kr_pipe *kr_tls_accept(struct kr_tls_io *io, const struct kr_tls_start *start,
                              struct kr_note *why)
{
    return begin(io, start, true, why);
}

struct kr_pipe *kr_tls_connect(struct kr_tls_io *io, const struct kr_tls_start *start,
                               struct kr_note *why)
{
    struct kr_pipe *p = begin(io, start, false, why);

    /* The client speaks first. */
    if (p != NULL)
        kr_stream_kick(KR_CONTAINER_OF(p, struct kr_stream, pipe));
    return p;
}

/* From thread to thread. */

void kr_tls_pipe_release(struct kr_pipe *p)
{
    struct tls_pipe *t = of_stream(KR_CONTAINER_OF(p, struct kr_stream, pipe));

    KR_ASSERT(t->ready && t->told && p->user_ops == NULL && !t->s.ending);
    kr_stream_detach(&t->s);
}

void kr_tls_pipe_adopt(struct kr_pipe *p, struct kr_tls_io *io)
{
    kr_stream_adopt(KR_CONTAINER_OF(p, struct kr_stream, pipe), io);
}

void kr_tls_pipe_discard(struct kr_pipe *p)
{
    KR_ASSERT(p->user_ops == NULL);
    destroy(KR_CONTAINER_OF(p, struct kr_stream, pipe));
}

struct kr_tls_progress kr_tls_pipe_progress(const struct kr_pipe *p)
{
    const struct kr_stream *s = KR_CONTAINER_OF(p, const struct kr_stream, pipe);
    const struct tls_pipe *t = KR_CONTAINER_OF(s, const struct tls_pipe, s);

    return (struct kr_tls_progress){
        .waits_for_us = kr_list_linked(&s->shake_task.link) || kr_list_linked(&t->done_task.link),
        .answered = t->step_ms != 0,
        .since_ms = t->step_ms,
    };
}
