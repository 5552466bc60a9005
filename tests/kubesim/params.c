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

static bool check_dry_run(struct sim_call *call)
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
    const char *value = sim_param(&call->q, "dryRun");
    char message[256];

    if (value == NULL || *value == '\0' || strcmp(value, "All") == 0)
        return true;
    snprintf(message, sizeof message,
             "Unsupported value: []string{\"%.100s\"}: supported values: \"All\"", value);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (kr_bytes_is(call->req->method, rows[i].method)) {
            sim_fail_invalid(call->out, &rows[i].options, "", "FieldValueNotSupported", "dryRun",
                             message);
            return false;
        }
    return true;
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
    return check_numbers(call) && check_dry_run(call);
}
