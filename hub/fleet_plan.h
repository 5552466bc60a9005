/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_plan: what is to become of the body of a write that may have been built on the fleet view:
 * decided from the request, the object as the fleet view shows it, and the body; nothing is done.
 * Rules:  A body without the object's version and without a key of the fleet view passes as it
 *         came. A version that this hub gave out and that is not the latest is a conflict. A PUT on
 *         an object of which a profile left parts out becomes a patch; without a version, or as
 *         protobuf, it could lose them. Bodies that must be edited are JSON, or protobuf.
 *         Of an object that the fleet view does not show (a create) only the keys are cut out.
 * Memory: spans of the body. Pure. */
#ifndef HUB_FLEET_PLAN_H
#define HUB_FLEET_PLAN_H

#include "hub/revision.h"
#include "kube/write_body.h"

struct hub_plan_ask {
    struct kr_bytes verb; /* create, update, patch, delete */
    struct kr_bytes subresource;
    struct kr_bytes content_type; /* as it came */
    struct kr_bytes body;
    uint64_t revision;      /* of the object in the fleet view; 0: it is not there */
    struct kr_bytes origin; /* its version at the edge */
    bool lossy;             /* a profile left parts of it out */
    const struct hub_revision *given_out;
};

enum hub_plan_step {
    HUB_PLAN_PASS,       /* as it came */
    HUB_PLAN_EDIT,       /* kr_write_body_edit, or kr_proto_body_edit if it is protobuf */
    HUB_PLAN_PATCH,      /* edited, it becomes a JSON Patch of what was changed */
    HUB_PLAN_CONFLICT,   /* 409 */
    HUB_PLAN_LOSSY,      /* 422, `why` */
    HUB_PLAN_UNREADABLE, /* 415, `why` */
    HUB_PLAN_BAD,        /* 400, `why` */
};

struct hub_plan {
    enum hub_plan_step step;
    bool is_proto;
    struct kr_write_body body;
    struct kr_note why;
};

void hub_plan_write(const struct hub_plan_ask *ask, struct hub_plan *out);

#endif
