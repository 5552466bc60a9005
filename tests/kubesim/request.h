/* SPDX-License-Identifier: Apache-2.0 */
/* request: what the API part of the simulator is asked and what it answers, without any network.
 * Memory: a request borrows all of its bytes for the call; a response owns what it holds and is
 * given back with sim_response_deinit. A source (a body that comes piece by piece) is destroyed by
 * whoever took it out of the response. */
#ifndef SIM_REQUEST_H
#define SIM_REQUEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "http/head.h"

#define SIM_BODY_MAX (3u * 1024 * 1024) /* kube-apiserver's limit of a resource body */
#define SIM_OUT_MAX (256u << 20)

struct sim_request {
    struct kr_bytes method;
    struct kr_bytes target; /* path and query as they came */
    const struct kr_head *head;
    struct kr_bytes body;
    const char *user;   /* who the connection belongs to; NULL: nobody known */
    const char *groups; /* comma separated; may be "" */
};

enum sim_fill {
    SIM_FILL_MORE,  /* ask again */
    SIM_FILL_WAIT,  /* nothing now; wake is called when that changes */
    SIM_FILL_END,   /* the body is complete */
    SIM_FILL_BREAK, /* cut it off in the middle */
};

struct sim_source;

struct sim_source_ops {
    /* Appends some bytes (about 64 KiB at most) to `out`. */
    enum sim_fill (*fill)(struct sim_source *s, struct kr_buf *out);
    void (*destroy)(struct sim_source *s);
};

struct sim_source {
    const struct sim_source_ops *ops;
    void (*wake)(void *owner); /* set by who pulls; may be called from anywhere but from fill */
    void *wake_owner;
};

struct sim_response {
    int status;
    const char *content_type;
    struct kr_head more;       /* further fields */
    struct kr_buf body;        /* what there is at once; a source goes on behind it */
    struct sim_source *source; /* NULL: body is all */
};

void sim_response_init(struct sim_response *r);
void sim_response_deinit(struct sim_response *r);
void sim_source_wake(struct sim_source *s);
void sim_source_destroy(struct sim_source *s); /* NULL is fine */

#define SIM_PARAMS_MAX 64

struct sim_params { /* the decoded query */
    struct kr_arena arena;
    struct {
        const char *name;
        const char *value;
    } all[SIM_PARAMS_MAX];
    size_t n;
};

/* 0, KR_EINVAL (bad escapes, too many) or KR_ENOMEM. */
int sim_params_parse(struct sim_params *p, struct kr_bytes query);
void sim_params_deinit(struct sim_params *p);
/* The first value of a name; NULL if it is absent. */
const char *sim_param(const struct sim_params *p, const char *name);
const char *sim_param_or(const struct sim_params *p, const char *name, const char *otherwise);
/* Kubernetes' reading of a boolean: absent, "0" and "false" are false, all else is true. */
bool sim_param_true(const struct sim_params *p, const char *name);
/* A decimal number; `otherwise` if it is absent or none. */
int64_t sim_param_int(const struct sim_params *p, const char *name, int64_t otherwise);
/* Percent-decodes; `plus`: '+' is a space. KR_EINVAL, KR_ETOOBIG. */
int sim_decode(struct kr_bytes in, bool plus, char *out, size_t size);

#endif
