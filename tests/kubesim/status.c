/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

void sim_resource_name(const struct sim_kind *k, char out[128])
{
    snprintf(out, 128, "%s%s%s", k->plural, k->group[0] != '\0' ? "." : "", k->group);
}

static void add_details(struct json_object *v, const struct sim_failure *f)
{
    struct json_object *d;

    if (f->empty_details)
        sim_json_child(v, "details");
    if (f->kind == NULL && f->name == NULL && f->cause_message == NULL && f->retry_after == 0)
        return;
    d = sim_json_child(v, "details");
    if (f->name != NULL && f->name[0] != '\0')
        sim_json_set_str(d, "name", f->name);
    if (f->kind != NULL && f->kind->group[0] != '\0')
        sim_json_set_str(d, "group", f->kind->group);
    if (f->kind != NULL)
        sim_json_set_str(d, "kind", f->kind_name ? f->kind->kind : f->kind->plural);
    if (f->cause_message != NULL) {
        struct json_object *causes = json_object_new_array(), *one = json_object_new_object();

        if (f->cause_reason != NULL)
            sim_json_set_str(one, "reason", f->cause_reason);
        sim_json_set_str(one, "message", f->cause_message);
        if (f->cause_field != NULL)
            sim_json_set_str(one, "field", f->cause_field);
        json_object_array_add(causes, one);
        sim_json_set(d, "causes", causes);
    }
    if (f->retry_after != 0)
        sim_json_set_int(d, "retryAfterSeconds", f->retry_after);
}

struct json_object *sim_status_tree(const struct sim_failure *f, const char *message)
{
    struct json_object *v = json_object_new_object();

    sim_json_set_str(v, "kind", "Status");
    sim_json_set_str(v, "apiVersion", "v1");
    sim_json_child(v, "metadata");
    sim_json_set_str(v, "status", "Failure");
    sim_json_set_str(v, "message", message);
    if (f->reason != NULL)
        sim_json_set_str(v, "reason", f->reason);
    add_details(v, f);
    sim_json_set_int(v, "code", f->code);
    return v;
}

static void fail_text(struct sim_response *out, const struct sim_failure *f, const char *message)
{
    struct json_object *v = sim_status_tree(f, message);

    out->status = f->code;
    out->content_type = "application/json";
    out->body.n = 0;
    sim_json_print(v, &out->body);
    kr_buf_append_str(&out->body, "\n");
    if (f->retry_after != 0)
        kr_head_add_u64(&out->more, "retry-after", (uint64_t)f->retry_after);
    json_object_put(v);
}

void sim_fail(struct sim_response *out, const struct sim_failure *f, const char *fmt, ...)
{
    char message[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    fail_text(out, f, message);
}

void sim_fail_not_found(struct sim_response *out, const struct sim_kind *k, const char *name)
{
    char resource[128];

    sim_resource_name(k, resource);
    sim_fail(out, &(struct sim_failure){.code = 404, .reason = "NotFound", .kind = k, .name = name},
             "%s \"%s\" not found", resource, name);
}

void sim_fail_exists(struct sim_response *out, const struct sim_kind *k, const char *name)
{
    char resource[128];

    sim_resource_name(k, resource);
    sim_fail(out,
             &(struct sim_failure){.code = 409, .reason = "AlreadyExists", .kind = k, .name = name},
             "%s \"%s\" already exists", resource, name);
}

void sim_fail_conflict(struct sim_response *out, const struct sim_kind *k, const char *name)
{
    char resource[128];

    sim_resource_name(k, resource);
    sim_fail(out, &(struct sim_failure){.code = 409, .reason = "Conflict", .kind = k, .name = name},
             "Operation cannot be fulfilled on %s \"%s\": the object has been modified; please "
             "apply your changes to the latest version and try again",
             resource, name);
}

void sim_fail_bad_request(struct sim_response *out, const char *fmt, ...)
{
    char message[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    fail_text(out, &(struct sim_failure){.code = 400, .reason = "BadRequest"}, message);
}

void sim_fail_invalid(struct sim_response *out, const struct sim_kind *k, const char *name,
                      const char *cause, const char *field, const char *message)
{
    char full[160];

    snprintf(full, sizeof full, "%s%s%s", k->kind, k->group[0] != '\0' ? "." : "", k->group);
    sim_fail(
        out,
        &(struct sim_failure){422, "Invalid", k, name, cause, field, message, .kind_name = true},
        "%s \"%s\" is invalid: %s: %s", full, name, field, message);
}

void sim_fail_expired(struct sim_response *out, const char *message)
{
    sim_fail(out, &(struct sim_failure){.code = 410, .reason = "Expired"}, "%s", message);
}

void sim_fail_no_path(struct sim_response *out)
{
    out->status = 404;
    out->body.n = 0;
    sim_plain_text(out, "404 page not found\n");
}

void sim_plain_text(struct sim_response *out, const char *text)
{
    out->content_type = "text/plain; charset=utf-8";
    (void)kr_head_add_str(&out->more, "x-content-type-options", "nosniff");
    (void)kr_buf_append_str(&out->body, text);
}

void sim_fail_no_resource(struct sim_response *out)
{
    sim_fail(out, &(struct sim_failure){.code = 404, .reason = "NotFound", .empty_details = true},
             "the server could not find the requested resource");
}

void sim_fail_method(struct sim_response *out)
{
    sim_fail(
        out,
        &(struct sim_failure){.code = 405, .reason = "MethodNotAllowed", .empty_details = true},
        "the server does not allow this method on the requested resource");
}

void sim_fail_no_memory(struct sim_response *out)
{
    sim_fail(out, &(struct sim_failure){.code = 500, .reason = "InternalError"},
             "the simulator is out of memory");
}
