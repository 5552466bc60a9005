/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_path: which cluster a request is for: the path prefix /clusters/NAME, or the host name
 * NAME.<hub-domain>.
 * Memory: the name is copied into the struct; `rest` borrows the target (or the arena for the one
 * form that needs a '/' put in front: /clusters/NAME?query). Pure.
 * Errors: KR_ENOENT when neither form is used, KR_EINVAL (with the reason) for a bad name. */
#ifndef KR_KUBE_CLUSTER_PATH_H
#define KR_KUBE_CLUSTER_PATH_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/note.h"

struct kr_cluster_path {
    char text[64];        /* the name, NUL-terminated; "*" for the fleet */
    struct kr_bytes name; /* of `text` */
    bool fleet;           /* NAME is '*' (clients send %2A) */
    struct kr_bytes rest; /* the request target of the cluster, exactly as it came; at least "/" */
};

/* Cuts /clusters/NAME off. NAME is decoded once, then a DNS-1123 label or '*'. */
int kr_cluster_path_split(struct kr_bytes target, struct kr_arena *arena,
                          struct kr_cluster_path *out, struct kr_note *why);

/* NAME.<domain>[:port], case folded; fills the name only. KR_ENOENT for the domain itself and for
 * any host that is not below it. */
int kr_cluster_from_authority(struct kr_bytes authority, struct kr_bytes domain,
                              struct kr_cluster_path *out, struct kr_note *why);

#endif
