/* SPDX-License-Identifier: Apache-2.0 */
/* api: the simulator as a function from a request to a response, and the parts that it is made of.
 * Each part has the same shape: it reads the call and fills call->out.
 * Threads: one; calls come one after the other. */
#ifndef SIM_API_H
#define SIM_API_H

#include "request.h"
#include "selector.h"
#include "status.h"
#include "store.h"

/* What kubectl is told; it must parse as a version and still say what it is. */
#define SIM_VERSION "v1.33.0+kubesim"

struct sim_route { /* where a path of the resource API leads */
    int kind;
    bool watch_prefix;        /* the old /watch/ form */
    char ns[256];             /* "" : all namespaces, or not namespaced */
    char name[256];           /* "" : the collection */
    char sub[64];             /* subresource */
    char key[SIM_KEY_MAX];    /* of the object */
    char prefix[SIM_KEY_MAX]; /* of the collection: "ns/" or "" */
};

/* Sets prefix and key from ns and name. */
void sim_route_key(struct sim_route *r);

enum sim_view { SIM_VIEW_OBJECT, SIM_VIEW_TABLE, SIM_VIEW_META };

struct sim_call {
    struct sim_cluster *c;
    const struct sim_request *req;
    struct sim_response *out;
    struct sim_params q;
    struct sim_route route;
    enum sim_view view;
    struct json_object *user; /* username, uid, groups, extra: after impersonation */
};

/* Fills `out` (which was initialised). Always answers. */
void sim_handle(struct sim_cluster *c, const struct sim_request *req, struct sim_response *out);

/* The parts. */
void sim_api_get(struct sim_call *call);
void sim_api_list(struct sim_call *call);
void sim_api_watch(struct sim_call *call);
void sim_api_create(struct sim_call *call);
void sim_api_update(struct sim_call *call);
void sim_api_patch(struct sim_call *call);
void sim_api_delete(struct sim_call *call);
void sim_api_delete_collection(struct sim_call *call);
void sim_api_scale(struct sim_call *call);
void sim_api_log(struct sim_call *call);
void sim_api_review(struct sim_call *call);
void sim_api_token(struct sim_call *call);
/* Discovery, OpenAPI, /version, health; false: not one of their paths. */
bool sim_api_discovery(struct sim_call *call, struct kr_bytes path);
bool sim_api_openapi(struct sim_call *call, struct kr_bytes path);
bool sim_api_misc(struct sim_call *call, struct kr_bytes path);

/* timeout, limit, timeoutSeconds, dryRun: false and the answer if one is malformed. params.c. */
bool sim_check_params(struct sim_call *call);
/* 0 and call->user, or a negative code and the answer (401, 400). */
int sim_api_identify(struct sim_call *call);

/* Answers one object in the view that was asked for. */
void sim_answer_rev(struct sim_call *call, int status, const struct sim_rev *rev);
void sim_answer_tree(struct sim_call *call, int status, struct json_object *v);
/* Answers a tree that is no stored object (a Status, a review): always as it is. */
void sim_answer_json(struct sim_call *call, int status, struct json_object *v);
/* The same with an ETag, 304 if the client has it already. */
void sim_answer_cached(struct sim_call *call, const char *content_type);
const struct sim_kind *sim_call_kind(const struct sim_call *call);
/* Whether `accept` of the request allows this media type (parameters ignored). */
bool sim_accepts(const struct sim_call *call, const char *media);

#endif
