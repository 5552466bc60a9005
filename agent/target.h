/* SPDX-License-Identifier: Apache-2.0 */
/* target: which objects of the local API server are meant: a resource type, perhaps one namespace,
 * perhaps selectors; and the paths of requests for them. What names the type comes from a hub and
 * goes into a path, so it is checked by its letters.
 * Memory: owns its strings. Errors: KR_EINVAL with the reason, KR_ENOMEM, KR_ETOOBIG. Pure. */
#ifndef AGENT_TARGET_H
#define AGENT_TARGET_H

#include "base/buf.h"
#include "base/note.h"

struct agent_target_spec {
    struct kr_bytes group;
    struct kr_bytes version;
    struct kr_bytes resource;
    struct kr_bytes ns; /* empty: all */
    struct kr_bytes label_selector;
    struct kr_bytes field_selector;
};

struct agent_target { /* read it */
    char *group;
    char *version;
    char *resource;
    char *ns;
    char *labels;
    char *fields;
    char *name; /* "pods", "deployments.apps" */
};

int agent_target_init(struct agent_target *t, const struct agent_target_spec *spec,
                      struct kr_note *why);
void agent_target_deinit(struct agent_target *t); /* zeroed is fine */

/* "/apis/apps/v1/deployments?labelSelector=..&" : what follows is more parameters, and the last '&'
 * or '?' may stay. Appends. */
int agent_target_path(const struct agent_target *t, struct kr_buf *out);
/* "name=value&", the value percent-encoded. */
int agent_path_param(struct kr_buf *out, const char *name, struct kr_bytes value);

#endif
