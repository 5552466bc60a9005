/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_review.h"

#include "base/err.h"
#include "base/json.h"
#include "hub/access.h"
#include "hub/fleet_answer.h"
#include "hub/review_body.h"
#include "kube/json_scan.h"
#include "kube/proto_body.h"

#define BODY_MAX (64u * 1024)

static bool is_rules_review(const struct hub_request *r)
{
    return kr_bytes_is(r->info.resource, "selfsubjectrulesreviews");
}

bool hub_fleet_review_begin(struct hub_request *r)
{
    const struct kr_request_info *i = &r->info;

    if (!i->is_resource || i->parts != 1 || !kr_bytes_is(i->group, "authorization.k8s.io") ||
        !(kr_bytes_is(i->resource, "selfsubjectaccessreviews") || is_rules_review(r)) ||
        !kr_bytes_is(i->verb, "create"))
        return false;
    r->review = true;
    r->fw.up_max = BODY_MAX;
    kr_timer_start(r->w->sched, &r->deadline, r->w->options->request_timeout_ms);
    kr_forward_gather(&r->fw);
    return true;
}

static struct kr_bytes text_of(const struct kr_json *object, const char *name)
{
    struct kr_bytes v = {NULL, 0};

    kr_json_string(kr_json_get(object, name), &v);
    return v;
}

/* "*" asks for everything, which the fleet view never gives. */
static void fill_info(const struct kr_json *spec, struct kr_request_info *info)
{
    const struct kr_json *a = kr_json_get(spec, "resourceAttributes");

    info->is_resource = a != NULL;
    info->class = a != NULL ? KR_REQUEST_RESOURCE : KR_REQUEST_OTHER;
    info->verb = text_of(a, "verb");
    info->group = text_of(a, "group");
    info->resource = text_of(a, "resource");
    info->subresource = text_of(a, "subresource");
    info->ns = text_of(a, "namespace");
    info->name = text_of(a, "name");
}

static struct hub_reader reader_of(const struct hub_request *r)
{
    if (r->as.asked)
        return (struct hub_reader){r->as.user, r->as.groups, r->as.group_count, false};
    return (struct hub_reader){r->caller->user, r->caller->groups, r->caller->group_count, false};
}

static enum hub_verdict judge(struct hub_request *r, const struct kr_json *spec, char *rule)
{
    struct kr_request_info info = {.is_resource = false};
    struct hub_question q = {.who = reader_of(r), .cluster = KR_LIT("*"), .info = &info};

    fill_info(spec, &info);
    return hub_access_ask(r->w, &q, rule);
}

static int write_answer(struct kr_bytes spec, bool allowed, const char *rule, struct kr_buf *out)
{
    struct kr_json_out w;

    kr_json_out_init(&w, out);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "kind", "SelfSubjectAccessReview");
    kr_json_out_text(&w, "apiVersion", "authorization.k8s.io/v1");
    kr_json_out_object(&w, "metadata");
    kr_json_out_end(&w);
    kr_json_out_raw(&w, "spec", spec);
    kr_json_out_object(&w, "status");
    kr_json_out_bool(&w, "allowed", allowed);
    kr_json_out_text(&w, "reason", allowed ? rule : HUB_NOT_SHOWN);
    kr_json_out_end(&w);
    kr_json_out_end(&w);
    return w.rc;
}

/* ---- SelfSubjectRulesReview (kubectl auth can-i --list) ---- */

static void put_rule(struct kr_json_out *w, const struct hub_reader_rights *may,
                     struct kr_bytes resource, struct kr_bytes group)
{
    kr_json_out_object(w, NULL);
    kr_json_out_array(w, "verbs");
    if (may->list)
        kr_json_out_text(w, NULL, "list");
    if (may->watch)
        kr_json_out_text(w, NULL, "watch");
    kr_json_out_end(w);
    kr_json_out_array(w, "apiGroups");
    kr_json_out_string(w, NULL, group);
    kr_json_out_end(w);
    kr_json_out_array(w, "resources");
    kr_json_out_string(w, NULL, resource);
    kr_json_out_end(w);
    kr_json_out_end(w);
}

static void put_rights(struct kr_json_out *w, const struct hub_reader_rights *may)
{
    if (may->all)
        put_rule(w, may, KR_LIT("*"), KR_LIT("*"));
    for (size_t i = 0; i < may->resources->n; i++) {
        struct kr_bytes name = kr_bytes_str(may->resources->v[i]);
        size_t dot = kr_bytes_find(name, '.');

        if (!kr_bytes_is(name, "*") && kr_bytes_find(name, '/') == name.n)
            put_rule(w, may, kr_bytes_of(name.p, dot),
                     kr_bytes_skip(name, dot < name.n ? dot + 1 : dot));
    }
}

/* True: there is a star, which does not mean what must be named. */
static bool put_rules(const struct hub_request *r, struct kr_bytes ns, struct kr_json_out *w)
{
    struct hub_reader who = reader_of(r);
    struct hub_reader_rights may;
    bool star = false;

    kr_json_out_array(w, "resourceRules");
    for (size_t i = 0; r->w->fleet_config != NULL && r->caller->by != HUB_BY_MEMBER_TOKEN &&
                       hub_fleet_rights(r->w->fleet_config, &who, i, ns, &may);
         i++) {
        if (!may.list && !may.watch)
            continue;
        star = star || may.all;
        put_rights(w, &may);
    }
    kr_json_out_end(w);
    return star;
}

static int write_rules(const struct hub_request *r, const struct kr_json *spec, struct kr_bytes raw,
                       struct kr_buf *out)
{
    struct kr_json_out w;
    bool star;

    kr_json_out_init(&w, out);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "kind", "SelfSubjectRulesReview");
    kr_json_out_text(&w, "apiVersion", "authorization.k8s.io/v1");
    kr_json_out_object(&w, "metadata");
    kr_json_out_end(&w);
    kr_json_out_raw(&w, "spec", raw);
    kr_json_out_object(&w, "status");
    star = put_rules(r, text_of(spec, "namespace"), &w);
    kr_json_out_array(&w, "nonResourceRules");
    kr_json_out_end(&w);
    kr_json_out_bool(&w, "incomplete", star);
    if (star)
        kr_json_out_text(&w, "evaluationError", "* does not mean what has to be named: Secrets");
    kr_json_out_end(&w);
    kr_json_out_end(&w);
    return w.rc;
}

static int review(struct hub_request *r, struct kr_bytes body, struct kr_buf *out)
{
    struct kr_bytes raw;
    struct kr_json *doc;
    const struct kr_json *spec;
    char rule[HUB_RULE_MAX];
    int rc = kr_json_parse(body, &doc, NULL);

    if (rc != 0)
        return rc;
    spec = kr_json_get(doc, "spec");
    if (!kr_json_is_object(spec) || !kr_scan_find(body, "spec", &raw))
        rc = KR_EPROTO;
    else if (is_rules_review(r))
        rc = write_rules(r, spec, raw, out);
    else
        rc = write_answer(raw, judge(r, spec, rule) == HUB_ALLOWED, rule, out);
    kr_json_destroy(doc);
    return rc;
}

void hub_fleet_review_gathered(struct hub_request *r)
{
    struct kr_buf body = {.max = BODY_MAX};
    struct kr_buf json = {.max = 2 * BODY_MAX};
    struct kr_buf out = {.max = 4 * BODY_MAX};
    struct hub_document d = {.code = 201, .type = "application/json"};
    int rc = kr_forward_take_body(&r->fw, &body);
    bool packed = rc == 0 && kr_proto_body_is(kr_buf_bytes(&body));

    if (packed)
        rc = is_rules_review(r) ? hub_rules_body_to_json(kr_buf_bytes(&body), &json)
                                : hub_review_body_to_json(kr_buf_bytes(&body), &json);
    if (rc == 0)
        rc = review(r, kr_buf_bytes(packed ? &json : &body), &out);
    kr_buf_deinit(&body);
    kr_buf_deinit(&json);
    if (rc != 0) {
        hub_request_refuse(r, KR_CASE_UNREADABLE_BODY, KR_LIT("a review in JSON or protobuf"));
    } else {
        d.body = kr_buf_bytes(&out);
        hub_fleet_document(r, kr_forward_release(&r->fw), &d);
    }
    kr_buf_deinit(&out);
}
