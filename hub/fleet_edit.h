/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_edit: the body that goes on in the place of one that was built on the fleet view.
 * Errors: KR_EUNAVAILABLE (the object's Sync is not open), KR_EDENIED and KR_ETOOBIG (with the
 * reason: kube/json_diff.h), KR_EPROTO (the cached text), KR_ENOMEM. */
#ifndef HUB_FLEET_EDIT_H
#define HUB_FLEET_EDIT_H

#include "hub/cache.h"
#include "hub/fleet_plan.h"
#include "hub/request.h"
#include "wire/messages.h"

/* An edited body: what was refused as too long never comes here, and a patch is not longer than
 * what API servers take. */
#define HUB_EDIT_MAX ((3u << 20) + (64u << 10))

struct hub_write { /* read it; lives in the request's arena */
    struct hub_type *type;
    size_t reserved;         /* of HUB_WRITES_MAX */
    bool edited;             /* the body is not the one that came */
    bool as_patch;           /* it was a PUT and goes on as a PATCH */
    size_t body_n;           /* of the new body */
    struct kr_rebase rebase; /* subscription 0: none */
};

/* Appends it to `out`, and fills in r->write: rebase (if the body carries the version of `o`) and
 * as_patch. The plan's step is one of those that edit; `o` may be NULL if the body carries no
 * version of it. */
int hub_edit_body(struct hub_request *r, struct hub_object *o, const struct hub_plan *plan,
                  struct kr_bytes body, struct kr_buf *out, struct kr_note *why);

#endif
