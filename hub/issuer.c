/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/issuer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "certs/csr.h"
#include "certs/hmac.h"
#include "hub/expect.h"
#include "hub/join_token.h"
#include "hub/signing.h"
#include "hub/trust_audit.h"

#define FAILURES_MAX 10 /* wrong secrets, then the token is worth nothing */
#define PEM_FILE_MAX 65536

struct hub_issuer {
    struct hub_worker *w;
    struct hub_registry *r;
    struct hub_store *store;
    const struct hub_signer *signer;
};

int hub_issuer_create(struct hub_worker *w, struct hub_registry *r, const struct hub_signer *signer,
                      struct hub_issuer **out, struct kr_note *why)
{
    struct hub_issuer *is = calloc(1, sizeof *is);

    *out = is;
    if (is == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    is->w = w;
    is->r = r;
    is->store = hub_registry_store(r);
    is->signer = signer;
    return 0;
}

void hub_issuer_destroy(struct hub_issuer *is)
{
    free(is);
}

bool hub_issuer_signed(const struct hub_issuer *is, struct kr_bytes chain_pem)
{
    return hub_signer_has_signed(is->signer, chain_pem);
}

static int want_signature(struct hub_issuer *is, const struct hub_instance *i,
                          struct hub_issued *out, struct kr_note *why)
{
    struct kr_spiffe_id id = {.role = KR_ROLE_AGENT};
    int rc;

    snprintf(id.domain, sizeof id.domain, "%s", is->w->self.domain);
    snprintf(id.name, sizeof id.name, "%s", i->cluster);
    snprintf(id.instance, sizeof id.instance, "%s", i->name);
    rc = kr_spiffe_id_format(&id, out->uri, why);
    return rc == 0 ? HUB_ISSUER_SIGN : rc;
}

/* What came must be what was asked for, whoever has made it. */
static int check_signed(struct hub_issuer *is, const struct hub_instance *i, const uint8_t *spki,
                        struct kr_bytes chain, struct kr_note *why)
{
    struct kr_identity_rules rules = {KR_ROLE_AGENT, is->w->self.domain};
    struct kr_identity id = {0};
    int rc = kr_identity_judge_pem(&id, chain, &rules, why);

    if (rc == 0 && (strcmp(id.name, i->cluster) != 0 || strcmp(id.instance, i->name) != 0 ||
                    memcmp(id.spki_sha256, spki, HUB_SPKI_SIZE) != 0))
        rc = kr_note_set(why, KR_EUNAVAILABLE, "the signer has certified something else");
    kr_identity_deinit(&id);
    return rc;
}

static bool same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, HUB_SPKI_SIZE) == 0;
}

/* The certificate that was issued last is of this key: its holder has not got the answer. */
static bool has_answer(const struct hub_instance *i, const uint8_t *spki)
{
    if (i->chain.n == 0)
        return false;
    return i->has_next ? same(i->next_spki, spki) : same(i->spki, spki);
}

static int give(struct hub_issued *out, const struct hub_instance *i, bool again)
{
    out->again = again;
    out->generation = i->generation + (i->has_next ? 1 : 0);
    kr_buf_init(&out->chain, PEM_FILE_MAX);
    return kr_buf_append(&out->chain, kr_buf_bytes(&i->chain));
}

static int keep_chain(struct hub_instance *i, struct kr_bytes chain)
{
    kr_buf_deinit(&i->chain);
    kr_buf_init(&i->chain, PEM_FILE_MAX);
    return kr_buf_append(&i->chain, chain);
}

/* ---- Join ---- */

static int bad_token(struct kr_note *why, const char *reason)
{
    return kr_note_set(why, KR_EDENIED, "the token is not good: %s", reason);
}

static int check_token(struct hub_issuer *is, struct kr_bytes text, struct hub_token *t,
                       struct kr_note *why)
{
    char id[HUB_TOKEN_ID + 1];
    uint8_t hash[KR_HMAC_SIZE];
    int rc;

    if (!hub_join_token_read(text, id, hash))
        return bad_token(why, "malformed");
    rc = is->store->ops->token_find(is->store, id, t, why);
    if (rc != 0)
        return rc == KR_ENOENT ? bad_token(why, "not known") : rc;
    if (t->failures >= FAILURES_MAX)
        return bad_token(why, "too many wrong secrets");
    if (!kr_hmac_equal(hash, t->secret_sha256)) {
        is->store->ops->token_failed(is->store, id, NULL);
        if (t->failures + 1 == FAILURES_MAX)
            hub_trust_audit_burned(is->w, t);
        return bad_token(why, "wrong secret");
    }
    return is->w->sched->now_wall_ms < t->expires_wall_ms ? 0 : bad_token(why, "expired");
}

/* What the registry says of the name that the token gives. */
static int check_cluster(struct hub_issuer *is, const struct hub_token *t,
                         struct hub_cluster_record *c, struct kr_note *why)
{
    int rc = is->store->ops->cluster_find(is->store, t->cluster, c, why);

    if (rc != 0 && rc != KR_ENOENT)
        return rc;
    if (rc == 0 && (c->state == HUB_CLUSTER_DENIED || c->state == HUB_CLUSTER_QUARANTINED ||
                    hub_registry_is_buried(is->r, c)))
        return kr_note_set(why, KR_EDENIED, "the cluster is denied, quarantined or removed");
    if (rc == 0 && c->state != HUB_CLUSTER_REMOVED)
        return 0;
    *c = (struct hub_cluster_record){
        .state = t->auto_accept ? HUB_CLUSTER_ACCEPTED : HUB_CLUSTER_PENDING,
        .since_wall_ms = is->w->sched->now_wall_ms,
    };
    snprintf(c->name, sizeof c->name, "%s", t->cluster);
    return 0;
}

static int find_instance(struct hub_issuer *is, const char *cluster, const char *instance,
                         struct hub_instance *i, struct kr_note *why)
{
    int rc = is->store->ops->instance_find(is->store, cluster, instance, i, why);

    if (rc != KR_ENOENT)
        return rc;
    *i = (struct hub_instance){.generation = 0};
    snprintf(i->cluster, sizeof i->cluster, "%s", cluster);
    snprintf(i->name, sizeof i->name, "%s", instance);
    return 0;
}

/* A token outranks the key before it: so a locked instance gets out again. */
static void take_over(struct hub_issuer *is, struct hub_instance *i, const uint8_t *spki)
{
    if (i->generation != 0) {
        i->has_previous = true;
        memcpy(i->previous_spki, i->spki, HUB_SPKI_SIZE);
    }
    memcpy(i->spki, spki, HUB_SPKI_SIZE);
    i->has_next = false;
    i->state = HUB_INSTANCE_ACTIVE;
    i->generation++;
    i->switched_wall_ms = is->w->sched->now_wall_ms;
}

/* From the certificate that was just made. */
static void note_validity(struct hub_issuer *is, struct hub_instance *i)
{
    struct kr_identity_rules rules = {KR_ROLE_AGENT, is->w->self.domain};
    struct kr_identity id;

    if (kr_identity_judge_pem(&id, kr_buf_bytes(&i->chain), &rules, NULL) == 0) {
        snprintf(i->serial, sizeof i->serial, "%s", id.serial);
        i->not_before_wall_ms = id.not_before_wall_ms;
        i->not_after_wall_ms = id.not_after_wall_ms;
    }
    kr_identity_deinit(&id);
}

static int claim(struct hub_issuer *is, const struct hub_token *t, const struct hub_instance *i,
                 const uint8_t *spki, struct kr_note *why)
{
    int rc = is->store->ops->token_claim(is->store, t->id, spki, i->name, why);

    return rc == KR_EEXIST ? kr_note_set(why, rc, "the token was used by another key") : rc;
}

static int enroll(struct hub_issuer *is, struct hub_cluster_record *c, struct hub_instance *i,
                  const uint8_t *spki, struct kr_bytes chain, struct kr_note *why)
{
    const struct hub_store_ops *ops = is->store->ops;
    uint64_t expected = i->generation;
    int rc = check_signed(is, i, spki, chain, why);

    if (rc == 0 && c->state <= HUB_CLUSTER_ACCEPTED)
        rc = ops->cluster_put(is->store, c, why);
    if (rc == 0)
        hub_expect_cluster(is->w, c->name);
    if (rc == 0)
        rc = keep_chain(i, chain);
    if (rc != 0)
        return rc;
    take_over(is, i, spki);
    note_validity(is, i);
    return ops->instance_put(is->store, i, expected, why);
}

/* Whether that key may have a certificate for that token, and what it is of. */
static int check_join(struct hub_issuer *is, const struct hub_token *t,
                      const struct hub_instance *i, const struct kr_join_request *q,
                      struct hub_cluster_record *c, uint8_t *spki, struct kr_note *why)
{
    int rc = check_cluster(is, t, c, why);

    if (rc == 0)
        rc = kr_csr_check(q->csr, spki, why);
    if (rc == 0 && is->store->ops->key_denied(is->store, spki, why) != KR_ENOENT)
        rc = kr_note_set(why, KR_EDENIED, "the key is denied");
    if (rc == 0 && i->state == HUB_INSTANCE_DENIED)
        rc = kr_note_set(why, KR_EDENIED, "the instance is denied");
    return rc;
}

static int join_as(struct hub_issuer *is, const struct hub_token *t, struct hub_instance *i,
                   const struct kr_join_request *q, struct kr_bytes chain, struct hub_issued *out,
                   struct kr_note *why)
{
    struct hub_cluster_record c;
    uint8_t spki[HUB_SPKI_SIZE];
    int rc = check_join(is, t, i, q, &c, spki, why);

    if (rc != 0)
        return rc;
    out->pending = c.state == HUB_CLUSTER_PENDING;
    if (t->used && same(t->spki, spki) && strcmp(t->instance, i->name) == 0 && has_answer(i, spki))
        return give(out, i, true);
    if (t->used && (!same(t->spki, spki) ||
                    (i->has_previous && same(i->previous_spki, spki)))) /* renewed since */
        return kr_note_set(why, KR_EEXIST, "the token was used by another key");
    rc = claim(is, t, i, spki, why);
    if (rc == 0 && chain.n == 0)
        return want_signature(is, i, out, why);
    if (rc == 0)
        rc = enroll(is, &c, i, spki, chain, why);
    return rc == 0 ? give(out, i, false) : rc;
}

int hub_issuer_join(struct hub_issuer *is, const struct kr_join_request *q, struct kr_bytes chain,
                    struct hub_issued *out, struct kr_note *why)
{
    struct kr_bytes instance = q->instance.n != 0 ? q->instance : KR_LIT("a");
    struct hub_instance i = {.generation = 0};
    struct hub_token t;
    int rc;

    *out = (struct hub_issued){.generation = 0};
    rc = check_token(is, q->token, &t, why);
    if (rc != 0)
        return rc;
    snprintf(out->cluster, sizeof out->cluster, "%s", t.cluster);
    if (instance.n >= sizeof out->instance || !kr_spiffe_is_segment(instance))
        return kr_note_set(why, KR_EINVAL, "a bad instance name");
    snprintf(out->instance, sizeof out->instance, "%.*s", (int)instance.n,
             (const char *)instance.p);
    rc = find_instance(is, t.cluster, out->instance, &i, why);
    if (rc == 0)
        rc = join_as(is, &t, &i, q, chain, out, why);
    kr_buf_deinit(&i.chain);
    return rc;
}

/* ---- Renew ---- */

static int renew(struct hub_issuer *is, struct hub_instance *i, const struct kr_renew_request *q,
                 struct kr_bytes chain, struct hub_issued *out, struct kr_note *why)
{
    uint8_t spki[HUB_SPKI_SIZE];
    int rc = kr_csr_check(q->csr, spki, why);

    if (rc != 0)
        return rc;
    if (q->generation != 0 && q->generation != i->generation)
        return kr_note_set(why, KR_EDENIED, "generation %llu is in use, not %llu",
                           (unsigned long long)i->generation, (unsigned long long)q->generation);
    if (same(spki, i->spki))
        return kr_note_set(why, KR_EINVAL, "a renewal needs a new key");
    if (i->has_next && has_answer(i, spki))
        return give(out, i, true);
    if (chain.n == 0)
        return want_signature(is, i, out, why);
    rc = check_signed(is, i, spki, chain, why);
    if (rc == 0)
        rc = keep_chain(i, chain);
    if (rc != 0)
        return rc;
    i->has_next = true;
    memcpy(i->next_spki, spki, HUB_SPKI_SIZE);
    rc = is->store->ops->instance_put(is->store, i, i->generation, why);
    return rc == 0 ? give(out, i, false) : rc;
}

int hub_issuer_renew(struct hub_issuer *is, const struct kr_identity *id,
                     const struct kr_renew_request *q, struct kr_bytes chain,
                     struct hub_issued *out, struct kr_note *why)
{
    struct hub_instance i = {.generation = 0};
    bool pending = false;
    int rc;

    *out = (struct hub_issued){.generation = 0};
    snprintf(out->cluster, sizeof out->cluster, "%s", id->name);
    snprintf(out->instance, sizeof out->instance, "%s", id->instance);
    /* Judged anew (the handshake was a while ago), and recorded if this is its first use. */
    rc = hub_registry_attach(is->r, id, NULL, &pending, why);
    if (rc == 0)
        rc = is->store->ops->instance_find(is->store, id->name, id->instance, &i, why);
    if (rc == 0 && !same(i.spki, id->spki_sha256))
        rc = kr_note_set(why, KR_EDENIED, "a newer key of this instance is in use");
    if (rc == 0)
        rc = renew(is, &i, q, chain, out, why);
    kr_buf_deinit(&i.chain);
    return rc;
}
