/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/access_parts.h"

#include "hub/access.h"
#include "hub/authn.h"
#include "hub/fleet.h"

static void on_access_look(void *owner)
{
    struct hub_worker *w = owner;

    if (w->fleet != NULL)
        hub_fleet_end_expired(w->fleet);
}

static void on_authn_change(void *owner)
{
    hub_access_look_again(owner);
}

int hub_access_parts_create(struct hub_worker *w, struct kr_note *why)
{
    const struct hub_access_owner access = {on_access_look, w};
    const struct hub_authn_owner authn = {on_authn_change, w};
    int rc = hub_access_create(w, &access, &w->access, why);

    return rc == 0 ? hub_authn_create(w, &authn, &w->authn, why) : rc;
}

void hub_access_parts_reload(struct hub_worker *w)
{
    hub_authn_reload(w->authn);
}

void hub_access_parts_destroy(struct hub_worker *w)
{
    hub_authn_destroy(w->authn);
    hub_access_destroy(w->access);
}
