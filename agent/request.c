/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: read who asks, check the path again, get a connection, build the head from an
 * allow-list, add credential and identity, open; filter the answer's head; the bodies flow.
 * Failure modes: the header is missing or bad (400: only our hub may ask); no API server (503); its
 * 401 for our credential (a fresh token once, then 502); it breaks before or after its answer
 * began. */
#include "agent/request.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/answer.h"
#include "agent/apiserver.h"
#include "agent/counters.h"
#include "base/assert.h"
#include "base/err.h"
#include "http/forward.h"
#include "kube/headers.h"
#include "kube/watch_lines.h"
#include "wire/request_header.h"

#define ATTEMPTS_MAX 3
#define OPENS_MAX 16 /* a head that no connection takes must not go round for ever */
#define UPGRADE_MS 30000
#define SLACK_MS 1000 /* the hub's own deadline comes first */

struct request {
    struct kr_forward fw;
    struct agent_core *c;
    struct kr_arena arena;
    struct kr_relay_request who;
    struct kr_request_info info; /* its text is gone once a long-running answer began */
    struct agent_waiter waiter;
    struct kr_timer deadline;
    struct kr_watch_lines lines;
    uint32_t token_generation;
    int attempts;
    int opens;   /* that failed */
    int code;    /* that the hub got, 0 before */
    int verdict; /* enum kr_case that on_response decided, or -1 */
    bool is_watch;
    bool upgrade;
    bool retry; /* the credential was refused and there is a newer one */
};

static void go(struct request *r);

static struct request *of_forward(struct kr_forward *fw)
{
    return KR_CONTAINER_OF(fw, struct request, fw);
}

static void end(struct request *r)
{
    struct agent_core *c = r->c;
    char code[8];
    int shown = r->code != 0 ? r->code : 499; /* canceled before it had an answer */

    snprintf(code, sizeof code, "%d", shown % 1000);
    kr_metric_add(kr_metrics_get(c->metrics, AGENT_REQUESTS, code), 1);
    kr_timer_stop(c->sched, &r->deadline);
    kr_list_remove(&r->waiter.link);
    kr_forward_deinit(&r->fw);
    kr_arena_deinit(&r->arena);
    free(r);
    c->requests--;
    kr_metric_add(c->m_exchanges, -1);
}

static void refuse(struct request *r, enum kr_case which, struct kr_bytes detail, bool not_sent)
{
    struct kr_case_facts facts = {
        .cluster = kr_bytes_str(r->c->self.name),
        .detail = detail,
        .request = r->info.target.n != 0 ? &r->info : NULL,
        .busy_s = 1,
    };
    struct kr_exchange *ex = kr_forward_release(&r->fw);

    KR_LOG_AT(r->c->log, KR_LOG_INFO, "request-refused", KR_S("case", kr_case_name(which)),
              KR_B("user", r->who.user), KR_B("verb", r->info.verb), KR_B("path", r->info.path),
              KR_B("detail", detail));
    r->code = agent_answer(r->c, ex, which, &facts, not_sent);
    end(r);
}

/* ---- the request head ---- */

static unsigned header_flags(const struct request *r)
{
    return (r->info.proxied ? KR_HEADERS_PROXY : 0) | (r->upgrade ? KR_HEADERS_UPGRADE : 0);
}

static int add_allowed(struct request *r, struct kr_head *to)
{
    const struct kr_head *from = &r->fw.in->head;
    unsigned flags = header_flags(r);
    int rc = 0;

    for (size_t i = 0; i < from->n && rc == 0; i++) {
        const struct kr_field *f = &from->fields[i];

        /* The hub set these two itself; from a client they never pass the hub. */
        if (kr_header_request_rule(f->name, flags) == KR_HEADER_PASS ||
            kr_bytes_is(f->name, "audit-id") || kr_bytes_is(f->name, "x-forwarded-for"))
            rc = kr_head_add_ref(to, f->name, f->value);
    }
    return rc;
}

/* Prefix and name in one header, e.g. "kuberelay:alice". */
static int add_prefixed(struct request *r, struct kr_head *to, const char *header,
                        struct kr_bytes name)
{
    struct kr_bytes prefix = kr_bytes_str(r->c->options->user_prefix);
    size_t n = prefix.n + name.n;
    uint8_t *p = kr_arena_alloc(&to->arena, n + 1);

    if (p == NULL)
        return KR_ENOMEM;
    if (prefix.n != 0)
        memcpy(p, prefix.p, prefix.n);
    memcpy(p + prefix.n, name.p, name.n);
    /* HTTP/1.1 takes spaces around a value away: " system:masters" would arrive without. */
    if (n == 0 || p[0] == ' ' || p[n - 1] == ' ' ||
        kr_bytes_starts(kr_bytes_of(p, n), KR_LIT("system:")))
        return KR_EDENIED;
    return kr_head_add_ref(to, kr_bytes_str(header), kr_bytes_of(p, n));
}

/* A system: user that the agent's own configuration names; no hub can add to that. */
static bool is_system_user(const struct request *r)
{
    const struct kr_strings *names = &r->c->options->system_users;

    if (!kr_bytes_starts(r->who.user, KR_LIT("system:")))
        return false;
    for (size_t i = 0; i < names->n; i++) {
        struct kr_bytes name = kr_bytes_str(names->v[i]);

        if (kr_bytes_eq(name, r->who.user) ||
            (name.n > 1 && name.p[name.n - 1] == '*' &&
             kr_bytes_starts(r->who.user, kr_bytes_of(name.p, name.n - 1))))
            return true;
    }
    return false;
}

static int add_user(struct request *r, struct kr_head *to)
{
    if (is_system_user(r))
        return kr_head_add_ref(to, KR_LIT("impersonate-user"), r->who.user);
    return add_prefixed(r, to, "impersonate-user", r->who.user);
}

/* Impersonate-Extra-KEY: KEY may hold bytes that a field name may not; kube-apiserver decodes it
 * (endpoints/filters/impersonation). */
static int add_extra(struct kr_head *to, const struct kr_extra *extra)
{
    struct kr_buf name = {.max = 4 * KR_TEXT_MAX};
    int rc = kr_buf_append_str(&name, "impersonate-extra-");

    for (size_t i = 0; i < extra->key.n && rc == 0; i++) {
        uint8_t c = extra->key.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';

        rc = kr_buf_printf(&name, plain ? "%c" : "%%%02x", c);
    }
    for (size_t i = 0; i < extra->value_count && rc == 0; i++)
        rc = kr_head_add(to, kr_buf_bytes(&name), extra->values[i]);
    kr_buf_deinit(&name);
    return rc;
}

/* Last, so that nothing before can displace it. kube-apiserver takes an empty Impersonate-User for
 * "nobody": the request would run as the agent itself. */
static int add_identity(struct request *r, struct kr_head *to)
{
    struct kr_bytes auth = agent_apiserver_authorization(r->c->api, &r->token_generation);
    int rc = auth.n != 0 ? kr_head_add(to, KR_LIT("authorization"), auth) : 0;

    if (rc == 0)
        rc = add_user(r, to);
    if (rc == 0)
        KR_ASSERT(to->fields[to->n - 1].value.n != 0);
    for (size_t i = 0; i < r->who.group_count && rc == 0; i++)
        rc = add_prefixed(r, to, "impersonate-group", r->who.groups[i]);
    if (rc == 0 && r->who.uid.n != 0)
        rc = kr_head_add(to, KR_LIT("impersonate-uid"), r->who.uid);
    for (size_t i = 0; i < r->who.extra_count && rc == 0; i++)
        rc = add_extra(to, &r->who.extra[i]);
    return rc;
}

static int build_head(struct request *r, struct kr_head *to)
{
    struct kr_bytes prefix = agent_apiserver_prefix(r->c->api);
    int rc;

    to->method = r->upgrade ? r->who.method : r->fw.in->head.method;
    if (r->upgrade)
        to->protocol = r->who.upgrade_token;
    to->scheme = KR_LIT("https");
    to->authority = agent_apiserver_authority(r->c->api);
    to->path = r->info.target;
    if (prefix.n != 0) {
        uint8_t *p = kr_arena_alloc(&to->arena, prefix.n + to->path.n);

        if (p == NULL)
            return KR_ENOMEM;
        memcpy(p, prefix.p, prefix.n);
        memcpy(p + prefix.n, to->path.p, to->path.n);
        to->path.p = p;
        to->path.n += prefix.n;
    }
    rc = add_allowed(r, to);
    return rc != 0 ? rc : add_identity(r, to);
}

/* ---- to the API server ---- */

static int open_on(struct request *r, struct kr_conn *conn)
{
    struct kr_head head;
    int rc;

    kr_head_init(&head, 2 * KR_HEAD_MAX);
    rc = build_head(r, &head);
    if (rc == 0)
        rc = kr_forward_open(&r->fw, conn, &head);
    kr_head_deinit(&head);
    return rc;
}

static void go_on(struct request *r, struct kr_conn *conn)
{
    int rc = open_on(r, conn);

    if (rc == 0)
        r->attempts++;
    else if (rc == KR_EFULL && !r->upgrade && r->opens++ < OPENS_MAX)
        agent_apiserver_wait(r->c->api, &r->waiter);
    else if (rc == KR_EDENIED)
        refuse(r, KR_CASE_AGENT_DENIED, KR_LIT("identities of the system are not impersonated"),
               true);
    else
        refuse(r, rc == KR_ETOOBIG ? KR_CASE_HEAD_TOO_LARGE : KR_CASE_INTERNAL,
               kr_bytes_str(kr_err_text(rc)), true);
}

static void go(struct request *r)
{
    struct kr_conn *conn;

    if (r->upgrade) {
        if (agent_apiserver_dial_alone(r->c->api, &r->waiter) != 0)
            refuse(r, KR_CASE_OVERLOADED, KR_LIT("the agent has too many upgrades"), true);
        return;
    }
    conn = agent_apiserver_get(r->c->api, &r->waiter);
    if (conn != NULL)
        go_on(r, conn);
}

static void on_conn(struct agent_waiter *w, struct kr_conn *conn, int rc, const struct kr_note *why)
{
    struct request *r = KR_CONTAINER_OF(w, struct request, waiter);
    char detail[sizeof why->text + 2];

    if (conn != NULL) {
        go_on(r, conn);
        return;
    }
    if (rc == KR_ETLS) {
        refuse(r, KR_CASE_API_TLS, kr_bytes_str(why->text), true);
        return;
    }
    snprintf(detail, sizeof detail, ": %s", why->text);
    refuse(r, KR_CASE_API_UNREACHABLE, kr_bytes_str(detail), true);
}

static void on_deadline(struct kr_timer *t)
{
    struct request *r = KR_CONTAINER_OF(t, struct request, deadline);
    bool sent = r->fw.out != NULL ? r->fw.out->head_sent : r->fw.out_was_sent;

    refuse(r, KR_CASE_DEADLINE, KR_LIT("the time that the hub gives"), !sent);
}

/* ---- the answer ---- */

static int add_location(struct request *r, struct kr_bytes location, struct kr_head *to)
{
    struct kr_buf out = {.max = KR_FIELD_MAX};
    int rc = kr_location_rewrite(location, (struct kr_bytes){NULL, 0},
                                 agent_apiserver_authority(r->c->api), &out, NULL);

    if (rc == 0)
        rc = kr_head_add(to, KR_LIT("location"), kr_buf_bytes(&out));
    kr_buf_deinit(&out);
    return rc;
}

static int copy_response(struct request *r, const struct kr_head *from, struct kr_head *to)
{
    unsigned flags = header_flags(r);
    int rc = 0;

    to->status = r->upgrade && from->status == 101 ? 200 : from->status;
    r->fw.raw = r->upgrade && from->status == 101;
    r->fw.trailers = r->info.proxied;
    for (size_t i = 0; i < from->n && rc == 0; i++) {
        const struct kr_field *f = &from->fields[i];
        enum kr_header_rule rule = kr_header_response_rule(f->name, flags);

        if (rule == KR_HEADER_PASS)
            rc = kr_head_add_ref(to, f->name, f->value);
        else if (rule == KR_HEADER_LOCATION)
            rc = add_location(r, f->value, to);
        if (rc == KR_EDENIED)
            r->verdict = KR_CASE_REDIRECT;
    }
    return rc;
}

/* 401 means our own credential: a client that got it would ask its user to log in. */
static int credential_refused(struct request *r)
{
    r->retry = !r->fw.up_taken && r->attempts < ATTEMPTS_MAX &&
               agent_apiserver_token_refused(r->c->api, r->token_generation);
    r->verdict = KR_CASE_API_TOKEN;
    return KR_EDENIED;
}

static int on_response(struct kr_forward *fw, struct kr_head *to)
{
    struct request *r = of_forward(fw);
    const struct kr_head *from = &fw->out->head;
    int rc;

    if (from->status == 401 && !r->info.proxied)
        return credential_refused(r);
    if (r->upgrade && from->status != 101 && from->status < 400) {
        r->verdict = KR_CASE_UPGRADE_FAILED;
        return KR_EDENIED;
    }
    rc = copy_response(r, from, to);
    if (rc != 0)
        return rc;
    kr_timer_stop(r->c->sched, &r->deadline);
    r->code = from->status;
    /* With a length, an end before it would be an end too early. */
    if (r->is_watch && from->status == 200 && kr_head_content_length(from) < 0) {
        kr_watch_lines_init(&r->lines,
                            kr_watch_framing_of(kr_head_get(from, KR_LIT("content-type")),
                                                kr_head_get(from, KR_LIT("content-encoding"))));
        fw->tap = true;
    }
    return 0;
}

/* A stream may live for hours: it keeps only what its end needs. */
static void on_begun(struct kr_forward *fw)
{
    struct request *r = of_forward(fw);

    if (!r->info.long_running)
        return;
    r->info = (struct kr_request_info){0};
    r->who = (struct kr_relay_request){0};
    kr_arena_deinit(&r->arena);
    kr_exchange_drop_head(fw->in);
}

static void on_response_body(struct kr_forward *fw, struct kr_bytes in)
{
    kr_watch_lines_feed(&of_forward(fw)->lines, in);
}

static void after_begun(struct request *r, int rc)
{
    if (r->fw.raw && rc != KR_ENOMEM) { /* the protocol on top has its own end */
        kr_forward_finish_at(&r->fw, UINT64_MAX);
        return;
    }
    if (r->fw.tap && rc != KR_ENOMEM &&
        kr_forward_may_finish_at(&r->fw, kr_watch_lines_whole(&r->lines))) {
        kr_forward_finish_at(&r->fw, kr_watch_lines_whole(&r->lines));
        return;
    }
    KR_LOG_AT(r->c->log, KR_LOG_WARN, "answer-cut", KR_S("reason", kr_err_text(rc)),
              KR_U("bytes", r->fw.down_bytes));
    kr_forward_cut(&r->fw);
    end(r);
}

static void on_failed(struct kr_forward *fw, int rc)
{
    struct request *r = of_forward(fw);
    bool undelivered = rc == KR_EREFUSED || (rc == KR_ECONNLOST && !fw->out_was_sent);

    if (fw->response_begun) {
        after_begun(r, rc);
    } else if (r->retry || (undelivered && !fw->up_taken && r->attempts < ATTEMPTS_MAX)) {
        r->retry = false;
        r->verdict = -1;
        go(r);
    } else if (r->verdict >= 0) {
        refuse(r, (enum kr_case)r->verdict,
               r->verdict == KR_CASE_REDIRECT ? KR_LIT("it leads away from the API server")
                                              : KR_LIT("unexpected status"),
               false);
    } else if (undelivered) {
        refuse(r, KR_CASE_API_UNREACHABLE, (struct kr_bytes){NULL, 0}, true);
    } else if (rc == KR_ECONNLOST || rc == KR_ERESET) {
        KR_LOG_AT(r->c->log, KR_LOG_INFO, "api-lost", KR_S("reason", kr_err_text(rc)),
                  KR_U("reset-code", fw->out_reset_code));
        refuse(r, kr_case_lost(&r->info, true), (struct kr_bytes){NULL, 0}, false);
    } else {
        refuse(r, KR_CASE_API_PROTOCOL, kr_bytes_str(kr_err_text(rc)), false);
    }
}

static void on_finished(struct kr_forward *fw, int client_rc)
{
    struct request *r = of_forward(fw);

    KR_LOG_AT(r->c->log, KR_LOG_DEBUG, "request-done",
              KR_S("hub", client_rc == 0 ? "served" : kr_err_text(client_rc)),
              KR_U("bytes", fw->down_bytes));
    end(r);
}

static const struct kr_forward_ops forward_ops = {
    on_response, on_response_body, on_failed, on_finished, on_begun,
};

/* An Upgrade value: it is written into an HTTP/1.1 head. */
static bool is_token(struct kr_bytes b)
{
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] <= 0x20 || b.p[i] >= 0x7F || b.p[i] == ',')
            return false;
    }
    return b.n != 0 && !kr_bytes_eq_fold(b, KR_LIT("h2c"));
}

static bool method_allowed(const struct request *r, struct kr_bytes m)
{
    static const char *const allowed[] = {"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE"};
    size_t n = r->upgrade ? 2 : sizeof allowed / sizeof allowed[0];

    for (size_t i = 0; i < n; i++) {
        if (kr_bytes_is(m, allowed[i]))
            return true;
    }
    return r->info.proxied && !r->upgrade && kr_bytes_is(m, "OPTIONS");
}

static bool is_repeated(const struct kr_head *h, const struct kr_field *f)
{
    for (const struct kr_field *g = f + 1; g < h->fields + h->n; g++) {
        if (kr_bytes_eq(g->name, f->name))
            return true;
    }
    return false;
}

/* Who asks and for what; the hub has checked all of it, and may have been taken over since. */
static int read_request(struct request *r, struct kr_note *why)
{
    const struct kr_head *h = &r->fw.in->head;
    const struct kr_field *f = kr_head_find(h, KR_LIT(KR_REQUEST_HEADER));
    struct kr_bytes method;
    int rc;

    if (f == NULL || is_repeated(h, f))
        return kr_note_set(why, KR_EPROTO, "not exactly one " KR_REQUEST_HEADER);
    rc = kr_request_header_read(&r->who, f->value, &r->arena, why);
    if (rc != 0)
        return rc;
    r->upgrade = h->protocol.n != 0;
    if (r->upgrade && (r->who.method.n == 0 || !is_token(r->who.upgrade_token)))
        return kr_note_set(why, KR_EPROTO, "an upgrade without method or token");
    method = r->upgrade ? r->who.method : h->method;
    rc = kr_request_info_parse(&r->info, method, h->path, &r->arena, why);
    if (rc == 0 && !method_allowed(r, method))
        rc = kr_note_set(why, KR_EPROTO, "a method that no hub relays");
    r->is_watch = rc == 0 && !r->upgrade && kr_request_is_watch(&r->info);
    return rc;
}

void agent_request_start(struct agent_core *c, struct kr_exchange *ex)
{
    struct request *r =
        c->requests < (size_t)c->options->max_requests ? calloc(1, sizeof *r) : NULL;
    struct kr_case_facts facts = {.detail = KR_LIT("the agent has too many requests"), .busy_s = 1};
    struct kr_note why = {""};

    if (r == NULL) {
        agent_answer(c, ex, KR_CASE_OVERLOADED, &facts, true);
        return;
    }
    r->c = c;
    r->verdict = -1;
    r->waiter.on_conn = on_conn;
    kr_arena_init(&r->arena, 512, 8 * KR_HEAD_MAX);
    kr_timer_init(&r->deadline, on_deadline);
    kr_forward_init(&r->fw, &forward_ops);
    c->requests++;
    kr_metric_add(c->m_exchanges, 1);
    kr_forward_in(&r->fw, ex);
    if (read_request(r, &why) != 0) {
        refuse(r, KR_CASE_BAD_REQUEST, kr_bytes_str(why.text), true);
        return;
    }
    ex->patient = r->info.long_running;
    if (r->upgrade)
        kr_timer_start(c->sched, &r->deadline, UPGRADE_MS);
    else if (r->who.deadline_ms != 0)
        kr_timer_start(c->sched, &r->deadline, (int64_t)r->who.deadline_ms + SLACK_MS);
    go(r);
}
