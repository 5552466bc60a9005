/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path, own key: start -> signed at once -> a task -> on_done. With a signer: start ->
 * connect
 * -> SETTINGS -> the call -> its message -> OK -> close -> on_done. A connection lives for one
 * call: there are few, and nothing is left of one that broke. */
#include "hub/signing.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "certs/crl.h"
#include "certs/signer.h"
#include "certs/store_file.h"
#include "hub/counters.h"
#include "hub/signing_call.h"

#define PEM_FILE_MAX 65536

struct hub_signer {
    struct hub_worker *w;
    struct kr_ca *ca;        /* without its key: to see what it has signed */
    struct kr_signer *local; /* NULL: kuberelay-signer does it */
    const char *path;        /* of its socket */
    char audit[PATH_MAX];
    bool away; /* as was told last */
};

static int load_ca(struct hub_signer *s, struct kr_note *why)
{
    struct kr_buf cert = {0};
    struct kr_ca *ca = NULL;
    int rc = kr_file_read(&cert, s->w->options->signer_cert_file, PEM_FILE_MAX, why);

    if (rc == 0)
        rc = kr_ca_load_public(&ca, kr_buf_bytes(&cert), s->w->self.domain,
                               s->w->sched->now_wall_ms, why);
    kr_buf_deinit(&cert);
    if (rc != 0)
        return rc;
    kr_ca_destroy(s->ca);
    s->ca = ca;
    return 0;
}

int hub_signer_load(struct hub_signer *s, struct kr_note *why)
{
    int rc = s->local != NULL ? kr_signer_load(s->local, why) : 0;

    if (rc == 0)
        rc = load_ca(s, why);
    return rc == 0 ? 0 : kr_note_wrap(why, rc, "signerCertFile");
}

static void on_audit(void *owner, bool failing, int error)
{
    struct hub_signer *s = owner;

    if (failing)
        KR_LOG_AT(s->w->log, KR_LOG_ERROR, "signer-audit-failing", KR_S("file", s->audit),
                  KR_S("reason", error != 0 ? strerror(error) : "nobody reads it"),
                  KR_S("effect", "no certificates are made"));
    else
        KR_LOG_AT(s->w->log, KR_LOG_WARN, "signer-audit-recovered", KR_S("file", s->audit));
}

static int make_local(struct hub_signer *s, struct kr_note *why)
{
    const struct hub_options *o = s->w->options;
    struct kr_signer_config cfg = {
        .sched = s->w->sched,
        .cert_file = o->signer_cert_file,
        .key_file = o->signer_key_file,
        .lax_key_mode = o->lax_key_mode,
        .trust_domain = s->w->self.domain,
        .hour_limit = o->sign_hour_limit,
        .cluster_limit = o->sign_cluster_limit,
        .audit = {s->audit, o->audit.max_size, o->audit.keep},
        .on_audit = on_audit,
        .owner = s,
    };

    if (snprintf(s->audit, sizeof s->audit, "%s/issued.log", o->state_dir) >= (int)sizeof s->audit)
        return kr_note_set(why, KR_EINVAL, "stateDir: the path is too long");
    return kr_signer_create(&s->local, &cfg, why);
}

int hub_signer_create(struct hub_worker *w, struct hub_signer **out, struct kr_note *why)
{
    const struct hub_options *o = w->options;
    struct hub_signer *s;
    int rc;

    *out = NULL;
    if (o->signer_cert_file == NULL)
        return 0;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    s->w = w;
    s->path = o->signer != NULL ? o->signer + sizeof HUB_SIGNER_UNIX - 1 : NULL;
    rc = load_ca(s, why);
    if (rc == 0 && s->path == NULL)
        rc = make_local(s, why);
    if (rc != 0) {
        hub_signer_destroy(s);
        return kr_note_wrap(why, rc, "signerCertFile");
    }
    *out = s;
    return 0;
}

void hub_signer_destroy(struct hub_signer *s)
{
    if (s == NULL)
        return;
    kr_signer_destroy(s->local);
    kr_ca_destroy(s->ca);
    free(s);
}

void hub_signer_reopen(struct hub_signer *s)
{
    struct kr_note why = {""};

    if (s != NULL && s->local != NULL && kr_signer_reopen(s->local, &why) != 0)
        KR_LOG_AT(s->w->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "the log of certificates goes on in the old file"));
}

bool hub_signer_has_signed(const struct hub_signer *s, struct kr_bytes chain_pem)
{
    char serial[41];

    return chain_pem.n != 0 && kr_crl_serial_of(s->ca, chain_pem, serial, NULL) == 0;
}

/* An operator is told when that changes. */
static void note_away(struct hub_signer *s, int rc, const struct kr_note *why)
{
    bool away = rc == KR_EUNAVAILABLE || rc == KR_ETIMEDOUT || rc == KR_ECONNLOST;

    if (away == s->away)
        return;
    s->away = away;
    if (away)
        KR_LOG_AT(s->w->log, KR_LOG_ERROR, "signer-away", KR_S("signer", s->path),
                  KR_S("reason", why->text), KR_S("effect", "agents are told to come back"));
    else
        KR_LOG_AT(s->w->log, KR_LOG_INFO, "signer-back", KR_S("signer", s->path));
}

/* A signer of its own has no port that could be asked. */
static const char *result_of(int rc)
{
    switch (rc) {
    case 0:
        return "signed";
    case KR_EFULL:
        return "limit";
    case KR_EDENIED:
    case KR_EINVAL:
    case KR_EPROTO:
    case KR_ETOOBIG:
        return "refused";
    default:
        return "unavailable";
    }
}

/* Whoever answers on that socket is believed only as far as the CA's certificate goes. */
static void on_answer(void *owner, struct hub_signing *g, int rc, struct kr_bytes chain,
                      const struct kr_note *reason)
{
    struct hub_signer *s = owner;
    struct kr_note why = *reason;

    if (rc == 0 && !hub_signer_has_signed(s, chain))
        rc = kr_note_set(&why, KR_EUNAVAILABLE,
                         "the signer uses another CA than signerCertFile has");
    hub_worker_count(s->w, HUB_SIGNATURES, result_of(rc));
    if (g == NULL)
        return; /* nobody waits any more */
    if (s->local == NULL)
        note_away(s, rc, &why);
    g->call = NULL;
    g->on_done(g, rc, rc == 0 ? chain : KR_LIT(""), &why);
}

static void sign_here(struct hub_signer *s, struct hub_signing_call *call,
                      const struct hub_signing_order *order)
{
    struct kr_sign_order local = {
        .uri = kr_bytes_str(order->uri),
        .csr = order->csr,
        .lifetime_s = order->lifetime_s,
        .caller = s->w->self.name,
    };
    struct kr_buf chain = {0};
    struct kr_note why = {""};
    int64_t retry_ms = 0;
    int rc = kr_signer_sign(s->local, &local, &chain, &retry_ms, &why);

    if (rc == KR_EFULL) {
        size_t n = strlen(why.text);

        snprintf(why.text + n, sizeof why.text - n, "; come back in %lld s",
                 (long long)((retry_ms + 999) / 1000));
    }
    hub_signing_call_finish(call, rc, &chain, &why);
}

void hub_signing_start(struct hub_signer *s, struct hub_signing *g, const char *uri,
                       struct kr_bytes csr)
{
    struct hub_signing_order order = {
        .uri = uri,
        .csr = csr,
        .lifetime_s = s->w->options->agent_lifetime_ms / 1000,
    };

    KR_ASSERT(g->call == NULL);
    g->call = hub_signing_call_create(s->w, g, on_answer, s);
    if (g->call == NULL)
        return; /* as good as an answer that never comes: the connection has its deadline */
    if (s->local != NULL)
        sign_here(s, g->call, &order);
    else
        hub_signing_call_dial(g->call, s->path, &order);
}

void hub_signing_cancel(struct hub_signing *g)
{
    if (g->call != NULL)
        hub_signing_call_cancel(g->call);
    g->call = NULL;
}
