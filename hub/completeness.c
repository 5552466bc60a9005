/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader must be told: a list that lacks a cluster looks like one in which that cluster has
 * nothing. */
#include "hub/subscriptions_parts.h"

#include <stdio.h>

#include "base/assert.h"

/* Which number of *out the cluster counts in; NULL: it is complete. */
static size_t *judge(const struct hub_site *site, const struct hub_wanted *wanted,
                     struct hub_completeness *out)
{
    const struct hub_sub *sub = hub_site_sub(site, wanted);

    if (hub_site_conn(site) == NULL)
        return hub_site_has_told(site) ? &out->stale : &out->missing;
    if (sub == NULL)
        return hub_site_is_silent(site) ? &out->loading : &out->failing;
    if (sub->shelf->problem != KR_SYNC_OK)
        return &out->failing;
    if (sub->shelf->stale_since_wall_ms != 0)
        return &out->stale;
    return sub->shelf->synced ? NULL : &out->loading;
}

static void add_name(struct hub_completeness *out, const char *name)
{
    size_t at = strlen(out->names);
    size_t room = sizeof out->names - at;

    if (out->named != 0 && strlen(name) + 3 > room)
        return;
    snprintf(out->names + at, room, "%s%s", out->named != 0 ? ", " : "", name);
    out->named++;
}

static void count(const struct hub_site *site, size_t *which, struct hub_completeness *out)
{
    out->clusters++;
    if (which == NULL)
        return;
    ++*which;
    add_name(out, site->name);
}

static bool is_seen(const struct hub_site *site, struct hub_type *type,
                    const struct hub_sight *sight)
{
    struct hub_shelf bare = {.type = type}; /* it may have no shelf yet */

    snprintf(bare.cluster, sizeof bare.cluster, "%s", site->name);
    return sight == NULL || sight->cluster(sight, &bare) != 0;
}

void hub_subscriptions_completeness(struct hub_subscriptions *s, struct hub_type *type,
                                    const struct hub_sight *sight, struct hub_completeness *out)
{
    const struct hub_wanted *wanted = hub_subscriptions_wanted(s, type);

    *out = (struct hub_completeness){.clusters = 0};
    KR_LIST_FOREACH(node, &s->sites)
    {
        const struct hub_site *site = KR_CONTAINER_OF(node, struct hub_site, link);

        if (is_seen(site, type, sight) &&
            (hub_site_serves(site, type) || !hub_site_has_told(site) ||
             hub_type_find_shelf(type, kr_bytes_str(site->name)) != NULL))
            count(site, judge(site, wanted, out), out);
    }
}

void hub_subscriptions_untold(struct hub_subscriptions *s, const struct hub_sight *sight,
                              struct hub_completeness *out)
{
    *out = (struct hub_completeness){.clusters = 0};
    KR_LIST_FOREACH(node, &s->sites)
    {
        const struct hub_site *site = KR_CONTAINER_OF(node, struct hub_site, link);
        size_t *which = hub_site_conn(site) == NULL ? &out->missing
                        : hub_site_is_silent(site)  ? &out->loading
                                                    : &out->failing;

        if (is_seen(site, NULL, sight))
            count(site, hub_site_has_told(site) ? NULL : which, out);
    }
}
