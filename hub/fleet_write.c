/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_write.h"

#include "base/assert.h"
#include "base/err.h"
#include "hub/fleet_edit.h"
#include "hub/subscriptions.h"
#include "hub/worker.h"

#define JSON_PATCH "application/json-patch+json"

/* ---- which writes are looked at ---- */

/* A Namespace lies in no namespace, though its requests name one. */
static struct kr_bytes namespace_of(const struct kr_request_info *ri)
{
    bool is_namespace = ri->group.n == 0 && kr_bytes_is(ri->resource, "namespaces");

    return is_namespace ? kr_bytes_of(NULL, 0) : ri->ns;
}

/* The object as the fleet view shows it; NULL: it does not. */
static const struct hub_object *find_object(const struct hub_request *r, struct hub_type *type)
{
    struct hub_shelf *shelf = hub_type_find_shelf(type, r->cluster_path.name);

    if (r->info.name.n == 0)
        return NULL;
    return shelf != NULL ? hub_shelf_get(shelf, namespace_of(&r->info), r->info.name) : NULL;
}

/* A create names the object in its body. */
static bool is_create(const struct kr_request_info *ri)
{
    return kr_bytes_is(ri->verb, "create") && ri->name.n == 0 && ri->subresource.n == 0;
}

static bool is_write(const struct hub_request *r)
{
    const struct kr_request_info *ri = &r->info;
    bool of_one = kr_bytes_is(ri->verb, "update") || kr_bytes_is(ri->verb, "patch") ||
                  kr_bytes_is(ri->verb, "delete");

    return ri->is_resource && r->upgrade.n == 0 && !ri->connects && !r->fw.in->in_ended &&
           (is_create(ri) || (of_one && ri->name.n != 0));
}

static struct hub_type *find_type(const struct hub_request *r)
{
    const struct kr_request_info *ri = &r->info;

    return hub_cache_find_type(r->w->cache, ri->group, ri->version, ri->resource);
}

/* An API server takes no compressed bodies; it says so itself. */
static bool is_coded(const struct hub_request *r)
{
    return kr_head_find(&r->fw.in->head, KR_LIT("content-encoding")) != NULL;
}

bool hub_write_begin(struct hub_request *r)
{
    int64_t length = kr_head_content_length(&r->fw.in->head);
    size_t reserved = length >= 0 ? (size_t)length : (size_t)r->fw.up_max;
    struct hub_type *type;

    if (r->w->fleet == NULL || !is_write(r) || is_coded(r))
        return false;
    type = find_type(r);
    if (type == NULL || (kr_bytes_is(r->info.verb, "delete") && find_object(r, type) == NULL))
        return false;
    r->write = kr_arena_alloc(&r->arena, sizeof *r->write);
    if (r->write == NULL || r->w->write_bytes + reserved > HUB_WRITES_MAX) {
        r->write = NULL;
        hub_request_refuse(r, KR_CASE_OVERLOADED, KR_LIT("too many writes at once"));
        return true;
    }
    *r->write = (struct hub_write){.type = type, .reserved = reserved};
    r->w->write_bytes += reserved;
    kr_timer_start(r->w->sched, &r->deadline, r->w->options->request_timeout_ms);
    kr_forward_gather(&r->fw);
    return true;
}

void hub_write_end(struct hub_request *r)
{
    if (r->write != NULL)
        r->w->write_bytes -= r->write->reserved;
}

/* ---- what becomes of it ---- */

static void refuse_conflict(struct hub_request *r)
{
    struct kr_buf detail = {.max = 1024};

    kr_case_object(&r->info, &detail);
    hub_request_refuse(r, KR_CASE_CONFLICT, kr_buf_bytes(&detail));
    kr_buf_deinit(&detail);
}

static void go_on(struct hub_request *r, struct kr_bytes body)
{
    if (kr_forward_put_body(&r->fw, body) != 0)
        hub_request_refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(KR_ENOMEM)));
    else
        hub_relay(r);
}

static void go_on_edited(struct hub_request *r, struct kr_bytes body)
{
    struct hub_write *w = r->write;

    w->edited = true;
    w->body_n = body.n;
    KR_LOG_AT(r->w->log, KR_LOG_INFO, "fleet-write", KR_S("user", hub_caller_name(r->caller)),
              KR_S("cluster", r->cluster_path.text), KR_S("verb", r->verb_label),
              KR_S("as", w->as_patch ? "patch" : r->verb_label),
              KR_U("rebase", w->rebase.subscription), KR_B("path", r->info.path),
              KR_S("id", r->audit_id));
    go_on(r, body);
}

static void refuse_edit(struct hub_request *r, int rc, const struct kr_note *why)
{
    if (rc == KR_EDENIED || rc == KR_ETOOBIG)
        hub_request_refuse(r, KR_CASE_LOSSY_WRITE, kr_bytes_str(why->text));
    else if (rc == KR_EUNAVAILABLE && r->cluster->tunnel_count == 0)
        hub_request_refuse(r, kr_case_away(&r->info), kr_bytes_of(NULL, 0));
    else if (rc == KR_EUNAVAILABLE)
        hub_request_refuse(r, KR_CASE_NOT_IN_STEP, kr_bytes_of(NULL, 0));
    else
        hub_request_refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(rc)));
}

static void edit(struct hub_request *r, struct hub_object *o, const struct hub_plan *plan,
                 struct kr_bytes body)
{
    struct kr_buf edited = {.max = HUB_EDIT_MAX};
    struct kr_note why = {""};
    int rc = hub_edit_body(r, o, plan, body, &edited, &why);

    if (rc == 0)
        go_on_edited(r, kr_buf_bytes(&edited));
    else
        refuse_edit(r, rc, &why);
    kr_buf_deinit(&edited);
}

static void carry_out(struct hub_request *r, struct hub_object *o, const struct hub_plan *plan,
                      struct kr_bytes body)
{
    struct kr_bytes why = kr_bytes_str(plan->why.text);

    switch (plan->step) {
    case HUB_PLAN_PASS:
        go_on(r, body);
        break;
    case HUB_PLAN_EDIT:
    case HUB_PLAN_PATCH:
        edit(r, o, plan, body);
        break;
    case HUB_PLAN_CONFLICT:
        refuse_conflict(r);
        break;
    case HUB_PLAN_LOSSY:
        hub_request_refuse(r, KR_CASE_LOSSY_WRITE, why);
        break;
    case HUB_PLAN_UNREADABLE:
        hub_request_refuse(r, KR_CASE_UNREADABLE_BODY, why);
        break;
    case HUB_PLAN_BAD:
        hub_request_refuse(r, KR_CASE_BAD_REQUEST, why);
        break;
    }
}

void hub_write_gathered(struct hub_request *r)
{
    struct kr_buf body = {.max = (size_t)r->fw.up_max};
    /* Looked for anew: it may be another one by now. */
    struct hub_object *o = (struct hub_object *)find_object(r, r->write->type);
    struct hub_plan plan;

    if (kr_forward_take_body(&r->fw, &body) != 0) {
        hub_request_refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(KR_ENOMEM)));
    } else {
        const struct hub_plan_ask ask = {
            .verb = r->info.verb,
            .subresource = r->info.subresource,
            .content_type = kr_head_get(&r->fw.in->head, KR_LIT("content-type")),
            .body = kr_buf_bytes(&body),
            .revision = o != NULL ? o->revision : 0,
            .origin = o != NULL ? hub_object_version(o) : KR_LIT(""),
            .lossy = o != NULL && o->lossy,
            .given_out = r->w->revision,
        };

        hub_plan_write(&ask, &plan);
        carry_out(r, o, &plan, kr_buf_bytes(&body));
    }
    kr_buf_deinit(&body);
}

/* ---- the new request ---- */

bool hub_write_tunnel(const struct hub_request *r, struct kr_conn **conn)
{
    const struct hub_write *w = r->write;
    struct hub_subscriptions *s = r->w->subscriptions;
    const struct kr_conn *wanted;

    if (w == NULL || w->rebase.subscription == 0)
        return false;
    *conn = NULL;
    if (hub_subscriptions_number(s, r->cluster->name, w->type) != w->rebase.subscription)
        return true;
    wanted = hub_subscriptions_conn(s, r->cluster->name, w->type);
    KR_LIST_FOREACH(node, &r->cluster->tunnels)
    {
        const struct hub_link *l = KR_CONTAINER_OF(node, struct hub_link, link);

        if (l->conn == wanted && !l->draining)
            *conn = l->conn;
    }
    return true;
}

bool hub_write_drops(const struct hub_request *r, struct kr_bytes name)
{
    return r->write != NULL && r->write->edited &&
           (kr_bytes_is(name, "content-length") ||
            (r->write->as_patch && kr_bytes_is(name, "content-type")));
}

int hub_write_add_fields(const struct hub_request *r, struct kr_head *to)
{
    int rc;

    if (r->write == NULL || !r->write->edited)
        return 0;
    rc = kr_head_add_u64(to, "content-length", r->write->body_n);
    if (rc == 0 && r->write->as_patch)
        rc = kr_head_add_str(to, "content-type", JSON_PATCH);
    return rc;
}
