/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rebase.h"

#include <stdlib.h>

#include "agent/local_get.h"
#include "agent/sync_out.h"
#include "base/assert.h"
#include "base/err.h"
#include "kube/injected.h"
#include "kube/proto_body.h"
#include "wire/digest.h"

#define PATH_MAX_BYTES (32u * 1024)
#define SILENCE_MS 30000
#define METADATA "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"

struct agent_rebase {
    struct agent_core *c;
    const struct kr_rebase *rebase;
    const struct kr_request_info *info;
    const struct agent_rebase_ops *ops;
    void *user;
    struct agent_get get;
    struct kr_task start;
    struct kr_buf path;
    struct kr_buf body; /* of the write */
    struct kr_buf live;
    struct kr_head head; /* of the answer, as far as it is passed on */
    bool too_large;
};

/* ---- the path of the object ---- */

static bool is_unreserved(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("-._~:@!$&'()*+,;=", c) != NULL);
}

static int put_segment(struct kr_buf *out, struct kr_bytes name)
{
    int rc = kr_buf_append_str(out, "/");

    for (size_t i = 0; i < name.n && rc == 0; i++)
        rc = kr_buf_printf(out, is_unreserved(name.p[i]) ? "%c" : "%%%02X", name.p[i]);
    return rc;
}

/* Without the subresource that the write may be for. */
static int put_path(struct kr_buf *out, const struct kr_request_info *ri)
{
    bool is_namespace = ri->group.n == 0 && kr_bytes_is(ri->resource, "namespaces");
    int rc = put_segment(out, ri->prefix);

    if (rc == 0 && ri->group.n != 0)
        rc = put_segment(out, ri->group);
    if (rc == 0)
        rc = put_segment(out, ri->version);
    if (rc == 0 && ri->ns.n != 0 && !is_namespace) {
        rc = put_segment(out, KR_LIT("namespaces"));
        if (rc == 0)
            rc = put_segment(out, ri->ns);
    }
    if (rc == 0)
        rc = put_segment(out, ri->resource);
    return rc == 0 ? put_segment(out, ri->name) : rc;
}

/* ---- the end ---- */

static void refuse(struct agent_rebase *rb, enum kr_case which, const char *detail)
{
    rb->ops->on_refused(rb->user, which, kr_bytes_str(detail));
}

static void refuse_conflict(struct agent_rebase *rb)
{
    struct kr_buf detail = {.max = 1024};

    kr_case_object(rb->info, &detail);
    rb->ops->on_refused(rb->user, KR_CASE_CONFLICT, kr_buf_bytes(&detail));
    kr_buf_deinit(&detail);
}

/* ---- what was read ---- */

/* The hash that the hub made of what it has served (hub/fleet_edit.c). */
static int hash_of(struct kr_bytes slim, struct kr_bytes uid, uint64_t *out)
{
    struct kr_object_facts f;
    struct kr_buf cut = {.max = AGENT_REBASE_MAX};
    int rc = kr_object_facts(slim, &f, NULL);

    if (rc == 0 && (kr_has_injected(f.labels) || kr_has_injected(f.annotations))) {
        rc = kr_cut_injected(slim, f.labels, f.annotations, &cut);
        slim = kr_buf_bytes(&cut);
    }
    if (rc == 0)
        *out = kr_object_hash(uid, slim, kr_bytes_of(NULL, 0));
    kr_buf_deinit(&cut);
    return rc;
}

/* 1: it is what was served, and *version is its live version (a part of rb->live). */
static int compare(struct agent_rebase *rb, const struct kr_profile *profile,
                   struct kr_bytes *version)
{
    struct kr_buf slim = {.max = AGENT_REBASE_MAX};
    struct kr_slim seen = {.lossy = false};
    uint64_t hash = 0;
    int rc = kr_scan_check(kr_buf_bytes(&rb->live), KR_SCAN_DEPTH_MAX, NULL);

    if (rc == 0)
        rc = kr_slim(profile, kr_buf_bytes(&rb->live), &slim, &seen, NULL);
    if (rc == 0)
        rc = hash_of(kr_buf_bytes(&slim), seen.uid, &hash);
    kr_buf_deinit(&slim);
    if (rc != 0)
        return rc;
    *version = seen.version;
    return kr_bytes_eq(seen.uid, rb->rebase->uid) && hash == rb->rebase->hash;
}

static void send_on(struct agent_rebase *rb, struct kr_bytes version)
{
    const struct kr_rebase *rebase = rb->rebase;
    struct kr_bytes edited = kr_buf_bytes(&rb->body);
    struct kr_buf body = {.max = AGENT_REBASE_MAX};
    int rc;

    if (kr_proto_body_is(edited))
        rc = rebase->offset_count == 1
                 ? kr_proto_body_fill(edited, rebase->offsets[0], version, &body)
                 : KR_EPROTO;
    else
        rc = kr_write_body_fill(edited, rebase->offsets, rebase->offset_count, version, &body);

    if (rc == 0)
        rb->ops->on_ready(rb->user, kr_buf_bytes(&body));
    else
        refuse(rb, rc == KR_EPROTO ? KR_CASE_BAD_REQUEST : KR_CASE_INTERNAL, kr_err_text(rc));
    kr_buf_deinit(&body);
}

static void judge(struct agent_rebase *rb)
{
    struct agent_sync_view view;
    struct kr_bytes version = {NULL, 0};
    int rc;

    if (!agent_sync_find(rb->c, rb->rebase->subscription, &view)) {
        refuse(rb, KR_CASE_NOT_IN_STEP, "");
        return;
    }
    rc = compare(rb, view.profile, &version);
    if (rc == 1)
        send_on(rb, version);
    else if (rc == 0)
        refuse_conflict(rb);
    else
        refuse(rb, rc == KR_EPROTO ? KR_CASE_API_PROTOCOL : KR_CASE_INTERNAL, kr_err_text(rc));
}

/* ---- reading ---- */

static int add_fields(void *user, struct kr_head *to)
{
    struct agent_rebase *rb = user;

    return rb->ops->add_identity(rb->user, to);
}

static void on_head(void *user, const struct kr_head *head)
{
    static const char *const passed[] = {"content-type", "retry-after", "warning", "audit-id"};
    struct agent_rebase *rb = user;

    rb->head.status = head->status;
    for (size_t i = 0; i < head->n; i++) {
        for (size_t k = 0; k < sizeof passed / sizeof passed[0]; k++) {
            if (kr_bytes_is(head->fields[i].name, passed[k]))
                kr_head_add(&rb->head, head->fields[i].name, head->fields[i].value);
        }
    }
}

static void on_body(void *user, struct kr_bytes in)
{
    struct agent_rebase *rb = user;

    rb->too_large = rb->too_large || kr_buf_append(&rb->live, in) != 0;
    agent_get_consumed(&rb->get, in.n);
}

static void on_done(void *user, int rc, const char *why)
{
    struct agent_rebase *rb = user;

    if (rc == KR_ETLS)
        refuse(rb, KR_CASE_API_TLS, why);
    else if (rc != 0)
        refuse(rb, KR_CASE_API_UNREACHABLE, "");
    else if (rb->too_large)
        refuse(rb, KR_CASE_API_PROTOCOL, "the object is too large");
    else if (rb->head.status == 401)
        refuse(rb, KR_CASE_API_TOKEN, "");
    else if (rb->head.status != 200)
        rb->ops->on_answer(rb->user, &rb->head, kr_buf_bytes(&rb->live));
    else
        judge(rb);
}

static const struct agent_get_ops get_ops = {on_head, on_body, on_done, add_fields};

/* ---- the start ---- */

/* Whether the user may be impersonated at all: local_get would take a failure of add_fields for one
 * of the connection. */
static int check_identity(struct agent_rebase *rb)
{
    struct kr_head head;
    int rc;

    kr_head_init(&head, 2 * KR_HEAD_MAX);
    rc = rb->ops->add_identity(rb->user, &head);
    kr_head_deinit(&head);
    return rc;
}

static void on_start(struct kr_task *t)
{
    struct agent_rebase *rb = KR_CONTAINER_OF(t, struct agent_rebase, start);
    struct agent_get_request rq = {
        .path = kr_buf_bytes(&rb->path),
        .accept = "application/json",
        .silence_ms = SILENCE_MS,
    };
    struct agent_sync_view view;
    int rc = check_identity(rb);

    if (rc == KR_EDENIED) {
        refuse(rb, KR_CASE_AGENT_DENIED, "identities of the system are not impersonated");
        return;
    }
    if (!agent_sync_find(rb->c, rb->rebase->subscription, &view)) {
        refuse(rb, KR_CASE_NOT_IN_STEP, "");
        return;
    }
    if (view.metadata_only) /* as the call itself asks: members may come in another order */
        rq.accept = METADATA;
    if (rc == 0)
        rc = agent_get_start(&rb->get, &rq);
    if (rc != 0)
        refuse(rb, KR_CASE_INTERNAL, kr_err_text(rc));
}

int agent_rebase_start(struct agent_rebase **out, struct agent_core *c,
                       const struct kr_rebase *rebase, const struct kr_request_info *info,
                       struct kr_buf *body, const struct agent_rebase_ops *ops, void *user)
{
    struct agent_rebase *rb = calloc(1, sizeof *rb);
    int rc;

    if (rb == NULL)
        return KR_ENOMEM;
    *rb = (struct agent_rebase){
        .c = c, .rebase = rebase, .info = info, .ops = ops, .user = user, .body = *body};
    *body = (struct kr_buf){.max = body->max};
    kr_buf_init(&rb->path, PATH_MAX_BYTES);
    kr_buf_init(&rb->live, AGENT_REBASE_MAX);
    kr_head_init(&rb->head, KR_HEAD_MAX);
    kr_task_init(&rb->start, on_start);
    agent_get_init(&rb->get, c, &get_ops, rb);
    rc = put_path(&rb->path, info);
    if (rc != 0) {
        agent_rebase_destroy(rb);
        return rc;
    }
    kr_task_post(c->sched, &rb->start);
    *out = rb;
    return 0;
}

void agent_rebase_destroy(struct agent_rebase *rb)
{
    if (rb == NULL)
        return;
    agent_get_deinit(&rb->get);
    kr_task_cancel(&rb->start);
    kr_buf_deinit(&rb->path);
    kr_buf_deinit(&rb->body);
    kr_buf_deinit(&rb->live);
    kr_head_deinit(&rb->head);
    free(rb);
}
