/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sync_rules.h"

#include "base/err.h"

/* "pods", "deployments.apps", "*.apps", "*" */
static bool matches(struct kr_bytes rule, struct kr_bytes group, struct kr_bytes resource)
{
    size_t dot = kr_bytes_find(rule, '.');
    struct kr_bytes name = {rule.p, dot};
    bool any = kr_bytes_is(name, "*");

    if (dot == rule.n)
        return any || (group.n == 0 && kr_bytes_eq(name, resource));
    return kr_bytes_eq(kr_bytes_skip(rule, dot + 1), group) && (any || kr_bytes_eq(name, resource));
}

static bool any_matches(const struct kr_strings *rules, struct kr_bytes group,
                        struct kr_bytes resource)
{
    for (size_t i = 0; i < rules->n; i++) {
        if (matches(kr_bytes_str(rules->v[i]), group, resource))
            return true;
    }
    return false;
}

bool agent_sync_allows(const struct agent_options *o, struct kr_bytes group,
                       struct kr_bytes resource)
{
    return any_matches(&o->sync_allow, group, resource) &&
           !any_matches(&o->sync_deny, group, resource);
}

static bool is_ours(const struct kr_strings *ours, struct kr_bytes ns)
{
    for (size_t i = 0; i < ours->n; i++) {
        if (kr_bytes_is(ns, ours->v[i]))
            return true;
    }
    return ours->n == 0;
}

int agent_sync_namespaces(const struct agent_options *o, const struct kr_subscription *s,
                          struct kr_arena *arena, struct kr_bytes **out, size_t *n, bool *all)
{
    const struct kr_strings *ours = &o->sync_namespaces;
    bool theirs = s->namespace_count != 0;
    size_t max = theirs ? s->namespace_count : ours->n;

    *n = 0;
    *all = max == 0;
    *out = kr_arena_alloc(arena, max * sizeof **out + 1);
    if (*out == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < max; i++) {
        struct kr_bytes ns = theirs ? s->namespaces[i] : kr_bytes_str(ours->v[i]);

        if (!is_ours(ours, ns))
            continue;
        (*out)[*n] = kr_arena_copy(arena, ns);
        if ((*out)[(*n)++].p == NULL)
            return KR_ENOMEM;
    }
    return 0;
}
