/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_config_parts.h"

#include <stdlib.h>

#include "base/assert.h"

struct hub_reader_sight {
    struct hub_sight ops;            /* first: what a walk is given points here */
    struct hub_fleet_config *config; /* counted */
    size_t n;
    const struct hub_reader_rule *rules[]; /* those that speak of this reader and resource */
};

static bool is_reader(const struct hub_reader_rule *r, const struct hub_reader *who)
{
    if (who->watches ? r->no_watch : r->no_list)
        return false;
    if (kr_names_have(&r->users, who->user))
        return true;
    for (size_t i = 0; i < who->group_count; i++) {
        if (kr_names_have(&r->groups, who->groups[i]))
            return true;
    }
    return false;
}

/* Secrets are shown to whom they are named to only; a "*" that was written in a hurry is not
 * enough. */
static bool may_read(const struct hub_reader_rule *r, struct kr_bytes group,
                     struct kr_bytes resource)
{
    bool secrets = group.n == 0 && kr_bytes_is(resource, "secrets");

    return hub_names_have_resource(&r->resources, group, resource, !secrets);
}

static int sees_cluster(const void *sight, const struct hub_shelf *shelf)
{
    const struct hub_reader_sight *s = sight;
    int answer = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (!hub_selection_has(s->config, &s->rules[i]->clusters, shelf->cluster))
            continue;
        if (s->rules[i]->namespaces.all)
            return 1;
        answer = 2;
    }
    return answer;
}

static bool sees_namespace(const void *sight, const struct hub_shelf *shelf, struct kr_bytes ns)
{
    const struct hub_reader_sight *s = sight;

    for (size_t i = 0; i < s->n; i++) {
        if (kr_names_have(&s->rules[i]->namespaces, ns) &&
            hub_selection_has(s->config, &s->rules[i]->clusters, shelf->cluster))
            return true;
    }
    return false;
}

struct hub_reader_sight *hub_fleet_sight(const struct hub_fleet_config *f,
                                         const struct hub_reader *who, struct kr_bytes group,
                                         struct kr_bytes resource, bool *nothing)
{
    struct hub_fleet_config *config = (struct hub_fleet_config *)f;
    struct hub_reader_sight *s;
    size_t n = 0;

    for (size_t i = 0; i < f->reader_count; i++)
        n += is_reader(&f->readers[i], who) && may_read(&f->readers[i], group, resource);
    *nothing = n == 0;
    if (n == 0)
        return NULL;
    s = calloc(1, sizeof *s + n * sizeof s->rules[0]);
    if (s == NULL)
        return NULL;
    s->ops = (struct hub_sight){sees_cluster, sees_namespace};
    s->config = config;
    config->refs++;
    for (size_t i = 0; i < f->reader_count; i++) {
        if (is_reader(&f->readers[i], who) && may_read(&f->readers[i], group, resource))
            s->rules[s->n++] = &f->readers[i];
    }
    KR_ASSERT(s->n == n);
    return s;
}

bool hub_reader_sight_shows(const struct hub_reader_sight *s, struct kr_bytes ns)
{
    for (size_t i = 0; i < s->n; i++) {
        if (kr_names_have(&s->rules[i]->namespaces, ns))
            return true;
    }
    return false;
}

const struct hub_sight *hub_reader_sight_ops(const struct hub_reader_sight *s)
{
    return &s->ops;
}

void hub_reader_sight_destroy(struct hub_reader_sight *s)
{
    if (s == NULL)
        return;
    hub_fleet_config_destroy(s->config);
    free(s);
}

bool hub_fleet_rights(const struct hub_fleet_config *f, const struct hub_reader *who, size_t i,
                      struct kr_bytes ns, struct hub_reader_rights *out)
{
    struct hub_reader lists = *who;
    struct hub_reader watches = *who;
    const struct hub_reader_rule *r;

    *out = (struct hub_reader_rights){.list = false};
    if (i >= f->reader_count)
        return false;
    r = &f->readers[i];
    lists.watches = false;
    watches.watches = true;
    out->all = r->resources.all;
    out->resources = &r->resources.in;
    if (ns.n != 0 && !kr_names_have(&r->namespaces, ns))
        return true;
    out->list = is_reader(r, &lists);
    out->watch = is_reader(r, &watches);
    return true;
}

bool hub_fleet_may_see_cluster(const struct hub_fleet_config *f, const struct hub_reader *who,
                               const char *cluster)
{
    for (size_t i = 0; i < f->reader_count; i++) {
        if (is_reader(&f->readers[i], who) &&
            hub_selection_has(f, &f->readers[i].clusters, cluster))
            return true;
    }
    return false;
}
