/* SPDX-License-Identifier: Apache-2.0 */
/* request_info: what a request means to a kube-apiserver: checked once, here, at the hub and again
 * at the agent, on the exact bytes that are forwarded.
 * Rules:  apiserver pkg/endpoints/request/requestinfo.go (1.33 to 1.37),
 * server/filters/longrunning.go and endpoints/filters/request_deadline.go. A request that those
 * classify one way and a cleaner or decoder on the way another is refused here (see path.h).
 * Differs: a labelSelector that does not parse is not noticed (upstream then forgets the name of
 *         fieldSelector, and answers 400 anyway).
 * Memory: all text borrows method and target, or the arena where it had to be decoded.
 * Units:  named. Errors: KR_EINVAL (answer 400) with the reason, KR_ENOMEM. Pure. */
#ifndef KR_KUBE_REQUEST_INFO_H
#define KR_KUBE_REQUEST_INFO_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/note.h"

enum kr_request_class {
    KR_REQUEST_OTHER,     /* /healthz, /version, /metrics, ... */
    KR_REQUEST_DISCOVERY, /* /api, /apis, /openapi and what is below them but no resource */
    KR_REQUEST_RESOURCE,
};

struct kr_request_info {
    enum kr_request_class class;
    bool is_resource; /* class is KR_REQUEST_RESOURCE */

    struct kr_bytes target; /* as it came */
    struct kr_bytes path;   /* decoded; behind a /proxy subresource it stays as it came */
    struct kr_bytes query;  /* as it came, without '?' */

    struct kr_bytes verb;   /* get list watch create update patch delete deletecollection proxy, or
                               the method in lower case for what is no resource; may be empty */
    struct kr_bytes prefix; /* "api" or "apis" */
    struct kr_bytes group;
    struct kr_bytes version;
    struct kr_bytes ns;
    struct kr_bytes resource;
    struct kr_bytes name;
    struct kr_bytes subresource;
    size_t parts; /* how many of resource, name, subresource and what follows are there; behind a
                     /proxy subresource nothing is counted */

    bool read_only;    /* GET or HEAD */
    bool long_running; /* no total time-out */
    bool connects;     /* exec, attach, portforward or proxy, whatever the method */
    bool proxied;      /* below a /proxy subresource: passes as it is */
    bool follow;       /* ?follow of a log */
    int64_t limit;     /* ?limit of a list; 0: none */

    bool has_timeout; /* ?timeout is there and valid */
    bool bad_timeout; /* ?timeout is there and is no duration: the API server answers 400 */
    int64_t timeout_ns;
};

/* The most bytes that one call takes from the arena. */
#define KR_REQUEST_INFO_ARENA(target_n) (3 * (target_n) + 1024)

int kr_request_info_parse(struct kr_request_info *ri, struct kr_bytes method,
                          struct kr_bytes target, struct kr_arena *arena, struct kr_note *why);

/* How long a request may take until the relay answers 504 itself: min(60 s, ?timeout) + 5 s, so
 * that the API server's own answer wins; 0: for ever (long-running). */
int64_t kr_request_deadline_ms(const struct kr_request_info *ri);

static inline bool kr_request_is_watch(const struct kr_request_info *ri)
{
    return ri->is_resource && kr_bytes_is(ri->verb, "watch");
}

#endif
