/* SPDX-License-Identifier: Apache-2.0 */
/* faults: what a test scripts a cluster to do wrong, and what the cluster remembers of requests.
 * Faults are added by POST /kubesim/faults with {"path": prefix, "method": optional, "action": ...,
 * "times": N (0: for ever), and by action:
 *   "hang"         never answer
 *   "delay"        "ms": answer later
 *   "status"       "status": 503, "reason", "message", "retryAfter": instead of the answer
 *   "truncate"     "bytes": break the answer off behind so much of its body
 *   "reset"        reset the stream (HTTP/1.1: close) before any answer
 *   "close"        drop the connection before any answer
 *   "goaway"       answer, and tell the connection to go away
 *   "error-event"  "status": 410, "bytes": an ERROR event behind so many bytes (at a line's end),
 * then end "end"          "bytes": end the body cleanly behind so many bytes (at a line's end) GET
 * lists them with how often each was used, DELETE removes all. GET /kubesim/requests gives the last
 * requests with the identity that was seen. POST /kubesim/compact forgets the history (410 for
 * older versions). POST /kubesim/churn makes changes, see README.md. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "json.h"
#include "request.h"
#include "store.h"

enum sim_fault_action {
    SIM_FAULT_NONE,
    SIM_FAULT_HANG,
    SIM_FAULT_DELAY,
    SIM_FAULT_STATUS,
    SIM_FAULT_TRUNCATE,
    SIM_FAULT_RESET,
    SIM_FAULT_CLOSE,
    SIM_FAULT_GOAWAY,
    SIM_FAULT_ERROR_EVENT,
    SIM_FAULT_END,
};

struct sim_fault {       /* copied to who applies it */
    struct kr_list link; /* sim_cluster.faults */
    enum sim_fault_action action;
    char path[256];
    char method[16];
    int64_t ms;
    int64_t bytes;
    int status;
    int retry_after;
    char reason[64];
    char message[256];
    uint64_t times; /* left; 0 with forever */
    bool forever;
    uint64_t used;
};

/* The fault that applies to a request, counted as used; action NONE if there is none. */
struct sim_fault sim_fault_take(struct sim_cluster *c, const struct sim_request *req);
/* Changes a finished response as the fault says (status, truncate, error-event, end); the other
 * actions are the connection's business. */
void sim_fault_apply(const struct sim_fault *f, struct sim_response *out);
/* From its JSON form: 0 or KR_EINVAL with a reason. */
int sim_fault_add(struct sim_cluster *c, struct json_object *v, const char **why);
void sim_faults_clear(struct sim_cluster *c);
void sim_faults_list(const struct sim_cluster *c, struct kr_buf *out);

void sim_seen_add(struct sim_cluster *c, const struct sim_request *req, struct json_object *user);
void sim_seen_list(const struct sim_cluster *c, struct kr_buf *out);
void sim_seen_clear(struct sim_cluster *c);

#endif
