/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/signer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "certs/chained_log.h"
#include "certs/identity.h"
#include "certs/sign_event.h"
#include "certs/store_file.h"

#define PEM_FILE_MAX 65536
#define EVENT_MAX 8192

struct kr_signer {
    struct kr_signer_config cfg;
    struct kr_ca *ca;
    struct kr_sign_limits limits;
    struct kr_chained_log *log;
    struct kr_metric lines; /* the log counts; nobody asks */
    struct kr_metric lost;
    struct kr_metric failing;
};

int kr_signer_load(struct kr_signer *s, struct kr_note *why)
{
    const struct kr_signer_config *c = &s->cfg;
    struct kr_buf cert = {0};
    struct kr_buf key = {0};
    struct kr_ca *ca = NULL;
    int rc = kr_file_read(&cert, c->cert_file, PEM_FILE_MAX, why);

    if (rc == 0)
        rc = c->lax_key_mode ? kr_file_read(&key, c->key_file, PEM_FILE_MAX, why)
                             : kr_file_read_private(&key, c->key_file, PEM_FILE_MAX, why);
    if (rc == 0)
        rc = kr_ca_load(&ca, kr_buf_bytes(&cert), kr_buf_bytes(&key), c->trust_domain,
                        c->sched->now_wall_ms, why);
    kr_buf_deinit(&cert);
    kr_buf_cleanse(&key);
    if (rc != 0)
        return rc;
    kr_ca_destroy(s->ca);
    s->ca = ca;
    return 0;
}

static void on_change(void *owner, bool failing, int error)
{
    struct kr_signer *s = owner;

    s->cfg.on_audit(s->cfg.owner, failing, error);
}

static int open_log(struct kr_signer *s, struct kr_note *why)
{
    struct kr_chained_config cfg = {
        .file = s->cfg.audit,
        .sched = s->cfg.sched,
        .lines = &s->lines,
        .lost = &s->lost,
        .failing = &s->failing,
        .on_change = on_change,
        .owner = s,
    };

    s->log = kr_chained_log_open(&cfg, why);
    return s->log != NULL ? 0 : KR_EIO;
}

int kr_signer_create(struct kr_signer **out, const struct kr_signer_config *cfg,
                     struct kr_note *why)
{
    struct kr_signer *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (s == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    s->cfg = *cfg;
    kr_sign_limits_init(&s->limits, cfg->hour_limit, cfg->cluster_limit);
    rc = kr_signer_load(s, why);
    if (rc == 0)
        rc = open_log(s, why);
    if (rc != 0)
        kr_signer_destroy(s);
    else
        *out = s;
    return rc;
}

void kr_signer_destroy(struct kr_signer *s)
{
    if (s == NULL)
        return;
    kr_chained_log_close(s->log);
    kr_sign_limits_deinit(&s->limits);
    kr_ca_destroy(s->ca);
    free(s);
}

int kr_signer_reopen(struct kr_signer *s, struct kr_note *why)
{
    return kr_chained_log_reopen(s->log, why);
}

const char *kr_signer_trust_domain(const struct kr_signer *s)
{
    return kr_ca_trust_domain(s->ca);
}

/* ---- one certificate ---- */

static int check_order(const struct kr_signer *s, const struct kr_sign_order *order,
                       struct kr_spiffe_id *id, struct kr_note *why)
{
    int64_t most = s->cfg.lifetime_max_s;
    struct kr_note cause = {""};

    if (kr_spiffe_id_parse(id, order->uri, &cause) != 0)
        return kr_note_set(why, KR_EDENIED, "not a name: %.120s", cause.text);
    if (id->role != KR_ROLE_AGENT)
        return kr_note_set(why, KR_EDENIED, "the name is one of a %s; only agents are certified",
                           kr_role_text(id->role));
    if (strcmp(id->domain, kr_ca_trust_domain(s->ca)) != 0)
        return kr_note_set(why, KR_EDENIED, "the trust domain is %.80s, not %.80s",
                           kr_ca_trust_domain(s->ca), id->domain);
    if (order->lifetime_s <= 0 || (most != 0 && order->lifetime_s > most))
        return kr_note_set(why, KR_EINVAL, "a lifetime of %" PRId64 " seconds is out of bounds",
                           order->lifetime_s);
    return 0;
}

static int issue(struct kr_signer *s, const struct kr_spiffe_id *id,
                 const struct kr_sign_order *order, struct kr_buf *chain, struct kr_note *why)
{
    struct kr_leaf leaf = {
        .role = KR_ROLE_AGENT,
        .name = id->name,
        .instance = id->instance,
        .lifetime_s = order->lifetime_s,
    };

    return kr_ca_issue_csr(s->ca, &leaf, order->csr, s->cfg.sched->now_wall_ms, chain, why);
}

/* A line may stand for a certificate that was then not given; never the other way round. */
static int audit(struct kr_signer *s, const struct kr_spiffe_id *id,
                 const struct kr_sign_order *order, const struct kr_buf *chain, struct kr_note *why)
{
    struct kr_identity_rules rules = {KR_ROLE_AGENT, kr_ca_trust_domain(s->ca)};
    struct kr_buf line = {.max = EVENT_MAX};
    struct kr_identity made = {0};
    int rc = kr_identity_judge_pem(&made, kr_buf_bytes(chain), &rules, why);

    if (rc == 0 && (strcmp(made.name, id->name) != 0 || strcmp(made.instance, id->instance) != 0))
        rc = kr_note_set(why, KR_EDENIED, "the certificate came out for another name");
    if (rc == 0)
        rc =
            kr_sign_event_write(&line, &made, order->uri, order->caller, s->cfg.sched->now_wall_ms);
    if (rc == 0)
        rc = kr_chained_log_put(s->log, &line);
    kr_buf_deinit(&line);
    kr_identity_deinit(&made);
    if (rc == KR_EFULL || (rc == 0 && !kr_chained_log_ok(s->log)))
        rc = kr_note_set(why, KR_EUNAVAILABLE, "the audit log takes no lines");
    return rc;
}

int kr_signer_sign(struct kr_signer *s, const struct kr_sign_order *order, struct kr_buf *chain,
                   int64_t *retry_ms, struct kr_note *why)
{
    int64_t now_ms = s->cfg.sched->now_ms;
    struct kr_spiffe_id id;
    int rc = check_order(s, order, &id, why);

    *chain = (struct kr_buf){0};
    *retry_ms = 0;
    if (rc == 0)
        rc = kr_sign_limits_check(&s->limits, id.name, now_ms, retry_ms, why);
    if (rc == 0)
        rc = issue(s, &id, order, chain, why);
    if (rc == 0)
        rc = kr_sign_limits_take(&s->limits, id.name, now_ms);
    if (rc == 0)
        rc = audit(s, &id, order, chain, why);
    if (rc != 0)
        kr_buf_deinit(chain);
    return rc;
}
