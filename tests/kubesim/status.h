/* SPDX-License-Identifier: Apache-2.0 */
/* status: failures in the form of a Kubernetes Status object (meta/v1). */
#ifndef SIM_STATUS_H
#define SIM_STATUS_H

#include "json.h"
#include "kinds.h"
#include "request.h"

struct sim_failure {
    int code;
    const char *reason;
    const struct sim_kind *kind; /* details.group and details.kind (the plural); NULL: none */
    const char *name;            /* details.name */
    const char *cause_reason;    /* one cause; NULL: none */
    const char *cause_field;
    const char *cause_message;
    int retry_after;    /* seconds; 0: none */
    bool empty_details; /* "details":{}, as the generic failures of the API server have it */
    bool kind_name;     /* details.kind is the kind ("Pod"), as validation has it */
};

/* A tree of the Status; `message` is its text. */
struct json_object *sim_status_tree(const struct sim_failure *f, const char *message);
__attribute__((format(printf, 3, 4))) void
sim_fail(struct sim_response *out, const struct sim_failure *f, const char *fmt, ...);
void sim_fail_not_found(struct sim_response *out, const struct sim_kind *k, const char *name);
void sim_fail_exists(struct sim_response *out, const struct sim_kind *k, const char *name);
void sim_fail_conflict(struct sim_response *out, const struct sim_kind *k, const char *name);
__attribute__((format(printf, 2, 3))) void sim_fail_bad_request(struct sim_response *out,
                                                                const char *fmt, ...);
/* 422: `Kind "name" is invalid: field: message`. */
void sim_fail_invalid(struct sim_response *out, const struct sim_kind *k, const char *name,
                      const char *cause, const char *field, const char *message);
void sim_fail_expired(struct sim_response *out, const char *message);
/* What a path without a handler gets: plain text, no Status. */
void sim_fail_no_path(struct sim_response *out);
/* A path under a known group and version that is no resource. */
void sim_fail_no_resource(struct sim_response *out);
void sim_fail_method(struct sim_response *out);
/* A body in plain text with the fields that the API server gives it. */
void sim_plain_text(struct sim_response *out, const char *text);
void sim_fail_no_memory(struct sim_response *out);
/* "pods" or "deployments.apps". */
void sim_resource_name(const struct sim_kind *k, char out[128]);

#endif
