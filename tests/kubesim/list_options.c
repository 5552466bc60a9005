/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"

__attribute__((format(printf, 4, 5))) static void refuse(struct sim_call *call, const char *cause,
                                                         const char *field, const char *fmt, ...)
{
    static const struct sim_kind options = {"meta.k8s.io", "v1", "", "", "ListOptions", "", "", 0};
    char message[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    sim_fail_invalid(call->out, &options, "", cause, field, message);
}

static int read_version(struct sim_call *call, bool watch, struct sim_list_options *o)
{
    const char *text = sim_param_or(&call->q, "resourceVersion", "");
    uint64_t rv;

    o->rv = -1;
    if (text[0] == '\0')
        return 0;
    if (!kr_bytes_to_u64(kr_bytes_str(text), INT64_MAX, &rv)) {
        sim_fail(
            call->out,
            &(struct sim_failure){.code = watch ? 500 : 400, .reason = watch ? NULL : "BadRequest"},
            "%sresourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing \"%s\": "
            "invalid syntax",
            watch ? "" : "invalid resource version: ", text, text);
        return KR_EINVAL;
    }
    o->rv = (int64_t)rv;
    return 0;
}

static int check_match(struct sim_call *call, bool watch, const struct sim_list_options *o)
{
    bool initial = sim_param(&call->q, "sendInitialEvents") != NULL;
    bool not_older = strcmp(o->match, "NotOlderThan") == 0;
    const char *why = NULL, *field = "resourceVersionMatch";

    if (initial && !watch) {
        field = "sendInitialEvents";
        why = "sendInitialEvents is forbidden for list";
    } else if (initial && !not_older) {
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    } else if (watch && !initial && o->match[0] != '\0') {
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    } else if (!watch && o->match[0] != '\0' && sim_param(&call->q, "continue") != NULL) {
        why = "resourceVersionMatch is forbidden when continue is provided";
    } else if (!watch && o->match[0] != '\0' && o->rv < 0) {
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
    } else if (!watch && o->match[0] != '\0' && !not_older && strcmp(o->match, "Exact") != 0) {
        refuse(call, "FieldValueNotSupported", field,
               "Unsupported value: \"%s\": supported "
               "values: \"Exact\", \"NotOlderThan\", \"\"",
               o->match);
        return KR_EINVAL;
    } else if (!watch && strcmp(o->match, "Exact") == 0 && o->rv == 0) {
        why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
    }
    if (why == NULL)
        return 0;
    refuse(call, "FieldValueForbidden", field, "Forbidden: %s", why);
    return KR_EINVAL;
}

int sim_list_options_read(struct sim_call *call, bool watch, struct sim_list_options *o)
{
    const char *labels = sim_param(&call->q, "labelSelector");
    const char *fields = sim_param(&call->q, "fieldSelector");
    char message[256], name[300];
    int rc;

    *o = (struct sim_list_options){
        .rv = -1,
        .match = sim_param_or(&call->q, "resourceVersionMatch", ""),
        .limit = sim_param_int(&call->q, "limit", 0),
        .initial_events = sim_param_true(&call->q, "sendInitialEvents"),
    };
    if (call->route.name[0] != '\0') { /* a watch on one object */
        snprintf(name, sizeof name, "metadata.name=%s", call->route.name);
        fields = name;
    }
    rc = sim_selector_parse(&o->selector, call->route.kind, labels, fields, message);
    if (rc != 0) {
        sim_fail_bad_request(call->out, "%s", message);
        return rc;
    }
    rc = read_version(call, watch, o);
    return rc != 0 ? rc : check_match(call, watch, o);
}

void sim_list_options_deinit(struct sim_list_options *o)
{
    sim_selector_deinit(&o->selector);
}
