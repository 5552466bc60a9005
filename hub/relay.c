/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: hub_relay picks a tunnel, builds the head (an allow-list copied into a new one),
 * opens the stream; on_response filters the agent's head; the bodies flow by themselves;
 * on_finished. Failure modes: no tunnel (wait up to holdTime, then say so); the tunnel breaks
 * before the request left (again, up to three times) or after (kr_case_lost); after the answer
 * began (a watch ends after its last whole event, anything else is cut); the deadline. */
#include "hub/relay.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/access.h"
#include "hub/audit.h"
#include "hub/fleet_review.h"
#include "hub/fleet_write.h"
#include "hub/relay_socket.h"
#include "kube/headers.h"
#include "wire/request_header.h"

#define ATTEMPTS_MAX 3
#define EVENT_HELD_MAX 32768 /* half of a stream's first window */
#define EVENT_REST_MS 50
#define UPGRADE_MS 30000 /* until the API server has accepted an upgrade */
#define BEARER_PROTOCOL "base64url.bearer.authorization.k8s.io."

static struct hub_request *of_forward(struct kr_forward *fw)
{
    return KR_CONTAINER_OF(fw, struct hub_request, fw);
}

/* Logs, proxied traffic and lists without a limit go where they cannot delay a small call. */
static enum hub_lane lane_of(const struct kr_request_info *ri)
{
    bool big_list = kr_bytes_is(ri->verb, "list") && (ri->limit == 0 || ri->limit > 500);
    bool stream = ri->connects || ri->proxied || kr_bytes_is(ri->subresource, "log");

    return ri->is_resource && (big_list || stream) ? HUB_LANE_BULK : HUB_LANE_INTERACTIVE;
}

static unsigned header_flags(const struct hub_request *r)
{
    return (r->info.proxied ? KR_HEADERS_PROXY : 0) | (r->upgrade.n != 0 ? KR_HEADERS_UPGRADE : 0);
}

/* Browsers cannot set Authorization and hide a token among the subprotocols (apiserver
 * authentication/request/websocket/protocol.go). It was for us; the others are passed on. */
static int add_subprotocols(struct kr_head *to, struct kr_bytes name, struct kr_bytes list)
{
    struct kr_buf kept = {.max = KR_FIELD_MAX};
    int rc = 0;

    while (list.n != 0 && rc == 0) {
        size_t at = kr_bytes_find(list, ',');
        struct kr_bytes item = kr_bytes_of(list.p, at);

        list = kr_bytes_skip(list, at < list.n ? at + 1 : at);
        while (item.n != 0 && item.p[0] == ' ')
            item = kr_bytes_skip(item, 1);
        if (kr_bytes_starts(item, KR_LIT(BEARER_PROTOCOL)))
            continue;
        rc = kr_buf_append_str(&kept, kept.n != 0 ? ", " : "");
        if (rc == 0)
            rc = kr_buf_append(&kept, item);
    }
    if (rc == 0 && kept.n != 0)
        rc = kr_head_add(to, name, kr_buf_bytes(&kept));
    kr_buf_deinit(&kept);
    return rc;
}

static int add_field(struct kr_head *to, const struct kr_field *f)
{
    if (kr_bytes_is(f->name, "sec-websocket-protocol"))
        return add_subprotocols(to, f->name, f->value);
    return kr_head_add_ref(to, f->name, f->value);
}

static int add_allowed(struct hub_request *r, struct kr_head *to)
{
    const struct kr_head *from = &r->fw.in->head;
    struct kr_bytes connection = kr_head_get(from, KR_LIT("connection"));
    unsigned flags = header_flags(r);
    int rc = 0;

    for (size_t i = 0; i < from->n && rc == 0; i++) {
        const struct kr_field *f = &from->fields[i];

        if (kr_header_request_rule(f->name, flags) != KR_HEADER_PASS ||
            (connection.n != 0 && kr_header_list_has(connection, f->name)))
            continue;
        /* The length of nothing: an upgrade has no body, and what follows is no content. */
        if (r->upgrade.n != 0 && kr_bytes_is(f->name, "content-length"))
            continue;
        if (hub_write_drops(r, f->name))
            continue;
        rc = add_field(to, f);
    }
    return rc == 0 ? hub_write_add_fields(r, to) : rc;
}

/* The client's own identity. */
static void fill_own(const struct hub_caller *caller, struct kr_relay_request *req)
{
    req->user = caller->user;
    req->groups = caller->groups;
    req->group_count = caller->group_count;
}

static void fill_as(const struct hub_impersonation *as, struct kr_relay_request *req)
{
    req->user = as->user;
    req->groups = as->groups;
    req->group_count = as->group_count;
    req->uid = as->uid;
    req->extra = as->extra;
    req->extra_count = as->extra_count;
}

static int add_identity(struct hub_request *r, struct kr_head *to)
{
    struct kr_relay_request req = {
        .deadline_ms = r->long_running ? 0 : (uint32_t)r->w->options->request_timeout_ms,
        .attempt = (uint32_t)r->attempts,
        .upgrade_token = r->upgrade,
        .method = r->upgrade.n != 0 ? r->fw.in->head.method : (struct kr_bytes){NULL, 0},
    };
    struct kr_buf text = {.max = KR_REQUEST_HEADER_MAX};
    int rc;

    if (r->write != NULL)
        req.rebase = r->write->rebase;
    memcpy(req.request_id, r->id, sizeof req.request_id);
    if (r->as.asked)
        fill_as(&r->as, &req);
    else
        fill_own(r->caller, &req);
    if (r->caller->by == HUB_BY_MEMBER_TOKEN)
        req.member_token = r->caller->token;
    else if (!r->as.asked) /* who acts as another one proves nothing by their own token */
        req.user_token = r->caller->token;
    rc = kr_request_header_write(&req, &text);
    if (rc == 0)
        rc = kr_head_add(to, KR_LIT(KR_REQUEST_HEADER), kr_buf_bytes(&text));
    if (rc == 0)
        to->fields[to->n - 1].no_index = true;
    kr_buf_cleanse(&text);
    return rc;
}

/* :protocol of RFC 8441: registered names are lower-case. The client's own spelling goes in the
 * request header. */
static struct kr_bytes protocol_of(struct kr_bytes token)
{
    if (kr_bytes_eq_fold(token, KR_LIT("websocket")))
        return KR_LIT("websocket");
    return kr_bytes_eq_fold(token, KR_LIT("spdy/3.1")) ? KR_LIT("spdy/3.1") : token;
}

static int build_head(struct hub_request *r, struct kr_head *to)
{
    char forwarded[64];
    const char *colon = strrchr(r->peer->address, ':');
    int rc;

    to->method = r->upgrade.n != 0 ? KR_LIT("CONNECT") : r->fw.in->head.method;
    if (r->write != NULL && r->write->as_patch)
        to->method = KR_LIT("PATCH");
    to->protocol = protocol_of(r->upgrade);
    to->scheme = KR_LIT("https");
    to->authority = KR_LIT("kubernetes");
    to->path = r->info.target;
    rc = add_allowed(r, to);
    snprintf(forwarded, sizeof forwarded, "%.*s",
             (int)(colon != NULL ? colon - r->peer->address : 0), r->peer->address);
    if (rc == 0)
        rc = kr_head_add_str(to, "x-forwarded-for", forwarded);
    if (rc == 0)
        rc = kr_head_add_ref(to, KR_LIT("audit-id"), kr_bytes_str(r->audit_id));
    if (rc == 0)
        to->fields[to->n - 1].no_index = true;
    return rc != 0 ? rc : add_identity(r, to);
}

static void say_away(struct hub_request *r)
{
    char detail[64] = "";
    int64_t away_ms = hub_cluster_away_ms(&r->w->clusters, r->cluster);

    snprintf(detail, sizeof detail, ", last seen %lld s ago", (long long)(away_ms / 1000));
    hub_request_refuse(r, kr_case_away(&r->info), kr_bytes_str(detail));
}

/* A reconnect should not be visible: a request for an agent that was just here waits. A watch does
 * not: its client comes back by itself, and without listing (429). */
static void wait_or_say_away(struct hub_request *r)
{
    int64_t left = r->w->options->hold_ms - hub_cluster_away_ms(&r->w->clusters, r->cluster);

    if (r->is_watch || left <= 0) {
        say_away(r);
        return;
    }
    kr_list_append(&r->cluster->waiting, &r->waiter.link);
    if (!kr_timer_running(&r->hold))
        kr_timer_start(r->w->sched, &r->hold, left);
}

static int open_on(struct hub_request *r, struct kr_conn *conn)
{
    struct kr_head head;
    int rc;

    kr_head_init(&head, KR_HEAD_MAX + KR_REQUEST_HEADER_MAX);
    rc = build_head(r, &head);
    if (rc == 0)
        rc = kr_forward_open(&r->fw, conn, &head);
    kr_head_deinit(&head);
    return rc;
}

void hub_relay(struct hub_request *r)
{
    struct kr_conn *conn = hub_cluster_pick(r->cluster, lane_of(&r->info));
    int64_t deadline = r->upgrade.n != 0 ? UPGRADE_MS : kr_request_deadline_ms(&r->info);
    int rc;

    if (deadline != 0 && !kr_timer_running(&r->deadline))
        kr_timer_start(r->w->sched, &r->deadline,
                       deadline < r->w->options->request_timeout_ms
                           ? deadline
                           : r->w->options->request_timeout_ms);
    if (conn != NULL && hub_write_tunnel(r, &conn) && conn == NULL) {
        hub_request_refuse(r, KR_CASE_NOT_IN_STEP, kr_bytes_of(NULL, 0));
        return;
    }
    if (conn == NULL) {
        wait_or_say_away(r);
        return;
    }
    kr_timer_stop(r->w->sched, &r->hold);
    r->attempts++;
    hub_audit_routed(r, conn);
    rc = open_on(r, conn);
    if (rc == KR_EFULL)
        hub_request_refuse(r, KR_CASE_OVERLOADED, KR_LIT("the tunnel takes no more requests"));
    else if (rc == KR_ETOOBIG)
        hub_request_refuse(r, KR_CASE_HEAD_TOO_LARGE, KR_LIT("60 KiB a field, 256 KiB in all"));
    else if (rc != 0)
        hub_request_refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(rc)));
}

static void on_tunnel(struct hub_waiter *waiter)
{
    hub_relay(KR_CONTAINER_OF(waiter, struct hub_request, waiter));
}

static void on_hold_end(struct kr_timer *t)
{
    struct hub_request *r = KR_CONTAINER_OF(t, struct hub_request, hold);

    kr_list_remove(&r->waiter.link);
    say_away(r);
}

/* Draining: the watch ends here, as a time-out of its own would end it. */
static void end_watch(struct hub_request *r)
{
    struct kr_exchange *out = r->fw.out;

    if (!kr_forward_may_finish_at(&r->fw, kr_watch_lines_whole(&r->lines))) {
        kr_timer_start(r->w->sched, &r->deadline, EVENT_REST_MS); /* half an event went out */
        return;
    }
    if (out != NULL) {
        r->fw.out = NULL;
        kr_exchange_abort(out, KR_ABORT_CANCEL);
    }
    kr_forward_finish_at(&r->fw, kr_watch_lines_whole(&r->lines));
}

void hub_relay_lose(struct hub_request *r, const char *why)
{
    if (r->websocket) {
        hub_socket_end(r, KR_WS_POLICY_VIOLATION, why);
        return;
    }
    if (r->is_watch) {
        end_watch(r);
        return;
    }
    kr_forward_cut(&r->fw);
    hub_request_end(r);
}

void hub_relay_lose_tunnel(struct hub_worker *w, const struct kr_conn *conn, const char *why)
{
    KR_LIST_FOREACH_SAFE(node, &w->live)
    {
        struct hub_request *r = KR_CONTAINER_OF(node, struct hub_request, link);

        if (r->long_running && r->fw.response_begun && r->fw.out != NULL && r->fw.out->conn == conn)
            hub_relay_lose(r, why);
    }
}

/* A long-running answer is to end: while draining, or because it was waited for long enough. */
static void end_stream(struct hub_request *r)
{
    if (!r->websocket)
        end_watch(r);
    else if (r->close_code != 0)
        hub_socket_end_now(r);
    else
        hub_socket_end(r, KR_WS_GOING_AWAY, "the hub is shutting down");
}

/* An answer that is not long-running came to a stop: nothing comes, or its reader takes nothing
 * (over HTTP/2 the session has noticed that before). */
static void check_progress(struct hub_request *r)
{
    uint64_t taken = r->fw.down_bytes - r->fw.down.size;
    bool reader = r->fw.down.size != 0;
    bool bounded = reader ? r->w->options->stall_timeout_ms != 0 : r->fw.out != NULL;

    if (taken == r->seen_bytes && bounded) {
        KR_LOG_AT(r->w->log, KR_LOG_WARN, "answer-cut", KR_S("cluster", r->cluster->name),
                  KR_S("reason", reader ? "its reader stopped" : "no progress"),
                  KR_U("bytes", r->fw.down_bytes), KR_S("id", r->audit_id));
        kr_forward_cut(&r->fw);
        hub_request_end(r);
        return;
    }
    r->seen_bytes = taken;
    kr_timer_start(r->w->sched, &r->deadline, r->w->options->request_timeout_ms);
}

static void on_deadline(struct kr_timer *t)
{
    struct hub_request *r = KR_CONTAINER_OF(t, struct hub_request, deadline);
    char detail[32];

    if (r->fw.response_begun) {
        if (r->long_running)
            end_stream(r);
        else
            check_progress(r);
        return;
    }
    if (r->fw.gathering) {
        hub_request_refuse(r, KR_CASE_BODY_STALLED, kr_bytes_of(NULL, 0));
        return;
    }
    snprintf(detail, sizeof detail, "%llds",
             (long long)((r->w->sched->now_ms - r->started_ms + 500) / 1000));
    hub_request_refuse(r, KR_CASE_DEADLINE, kr_bytes_str(detail));
}

/* ---- the answer ---- */

static int copy_location(struct hub_request *r, struct kr_bytes location, struct kr_head *to)
{
    char prefix[80] = "";
    struct kr_buf out = {.max = KR_FIELD_MAX};
    int rc;

    if (!r->by_name)
        snprintf(prefix, sizeof prefix, "/clusters/%s", r->cluster_path.text);
    rc =
        kr_location_rewrite(location, kr_bytes_str(prefix), (struct kr_bytes){NULL, 0}, &out, NULL);
    if (rc == 0)
        rc = kr_head_add(to, KR_LIT("location"), kr_buf_bytes(&out));
    kr_buf_deinit(&out);
    return rc;
}

/* 3xx only for reads, and only within the cluster (304 is no redirect). */
static bool redirect_refused(const struct hub_request *r, const struct kr_head *from)
{
    bool has_location = kr_head_find(from, KR_LIT("location")) != NULL;

    return from->status >= 300 && from->status < 400 && from->status != 304 &&
           !(r->info.read_only && has_location);
}

static int copy_response(struct hub_request *r, const struct kr_head *from, struct kr_head *to)
{
    unsigned flags = header_flags(r);
    int rc = 0;

    to->status = from->status;
    r->fw.trailers = r->info.proxied; /* API servers have none: they would pass unfiltered */
    if (r->upgrade.n != 0 && from->status == 200) {
        to->status = 101;
        rc = kr_head_add_ref(to, KR_LIT("upgrade"), r->upgrade);
        r->fw.raw = true;
    }
    for (size_t i = 0; i < from->n && rc == 0; i++) {
        const struct kr_field *f = &from->fields[i];
        enum kr_header_rule rule = kr_header_response_rule(f->name, flags);

        if (rule == KR_HEADER_PASS)
            rc = kr_head_add_ref(to, f->name, f->value);
        else if (rule == KR_HEADER_LOCATION)
            rc = copy_location(r, f->value, to);
        if (rc == KR_EDENIED)
            r->verdict = KR_CASE_REDIRECT;
    }
    return rc;
}

static void begin_watch(struct hub_request *r, const struct kr_head *from)
{
    kr_watch_lines_init(&r->lines,
                        kr_watch_framing_of(kr_head_get(from, KR_LIT("content-type")),
                                            kr_head_get(from, KR_LIT("content-encoding"))));
    r->fw.tap = true;
}

static int on_response(struct kr_forward *fw, struct kr_head *to)
{
    struct hub_request *r = of_forward(fw);
    const struct kr_head *from = &fw->out->head;
    int rc;

    kr_timer_stop(r->w->sched, &r->deadline);
    if (from->status < 200 || from->status > 599 || redirect_refused(r, from)) {
        r->verdict =
            from->status >= 300 && from->status < 400 ? KR_CASE_REDIRECT : KR_CASE_BAD_AGENT;
        return KR_EDENIED;
    }
    if (r->upgrade.n != 0 && from->status != 200 && from->status < 400) {
        r->verdict = KR_CASE_UPGRADE_FAILED;
        return KR_EDENIED;
    }
    hub_audit_answered(r, from);
    rc = copy_response(r, from, to);
    if (rc != 0)
        return rc;
    r->code = to->status;
    if (fw->raw && kr_bytes_eq_fold(r->upgrade, KR_LIT("websocket")))
        hub_socket_begin(r);
    /* With a length, an end before it would be an end too early. */
    if (!fw->raw && r->is_watch && from->status == 200 && kr_head_content_length(from) < 0)
        begin_watch(r, from);
    return 0;
}

/* A stream may live for hours: it keeps only what its end needs. */
static void on_begun(struct kr_forward *fw)
{
    struct hub_request *r = of_forward(fw);

    if (!r->long_running) {
        kr_timer_start(r->w->sched, &r->deadline, r->w->options->request_timeout_ms);
        return;
    }
    hub_audit_begun(r);
    hub_access_keep(r);
    r->info = (struct kr_request_info){0};
    r->as = (struct hub_impersonation){0};
    r->upgrade = (struct kr_bytes){NULL, 0};
    kr_arena_deinit(&r->arena);
    kr_exchange_drop_head(fw->in);
}

/* The start of an event waits for its rest, so that a watch whose tunnel breaks can end after a
 * whole one; but not so much that it would hold up the window. */
static void on_response_body(struct kr_forward *fw, struct kr_bytes in)
{
    struct hub_request *r = of_forward(fw);
    struct kr_watch_lines *lines = &r->lines;
    uint64_t part;

    if (r->websocket) {
        hub_socket_feed(r, in);
        return;
    }
    kr_watch_lines_feed(lines, in);
    part = fw->down_bytes - kr_watch_lines_whole(lines);
    fw->held = part <= EVENT_HELD_MAX ? (size_t)part : 0;
}

static void after_begun(struct hub_request *r, int rc)
{
    if (r->fw.raw && rc != KR_ENOMEM) { /* the protocol on top has its own end */
        kr_forward_finish_at(&r->fw, UINT64_MAX);
        return;
    }
    if (r->fw.tap && rc != KR_ENOMEM &&
        kr_forward_may_finish_at(&r->fw, kr_watch_lines_whole(&r->lines))) {
        KR_LOG_AT(r->w->log, KR_LOG_DEBUG, "watch-ended", KR_S("cluster", r->cluster->name),
                  KR_S("reason", kr_err_text(rc)), KR_S("id", r->audit_id));
        kr_forward_finish_at(&r->fw, kr_watch_lines_whole(&r->lines));
        return; /* on_finished follows once the client has it */
    }
    KR_LOG_AT(r->w->log, KR_LOG_WARN, "answer-cut", KR_S("cluster", r->cluster->name),
              KR_S("reason", kr_err_text(rc)), KR_U("bytes", r->fw.down_bytes),
              KR_S("id", r->audit_id));
    kr_forward_cut(&r->fw);
    hub_request_end(r);
}

/* A watch may be asked for again at any time; 429 makes its client do so without listing. */
static void on_lost(struct hub_request *r)
{
    r->lost = true;
    hub_request_refuse(r, r->is_watch ? KR_CASE_AWAY_WATCH : kr_case_lost(&r->info, false),
                       (struct kr_bytes){NULL, 0});
}

static void on_failed(struct kr_forward *fw, int rc)
{
    struct hub_request *r = of_forward(fw);
    bool undelivered = rc == KR_EREFUSED || (rc == KR_ECONNLOST && !fw->out_was_sent);

    if (fw->response_begun)
        after_begun(r, rc);
    else if (rc == KR_ETOOBIG && fw->up_bytes > fw->up_max && fw->up_max != 0)
        hub_request_refuse(r, KR_CASE_BODY_TOO_LARGE, KR_LIT(HUB_BODY_MAX_TEXT));
    else if (r->verdict >= 0)
        hub_request_refuse(r, (enum kr_case)r->verdict,
                           r->verdict == KR_CASE_REDIRECT ? KR_LIT("it leads out of the cluster")
                                                          : KR_LIT("unexpected status"));
    else if (undelivered && !fw->up_taken && r->attempts < ATTEMPTS_MAX)
        hub_relay(r);
    else if (undelivered)
        hub_request_refuse(r, kr_case_away(&r->info), (struct kr_bytes){NULL, 0});
    else if (rc == KR_ECONNLOST || rc == KR_ERESET)
        on_lost(r);
    else
        hub_request_refuse(r, KR_CASE_BAD_AGENT, kr_bytes_str(kr_err_text(rc)));
}

static void on_finished(struct kr_forward *fw, int client_rc)
{
    struct hub_request *r = of_forward(fw);

    KR_LOG_AT(r->w->log, KR_LOG_DEBUG, "request-done", KR_I("code", r->code),
              KR_S("client", client_rc == 0 ? "served" : kr_err_text(client_rc)),
              KR_S("verb", r->verb_label), KR_S("cluster", r->cluster_path.text),
              KR_U("bytes", fw->down_bytes), KR_S("id", r->audit_id));
    hub_request_end(r);
}

static void on_gathered(struct kr_forward *fw)
{
    struct hub_request *r = of_forward(fw);

    if (r->review)
        hub_fleet_review_gathered(r);
    else
        hub_write_gathered(r);
}

static const struct kr_forward_ops forward_ops = {
    on_response, on_response_body, on_failed, on_finished, on_begun, on_gathered,
};

void hub_relay_init(struct hub_request *r)
{
    kr_forward_init(&r->fw, &forward_ops);
    kr_timer_init(&r->deadline, on_deadline);
    kr_timer_init(&r->hold, on_hold_end);
    r->waiter.on_tunnel = on_tunnel;
}
