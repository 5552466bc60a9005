/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/trust_audit.h"

#include <stdio.h>

#include "base/err.h"
#include "base/uuid.h"
#include "certs/audit_log.h"
#include "kube/audit_event.h"

#define NAME_MAX_TEXT HUB_TRUST_USER_MAX

static struct kr_bytes text_of(const char *s)
{
    return s != NULL ? kr_bytes_str(s) : (struct kr_bytes){NULL, 0};
}

static struct kr_bytes without_port(const char *address)
{
    struct kr_bytes b = text_of(address);
    size_t colon = kr_bytes_find(b, ':');

    if (b.n > 2 && b.p[0] == '[') /* [::1]:443 */
        return kr_bytes_of(b.p + 1, kr_bytes_find(b, ']') - 1);
    if (colon < b.n && kr_bytes_find(kr_bytes_skip(b, colon + 1), ':') == b.n - colon - 1)
        b.n = colon; /* one colon: a port stands behind it */
    return b;
}

/* metav1.StatusReason. */
static const char *reason_of(int code)
{
    switch (code) {
    case 400:
        return "BadRequest";
    case 403:
        return "Forbidden";
    case 404:
        return "NotFound";
    case 409:
        return "Conflict";
    case 429:
        return "TooManyRequests";
    case 503:
        return "ServiceUnavailable";
    default:
        return code >= 400 ? "InternalError" : NULL;
    }
}

static void write_request(struct hub_worker *w, const struct hub_trust_event *e, struct kr_buf *out)
{
    struct kr_request_info info = {
        .is_resource = true,
        .group = KR_LIT("kuberelay.io"),
        .version = KR_LIT("v1"),
        .resource = text_of(e->resource),
        .subresource = text_of(e->subresource),
        .name = text_of(e->name),
    };
    char self[NAME_MAX_TEXT];
    char text[KR_UUID_TEXT];
    uint8_t id[KR_UUID_SIZE];
    struct kr_audit_request a = {
        .uri = e->uri,
        .verb = text_of(e->verb),
        .user = {.name = text_of(e->user != NULL ? e->user : self)},
        .source = without_port(e->from),
        .info = &info,
        .received_wall_us = w->sched->now_wall_ms * 1000,
    };

    snprintf(self, sizeof self, "kuberelay:hub:%s", w->self.name);
    if (e->user == NULL)
        a.user.name = kr_bytes_str(self);
    kr_uuid_v4(kr_rand_u64(&w->rand), kr_rand_u64(&w->rand), id);
    kr_uuid_write(id, text);
    a.id = kr_bytes_str(text);
    kr_audit_request_write(&a, out);
}

void hub_trust_audit(struct hub_worker *w, const struct hub_trust_event *e)
{
    struct kr_buf request = {.max = KR_AUDIT_LINE_MAX};
    struct kr_buf line = {.max = KR_AUDIT_LINE_MAX};
    char generation[24] = "";
    struct kr_audit_note notes[] = {{"generation", {NULL, 0}}, {"peers", text_of(e->peers)}};
    struct kr_audit_facts f = {
        .stage = KR_AUDIT_COMPLETE,
        .wall_us = w->sched->now_wall_ms * 1000,
        .code = e->code,
        .reason = reason_of(e->code),
        .message = text_of(e->message),
        .cluster = text_of(e->cluster),
        .instance = text_of(e->instance),
        .forbid = e->code >= 400,
        .outcome = e->code >= 400 ? KR_AUDIT_NOT_FORWARDED : KR_AUDIT_COMPLETED,
        .notes = notes,
        .note_count = sizeof notes / sizeof notes[0],
    };

    if (w->audit == NULL)
        return;
    if (e->generation != 0)
        snprintf(generation, sizeof generation, "%llu", (unsigned long long)e->generation);
    notes[0].value = kr_bytes_str(generation);
    write_request(w, e, &request);
    if (kr_audit_event_write(kr_buf_bytes(&request), &f, &line) == 0)
        kr_audit_log_put(w->audit, &line);
    kr_buf_deinit(&line);
    kr_buf_deinit(&request);
}

bool hub_trust_audit_ready(const struct hub_worker *w, struct kr_note *why)
{
    if (kr_audit_log_allows(w->audit, 0))
        return true;
    kr_note_set(why, KR_EIO, "the audit log takes no lines");
    return false;
}

/* ---- agents and tokens ---- */

void hub_trust_audit_agent(struct hub_worker *w, const char *cluster, const char *instance,
                           struct hub_trust_event *e)
{
    char name[NAME_MAX_TEXT];

    snprintf(name, sizeof name, "%s:%s", cluster, instance);
    e->resource = "agents";
    e->cluster = cluster;
    e->instance = instance;
    if (cluster[0] != '\0')
        e->name = name;
    hub_trust_audit(w, e);
}

void hub_trust_audit_name(const struct kr_identity *id, char out[HUB_TRUST_USER_MAX])
{
    snprintf(out, HUB_TRUST_USER_MAX, "kuberelay:agent:%s:%s", id->name, id->instance);
}

void hub_trust_audit_burned(struct hub_worker *w, const struct hub_token *t)
{
    struct hub_trust_event e = {
        .verb = "update",
        .resource = "jointokens",
        .subresource = "burn",
        .name = t->id,
        .cluster = t->cluster,
        .code = 200,
        .message = "too many wrong secrets: it is worth nothing any more",
    };

    hub_trust_audit(w, &e);
}

/* ---- operators ---- */

void hub_trust_audit_order(struct hub_worker *w, struct hub_trust_event *e)
{
    e->user = "kuberelay:operator";
    hub_trust_audit(w, e);
}
