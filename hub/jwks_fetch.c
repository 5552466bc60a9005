/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: on_timer -> dial -> TLS -> GET -> body -> the issuer has its keys -> on_timer an hour
 * later. Whatever goes wrong ends in over(), which says so once and tries again. */
#include "hub/jwks_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "http/h1_conn.h"
#include "net/dial.h"
#include "net/tls_pipe.h"

#define DEADLINE_MS 15000
#define EVERY_MS 3600000
#define AGAIN_MS 60000 /* between two fetches, whatever the reason */
#define RETRY_MS 10000 /* while there are no keys at all */

struct source { /* lives until its connection is gone, though abandoned */
    struct hub_worker *w;
    struct hub_issuer *issuer; /* NULL: abandoned */
    struct kr_timer next;
    struct kr_timer deadline;
    int64_t began_ms;
    bool ever;
    struct kr_hostport at;
    const char *path; /* borrows the issuer's URL */
    struct kr_dial *dial;
    struct kr_pipe *pipe;
    struct kr_conn *conn;
    struct kr_exchange *ex;
    struct kr_buf body;
    bool busy;
};

struct hub_jwks_fetch {
    size_t n;
    struct source *all[HUB_ISSUERS_MAX];
};

static bool idle(const struct source *s)
{
    return s->dial == NULL && s->pipe == NULL && s->conn == NULL;
}

static void source_free(struct source *s)
{
    kr_buf_deinit(&s->body);
    free(s);
}

/* The fetch has ended, one way or the other. */
static void over(struct source *s, int rc, const char *why)
{
    int64_t wait_ms = EVERY_MS;

    kr_timer_stop(s->w->sched, &s->deadline);
    kr_buf_deinit(&s->body);
    if (!s->busy || s->issuer == NULL)
        return;
    s->busy = false;
    if (rc == 0) {
        KR_LOG_AT(s->w->log, KR_LOG_INFO, "keys-fetched", KR_S("issuer", s->issuer->url),
                  KR_U("keys", kr_jwks_count(s->issuer->keys)));
    } else {
        KR_LOG_AT(s->w->log, KR_LOG_ERROR, "keys-not-fetched", KR_S("issuer", s->issuer->url),
                  KR_S("reason", why),
                  KR_S("effect", s->issuer->keys != NULL ? "the keys from before stay in use"
                                                         : "its tokens are refused"));
        wait_ms = s->issuer->keys != NULL ? AGAIN_MS : RETRY_MS;
    }
    kr_timer_start(s->w->sched, &s->next, wait_ms);
}

static void stop(struct source *s)
{
    struct kr_exchange *ex = s->ex;

    s->ex = NULL;
    kr_dial_cancel(s->dial);
    s->dial = NULL;
    if (ex != NULL)
        kr_exchange_abort(ex, KR_ABORT_CANCEL);
    if (s->conn != NULL)
        kr_conn_close(s->conn);
    else if (s->pipe != NULL)
        kr_pipe_close(s->pipe, KR_PIPE_ABORT);
}

/* ---- the answer ---- */

static void on_head(void *user)
{
    struct source *s = user;

    if (s->ex->head.status != 200) {
        char why[40];

        snprintf(why, sizeof why, "it answered %d", s->ex->head.status);
        over(s, KR_EPROTO, why);
        stop(s);
    }
}

static void on_body(void *user, struct kr_bytes in)
{
    struct source *s = user;

    if (kr_buf_append(&s->body, in) != 0) {
        over(s, KR_ETOOBIG, "its answer is too big");
        stop(s);
        return;
    }
    kr_exchange_consumed(s->ex, in.n);
}

static void on_end(void *user, const struct kr_head *trailers)
{
    (void)user, (void)trailers;
}

static size_t available(void *user, bool *end)
{
    (void)user;
    *end = true;
    return 0;
}

static void on_done(void *user, int rc)
{
    struct source *s = user;
    struct kr_note why = {""};

    s->ex = NULL;
    if (rc != 0)
        kr_note_set(&why, rc, "%s", kr_err_text(rc));
    else if (s->issuer != NULL)
        rc = hub_issuer_take_keys(s->issuer, kr_buf_bytes(&s->body), &why);
    over(s, rc, why.text);
    kr_conn_drain(s->conn);
}

static const struct kr_exchange_user exchange_user = {on_head,   on_body, on_end,
                                                      available, NULL,    on_done};

static void ask(struct source *s)
{
    struct kr_head head;
    int rc;

    KR_ASSERT(s->issuer != NULL);
    kr_head_init(&head, KR_HEAD_MAX);
    head.method = KR_LIT("GET");
    head.scheme = KR_LIT("https");
    head.authority = kr_bytes_str(s->issuer->jwks_url + 8);
    head.authority.n = (size_t)(s->path - s->issuer->jwks_url) - 8;
    head.path = *s->path != '\0' ? kr_bytes_str(s->path) : KR_LIT("/");
    rc = kr_head_add_str(&head, "accept", "application/json");
    if (rc == 0)
        rc = kr_head_add_str(&head, "user-agent", "kuberelay-hub/" KR_VERSION);
    if (rc == 0)
        s->ex = kr_conn_open(s->conn, &head, true, &exchange_user, s);
    kr_head_deinit(&head);
    if (s->ex == NULL) {
        over(s, KR_ENOMEM, "no request could be made");
        stop(s);
    }
}

/* ---- the connection ---- */

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct source *s = owner;

    (void)rc;
    s->conn = NULL;
    over(s, KR_ECONNLOST, why->text);
    if (s->issuer == NULL)
        source_free(s);
}

static const struct kr_conn_user conn_user = {NULL, NULL, NULL, on_close};

static int on_handshake(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                        const struct kr_note *why)
{
    struct source *s = owner;
    struct kr_h1_config cfg = {
        .sched = s->w->sched, .user_ops = &conn_user, .owner = s, .idle_timeout_ms = 1000};

    (void)info;
    s->pipe = NULL;
    if (rc == 0 && s->issuer != NULL)
        s->conn = kr_h1_client_create(&cfg, pipe);
    if (s->conn != NULL) {
        ask(s);
        return 0;
    }
    over(s, rc != 0 ? rc : KR_ENOMEM, rc != 0 ? why->text : "out of memory");
    if (s->issuer == NULL)
        source_free(s);
    return rc != 0 ? rc : KR_ECANCELED;
}

static const struct kr_tls_user tls_user = {NULL, on_handshake};

static struct kr_tls_context *make_tls(const struct hub_issuer *i, struct kr_note *why)
{
    static const struct kr_tls_alpn alpn[] = {{"http/1.1", KR_TLS_CERT_NONE}};
    struct kr_tls_config cfg = {
        .tls12 = true,
        .lax_x509 = true,
        .ca.file = i->ca_file,
        .alpn = alpn,
        .alpn_count = 1,
    };

    return kr_tls_context_create(&cfg, NULL, why);
}

static void on_dial(void *owner, int rc, int fd, const char *peer, const struct kr_note *why)
{
    struct source *s = owner;
    struct kr_note note = {""};
    struct kr_tls_start start = {
        .fd = fd,
        .user_ops = &tls_user,
        .owner = s,
        .timeout_ms = DEADLINE_MS,
        .server_name = s->at.host,
        .verify_host = s->at.host,
    };

    (void)peer;
    s->dial = NULL;
    if (rc != 0) {
        over(s, rc, why->text);
        return;
    }
    start.ctx = make_tls(s->issuer, &note);
    if (start.ctx == NULL) {
        close(fd);
        over(s, KR_ETLS, note.text);
        return;
    }
    s->pipe = kr_tls_connect(s->w->io, &start, &note);
    kr_tls_context_unref(start.ctx);
    if (s->pipe == NULL)
        over(s, KR_ENOMEM, note.text);
}

static void on_deadline(struct kr_timer *t)
{
    struct source *s = KR_CONTAINER_OF(t, struct source, deadline);

    over(s, KR_ETIMEDOUT, "it did not answer in time");
    stop(s);
}

static void on_next(struct kr_timer *t)
{
    struct source *s = KR_CONTAINER_OF(t, struct source, next);
    struct kr_dial_config cfg = {
        .host = s->at.host, .port = s->at.port, .on_done = on_dial, .owner = s};
    struct kr_note why = {"out of memory"};

    if (!idle(s)) { /* the connection of the last one has not ended */
        kr_timer_start(s->w->sched, &s->next, 1000);
        return;
    }
    s->busy = true;
    s->ever = true;
    s->began_ms = s->w->sched->now_ms;
    s->body.max = KR_JWKS_MAX;
    kr_timer_start(s->w->sched, &s->deadline, DEADLINE_MS);
    s->dial = kr_dial_start(s->w->loop, &cfg, &why);
    if (s->dial == NULL)
        over(s, KR_ENOMEM, why.text);
}

/* ---- all of them ---- */

static int read_url(struct source *s, struct kr_note *why)
{
    struct kr_bytes rest = kr_bytes_skip(kr_bytes_str(s->issuer->jwks_url), 8);
    char at[KR_HOST_MAX + 16];
    size_t n = kr_bytes_find(rest, '/');

    if (n >= sizeof at)
        return kr_note_set(why, KR_EINVAL, "jwksUrl: the host is too long");
    memcpy(at, rest.p, n);
    at[n] = '\0';
    s->path = (const char *)rest.p + n;
    if (strpbrk(s->path, " #\"<>\\") != NULL)
        return kr_note_set(why, KR_EINVAL, "jwksUrl: the path is not possible");
    return kr_hostport_parse(at, 443, &s->at, why) == 0 ? 0
                                                        : kr_note_wrap(why, KR_EINVAL, "jwksUrl");
}

static int add(struct hub_jwks_fetch *f, struct hub_worker *w, struct hub_issuer *issuer,
               struct kr_note *why)
{
    struct source *s = calloc(1, sizeof *s);
    int rc;

    if (s == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    s->w = w;
    s->issuer = issuer;
    kr_timer_init(&s->next, on_next);
    kr_timer_init(&s->deadline, on_deadline);
    rc = read_url(s, why);
    if (rc == 0)
        rc = kr_timer_start(w->sched, &s->next, 0);
    if (rc != 0)
        source_free(s);
    else
        f->all[f->n++] = s;
    return rc;
}

int hub_jwks_fetch_create(struct hub_worker *w, struct hub_issuers *issuers,
                          struct hub_jwks_fetch **out, struct kr_note *why)
{
    struct hub_jwks_fetch *f = NULL;
    int rc = 0;

    *out = NULL;
    for (size_t i = 0; i < issuers->n && rc == 0; i++) {
        if (issuers->all[i].jwks_url == NULL)
            continue;
        if (f == NULL)
            f = calloc(1, sizeof *f);
        rc = f != NULL ? add(f, w, &issuers->all[i], why)
                       : kr_note_set(why, KR_ENOMEM, "out of memory");
    }
    if (rc != 0)
        hub_jwks_fetch_destroy(f);
    else
        *out = f;
    return rc;
}

void hub_jwks_fetch_destroy(struct hub_jwks_fetch *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->n; i++) {
        struct source *s = f->all[i];

        kr_timer_stop(s->w->sched, &s->next);
        kr_timer_stop(s->w->sched, &s->deadline);
        s->issuer = NULL;
        stop(s);
        if (idle(s))
            source_free(s);
    }
    free(f);
}

void hub_jwks_fetch_want(struct hub_jwks_fetch *f, const struct hub_issuer *issuer)
{
    for (size_t i = 0; f != NULL && i < f->n; i++) {
        struct source *s = f->all[i];
        int64_t wait_ms = s->began_ms + AGAIN_MS - s->w->sched->now_ms;

        if (s->issuer != issuer || s->busy)
            continue;
        kr_timer_start(s->w->sched, &s->next, s->ever && wait_ms > 0 ? wait_ms : 0);
    }
}
