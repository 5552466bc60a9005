/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/expect.h"

#include "base/err.h"
#include "hub/registry.h"
#include "hub/subscriptions.h"

/* Of a cluster in quarantine an operator has not decided yet. */
static bool is_member(const struct hub_cluster_record *c)
{
    return c->state == HUB_CLUSTER_ACCEPTED || c->state == HUB_CLUSTER_QUARANTINED;
}

struct roll {
    struct hub_subscriptions *s;
    int rc;
};

static bool expect(void *owner, const struct hub_cluster_record *c)
{
    struct roll *roll = owner;

    if (is_member(c))
        roll->rc = hub_subscriptions_expect(roll->s, c->name);
    return roll->rc == 0;
}

int hub_expect_registered(struct hub_worker *w, struct kr_note *why)
{
    struct roll roll = {.s = w->subscriptions};
    struct hub_store *s;
    int rc;

    if (w->registry == NULL || w->subscriptions == NULL)
        return 0;
    s = hub_registry_store(w->registry);
    rc = s->ops->clusters_each(s, expect, &roll, why);
    if (rc == 0 && roll.rc != 0)
        rc = kr_note_set(why, roll.rc, "%s", kr_err_text(roll.rc));
    return rc;
}

bool hub_is_expected(const struct hub_worker *w, const char *name)
{
    struct hub_cluster_record c;
    struct hub_store *s;

    if (w->registry == NULL)
        return false;
    s = hub_registry_store(w->registry);
    return s->ops->cluster_find(s, name, &c, NULL) == 0 && is_member(&c);
}

void hub_expect_cluster(struct hub_worker *w, const char *name)
{
    if (w->subscriptions != NULL && hub_is_expected(w, name))
        (void)hub_subscriptions_expect(w->subscriptions, name); /* or once it has dialled */
}
