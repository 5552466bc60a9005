/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What would hand out more than it shows: credentials, other ways in, rights, the agent itself. */
static const struct closed {
    const char *name;
    const char *group;
    const char *resource;
    const char *subresource; /* NULL: all of the resource */
    bool writes;             /* only these are closed */
    const char *text;
} closed[] = {
    {"secrets", "", "secrets", NULL, false, "Secrets"},
    {"serviceaccounts/token", "", "serviceaccounts", "token", false, "tokens of service accounts"},
    {"nodes/proxy", "", "nodes", "proxy", false, "the kubelets behind nodes/proxy"},
    {"pods/proxy", "", "pods", "proxy", false, "what listens in pods"},
    {"services/proxy", "", "services", "proxy", false, "what listens behind services"},
    {"certificatesigningrequests/approval", "certificates.k8s.io", "certificatesigningrequests",
     "approval", false, "approving certificates"},
    {"certificatesigningrequests", "certificates.k8s.io", "certificatesigningrequests", NULL, true,
     "asking for certificates"},
    {"tokenreviews", "authentication.k8s.io", "tokenreviews", NULL, false, "judging tokens"},
    {"clusterroles", "rbac.authorization.k8s.io", "clusterroles", NULL, true, "changing rights"},
    {"clusterrolebindings", "rbac.authorization.k8s.io", "clusterrolebindings", NULL, true,
     "changing rights"},
    {"roles", "rbac.authorization.k8s.io", "roles", NULL, true, "changing rights"},
    {"rolebindings", "rbac.authorization.k8s.io", "rolebindings", NULL, true, "changing rights"},
    {"mutatingwebhookconfigurations", "admissionregistration.k8s.io",
     "mutatingwebhookconfigurations", NULL, true, "webhooks that see every object"},
    {"validatingwebhookconfigurations", "admissionregistration.k8s.io",
     "validatingwebhookconfigurations", NULL, true, "webhooks that see every object"},
    {"mutatingadmissionpolicies", "admissionregistration.k8s.io", "mutatingadmissionpolicies", NULL,
     true, "policies that change every object"},
    {"apiservices", "apiregistration.k8s.io", "apiservices", NULL, true,
     "taking over parts of the API"},
    {"customresourcedefinitions", "apiextensions.k8s.io", "customresourcedefinitions", NULL, true,
     "types with webhooks of their own"},
    {"own-namespace", NULL, NULL, NULL, false, "the namespace of the agent"},
};

#define CLOSED_COUNT (sizeof closed / sizeof closed[0])

const char *agent_policy_closed(size_t i, const char **text)
{
    if (i >= CLOSED_COUNT)
        return NULL;
    if (text != NULL)
        *text = closed[i].text;
    return closed[i].name;
}

__attribute__((format(printf, 3, 4))) static void deny(struct agent_verdict *v, const char *rule,
                                                       const char *fmt, ...)
{
    va_list ap;

    v->allowed = false;
    snprintf(v->rule, sizeof v->rule, "%s", rule);
    va_start(ap, fmt);
    vsnprintf(v->text, sizeof v->text, fmt, ap);
    va_end(ap);
}

static void deny_closed(struct agent_verdict *v, const struct closed *c)
{
    char rule[sizeof v->rule];

    snprintf(rule, sizeof rule, "closed:%.38s", c->name);
    deny(v, rule, "%s: closed by default (open: [%s] in the policy file)", c->text, c->name);
}

static bool in_own_namespace(const struct agent_policy *p, const struct kr_request_info *ri)
{
    struct kr_bytes own = kr_bytes_str(p->own_namespace);

    if (own.n == 0)
        return false;
    if (kr_bytes_is(ri->resource, "namespaces") && ri->group.n == 0 && kr_bytes_eq(ri->name, own))
        return !ri->read_only || ri->subresource.n != 0;
    return kr_bytes_eq(ri->ns, own);
}

static bool meets(const struct agent_policy *p, const struct closed *c,
                  const struct kr_request_info *ri)
{
    if (c->resource == NULL)
        return in_own_namespace(p, ri);
    return kr_bytes_is(ri->group, c->group) && kr_bytes_is(ri->resource, c->resource) &&
           (c->subresource == NULL || kr_bytes_is(ri->subresource, c->subresource)) &&
           !(c->writes && ri->read_only);
}

static const struct closed *find_closed(const struct agent_policy *p,
                                        const struct kr_request_info *ri)
{
    for (size_t i = 0; i < CLOSED_COUNT; i++) {
        /* "*" in `open` is refused when the file is read: each thing is opened by its name. */
        if (meets(p, &closed[i], ri) && !kr_names_have(&p->open, kr_bytes_str(closed[i].name)))
            return &closed[i];
    }
    return NULL;
}

/* What runs programs in pods, or reaches into them. */
static bool is_exec(const struct kr_request_info *ri)
{
    static const char *const names[] = {"exec", "attach", "portforward", "ephemeralcontainers"};

    if (!kr_bytes_is(ri->resource, "pods") || ri->group.n != 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kr_bytes_is(ri->subresource, names[i]))
            return !(i == 3 && ri->read_only);
    }
    return false;
}

/* "pods", "pods/log", "deployments.apps", "deployments.apps/scale". */
static struct kr_bytes resource_name(const struct kr_request_info *ri, char *out, size_t size)
{
    int n = snprintf(out, size, "%.*s%s%.*s%s%.*s", (int)ri->resource.n,
                     (const char *)ri->resource.p, ri->group.n != 0 ? "." : "", (int)ri->group.n,
                     (const char *)ri->group.p, ri->subresource.n != 0 ? "/" : "",
                     (int)ri->subresource.n, (const char *)ri->subresource.p);

    return kr_bytes_of(out, n < 0 || (size_t)n >= size ? 0 : (size_t)n);
}

static bool rule_allows(const struct agent_policy_rule *rule, const struct kr_request_info *ri,
                        struct kr_bytes resource)
{
    struct kr_bytes verb = ri->connects ? KR_LIT("connect") : ri->verb;

    if (!ri->is_resource)
        return rule->resources.all && (rule->verbs.all || kr_names_have(&rule->verbs, ri->verb));
    if (ri->ns.n != 0 ? !kr_names_have(&rule->namespaces, ri->ns) : !rule->namespaces.all)
        return false;
    return kr_names_have(&rule->resources, resource) && kr_names_have(&rule->verbs, verb);
}

static void check_rules(const struct agent_policy *p, const struct kr_request_info *ri,
                        struct agent_verdict *v)
{
    char name[512];
    struct kr_bytes resource = resource_name(ri, name, sizeof name);

    for (size_t i = 0; i < p->rule_count; i++) {
        if (resource.n != 0 && rule_allows(&p->rules[i], ri, resource)) {
            snprintf(v->rule, sizeof v->rule, "rules[%zu]", i);
            return;
        }
    }
    deny(v, "rules", "no rule allows it");
}

void agent_policy_check(const struct agent_policy *p, const struct kr_request_info *ri,
                        bool upgrade, struct agent_verdict *out)
{
    const struct closed *c;

    *out = (struct agent_verdict){.allowed = true, .rule = "mode"};
    if (p->mode == AGENT_OFF) {
        deny(out, "mode", "the relay is off here");
        return;
    }
    if (!ri->is_resource && ri->read_only && !upgrade)
        return; /* discovery, versions, health: what a client needs to begin with */
    c = ri->is_resource ? find_closed(p, ri) : NULL;
    if (c != NULL)
        deny_closed(out, c);
    else if (ri->is_resource && is_exec(ri) && !p->exec)
        deny(out, "exec", "exec, attach and port-forward are off (exec: true in the policy file)");
    else if (p->mode == AGENT_READ_ONLY && (!ri->read_only || upgrade || ri->connects))
        deny(out, "mode", "read-only");
    else if (p->rule_count != 0)
        check_rules(p, ri, out);
}

void agent_policy_check_sync(const struct agent_policy *p, struct kr_bytes group,
                             struct kr_bytes resource, struct agent_verdict *out)
{
    struct kr_request_info ri = {
        .class = KR_REQUEST_RESOURCE,
        .is_resource = true,
        .verb = KR_LIT("list"),
        .group = group,
        .resource = resource,
        .read_only = true,
    };

    agent_policy_check(p, &ri, false, out);
    if (out->allowed) {
        ri.verb = KR_LIT("watch");
        agent_policy_check(p, &ri, false, out);
    }
}

struct kr_bytes agent_policy_group(const struct agent_policy *p, struct kr_bytes group,
                                   bool *mapped)
{
    *mapped = false;
    for (size_t i = 0; i < p->groups.n; i++) {
        if (kr_bytes_is(group, p->groups.all[i].key)) {
            *mapped = true;
            return kr_bytes_str(p->groups.all[i].value);
        }
    }
    return group;
}
