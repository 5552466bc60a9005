/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/verified.h"
#include "base/err.h"
#include "certs/store_file.h"

#define FILE_MAX (1024 * 1024)
#define ARENA_MAX (16u * 1024 * 1024)
#define RULES_MAX 1024

struct raw {
    const char *mode;
    const char *identity;
    const struct kr_yaml_node *rules;
    const struct kr_yaml_node *limits;
    const struct kr_yaml_node *verified;
    struct agent_policy p;
};

static int position(const char *text, const char *const *names, size_t n)
{
    for (size_t i = 0; text != NULL && i < n; i++) {
        if (strcmp(text, names[i]) == 0)
            return (int)i;
    }
    return text == NULL ? 0 : -1;
}

static bool is_closed_name(struct kr_bytes v)
{
    const char *name;

    for (size_t i = 0; (name = agent_policy_closed(i, NULL)) != NULL; i++) {
        if (kr_bytes_is(v, name))
            return true;
    }
    return false;
}

/* system: groups hold the rights of the cluster itself. */
static bool is_group(struct kr_bytes v)
{
    return !kr_bytes_starts(v, KR_LIT("system:"));
}

static bool is_namespace(struct kr_bytes v)
{
    return kr_is_dns_label(v);
}

static bool is_namespace_or_star(struct kr_bytes v)
{
    return kr_bytes_is(v, "*") || kr_is_dns_label(v);
}

#define AT(member) offsetof(struct raw, member)

static const struct kr_yaml_field fields[] = {
    {"mode", KR_YAML_TEXT, AT(mode), NULL},
    {"identity", KR_YAML_TEXT, AT(identity), NULL},
    {"exec", KR_YAML_FLAG, AT(p.exec), NULL},
    {"rules", KR_YAML_NODE, AT(rules), NULL},
    {"open", KR_YAML_NAMES, AT(p.open), is_closed_name},
    {"ownNamespace", KR_YAML_TEXT, AT(p.own_namespace), is_namespace},
    {"groups", KR_YAML_TEXTS, AT(p.groups), is_group},
    {"limits", KR_YAML_NODE, AT(limits), NULL},
    {"verified", KR_YAML_NODE, AT(verified), NULL},
};

#define RULE(member) offsetof(struct agent_policy_rule, member)

static const struct kr_yaml_field rule_fields[] = {
    {"namespaces", KR_YAML_NAMES, RULE(namespaces), is_namespace_or_star},
    {"resources", KR_YAML_NAMES, RULE(resources), NULL},
    {"verbs", KR_YAML_NAMES, RULE(verbs), NULL},
};

#define LIMIT(member) offsetof(struct agent_policy, member)

static const struct kr_yaml_field limit_fields[] = {
    {"requests", KR_YAML_NUMBER, LIMIT(max_requests), NULL},
    {"watches", KR_YAML_NUMBER, LIMIT(max_watches), NULL},
    {"upgrades", KR_YAML_NUMBER, LIMIT(max_upgrades), NULL},
};

#define VERIFIED(member) offsetof(struct agent_verified, member)

static const struct kr_yaml_field verified_fields[] = {
    {"issuer", KR_YAML_TEXT, VERIFIED(issuer), NULL},
    {"audience", KR_YAML_TEXT, VERIFIED(audience), NULL},
    {"jwksFile", KR_YAML_TEXT, VERIFIED(jwks_file), NULL},
    {"usernameClaim", KR_YAML_TEXT, VERIFIED(username_claim), NULL},
    {"groupsClaim", KR_YAML_TEXT, VERIFIED(groups_claim), NULL},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static int read_rule(struct kr_yaml_reader *r, const struct kr_yaml_node *node, size_t i,
                     struct agent_policy_rule *rule)
{
    char what[32];
    int rc;

    snprintf(what, sizeof what, "rules[%zu]", i);
    rc = kr_yaml_map_read(r, what, node, rule_fields, COUNT(rule_fields), rule);
    if (rc == 0 && (rule->resources.in.n == 0 || rule->verbs.in.n == 0))
        rc = kr_yaml_fault(r, node, "%s: resources and verbs are needed", what);
    rule->namespaces.all = rule->namespaces.all || rule->namespaces.in.n == 0;
    return rc;
}

static int read_rules(struct kr_yaml_reader *r, const struct kr_yaml_node *node,
                      struct agent_policy *p)
{
    struct agent_policy_rule *rules;
    size_t n;
    int rc;

    if (node == NULL)
        return 0;
    rc = kr_yaml_list_length(r, "rules", node, &n);
    if (rc == 0 && (n == 0 || n > RULES_MAX))
        rc = kr_yaml_fault(r, node, "rules: 1 to %d rules", RULES_MAX);
    if (rc != 0)
        return rc;
    rules = kr_arena_alloc(r->arena, n * sizeof *rules);
    if (rules == NULL)
        return kr_note_set(r->why, KR_ENOMEM, "out of memory");
    memset(rules, 0, n * sizeof *rules);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_rule(r, kr_yaml_at(r->doc, node, i), i, &rules[i]);
    p->rules = rules;
    p->rule_count = n;
    return rc;
}

static int check_verified(struct kr_yaml_reader *r, const struct kr_yaml_node *node,
                          struct agent_policy *p)
{
    struct agent_verified *v = &p->verified;

    if (p->identity == AGENT_VERIFIED &&
        (v->issuer == NULL || v->audience == NULL || v->jwks_file == NULL))
        return kr_yaml_fault(r, node,
                             "identity verified needs verified.issuer, .audience and "
                             ".jwksFile");
    v->username_claim = v->username_claim != NULL ? v->username_claim : "sub";
    v->groups_claim = v->groups_claim != NULL ? v->groups_claim : "groups";
    return 0;
}

static int read_all(struct kr_yaml_reader *r, struct raw *raw)
{
    static const char *const modes[] = {"read-only", "read-write", "off"};
    static const char *const identities[] = {"hub-asserted", "fixed", "verified"};
    const struct kr_yaml_node *root = kr_yaml_root(r->doc);
    int rc = kr_yaml_map_read(r, "policy", root, fields, COUNT(fields), raw);
    int mode = position(raw->mode, modes, COUNT(modes));
    int identity = position(raw->identity, identities, COUNT(identities));

    if (rc == 0 && mode < 0)
        rc = kr_yaml_fault(r, root, "mode: read-only, read-write or off is expected");
    if (rc == 0 && identity < 0)
        rc = kr_yaml_fault(r, root, "identity: hub-asserted, fixed or verified is expected");
    if (rc == 0)
        rc = read_rules(r, raw->rules, &raw->p);
    if (rc == 0 && raw->limits != NULL)
        rc = kr_yaml_map_read(r, "limits", raw->limits, limit_fields, COUNT(limit_fields), &raw->p);
    if (rc == 0 && raw->verified != NULL)
        rc = kr_yaml_map_read(r, "verified", raw->verified, verified_fields, COUNT(verified_fields),
                              &raw->p.verified);
    if (rc != 0)
        return rc;
    raw->p.mode = (enum agent_policy_mode)mode;
    raw->p.identity = (enum agent_identity_mode)identity;
    return check_verified(r, root, &raw->p);
}

static int parse(struct raw *raw, const char *file, struct kr_bytes text, struct kr_note *why)
{
    struct kr_yaml_reader r = {.arena = &raw->p.arena, .file = file, .why = why};
    struct kr_note cause = {""};
    int rc = kr_yaml_parse(text, &r.doc, &cause);

    if (rc != 0)
        return kr_note_set(why, rc, "%.80s: %.120s", file, cause.text);
    raw->p.text = kr_arena_copy(&raw->p.arena, text);
    /* A file that is cut short while it is written must not widen what a narrow one allowed. */
    if (kr_yaml_root(r.doc) == NULL)
        rc = kr_note_set(why, KR_EINVAL, "%.80s: empty; {} has the defaults", file);
    else
        rc = read_all(&r, raw);
    kr_yaml_destroy(r.doc);
    return rc;
}

static int take_defaults(struct agent_policy *p, const char *own_namespace)
{
    if (p->own_namespace != NULL || own_namespace == NULL)
        return 0;
    p->own_namespace = (const char *)kr_arena_copy(&p->arena, kr_bytes_str(own_namespace)).p;
    return p->own_namespace != NULL ? 0 : KR_ENOMEM;
}

int agent_policy_load(struct agent_policy **out, const char *file, const char *own_namespace,
                      struct kr_note *why)
{
    struct raw raw = {0};
    struct kr_buf text = {0};
    struct agent_policy *p = malloc(sizeof *p);
    int rc = p != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "out of memory");

    kr_arena_init(&raw.p.arena, 4096, ARENA_MAX);
    if (rc == 0 && file != NULL)
        rc = kr_file_read(&text, file, FILE_MAX, why);
    if (rc == 0 && file != NULL)
        rc = parse(&raw, file, kr_buf_bytes(&text), why);
    if (rc == 0)
        rc = take_defaults(&raw.p, own_namespace);
    if (rc == 0 && raw.p.identity == AGENT_VERIFIED)
        rc = agent_verified_load(&raw.p, why);
    kr_buf_deinit(&text);
    if (rc != 0) {
        kr_jwks_destroy(raw.p.keys);
        kr_arena_deinit(&raw.p.arena);
        free(p);
        return rc;
    }
    *p = raw.p;
    *out = p;
    return 0;
}

bool agent_policy_same(const struct agent_policy *a, const struct agent_policy *b)
{
    return kr_bytes_eq(a->text, b->text) && (a->text.p == NULL) == (b->text.p == NULL);
}

void agent_policy_destroy(struct agent_policy *p)
{
    if (p == NULL)
        return;
    kr_jwks_destroy(p->keys);
    kr_arena_deinit(&p->arena);
    free(p);
}
