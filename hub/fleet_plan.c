/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_plan.h"

#include <stdio.h>

#include "base/err.h"
#include "kube/injected.h"
#include "kube/proto_body.h"

#define JSON_PATCH "application/json-patch+json"
#define APPLY_YAML "application/apply-patch+yaml"

enum form {
    FORM_JSON,
    FORM_JSON_OR_YAML, /* an apply patch */
    FORM_PROTO,
    FORM_OTHER, /* nothing that is read here */
};

/* ---- what the body is ---- */

static struct kr_bytes media_type(struct kr_bytes type)
{
    type.n = kr_bytes_find(type, ';');
    while (type.n != 0 && type.p[type.n - 1] == ' ')
        type.n--;
    return type;
}

static enum form patch_form(struct kr_bytes type, enum kr_body_kind *kind)
{
    if (kr_bytes_eq_fold(type, KR_LIT(JSON_PATCH))) {
        *kind = KR_BODY_JSON_PATCH;
        return FORM_JSON;
    }
    if (kr_bytes_eq_fold(type, KR_LIT(APPLY_YAML)))
        return FORM_JSON_OR_YAML;
    return kr_bytes_eq_fold(type, KR_LIT("application/merge-patch+json")) ||
                   kr_bytes_eq_fold(type, KR_LIT("application/strategic-merge-patch+json"))
               ? FORM_JSON
               : FORM_OTHER;
}

static enum form form_of(const struct hub_plan_ask *ask, enum kr_body_kind *kind)
{
    struct kr_bytes type = media_type(ask->content_type);

    *kind = KR_BODY_OBJECT;
    if (kr_bytes_is(ask->verb, "patch"))
        return patch_form(type, kind);
    if (kr_bytes_is(ask->verb, "delete"))
        *kind = KR_BODY_DELETE_OPTIONS;
    if (kr_bytes_eq_fold(type, KR_LIT(KR_PROTO_MEDIA_TYPE)))
        return FORM_PROTO;
    return type.n == 0 || kr_bytes_eq_fold(type, KR_LIT("application/json")) ? FORM_JSON
                                                                             : FORM_OTHER;
}

static bool occurs(struct kr_bytes what, struct kr_bytes in)
{
    return in.n >= what.n && memmem(in.p, in.n, what.p, what.n) != NULL;
}

/* A subresource that is written as the whole object (scale is a kind of its own). */
static bool is_whole_object(struct kr_bytes subresource)
{
    static const char *const names[] = {"",       "status",   "ephemeralcontainers",
                                        "resize", "approval", "finalize"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kr_bytes_is(subresource, names[i]))
            return true;
    }
    return false;
}

/* ---- what becomes of it ---- */

static void refuse(struct hub_plan *out, enum hub_plan_step step, const char *why)
{
    out->step = step;
    kr_note_set(&out->why, 0, "%s", why);
}

/* Whether the version that is in the body is one that this hub gave out for this object before. */
static bool is_old(const struct hub_plan_ask *ask, const struct kr_write_body *b)
{
    uint64_t revision;

    return ask->revision != 0 && b->version_count == 0 && b->foreign.n != 0 &&
           !kr_bytes_eq(b->foreign, ask->origin) &&
           kr_bytes_to_u64(b->foreign, UINT64_MAX, &revision) &&
           hub_revision_is_ours(ask->given_out, revision);
}

static void judge(const struct hub_plan_ask *ask, struct hub_plan *out)
{
    const struct kr_write_body *b = &out->body;
    bool is_put = kr_bytes_is(ask->verb, "update");
    bool lossy_put = is_put && ask->lossy && is_whole_object(ask->subresource);

    if (is_old(ask, b))
        out->step = HUB_PLAN_CONFLICT;
    else if (b->version_count == 0 && is_put && b->slimmed && ask->revision != 0)
        refuse(out, HUB_PLAN_LOSSY,
               "it carries no resourceVersion of the fleet view, so that it is not known what was "
               "changed");
    else if (b->version_count == 0)
        out->step = b->injected ? HUB_PLAN_EDIT : HUB_PLAN_PASS;
    else if (lossy_put && out->is_proto)
        refuse(out, HUB_PLAN_UNREADABLE,
               "JSON, as a PUT on an object of which the fleet view has only parts must be (a "
               "typed client of Go: ContentType \"application/json\"); a PATCH passes too");
    else
        out->step = lossy_put ? HUB_PLAN_PATCH : HUB_PLAN_EDIT;
}

/* Written in a form that is not read here, it cannot go on with what it has from the fleet view. */
static void judge_unread(bool has_version, struct kr_bytes body, struct hub_plan *out)
{
    if (has_version || occurs(KR_LIT(KR_NOTE_VERSION), body))
        refuse(out, HUB_PLAN_UNREADABLE,
               "JSON or protobuf, as a write that was built on the fleet view must be");
}

static void read_body(const struct hub_plan_ask *ask, enum kr_body_kind kind,
                      struct kr_bytes revision, struct hub_plan *out)
{
    int rc = out->is_proto ? kr_proto_body_read(kind, ask->body, revision, &out->body, &out->why)
                           : kr_write_body_read(kind, ask->body, revision, &out->body, &out->why);

    if (rc != 0)
        out->step = HUB_PLAN_BAD;
    else
        judge(ask, out);
}

void hub_plan_write(const struct hub_plan_ask *ask, struct hub_plan *out)
{
    char text[24] = "";
    struct kr_bytes revision;
    enum kr_body_kind kind;
    enum form form = form_of(ask, &kind);
    bool has_version;

    *out = (struct hub_plan){.step = HUB_PLAN_PASS, .is_proto = form == FORM_PROTO};
    if (ask->revision != 0)
        snprintf(text, sizeof text, "%llu", (unsigned long long)ask->revision);
    revision = kr_bytes_str(text);
    has_version = revision.n != 0 && occurs(revision, ask->body);
    if (!has_version && !occurs(KR_LIT("kuberelay.io"), ask->body))
        return;
    if ((form == FORM_JSON || form == FORM_JSON_OR_YAML) &&
        kr_scan_check(ask->body, KR_SCAN_DEPTH_MAX, NULL) != 0) {
        if (form == FORM_JSON)
            return; /* the API server refuses it itself */
        form = FORM_OTHER;
    }
    if (form == FORM_OTHER)
        judge_unread(has_version, ask->body, out);
    else
        read_body(ask, kind, revision, out);
}
