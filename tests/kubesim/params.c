/* SPDX-License-Identifier: Apache-2.0 */
/* The query parameters that every verb checks before anything else. */
#include <ctype.h>
#include <stdio.h>

#include "api.h"

/* A Go duration: numbers, each with a unit ("1m30s"). */
static bool is_duration(const char *p)
{
    static const char *const units[] = {"ns", "us", "ms", "h", "m", "s"};

    if (*p == '\0')
        return false;
    while (*p != '\0') {
        size_t digits = strspn(p, "0123456789."), unit = 0;

        p += digits;
        for (size_t i = 0; unit == 0 && i < sizeof units / sizeof *units; i++)
            if (strncmp(p, units[i], strlen(units[i])) == 0)
                unit = strlen(units[i]);
        if (digits == 0 || unit == 0)
            return false;
        p += unit;
    }
    return true;
}

static bool is_number(const char *p)
{
    p += *p == '-';
    return *p != '\0' && strspn(p, "0123456789") == strlen(p);
}

static bool check_numbers(struct sim_call *call)
{
    static const char *const names[] = {"limit", "timeoutSeconds", "gracePeriodSeconds"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = sim_param(&call->q, names[i]);

        if (value == NULL || *value == '\0' || is_number(value))
            continue;
        sim_fail_bad_request(call->out, "strconv.ParseInt: parsing \"%s\": invalid syntax", value);
        return false;
    }
    return true;
}

/* The options of a write, as their failures name them. */
static const struct sim_kind *options_of(const struct sim_call *call)
{
    static const struct {
        const char *method;
        struct sim_kind options;
    } rows[] = {
        {"POST", {"meta.k8s.io", "v1", "", "", "CreateOptions", "", "", 0}},
        {"PUT", {"meta.k8s.io", "v1", "", "", "UpdateOptions", "", "", 0}},
        {"PATCH", {"meta.k8s.io", "v1", "", "", "PatchOptions", "", "", 0}},
        {"DELETE", {"meta.k8s.io", "v1", "", "", "DeleteOptions", "", "", 0}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (kr_bytes_is(call->req->method, rows[i].method))
            return &rows[i].options;
    return NULL;
}

static bool refuse_option(struct sim_call *call, const char *field, const char *message)
{
    sim_fail_invalid(call->out, options_of(call), "", "FieldValueNotSupported", field, message);
    return false;
}

static bool check_write_options(struct sim_call *call)
{
    static const char *const levels[] = {"", "Ignore", "Warn", "Strict"};
    const char *dry = sim_param_or(&call->q, "dryRun", "");
    const char *validation = sim_param_or(&call->q, "fieldValidation", "");
    char message[256];

    if (options_of(call) == NULL)
        return true;
    if (dry[0] != '\0' && strcmp(dry, "All") != 0) {
        snprintf(message, sizeof message,
                 "Unsupported value: []string{\"%.100s\"}: supported values: \"All\"", dry);
        return refuse_option(call, "dryRun", message);
    }
    for (size_t i = 0; i < 4; i++)
        if (strcmp(validation, levels[i]) == 0)
            return true;
    snprintf(message, sizeof message,
             "Unsupported value: \"%.100s\": supported values: \"\", \"Ignore\", \"Strict\", "
             "\"Warn\"",
             validation);
    return refuse_option(call, "fieldValidation", message);
}

bool sim_check_params(struct sim_call *call)
{
    const char *timeout = sim_param(&call->q, "timeout");

    if (timeout != NULL && *timeout != '\0' && !is_duration(timeout)) {
        sim_fail_bad_request(call->out,
                             "invalid timeout specified in the request URL - time: invalid "
                             "duration \"%s\"",
                             timeout);
        return false;
    }
    return check_numbers(call) && check_write_options(call);
}
