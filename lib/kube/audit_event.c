/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/audit_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/json.h"

static struct kr_bytes cut(struct kr_bytes v, size_t max)
{
    return kr_bytes_of(v.p, v.n < max ? v.n : max);
}

static void put_text(struct kr_json_out *w, const char *key, struct kr_bytes v)
{
    if (v.n != 0)
        kr_json_out_string(w, key, cut(v, KR_AUDIT_TEXT_MAX));
}

/* As Go writes a metav1.MicroTime. */
static void write_time(int64_t wall_us, char out[40])
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm = {0};

    gmtime_r(&seconds, &tm);
    snprintf(out, 40, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", (tm.tm_year + 1900) % 10000,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(wall_us % 1000000));
}

static void put_time(struct kr_json_out *w, const char *key, int64_t wall_us)
{
    char text[40];

    write_time(wall_us, text);
    kr_json_out_text(w, key, text);
}

static bool key_came_before(const struct kr_audit_user *u, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (kr_bytes_eq(u->extra[k].key, u->extra[i].key))
            return true;
    }
    return false;
}

/* A key stands once, with the values of all entries of that key. */
static void put_extra(struct kr_json_out *w, const struct kr_audit_user *u, size_t i)
{
    char key[KR_AUDIT_TEXT_MAX + 1];
    struct kr_bytes name = cut(u->extra[i].key, KR_AUDIT_TEXT_MAX);

    if (key_came_before(u, i))
        return;
    snprintf(key, sizeof key, "%.*s", (int)name.n, (const char *)name.p);
    kr_json_out_array(w, key);
    for (size_t k = i; k < u->extra_count; k++) {
        const struct kr_audit_extra *e = &u->extra[k];

        for (size_t v = 0; kr_bytes_eq(e->key, u->extra[i].key) && v < e->value_count; v++)
            kr_json_out_string(w, NULL, cut(e->values[v], KR_AUDIT_TEXT_MAX));
    }
    kr_json_out_end(w);
}

static void put_user(struct kr_json_out *w, const char *key, const struct kr_audit_user *u)
{
    kr_json_out_object(w, key);
    put_text(w, "username", u->name);
    put_text(w, "uid", u->uid);
    if (u->group_count != 0) {
        kr_json_out_array(w, "groups");
        for (size_t i = 0; i < u->group_count; i++)
            kr_json_out_string(w, NULL, cut(u->groups[i], KR_AUDIT_TEXT_MAX));
        kr_json_out_end(w);
    }
    if (u->extra_count != 0) {
        kr_json_out_object(w, "extra");
        for (size_t i = 0; i < u->extra_count; i++)
            put_extra(w, u, i);
        kr_json_out_end(w);
    }
    kr_json_out_end(w);
}

static void put_object(struct kr_json_out *w, const struct kr_request_info *ri)
{
    kr_json_out_object(w, "objectRef");
    put_text(w, "resource", ri->resource);
    put_text(w, "namespace", ri->ns);
    put_text(w, "name", ri->name);
    put_text(w, "apiGroup", ri->group);
    put_text(w, "apiVersion", ri->version);
    put_text(w, "subresource", ri->subresource);
    kr_json_out_end(w);
}

int kr_audit_request_write(const struct kr_audit_request *a, struct kr_buf *out)
{
    struct kr_buf text = {.max = KR_AUDIT_LINE_MAX};
    struct kr_json_out w;
    int rc;

    kr_json_out_init(&w, &text);
    kr_json_out_object(&w, NULL);
    put_text(&w, "auditID", a->id);
    kr_json_out_string(&w, "requestURI", cut(a->uri, KR_AUDIT_URI_MAX));
    kr_json_out_string(&w, "verb", cut(a->verb, KR_AUDIT_TEXT_MAX));
    put_user(&w, "user", &a->user);
    if (a->as.name.n != 0)
        put_user(&w, "impersonatedUser", &a->as);
    if (a->source.n != 0) {
        kr_json_out_array(&w, "sourceIPs");
        kr_json_out_string(&w, NULL, cut(a->source, KR_AUDIT_TEXT_MAX));
        kr_json_out_end(&w);
    }
    put_text(&w, "userAgent", a->user_agent);
    if (a->info != NULL && a->info->is_resource)
        put_object(&w, a->info);
    put_time(&w, "requestReceivedTimestamp", a->received_wall_us);
    rc = w.rc;
    if (rc == 0) /* without the brace in front */
        rc = kr_buf_append(out, kr_bytes_skip(kr_buf_bytes(&text), 1));
    kr_buf_deinit(&text);
    return rc;
}

/* ---- what changes ---- */

static int put_member(struct kr_buf *out, const char *key, struct kr_bytes v)
{
    int rc = kr_buf_printf(out, ",\"%s\":\"", key);

    if (rc == 0)
        rc = kr_json_escape(out, cut(v, KR_AUDIT_TEXT_MAX));
    return rc == 0 ? kr_buf_append_str(out, "\"") : rc;
}

static int put_annotation(struct kr_buf *out, const char *name, struct kr_bytes v)
{
    char key[64];

    if (v.n == 0)
        return 0;
    snprintf(key, sizeof key, "kuberelay.io/%s", name);
    return put_member(out, key, v);
}

static int put_status(struct kr_buf *out, const struct kr_audit_facts *f)
{
    int rc;

    if (f->code == 0)
        return 0;
    rc = kr_buf_append_str(out, ",\"responseStatus\":{\"metadata\":{}");
    if (rc == 0 && f->reason != NULL)
        rc = kr_buf_printf(out, ",\"status\":\"Failure\",\"reason\":\"%s\"", f->reason);
    if (rc == 0 && f->message.n != 0)
        rc = put_member(out, "message", f->message);
    return rc == 0 ? kr_buf_printf(out, ",\"code\":%d}", f->code) : rc;
}

static int put_end(struct kr_buf *out, const struct kr_audit_facts *f)
{
    static const char *const outcomes[] = {"completed", "not-forwarded", "unknown"};

    if (f->stage == KR_AUDIT_RECEIVED)
        return 0;
    return kr_buf_printf(out,
                         ",\"kuberelay.io/outcome\":\"%s\",\"kuberelay.io/bytes-in\":\"%" PRIu64
                         "\",\"kuberelay.io/bytes-out\":\"%" PRIu64 "\"",
                         outcomes[f->outcome], f->bytes_in, f->bytes_out);
}

int kr_audit_event_write(struct kr_bytes request, const struct kr_audit_facts *f,
                         struct kr_buf *out)
{
    static const char *const stages[] = {"RequestReceived", "ResponseStarted", "ResponseComplete",
                                         "Panic"};
    char time[40];
    int rc;

    write_time(f->wall_us, time);
    rc = kr_buf_printf(out,
                       "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":"
                       "\"Metadata\",\"stage\":\"%s\",\"stageTimestamp\":\"%s\",",
                       stages[f->stage], time);
    if (rc == 0)
        rc = kr_buf_append(out, request);
    if (rc == 0)
        rc = put_status(out, f);
    if (rc == 0)
        rc = kr_buf_printf(out, ",\"annotations\":{\"kuberelay.io/decision\":\"%s\"",
                           f->forbid ? "forbid" : "allow");
    if (rc == 0)
        rc = put_annotation(out, "cluster", f->cluster);
    if (rc == 0)
        rc = put_annotation(out, "rule", f->rule);
    if (rc == 0)
        rc = put_annotation(out, "agent-instance", f->instance);
    if (rc == 0)
        rc = put_annotation(out, "request-uid", f->request_uid);
    for (size_t i = 0; i < f->note_count && rc == 0; i++)
        rc = put_annotation(out, f->notes[i].name, f->notes[i].value);
    return rc == 0 ? put_end(out, f) : rc;
}
