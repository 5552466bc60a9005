/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/subscriptions_parts.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

#define SITES_MAX 1000000
#define TYPES_MAX 10000

static void on_refresh(struct kr_task *task);

struct hub_subscriptions *hub_subscriptions_create(struct hub_worker *w)
{
    struct hub_subscriptions *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->w = w;
    s->config = w->fleet_config;
    s->look_again = true;
    kr_list_init(&s->sites);
    kr_list_init(&s->wanted);
    kr_map_init(&s->by_name, SITES_MAX);
    kr_map_init(&s->by_type, TYPES_MAX);
    kr_task_init(&s->refresh, on_refresh);
    if (hub_sync_desk_init(&s->desk, w) == 0)
        return s;
    hub_subscriptions_destroy(s);
    return NULL;
}

void hub_subscriptions_refresh(struct hub_subscriptions *s)
{
    kr_task_post(s->w->sched, &s->refresh);
}

/* ---- types that are wanted ---- */

struct hub_wanted *hub_subscriptions_wanted(const struct hub_subscriptions *s,
                                            const struct hub_type *type)
{
    const void *key = type;

    return kr_map_get(&s->by_type, kr_bytes_of(&key, sizeof key));
}

static void destroy_wanted(struct hub_wanted *wanted)
{
    struct hub_subscriptions *s = wanted->owner;

    KR_LIST_FOREACH_SAFE(node, &wanted->subs)
    {
        hub_sub_destroy(KR_CONTAINER_OF(node, struct hub_sub, in_wanted), true);
    }
    kr_timer_stop(s->w->sched, &wanted->linger);
    kr_map_erase(&s->by_type, kr_bytes_of(&wanted->key, sizeof wanted->key));
    kr_list_remove(&wanted->link);
    free(wanted);
}

static bool is_read(const struct hub_wanted *wanted)
{
    return !kr_list_empty(&wanted->unready) || !kr_list_empty(&wanted->ready);
}

static void on_linger_end(struct kr_timer *timer)
{
    struct hub_wanted *wanted = KR_CONTAINER_OF(timer, struct hub_wanted, linger);

    wanted->changed = true; /* some of its clusters may be synced always */
    hub_subscriptions_refresh(wanted->owner);
}

static struct hub_wanted *add_wanted(struct hub_subscriptions *s, struct hub_type *type)
{
    struct hub_wanted *wanted = hub_subscriptions_wanted(s, type);

    if (wanted != NULL)
        return wanted;
    wanted = calloc(1, sizeof *wanted);
    if (wanted == NULL)
        return NULL;
    wanted->owner = s;
    wanted->type = type;
    wanted->key = type;
    wanted->changed = true;
    kr_list_init(&wanted->subs);
    kr_list_init(&wanted->unready);
    kr_list_init(&wanted->ready);
    kr_timer_init(&wanted->linger, on_linger_end);
    if (kr_map_put(&s->by_type, kr_bytes_of(&wanted->key, sizeof wanted->key), wanted) != 0) {
        free(wanted);
        return NULL;
    }
    kr_list_append(&s->wanted, &wanted->link);
    return wanted;
}

/* The version in which a resource is synced while nobody reads it. */
static const struct kr_resource_type *find_resource(struct hub_subscriptions *s, const char *name)
{
    struct kr_bytes text = kr_bytes_str(name);
    size_t dot = kr_bytes_find(text, '.');
    struct kr_bytes group = kr_bytes_skip(text, dot < text.n ? dot + 1 : dot);
    const struct kr_resource_type *found = NULL;
    size_t n;
    const struct kr_resource_type *all = hub_catalogs_union(s->w->catalogs, &n);

    for (size_t i = 0; i < n; i++) {
        if (!kr_bytes_eq(all[i].group, group) ||
            !kr_bytes_eq(all[i].resource, kr_bytes_of(text.p, dot)))
            continue;
        if (found == NULL || (all[i].preferred && !found->preferred))
            found = &all[i];
    }
    return found;
}

static void want_always(struct hub_subscriptions *s, const struct hub_profile *p)
{
    for (size_t i = 0; i < p->resources.n; i++) {
        const struct kr_resource_type *t = find_resource(s, p->resources.v[i]);
        struct hub_type *type = NULL;
        struct hub_wanted *wanted = NULL;

        if (t != NULL)
            type = hub_cache_add_type(s->w->cache, t->group, t->version, t->resource);
        if (type != NULL)
            wanted = add_wanted(s, type);
        if (wanted != NULL)
            wanted->always = true;
        else if (t != NULL)
            KR_LOG_AT(s->w->log, KR_LOG_ERROR, "type-not-synced", KR_S("profile", p->name),
                      KR_S("resource", p->resources.v[i]), KR_S("reason", "a limit is reached"));
    }
}

static bool is_named(const struct hub_profile *p, const struct hub_type *t)
{
    for (size_t i = 0; i < p->resources.n; i++) {
        struct kr_bytes text = kr_bytes_str(p->resources.v[i]);
        size_t dot = kr_bytes_find(text, '.');

        if (kr_bytes_eq(kr_bytes_of(text.p, dot), t->resource) &&
            kr_bytes_eq(kr_bytes_skip(text, dot < text.n ? dot + 1 : dot), t->group))
            return true;
    }
    return false;
}

/* No catalog names it any more: perhaps discovery is half broken. What is held of it stays until
 * its agents have said on their calls that it is gone. */
static bool is_kept(struct hub_subscriptions *s, const struct hub_wanted *wanted)
{
    const struct hub_type *t = wanted->type;
    const struct hub_profile *p;

    if (!wanted->was_always || t->objects == 0 ||
        hub_catalogs_find(s->w->catalogs, t->group, t->version, t->resource) != NULL)
        return false;
    for (size_t i = 0; (p = hub_fleet_profile_at(s->config, i)) != NULL; i++) {
        if (p->always && is_named(p, t))
            return true;
    }
    return false;
}

/* What the profiles want in any case, once the catalogs or the profiles are others. */
static void look_up_always(struct hub_subscriptions *s)
{
    uint64_t generation = hub_catalogs_generation(s->w->catalogs);
    const struct hub_profile *p;

    if (!s->look_again && generation == s->catalogs_seen)
        return;
    s->look_again = false;
    s->catalogs_seen = generation;
    KR_LIST_FOREACH(node, &s->wanted)
    {
        struct hub_wanted *wanted = KR_CONTAINER_OF(node, struct hub_wanted, link);

        wanted->was_always = wanted->always;
        wanted->always = false;
    }
    for (size_t i = 0; (p = hub_fleet_profile_at(s->config, i)) != NULL; i++) {
        if (p->always)
            want_always(s, p);
    }
    KR_LIST_FOREACH(node, &s->wanted)
    {
        struct hub_wanted *wanted = KR_CONTAINER_OF(node, struct hub_wanted, link);

        wanted->always = wanted->always || is_kept(s, wanted);
    }
}

/* ---- subscriptions come and go ---- */

static bool lingers(const struct hub_wanted *wanted)
{
    return kr_timer_running(&wanted->linger) != 0;
}

const struct hub_profile *hub_subscriptions_profile(const struct hub_subscriptions *s,
                                                    const struct hub_site *site,
                                                    const struct hub_wanted *wanted)
{
    const struct hub_type *t = wanted->type;
    const struct hub_profile *p = hub_fleet_profile(s->config, site->name, t->group, t->resource);

    if (p == NULL && hub_fleet_on_demand(s->config) &&
        !hub_fleet_must_be_named(t->group, t->resource))
        p = hub_fleet_default_profile(s->config);
    return p;
}

/* Makes, keeps or ends the subscription of one type on one cluster. What the catalog does not name
 * any more is kept until the agent has said on the Sync call that it is gone. */
static void settle(struct hub_subscriptions *s, struct hub_site *site, struct hub_wanted *wanted)
{
    const struct hub_profile *p = hub_subscriptions_profile(s, site, wanted);
    struct hub_sub *sub = hub_site_sub(site, wanted);
    bool needed = p != NULL && (is_read(wanted) || lingers(wanted) || p->always);
    bool served = hub_site_serves(site, wanted->type) || (sub != NULL && sub->shelf->objects != 0);

    if (needed && served) {
        if (sub == NULL)
            sub = hub_sub_create(site, wanted);
        if (sub != NULL)
            hub_sub_start(sub);
    } else if (sub != NULL) {
        hub_sub_destroy(sub, !is_read(wanted));
    }
}

static void settle_wanted(struct hub_subscriptions *s, struct hub_wanted *wanted)
{
    wanted->changed = false;
    KR_LIST_FOREACH_SAFE(node, &s->sites)
    {
        settle(s, KR_CONTAINER_OF(node, struct hub_site, link), wanted);
    }
}

static void settle_site(struct hub_subscriptions *s, struct hub_site *site)
{
    site->changed = false;
    KR_LIST_FOREACH_SAFE(node, &s->wanted)
    {
        settle(s, site, KR_CONTAINER_OF(node, struct hub_wanted, link));
    }
}

/* ---- who must be told ---- */

/* Whether a reader need not wait for this cluster. */
static bool is_settled(const struct hub_site *site, const struct hub_wanted *wanted)
{
    const struct hub_sub *sub = hub_site_sub(site, wanted);

    if (hub_site_conn(site) == NULL)
        return true;
    if (sub == NULL)
        return !hub_site_is_silent(site) || site->overdue;
    return sub->shelf->synced || sub->shelf->problem != KR_SYNC_OK || sub->overdue;
}

/* Somebody has waited in vain: nobody else does, or one agent could hold up every list of all. */
static void give_up(struct hub_subscriptions *s, const struct hub_wanted *wanted)
{
    KR_LIST_FOREACH(node, &s->sites)
    {
        struct hub_site *site = KR_CONTAINER_OF(node, struct hub_site, link);
        struct hub_sub *sub = hub_site_sub(site, wanted);

        if (is_settled(site, wanted))
            continue;
        if (sub != NULL)
            sub->overdue = true;
        else
            site->overdue = true;
    }
}

static bool is_ready(struct hub_subscriptions *s, const struct hub_wanted *wanted)
{
    KR_LIST_FOREACH(node, &s->sites)
    {
        if (!is_settled(KR_CONTAINER_OF(node, struct hub_site, link), wanted))
            return false;
    }
    return true;
}

static void tell(struct hub_wanted *wanted, struct hub_want *want)
{
    kr_timer_stop(wanted->owner->w->sched, &want->deadline);
    kr_list_remove(&want->link);
    kr_list_append(&wanted->ready, &want->link);
    want->on_ready(want); /* may release it, and others */
}

static void tell_ready(struct hub_subscriptions *s, struct hub_wanted *wanted)
{
    if (kr_list_empty(&wanted->unready) || !is_ready(s, wanted))
        return;
    while (!kr_list_empty(&wanted->unready))
        tell(wanted, KR_CONTAINER_OF(wanted->unready.next, struct hub_want, link));
}

static void on_deadline(struct kr_timer *timer)
{
    struct hub_want *want = KR_CONTAINER_OF(timer, struct hub_want, deadline);
    struct hub_wanted *wanted = hub_subscriptions_wanted(want->owner, want->type);

    give_up(want->owner, wanted);
    tell(wanted, want);
}

static void on_refresh(struct kr_task *task)
{
    struct hub_subscriptions *s = KR_CONTAINER_OF(task, struct hub_subscriptions, refresh);

    look_up_always(s);
    KR_LIST_FOREACH(node, &s->wanted)
    {
        struct hub_wanted *wanted = KR_CONTAINER_OF(node, struct hub_wanted, link);

        if (wanted->changed)
            settle_wanted(s, wanted);
    }
    KR_LIST_FOREACH(node, &s->sites)
    {
        struct hub_site *site = KR_CONTAINER_OF(node, struct hub_site, link);

        if (site->changed)
            settle_site(s, site);
    }
    KR_LIST_FOREACH_SAFE(node, &s->wanted)
    {
        struct hub_wanted *wanted = KR_CONTAINER_OF(node, struct hub_wanted, link);

        tell_ready(s, wanted);
        if (!is_read(wanted) && !lingers(wanted) && !wanted->always)
            destroy_wanted(wanted);
    }
}

/* ---- readers ---- */

int hub_subscriptions_want(struct hub_subscriptions *s, struct hub_type *type, struct hub_want *w,
                           int64_t deadline_ms)
{
    struct hub_wanted *wanted;

    if (!hub_fleet_may_sync(s->config, type->group, type->resource))
        return KR_EDENIED;
    wanted = add_wanted(s, type);
    if (wanted == NULL)
        return KR_ENOMEM;
    w->type = type;
    w->owner = s;
    kr_timer_init(&w->deadline, on_deadline);
    if (kr_timer_start(s->w->sched, &w->deadline, deadline_ms) != 0)
        return KR_ENOMEM;
    wanted->changed = wanted->changed || !is_read(wanted);
    kr_timer_stop(s->w->sched, &wanted->linger);
    w->link = (struct kr_list){NULL, NULL};
    kr_list_append(&wanted->unready, &w->link);
    hub_subscriptions_refresh(s);
    return 0;
}

void hub_subscriptions_release(struct hub_want *w)
{
    struct hub_wanted *wanted = hub_subscriptions_wanted(w->owner, w->type);
    struct hub_worker *worker = w->owner->w;

    kr_timer_stop(worker->sched, &w->deadline);
    kr_list_remove(&w->link);
    if (is_read(wanted))
        return;
    kr_timer_start(worker->sched, &wanted->linger, worker->options->unsubscribe_after_ms);
}

/* ---- from outside ---- */

void hub_subscriptions_tunnel_up(struct hub_subscriptions *s, struct hub_cluster *c)
{
    struct hub_site *site = hub_site_add(s, c->name);

    if (site != NULL)
        hub_site_tunnel_up(site);
}

/* Its calls have ended by themselves, with their exchanges; nobody need wait for the cluster. */
void hub_subscriptions_tunnel_down(struct hub_subscriptions *s, struct hub_cluster *c,
                                   struct kr_conn *conn)
{
    (void)c;
    (void)conn;
    hub_subscriptions_refresh(s);
}

void hub_subscriptions_reload(struct hub_subscriptions *s, const struct hub_fleet_config *config)
{
    s->config = config;
    s->look_again = true;
    KR_LIST_FOREACH(node, &s->wanted)
    {
        KR_CONTAINER_OF(node, struct hub_wanted, link)->changed = true;
    }
    KR_LIST_FOREACH(node, &s->sites)
    {
        struct hub_site *site = KR_CONTAINER_OF(node, struct hub_site, link);

        KR_LIST_FOREACH(inner, &site->subs)
        {
            hub_sub_review(KR_CONTAINER_OF(inner, struct hub_sub, in_site));
        }
    }
    hub_subscriptions_refresh(s);
}

static void remove_site(struct hub_site *site, bool quiet)
{
    KR_LIST_FOREACH_SAFE(node, &site->subs)
    {
        hub_sub_destroy(KR_CONTAINER_OF(node, struct hub_sub, in_site), quiet);
    }
    hub_site_destroy(site);
}

int hub_subscriptions_expect(struct hub_subscriptions *s, const char *cluster)
{
    return hub_site_add(s, cluster) != NULL ? 0 : KR_ENOMEM;
}

bool hub_subscriptions_remove_cluster(struct hub_subscriptions *s, const char *cluster)
{
    struct hub_site *site = hub_site_find(s, cluster);

    hub_catalogs_remove(s->w->catalogs, cluster);
    if (site != NULL)
        remove_site(site, false);
    hub_subscriptions_refresh(s);
    return site != NULL;
}

void hub_subscriptions_destroy(struct hub_subscriptions *s)
{
    if (s == NULL)
        return;
    KR_LIST_FOREACH_SAFE(node, &s->sites)
    {
        remove_site(KR_CONTAINER_OF(node, struct hub_site, link), true);
    }
    KR_LIST_FOREACH_SAFE(node, &s->wanted)
    {
        destroy_wanted(KR_CONTAINER_OF(node, struct hub_wanted, link));
    }
    kr_task_cancel(&s->refresh);
    hub_sync_desk_deinit(&s->desk);
    kr_map_deinit(&s->by_name);
    kr_map_deinit(&s->by_type);
    free(s);
}

/* ---- questions ---- */

/* NULL: no Sync of the type is open there. */
static const struct hub_sub *open_sub(const struct hub_subscriptions *s, const char *cluster,
                                      const struct hub_type *type)
{
    const struct hub_site *site = hub_site_find(s, cluster);
    const struct hub_wanted *wanted = hub_subscriptions_wanted(s, type);
    const struct hub_sub *sub = site != NULL && wanted != NULL ? hub_site_sub(site, wanted) : NULL;

    return sub != NULL && sub->sync != NULL ? sub : NULL;
}

uint64_t hub_subscriptions_number(struct hub_subscriptions *s, const char *cluster,
                                  const struct hub_type *type)
{
    const struct hub_sub *sub = open_sub(s, cluster, type);

    return sub != NULL ? sub->number : 0;
}

const struct kr_conn *hub_subscriptions_conn(struct hub_subscriptions *s, const char *cluster,
                                             const struct hub_type *type)
{
    const struct hub_sub *sub = open_sub(s, cluster, type);

    return sub != NULL ? sub->conn : NULL;
}

bool hub_subscriptions_view(struct hub_subscriptions *s, const char *cluster, size_t i,
                            struct hub_subscription_view *out)
{
    const struct hub_site *site = hub_site_find(s, cluster);

    if (site == NULL)
        return false;
    KR_LIST_FOREACH(node, &site->subs)
    {
        const struct hub_sub *sub = KR_CONTAINER_OF(node, struct hub_sub, in_site);

        if (i-- == 0) {
            *out = (struct hub_subscription_view){sub->shelf, &sub->stats, sub->sync != NULL};
            return true;
        }
    }
    return false;
}
