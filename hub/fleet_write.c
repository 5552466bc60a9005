/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_write.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/fleet_edit.h"
#include "hub/subscriptions.h"
#include "hub/worker.h"
#include "kube/injected.h"

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

    return shelf != NULL ? hub_shelf_get(shelf, namespace_of(&r->info), r->info.name) : NULL;
}

static bool is_write(const struct hub_request *r)
{
    const struct kr_request_info *ri = &r->info;

    return ri->is_resource && ri->name.n != 0 && r->upgrade.n == 0 && !ri->connects &&
           !r->fw.in->in_ended &&
           (kr_bytes_is(ri->verb, "update") || kr_bytes_is(ri->verb, "patch") ||
            kr_bytes_is(ri->verb, "delete"));
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
    if (type == NULL || find_object(r, type) == NULL)
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

/* ---- what the body is ---- */

static struct kr_bytes media_type(const struct hub_request *r)
{
    struct kr_bytes type = kr_head_get(&r->fw.in->head, KR_LIT("content-type"));

    type.n = kr_bytes_find(type, ';');
    while (type.n != 0 && type.p[type.n - 1] == ' ')
        type.n--;
    return type;
}

/* False: nothing that is read here. */
static bool body_kind(const struct hub_request *r, enum kr_body_kind *kind)
{
    struct kr_bytes type = media_type(r);

    *kind = KR_BODY_OBJECT;
    if (kr_bytes_is(r->info.verb, "patch")) {
        if (kr_bytes_eq_fold(type, KR_LIT(JSON_PATCH)))
            *kind = KR_BODY_JSON_PATCH;
        return *kind == KR_BODY_JSON_PATCH ||
               kr_bytes_eq_fold(type, KR_LIT("application/merge-patch+json")) ||
               kr_bytes_eq_fold(type, KR_LIT("application/strategic-merge-patch+json")) ||
               kr_bytes_eq_fold(type, KR_LIT("application/apply-patch+yaml"));
    }
    if (kr_bytes_is(r->info.verb, "delete"))
        *kind = KR_BODY_DELETE_OPTIONS;
    return type.n == 0 || kr_bytes_eq_fold(type, KR_LIT("application/json"));
}

static bool occurs(struct kr_bytes what, struct kr_bytes in)
{
    return in.n >= what.n && memmem(in.p, in.n, what.p, what.n) != NULL;
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

/* Whether the version that is in the body is one that this hub gave out for this object before. */
static bool is_old(const struct hub_request *r, const struct kr_write_body *b,
                   const struct hub_object *o)
{
    uint64_t revision;

    return b->foreign.n != 0 && !kr_bytes_eq(b->foreign, hub_object_version(o)) &&
           kr_bytes_to_u64(b->foreign, UINT64_MAX, &revision) &&
           hub_revision_is_ours(r->w->revision, revision);
}

static void map_body(struct hub_request *r, struct hub_object *o, enum kr_body_kind kind,
                     const struct kr_write_body *b, struct kr_bytes body)
{
    bool is_put = kind == KR_BODY_OBJECT && kr_bytes_is(r->info.verb, "update");
    struct kr_buf edited = {.max = HUB_EDIT_MAX};
    struct kr_note why = {""};
    int rc;

    if (b->version_count == 0 && is_old(r, b, o)) {
        refuse_conflict(r);
        return;
    }
    if (b->version_count == 0 && is_put && b->slimmed) {
        hub_request_refuse(r, KR_CASE_LOSSY_WRITE,
                           KR_LIT("it carries no resourceVersion of the fleet view, so that it is "
                                  "not known what was changed"));
        return;
    }
    if (b->version_count == 0 && !b->injected) {
        go_on(r, body);
        return;
    }
    rc = hub_edit_body(r, o, is_put, b, body, &edited, &why);
    if (rc == 0)
        go_on_edited(r, kr_buf_bytes(&edited));
    else
        refuse_edit(r, rc, &why);
    kr_buf_deinit(&edited);
}

static void read_body(struct hub_request *r, struct hub_object *o, struct kr_bytes revision,
                      struct kr_bytes body)
{
    bool has_version = occurs(revision, body);
    bool has_key = occurs(KR_LIT("kuberelay.io"), body);
    struct kr_note why = {""};
    struct kr_write_body b;
    enum kr_body_kind kind;
    bool readable = body_kind(r, &kind);

    if (!has_version && !has_key) {
        go_on(r, body);
        return;
    }
    if (readable && kr_scan_check(body, KR_SCAN_DEPTH_MAX, NULL) != 0) {
        /* An apply patch may be YAML; anything else the API server refuses itself. */
        readable = !kr_bytes_eq_fold(media_type(r), KR_LIT("application/apply-patch+yaml"));
        if (readable) {
            go_on(r, body);
            return;
        }
    }
    if (!readable && !has_version && !occurs(KR_LIT(KR_NOTE_VERSION), body))
        go_on(r, body);
    else if (!readable)
        hub_request_refuse(r, KR_CASE_UNREADABLE_BODY,
                           KR_LIT("JSON, as a write that was built on the fleet view must be"));
    else if (kr_write_body_read(kind, body, revision, &b, &why) != 0)
        hub_request_refuse(r, KR_CASE_BAD_REQUEST, kr_bytes_str(why.text));
    else
        map_body(r, o, kind, &b, body);
}

void hub_write_gathered(struct hub_request *r)
{
    struct kr_buf body = {.max = (size_t)r->fw.up_max};
    /* Looked for anew: it may be another one by now. */
    struct hub_object *o = (struct hub_object *)find_object(r, r->write->type);
    char revision[24];

    if (kr_forward_take_body(&r->fw, &body) != 0) {
        hub_request_refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(KR_ENOMEM)));
    } else if (o == NULL) {
        go_on(r, kr_buf_bytes(&body));
    } else {
        snprintf(revision, sizeof revision, "%llu", (unsigned long long)o->revision);
        read_body(r, o, kr_bytes_str(revision), kr_buf_bytes(&body));
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
