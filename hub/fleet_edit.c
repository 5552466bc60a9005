/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_edit.h"

#include "base/err.h"
#include "hub/fleet_state.h"
#include "hub/subscriptions.h"
#include "kube/json_diff.h"
#include "kube/proto_body.h"
#include "wire/digest.h"

#define PATHS_MAX 64

_Static_assert(KR_BODY_VERSIONS_MAX <= KR_REBASE_OFFSETS_MAX, "every version has an offset");

static size_t copy_paths(const struct kr_strings *from, struct kr_bytes *to)
{
    size_t n = from->n < PATHS_MAX ? from->n : PATHS_MAX;

    for (size_t i = 0; i < n; i++)
        to[i] = kr_bytes_str(from->v[i]);
    return n;
}

/* What the profile leaves of the object. If it is none that is in force any more the agent finds
 * another object than the one that was served. NULL: not known. */
static struct kr_reach *reach_of(const struct hub_request *r, const struct hub_shelf *shelf)
{
    const struct hub_fleet_config *config = r->w->fleet_config;
    const struct hub_type *type = r->write->type;
    const struct hub_profile *p =
        hub_fleet_profile(config, shelf->cluster, type->group, type->resource);
    struct kr_bytes keep[PATHS_MAX];
    struct kr_bytes drop[PATHS_MAX];
    struct kr_profile_paths paths = {.keep = keep, .drop = drop};

    if (p == NULL)
        p = hub_fleet_default_profile(config);
    paths.metadata_only = p->metadata_only || shelf->metadata_only;
    if (!paths.metadata_only) {
        paths.keep_count = copy_paths(&p->keep, keep);
        paths.drop_count = copy_paths(&p->drop, drop);
    }
    return kr_reach_create(&paths, NULL);
}

static int fill_rebase(struct hub_request *r, const struct hub_object *o, struct kr_bytes slim)
{
    struct hub_write *w = r->write;
    char buf[HUB_UID_BUF];
    struct kr_bytes uid = hub_object_uid(o, buf);

    w->rebase.subscription =
        hub_subscriptions_number(r->w->subscriptions, r->cluster->name, w->type);
    if (w->rebase.subscription == 0)
        return KR_EUNAVAILABLE;
    w->rebase.uid = kr_arena_copy(&r->arena, uid);
    w->rebase.hash = kr_object_hash(uid, slim, kr_bytes_of(NULL, 0));
    return w->rebase.uid.p != NULL ? 0 : KR_ENOMEM;
}

/* The body says what is wanted, but not of the parts that were left out. */
static int make_patch(struct hub_request *r, struct kr_bytes slim, struct kr_buf *out,
                      struct kr_note *why)
{
    struct hub_write *w = r->write;
    struct hub_shelf *shelf = hub_type_find_shelf(w->type, r->cluster_path.name);
    struct kr_reach *reach = shelf != NULL ? reach_of(r, shelf) : NULL;
    struct kr_buf patch = {.max = HUB_EDIT_MAX};
    int rc = kr_json_diff(reach, slim, kr_buf_bytes(out), &patch, w->rebase.offsets, why);

    kr_reach_destroy(reach);
    if (rc == 0) {
        struct kr_buf whole = *out;

        *out = patch;
        patch = whole;
        w->rebase.offset_count = 1;
        w->as_patch = true;
    }
    kr_buf_deinit(&patch);
    return rc;
}

int hub_edit_body(struct hub_request *r, struct hub_object *o, const struct hub_plan *plan,
                  struct kr_bytes body, struct kr_buf *out, struct kr_note *why)
{
    struct hub_write *w = r->write;
    const struct kr_write_body *b = &plan->body;
    struct hub_plain plain;
    int rc = plan->is_proto ? kr_proto_body_edit(b, body, out, w->rebase.offsets)
                            : kr_write_body_edit(b, body, out, w->rebase.offsets);

    if (rc != 0 || b->version_count == 0)
        return rc;
    w->rebase.offset_count = b->version_count;
    rc = hub_fleet_plain(r->w->fleet, o, &plain);
    if (rc == 0)
        rc = fill_rebase(r, o, plain.slim);
    if (rc == 0 && plan->step == HUB_PLAN_PATCH)
        rc = make_patch(r, plain.slim, out, why);
    return rc;
}
