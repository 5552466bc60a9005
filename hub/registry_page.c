/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/registry_page.h"

#include <stdio.h>

#include "base/err.h"
#include "base/json.h"
#include "certs/ca.h"
#include "hub/expect.h"
#include "hub/forget.h"
#include "hub/issuer.h"
#include "hub/join_token.h"
#include "hub/trust_audit.h"

#define TTL_MAX_S 86400
#define WORDS_MAX 5

struct words { /* of a path */
    struct kr_bytes v[WORDS_MAX];
    size_t n; /* WORDS_MAX + 1: too many */
};

static struct words split(struct kr_bytes path)
{
    struct words w = {.n = 0};

    while (path.n != 0 && path.p[0] == '/') {
        size_t n;

        path = kr_bytes_skip(path, 1);
        n = kr_bytes_find(path, '/');
        if (w.n < WORDS_MAX)
            w.v[w.n] = kr_bytes_of(path.p, n);
        if (w.n <= WORDS_MAX)
            w.n++;
        path = kr_bytes_skip(path, n);
    }
    return w;
}

static bool is(const struct words *w, size_t i, const char *word)
{
    return i < w->n && kr_bytes_is(w->v[i], word);
}

static int say(struct kr_buf *body, int status, const char *text)
{
    kr_buf_printf(body, "%s\n", text);
    return status;
}

static int fail(struct kr_buf *body, int rc, const struct kr_note *why)
{
    return say(body, rc == KR_ENOENT ? 404 : 500,
               rc == KR_ENOENT        ? "not known"
               : why->text[0] != '\0' ? why->text
                                      : kr_err_text(rc));
}

static void put_hex(struct kr_json_out *o, const char *key, const uint8_t *p, size_t n)
{
    char text[2 * HUB_SPKI_SIZE + 1] = "";

    for (size_t i = 0; i < n && i < HUB_SPKI_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", p[i]);
    kr_json_out_text(o, key, text);
}

static bool read_hex(struct kr_bytes in, uint8_t out[HUB_SPKI_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    if (in.n != 2 * HUB_SPKI_SIZE)
        return false;
    memset(out, 0, HUB_SPKI_SIZE);
    for (size_t i = 0; i < in.n; i++) {
        const char *d = in.p[i] != 0 ? strchr(digits, in.p[i]) : NULL;

        if (d == NULL)
            return false;
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | (d - digits));
    }
    return true;
}

/* ---- tokens ---- */

static void put_token(struct kr_json_out *o, const struct hub_token *t)
{
    kr_json_out_text(o, "id", t->id);
    kr_json_out_text(o, "cluster", t->cluster);
    kr_json_out_int(o, "expiresMs", t->expires_wall_ms);
    kr_json_out_bool(o, "autoAccept", t->auto_accept);
    kr_json_out_bool(o, "used", t->used);
    kr_json_out_text(o, "instance", t->instance);
    kr_json_out_int(o, "failures", t->failures);
}

static bool list_token(void *owner, const struct hub_token *t)
{
    struct kr_json_out *o = owner;

    kr_json_out_object(o, NULL);
    put_token(o, t);
    kr_json_out_end(o);
    return o->rc == 0;
}

static int list_tokens(struct hub_worker *w, struct kr_buf *body, const char **type)
{
    struct hub_store *s = hub_registry_store(w->registry);
    struct kr_json_out o;
    struct kr_note why = {""};
    int rc = s->ops->tokens_expire(s, w->sched->now_wall_ms, &why);

    kr_json_out_init(&o, body);
    kr_json_out_object(&o, NULL);
    kr_json_out_int(&o, "nowMs", w->sched->now_wall_ms);
    kr_json_out_array(&o, "tokens");
    if (rc == 0)
        rc = s->ops->tokens_each(s, list_token, &o, &why);
    kr_json_out_end(&o);
    kr_json_out_end(&o);
    *type = "application/json";
    return rc == 0 && o.rc == 0 ? 200 : 500;
}

static int check_name(struct hub_worker *w, const char *name, struct kr_buf *body)
{
    struct hub_store *s = hub_registry_store(w->registry);
    struct hub_cluster_record c;

    if (s->ops->cluster_find(s, name, &c, NULL) != 0)
        return 0;
    if (hub_registry_is_buried(w->registry, &c))
        return say(body, 409, "this name was removed; `cluster accept` takes it back");
    if (c.state == HUB_CLUSTER_DENIED || c.state == HUB_CLUSTER_QUARANTINED)
        return say(body, 409, "this cluster is denied or quarantined; accept it first");
    return 0;
}

static void audit_token(struct hub_worker *w, const struct hub_token *t, struct kr_bytes path)
{
    struct hub_trust_event e = {
        .verb = "create",
        .resource = "jointokens",
        .name = t->id,
        .uri = path,
        .cluster = t->cluster,
        .code = 201,
        .message = t->auto_accept ? "its cluster is accepted at once" : NULL,
    };

    hub_trust_audit_order(w, &e);
}

static int create_token(struct hub_worker *w, const struct words *q, struct kr_bytes path,
                        struct kr_buf *body, const char **type)
{
    struct hub_store *s = hub_registry_store(w->registry);
    struct hub_token t = {.auto_accept = is(q, 3, "auto")};
    struct kr_note why = {""};
    struct kr_json_out o;
    char text[HUB_JOIN_TOKEN_SIZE];
    uint64_t ttl_s;
    int rc;

    if (!kr_is_dns_label(q->v[1]) || !kr_bytes_to_u64(q->v[2], TTL_MAX_S, &ttl_s) || ttl_s == 0)
        return say(body, 400, "/tokens/CLUSTER/SECONDS/auto, at most a day");
    if (!hub_worker_enrolls(w))
        return say(body, 409, "this hub has no signerCertFile: agents cannot join");
    snprintf(t.cluster, sizeof t.cluster, "%.*s", (int)q->v[1].n, (const char *)q->v[1].p);
    rc = check_name(w, t.cluster, body);
    if (rc != 0)
        return rc;
    t.expires_wall_ms = w->sched->now_wall_ms + (int64_t)ttl_s * 1000;
    s->ops->tokens_expire(s, w->sched->now_wall_ms, &why);
    rc = hub_join_token_make(text, &t);
    if (rc == 0)
        rc = s->ops->token_add(s, &t, &why);
    if (rc != 0)
        return fail(body, rc, &why);
    KR_LOG_AT(w->log, KR_LOG_INFO, "token-created", KR_S("id", t.id), KR_S("cluster", t.cluster),
              KR_T("auto-accept", t.auto_accept), KR_U("ttl-s", ttl_s));
    audit_token(w, &t, path);
    kr_json_out_init(&o, body);
    kr_json_out_object(&o, NULL);
    kr_json_out_text(&o, "token", text);
    kr_json_out_text(&o, "rootPin", w->root_pin);
    put_token(&o, &t);
    kr_json_out_end(&o);
    *type = "application/json";
    return 201;
}

/* ---- clusters ---- */

struct listing {
    struct hub_worker *w;
    struct kr_json_out o;
    bool denied; /* the cluster that is being listed */
    int64_t old_keys;
    int64_t behind;
};

static const char *cluster_state(enum hub_cluster_state state)
{
    static const char *const names[] = {"pending", "accepted", "denied", "removed", "quarantined"};

    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

/* An agent is shut out by its name or by the key that it has. */
static enum hub_instance_state instance_state(const struct listing *l, const struct hub_instance *i)
{
    struct hub_store *s = hub_registry_store(l->w->registry);

    if (i->state == HUB_INSTANCE_ACTIVE && s->ops->key_denied(s, i->spki, NULL) == 0)
        return HUB_INSTANCE_DENIED;
    return i->state;
}

static const char *instance_state_text(enum hub_instance_state state)
{
    static const char *const names[] = {"active", "locked", "denied"};

    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

/* It would not know the hub by a root that is new in the bundle, as far as it has told. */
static bool is_behind(const struct listing *l, const struct hub_instance *i,
                      enum hub_instance_state state)
{
    uint64_t now = l->w->bundle->generation;

    return !l->denied && state != HUB_INSTANCE_DENIED && (now == 0 || i->bundle_generation < now);
}

/* A certificate that was renewed and not used yet does not help. */
static bool needs_old_root(const struct listing *l, const struct hub_instance *i,
                           enum hub_instance_state state, bool of_signer)
{
    return !l->denied && state == HUB_INSTANCE_ACTIVE &&
           i->not_after_wall_ms > l->w->sched->now_wall_ms && (!of_signer || i->has_next);
}

static bool list_instance(void *owner, const struct hub_instance *i)
{
    struct listing *l = owner;
    struct kr_json_out *o = &l->o;
    enum hub_instance_state state = instance_state(l, i);
    bool of_signer =
        l->w->issuer != NULL && hub_issuer_signed(l->w->issuer, kr_buf_bytes(&i->chain));

    bool behind = is_behind(l, i, state);
    bool old = needs_old_root(l, i, state, of_signer);

    l->old_keys += old;
    l->behind += behind;
    kr_json_out_object(o, NULL);
    kr_json_out_text(o, "name", i->name);
    kr_json_out_text(o, "state", instance_state_text(state));
    kr_json_out_int(o, "generation", (int64_t)i->generation);
    put_hex(o, "key", i->spki, sizeof i->spki);
    kr_json_out_text(o, "serial", i->serial);
    kr_json_out_int(o, "notAfterMs", i->not_after_wall_ms);
    kr_json_out_bool(o, "ofSigner", of_signer && !i->has_next);
    kr_json_out_bool(o, "needsOldRoot", old);
    kr_json_out_int(o, "bundleGeneration", (int64_t)i->bundle_generation);
    kr_json_out_bool(o, "behind", behind);
    kr_json_out_end(o);
    return o->rc == 0;
}

static bool list_cluster(void *owner, const struct hub_cluster_record *c)
{
    struct listing *l = owner;
    struct hub_store *s = hub_registry_store(l->w->registry);

    if (c->state == HUB_CLUSTER_REMOVED && !hub_registry_is_buried(l->w->registry, c))
        return true;
    l->denied = c->state == HUB_CLUSTER_DENIED;
    kr_json_out_object(&l->o, NULL);
    kr_json_out_text(&l->o, "name", c->name);
    kr_json_out_text(&l->o, "state", cluster_state(c->state));
    kr_json_out_text(&l->o, "uid", c->uid);
    kr_json_out_bool(&l->o, "external", c->external);
    kr_json_out_int(&l->o, "sinceMs", c->since_wall_ms);
    kr_json_out_array(&l->o, "instances");
    s->ops->instances_each(s, c->name, list_instance, l, NULL);
    kr_json_out_end(&l->o);
    kr_json_out_end(&l->o);
    return l->o.rc == 0;
}

static int list_registry(struct hub_worker *w, struct kr_buf *body, const char **type)
{
    struct hub_store *s = hub_registry_store(w->registry);
    struct listing l = {.w = w};
    struct kr_note why = {""};
    size_t attached = 0;
    size_t behind = hub_registry_behind(w->registry, w->bundle->generation, &attached);
    int rc;

    kr_json_out_init(&l.o, body);
    kr_json_out_object(&l.o, NULL);
    kr_json_out_int(&l.o, "nowMs", w->sched->now_wall_ms);
    kr_json_out_int(&l.o, "bundleGeneration", (int64_t)w->bundle->generation);
    kr_json_out_int(&l.o, "tunnels", (int64_t)attached);
    kr_json_out_int(&l.o, "tunnelsBehind", (int64_t)behind);
    kr_json_out_array(&l.o, "clusters");
    rc = s->ops->clusters_each(s, list_cluster, &l, &why);
    kr_json_out_end(&l.o);
    kr_json_out_int(&l.o, "keysOfOldRoots", l.old_keys);
    kr_json_out_int(&l.o, "agentsBehind", l.behind);
    kr_json_out_end(&l.o);
    *type = "application/json";
    return rc == 0 && l.o.rc == 0 ? 200 : 500;
}

static int set_cluster(struct hub_worker *w, const char *name, enum hub_cluster_state state,
                       bool external, struct kr_buf *body)
{
    struct kr_note why = {""};
    int rc = hub_registry_set_cluster(w->registry, name, state, external, &why);

    if (rc != 0)
        return fail(body, rc, &why);
    KR_LOG_AT(w->log, KR_LOG_INFO, "cluster-state", KR_S("cluster", name),
              KR_S("state", cluster_state(state)), KR_T("external", external));
    if (state == HUB_CLUSTER_ACCEPTED)
        hub_expect_cluster(w, name);
    if (state == HUB_CLUSTER_DENIED || state == HUB_CLUSTER_REMOVED)
        hub_forget_denied(w, name); /* with a tunnel: when that is gone (tunnel.c) */
    return say(body, 200, cluster_state(state));
}

static int post_cluster(struct hub_worker *w, const struct words *q, struct kr_buf *body)
{
    char name[64];

    if (!kr_is_dns_label(q->v[1]))
        return say(body, 400, "not the name of a cluster");
    snprintf(name, sizeof name, "%.*s", (int)q->v[1].n, (const char *)q->v[1].p);
    if (is(q, 2, "accept"))
        return set_cluster(w, name, HUB_CLUSTER_ACCEPTED, false, body);
    if (is(q, 2, "external"))
        return set_cluster(w, name, HUB_CLUSTER_ACCEPTED, true, body);
    if (is(q, 2, "deny"))
        return set_cluster(w, name, HUB_CLUSTER_DENIED, false, body);
    if (is(q, 2, "remove"))
        return set_cluster(w, name, HUB_CLUSTER_REMOVED, false, body);
    return say(body, 404, "accept, external, deny or remove");
}

static bool has_denied_key(struct hub_worker *w, const char *cluster, const char *instance)
{
    struct hub_store *s = hub_registry_store(w->registry);
    struct hub_instance i;
    bool denied = s->ops->instance_find(s, cluster, instance, &i, NULL) == 0 &&
                  s->ops->key_denied(s, i.spki, NULL) == 0;

    kr_buf_deinit(&i.chain);
    return denied;
}

static int post_instance(struct hub_worker *w, const struct words *q, struct kr_buf *body)
{
    bool deny = is(q, 4, "deny");
    struct kr_note why = {""};
    char cluster[64];
    char instance[256];
    int rc;

    if ((!deny && !is(q, 4, "unlock")) || q->v[1].n >= sizeof cluster ||
        q->v[3].n >= sizeof instance)
        return say(body, 404, "deny or unlock");
    snprintf(cluster, sizeof cluster, "%.*s", (int)q->v[1].n, (const char *)q->v[1].p);
    snprintf(instance, sizeof instance, "%.*s", (int)q->v[3].n, (const char *)q->v[3].p);
    if (!deny && has_denied_key(w, cluster, instance))
        return say(body, 409, "its key is denied, which --key SHA256 takes back");
    rc = hub_registry_set_instance(w->registry, cluster, instance,
                                   deny ? HUB_INSTANCE_DENIED : HUB_INSTANCE_ACTIVE, &why);
    if (rc != 0)
        return fail(body, rc, &why);
    KR_LOG_AT(w->log, KR_LOG_INFO, "instance-state", KR_S("cluster", cluster),
              KR_S("instance", instance), KR_S("state", deny ? "denied" : "active"));
    return say(body, 200, deny ? "denied" : "active");
}

static int post_key(struct hub_worker *w, const struct words *q, struct kr_buf *body)
{
    bool deny = is(q, 2, "deny");
    uint8_t spki[HUB_SPKI_SIZE];
    struct kr_note why = {""};
    int rc;

    if ((!deny && !is(q, 2, "unlock")) || !read_hex(q->v[1], spki))
        return say(body, 400, "/keys/SHA256/deny or unlock, 64 hexadecimal digits");
    rc = deny ? hub_registry_deny_key(w->registry, spki, &why)
              : hub_registry_allow_key(w->registry, spki, &why);
    if (rc == KR_ENOENT)
        return say(body, 404, "this key is not denied");
    if (rc != 0)
        return fail(body, rc, &why);
    KR_LOG_AT(w->log, KR_LOG_INFO, deny ? "key-denied" : "key-unlocked", KR_B("key", q->v[1]));
    return say(body, 200, deny ? "denied" : "unlocked");
}

/* ---- the audit ---- */

static void copy(char *out, size_t size, struct kr_bytes in)
{
    snprintf(out, size, "%.*s", (int)in.n, (const char *)in.p);
}

/* What was ordered, whatever came of it: /RESOURCE/NAME/VERB, or an instance of a cluster. */
static void audit_order(struct hub_worker *w, const struct words *q, struct kr_bytes path,
                        int status)
{
    bool token = is(q, 0, "tokens");
    bool instance = q->n == 5;
    char name[HUB_TRUST_USER_MAX] = "";
    char order[32] = "";
    char cluster[64] = "";
    struct hub_trust_event e = {
        .verb = token || is(q, 2, "remove") ? "delete" : "update",
        .resource = token              ? "jointokens"
                    : is(q, 0, "keys") ? "keys"
                    : instance         ? "agents"
                                       : "clusters",
        .subresource = token ? NULL : order,
        .name = name,
        .uri = path,
        .cluster = is(q, 0, "registry") ? cluster : NULL,
        .code = status,
    };

    if (w->audit == NULL || q->n < 2)
        return;
    copy(name, sizeof name, q->v[1]);
    copy(cluster, sizeof cluster, q->v[1]);
    if (q->n >= 3)
        copy(order, sizeof order, q->v[q->n - 1]);
    if (instance)
        snprintf(name, sizeof name, "%s:%.*s", cluster, (int)q->v[3].n, (const char *)q->v[3].p);
    hub_trust_audit_order(w, &e);
}

/* What closes something is done in any case. */
static bool opens(const struct words *q)
{
    return is(q, 0, "tokens") || is(q, 2, "accept") || is(q, 2, "external") ||
           is(q, q->n == 3 ? 2 : 4, "unlock");
}

/* ---- */

static int no_registry(struct kr_buf *body)
{
    return say(body, 409, "this hub has no stateDir: it registers nobody");
}

static int show_bundle(struct hub_worker *w, struct kr_buf *body, const char **type)
{
    *type = "application/x-pem-file";
    return kr_buf_append(body, kr_buf_bytes(&w->bundle->pem)) == 0 ? 200 : 500;
}

int hub_registry_page_get(struct hub_worker *w, struct kr_bytes path, struct kr_buf *body,
                          const char **type)
{
    bool tokens = kr_bytes_is(path, "/tokens");
    bool bundle = kr_bytes_is(path, "/bundle");

    if (!tokens && !bundle && !kr_bytes_is(path, "/registry"))
        return 0;
    if (w->registry == NULL)
        return no_registry(body);
    if (bundle)
        return show_bundle(w, body, type);
    return tokens ? list_tokens(w, body, type) : list_registry(w, body, type);
}

int hub_registry_page_post(struct hub_worker *w, struct kr_bytes path, struct kr_buf *body,
                           const char **type)
{
    struct words q = split(path);
    struct kr_note why = {""};
    int status = 404;

    if (!is(&q, 0, "tokens") && !is(&q, 0, "registry") && !is(&q, 0, "keys"))
        return 0;
    if (w->registry == NULL)
        return no_registry(body);
    if (opens(&q) && !hub_trust_audit_ready(w, &why))
        return say(body, 503, why.text);
    if (is(&q, 0, "tokens") && q.n == 4)
        return create_token(w, &q, path, body, type);
    if (is(&q, 0, "registry") && q.n == 3)
        status = post_cluster(w, &q, body);
    else if (is(&q, 0, "registry") && q.n == 5 && is(&q, 2, "instances"))
        status = post_instance(w, &q, body);
    else if (is(&q, 0, "keys") && q.n == 3)
        status = post_key(w, &q, body);
    else
        return say(body, 404, "no such path");
    audit_order(w, &q, path, status);
    return status;
}

int hub_registry_page_delete(struct hub_worker *w, struct kr_bytes path, struct kr_buf *body)
{
    struct words q = split(path);
    char id[HUB_TOKEN_ID + 1];
    struct kr_note why = {""};
    struct hub_store *s;
    int rc;

    if (!is(&q, 0, "tokens"))
        return 0;
    if (w->registry == NULL)
        return no_registry(body);
    if (q.n != 2 || !hub_join_token_is_id(q.v[1]))
        return say(body, 400, "not the id of a token");
    snprintf(id, sizeof id, "%.*s", (int)q.v[1].n, (const char *)q.v[1].p);
    s = hub_registry_store(w->registry);
    rc = s->ops->token_remove(s, id, &why);
    rc = rc != 0 ? fail(body, rc, &why) : say(body, 200, "revoked");
    if (rc == 200)
        KR_LOG_AT(w->log, KR_LOG_INFO, "token-revoked", KR_S("id", id));
    audit_order(w, &q, path, rc);
    return rc;
}
