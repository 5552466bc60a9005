/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_config_parts.h"

#include <stdlib.h>

#include "base/err.h"
#include "certs/store_file.h"

#define ARENA_MAX (64u << 20)
#define DEFAULT_PRIORITY 100

static struct hub_fleet_config *create(void)
{
    struct hub_fleet_config *f = calloc(1, sizeof *f);

    if (f == NULL)
        return NULL;
    f->refs = 1;
    f->on_demand = true;
    f->fallback.name = "default";
    f->fallback.priority = DEFAULT_PRIORITY;
    kr_arena_init(&f->arena, 4096, ARENA_MAX);
    kr_map_init(&f->labels, HUB_FLEET_CLUSTERS_MAX);
    return f;
}

int hub_fleet_config_parse(struct hub_fleet_config **out, const char *name, struct kr_bytes text,
                           struct kr_note *why)
{
    struct hub_fleet_config *f = create();
    int rc;

    *out = NULL;
    if (f == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    rc = hub_fleet_file_parse(f, name, text, why);
    if (rc != 0)
        hub_fleet_config_destroy(f);
    else
        *out = f;
    return rc;
}

int hub_fleet_config_load(struct hub_fleet_config **out, const char *file, struct kr_note *why)
{
    struct kr_buf text = {.max = HUB_FLEET_FILE_MAX};
    int rc = 0;

    *out = NULL;
    if (file != NULL)
        rc = kr_file_read(&text, file, HUB_FLEET_FILE_MAX, why);
    if (rc == 0)
        rc = hub_fleet_config_parse(out, file, kr_buf_bytes(&text), why);
    kr_buf_deinit(&text);
    return rc;
}

void hub_fleet_config_destroy(struct hub_fleet_config *f)
{
    if (f == NULL || --f->refs != 0)
        return;
    kr_map_deinit(&f->labels);
    kr_arena_deinit(&f->arena);
    free(f);
}

/* ---- what the rules are made of ---- */

bool hub_names_have_resource(const struct kr_names *names, struct kr_bytes group,
                             struct kr_bytes resource, bool by_star)
{
    if (names->all && by_star)
        return true;
    for (size_t i = 0; i < names->in.n; i++) {
        struct kr_bytes at = kr_bytes_str(names->in.v[i]);
        size_t dot = kr_bytes_find(at, '.');

        if (kr_bytes_eq(kr_bytes_of(at.p, dot), resource) &&
            kr_bytes_eq(kr_bytes_skip(at, dot < at.n ? dot + 1 : dot), group))
            return true;
    }
    return false;
}

bool hub_selection_has(const struct hub_fleet_config *f, const struct hub_selection *s,
                       const char *cluster)
{
    const struct hub_cluster_labels *l;

    if (!s->given)
        return true;
    if (!s->by_labels)
        return kr_names_have(&s->names, kr_bytes_str(cluster));
    l = kr_map_get(&f->labels, kr_bytes_str(cluster));
    return kr_label_selector_matches(&s->labels, l != NULL ? l->labels : NULL,
                                     l != NULL ? l->n : 0);
}

/* ---- profiles ---- */

bool hub_fleet_must_be_named(struct kr_bytes group, struct kr_bytes resource)
{
    static const struct {
        const char *group;
        const char *resource;
    } named[] = {
        {"", "secrets"},
        {"coordination.k8s.io", "leases"},
        {"", "events"},
        {"events.k8s.io", "events"},
    };

    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (kr_bytes_is(group, named[i].group) && kr_bytes_is(resource, named[i].resource))
            return true;
    }
    return false;
}

const struct hub_profile *hub_fleet_profile(const struct hub_fleet_config *f, const char *cluster,
                                            struct kr_bytes group, struct kr_bytes resource)
{
    bool by_star = !hub_fleet_must_be_named(group, resource);

    for (size_t i = 0; i < f->profile_count; i++) {
        const struct hub_profile_rule *p = &f->profiles[i];

        if (hub_names_have_resource(&p->resources, group, resource, by_star) &&
            hub_selection_has(f, &p->clusters, cluster))
            return &p->profile;
    }
    return NULL;
}

bool hub_fleet_may_sync(const struct hub_fleet_config *f, struct kr_bytes group,
                        struct kr_bytes resource)
{
    bool by_star = !hub_fleet_must_be_named(group, resource);

    for (size_t i = 0; i < f->profile_count; i++) {
        if (hub_names_have_resource(&f->profiles[i].resources, group, resource, by_star))
            return true;
    }
    return by_star && f->on_demand;
}

const struct hub_profile *hub_fleet_default_profile(const struct hub_fleet_config *f)
{
    return &f->fallback;
}

bool hub_fleet_on_demand(const struct hub_fleet_config *f)
{
    return f->on_demand;
}

const struct hub_profile *hub_fleet_profile_at(const struct hub_fleet_config *f, size_t i)
{
    return i < f->profile_count ? &f->profiles[i].profile : NULL;
}
