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
#include "agent/audit.h"
#include "agent/counters.h"
#include "agent/request_parts.h"
#include "agent/verified.h"
#include "base/assert.h"
#include "base/err.h"
#include "http/reply.h"
#include "wire/request_header.h"

#define ATTEMPTS_MAX 3
#define OPENS_MAX 16 /* a head that no connection takes must not go round for ever */
#define UPGRADE_MS 30000
#define SLACK_MS 1000         /* the hub's own deadline comes first */
#define REBASE_MAX (4u << 20) /* of a body; the hub takes less */

static void go(struct agent_request *r);

static struct agent_request *of_forward(struct kr_forward *fw)
{
    return KR_CONTAINER_OF(fw, struct agent_request, fw);
}

static void end(struct agent_request *r)
{
    struct agent_core *c = r->c;
    char code[8];
    int shown = r->code != 0 ? r->code : 499; /* canceled before it had an answer */

    snprintf(code, sizeof code, "%d", shown % 1000);
    kr_metric_add(kr_metrics_get(c->metrics, AGENT_REQUESTS, code), 1);
    if (r->counted != NULL)
        --*r->counted;
    kr_timer_stop(c->sched, &r->deadline);
    kr_list_remove(&r->waiter.link);
    kr_list_remove(&r->member.link);
    agent_audit_end(r);
    agent_rebase_destroy(r->rebase);
    kr_forward_deinit(&r->fw);
    kr_arena_deinit(&r->arena);
    free(r);
    c->requests--;
    kr_metric_add(c->m_exchanges, -1);
}

static void refuse(struct agent_request *r, enum kr_case which, struct kr_bytes detail,
                   bool not_sent)
{
    struct kr_case_facts facts = {
        .cluster = kr_bytes_str(r->c->self.name),
        .detail = detail,
        .request = r->info.target.n != 0 ? &r->info : NULL,
        .busy_s = 1,
    };
    struct kr_exchange *ex;

    agent_audit_refused(r, which, not_sent);
    ex = kr_forward_release(&r->fw);
    KR_LOG_AT(r->c->log, KR_LOG_INFO, "request-refused", KR_S("case", kr_case_name(which)),
              KR_B("user", r->who.user), KR_B("verb", r->info.verb), KR_B("path", r->info.path),
              KR_B("detail", detail));
    r->code = agent_answer(r->c, ex, which, &facts, not_sent);
    end(r);
}

/* ---- to the API server ---- */

static int open_on(struct agent_request *r, struct kr_conn *conn)
{
    struct kr_head head;
    int rc;

    kr_head_init(&head, 2 * KR_HEAD_MAX);
    rc = agent_request_head(r, &head);
    if (rc == 0)
        rc = kr_forward_open(&r->fw, conn, &head);
    kr_head_deinit(&head);
    return rc;
}

/* An upgrade; or a token of the cluster, which must not meet our own client certificate. */
static bool is_alone(const struct agent_request *r)
{
    return r->upgrade || (r->who.member_token.n != 0 && agent_apiserver_has_certificate(r->c->api));
}

static void go_on(struct agent_request *r, struct kr_conn *conn)
{
    int rc = open_on(r, conn);

    if (rc == 0) {
        r->attempts++;
        if (is_alone(r) && !r->upgrade)
            kr_conn_drain(conn);
    } else if (rc == KR_EFULL && !is_alone(r) && r->opens++ < OPENS_MAX) {
        agent_apiserver_wait(r->c->api, &r->waiter);
    } else if (rc == KR_EDENIED) {
        refuse(r, KR_CASE_AGENT_DENIED, KR_LIT("identities of the system are not impersonated"),
               true);
    } else {
        refuse(r, rc == KR_ETOOBIG ? KR_CASE_HEAD_TOO_LARGE : KR_CASE_INTERNAL,
               kr_bytes_str(kr_err_text(rc)), true);
    }
}

static void go(struct agent_request *r)
{
    struct kr_conn *conn;

    if (is_alone(r)) {
        r->waiter.bare = r->who.member_token.n != 0;
        if (agent_apiserver_dial_alone(r->c->api, &r->waiter) != 0)
            refuse(r, KR_CASE_OVERLOADED, KR_LIT("the agent has too many connections"), true);
        return;
    }
    conn = agent_apiserver_get(r->c->api, &r->waiter);
    if (conn != NULL)
        go_on(r, conn);
}

static void on_conn(struct agent_waiter *w, struct kr_conn *conn, int rc, const struct kr_note *why)
{
    struct agent_request *r = KR_CONTAINER_OF(w, struct agent_request, waiter);
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
    struct agent_request *r = KR_CONTAINER_OF(t, struct agent_request, deadline);
    bool sent = r->fw.out != NULL ? r->fw.out->head_sent : r->fw.out_was_sent;

    refuse(r, KR_CASE_DEADLINE, KR_LIT("the time that the hub gives"), !sent);
}

/* ---- the answer ---- */

static int add_location(struct agent_request *r, struct kr_bytes location, struct kr_head *to)
{
    struct kr_buf out = {.max = KR_FIELD_MAX};
    int rc = kr_location_rewrite(location, (struct kr_bytes){NULL, 0},
                                 agent_apiserver_authority(r->c->api), &out, NULL);

    if (rc == 0)
        rc = kr_head_add(to, KR_LIT("location"), kr_buf_bytes(&out));
    kr_buf_deinit(&out);
    return rc;
}

static int copy_response(struct agent_request *r, const struct kr_head *from, struct kr_head *to)
{
    unsigned flags = agent_request_flags(r);
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
static int credential_refused(struct agent_request *r)
{
    r->retry = !r->fw.up_taken && r->attempts < ATTEMPTS_MAX &&
               agent_apiserver_token_refused(r->c->api, r->token_generation);
    r->verdict = KR_CASE_API_TOKEN;
    return KR_EDENIED;
}

static int on_response(struct kr_forward *fw, struct kr_head *to)
{
    struct agent_request *r = of_forward(fw);
    const struct kr_head *from = &fw->out->head;
    int rc;

    if (from->status == 401 && !r->info.proxied && r->who.member_token.n == 0)
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
    struct agent_request *r = of_forward(fw);

    if (!r->info.long_running)
        return;
    agent_audit_begun(r);
    r->info = (struct kr_request_info){0};
    r->who = (struct kr_relay_request){0};
    kr_arena_deinit(&r->arena);
    kr_exchange_drop_head(fw->in);
}

static void on_response_body(struct kr_forward *fw, struct kr_bytes in)
{
    kr_watch_lines_feed(&of_forward(fw)->lines, in);
}

static void after_begun(struct agent_request *r, int rc)
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
    struct agent_request *r = of_forward(fw);
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
    } else if (rc == KR_ETOOBIG && fw->up_max != 0 && fw->up_bytes > fw->up_max) {
        refuse(r, KR_CASE_BODY_TOO_LARGE, KR_LIT("4 MiB"), true);
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
    struct agent_request *r = of_forward(fw);

    KR_LOG_AT(r->c->log, KR_LOG_DEBUG, "request-done",
              KR_S("hub", client_rc == 0 ? "served" : kr_err_text(client_rc)),
              KR_U("bytes", fw->down_bytes));
    end(r);
}

/* ---- a write from the fleet view ---- */

static int rebase_identity(void *user, struct kr_head *to)
{
    return agent_request_identity(user, to);
}

static void rebase_ready(void *user, struct kr_bytes body)
{
    struct agent_request *r = user;

    r->rebased = true;
    if (kr_forward_put_body(&r->fw, body) != 0)
        refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(KR_ENOMEM)), true);
    else
        go(r);
}

static void rebase_refused(void *user, enum kr_case which, struct kr_bytes detail)
{
    refuse(user, which, detail, true);
}

/* What the API server says to the read is its answer to the write. */
static void rebase_answered(void *user, const struct kr_head *head, struct kr_bytes body)
{
    struct agent_request *r = user;

    r->code = head->status;
    kr_reply(kr_forward_release(&r->fw), head, body);
    end(r);
}

static const struct agent_rebase_ops rebase_ops = {rebase_identity, rebase_ready, rebase_refused,
                                                   rebase_answered};

static void on_gathered(struct kr_forward *fw)
{
    struct agent_request *r = of_forward(fw);
    struct kr_buf body = {.max = REBASE_MAX};
    int rc = kr_forward_take_body(fw, &body);

    if (rc == 0)
        rc = agent_rebase_start(&r->rebase, r->c, &r->who.rebase, &r->info, &body, &rebase_ops, r);
    kr_buf_deinit(&body);
    if (rc != 0)
        refuse(r, KR_CASE_INTERNAL, kr_bytes_str(kr_err_text(rc)), true);
}

static const struct kr_forward_ops forward_ops = {
    on_response, on_response_body, on_failed, on_finished, on_begun, on_gathered,
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

static bool method_allowed(const struct agent_request *r, struct kr_bytes m)
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
static int read_request(struct agent_request *r, struct kr_note *why)
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
    if (rc == 0 && r->who.rebase.subscription != 0 &&
        (r->upgrade || !r->info.is_resource || r->info.name.n == 0 || r->who.member_token.n != 0))
        rc = kr_note_set(why, KR_EPROTO, "a rebase of what is no object");
    r->is_watch = rc == 0 && !r->upgrade && kr_request_is_watch(&r->info);
    return rc;
}

static bool over(size_t now, uint32_t max)
{
    return max != 0 && now >= max;
}

/* The limits of the policy; requests under way count this one already. */
static bool has_room(struct agent_request *r)
{
    const struct agent_policy *p = r->c->policy;

    r->counted = r->upgrade ? &r->c->upgrades : r->is_watch ? &r->c->watches : NULL;
    if (over(r->c->requests - 1, p->max_requests) ||
        (r->counted != NULL && over(*r->counted, r->upgrade ? p->max_upgrades : p->max_watches))) {
        r->counted = NULL;
        return false;
    }
    if (r->counted != NULL)
        ++*r->counted;
    return true;
}

/* What the edge itself lets anybody do; else it has answered. */
static bool allowed(struct agent_request *r)
{
    struct agent_verdict verdict;

    agent_policy_check(r->c->policy, &r->info, r->upgrade, &verdict);
    memcpy(r->rule, verdict.rule, sizeof r->rule);
    if (!verdict.allowed)
        refuse(r, KR_CASE_AGENT_DENIED, kr_bytes_str(verdict.text), true);
    else if (!has_room(r))
        refuse(r, KR_CASE_OVERLOADED, KR_LIT("a limit of the agent's policy is reached"), true);
    else
        return true;
    return false;
}

/* It is known who asks. */
static void begin(struct agent_request *r)
{
    if (!agent_audit_begin(r)) {
        refuse(r, KR_CASE_AGENT_NO_AUDIT, (struct kr_bytes){NULL, 0}, true);
        return;
    }
    if (r->who.rebase.subscription == 0) {
        go(r);
        return;
    }
    r->fw.up_max = REBASE_MAX;
    kr_forward_gather(&r->fw);
}

static void on_member_verdict(struct agent_member_wait *w, int rc, struct kr_bytes user)
{
    struct agent_request *r = KR_CONTAINER_OF(w, struct agent_request, member);

    if (rc == 0) {
        r->who.user = kr_arena_copy(&r->arena, user); /* for logs and audit */
        begin(r);
    } else if (rc == KR_EDENIED) {
        refuse(r, KR_CASE_AGENT_UNAUTHORIZED, KR_LIT("the API server does not know the token"),
               true);
    } else if (rc == KR_EFULL || rc == KR_ENOMEM) {
        refuse(r, KR_CASE_OVERLOADED, KR_LIT("too many tokens to be judged"), true);
    } else {
        refuse(r, KR_CASE_API_UNREACHABLE, KR_LIT(": the token could not be judged"), true);
    }
}

/* Who asks: as the hub says, as the user's own token says, or as the API server says. */
static void identify(struct agent_request *r)
{
    struct agent_verified_clock clock = {r->c->sched->now_ms, r->c->sched->now_wall_ms};
    struct kr_note why = {""};

    if (r->who.member_token.n != 0) {
        if (r->c->member_tokens == NULL)
            r->c->member_tokens = agent_member_tokens_create(r->c);
        if (r->c->member_tokens == NULL)
            on_member_verdict(&r->member, KR_ENOMEM, r->who.user);
        else
            agent_member_tokens_judge(r->c->member_tokens, r->who.member_token, &r->member);
        return;
    }
    if (r->c->policy->identity == AGENT_VERIFIED &&
        agent_verified_user(r->c->policy, &clock, &r->who, &r->arena, &why) != 0)
        refuse(r, KR_CASE_AGENT_UNAUTHORIZED, kr_bytes_str(why.text), true);
    else
        begin(r);
}

void agent_request_start(struct agent_core *c, struct kr_exchange *ex)
{
    struct agent_request *r =
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
    r->member.on_verdict = on_member_verdict;
    kr_arena_init(&r->arena, 512, 8 * KR_HEAD_MAX);
    r->arena.wipe = true; /* a token may be in it */
    kr_timer_init(&r->deadline, on_deadline);
    kr_forward_init(&r->fw, &forward_ops);
    c->requests++;
    kr_metric_add(c->m_exchanges, 1);
    kr_forward_in(&r->fw, ex);
    if (read_request(r, &why) != 0) {
        refuse(r, KR_CASE_BAD_REQUEST, kr_bytes_str(why.text), true);
        return;
    }
    if (!allowed(r))
        return;
    ex->patient = r->info.long_running;
    if (r->upgrade)
        kr_timer_start(c->sched, &r->deadline, UPGRADE_MS);
    else if (r->who.deadline_ms != 0)
        kr_timer_start(c->sched, &r->deadline, (int64_t)r->who.deadline_ms + SLACK_MS);
    identify(r);
}
