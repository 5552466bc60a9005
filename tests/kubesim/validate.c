/* SPDX-License-Identifier: Apache-2.0 */
/* The few checks of content that clients run into: unknown fields at the top of an object, labels,
 * a pod without containers. The API server has many more. */
#include <ctype.h>
#include <stdio.h>

#include "base/err.h"
#include "object.h"
#include "openapi.h"

static bool is_known(const struct sim_kind *k, const char *key)
{
    static const char *const all[] = {"kind", "apiVersion", "metadata", "spec", "status"};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i], key) == 0)
            return true;
    for (const struct sim_field *f = sim_openapi_fields(k); f->name != NULL; f++)
        if (strcmp(f->name, key) == 0)
            return true;
    return false;
}

/* Whether the table of fields is whole at the top level of that kind. */
static bool is_closed(const struct sim_kind *k)
{
    return sim_openapi_fields(k)[0].name != NULL &&
           strcmp(sim_openapi_fields(k)[0].name, "spec") != 0 && strcmp(k->kind, "Event") != 0;
}

static int on_unknown(struct sim_call *call, const char *key, const char *level)
{
    const char *kind = sim_call_kind(call)->kind;
    char warning[300];

    if (strcmp(level, "Strict") == 0) {
        sim_fail_bad_request(call->out,
                             "%s in version \"%s\" cannot be handled as a %s: strict decoding "
                             "error: unknown field \"%s\"",
                             kind, sim_call_kind(call)->version, kind, key);
        return KR_EINVAL;
    }
    if (strcmp(level, "Ignore") == 0)
        return 0;
    snprintf(warning, sizeof warning, "299 - \"unknown field \\\"%.200s\\\"\"", key);
    return kr_head_add_str(&call->out->more, "warning", warning);
}

/* Unknown fields are dropped, as typed objects have no place for them. */
static int check_unknown(struct sim_call *call, struct json_object *v)
{
    const char *level = sim_param_or(&call->q, "fieldValidation", "Warn");
    struct json_object *copy;
    int rc = 0;

    if (!is_closed(sim_call_kind(call)))
        return 0;
    copy = sim_json_copy(v);
    json_object_object_foreach(copy, key, value)
    {
        (void)value;
        if (rc != 0 || is_known(sim_call_kind(call), key))
            continue;
        rc = on_unknown(call, key, level);
        json_object_object_del(v, key);
    }
    json_object_put(copy);
    return rc;
}

static bool is_label_value(const char *p)
{
    size_t n = strlen(p);

    if (n == 0)
        return true;
    if (n > 63 || !isalnum((unsigned char)p[0]) || !isalnum((unsigned char)p[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)p[i]) && strchr("-_.", p[i]) == NULL)
            return false;
    return true;
}

static int check_labels(struct sim_call *call, struct json_object *v)
{
    struct json_object *labels = sim_json_at(v, "metadata.labels");
    char message[512];

    if (!sim_json_is_object(labels))
        return 0;
    json_object_object_foreach(labels, key, value)
    {
        (void)key;
        if (value == NULL || is_label_value(json_object_get_string(value)))
            continue;
        snprintf(message, sizeof message,
                 "Invalid value: \"%.100s\": a valid label must be an empty string or consist of "
                 "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                 "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
                 "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                 json_object_get_string(value));
        sim_fail_invalid(call->out, sim_call_kind(call), sim_json_str(v, "metadata.name"),
                         "FieldValueInvalid", "metadata.labels", message);
        return KR_EINVAL;
    }
    return 0;
}

/* The path of a list of containers that must not be empty; NULL: the kind has none. */
static const char *containers_path(const struct sim_kind *k)
{
    if (strcmp(k->kind, "Pod") == 0)
        return "spec.containers";
    if (strcmp(k->group, "apps") == 0 && (k->flags & SIM_STATUS) != 0)
        return "spec.template.spec.containers";
    return NULL;
}

int sim_object_validate(struct sim_call *call, struct json_object *v)
{
    const char *path = containers_path(sim_call_kind(call));
    int rc = check_unknown(call, v);

    if (rc == 0)
        rc = check_labels(call, v);
    if (rc != 0 || path == NULL || sim_json_len(sim_json_at(v, path)) != 0)
        return rc;
    sim_fail_invalid(call->out, sim_call_kind(call), sim_json_str(v, "metadata.name"),
                     "FieldValueRequired", path, "Required value");
    return KR_EINVAL;
}
