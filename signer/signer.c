/* SPDX-License-Identifier: Apache-2.0 */
#include "signer/signer.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "certs/file_watch.h"
#include "net/socket.h"
#include "net/tcp_pipe.h"
#include "signer/secrecy.h"
#include "signer/server.h"

struct signer {
    const struct signer_options *options;
    struct kr_log *log;
    struct kr_loop *loop;
    struct kr_sched *sched;
    struct kr_tls_io *io;
    struct kr_h2_shared h2;
    struct signer_server server;
    struct kr_listener *listener;
    struct kr_file_watch files;
    struct kr_timer timer;
    struct kr_log_limit strangers;
    uint32_t hub_uid;
};

static void on_accept(void *owner, int fd, const char *peer)
{
    struct signer *s = owner;
    struct kr_pipe *pipe;
    uint32_t uid = 0;
    uint64_t held = 0;

    (void)peer;
    if (!kr_socket_peer_uid(fd, &uid) || uid != s->hub_uid) {
        close(fd);
        if (kr_log_allow(&s->strangers, s->sched->now_ms, 5, 1000, &held))
            KR_LOG_AT(s->log, KR_LOG_WARN, "stranger", KR_U("uid", uid), KR_U("held", held));
        return;
    }
    pipe = kr_tcp_pipe_create(s->io, fd);
    if (pipe != NULL && !signer_server_serve(&s->server, pipe, uid))
        kr_pipe_close(pipe, KR_PIPE_ABORT);
}

static void reload(struct signer *s)
{
    struct kr_note why = {""};

    if (kr_signer_load(s->server.signer, &why) == 0)
        KR_LOG_AT(s->log, KR_LOG_INFO, "reloaded", KR_S("cert", s->options->cert_file));
    else
        KR_LOG_AT(s->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "what was loaded before stays in use"));
}

static void on_timer(struct kr_timer *t)
{
    struct signer *s = KR_CONTAINER_OF(t, struct signer, timer);

    kr_timer_start(s->sched, &s->timer, KR_FILE_WATCH_MS);
    if (kr_file_watch_look(&s->files))
        reload(s);
}

static void on_hup(void *owner, int signum)
{
    struct signer *s = owner;
    struct kr_note why = {""};

    (void)signum;
    reload(s);
    if (kr_signer_reopen(s->server.signer, &why) != 0)
        KR_LOG_AT(s->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "the audit log goes on in the old file"));
}

static void on_term(void *owner, int signum)
{
    struct signer *s = owner;

    (void)signum;
    kr_loop_stop(s->loop); /* a call takes a millisecond: nothing is worth waiting for */
}

static void on_audit(void *owner, bool failing, int error)
{
    struct signer *s = owner;

    if (failing)
        KR_LOG_AT(s->log, KR_LOG_ERROR, "audit-failing", KR_S("file", s->options->audit_log),
                  KR_S("reason", error != 0 ? strerror(error) : "nobody reads it"),
                  KR_S("effect", "no certificates are made"));
    else
        KR_LOG_AT(s->log, KR_LOG_WARN, "audit-recovered", KR_S("file", s->options->audit_log));
}

static int make_signer(struct signer *s, struct kr_note *why)
{
    const struct signer_options *o = s->options;
    struct kr_signer_config cfg = {
        .sched = s->sched,
        .cert_file = o->cert_file,
        .key_file = o->key_file,
        .lax_key_mode = o->lax_key_mode,
        .trust_domain = o->trust_domain,
        .lifetime_max_s = o->lifetime_max_ms / 1000,
        .hour_limit = o->hour_limit,
        .cluster_limit = o->cluster_limit,
        .audit = {o->audit_log, o->audit_max_size, o->audit_keep},
        .on_audit = on_audit,
        .owner = s,
    };
    const char *paths[] = {o->cert_file, o->key_file};

    kr_file_watch_init(&s->files, paths, 2);
    return kr_signer_create(&s->server.signer, &cfg, why);
}

static int start(struct signer *s, struct kr_note *why)
{
    const struct signer_options *o = s->options;
    struct kr_listener_config cfg = {
        .unix_path = o->socket,
        .on_accept = on_accept,
        .owner = s,
    };
    int rc = signer_close_memory(why);

    s->hub_uid = o->hub_uid >= 0 ? (uint32_t)o->hub_uid : (uint32_t)geteuid();
    cfg.unix_open = s->hub_uid != (uint32_t)geteuid();
    if (rc == 0)
        s->loop = kr_loop_create(why);
    if (s->loop == NULL)
        return rc != 0 ? rc : KR_ENOMEM;
    s->sched = kr_loop_sched(s->loop);
    kr_timer_init(&s->timer, on_timer);
    s->io = kr_tls_io_create(s->loop);
    if (s->io == NULL || kr_h2_shared_init(&s->h2, 0) != 0)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    s->server.sched = s->sched;
    s->server.h2 = &s->h2;
    s->server.log = s->log;
    signer_server_init(&s->server);
    rc = make_signer(s, why);
    if (rc != 0)
        return rc;
    s->listener = kr_listener_create(s->loop, &cfg, why);
    if (s->listener == NULL)
        return kr_note_wrap(why, KR_EIO, "socket");
    kr_timer_start(s->sched, &s->timer, KR_FILE_WATCH_MS);
    kr_loop_on_signal(s->loop, SIGTERM, on_term, s);
    kr_loop_on_signal(s->loop, SIGINT, on_term, s);
    kr_loop_on_signal(s->loop, SIGHUP, on_hup, s);
    return 0;
}

static void stop(struct signer *s)
{
    kr_listener_destroy(s->listener);
    if (s->io != NULL)
        kr_tls_io_destroy(s->io); /* what is left ends now */
    kr_signer_destroy(s->server.signer);
    kr_h2_shared_deinit(&s->h2);
    if (s->sched != NULL)
        kr_timer_stop(s->sched, &s->timer);
    if (s->loop != NULL)
        kr_loop_destroy(s->loop);
}

int signer_run(const struct signer_options *options, struct kr_log *log)
{
    struct signer s = {.options = options, .log = log};
    struct kr_note why = {""};
    int rc;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error of write() */
    rc = start(&s, &why);
    if (rc == 0) {
        KR_LOG_AT(log, KR_LOG_INFO, "started", KR_S("version", KR_VERSION),
                  KR_S("trust-domain", kr_signer_trust_domain(s.server.signer)),
                  KR_S("socket", options->socket), KR_U("hub-uid", s.hub_uid));
        kr_loop_run(s.loop);
        KR_LOG_AT(log, KR_LOG_INFO, "stopped", KR_U("signed", s.server.issued));
    } else {
        KR_LOG_AT(log, KR_LOG_ERROR, "start-failed", KR_S("reason", why.text));
    }
    stop(&s);
    return rc == 0 ? 0 : 1;
}
