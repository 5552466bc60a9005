/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/projects.h"

#include <stdio.h>

#include "base/buf.h"
#include "hub/fleet_config_parts.h"

#define RESOURCE_MAX 512

static bool named(const struct kr_names *names, struct kr_bytes text)
{
    struct kr_names exact = *names;

    exact.all = false;
    return kr_names_have(&exact, text);
}

static bool is_member(const struct hub_project *p, const struct hub_question *q)
{
    if (q->member_token)
        return p->member_tokens;
    if (kr_names_have(&p->users, q->who.user))
        return true;
    for (size_t i = 0; i < q->who.group_count; i++) {
        if (named(&p->groups, q->who.groups[i]))
            return true;
    }
    return false;
}

static bool has_cluster(const struct hub_fleet_config *f, const struct hub_project *p,
                        struct kr_bytes cluster)
{
    char name[64];

    if (cluster.n == 0 || cluster.n >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)cluster.n, (const char *)cluster.p);
    return hub_selection_has(f, &p->clusters, name);
}

/* What hands out credentials. */
static bool must_be_named(const struct kr_request_info *ri)
{
    return ri->group.n == 0 &&
           (kr_bytes_is(ri->resource, "secrets") || (kr_bytes_is(ri->resource, "serviceaccounts") &&
                                                     kr_bytes_is(ri->subresource, "token")));
}

/* "pods", "pods/log", "deployments.apps/scale"; or with every subresource: "pods/" and a star. */
static struct kr_bytes resource_text(const struct kr_request_info *ri, struct kr_bytes sub,
                                     char out[RESOURCE_MAX])
{
    int n =
        snprintf(out, RESOURCE_MAX, "%.*s%s%.*s%s%.*s", (int)ri->resource.n,
                 (const char *)ri->resource.p, ri->group.n != 0 ? "." : "", (int)ri->group.n,
                 (const char *)ri->group.p, sub.n != 0 ? "/" : "", (int)sub.n, (const char *)sub.p);

    return kr_bytes_of(out, n < 0 || n >= RESOURCE_MAX ? 0 : (size_t)n);
}

static bool has_resource(const struct kr_names *names, const struct kr_request_info *ri)
{
    char text[RESOURCE_MAX];

    if (names->all && !must_be_named(ri))
        return true;
    return named(names, resource_text(ri, ri->subresource, text)) ||
           (ri->subresource.n != 0 && named(names, resource_text(ri, KR_LIT("*"), text)));
}

static bool has_verb(const struct kr_names *names, const struct kr_request_info *ri)
{
    if (ri->connects || kr_bytes_is(ri->verb, "proxy"))
        return named(names, KR_LIT("connect"));
    return kr_names_have(names, ri->verb);
}

static bool has_path(const struct kr_strings *paths, struct kr_bytes path)
{
    for (size_t i = 0; i < paths->n; i++) {
        struct kr_bytes at = kr_bytes_str(paths->v[i]);

        if (kr_bytes_eq(at, path) ||
            (at.p[at.n - 1] == '*' && kr_bytes_starts(path, kr_bytes_of(at.p, at.n - 1))))
            return true;
    }
    return false;
}

static enum hub_fit fit_rule(const struct hub_project_rule *rule, const struct kr_request_info *ri)
{
    if (!ri->is_resource) {
        if (!has_path(&rule->paths, ri->path))
            return HUB_FIT_PATH;
        return has_verb(&rule->verbs, ri) ? HUB_FIT_ALLOWED : HUB_FIT_VERB;
    }
    if (!has_resource(&rule->resources, ri))
        return HUB_FIT_RESOURCE;
    if (ri->ns.n != 0 ? !kr_names_have(&rule->namespaces, ri->ns) : !rule->namespaces.all)
        return HUB_FIT_NAMESPACE;
    return has_verb(&rule->verbs, ri) ? HUB_FIT_ALLOWED : HUB_FIT_VERB;
}

static bool is_one_of(struct kr_bytes text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (kr_bytes_is(text, list[i]))
            return true;
    }
    return false;
}

/* What every client needs to begin at all, and Kubernetes gives to everybody known
 * (system:discovery, system:basic-user). */
static const char *basic_right(const struct kr_request_info *ri)
{
    static const char *const paths[] = {"/version", "/version/", "/healthz", "/livez", "/readyz"};
    static const char *const reviews[] = {"selfsubjectaccessreviews", "selfsubjectrulesreviews"};

    if (!ri->is_resource)
        return ri->read_only && (ri->class == KR_REQUEST_DISCOVERY ||
                                 is_one_of(ri->path, paths, sizeof paths / sizeof paths[0]))
                   ? "discovery"
                   : NULL;
    if (!kr_bytes_is(ri->verb, "create") || ri->subresource.n != 0)
        return NULL;
    if ((kr_bytes_is(ri->group, "authorization.k8s.io") && is_one_of(ri->resource, reviews, 2)) ||
        (kr_bytes_is(ri->group, "authentication.k8s.io") &&
         kr_bytes_is(ri->resource, "selfsubjectreviews")))
        return "self-review";
    return NULL;
}

bool hub_projects_any(const struct hub_fleet_config *f)
{
    return f != NULL && f->project_count != 0;
}

static enum hub_fit fit_project(const struct hub_fleet_config *f, const struct hub_project *p,
                                const struct hub_question *q)
{
    if (!is_member(p, q))
        return HUB_FIT_MEMBER;
    return has_cluster(f, p, q->cluster) ? HUB_FIT_ALLOWED : HUB_FIT_CLUSTER;
}

void hub_projects_decide(const struct hub_fleet_config *f, const struct hub_question *q,
                         struct hub_decision *out)
{
    const char *basic = basic_right(q->info);

    *out = (struct hub_decision){.allowed = false};
    for (size_t i = 0; f != NULL && i < f->project_count && !out->allowed; i++) {
        const struct hub_project *p = &f->projects[i];

        if (fit_project(f, p, q) != HUB_FIT_ALLOWED)
            continue;
        out->sees_cluster = true;
        if (basic != NULL) {
            out->allowed = true;
            snprintf(out->rule, sizeof out->rule, "%.63s/%s", p->name, basic);
        }
        for (size_t j = 0; j < p->rule_count && !out->allowed; j++) {
            out->allowed = fit_rule(&p->rules[j], q->info) == HUB_FIT_ALLOWED;
            if (out->allowed)
                snprintf(out->rule, sizeof out->rule, "%.63s/rules[%zu]", p->name, j);
        }
    }
}

bool hub_projects_try(const struct hub_fleet_config *f, const struct hub_question *q, size_t i,
                      char rule[HUB_RULE_MAX], enum hub_fit *fit)
{
    for (size_t k = 0; f != NULL && k < f->project_count; k++) {
        const struct hub_project *p = &f->projects[k];

        if (i >= p->rule_count) {
            i -= p->rule_count;
            continue;
        }
        snprintf(rule, HUB_RULE_MAX, "%.63s/rules[%zu]", p->name, i);
        *fit = fit_project(f, p, q);
        if (*fit == HUB_FIT_ALLOWED)
            *fit = fit_rule(&p->rules[i], q->info);
        return true;
    }
    return false;
}

const char *hub_fit_text(enum hub_fit fit)
{
    static const char *const texts[] = {
        "allows it",
        "is not for this user or these groups",
        "is not for this cluster",
        "is not for this namespace",
        "does not name this resource",
        "does not give this verb",
        "does not name this path",
    };

    return texts[fit];
}

int hub_denial_write(struct kr_bytes user, const struct kr_request_info *ri, struct kr_buf *out)
{
    int rc = 0;

    if (!ri->is_resource)
        return kr_buf_printf(out, "forbidden: User \"%.*s\" cannot %.*s path \"%.*s\"", (int)user.n,
                             (const char *)user.p, (int)ri->verb.n, (const char *)ri->verb.p,
                             (int)ri->path.n, (const char *)ri->path.p);
    rc = kr_buf_printf(out, "%.*s%s%.*s", (int)ri->resource.n, (const char *)ri->resource.p,
                       ri->group.n != 0 ? "." : "", (int)ri->group.n, (const char *)ri->group.p);
    if (rc == 0 && ri->name.n != 0)
        rc = kr_buf_printf(out, " \"%.*s\"", (int)ri->name.n, (const char *)ri->name.p);
    if (rc == 0)
        rc = kr_buf_printf(
            out, " is forbidden: User \"%.*s\" cannot %.*s resource \"%.*s%s%.*s\" in API group ",
            (int)user.n, (const char *)user.p, (int)ri->verb.n, (const char *)ri->verb.p,
            (int)ri->resource.n, (const char *)ri->resource.p, ri->subresource.n != 0 ? "/" : "",
            (int)ri->subresource.n, (const char *)ri->subresource.p);
    if (rc == 0)
        rc = kr_buf_printf(out, "\"%.*s\"", (int)ri->group.n, (const char *)ri->group.p);
    if (rc == 0 && ri->ns.n != 0)
        return kr_buf_printf(out, " in the namespace \"%.*s\"", (int)ri->ns.n,
                             (const char *)ri->ns.p);
    return rc == 0 ? kr_buf_append_str(out, " at the cluster scope") : rc;
}
