/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_read.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/json.h"
#include "hub/audit.h"
#include "hub/catalogs.h"
#include "hub/fleet_warning.h"

#define CLUSTER_LABEL "kuberelay.io/cluster"
#define MESSAGE_MAX 768
#define TEXT_MAX 4096
#define BOUND_MAX (1u << 20)

/* ---- the exchange while the answer is not begun ---- */

static void on_body(void *user, struct kr_bytes in)
{
    struct hub_read *rd = user;

    kr_exchange_consumed(rd->ex, in.n);
}

static void on_end(void *user, const struct kr_head *trailers)
{
    (void)user, (void)trailers;
}

static size_t available(void *user, bool *end)
{
    (void)user;
    *end = false;
    return 0;
}

static void take(void *user, uint8_t *out, size_t n)
{
    (void)user, (void)out, (void)n;
}

static void on_done(void *user, int rc)
{
    (void)rc; /* the client left before it had an answer */
    hub_read_end(user);
}

static const struct kr_exchange_user waiting_ops = {
    NULL, on_body, on_end, available, take, on_done,
};

/* ---- ends ---- */

/* The read goes; its request stays. */
static struct hub_request *let_go(struct hub_read *rd)
{
    struct hub_request *r = rd->r;

    if (rd->wanting)
        hub_subscriptions_release(&rd->want);
    kr_timer_stop(rd->f->w->sched, &rd->timer);
    hub_reader_sight_destroy(rd->sight.inner);
    kr_list_remove(&rd->link);
    free(rd);
    return r;
}

void hub_read_end(struct hub_read *rd)
{
    hub_request_end(let_go(rd));
}

void hub_read_refuse(struct hub_read *rd, int code, const char *reason, const char *message)
{
    struct kr_exchange *ex = rd->ex;

    hub_fleet_refuse(let_go(rd), ex, code, reason, message);
}

void hub_read_too_large(struct hub_read *rd)
{
    struct kr_exchange *ex = rd->ex;
    struct hub_request *r = rd->r;
    char text[96];
    struct kr_cause cause = {"ResourceVersionTooLarge", KR_LIT("Too large resource version"),
                             (struct kr_bytes){NULL, 0}};
    struct kr_status st = {
        .code = 504,
        .reason = "Timeout",
        .causes = &cause,
        .cause_count = 1,
        .retry_after_s = 1,
    };

    snprintf(text, sizeof text, "Too large resource version: %llu, current: %llu",
             (unsigned long long)rd->options.version,
             (unsigned long long)hub_cache_now(rd->f->w->cache));
    st.message = kr_bytes_str(text);
    let_go(rd);
    hub_fleet_status(r, ex, &st);
}

/* ---- who ---- */

static bool copy(struct hub_request *r, struct kr_bytes in, struct kr_bytes *out)
{
    *out = kr_arena_copy(&r->arena, in);
    return out->p != NULL;
}

int hub_reader_of(struct hub_request *r, struct hub_reader *out)
{
    const struct hub_caller *own = r->caller;
    size_t n = r->as.asked ? r->as.group_count : own->group_count;
    struct kr_bytes *groups = kr_arena_alloc(&r->arena, (n + 1) * sizeof *groups);

    if (groups == NULL || !copy(r, r->as.asked ? r->as.user : own->user, &out->user))
        return KR_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (!copy(r, r->as.asked ? r->as.groups[i] : own->groups[i], &groups[i]))
            return KR_ENOMEM;
    }
    out->watches = r->is_watch;
    out->groups = groups;
    out->group_count = n;
    return 0;
}

static int sight_cluster(const void *sight, const struct hub_shelf *s)
{
    const struct hub_read_sight *own = sight;
    const struct hub_sight *ops;

    if (own->inner == NULL)
        return 0;
    ops = hub_reader_sight_ops(own->inner);
    return ops->cluster(ops, s);
}

static bool sight_ns(const void *sight, const struct hub_shelf *s, struct kr_bytes ns)
{
    const struct hub_read_sight *own = sight;
    const struct hub_sight *ops;

    if (own->inner == NULL)
        return false;
    ops = hub_reader_sight_ops(own->inner);
    return ops->ns(ops, s, ns);
}

/* Of all namespaces those are shown that may be; one that may not be is refused, as an API server
 * does. */
static bool shows_ns(const struct hub_reader_sight *s, struct kr_bytes ns)
{
    return ns.n == 0 || hub_reader_sight_shows(s, ns);
}

static int look(struct hub_read *rd)
{
    bool nothing = false;

    rd->sight.ops = (struct hub_sight){sight_cluster, sight_ns};
    rd->sight.inner = hub_fleet_sight(rd->f->w->fleet_config, &rd->who, rd->r->info.group,
                                      rd->r->info.resource, &nothing);
    if (rd->sight.inner == NULL)
        return nothing ? KR_EDENIED : KR_ENOMEM;
    return shows_ns(rd->sight.inner, rd->r->info.ns) ? 0 : KR_EDENIED;
}

bool hub_read_look_again(struct hub_read *rd)
{
    bool nothing = false;
    struct hub_reader_sight *inner = hub_fleet_sight(rd->f->w->fleet_config, &rd->who,
                                                     rd->type->group, rd->type->resource, &nothing);

    hub_reader_sight_destroy(rd->sight.inner);
    rd->sight.inner = inner;
    return inner != NULL && shows_ns(inner, rd->ns);
}

/* ---- what cannot be answered ---- */

static void forbid(struct hub_read *rd, const char *more)
{
    const struct kr_request_info *info = &rd->r->info;
    char text[MESSAGE_MAX];
    int group_n = (int)info->group.n;
    int resource_n = (int)info->resource.n;

    snprintf(text, sizeof text,
             "%.*s%s%.*s is forbidden: User \"%.*s\" cannot %.*s resource \"%.*s\" in API group "
             "\"%.*s\" %s%.*s%s (fleet view%s)",
             resource_n, (const char *)info->resource.p, group_n != 0 ? "." : "", group_n,
             (const char *)info->group.p, (int)rd->who.user.n, (const char *)rd->who.user.p,
             (int)info->verb.n, (const char *)info->verb.p, resource_n,
             (const char *)info->resource.p, group_n, (const char *)info->group.p,
             info->ns.n != 0 ? "in the namespace \"" : "at the cluster scope", (int)info->ns.n,
             (const char *)info->ns.p, info->ns.n != 0 ? "\"" : "", more);
    hub_read_refuse(rd, 403, "Forbidden", text);
}

static void out_of_memory(struct hub_read *rd)
{
    hub_read_refuse(rd, 500, "InternalError", "Internal error occurred: out of memory");
}

/* ---- which type ---- */

/* Whether every known cluster has told what it serves: only then is a type that nobody has a type
 * that is not there. */
static bool all_have_told(const struct hub_read *rd)
{
    const struct hub_worker *w = rd->f->w;
    struct hub_completeness untold = {0};
    const struct hub_cluster *c;
    size_t pos = 0;
    size_t n = 0;

    while ((c = kr_map_next(&w->clusters.by_name, &pos, NULL)) != NULL) {
        if (!hub_catalogs_has(w->catalogs, c->name))
            return false;
        n++;
    }
    hub_subscriptions_untold(w->subscriptions, &rd->sight.ops, &untold);
    return n != 0 && !hub_fleet_is_incomplete(&untold);
}

static void unknown_type(struct hub_read *rd)
{
    if (all_have_told(rd))
        hub_read_refuse(rd, 404, "NotFound", "the server could not find the requested resource");
    else
        hub_read_refuse(rd, 503, "ServiceUnavailable", HUB_FLEET_UNTOLD);
}

static int write_top(struct hub_read *rd, const struct kr_resource_type *t, struct kr_buf *out,
                     size_t marks[4])
{
    int rc = kr_buf_append_str(out, "\"apiVersion\":\"");

    marks[0] = out->n;
    if (rc == 0 && t->group.n != 0) {
        rc = kr_json_escape(out, rd->r->info.group);
        if (rc == 0)
            rc = kr_buf_append_str(out, "/");
    }
    if (rc == 0)
        rc = kr_json_escape(out, t->version);
    marks[1] = out->n;
    if (rc == 0)
        rc = kr_buf_append_str(out, "\",\"kind\":\"");
    marks[2] = out->n;
    if (rc == 0)
        rc = kr_json_escape(out, t->kind);
    marks[3] = out->n;
    return rc != 0 ? rc : kr_buf_append_str(out, "\",");
}

static int take_kind(struct hub_read *rd, const struct kr_resource_type *t)
{
    struct kr_buf out = {.max = TEXT_MAX};
    size_t marks[4] = {0};
    int rc = write_top(rd, t, &out, marks);

    if (rc == 0 && !copy(rd->r, kr_buf_bytes(&out), &rd->kind.top))
        rc = KR_ENOMEM;
    if (rc == 0) {
        rd->kind.api_version = kr_bytes_of(rd->kind.top.p + marks[0], marks[1] - marks[0]);
        rd->kind.kind = kr_bytes_of(rd->kind.top.p + marks[2], marks[3] - marks[2]);
    }
    kr_buf_deinit(&out);
    return rc;
}

/* False: answered. */
static bool find_type(struct hub_read *rd)
{
    const struct kr_request_info *info = &rd->r->info;
    const struct kr_resource_type *t =
        hub_catalogs_find(rd->f->w->catalogs, info->group, info->version, info->resource);

    if (t == NULL || (info->ns.n != 0 && !t->namespaced)) {
        unknown_type(rd);
        return false;
    }
    rd->type = hub_cache_add_type(rd->f->w->cache, info->group, info->version, info->resource);
    if (rd->type == NULL) {
        hub_read_refuse(rd, 429, "TooManyRequests",
                        "the relay holds as many types as it may, please try again later");
        return false;
    }
    if (take_kind(rd, t) == 0 && copy(rd->r, info->ns, &rd->ns))
        return true;
    out_of_memory(rd);
    return false;
}

/* ---- what is asked of it ---- */

/* ?clusters=a,b is one more requirement. */
static int add_clusters(struct hub_read *rd)
{
    struct kr_arena *arena = &rd->r->arena;
    struct kr_bytes rest = rd->options.clusters;
    size_t n = rd->options.labels.n;
    struct kr_requirement *all = kr_arena_alloc(arena, (n + 1) * sizeof *all);
    struct kr_bytes *values = kr_arena_alloc(arena, (rest.n / 2 + 1) * sizeof *values);
    size_t count = 0;

    if (all == NULL || values == NULL)
        return KR_ENOMEM;
    if (n != 0)
        memcpy(all, rd->options.labels.all, n * sizeof *all);
    while (rest.n != 0) {
        size_t comma = kr_bytes_find(rest, ',');

        values[count++] = kr_bytes_of(rest.p, comma);
        rest = kr_bytes_skip(rest, comma < rest.n ? comma + 1 : comma);
    }
    all[n] = (struct kr_requirement){
        .key = KR_LIT(CLUSTER_LABEL), .op = KR_OP_IN, .values = values, .value_count = count};
    rd->labels = (struct kr_label_selector){all, n + 1};
    return 0;
}

/* Of texts with a zero byte between them: none of them has one that could stand for another's. */
static int bind_token(struct hub_read *rd)
{
    const struct kr_request_info *info = &rd->r->info;
    const struct kr_bytes parts[] = {rd->who.user,
                                     info->group,
                                     info->version,
                                     info->resource,
                                     rd->ns,
                                     rd->options.label_text,
                                     rd->options.field_text,
                                     rd->options.clusters};
    struct kr_buf out = {.max = BOUND_MAX};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof parts / sizeof parts[0]; i++) {
        rc = hub_render_u64(&out, parts[i].n);
        if (rc == 0)
            rc = kr_buf_append_str(&out, ":");
        if (rc == 0)
            rc = kr_buf_append(&out, parts[i]);
    }
    if (rc == 0 && !copy(rd->r, kr_buf_bytes(&out), &rd->bound))
        rc = KR_ENOMEM;
    kr_buf_deinit(&out);
    return rc;
}

/* False: answered. */
static bool read_options(struct hub_read *rd)
{
    struct hub_request *r = rd->r;
    struct kr_note why = {""};
    struct kr_bytes query;
    int rc = KR_ENOMEM;

    if (copy(r, r->info.query, &query))
        rc = kr_list_options_read(query, r->is_watch, &r->arena, &rd->options, &why);
    if (rc == 0)
        rc = kr_field_selector_allowed(&rd->options.fields, r->info.group, r->info.resource, &why);
    if (rc == 0) {
        rd->labels = rd->options.labels;
        rc = rd->options.clusters.n != 0 ? add_clusters(rd) : 0;
    }
    if (rc == 0)
        rc = bind_token(rd);
    if (rc == 0)
        return true;
    if (rc == KR_EINVAL && rd->options.invalid)
        hub_read_refuse(rd, 422, "Invalid", why.text);
    else if (rc == KR_EINVAL)
        hub_read_refuse(rd, 400, "BadRequest", why.text);
    else
        out_of_memory(rd);
    return false;
}

/* False: answered. */
static bool negotiate(struct hub_read *rd)
{
    if (kr_accept_form(kr_head_get(&rd->ex->head, KR_LIT("accept")), &rd->form) == 0)
        return true;
    hub_read_refuse(rd, 406, "NotAcceptable",
                    "only the following media types are accepted: application/json, "
                    "application/json;as=Table;v=v1;g=meta.k8s.io, "
                    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    return false;
}

static void on_ready_unset(struct hub_want *w)
{
    KR_CONTAINER_OF(w, struct hub_read, want)->ready = true;
}

static bool want(struct hub_read *rd)
{
    struct hub_worker *w = rd->f->w;
    int rc;

    rd->want.on_ready = on_ready_unset; /* who serves the read sets its own */
    rc = hub_subscriptions_want(w->subscriptions, rd->type, &rd->want, w->options->fleet_wait_ms);
    rd->wanting = rc == 0;
    if (rc == 0)
        return true;
    if (rc == KR_EDENIED)
        forbid(rd, ": no profile syncs it");
    else
        out_of_memory(rd);
    return false;
}

struct hub_read *hub_read_create(struct hub_fleet *f, struct hub_request *r)
{
    struct hub_read *rd = calloc(1, sizeof *rd);
    int rc;

    if (rd == NULL) {
        hub_request_refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(KR_ENOMEM)));
        return NULL;
    }
    rd->f = f;
    rd->r = r;
    rd->ex = kr_forward_release(&r->fw);
    kr_list_append(&f->reads, &rd->link);
    kr_exchange_attach(rd->ex, &waiting_ops, rd);
    rc = hub_reader_of(r, &rd->who);
    if (rc == 0)
        rc = look(rd);
    if (rc == KR_EDENIED) {
        forbid(rd, "");
        return NULL;
    }
    if (rc != 0) {
        out_of_memory(rd);
        return NULL;
    }
    return find_type(rd) && negotiate(rd) && read_options(rd) && want(rd) ? rd : NULL;
}

/* ---- the head of what streams ---- */

bool hub_read_is_table(const struct hub_read *rd)
{
    return rd->form == KR_FORM_TABLE_V1 || rd->form == KR_FORM_TABLE_V1BETA1;
}

bool hub_read_is_partial(const struct hub_read *rd)
{
    return rd->form == KR_FORM_METADATA_V1 || rd->form == KR_FORM_METADATA_V1BETA1;
}

const char *hub_read_meta_version(const struct hub_read *rd)
{
    return rd->form == KR_FORM_TABLE_V1BETA1 || rd->form == KR_FORM_METADATA_V1BETA1 ? "v1beta1"
                                                                                     : "v1";
}

static int warn_of_missing(struct hub_read *rd, struct kr_head *head)
{
    struct hub_completeness c = {0};

    hub_subscriptions_completeness(rd->f->w->subscriptions, rd->type, &rd->sight.ops, &c);
    return hub_fleet_warn(head, rd->type->resource, &c);
}

int hub_read_send_head(struct hub_read *rd, bool packed)
{
    bool bodiless = kr_bytes_is(rd->ex->head.method, "HEAD");
    struct kr_head head;
    int rc;

    kr_head_init(&head, KR_HEAD_MAX);
    head.status = 200;
    rc = kr_head_add_str(&head, "content-type", "application/json");
    if (rc == 0)
        rc = kr_head_add_str(&head, "cache-control", "no-cache, private");
    if (rc == 0)
        rc = kr_head_add_str(&head, "audit-id", rd->r->audit_id);
    if (rc == 0 && packed)
        rc = kr_head_add_str(&head, "content-encoding", "gzip");
    if (rc == 0 && packed)
        rc = kr_head_add_str(&head, "vary", "Accept-Encoding");
    if (rc == 0)
        rc = warn_of_missing(rd, &head);
    if (rc == 0)
        rc = kr_exchange_send_head(rd->ex, &head, bodiless);
    if (rc == 0) {
        rd->r->code = 200;
        hub_audit_begun(rd->r);
    }
    kr_head_deinit(&head);
    return rc;
}
