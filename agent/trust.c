/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/trust.h"

#include "agent/state.h"
#include "base/err.h"
#include "certs/ca.h"
#include "certs/pin.h"
#include "certs/store_file.h"

#define PEM_FILE_MAX (1u << 20)

static const struct kr_tls_alpn tunnel_alpn[] = {{"kuberelay/1", KR_TLS_CERT_REQUIRED}};
static const struct kr_tls_alpn enroll_alpn[] = {{"h2", KR_TLS_CERT_REQUIRED}};

struct material { /* PEM; a pair is key and chain in both */
    struct kr_buf cert;
    struct kr_buf key;
    struct kr_buf roots; /* empty if pinned */
    bool pinned;         /* no hub has told of roots yet: one is known by its hash */
    uint8_t pin[KR_PIN_SIZE];
    uint64_t generation;
};

static void material_end(struct material *m)
{
    kr_buf_cleanse(&m->cert);
    kr_buf_cleanse(&m->key);
    kr_buf_deinit(&m->roots);
}

static int read_roots(const struct agent_options *o, struct material *m, struct kr_note *why)
{
    int rc = KR_ENOENT;

    if (o->state_dir != NULL)
        rc = agent_state_load_bundle(o->state_dir, &m->roots, &m->generation, why);
    if (rc == 0)
        rc = kr_pem_check_ca(kr_buf_bytes(&m->roots), why);
    if (rc == 0)
        return 0;
    m->generation = 0;
    if (o->root_pin == NULL)
        return kr_file_read(&m->roots, o->ca_file, PEM_FILE_MAX, why);
    kr_buf_deinit(&m->roots);
    m->pinned = true;
    return kr_pin_parse(kr_bytes_str(o->root_pin), m->pin)
               ? 0
               : kr_note_set(why, KR_EINVAL, "rootPin: not a pin");
}

/* A pair that can be used, whoever it is of. */
static int check_pair(const struct kr_buf *pair, struct kr_note *why)
{
    struct kr_identity_rules rules = {KR_ROLE_AGENT, NULL};
    struct kr_identity id = {0};
    int rc = kr_identity_judge_pem(&id, kr_buf_bytes(pair), &rules, why);

    if (rc == 0)
        rc = kr_pem_check_pair(kr_buf_bytes(pair), kr_buf_bytes(pair), why);
    kr_identity_deinit(&id);
    return rc;
}

/* The one in use, or, if that cannot be used, the one before it that no hub has replaced yet. */
static int read_kept_pair(struct agent_core *c, struct kr_buf *pair, struct kr_note *why)
{
    const char *dir = c->options->state_dir;
    int rc = agent_state_load_pair(dir, pair, why);

    if (rc == KR_EDENIED)
        return rc; /* open to others: it is there, and the newer one */
    if (rc == 0)
        rc = check_pair(pair, why);
    if (rc == 0 || agent_trust_go_back(c, why->text) != 0)
        return rc;
    return agent_state_load_pair(dir, pair, why);
}

static int read_pair(struct agent_core *c, struct material *m, struct kr_note *why)
{
    const struct agent_options *o = c->options;

    if (o->cert_file == NULL)
        return read_kept_pair(c, &m->cert, why);
    return kr_file_read(&m->cert, o->cert_file, PEM_FILE_MAX, why);
}

int agent_trust_go_back(struct agent_core *c, const char *reason)
{
    const char *dir = c->options->state_dir;
    struct kr_identity_rules rules = {KR_ROLE_AGENT, NULL};
    struct kr_identity id = {0};
    struct kr_buf old = {0};
    struct kr_note why = {""};
    int rc = agent_state_load_previous(dir, &old, &why);

    if (rc == 0)
        rc = check_pair(&old, &why);
    if (rc == 0)
        rc = kr_identity_judge_pem(&id, kr_buf_bytes(&old), &rules, &why);
    if (rc == 0 && id.not_after_wall_ms <= c->sched->now_wall_ms)
        rc = KR_EDENIED; /* nobody takes it any more */
    if (rc == 0)
        rc = agent_state_go_back(dir, &why);
    if (rc == 0)
        KR_LOG_AT(c->log, KR_LOG_ERROR, "pair-before", KR_S("reason", reason),
                  KR_S("serial", id.serial),
                  KR_S("effect", "the certificate before the last one is in use again"));
    kr_identity_deinit(&id);
    kr_buf_cleanse(&old);
    return rc;
}

static void fill(struct kr_tls_config *cfg, const struct agent_options *o, struct material *m,
                 bool with_cert)
{
    if (m->pinned)
        cfg->pin = m->pin;
    else
        cfg->ca.bytes = kr_buf_bytes(&m->roots);
    cfg->alpn_count = 1;
    cfg->alpn_required = true;
    cfg->lax_key_mode = o->lax_key_mode;
    if (!with_cert)
        return;
    cfg->cert.bytes = kr_buf_bytes(&m->cert);
    if (o->key_file != NULL)
        cfg->key.file = o->key_file;
    else
        cfg->key.bytes = kr_buf_bytes(&m->cert);
}

static int load(struct agent_core *c, struct material *m, struct kr_note *why)
{
    struct kr_tls_config cfg = {.alpn = tunnel_alpn, .secret_in = true};
    struct kr_identity_rules rules = {KR_ROLE_AGENT, NULL};
    struct kr_identity self = {0};
    struct kr_tls_context *ctx;
    int rc = kr_identity_judge_pem(&self, kr_buf_bytes(&m->cert), &rules, why);

    if (rc != 0)
        return kr_note_wrap(why, rc, "%s",
                            c->options->cert_file != NULL ? c->options->cert_file : "stateDir");
    fill(&cfg, c->options, m, true);
    ctx = kr_tls_context_create(&cfg, &rc, why);
    if (ctx == NULL) {
        kr_identity_deinit(&self);
        return rc;
    }
    kr_tls_context_unref(c->hub_tls);
    c->pair_turn++;
    kr_identity_deinit(&c->self);
    c->hub_tls = ctx;
    c->self = self;
    c->bundle_generation = m->generation;
    return 0;
}

int agent_trust_load(struct agent_core *c, struct kr_note *why)
{
    const struct agent_options *o = c->options;
    struct material m = {.generation = 0};
    int rc = read_roots(o, &m, why);
    int pair = rc == 0 ? read_pair(c, &m, why) : 0;

    if (rc == 0 && pair == KR_ENOENT && o->cert_file == NULL)
        c->bundle_generation = m.generation; /* not enrolled yet */
    else if (rc == 0)
        rc = pair != 0 ? pair : load(c, &m, why);
    material_end(&m);
    return rc;
}

static int check_name(const struct agent_core *c, struct kr_bytes chain_pem, struct kr_note *why)
{
    const char *domain = c->self.domain;
    struct kr_identity_rules rules = {KR_ROLE_AGENT, domain[0] != '\0' ? domain : NULL};
    struct kr_identity id;
    int rc = kr_identity_judge_pem(&id, chain_pem, &rules, why);

    if (rc == 0 && c->self.name[0] != '\0' &&
        (strcmp(id.name, c->self.name) != 0 || strcmp(id.instance, c->self.instance) != 0))
        rc = kr_note_set(why, KR_EDENIED, "the certificate is for %.80s/%.80s", id.name,
                         id.instance);
    kr_identity_deinit(&id);
    return rc;
}

/* TLS would find out that the key does not fit; that the name is another one it would not. */
static int check_files(struct agent_core *c, struct kr_note *why)
{
    struct material m = {.generation = 0};
    int rc = read_roots(c->options, &m, why);

    if (rc == 0)
        rc = read_pair(c, &m, why);
    if (rc == 0)
        rc = check_name(c, kr_buf_bytes(&m.cert), why);
    if (rc == 0)
        rc = kr_pem_check_chain(kr_buf_bytes(&m.cert), kr_buf_bytes(&m.roots), why);
    material_end(&m);
    return rc;
}

int agent_trust_reload(struct agent_core *c, struct kr_note *why)
{
    int rc = c->options->cert_file != NULL ? check_files(c, why) : 0;

    return rc == 0 ? agent_trust_load(c, why) : rc;
}

struct kr_tls_context *agent_trust_enroll_context(struct agent_core *c, bool with_cert, int *rc,
                                                  struct kr_note *why)
{
    struct kr_tls_config cfg = {.alpn = enroll_alpn, .secret_out = true};
    struct kr_tls_context *ctx = NULL;
    struct material m = {.generation = 0};

    *rc = read_roots(c->options, &m, why);
    if (*rc == 0 && with_cert)
        *rc = read_pair(c, &m, why);
    if (*rc == 0) {
        fill(&cfg, c->options, &m, with_cert);
        ctx = kr_tls_context_create(&cfg, rc, why);
    }
    material_end(&m);
    return ctx;
}

/* The first roots that a hub tells of. It has shown the pinned one, and must tell of that, too:
 * what is kept is never less than what we were started with. */
static int check_pinned(const struct material *m, struct kr_bytes bundle, struct kr_note *why)
{
    if (bundle.n == 0)
        return kr_note_set(why, KR_EPROTO, "the hub tells of no roots, and only a pin is known");
    return kr_pin_check(bundle, m->pin, why);
}

int agent_trust_check(const struct agent_core *c, struct kr_bytes key_pem,
                      struct kr_bytes chain_pem, struct kr_bytes bundle, struct kr_note *why)
{
    struct material m = {.generation = 0};
    int rc = kr_pem_check_pair(chain_pem, key_pem, why);

    if (rc == 0)
        rc = check_name(c, chain_pem, why);
    if (rc == 0)
        rc = read_roots(c->options, &m, why);
    if (rc == 0 && m.pinned)
        rc = check_pinned(&m, bundle, why);
    if (rc == 0 && (m.pinned || kr_pem_check_chain(chain_pem, kr_buf_bytes(&m.roots), why) != 0))
        rc = kr_pem_check_chain(chain_pem, bundle, why);
    material_end(&m);
    return rc;
}

int agent_trust_take_bundle(struct agent_core *c, struct kr_bytes pem, uint64_t generation,
                            struct kr_note *why)
{
    const struct agent_options *o = c->options;
    struct material m = {.generation = 0};
    int rc;

    if (o->state_dir == NULL || pem.n == 0 || generation <= c->bundle_generation)
        return 0;
    rc = read_roots(o, &m, why);
    if (rc == 0 && m.pinned)
        rc = check_pinned(&m, pem, why);
    if (rc == 0)
        rc = kr_pem_check_ca(pem, why);
    if (rc == 0)
        rc = read_pair(c, &m, why);
    if (rc == 0)
        rc = kr_pem_check_chain(kr_buf_bytes(&m.cert), pem, why);
    material_end(&m);
    if (rc == 0)
        rc = agent_state_save_bundle(o->state_dir, pem, generation, why);
    return rc == 0 ? agent_trust_load(c, why) : rc;
}
