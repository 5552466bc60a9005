/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/counters.h"
#include "base/err.h"
#include "base/uuid.h"
#include "certs/audit_log.h"
#include "kube/audit_event.h"

struct agent_audit_entry {
    enum kr_audit_outcome outcome;
    bool settled; /* the outcome is known */
    bool forbid;
    const char *reason;
    char rule[sizeof((struct agent_verdict *)NULL)->rule];
    char uid[KR_UUID_TEXT];
    struct kr_buf text; /* of kr_audit_request_write */
};

int agent_audit_open(struct agent_core *c, struct kr_note *why)
{
    struct kr_audit_log_config cfg = {
        .options = &c->options->audit,
        .sched = c->sched,
        .log = c->log,
        .lines = kr_metrics_series(c->metrics, AGENT_AUDIT_LINES, NULL, 0),
        .lost = kr_metrics_series(c->metrics, AGENT_AUDIT_LOST, NULL, 0),
        .failing = kr_metrics_series(c->metrics, AGENT_AUDIT_FAILING, NULL, 0),
    };

    return kr_audit_log_open(&c->audit, &cfg, why);
}

/* ---- entries ---- */

static void entry_free(struct agent_audit_entry *e)
{
    kr_buf_deinit(&e->text);
    free(e);
}

static struct agent_audit_entry *entry_make(const struct kr_audit_request *a, const uint8_t uid[16])
{
    struct agent_audit_entry *e = calloc(1, sizeof *e);

    if (e == NULL)
        return NULL;
    kr_uuid_write(uid, e->uid);
    kr_buf_init(&e->text, KR_AUDIT_LINE_MAX);
    if (kr_audit_request_write(a, &e->text) == 0)
        return e;
    entry_free(e);
    return NULL;
}

struct counts {
    uint64_t in;
    uint64_t out;
};

static int write_line(struct agent_core *c, const struct agent_audit_entry *e,
                      enum kr_audit_stage stage, int code, struct counts n)
{
    struct kr_audit_facts f = {
        .stage = stage,
        .wall_us = c->sched->now_wall_ms * 1000,
        .code = code,
        .reason = e->reason,
        .cluster = kr_bytes_str(c->self.name),
        .forbid = e->forbid,
        .rule = kr_bytes_str(e->rule),
        .instance = kr_bytes_str(c->self.instance),
        .request_uid = kr_bytes_str(e->uid),
        .outcome = e->outcome,
        .bytes_in = n.in,
        .bytes_out = n.out,
    };
    struct kr_buf line = {.max = KR_AUDIT_LINE_MAX};

    kr_audit_event_write(kr_buf_bytes(&e->text), &f, &line);
    return kr_audit_log_put(c->audit, &line);
}

/* ---- a relayed request ---- */

static int write_request(struct agent_request *r, struct kr_arena *arena,
                         struct agent_audit_entry **out)
{
    const struct kr_head *h = &r->fw.in->head;
    struct kr_audit_extra *extra =
        kr_arena_alloc(arena, (r->who.extra_count + 1) * sizeof(struct kr_audit_extra));
    struct kr_audit_request a = {
        .id = kr_head_get(h, KR_LIT("audit-id")),
        .uri = h->path,
        .verb = r->info.target.n != 0 ? r->info.verb : h->method,
        .user = {r->who.user, r->who.uid, r->who.groups, r->who.group_count, extra,
                 r->who.extra_count},
        .source = kr_head_get(h, KR_LIT("x-forwarded-for")),
        .user_agent = kr_head_get(h, KR_LIT("user-agent")),
        .info = &r->info,
        .received_wall_us = r->c->sched->now_wall_ms * 1000,
    };

    if (extra == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < r->who.extra_count; i++)
        extra[i] = (struct kr_audit_extra){r->who.extra[i].key, r->who.extra[i].values,
                                           r->who.extra[i].value_count};
    *out = entry_make(&a, r->who.request_id);
    return *out != NULL ? 0 : KR_ENOMEM;
}

static struct agent_audit_entry *entry_of(struct agent_request *r)
{
    struct kr_arena arena;

    if (r->audit != NULL || r->c->audit == NULL || r->fw.in == NULL)
        return r->audit;
    kr_arena_init(&arena, 512, 1u << 20);
    if (write_request(r, &arena, &r->audit) == 0)
        memcpy(r->audit->rule, r->rule, sizeof r->rule);
    kr_arena_deinit(&arena);
    return r->audit;
}

static struct counts counts_of(const struct agent_request *r)
{
    return (struct counts){r->fw.up_bytes, r->fw.down_bytes};
}

bool agent_audit_begin(struct agent_request *r)
{
    struct agent_audit_entry *e = entry_of(r);
    int rc = KR_ENOMEM;

    if (r->c->audit == NULL || (r->info.read_only && !r->info.connects))
        return true;
    if (e != NULL)
        rc = write_line(r->c, e, KR_AUDIT_RECEIVED, 0, counts_of(r));
    return kr_audit_log_allows(r->c->audit, rc);
}

void agent_audit_refused(struct agent_request *r, enum kr_case which, bool not_sent)
{
    struct agent_audit_entry *e = entry_of(r);
    struct kr_case_facts none = {0};
    struct kr_case_answer answer = {0};

    if (e == NULL)
        return;
    kr_case_write(which, &none, &answer, NULL, NULL);
    e->reason = answer.reason;
    e->forbid = which == KR_CASE_AGENT_DENIED || which == KR_CASE_AGENT_UNAUTHORIZED;
    e->outcome = not_sent          ? KR_AUDIT_NOT_FORWARDED
                 : r->verdict >= 0 ? KR_AUDIT_COMPLETED
                                   : KR_AUDIT_UNKNOWN;
    e->settled = true;
}

void agent_audit_begun(struct agent_request *r)
{
    if (r->audit != NULL && r->info.long_running)
        write_line(r->c, r->audit, KR_AUDIT_STARTED, r->code, counts_of(r));
}

void agent_audit_end(struct agent_request *r)
{
    struct agent_audit_entry *e = r->audit;

    if (e == NULL)
        return;
    if (!e->settled && r->code == 0)
        e->outcome = r->attempts == 0 ? KR_AUDIT_NOT_FORWARDED : KR_AUDIT_UNKNOWN;
    /* 499: the hub gave it up before it had an answer */
    write_line(r->c, e, KR_AUDIT_COMPLETE, r->code != 0 ? r->code : 499, counts_of(r));
    entry_free(e);
    r->audit = NULL;
}

/* ---- subscriptions ---- */

struct agent_audit_entry *agent_audit_sync(struct agent_core *c, const char *replica,
                                           struct kr_bytes group, struct kr_bytes version,
                                           struct kr_bytes resource,
                                           const struct agent_verdict *denied)
{
    struct kr_request_info info = {
        .is_resource = true, .group = group, .version = version, .resource = resource};
    struct kr_audit_request a = {
        .uri = KR_LIT("/kuberelay.v1.Agent/Sync"),
        .verb = KR_LIT("watch"),
        .user = {.name = kr_bytes_str(replica)},
        .info = &info,
        .received_wall_us = c->sched->now_wall_ms * 1000,
    };
    struct agent_audit_entry *e;
    char id[KR_UUID_TEXT];
    uint8_t uid[KR_UUID_SIZE];

    if (c->audit == NULL)
        return NULL;
    kr_uuid_v4(kr_rand_u64(&c->rand), kr_rand_u64(&c->rand), uid);
    kr_uuid_write(uid, id);
    a.id = kr_bytes_str(id);
    e = entry_make(&a, uid);
    if (e == NULL)
        return NULL;
    if (denied == NULL) {
        write_line(c, e, KR_AUDIT_STARTED, 200, (struct counts){0, 0});
        return e;
    }
    e->forbid = true;
    e->reason = "Forbidden";
    e->outcome = KR_AUDIT_NOT_FORWARDED;
    snprintf(e->rule, sizeof e->rule, "%s", denied->rule);
    write_line(c, e, KR_AUDIT_COMPLETE, 403, (struct counts){0, 0});
    entry_free(e);
    return NULL;
}

void agent_audit_sync_end(struct agent_core *c, struct agent_audit_entry *e)
{
    if (e == NULL)
        return;
    write_line(c, e, KR_AUDIT_COMPLETE, 200, (struct counts){0, 0});
    entry_free(e);
}
