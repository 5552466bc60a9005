/* SPDX-License-Identifier: Apache-2.0 */
/* audit_event: one line of an audit log: an Event of audit.k8s.io/v1 at level Metadata, as
 * kube-apiserver writes it, so that what reads its log reads ours.
 * Rules:  k8s.io/apiserver pkg/apis/audit/v1 and pkg/audit/request.go; what is ours stands in
 *         annotations named kuberelay.io/... .
 * Holds:  who, whence and what, with the query; never a body and never a credential.
 * Limits: texts are cut at KR_AUDIT_TEXT_MAX bytes, a URI at KR_AUDIT_URI_MAX.
 * Memory: appends to the caller's bufs. Errors: those of kr_buf. Pure. */
#ifndef KR_KUBE_AUDIT_EVENT_H
#define KR_KUBE_AUDIT_EVENT_H

#include "base/buf.h"
#include "kube/request_info.h"

#define KR_AUDIT_TEXT_MAX 1024
#define KR_AUDIT_URI_MAX 65536
#define KR_AUDIT_LINE_MAX (1u << 20)

enum kr_audit_stage {
    KR_AUDIT_RECEIVED, /* before it is handed on */
    KR_AUDIT_STARTED,  /* a long-running answer began */
    KR_AUDIT_COMPLETE,
    KR_AUDIT_PANIC,
};

enum kr_audit_outcome {
    KR_AUDIT_COMPLETED,     /* the API server answered, or whoever serves it */
    KR_AUDIT_NOT_FORWARDED, /* it is certain that it did not run */
    KR_AUDIT_UNKNOWN,       /* it was handed over, and nobody knows whether it ran */
};

struct kr_audit_extra { /* keys may repeat: they are put together */
    struct kr_bytes key;
    const struct kr_bytes *values;
    size_t value_count;
};

struct kr_audit_user { /* not known: name is empty */
    struct kr_bytes name;
    struct kr_bytes uid;
    const struct kr_bytes *groups;
    size_t group_count;
    const struct kr_audit_extra *extra;
    size_t extra_count;
};

/* What does not change from stage to stage. Any member may be empty. */
struct kr_audit_request {
    struct kr_bytes id;
    struct kr_bytes uri;
    struct kr_bytes verb;
    struct kr_audit_user user;
    struct kr_audit_user as; /* whom the user acts as */
    struct kr_bytes source;  /* IP address */
    struct kr_bytes user_agent;
    const struct kr_request_info *info; /* NULL: not known */
    int64_t received_wall_us;
};

struct kr_audit_note { /* an annotation kuberelay.io/NAME; not written if its value is empty */
    const char *name;
    struct kr_bytes value;
};

struct kr_audit_facts {
    enum kr_audit_stage stage;
    int64_t wall_us;
    int code;                /* 0: no answer yet */
    const char *reason;      /* of a Status; NULL: not known */
    struct kr_bytes message; /* of the Status, for people */
    struct kr_bytes cluster;
    bool forbid; /* this program's own decision */
    struct kr_bytes rule;
    struct kr_bytes instance;
    struct kr_bytes request_uid;
    enum kr_audit_outcome outcome; /* shown from STARTED on */
    uint64_t bytes_in;
    uint64_t bytes_out;
    const struct kr_audit_note *notes; /* others */
    size_t note_count;
};

/* Members of an Event, without braces. */
int kr_audit_request_write(const struct kr_audit_request *a, struct kr_buf *out);
/* The whole Event around them, but for its end: its last member, "annotations", is still open and
 * not empty, so that one more annotation may follow, and then "}}". */
int kr_audit_event_write(struct kr_bytes request, const struct kr_audit_facts *f,
                         struct kr_buf *out);

#endif
