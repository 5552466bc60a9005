/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/access.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/authn.h"

#define EVERY_MS 60000
#define SLACK_MS 500 /* behind an expiry */

struct hub_access {
    struct hub_worker *w;
    struct hub_access_owner owner;
    struct kr_timer next;
    struct kr_task again;
    int64_t next_wall_ms;
};

/* A stream may live for hours: only what a rule asks for is kept of its request. */
struct hub_stay {
    struct kr_request_info info;
    struct kr_bytes cluster;
    bool as_asked;
    struct kr_bytes user; /* whom the client acts as */
    struct kr_bytes *groups;
    size_t group_count;
};

/* ---- the decision ---- */

/* Whether projects decide at all. */
static bool by_projects(const struct hub_worker *w)
{
    return w->options->authorization == HUB_AUTHORIZATION_PROJECTS ||
           hub_projects_any(w->fleet_config);
}

static enum hub_verdict decide(const struct hub_worker *w, const struct hub_question *q,
                               char rule[HUB_RULE_MAX])
{
    struct hub_decision d;

    if (!by_projects(w)) {
        snprintf(rule, HUB_RULE_MAX, "open");
        return HUB_ALLOWED;
    }
    hub_projects_decide(w->fleet_config, q, &d);
    snprintf(rule, HUB_RULE_MAX, "%s", d.allowed ? d.rule : "none");
    if (d.allowed)
        return HUB_ALLOWED;
    return d.sees_cluster ? HUB_FORBIDDEN : HUB_UNKNOWN_TO;
}

/* What the fleet view shows is not asked of projects alone: readers see it, too. */
static bool fleet_shows(const struct hub_worker *w, const struct hub_question *q)
{
    struct hub_reader who = q->who;
    struct hub_reader_sight *sight;
    bool nothing = true;

    who.watches = kr_bytes_is(q->info->verb, "watch");
    if (w->fleet_config == NULL || !q->info->is_resource || q->info->subresource.n != 0 ||
        q->member_token || !(who.watches || kr_bytes_is(q->info->verb, "list")))
        return false;
    sight = hub_fleet_sight(w->fleet_config, &who, q->info->group, q->info->resource, &nothing);
    if (sight != NULL && q->info->ns.n != 0)
        nothing = !hub_reader_sight_shows(sight, q->info->ns);
    hub_reader_sight_destroy(sight);
    return !nothing;
}

enum hub_verdict hub_access_ask(const struct hub_worker *w, const struct hub_question *q,
                                char *rule)
{
    if (!kr_bytes_is(q->cluster, "*"))
        return decide(w, q, rule);
    snprintf(rule, HUB_RULE_MAX, "%s", fleet_shows(w, q) ? "fleet" : "none");
    return fleet_shows(w, q) ? HUB_ALLOWED : HUB_FORBIDDEN;
}

static void ask_as(const struct hub_caller *caller, struct hub_question *q)
{
    q->who.user = caller->user;
    q->who.groups = caller->groups;
    q->who.group_count = caller->group_count;
    q->member_token = caller->by == HUB_BY_MEMBER_TOKEN;
}

enum hub_verdict hub_access_decide(struct hub_request *r)
{
    struct hub_question q = {.cluster = r->cluster_path.name, .info = &r->info};

    if (r->cluster_path.fleet) { /* object by object, by fleet_sight.c */
        snprintf(r->rule, sizeof r->rule, "fleet");
        return HUB_ALLOWED;
    }
    ask_as(r->caller, &q);
    if (r->as.asked) {
        q.member_token = false;
        q.who = (struct hub_reader){
            .user = r->as.user, .groups = r->as.groups, .group_count = r->as.group_count};
    }
    return decide(r->w, &q, r->rule);
}

/* ---- what is kept of a stream ---- */

static struct kr_bytes put(uint8_t **at, struct kr_bytes in)
{
    struct kr_bytes out = {*at, in.n};

    if (in.n != 0)
        memcpy(*at, in.p, in.n);
    *at += in.n;
    return out;
}

static size_t texts_size(const struct hub_request *r)
{
    const struct kr_request_info *i = &r->info;
    size_t n = i->verb.n + i->group.n + i->resource.n + i->subresource.n + i->ns.n + i->path.n +
               r->cluster_path.name.n + r->as.user.n;

    for (size_t g = 0; g < r->as.group_count; g++)
        n += r->as.groups[g].n;
    return n;
}

static void put_info(const struct kr_request_info *from, struct kr_request_info *to, uint8_t **at)
{
    *to = (struct kr_request_info){
        .class = from->class,
        .is_resource = from->is_resource,
        .read_only = from->read_only,
        .long_running = from->long_running,
        .connects = from->connects,
        .proxied = from->proxied,
        .verb = put(at, from->verb),
        .group = put(at, from->group),
        .resource = put(at, from->resource),
        .subresource = put(at, from->subresource),
        .ns = put(at, from->ns),
        .path = put(at, from->path),
    };
}

static void expect(struct hub_access *a, const struct hub_caller *caller)
{
    int64_t at = caller->expires_wall_ms + SLACK_MS;
    int64_t now = a->w->sched->now_wall_ms;

    if (caller->expires_wall_ms == 0 || at >= a->next_wall_ms)
        return;
    a->next_wall_ms = at;
    kr_timer_start(a->w->sched, &a->next, at > now ? at - now : 0);
}

void hub_access_keep(struct hub_request *r)
{
    size_t groups = r->as.asked ? r->as.group_count : 0;
    size_t head = sizeof(struct hub_stay) + groups * sizeof(struct kr_bytes);
    struct hub_stay *s;
    uint8_t *at;

    if (r->w->access == NULL)
        return;
    expect(r->w->access, r->caller);
    s = malloc(head + texts_size(r));
    r->stay = s;
    if (s == NULL)
        return; /* it is ended when it should be judged again */
    at = (uint8_t *)s + head;
    *s = (struct hub_stay){.groups = (struct kr_bytes *)(s + 1), .as_asked = r->as.asked};
    put_info(&r->info, &s->info, &at);
    s->cluster = put(&at, r->cluster_path.name);
    s->user = put(&at, r->as.user);
    for (; s->group_count < groups; s->group_count++)
        s->groups[s->group_count] = put(&at, r->as.groups[s->group_count]);
}

void hub_access_forget(struct hub_request *r)
{
    free(r->stay);
    r->stay = NULL;
}

/* ---- judging again ---- */

static const char *loss_of(struct hub_request *r)
{
    struct hub_question q = {.cluster = {NULL, 0}};
    char rule[HUB_RULE_MAX];
    struct hub_stay *s = r->stay;

    if (hub_caller_expired(r->caller, r->w->sched->now_wall_ms))
        return "the credential has expired";
    if (!hub_authn_still(r->w->authn, r->caller))
        return "the credential is not good any more";
    if (s == NULL)
        return "out of memory";
    q.cluster = s->cluster;
    q.info = &s->info;
    ask_as(r->caller, &q);
    if (s->as_asked) {
        q.member_token = false;
        q.who = (struct hub_reader){
            .user = s->user, .groups = s->groups, .group_count = s->group_count};
    }
    return decide(r->w, &q, rule) == HUB_ALLOWED ? NULL : "no project allows it any more";
}

static void look_at(struct hub_access *a, struct hub_request *r)
{
    const char *loss;

    if (!r->long_running || !r->fw.response_begun || r->caller == NULL)
        return;
    loss = loss_of(r);
    if (loss == NULL) {
        expect(a, r->caller);
        return;
    }
    KR_LOG_AT(a->w->log, KR_LOG_INFO, "stream-ended", KR_S("user", hub_caller_name(r->caller)),
              KR_S("cluster", r->cluster != NULL ? r->cluster->name : ""),
              KR_S("verb", r->verb_label), KR_S("reason", loss), KR_S("id", r->audit_id));
    hub_relay_lose(r, loss);
}

static void look(struct hub_access *a)
{
    struct hub_worker *w = a->w;

    a->next_wall_ms = w->sched->now_wall_ms + EVERY_MS;
    kr_timer_start(w->sched, &a->next, EVERY_MS);
    KR_LIST_FOREACH_SAFE(node, &w->live)
    {
        look_at(a, KR_CONTAINER_OF(node, struct hub_request, link));
    }
    a->owner.on_look(a->owner.owner);
}

static void on_next(struct kr_timer *t)
{
    look(KR_CONTAINER_OF(t, struct hub_access, next));
}

static void on_again(struct kr_task *t)
{
    look(KR_CONTAINER_OF(t, struct hub_access, again));
}

void hub_access_look_again(struct hub_worker *w)
{
    if (w->access != NULL)
        kr_task_post(w->sched, &w->access->again);
}

void hub_access_expect(struct hub_worker *w, const struct hub_caller *caller)
{
    if (w->access != NULL)
        expect(w->access, caller);
}

int hub_access_create(struct hub_worker *w, const struct hub_access_owner *owner,
                      struct hub_access **out, struct kr_note *why)
{
    struct hub_access *a = calloc(1, sizeof *a);

    *out = NULL;
    if (a == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    a->w = w;
    a->owner = *owner;
    kr_timer_init(&a->next, on_next);
    kr_task_init(&a->again, on_again);
    a->next_wall_ms = w->sched->now_wall_ms + EVERY_MS;
    kr_timer_start(w->sched, &a->next, EVERY_MS);
    *out = a;
    return 0;
}

void hub_access_destroy(struct hub_access *a)
{
    if (a == NULL)
        return;
    kr_timer_stop(a->w->sched, &a->next);
    kr_task_cancel(&a->again);
    a->w->access = NULL;
    free(a);
}
