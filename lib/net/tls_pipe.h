/* SPDX-License-Identifier: Apache-2.0 */
/* tls_pipe: a kr_pipe (base/pipe.h) that is TLS over a connected descriptor.
 * Cost:    ciphertext is read and written through buffers that the loop's pipes share; frames that
 *          a turn produced leave in full records and one send().
 * Memory:  a pipe is one object plus OpenSSL's state; what the socket did not take is kept (at most
 *          the size of the shared buffer) and nothing is asked of the user until it is gone. Once
 *          a server has read the peer's certificate, it is freed.
 * Limits:  handshake deadline (10 s unless given), 8 handshake steps a turn, 256 KiB a turn in each
 * direction, 5 s for the last bytes of a flushing close, TLS key updates 4 at once and then 1 in 50
 * s. Errors:  at the end of a handshake and in on_close: KR_ETLS (the note says why: expired,
 * unknown authority, no certificate, version, ALPN, what the peer's alert said), KR_ETIMEDOUT,
 *          KR_ECONNLOST (also: the peer vanished without close_notify), KR_ECANCELED, KR_ENOMEM.
 *          A TLS 1.3 client learns only with the first bytes (or the end) that the server refused
 *          its certificate (RFC 8446 section 4.4.2.4).
 * Threads: the loop's; see kr_tls_pipe_release for moving one. */
#ifndef KR_NET_TLS_PIPE_H
#define KR_NET_TLS_PIPE_H

#include "base/pipe.h"
#include "net/net_io.h"
#include "net/tls_context.h"

/* How the note of a failure begins if the peer refused our certificate (its alert says so). */
#define KR_TLS_REFUSED "the peer refused our certificate"

struct x509_st; /* OpenSSL's X509 */

/* What a handshake agreed on. Lent for the call that gets it. */
struct kr_tls_info {
    const char *alpn;    /* "" if none */
    const char *sni;     /* what the client asked for, "" if nothing (server) */
    const char *version; /* "TLSv1.3" */
    const char *cipher;
    struct kr_bytes peer_der;  /* the peer's leaf certificate; n is 0 if it sent none */
    struct x509_st *peer_x509; /* the same, parsed; NULL if it sent none */
    bool peer_verified;        /* its chain leads to our anchors and is in date, purpose fits */
};

struct kr_tls_user {
    /* May be NULL. Judges a peer whose chain is good, while the handshake runs, so that a refusal
     * reaches it as an alert. Only looks; 0 or the code of the refusal with *why filled. */
    int (*judge)(void *owner, const struct kr_tls_info *info, struct kr_note *why);
    /* Exactly once, never from inside the start. rc is 0: attach to the pipe (or kr_pipe_close or
     * kr_tls_pipe_release it) before long; a non-zero return refuses: the pipe is closed and must
     * not be used. rc is not 0: the handshake failed, *pipe is gone afterwards, info is NULL. */
    int (*on_handshake)(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                        const struct kr_note *why);
};

struct kr_tls_start {
    struct kr_tls_context *ctx; /* a reference is taken */
    int fd;                     /* taken in every case, also when the start fails */
    const struct kr_tls_user *user_ops;
    void *owner;
    int64_t timeout_ms; /* for the handshake; 0: 10 s */
    /* Client only. */
    const char *server_name; /* sent as SNI if it is a name; NULL: none */
    const char
        *verify_host; /* DNS name or IP address that a SAN must match; NULL: the judge does */
};

/* NULL when it cannot even start (no callback then). kr_pipe_close(p, KR_PIPE_ABORT) before the
 * callback cancels: the callback comes with KR_ECANCELED. */
struct kr_pipe *kr_tls_accept(struct kr_tls_io *io, const struct kr_tls_start *start,
                              struct kr_note *why);
struct kr_pipe *kr_tls_connect(struct kr_tls_io *io, const struct kr_tls_start *start,
                               struct kr_note *why);

/* Moving a pipe to another thread: release it where the handshake ran (in on_handshake or later,
 * before it is attached), pass the pointer, adopt it there, attach. */
void kr_tls_pipe_release(struct kr_pipe *p);
void kr_tls_pipe_adopt(struct kr_pipe *p, struct kr_tls_io *io);
void kr_tls_pipe_discard(struct kr_pipe *p); /* a released one that nobody wants */

/* During a handshake. */
struct kr_tls_progress {
    bool waits_for_us; /* what the peer sent waits for its turn */
    bool answered;     /* the peer has sent something whole */
    int64_t since_ms;  /* when that was answered last; 0: never */
};
struct kr_tls_progress kr_tls_pipe_progress(const struct kr_pipe *p);

#endif
