/* SPDX-License-Identifier: Apache-2.0 */
/* status: the errors that hub and agent make themselves, in the form kube-apiserver has for them:
 * HTTP code, Status v1 body, Retry-After, Warning. One table holds every case.
 * Rules:  the code and Retry-After decide what client-go does: it resends *any* verb on 429 or 5xx
 *         with Retry-After (client-go rest/with_retry.go), so that only requests which provably did
 *         not run carry it; on discovery paths it costs a cold client minutes, so they never do.
 *         404 is never made here: clients take it for "gone" and delete.
 * Memory: appends to the caller's bufs. Units: seconds. Errors: those of kr_buf. Pure. */
#ifndef KR_KUBE_STATUS_H
#define KR_KUBE_STATUS_H

#include "base/buf.h"
#include "base/bytes.h"
#include "kube/request_info.h"

enum kr_retry {
    KR_RETRY_NONE,
    KR_RETRY_ONE,  /* 1; none on a path that is no resource */
    KR_RETRY_GROW, /* 1..30, growing with the time the agent is away */
    KR_RETRY_BUSY, /* what the caller says, 1..32 */
};

/* id, HTTP code, reason, Retry-After, leg that is at fault, text with {cluster} and {detail} */
#define KR_CASES(X)                                                                                \
    /* who asks, and for what */                                                                   \
    X(UNAUTHORIZED, 401, "Unauthorized", NONE, "client-hub", "Unauthorized{detail}")               \
    X(AGENT_UNAUTHORIZED, 401, "Unauthorized", NONE, "hub-agent",                                  \
      "Unauthorized: {detail}, says the agent of cluster {cluster}")                               \
    X(UNKNOWN_CLUSTER, 403, "Forbidden", NONE, "client-hub",                                       \
      "clusters.kuberelay.io \"{cluster}\" is forbidden: no such cluster, or no access to it")     \
    X(DENIED, 403, "Forbidden", NONE, "client-hub", "{detail}")                                    \
    X(AGENT_DENIED, 403, "Forbidden", NONE, "hub-agent",                                           \
      "{detail}: denied by agent policy on cluster {cluster}")                                     \
    X(IMPERSONATION, 403, "Forbidden", NONE, "client-hub",                                         \
      "impersonation is not allowed through the relay (header {detail})")                          \
    /* what is asked is not well formed, or not offered */                                         \
    X(BAD_PATH, 400, "BadRequest", NONE, "client-hub", "bad request path: {detail}")               \
    X(BAD_HEADER, 400, "BadRequest", NONE, "client-hub", "bad request header: {detail}")           \
    X(BAD_NAME, 400, "BadRequest", NONE, "client-hub", "bad cluster name: {detail}")               \
    X(BAD_REQUEST, 400, "BadRequest", NONE, "client-hub", "bad request: {detail}")                 \
    X(NO_PREFIX, 400, "BadRequest", NONE, "client-hub",                                            \
      "request has no cluster prefix; use /clusters/NAME")                                         \
    X(NO_UPGRADE, 400, "BadRequest", NONE, "client-hub",                                           \
      "cluster {cluster}: no upgrade to {detail} here: websocket and SPDY/3.1, for exec, attach, " \
      "port-forward, log, watch and proxy")                                                        \
    X(BAD_METHOD, 405, "MethodNotAllowed", NONE, "client-hub",                                     \
      "method {detail} is not allowed here")                                                       \
    X(BODY_STALLED, 408, "Timeout", NONE, "client-hub", "the request did not arrive in time")      \
    X(BODY_TOO_LARGE, 413, "RequestEntityTooLarge", NONE, "client-hub",                            \
      "Request entity too large: limit is {detail}")                                               \
    X(PATH_TOO_LONG, 414, "RequestURITooLong", NONE, "client-hub",                                 \
      "the request path is too long: limit is {detail}")                                           \
    X(UNREADABLE_BODY, 415, "UnsupportedMediaType", NONE, "client-hub",                            \
      "the body cannot be read as {detail}")                                                       \
    X(WRONG_HOST, 421, "BadRequest", NONE, "client-hub",                                           \
      "this server does not serve the host {detail}")                                              \
    X(HEAD_TOO_LARGE, 431, "RequestHeaderFieldsTooLarge", NONE, "client-hub",                      \
      "the request header fields are too large: limit is {detail}")                                \
    /* a write that was built on an object of the fleet view */                                    \
    X(CONFLICT, 409, "Conflict", NONE, "client-hub",                                               \
      "Operation cannot be fulfilled on {detail}: the object has been modified; please apply "     \
      "your changes to the latest version and try again")                                          \
    X(LOSSY_WRITE, 422, "Invalid", NONE, "client-hub",                                             \
      "parts of this object are not in the fleet view, and this change could lose them: "          \
      "{detail}; read the object from /clusters/{cluster}, or send a PATCH")                       \
    X(NOT_IN_STEP, 503, "ServiceUnavailable", ONE, "hub-agent",                                    \
      "cluster {cluster}: the fleet view is not in step with it, so that the version that this "   \
      "write was built on is not known; try again")                                                \
    /* the hub itself */                                                                           \
    X(INTERNAL, 500, "InternalError", NONE, "client-hub", "Internal error occurred: {detail}")     \
    X(NOT_OFFERED, 501, "NotImplemented", NONE, "client-hub", "not supported: {detail}")           \
    X(OVERLOADED, 429, "TooManyRequests", BUSY, "client-hub",                                      \
      "the relay is overloaded: {detail}, please try again later")                                 \
    X(DRAINING, 503, "ServiceUnavailable", ONE, "client-hub", "the relay is shutting down")        \
    X(DRAINING_WATCH, 429, "TooManyRequests", ONE, "client-hub", "the relay is shutting down")     \
    X(STARTING, 503, "ServiceUnavailable", ONE, "client-hub",                                      \
      "the relay has just started and does not know its clusters yet")                             \
    X(STARTING_WATCH, 429, "TooManyRequests", ONE, "client-hub",                                   \
      "the relay has just started and does not know its clusters yet")                             \
    /* an audit log takes no lines, and what is not logged must not change anything */             \
    X(NO_AUDIT, 503, "ServiceUnavailable", ONE, "client-hub",                                      \
      "the audit log of the relay cannot be written, and only reads are served until it can")      \
    X(AGENT_NO_AUDIT, 503, "ServiceUnavailable", ONE, "hub-agent",                                 \
      "cluster {cluster}: the audit log of the agent cannot be written, and only reads are "       \
      "served "                                                                                    \
      "until it can")                                                                              \
    /* the agent is away: the request was handed to nobody */                                      \
    X(AWAY_WATCH, 429, "TooManyRequests", GROW, "hub-agent",                                       \
      "cluster {cluster}: agent disconnected{detail}")                                             \
    X(AWAY_DISCOVERY, 503, "ServiceUnavailable", NONE, "hub-agent",                                \
      "cluster {cluster}: agent disconnected{detail}")                                             \
    X(AWAY, 503, "ServiceUnavailable", NONE, "hub-agent",                                          \
      "cluster {cluster}: agent disconnected{detail}")                                             \
    /* the agent was lost before it answered: the request may have run */                          \
    X(LOST_READ, 503, "ServiceUnavailable", ONE, "hub-agent",                                      \
      "cluster {cluster}: agent lost before it answered")                                          \
    X(LOST_WRITE, 504, "Timeout", NONE, "hub-agent",                                               \
      "cluster {cluster}: agent lost before it answered; outcome unknown, read the object again "  \
      "before you repeat the request")                                                             \
    X(DEADLINE, 504, "Timeout", NONE, "hub-agent",                                                 \
      "Timeout: request did not complete within {detail}")                                         \
    X(BAD_AGENT, 502, "InternalError", NONE, "hub-agent",                                          \
      "cluster {cluster}: the agent broke the protocol: {detail}")                                 \
    /* between the agent and its API server */                                                     \
    X(API_UNREACHABLE, 503, "ServiceUnavailable", ONE, "agent-apiserver",                          \
      "cluster {cluster}: API server unreachable{detail}")                                         \
    X(API_LOST_READ, 503, "ServiceUnavailable", ONE, "agent-apiserver",                            \
      "cluster {cluster}: API server lost before it answered")                                     \
    X(API_LOST_WRITE, 504, "Timeout", NONE, "agent-apiserver",                                     \
      "cluster {cluster}: API server lost before it answered; outcome unknown, read the object "   \
      "again before you repeat the request")                                                       \
    X(API_TLS, 502, "InternalError", NONE, "agent-apiserver",                                      \
      "cluster {cluster}: TLS failure towards the API server: {detail}")                           \
    X(API_TOKEN, 502, "InternalError", NONE, "agent-apiserver",                                    \
      "cluster {cluster}: the API server does not accept the agent's credential")                  \
    X(API_PROTOCOL, 502, "InternalError", NONE, "agent-apiserver",                                 \
      "cluster {cluster}: bad answer of the API server: {detail}")                                 \
    X(REDIRECT, 502, "InternalError", NONE, "agent-apiserver",                                     \
      "cluster {cluster}: refused redirect: {detail}")                                             \
    X(UPGRADE_FAILED, 502, "InternalError", NONE, "agent-apiserver",                               \
      "cluster {cluster}: invalid answer to the upgrade: {detail}")

enum kr_case {
#define X(id, code, reason, retry, leg, text) KR_CASE_##id,
    KR_CASES(X)
#undef X
        KR_CASE_COUNT,
};

struct kr_case_facts { /* every one may be empty */
    struct kr_bytes cluster;
    struct kr_bytes detail;
    const struct kr_request_info *request; /* NULL: not known */
    unsigned away_s;                       /* KR_RETRY_GROW: how long the agent has been away */
    unsigned busy_s;                       /* KR_RETRY_BUSY */
};

struct kr_cause {
    const char *reason;
    struct kr_bytes message;
    struct kr_bytes field;
};

/* metav1.Status, kind and status filled in ("Failure"). Empty members of details are left out. */
struct kr_status {
    int code;
    const char *reason;
    struct kr_bytes message;
    struct kr_bytes group;
    struct kr_bytes kind;
    struct kr_bytes name;
    const struct kr_cause *causes;
    size_t cause_count;
    unsigned retry_after_s; /* 0: none */
};
int kr_status_write(struct kr_buf *out, const struct kr_status *st);

struct kr_case_answer {
    int code;
    const char *reason;
    unsigned retry_after_s; /* for the header Retry-After; 0: no such header */
    const char *leg;
};
/* Appends the body to `body` and the value of the header Warning to `warning` (either may be
 * NULL); content-type is application/json, cache-control "no-cache, private". */
int kr_case_write(enum kr_case which, const struct kr_case_facts *facts,
                  struct kr_case_answer *answer, struct kr_buf *body, struct kr_buf *warning);
/* What CONFLICT speaks of: `deployments.apps "x"`. */
int kr_case_object(const struct kr_request_info *ri, struct kr_buf *out);
/* The message alone. */
int kr_case_message(enum kr_case which, const struct kr_case_facts *facts, struct kr_buf *out);
const char *kr_case_name(enum kr_case which); /* its id in the table, for logs and metrics */

/* Appends `299 kuberelay "text [leg]"` (RFC 7234 5.5), quoted, ASCII, at most 1 KiB. */
int kr_warning_write(struct kr_buf *out, struct kr_bytes text, const char *leg);

/* Which case it is when the agent is away (nothing was handed over), or was lost without an answer
 * (`api_server`: the agent lives, its API server was lost). */
enum kr_case kr_case_away(const struct kr_request_info *ri);
enum kr_case kr_case_lost(const struct kr_request_info *ri, bool api_server);
/* Which case it is while the hub drains: a watch gets 429, which never makes an informer list. */
enum kr_case kr_case_draining(const struct kr_request_info *ri);

/* kube-apiserver's own formula for a watch cache that is not ready (storage/cacher/util.go):
 * e^(0.06 x seconds), within 1..30. */
unsigned kr_retry_grow_s(unsigned away_s);

#endif
