/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a request up to the relay, one step a rule. A step that refuses has answered. */
#include "base/err.h"
#include "hub/access.h"
#include "hub/audit.h"
#include "hub/authn.h"
#include "hub/expect.h"
#include "hub/fleet.h"
#include "hub/fleet_write.h"
#include "hub/request.h"
#include "kube/headers.h"

#define BODY_MAX                                                                                   \
    ((3u << 20) + (64u << 10)) /* a little above kube-apiserver's: its own 413 wins                \
                                */

#define DENIAL_MAX 8192

enum step_result {
    STEP_NEXT,
    STEP_END, /* answered; the request is gone */
};

static enum step_result refuse(struct hub_request *r, enum kr_case which, struct kr_bytes detail)
{
    hub_request_refuse(r, which, detail);
    return STEP_END;
}

static enum step_result refuse_why(struct hub_request *r, enum kr_case which,
                                   const struct kr_note *why)
{
    return refuse(r, which, kr_bytes_str(why->text));
}

/* Heads that are beyond a limit or ambiguous. */
static enum step_result check_head(struct hub_request *r)
{
    const struct kr_head *h = &r->fw.in->head;
    struct kr_bytes host = kr_head_get(h, KR_LIT("host"));

    if (r->fw.in->refuse_status == 414)
        return refuse(r, KR_CASE_PATH_TOO_LONG, KR_LIT("60 KiB"));
    if (r->fw.in->refuse_status != 0)
        return refuse(r, KR_CASE_HEAD_TOO_LARGE, KR_LIT("60 KiB a field, 256 KiB in all"));
    if (r->fw.in->conn->is_h2 && host.n != 0 && !kr_bytes_eq_fold(host, h->authority))
        return refuse(r, KR_CASE_WRONG_HOST, host);
    return STEP_NEXT;
}

static bool is_health(struct kr_bytes path)
{
    return kr_bytes_is(path, "/livez") || kr_bytes_is(path, "/readyz") ||
           kr_bytes_is(path, "/healthz");
}

/* What the hub answers on its own root, to anybody. */
static enum step_result own_paths(struct hub_request *r, struct kr_bytes target)
{
    static const char version[] = "{\"major\":\"1\",\"minor\":\"30\",\"gitVersion\":\"v1.30.0+"
                                  "kuberelay-" KR_VERSION "\",\"platform\":\"linux\"}\n";
    struct kr_bytes path = kr_bytes_of(target.p, kr_bytes_find(target, '?'));
    struct kr_exchange *ex;

    if (is_health(path)) {
        bool down = r->w->unready && kr_bytes_is(path, "/readyz");

        ex = kr_forward_release(&r->fw);
        r->code = down ? 503 : 200;
        hub_answer_text(ex, r->code, "text/plain; charset=utf-8",
                        down ? KR_LIT("shutting down") : KR_LIT("ok"));
    } else if (kr_bytes_is(path, "/version")) {
        ex = kr_forward_release(&r->fw);
        r->code = 200;
        hub_answer_text(ex, 200, "application/json", kr_bytes_str(version));
    } else {
        return refuse(r, KR_CASE_NO_PREFIX, (struct kr_bytes){NULL, 0});
    }
    hub_request_end(r);
    return STEP_END;
}

/* Which cluster: by host name, else by path prefix. */
static enum step_result locate(struct hub_request *r)
{
    const struct kr_head *h = &r->fw.in->head;
    struct kr_bytes domain = kr_bytes_str(r->w->options->hub_domain);
    struct kr_note why = {""};
    int rc = KR_ENOENT;

    if (domain.n != 0)
        rc = kr_cluster_from_authority(h->authority, domain, &r->cluster_path, &why);
    if (domain.n != 0 && rc == KR_ENOENT) /* a kubeconfig with tls-server-name and an address */
        rc = kr_cluster_from_authority(kr_bytes_str(r->peer->sni), domain, &r->cluster_path, &why);
    r->by_name = rc == 0;
    if (rc == 0) {
        struct kr_cluster_path sni;

        if (kr_cluster_from_authority(kr_bytes_str(r->peer->sni), domain, &sni, NULL) == 0 &&
            !kr_bytes_eq(sni.name, r->cluster_path.name))
            return refuse(r, KR_CASE_WRONG_HOST, h->authority);
        r->cluster_path.rest = h->path;
    } else if (rc == KR_ENOENT) {
        rc = kr_cluster_path_split(h->path, &r->arena, &r->cluster_path, &why);
        if (rc == KR_ENOENT)
            return own_paths(r, h->path);
    }
    if (rc != 0)
        return refuse_why(r, KR_CASE_BAD_NAME, &why);
    return STEP_NEXT;
}

static enum step_result authenticate(struct hub_request *r)
{
    struct hub_authn_question q = {
        .peer = r->peer,
        .head = &r->fw.in->head,
        .for_member = !r->cluster_path.fleet,
        .arena = &r->arena,
    };
    struct kr_conn *conn = r->fw.in->conn;
    struct kr_note why = {""};
    int rc = hub_authn_judge(r->w->authn, &q, &r->caller, &why);

    if (rc == 0)
        return STEP_NEXT;
    if (rc == KR_ENOMEM)
        return refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(rc)));
    if (rc == KR_EDENIED) /* the client is told no more than kube-apiserver tells */
        KR_LOG_AT(r->w->log, KR_LOG_INFO, "credential-refused", KR_S("peer", r->peer->address),
                  KR_S("reason", why.text), KR_S("id", r->audit_id));
    refuse(r, KR_CASE_UNAUTHORIZED, (struct kr_bytes){NULL, 0});
    if (rc == KR_ENOENT)
        kr_conn_drain(conn); /* one answer is all that an unknown client gets from a connection */
    return STEP_END;
}

static const char *label_of(struct kr_bytes verb)
{
    static const char *const labels[] = {"get",    "list",  "watch",  "create",
                                         "update", "patch", "delete", "deletecollection",
                                         "proxy",  "post",  "put",    "head"};

    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        if (kr_bytes_is(verb, labels[i]))
            return labels[i];
    }
    return "other";
}

static enum step_result classify(struct hub_request *r)
{
    struct kr_note why = {""};
    int rc = kr_request_info_parse(&r->info, r->fw.in->head.method, r->cluster_path.rest, &r->arena,
                                   &why);

    if (rc == KR_EINVAL)
        return refuse_why(r, KR_CASE_BAD_PATH, &why);
    if (rc != 0)
        return refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(rc)));
    r->verb_label = label_of(r->info.verb);
    r->is_watch = kr_request_is_watch(&r->info);
    r->long_running = r->info.long_running;
    r->fw.in->patient = r->long_running;
    r->fw.up_max = r->info.proxied ? 0 : BODY_MAX;
    if (r->long_running)
        kr_metric_add(r->w->m_long_live, 1);
    return STEP_NEXT;
}

static bool method_allowed(const struct hub_request *r)
{
    static const char *const allowed[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
    struct kr_bytes m = r->fw.in->head.method;

    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        if (kr_bytes_is(m, allowed[i]))
            return true;
    }
    return r->info.proxied && kr_bytes_is(m, "OPTIONS");
}

static bool fold_is(struct kr_bytes a, const char *b)
{
    return kr_bytes_eq_fold(a, kr_bytes_str(b));
}

/* Which protocols a request may be upgraded to. h2c never: it hides requests from the relay. */
static bool upgrade_allowed(const struct hub_request *r, struct kr_bytes token)
{
    bool get = kr_bytes_is(r->fw.in->head.method, "GET");

    if (fold_is(token, "h2c") || kr_bytes_find(token, ',') != token.n || token.n == 0)
        return false;
    if (r->info.proxied)
        return true;
    if (fold_is(token, "websocket"))
        return get && r->long_running;
    return fold_is(token, "spdy/3.1") && r->info.connects &&
           (get || kr_bytes_is(r->fw.in->head.method, "POST"));
}

static enum step_result check_upgrade(struct hub_request *r)
{
    struct kr_bytes token = kr_head_get(&r->fw.in->head, KR_LIT("upgrade"));

    if (!r->fw.in->upgrade)
        return STEP_NEXT;
    if (!upgrade_allowed(r, token))
        return refuse(r, KR_CASE_NO_UPGRADE, token);
    r->upgrade = token;
    r->is_watch = false; /* a WebSocket has its own framing: no event boundaries are known */
    return STEP_NEXT;
}

/* Nobody may act as somebody else, unless a rule of the configuration says so. */
static enum step_result impersonate(struct hub_request *r)
{
    const struct kr_head *h = &r->fw.in->head;
    struct kr_note why = {""};
    int rc = hub_impersonation_read(&r->as, h, &r->arena, &why);

    if (rc == KR_EINVAL)
        return refuse_why(r, KR_CASE_BAD_HEADER, &why);
    if (rc == 0 && r->as.asked)
        rc = hub_impersonation_allowed(&r->w->options->impersonation, r->caller, &r->as, &why);
    if (rc == KR_EDENIED)
        return refuse_why(r, KR_CASE_IMPERSONATION, &why);
    if (rc != 0)
        return refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(rc)));
    return STEP_NEXT;
}

static enum step_result authorize(struct hub_request *r)
{
    const struct kr_head *h = &r->fw.in->head;

    if (!method_allowed(r))
        return refuse(r, KR_CASE_BAD_METHOD, h->method);
    if (r->fw.up_max != 0 && kr_head_content_length(h) > (int64_t)r->fw.up_max)
        return refuse(r, KR_CASE_BODY_TOO_LARGE, KR_LIT(HUB_BODY_MAX_TEXT));
    return STEP_NEXT;
}

/* The hub's own rules, for whoever it will say is asking. */
static enum step_result decide(struct hub_request *r)
{
    struct kr_buf text = {.max = DENIAL_MAX};
    struct kr_bytes user = r->as.asked ? r->as.user : r->caller->user;
    enum hub_verdict verdict = hub_access_decide(r);

    if (verdict == HUB_ALLOWED)
        return STEP_NEXT;
    if (verdict == HUB_UNKNOWN_TO)
        return refuse(r, KR_CASE_UNKNOWN_CLUSTER, (struct kr_bytes){NULL, 0});
    hub_denial_write(user, &r->info, &text);
    kr_buf_append_str(&text, ": no project allows it");
    refuse(r, KR_CASE_DENIED, kr_buf_bytes(&text));
    kr_buf_deinit(&text);
    return STEP_END;
}

/* What cannot be logged does not change anything. */
static enum step_result audit(struct hub_request *r)
{
    if (hub_audit_begin(r))
        return STEP_NEXT;
    return refuse(r, KR_CASE_NO_AUDIT, (struct kr_bytes){NULL, 0});
}

/* A hub that has just started knows only whom has dialled already: its agents may be on their way,
 * and 403 would make controllers give up. So would it for a registered one that is away longer. */
static enum step_result no_cluster(struct hub_request *r)
{
    if (r->w->sched->now_ms - r->w->started_ms < r->w->options->start_grace_ms)
        return refuse(r, r->is_watch ? KR_CASE_STARTING_WATCH : KR_CASE_STARTING,
                      (struct kr_bytes){NULL, 0});
    if (hub_is_expected(r->w, r->cluster_path.text))
        return refuse(r, kr_case_away(&r->info), KR_LIT(" (not seen since the relay started)"));
    return refuse(r, KR_CASE_UNKNOWN_CLUSTER, (struct kr_bytes){NULL, 0});
}

static enum step_result route(struct hub_request *r)
{
    if (r->w->draining)
        return refuse(r, kr_case_draining(&r->info), (struct kr_bytes){NULL, 0});
    if (r->cluster_path.fleet) {
        if (r->w->fleet == NULL)
            return refuse(r, KR_CASE_BAD_METHOD, KR_LIT("(any; the hub has no fleetFile)"));
        hub_fleet_serve(r->w->fleet, r);
        return STEP_END;
    }
    r->cluster = hub_clusters_find(&r->w->clusters, r->cluster_path.name);
    if (r->cluster == NULL)
        return no_cluster(r);
    if (!hub_write_begin(r))
        hub_relay(r);
    return STEP_END;
}

static const struct {
    const char *name;
    enum step_result (*run)(struct hub_request *r);
} steps[] = {
    {"check head", check_head},
    {"locate", locate},
    {"authenticate", authenticate},
    {"classify", classify},
    {"authorize", authorize},
    {"impersonate", impersonate},
    {"decide", decide},
    {"check upgrade", check_upgrade},
    {"audit", audit},
    {"route", route},
};

void hub_pipeline_run(struct hub_request *r)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i].run(r) == STEP_END)
            return;
    }
}
