/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/trust_parts.h"

#include "base/err.h"
#include "hub/trust_audit.h"

static void on_revocations(void *owner, const struct kr_crl *crl)
{
    struct hub_trust_parts *p = owner;

    struct hub_trust_event e = {
        .verb = "update", .resource = "revocationlists", .name = "fleet", .code = 200};

    hub_trust_audit(p->w, &e);
    hub_front_drop_revoked(p->front, crl);
    hub_gate_drop_revoked(p->gate, crl);
}

/* Every agent is told of a new bundle. */
static int load_bundle(struct hub_trust_parts *p, struct kr_note *why)
{
    uint64_t before = p->bundle.generation;
    uint64_t kept = 0;
    struct hub_trust_event e = {
        .verb = "update", .resource = "trustbundles", .name = "fleet", .code = 200};
    int rc = 0;

    if (before == 0 && p->w->registry != NULL) { /* the start: what was told before it */
        struct hub_store *s = hub_registry_store(p->w->registry);

        rc = s->ops->number_get(s, "bundle_generation", &kept, why);
        before = kept;
    }
    if (rc == 0)
        rc = hub_bundle_load(&p->bundle, p->w->registry, p->w->options, p->w->sched->now_wall_ms,
                             why);
    e.generation = p->bundle.generation;
    if (rc == 0 && e.generation != before)
        hub_trust_audit(p->w, &e);
    return rc;
}

int hub_trust_parts_create(struct hub_trust_parts *p, struct hub_worker *w, struct kr_note *why)
{
    int rc = hub_registry_create(w, &w->registry, why);

    p->w = w;
    if (rc == 0)
        rc = load_bundle(p, why);
    if (rc == 0)
        rc = hub_signer_create(w, &p->signer, why);
    if (rc == 0 && p->signer != NULL)
        rc = hub_issuer_create(w, w->registry, p->signer, &w->issuer, why);
    if (rc != 0)
        return rc;
    if (w->registry != NULL)
        w->bundle = &p->bundle;
    if (w->issuer == NULL)
        return 0;
    p->enroll = hub_enroll_create(w, w->issuer, p->signer, &p->bundle);
    return p->enroll != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "out of memory");
}

static void told(struct hub_trust_parts *p, int rc, const struct kr_note *why)
{
    if (rc != 0)
        KR_LOG_AT(p->w->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why->text),
                  KR_S("effect", "what was loaded before stays in use"));
}

/* SIGHUP, or the files have changed. */
static void reload_certificates(void *owner)
{
    struct hub_trust_parts *p = owner;
    struct kr_note why = {""};
    int rc = hub_worker_load_tls(p->w, &why);

    if (rc == 0)
        KR_LOG_AT(p->w->log, KR_LOG_INFO, "reloaded", KR_S("cert", p->w->options->cert_file));
    told(p, rc, &why);
    rc = load_bundle(p, &why);
    if (rc == 0 && p->signer != NULL)
        rc = hub_signer_load(p->signer, &why);
    told(p, rc, &why);
}

int hub_trust_parts_start(struct hub_trust_parts *p, struct hub_front *front, struct hub_gate *gate,
                          struct kr_note *why)
{
    int rc;

    p->front = front;
    p->gate = gate;
    rc = hub_revocation_start(&p->revocation, p->w, on_revocations, p, why);
    if (rc == 0)
        hub_file_news_start(&p->file_news, p->w->sched, p->w->options, reload_certificates, p);
    return rc;
}

void hub_trust_parts_reload(struct hub_trust_parts *p)
{
    reload_certificates(p);
    hub_signer_reopen(p->signer);
    hub_revocation_reload(&p->revocation);
}

void hub_trust_parts_destroy(struct hub_trust_parts *p)
{
    if (p->w == NULL)
        return;
    hub_file_news_stop(&p->file_news);
    hub_revocation_stop(&p->revocation);
    hub_enroll_destroy(p->enroll);
    hub_issuer_destroy(p->w->issuer);
    hub_signer_destroy(p->signer);
    hub_bundle_deinit(&p->bundle);
    hub_registry_destroy(p->w->registry);
}
